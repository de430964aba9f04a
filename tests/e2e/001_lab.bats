#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The lab itself, without postern: what the other files call "nothing reached it" must be reachable when nobody forbids it.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
}

setup() {
	mark
}

@test "the lab has no way out: no device but its own, another namespace, a /run of its own" {
	equal "devices" "lo pl-net" "$(ip -o link show | awk -F': ' '{sub(/@.*/, "", $2); print $2}' |
		grep -vE '^(sit0|tunl0|ip6tnl0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|ip6gre0)$' | sort | xargs)"
	equal "type of /run" tmpfs "$(stat -f -c %T /run)"
	equal "propagation of /run" private "$(findmnt -n -o PROPAGATION /run)"
}

@test "every trap answers, and the witness and the logs see it" {
	for address in "${TRAPS4[@]}"; do
		equal "$address" trap "$(curl -sS -m 5 "http://$address/")"
	done
	for address in "${TRAPS6[@]}"; do
		equal "$address" trap "$(curl -sS -m 5 "http://[$address]/")"
	done
	for address in "${TRAPS4[@]}" "${TRAPS6[@]}"; do
		far_saw "> ${address//./\\.} 80 "
	done
	run far_no_trap
	equal "far_no_trap" 1 "$status"
}

@test "services of the host answer on all of its addresses" {
	for address in 127.0.0.1 "[::1]" "$HOST4" "[$HOST6]"; do
		equal "$address" trap "$(curl -sS -m 5 "http://$address:8080/")"
	done
	run far_no_trap
	equal "far_no_trap" 1 "$status"
	matches "what it says" "service of the host" "$output"
}

@test "resolvers answer, those of others too, and every question is written down" {
	equal "ours" "45.45.45.10" "$(dig +short "@$NET4.$RESOLVER" news.lab-site.org)"
	equal "over TCP" "2600:1:2::10" "$(dig +short +tcp "@$NET6:$RESOLVER" AAAA news.lab-site.org)"
	equal "another's" "45.45.45.20" "$(dig +short @8.8.8.8 www.lab-b.net)"
	dns_asked news.lab-site.org
	dns_asked www.lab-b.net
	dns_not_asked lab-a.com
	run dns_not_asked news.lab-site.org
	equal "dns_not_asked" 1 "$status"
}

@test "scripted answers: records, sequences, raw bytes" {
	local at="@$NET4.$RESOLVER"
	fdns odd.lab-odd.net '{"answers":[["A",7,"45.45.45.12"],["AAAA",7,"2600:1:2::12"]]}'
	matches "a record" "7.*IN.*A.*45.45.45.12" "$(dig +noall +answer "$at" odd.lab-odd.net)"
	fdns odd.lab-odd.net '{"sequence":[{"answers":[["A",1,"45.45.45.10"]]},{"rcode":2}]}'
	equal "first" 45.45.45.10 "$(dig +short "$at" odd.lab-odd.net)"
	matches "second" SERVFAIL "$(dig "$at" odd.lab-odd.net)"
	fdns odd.lab-odd.net '{"raw":"ID 8180 0001 0001 0000 0000 QUESTION c00c 0001 0001 00000005 0004 01020304"}'
	equal "raw" 1.2.3.4 "$(dig +short "$at" odd.lab-odd.net)"
	fdns odd.lab-odd.net
	matches "forgotten" NXDOMAIN "$(dig "$at" odd.lab-odd.net)"
}

@test "a real guest boots and reaches a server when it is routed" {
	[[ -e $VM_DIR/initramfs.cpio ]] || skip "no guest image: make vm-image"
	ip tuntap add tap0 mode tap
	ip addr add "$GATEWAY4/30" dev tap0
	ip link set tap0 up
	sysctl -q -w net.ipv4.ip_forward=1
	internet ip route add 172.16.0.0/30 via "$HOST4"
	cat >"$LAB/tmp/commands" <<-'COMMANDS'
		curl -sS --resolve news.lab-site.org:443:45.45.45.10 https://news.lab-site.org/
		exit 7
	COMMANDS
	run -7 "$LAB_DIR/vm/run" --ca "$LAB/tls/ca.crt" "$VM_DIR" "$LAB/tmp/commands"
	equal "page" "lab web server for news.lab-site.org" "$output"
	equal "seen" 172.16.0.2 "$(web_log .peer | tr -d '"')"
	ip link del tap0
}
