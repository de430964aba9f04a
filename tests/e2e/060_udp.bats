#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# UDP: relayed to the ports that a rule names, after the record; refused at once otherwise. And refused packets: every one
# is counted, once.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	sandbox udp --policy "$(policy udp '{host: echo.lab-site.org, ports: [5000], udp: true}' 'host: news.lab-site.org' \
		"{cidr: $NET4.$ECHO/32, ports: [7], udp: true}")"
}

setup() {
	mark
}

# The kernel's own count of a class: kernel_count NAME CLASS
kernel_count() {
	ip netns exec "postern-$1" nft -j list counters table inet postern |
		jq --arg name "count_$2" '[.nftables[].counter | select(.name == $name) | .packets] | add'
}

# Packets in the log's rows: row_count NAME CONDITION
row_count() { log_json "$1" | jq -s "[.[] | select(.kind == \"deny\") | select($2) | .count] | add // 0"; }

rows_add_up() { [[ $(kernel_count udp "$1") -eq $(row_count udp "$2") ]]; }

# bats test_tags=smoke
@test "a datagram to an allowed name and port is answered, IPv4 and IPv6" {
	for family in 4 6; do
		address=$(guest udp dig +short "$([[ $family == 4 ]] && echo A || echo AAAA)" echo.lab-site.org)
		run -0 --separate-stderr guest udp "$LAB_DIR/client.py" udp "$address" 5000 "over $family"
		matches "echo" "over $family" "$output"
		far_saw "> ${address//./\\.} 5000"
	done
	log_has udp '.kind == "flow" and .proto == "udp" and .dport == 5000 and .name == "echo.lab-site.org"
		and .name_source == "lease" and .dst == "45.45.45.30"'
	log_has udp '.kind == "flow" and .proto == "udp" and .dport == 5000 and .dst == "2600:1:2::30"'
}

@test "an address rule needs no name" {
	run -0 --separate-stderr guest udp "$LAB_DIR/client.py" udp "$NET4.$ECHO" 7 by-address
	matches "echo" by-address "$output"
	log_has udp '.kind == "flow" and .proto == "udp" and .dport == 7 and .name_source == "cidr"'
}

# bats test_tags=smoke
@test "case_D_18 QUIC and other UDP is refused at once, and nothing leaves" {
	guest_fails udp "$LAB_DIR/client.py" udp "$NET4.$WEB" 443 quic
	guest_fails udp "$LAB_DIR/client.py" udp "$NET4.$WEB" 5000 unleased
	guest_fails udp "$LAB_DIR/client.py" udp "$NET6:$WEB" 123 ntp
	far_none "> ($NET4\.$WEB|$NET6:$WEB) (443|5000|123) "
	log_has udp '.kind == "deny" and .reason == "udp_denied" and .dport == 443 and (.detail | contains("QUIC"))'
	log_has udp '.kind == "deny" and .reason == "udp_denied" and .dport == 5000 and .dst == "45.45.45.10"'
	log_has udp '.kind == "deny" and .reason == "udp_denied" and .dport == 123'
}

@test "an edit cuts a live flow" {
	address=$(guest udp dig +short echo.lab-site.org)
	run -0 --separate-stderr guest udp "$LAB_DIR/client.py" --source 33000 udp "$address" 5000 before
	run -0 postern deny udp echo.lab-site.org:5000/udp
	matches "what was cut" "echo.lab-site.org 45.45.45.30:5000" "$output"
	mark
	guest_fails udp "$LAB_DIR/client.py" --source 33000 --timeout 2 udp "$address" 5000 after
	far_none "> ${address//./\\.} 5000"
	log_has udp '.proto == "udp" and .end == "policy" and .reason == "revoked"'
	postern revoke udp echo.lab-site.org:5000/udp
}

@test "case_F_12 the rows add up to the kernel's counters" {
	guest_fails udp curl -sS --max-time 2 "http://$NET4.$OTHER/"
	guest udp python3 -c '
import socket, sys
for family, to in ((socket.AF_INET, ("45.45.45.99", 4000)), (socket.AF_INET6, ("2600:1:2::99", 4000))):
    sock = socket.socket(family, socket.SOCK_DGRAM)
    for i in range(3000):
        try:
            sock.sendto(b"x", to)
        except OSError:
            pass
'
	wait_for 20 rows_add_up udp '.reason == "udp_denied"'
	wait_for 5 rows_add_up tcp '.reason == "not_leased" and .proto == "tcp"'
	[[ $(kernel_count udp udp) -ge 6000 ]]
	log_has udp '.reason == "udp_denied" and .dport == 4000 and .count > 1'
	log_has udp '.reason == "udp_denied" and .detail == "packets not logged one by one" and (has("dst") | not)'
	# A flood is a handful of rows.
	[[ $(log_count udp '.reason == "udp_denied"') -lt 20 ]]
}

@test "what was refused last before a detach is on record" {
	sandbox brief --policy "$(policy brief 'host: news.lab-site.org')"
	guest_fails brief curl -sS --max-time 2 "http://$NET4.$OTHER/"
	sandbox_gone brief
	log_has brief '.kind == "deny" and .reason == "not_leased" and .dst == "45.45.45.20" and .dport == 80'
}
