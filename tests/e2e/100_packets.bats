#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Packets that no honest guest sends: none is accepted, none leaves, each is counted once by the kernel and once in the log.

# bats file_tags=alone
bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/raw

setup_file() {
	lab_up
	posternd_start
	sandbox l2 --policy "$(policy l2 'host: news.lab-site.org' '{host: echo.lab-site.org, ports: [7, 15001]}')"
	# For what fills its log.
	sandbox flood --policy "$LAB/tmp/l2.yaml"
}

setup() {
	box=l2
	mark
}

# What came back for packets: answers PACKET... Without the gateway's own multicast chatter, and without what is said some
# seconds later of fragments of an earlier case that nobody completed.
answers() {
	raw "$box" --listen 150 "$@" | grep -v ' > ff02::\|^icmp .* 11/1 \|^icmp6 .* 3/1 \|^sent ' || true
}

# Packets of which each must raise one counter by one, and none be accepted: refused CLASS PACKET...
refused() {
	local class=$1 before after out
	shift
	before=$(counted "$box" "$class")
	out=$(raw "$box" --listen 150 "$@") || return 1
	after=$(counted "$box" "$class")
	equal "packets counted as $class" "$(sed -n 's/^sent //p' <<<"$out")" $((after - before)) || return 1
	not_accepted "$out"
}

# No half-open connection, no answer of a service.
not_accepted() {
	if grep -E '^tcp .* [FSRPAU]*S[FSRPAU]* [0-9]+$|^udp ' <<<"$1" >"$LAB/tmp/accepted"; then
		fail "something answered:" "$(cat "$LAB/tmp/accepted")"
	fi
}

silent() {
	local out
	out=$(answers "$@")
	[[ -z $out ]] || fail "there should be no answer:" "$out"
}

# Nothing of what was sent raw may be seen outside.
outside_none() {
	far_none " (172\.16\.|fd70:)" || return 1
	far_none "> ($NET4\.($WEB|$OTHER|$ECHO)|$NET6:($WEB|$OTHER|$ECHO)|8\.8\.|9\.) " || return 1
	far_no_trap
}

# Leases, so that a packet is refused for what it is and not for where it goes.
lease_news() {
	guest "$box" dig +short news.lab-site.org A news.lab-site.org AAAA >/dev/null
}

# bats test_tags=smoke
@test "E-01: a forged source address is not accepted, not answered, not attributed to anyone" {
	local flows
	lease_news
	mark
	flows=$(log_count l2 '.kind == "flow"')
	# Many of a kind are one row.
	raw l2 --listen 0 "tcp src=9.9.9.9 dst=$NET4.$WEB dport=443 count=200" >/dev/null
	# Somebody else, the gateway, the host, a neighbour, loopback, nobody; to a leased address and to the resolver.
	refused spoofed "tcp src={8.8.8.8|$GATEWAY4|$HOST4|172.16.0.6|127.0.0.1|0.0.0.0|255.255.255.255} dst=$NET4.$WEB dport=443"
	refused spoofed "tcp src={$GATEWAY6|$HOST6|fd70:6f73:7465:726e::3|fe80::1|::} dst=$NET6:$WEB dport=443"
	refused spoofed "udp src={8.8.8.8|172.16.0.6} dst=$GATEWAY4 dport=53 data=hex:123401000001000000000000046e657773086c61622d73697465036f72670000010001"
	# Another hardware address.
	refused spoofed "tcp smac=06:00:00:00:00:99 dst={$NET4.$WEB|$NET6:$WEB} dport=443"
	silent "tcp src={8.8.8.8|$GATEWAY4|172.16.0.6} dst=$NET4.$WEB dport=443" "tcp src={::1|fe80::1|$HOST6} dst=$NET6:$WEB dport=443"
	outside_none
	dns_not_asked news.lab-site.org
	equal "flows" "$flows" "$(log_count l2 '.kind == "flow"')"
	log_has l2 '.kind == "deny" and .reason == "spoofed_source" and .src == "8.8.8.8" and .dst == "45.45.45.10" and .dport == 443'
	log_has l2 ".kind == \"deny\" and .reason == \"spoofed_source\" and .src == \"$HOST6\""
	wait_for 12 log_has l2 '.reason == "spoofed_source" and .src == "9.9.9.9" and .count == 200'
	equal "rows" 1 "$(log_count l2 '.src == "9.9.9.9"')"
}

@test "E-01: frames that are not IP or ARP, or carry a VLAN tag, go nowhere" {
	lease_news
	refused spoofed "frame type={0x88cc|0x8864|0x88a8|0x8847|0x86de}" "tcp dst=$NET4.$WEB dport=443 vlan={0|1|100}" \
		"tcp dst=$NET6:$WEB dport=443 vlan=5"
	silent "tcp dst=$NET4.$WEB dport=443 vlan={0|7}"
	outside_none
	log_has l2 '.reason == "spoofed_source" and (.detail // "" | contains("EtherType 0x88cc"))'
}

# bats test_tags=smoke
@test "E-09: martians, with route_localnet on the host" {
	sysctl -q -w net.ipv4.conf.all.route_localnet=1
	refused never "{tcp|udp} dst={127.0.0.1|127.8.8.8|0.0.0.0|0.1.2.3|240.0.0.1|255.255.255.255} dport={80|8080|15001}"
	refused never "tcp dst={fe80::1|fec0::1|::|::ffff:127.0.0.1|::ffff:10.0.0.5|fe80::5efe:a00:5} dport=8080"
	# Loopback addresses of IPv6 end in the kernel before any hook.
	not_accepted "$(answers "tcp dst=::1 dport={80|8080}" "tcp src=::1 dst=::1 dport=8080" "udp dst=::1 dport=53")"
	sysctl -q -w net.ipv4.conf.all.route_localnet=0
	outside_none
	log_has l2 '.reason == "never_address" and .dst == "127.0.0.1" and .dport == 8080'
	log_has l2 '.reason == "never_address" and .dst == "0.1.2.3"'
}

@test "E-12: broadcast and multicast are counted and not answered" {
	refused never "udp dmac=ff:ff:ff:ff:ff:ff dst={255.255.255.255|172.16.0.3|$NET4.$WEB} dport={53|67|443}" \
		"udp dmac=01:00:5e:00:00:01 dst={224.0.0.1|224.0.0.251|239.255.255.250} dport={53|1900|5353}" \
		"udp dmac=33:33:00:00:00:01 dst={ff02::1|ff02::fb|ff05::1:3|ff0e::1} dport={53|547|5353}" \
		"icmp dmac=ff:ff:ff:ff:ff:ff dst={255.255.255.255|172.16.0.3}" "icmp dmac=33:33:00:00:00:01 dst=ff02::1" \
		"tcp dmac=ff:ff:ff:ff:ff:ff dst=$NET4.$WEB dport=443"
	silent "udp dmac=ff:ff:ff:ff:ff:ff dst={255.255.255.255|172.16.0.3|$NET4.$WEB} dport={53|443}" \
		"icmp dmac=ff:ff:ff:ff:ff:ff dst={255.255.255.255|172.16.0.3}" "icmp dmac=33:33:00:00:00:01 dst=ff02::1" \
		"udp dmac=33:33:00:00:00:01 dst={ff02::1|ff02::fb} dport={53|5353}"
	# The same to the gateway's hardware address.
	refused never "udp dst={224.0.0.1|255.255.255.255|172.16.0.3|ff02::1|ff0e::1} dport={67|443}"
	outside_none
	log_has l2 '.reason == "never_address" and .dst == "224.0.0.251" and .dport == 5353'
	log_has l2 '.reason == "never_address" and .dst == "ff02::fb"'
}

# bats test_tags=smoke
@test "E-13: only the gateway itself answers an echo, and ICMP changes nothing" {
	lease_news
	matches "echo" "icmp $GATEWAY4 .* 0/0" "$(answers "icmp dst=$GATEWAY4")"
	matches "echo" "icmp6 $GATEWAY6 .* 129/0" "$(answers "icmp dst=$GATEWAY6")"
	refused icmp "icmp dst={8.8.8.8|$NET4.$WEB|$HOST4}" "icmp dst={$NET6:$WEB|$HOST6}" \
		"icmp dst=$NET4.$WEB type={0|3|4|5|8|9|10|11|12|13|14|15|17|40|42}" "icmp dst=$NET6:$WEB type={1|2|3|4|127|129|144|200}"
	refused never "icmp dst=169.254.169.254" "icmp dst=fd00:ec2::254"
	matches "refusal" "icmp $GATEWAY4 .* 3/13" "$(answers "icmp dst=$NET4.$WEB")"
	matches "refusal" "icmp6 $GATEWAY6 .* 1/1" "$(answers "icmp dst=$NET6:$WEB")"
	# More than a few echoes are refused too.
	local before
	before=$(counted l2 icmp)
	raw l2 --listen 0 "icmp dst=$GATEWAY4 count=200" >/dev/null
	(($(counted l2 icmp) - before > 100)) || fail "200 echo requests: $(($(counted l2 icmp) - before)) were refused"

	# Errors with forged packets in them do not end a connection, not even the guest's own.
	guest l2 "$LAB_DIR/client.py" tcp echo.lab-site.org 7 --source 41000 --gap 0.7 one two three --half-close \
		>"$LAB/tmp/echoed" 2>"$LAB/tmp/echoed.end" 3>&- &
	local client=$!
	connected() { internet ss -Htn state established "sport = :7" | grep -q .; }
	wait_for 5 connected
	refused icmp "icmp dst=$NET4.$ECHO type=3 code={1|2|3|4|13} isrc=$NET4.$ECHO idst=$GUEST4 isport=7 idport=41000" \
		"icmp dst=$NET4.$ECHO type=3 code={1|2|3|4} isrc=$GUEST4 idst=$NET4.$ECHO isport=41000 idport=7" \
		"icmp dst=$NET6:$ECHO type={1|2|3|4} isrc=$NET6:$ECHO idst=$GUEST6 isport=7 idport=41000"
	wait "$client"
	equal "echo" onetwothree "$(cat "$LAB/tmp/echoed")"
	far_none "^icmp"
	far_no_trap
	log_has l2 '.reason == "proto_denied" and .proto == "icmp" and .dst == "8.8.8.8"'
	log_has l2 '.reason == "proto_denied" and .dst == "2600:1:2::10"'
}

# bats test_tags=smoke
@test "E-14: no other IP protocol passes, IPv4 and IPv6" {
	local before after
	box=flood
	lease_news
	mark
	# All but the five that have a class of their own or are link chatter (IGMP).
	refused proto "ip dst={$NET4.$WEB|8.8.8.8} proto={0|4|41|47|50|51|89|132|136|253|254|255}" "ip dst=$NET4.$WEB proto=33" \
		"ip dst=$NET6:$WEB proto={4|41|47|50|59|89|132|136|253|254|255}"
	before=$(counted flood proto)
	not_accepted "$(raw flood --listen 200 "ip dst=$NET4.$WEB proto={0..255}" "ip dst=$NET6:$WEB proto={0..255}")"
	after=$(counted flood proto)
	# Those with another class: TCP, UDP, ICMP, IGMP; an IPv6 header that cannot be parsed ends in the kernel.
	((after - before >= 495)) || fail "of 512 packets only $((after - before)) were counted"
	matches "refusal" "icmp $GATEWAY4 .* 3/13" "$(answers "ip dst=$NET4.$WEB proto=47")"
	outside_none
	log_has flood '.reason == "proto_denied" and .dst == "45.45.45.10" and .proto == "47"'
	log_has flood '.reason == "proto_denied" and .dst == "2600:1:2::10" and (.proto == "132" or .proto == "sctp")'
}

@test "E-05: IPv4 options, redirects, and the settings of the sandbox's namespace" {
	lease_news
	mark
	# Loose and strict source route, record route, timestamp, router alert, no operation.
	refused proto "{tcp|udp|icmp} dst=$NET4.$WEB dport=443 options={8307042d2d2d1400|8907042d2d2d1400|0707040000000000|440c05000000000000000000|94040000|01010101}"
	refused proto "udp dst=$GATEWAY4 dport=53 options=94040000 data=x"
	refused icmp "icmp dst=$NET4.$WEB type=5 code={0|1} isrc=$GUEST4 idst=$NET4.$WEB"
	outside_none
	log_has l2 '.reason == "proto_denied" and .dst == "45.45.45.10" and .dport == 443'

	# Whatever the surroundings say, a namespace made afterwards has the same.
	sysctl -q -w net.ipv4.conf.default.accept_redirects=1 net.ipv4.conf.default.accept_source_route=1 \
		net.ipv4.conf.all.proxy_arp=1 net.ipv6.conf.default.accept_ra=2
	sandbox settings
	sysctl -q -w net.ipv4.conf.all.proxy_arp=0
	for name in l2 settings; do
		while read -r key want; do
			equal "$name: $key" "$want" "$(inside "$name" sysctl -n "$key")"
		done <<-'KEYS'
			net.ipv4.ip_forward 0
			net.ipv6.conf.all.forwarding 0
			net.ipv4.conf.all.accept_redirects 0
			net.ipv4.conf.veth0.accept_redirects 0
			net.ipv4.conf.veth0.secure_redirects 0
			net.ipv4.conf.veth0.send_redirects 0
			net.ipv4.conf.veth0.accept_source_route 0
			net.ipv4.conf.veth0.proxy_arp 0
			net.ipv4.conf.veth0.arp_ignore 1
			net.ipv4.conf.veth0.arp_accept 0
			net.ipv4.conf.veth0.route_localnet 0
			net.ipv4.conf.all.route_localnet 0
			net.ipv6.conf.veth0.accept_ra 0
			net.ipv6.conf.veth0.autoconf 0
			net.ipv6.conf.veth0.accept_redirects 0
			net.ipv6.conf.veth0.accept_source_route -1
			net.ipv6.conf.veth0.accept_dad 0
			net.ipv6.conf.veth0.proxy_ndp 0
		KEYS
	done
	sandbox_gone settings
}

@test "E-06: IPv6 extension headers hide nothing" {
	lease_news
	mark
	refused proto "{tcp|udp} dst=$NET6:$WEB dport=443 ext={hop|dst|routing|mobility|ah|none|dst*8|dst*60|hop,dst,routing,dst|hop,dst*7}"
	refused proto "tcp dst={$NET6:$OTHER|fd00:ec2::254} dport=80 ext={dst|routing|dst*9}"
	refused proto "udp dst=$GATEWAY6 dport=53 ext={hop|dst} data=x" "icmp dst=$GATEWAY6 ext=dst"
	# A fragment header with nothing to put together is what the kernel takes off first.
	not_accepted "$(answers "tcp dst=$NET6:$OTHER dport=443 ext=fragment")"
	refused proto "tcp dst=$NET6:$WEB dport=443 cut=8 ext={dst|hop}"
	outside_none
	log_has l2 '.reason == "proto_denied" and .dst == "2600:1:2::10"'
	equal "flows" 0 "$(log_count l2 '.kind == "flow" and .dst == "2600:1:2::10"')"
}

@test "E-07: fragments are judged when they are whole" {
	lease_news
	mark
	local data
	data=hex:$(printf 'ab%.0s' {1..100})
	# IPv4: eight bytes each, so that the first has the ports and not the flags; both orders.
	matches "leased" "tcp $NET4.$WEB 443 > .* SA" "$(answers "tcp dst=$NET4.$WEB dport=443 cut=8 id=11")"
	matches "leased" "tcp $NET4.$WEB 443 > .* SA" "$(answers "tcp sport=40001 dst=$NET4.$WEB dport=443 cut=8 id=12 order=reverse")"
	# IPv6: a first fragment without the whole header is not put together with others (RFC 8200) but refused.
	refused proto "tcp dst={$NET6:$WEB|$NET6:$OTHER|fd00:ec2::254} dport=443 cut={8|16} id=1{3..4}"
	matches "leased" "tcp $NET6:$WEB 443 > .* SA" "$(answers "tcp dst=$NET6:$WEB dport=443 data=$data cut=24 id=12 order=reverse")"
	refused tcp "tcp dst=$NET4.$OTHER dport=443 cut={8|16} id=1{3..4}" "tcp dst=$NET6:$OTHER dport=443 data=$data cut={24|48} id=1{5..6}"
	refused never "tcp dst=10.0.0.5 dport=80 cut=8 id=15 order=reverse" "tcp dst=fd00:ec2::254 dport=80 data=$data cut=24 id=17"
	refused spoofed "tcp src=8.8.8.8 dst=$NET4.$WEB dport=443 cut=8 id=16"
	refused udp "udp dst={$NET4.$OTHER|$NET6:$OTHER} dport=443 data=$data cut=24 id=1{7..8}"
	# Not whole, or contradicting each other: nothing.
	silent "tcp dst={$NET4.$WEB|$NET6:$WEB} dport=443 data=$data cut=24 id=2{0..3} keep=first" \
		"tcp dst={$NET4.$WEB|$NET6:$WEB} dport=443 data=$data cut=24 id=4{0..3} keep=rest" \
		"tcp dst={$NET4.$WEB|$NET6:$WEB} dport=443 data=$data cut=24 id=5{0..3} keep=odd"
	silent "tcp dst={$NET4.$WEB|$NET6:$WEB|$NET4.$OTHER} dport=443 data=$data cut=24 overlap=1 id=3{0..3}"
	outside_none
	log_has l2 '.reason == "not_leased" and .dst == "45.45.45.20" and .dport == 443'

	# A flood of pieces takes a bounded amount of memory, and nobody else's turn.
	data=hex:$(printf 'ab%.0s' {1..1200})
	raw l2 --listen 0 "udp dst=$NET4.$OTHER dport=443 data=$data cut=1024 keep=first id={0..7999}" \
		"udp dst=$NET6:$OTHER dport=443 data=$data cut=1024 keep=first id={0..7999}" >/dev/null
	local memory
	memory=$(inside l2 awk '/^FRAG/ {print $5}' /proc/net/sockstat)
	((memory < 1048576)) || fail "fragments hold $memory bytes"
	equal "still served" "lab web server for news.lab-site.org" "$(guest l2 curl -sS https://news.lab-site.org/)"
}

@test "E-32: link-local and self-chosen IPv6 addresses reach nothing" {
	local eui
	eui=$(nsenter --net=/run/netns/pl-guest-l2 ip -6 -o addr show dev eth0 scope link | awk '{sub(/\/.*/, "", $4); print $4}')
	[[ -n $eui ]]
	refused spoofed "{tcp|udp} src=$eui dst={fe80::1|$GATEWAY6|$NET6:$WEB} dport={22|53|443|15001}"
	refused spoofed "tcp src={2600:9:9::5|fd70:6f73:7465:726e:1::2} dst={$NET6:$WEB|fe80::1} dport={53|443}"
	refused never "{tcp|udp} dst=fe80::1 dport={22|80|15001}"
	silent "{tcp|udp} src=$eui dst={fe80::1|$GATEWAY6} dport={22|53|15001}"
	# As a program sees it.
	dials l2 --timeout 1 tcp fe80::1%eth0 22 53 15001 >"$LAB/tmp/dials"
	equal "connections" 0 "$(grep -c '^connected' "$LAB/tmp/dials")"
	equal "tried" 3 "$(wc -l <"$LAB/tmp/dials")"
	REFUSAL_MS=8000
	guest_fails l2 timeout 2 dig +tries=1 +time=1 @fe80::1%eth0 news.lab-site.org
	outside_none
	log_has l2 ".reason == \"spoofed_source\" and .src == \"$eui\" and .dst == \"fe80::1\" and .dport == 15001"
}

# bats test_tags=smoke
@test "E-11: the gateway's address and the transparent port are not to be dialled" {
	local address
	mark
	dials_refused l2 tcp "$GATEWAY4" "$GATEWAY6" 22 443 15001
	for address in "$GATEWAY4" "$GATEWAY6"; do
		for port in 22 443 15001; do
			log_has l2 ".reason == \"never_address\" and .proto == \"tcp\" and .dst == \"$address\" and .dport == $port"
		done
		equal "rows" 1 "$(log_count l2 ".reason == \"never_address\" and .proto == \"tcp\" and .dst == \"$address\" and .dport == 15001")"
	done
	# A leased address on the transparent port's number is an ordinary destination: dialled once, and refused there.
	run -1 guest l2 "$LAB_DIR/client.py" tcp echo.lab-site.org 15001 --timeout 3
	matches "end" '"end": "(rst|refused)"' "$output"
	log_has l2 '.verdict == "failed" and .name == "echo.lab-site.org" and .dport == 15001 and .end == "connect_failed"'
	equal "records" 1 "$(log_count l2 '.dport == 15001 and .name == "echo.lab-site.org"')"
	far_saw "> ($NET4\.|$NET6:)$ECHO 15001 S"
	far_no_trap
}

# bats test_tags=smoke
@test "F-17: what has no lease is refused at the SYN, in a few milliseconds" {
	dials_refused l2 tcp "$NET4.$OTHER" "$NET6:$OTHER" 10.0.0.5 169.254.169.254 443 80 22
	# The quickest of eleven, on a machine that does other things too.
	local address best
	for address in "$NET4.$OTHER" "$NET6:$OTHER" 169.254.169.254; do
		best=$(dials l2 tcp "$address" {101..111} | cut -d' ' -f5 | sort -n | head -n 1)
		awk -v ms="$best" 'BEGIN {exit !(ms < 10)}' || fail "$address: refused after $best ms"
	done
	far_none "> ($NET4\.$OTHER|$NET6:$OTHER|10\.0\.0\.5|169\.254\.169\.254) "
	log_has l2 '.kind == "deny" and .reason == "not_leased" and .dst == "45.45.45.20" and .dport == 443'
	log_has l2 '.kind == "deny" and .reason == "not_leased" and .dst == "2600:1:2::20" and .dport == 443'
}

# bats test_tags=smoke
@test "C-06: other ways to a resolver are refused at once" {
	REFUSAL_MS=1000
	dials_refused l2 tcp 8.8.8.8 1.1.1.1 2606:4700:4700::1111 "$GATEWAY4" "$GATEWAY6" 443 784 853 5353 8853
	dials_refused l2 udp 8.8.8.8 1.1.1.1 2606:4700:4700::1111 "$GATEWAY4" "$GATEWAY6" 443 784 853 5353 8853
	equal "tried" 25 "$(wc -l <"$LAB/tmp/dials")"
	far_none "> (8\.8\.8\.8|1\.1\.1\.1|2606:4700:4700::1111) "
	log_has l2 '.reason == "not_leased" and .dst == "8.8.8.8" and .dport == 853 and .proto == "tcp"'
	log_has l2 '.reason == "udp_denied" and .dst == "8.8.8.8" and .dport == 853'
	log_has l2 '.reason == "udp_denied" and .dst == "2606:4700:4700::1111" and .dport == 784'
	log_has l2 '.reason == "never_address" and .dst == "172.16.0.1" and .dport == 853'
}

# bats test_tags=smoke
@test "D-18: QUIC to an allowed address is refused by ICMP, and the client goes on over TCP without delay" {
	local family address initial
	# Version 1 and 2, a version nobody knows, as long as an Initial is.
	for initial in c000000001 d36b3343cf c01a2a3a4a; do
		initial+=08000102030405060708f0f1f2f3f4f5f6f70044d0$(printf '5a%.0s' {1..1150})
		for family in 4 6; do
			address=$(guest l2 dig +short "$([[ $family == 4 ]] && echo A || echo AAAA)" news.lab-site.org)
			run -1 guest l2 "$LAB_DIR/client.py" udp "$address" 443 "hex:$initial"
			matches "QUIC over IPv$family" '"end": "refused"' "$output"
			(($(tail -n 1 <<<"$output" | jq '.ms | floor') < 2000)) || fail "$output"
			run -0 guest l2 curl -sS -$family -w '%{time_total}' -o /dev/null https://news.lab-site.org/
			jq -e -n "$output < 5" >/dev/null || fail "curl over IPv$family took $output s"
		done
	done
	far_none "^udp .* > ($NET4\.$WEB|$NET6:$WEB) "
	log_has l2 '.reason == "udp_denied" and .dst == "45.45.45.10" and .dport == 443 and (.detail | contains("QUIC"))'
	log_has l2 '.reason == "udp_denied" and .dst == "2600:1:2::10" and .dport == 443'
}

# bats test_tags=smoke
@test "E-01, E-14, F-12: a flood of twenty thousand packets: every one is counted, in few rows" {
	local class out sent=0
	declare -A before
	for class in spoofed never tcp udp icmp proto; do
		before[$class]=$(counted flood $class)
	done
	out=$(raw flood --listen 0 \
		"tcp dst=$NET4.$OTHER dport={101..2600}" "tcp dst=$NET6:$OTHER dport={101..2600}" \
		"udp dst=$NET4.$OTHER dport={10001..12500}" "udp dst=$NET6:$OTHER dport={10001..12500}" \
		"tcp src=9.{0..9}.{0..99}.1 dst=$NET4.$WEB dport=443 count=3" \
		"udp dst=10.{0..9}.{0..199}.1 dport=80" "icmp dst=8.8.8.8 count=2000" \
		"ip proto={150..199} dst=$NET4.$OTHER count=40" "frame type=0x88cc count=1000")
	sent=$(sed -n 's/^sent //p' <<<"$out")
	# raw.py counts a packet with count=N once for each time.
	equal "sent" 20000 "$sent"
	equal spoofed 4000 $(($(counted flood spoofed) - before[spoofed]))
	equal never 2000 $(($(counted flood never) - before[never]))
	equal proto 2000 $(($(counted flood proto) - before[proto]))
	# The guest's own kernel answers what comes back with nothing, so these are exact too.
	equal tcp 5000 $(($(counted flood tcp) - before[tcp]))
	equal udp 5000 $(($(counted flood udp) - before[udp]))
	equal icmp 2000 $(($(counted flood icmp) - before[icmp]))
	equal "still served" "lab web server for news.lab-site.org" "$(guest flood curl -sS https://news.lab-site.org/)"
	wait_for 30 adds_up flood || fail "$(cat "$LAB/tmp/sums")"
	local rows
	rows=$(log_count flood '.kind == "deny"')
	((rows < 1000)) || fail "$rows rows"
	log_has flood '.reason == "udp_denied" and .detail == "packets not logged one by one"'
	far_none "> ($NET4\.$OTHER|$NET6:$OTHER|10\.|9\.) "
}

# bats test_tags=smoke
@test "E-15: TCP flags that do not go together open nothing, and data in a SYN goes nowhere" {
	local flags rows out
	guest l2 dig +short echo.lab-site.org >/dev/null
	rows=$(log_count l2 '.kind == "flow" and .dport == 7')
	mark
	flags=$(python3 -c 'from itertools import combinations as some
words = {"".join(word) for n in range(1, 7) for word in some("FSRPAU", n)}
print("|".join(sorted(word for word in words if "S" not in word or set(word) & set("FRA"))))')
	out=$(raw l2 --listen 150 "tcp dst=$NET4.$ECHO dport=7 flags={$flags} data=hello" "tcp dst=$NET4.$ECHO dport=7 flags=")
	equal "sent" 60 "$(sed -n 's/^sent //p' <<<"$out")"
	not_accepted "$out"
	# A bare SYN is answered by the listener; what it carries is not kept, and nothing is dialled before the third step.
	out=$(raw l2 --listen 150 "tcp dst=$NET4.$ECHO dport=7 sport=41{01..04} flags={S|SP|SU|SPU} data=hello")
	matches "answers" " SA 0$" "$out"
	far_none "> $NET4\.$ECHO "
	equal "records of connections" "$rows" "$(log_count l2 '.kind == "flow" and .dport == 7')"
}

@test "E-16, E-30: a guest that floods its listener with SYNs is out of nobody's way but its own, and nothing is tracked" {
	local best
	sandbox calm --policy "$LAB/tmp/l2.yaml" >/dev/null
	lease_news
	guest calm dig +short news.lab-site.org >/dev/null
	mark
	# No reset for the answers: each stays half-open.
	nsenter --net=/run/netns/pl-guest-l2 nft 'add table ip mute; add chain ip mute out { type filter hook output priority 0; };
		add rule ip mute out tcp flags rst drop'
	raw l2 --listen 0 "tcp dst=$NET4.$WEB dport=443 sport={2000..21999}" >/dev/null &
	best=$(for _ in 1 2 3 4 5; do took guest calm curl -sS https://news.lab-site.org/; done | sort -n | head -n 1)
	wait $!
	((best < 1000)) || fail "the other sandbox took $best ms at best"
	nsenter --net=/run/netns/pl-guest-l2 nft delete table ip mute
	again() { [[ $(guest l2 curl -sS -4 -m 2 https://news.lab-site.org/) == "lab web server for news.lab-site.org" ]]; }
	wait_for 10 again
	equal "entries of connection tracking" 0 "$(inside l2 cat /proc/sys/net/netfilter/nf_conntrack_count 2>/dev/null || echo 0)"
	sandbox_gone calm
}

@test "E-25, E-26: frames of every size and offloads that lie, written to a TAP, are counted, and nothing leaves" {
	local taken
	postern attach bad --tap --mac 06:00:ac:10:00:02 --policy "$LAB/tmp/l2.yaml" >/dev/null
	mark
	read -r taken _ < <(inside bad "$LAB_DIR/frames.py" tap0 20000)
	((taken > 8000)) || fail "only $taken frames were taken"
	equal "another sandbox" "lab web server for news.lab-site.org" "$(guest flood curl -sS https://news.lab-site.org/)"
	wait_for 30 adds_up bad || fail "$(cat "$LAB/tmp/sums")"
	far_none " (172\.16\.|fd70:)"
	far_none "> $NET4\.$ECHO "
	postern detach bad
}

# The last: a restart begins the kernel's counters anew.
@test "E-32: a sandbox without IPv6 has none, not even by accident" {
	local before eui
	sandbox four --guest-ip6 none --policy "$LAB/tmp/l2.yaml" >/dev/null
	equal "in the API" none "$(postern show four -o json | jq -r .guest_ip6)"
	equal "setting" 1 "$(inside four sysctl -n net.ipv6.conf.veth0.disable_ipv6)"
	equal "addresses" "" "$(inside four ip -6 -o addr show dev veth0)"
	equal "IPv4" "lab web server for news.lab-site.org" "$(guest four curl -sS https://news.lab-site.org/)"
	guest_fails four curl -sS -6 https://news.lab-site.org/
	# A guest that helps itself to addresses and a route.
	eui=$(nsenter --net=/run/netns/pl-guest-four ip -6 -o addr show dev eth0 scope link | awk '{sub(/\/.*/, "", $4); print $4}')
	ip -n pl-guest-four -6 addr add $GUEST6/64 dev eth0 nodad
	ip -n pl-guest-four -6 neigh replace fe80::1 lladdr 06:01:ac:10:00:01 dev eth0
	ip -n pl-guest-four -6 neigh replace $GATEWAY6 lladdr 06:01:ac:10:00:01 dev eth0
	ip -n pl-guest-four -6 route add default via fe80::1 dev eth0
	before=$(counted four spoofed)
	equal "answers" "" "$(raw four "{tcp|udp} src={$eui|$GUEST6} dst={fe80::1|$GATEWAY6|$NET6:$WEB} dport={22|53|443|15001}" \
		"icmp dst={fe80::1|$GATEWAY6}" "ns dst=$GATEWAY6 target=$GATEWAY6" | grep -v '^sent' || true)"
	# The guest's kernel may say something of its own.
	((before + 51 <= $(counted four spoofed))) || fail "of 51 frames $(($(counted four spoofed) - before)) were counted"
	dials four --timeout 1 tcp fe80::1%eth0 $GATEWAY6 "$NET6:$WEB" 22 53 443 15001 >"$LAB/tmp/dials"
	equal "connections" 0 "$(grep -c '^connected' "$LAB/tmp/dials")"
	far_none "> $NET6:($WEB|$OTHER) "
	far_none " (172\.16\.|fd70:)"
	log_has four '.reason == "spoofed_source" and .src == "fd70:6f73:7465:726e::2" and .dst == "2600:1:2::10" and .dport == 443'
	# It stays so when the daemon starts again.
	posternd_stop
	posternd_start
	equal "in the API" none "$(postern show four -o json | jq -r .guest_ip6)"
	equal "setting" 1 "$(inside four sysctl -n net.ipv6.conf.veth0.disable_ipv6)"
	equal "IPv4" "lab web server for news.lab-site.org" "$(guest four curl -sS -4 https://news.lab-site.org/)"
	sandbox_gone four
}
