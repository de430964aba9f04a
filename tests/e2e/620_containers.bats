#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Namespaces of containers: one with a way out of its own is no sandbox, and is not called one; one that was detached can
# be attached again.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
}

setup() {
	mark
}

teardown() {
	all_gone
	ip link del up0 2>/dev/null || true
	ip netns del pl-guest-dual 2>/dev/null || true
}

namespace() {
	ip netns add pl-guest-dual
	ip -n pl-guest-dual link set lo up
}

# refused DEVICE: no attach, for that device, and the namespace is as it was.
refused() {
	local before
	before=$(ip -n pl-guest-dual -o address show && ip -n pl-guest-dual route show table all)
	run postern attach dual --netns /run/netns/pl-guest-dual
	equal "exit status" 2 "$status" || return 1
	matches "message" "another device, $1" "$output" || return 1
	equal "namespace" "$before" "$(ip -n pl-guest-dual -o address show && ip -n pl-guest-dual route show table all)" || return 1
	[[ ! -e /run/netns/postern-dual ]] || return 1
	equal "sandboxes" "" "$(postern list -o json | jq -r '.. | .name? // empty')"
}

@test "a container that has an uplink, up or down, is not attached, and nothing in it is touched" {
	namespace
	ip link add up0 type veth peer name up1 netns pl-guest-dual
	refused up1
	ip -n pl-guest-dual address add 45.45.99.2/24 dev up1
	ip -n pl-guest-dual link set up1 up
	ip -n pl-guest-dual route add default via 45.45.99.1
	refused up1
	ip link del up0
	postern attach dual --netns /run/netns/pl-guest-dual
}

@test "a TAP's other end is a process that may be anywhere" {
	namespace
	nsenter --net=/run/netns/pl-guest-dual ip tuntap add mode tap name slirp0
	refused slirp0
}

@test "devices that end inside the namespace are no way out" {
	namespace
	ip -n pl-guest-dual link add dummy7 type dummy || true # not in every kernel
	ip -n pl-guest-dual link add br0 type bridge
	ip -n pl-guest-dual link set br0 up
	postern attach dual --netns /run/netns/pl-guest-dual --allow news.lab-site.org
	mkdir -p "$LAB/guest/dual"
	echo "nameserver $GATEWAY4" >"$LAB/guest/dual/resolv.conf"
	run guest dual curl -sS https://news.lab-site.org/
	equal "page" "lab web server for news.lab-site.org" "$output"
	# Whoever administers the container's devices may move and make some across namespaces whose numbers it knows: the
	# machine's must not be among them.
	run nsenter --net=/run/netns/pl-guest-dual ip netns list-id
	equal "namespaces known in it" "" "$(grep -v 'name: \(postern-dual\|pl-guest-dual\))' <<<"$output" || true)"
	# What the container makes later does not keep it from being taken over again.
	ip -n pl-guest-dual link add own0 type veth peer name own1
	posternd_stop
	posternd_start
	run guest dual curl -sS https://news.lab-site.org/
	equal "after a restart" "lab web server for news.lab-site.org" "$output"
}

@test "a container can be attached again at once, while its last refusals are still being counted" {
	namespace
	mkdir -p "$LAB/guest/dual"
	echo "nameserver $GATEWAY4" >"$LAB/guest/dual/resolv.conf"
	for i in 1 2 3 4 5; do
		postern attach dual --netns /run/netns/pl-guest-dual --allow news.lab-site.org
		guest_fails dual curl -sS "http://$NET4.$OTHER/"
		run guest dual curl -sS https://news.lab-site.org/
		equal "page, time $i" "lab web server for news.lab-site.org" "$output"
		postern detach dual
	done
	gone() { ! ip -n pl-guest-dual link show eth0; }
	wait_for 2 gone
}
