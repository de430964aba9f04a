#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# A real guest: a virtual machine on a TAP, with a kernel of its own. Two of them with the same addresses.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
}

setup() {
	[[ -e $VM_DIR/initramfs.cpio ]] || skip "no guest image: make vm-image"
	mark
}

machine() {
	postern attach "$1" --tap --policy "$2" >/dev/null
	mac=$(postern show "$1" -o json | jq -r .mac)
}

# bats test_tags=smoke
@test "a virtual machine reaches what is allowed and nothing else" {
	machine vm "$(policy vm 'host: news.lab-site.org')"
	cat >"$LAB/tmp/commands" <<-'COMMANDS'
		curl -sS -4 https://news.lab-site.org/
		curl -sS -6 https://news.lab-site.org/
		curl -sS -m 30 https://www.lab-b.net/ 2>&1
		curl -sSk -m 30 --connect-to ::news.lab-site.org: https://www.lab-b.net/ 2>&1
		curl -sS -m 30 http://169.254.169.254/ 2>&1
		curl -sS -m 30 "http://[fd00:ec2::254]/" 2>&1
		curl -sSk -m 30 https://45.45.45.20/ 2>&1
		busybox nslookup www.lab-b.net 8.8.8.8 2>&1
		exit 3
	COMMANDS
	run -3 vm vm "$LAB/tmp/commands" --mac "$mac"
	equal "pages" 2 "$(grep -c 'lab web server for news.lab-site.org' <<<"$output")"
	matches "other site" 'curl: \(6\) Could not resolve host: www.lab-b.net' "$output"
	matches "wrong name in TLS" 'curl: \(35\) .*reset' "$output"
	matches "metadata" 'curl: \(7\) Failed to connect to 169.254.169.254' "$output"
	matches "metadata, IPv6" 'curl: \(7\) Failed to connect to fd00:ec2::254' "$output"
	matches "raw address" 'curl: \(7\) Failed to connect to 45.45.45.20' "$output"
	matches "foreign resolver" "can't find www.lab-b.net: NXDOMAIN" "$output"
	equal "requests" 2 "$(web_log | wc -l)"
	dns_not_asked www.lab-b.net
	far_no_trap
	far_none "> ($NET4\.$OTHER|8\.8\.8\.8) "
	log_has vm '.kind == "flow" and .name == "news.lab-site.org" and .src == "172.16.0.2" and .end == "fin"'
	log_has vm '.kind == "deny" and .reason == "never_address" and .dst == "fd00:ec2::254"'
	postern detach vm
}

@test "two machines with the same address, hardware address and device are told apart" {
	machine left "$(policy left 'host: news.lab-site.org')"
	machine right "$(policy right 'host: lab-a.com')"
	cat >"$LAB/tmp/commands" <<-'COMMANDS'
		for i in 1 2 3; do
			curl -sS -m 30 https://news.lab-site.org/
			curl -sS -m 30 https://lab-a.com/
		done 2>&1
	COMMANDS
	vm right "$LAB/tmp/commands" --mac "$mac" >"$LAB/tmp/right" &
	local right=$!
	run vm left "$LAB/tmp/commands" --mac "$mac"
	wait "$right" || true
	equal "left reaches" 3 "$(grep -c 'lab web server for news.lab-site.org' <<<"$output")"
	equal "left is refused" 3 "$(grep -c 'Could not resolve host: lab-a.com' <<<"$output")"
	equal "right reaches" 3 "$(grep -c 'lab web server for lab-a.com' "$LAB/tmp/right")"
	equal "right is refused" 3 "$(grep -c 'Could not resolve host: news.lab-site.org' "$LAB/tmp/right")"
	equal "left's flows" 3 "$(log_count left '.kind == "flow"')"
	equal "right's flows" 3 "$(log_count right '.kind == "flow"')"
	postern detach left
	postern detach right
}
