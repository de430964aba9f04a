#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What a sandbox may ask: the decision falls before any packet to a resolver, on every transport and at every address.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/dns

setup_file() {
	lab_up
	posternd_start
	sandbox dns --policy "$(policy dns 'host: news.lab-site.org' 'host: "*.lab-a.com"' 'host: "*.icloud.com"')"
}

setup() {
	mark
}

@test "C-01, C-36: thousands of denied names of every kind reach no resolver, and none gets an address" {
	sandbox denied --policy "$(policy denied 'host: news.lab-site.org')"
	run -0 stub denied denied 6000 news.lab-site.org
	equal "answers" '{"rcodes":{"NXDOMAIN":6000},"answers":0}' "$(jq -c 'del(.again)' <<<"$output")"
	resolver_idle
	far_none "> .* 53 "
	dns_recorded denied 6000 '.verdict == "denied" and (.reason == "no_rule" or .reason == "never_name" or .reason == "dns_denied")'
	equal "other records" 0 "$(dns_records denied '.verdict != "denied"')"
	sandbox_gone denied
}

@test "C-36: a denied name gets a name error for every type, never an address" {
	local words=() kind
	for kind in A AAAA CNAME NS PTR TXT MX SRV HTTPS SVCB ANY NULL NAPTR CAA HINFO DNSKEY; do
		words+=("www.lab-b.net/$kind")
	done
	for server in "$GATEWAY4" "$GATEWAY6"; do
		run -0 stub dns --server "$server" --edns 1232 udp "${words[@]}"
		replies 16 '.rcode == "NXDOMAIN" and .answers == [] and .additional == [] and .edns.ede == 15
			and (.authority | length == 1 and .[0][1] == "SOA" and .[0][2] == 5)'
	done
	resolver_idle
	dns_recorded dns 32 '.qname == "www.lab-b.net" and .rcode == "NXDOMAIN" and .reason == "no_rule"'
}

@test "C-02, C-05: every resolver, private, public, metadata or ours, is answered by us from the address that was asked" {
	local server words=() servers=("$GATEWAY4" "$GATEWAY6" "${FOREIGN_RESOLVERS[@]}" "$NET4.$SILENT" "$NET6:$OTHER" 10.0.0.5
		192.168.1.1 169.254.169.254 100.100.100.200 fd00:ec2::254 "$HOST4" "$HOST6")
	sandbox others --policy "$(policy others 'host: news.lab-site.org')"
	mark
	for transport in udp tcp; do
		run -0 stub others --server "$(IFS=, && echo "${servers[*]}")" --half-close $transport news.lab-site.org www.lab-b.net
		replies $((2 * ${#servers[@]})) '.end or .from == .asked'
		for server in "${servers[@]}"; do
			equal "replies of $server over $transport" "NOERROR 45.45.45.10, NXDOMAIN " "$(jq -r -s --arg server "$server" '
				map(select(.from == $server)) | map("\(.rcode) \(.answers[0][3] // "")") | sort | join(", ")' <<<"$output")"
		done
	done
	for server in "${servers[@]}"; do
		dns_recorded others 2 ".dst == \"$server\" and .verdict == \"allowed\" and .qname == \"news.lab-site.org\""
		dns_recorded others 2 ".dst == \"$server\" and .verdict == \"denied\" and .qname == \"www.lab-b.net\""
	done
	dns_not_asked www.lab-b.net
	words=("${servers[@]//./\\.}")
	far_none "> ($(IFS='|' && echo "${words[*]}")) 53 "
	far_no_trap
	sandbox_gone others
}

@test "C-05: dig, kdig, host, getent, nslookup and Python resolve, whatever resolver they were set to" {
	for server in "$GATEWAY4" "$GATEWAY6" 8.8.8.8 2606:4700:4700::1111 192.168.1.1; do
		run -0 guest dns dig +short "@$server" news.lab-site.org
		equal "dig @$server" 45.45.45.10 "$output"
		run -0 guest dns kdig +short +tcp "@$server" AAAA news.lab-site.org
		equal "kdig @$server" 2600:1:2::10 "$output"
		echo "nameserver $server" >"$LAB/guest/dns/resolv.conf"
		run -0 guest dns getent ahosts news.lab-site.org
		matches "getent of $server" '45.45.45.10 *STREAM' "$output"
		matches "getent of $server" '2600:1:2::10 *STREAM' "$output"
	done
	run -0 guest dns host news.lab-site.org 8.8.8.8
	matches "host" 'has address 45.45.45.10' "$output"
	matches "host" 'has IPv6 address 2600:1:2::10' "$output"
	run -0 guest dns busybox nslookup news.lab-site.org 1.1.1.1
	matches "nslookup" '45.45.45.10' "$output"
	run -0 guest dns python3 -c 'import socket; print(socket.gethostbyname("news.lab-site.org"))'
	equal "python" 45.45.45.10 "$output"
	run -2 guest dns getent hosts www.lab-b.net
	run -1 guest dns host www.lab-b.net 8.8.8.8
	dns_not_asked www.lab-b.net
	echo "nameserver $GATEWAY4" >"$LAB/guest/dns/resolv.conf"
}

@test "C-05: a forwarder in the guest works, a resolver that asks the root servers itself gets nothing" {
	local conf=$LAB/tmp/guest-unbound.conf forwarder resolver
	nsenter --net=/run/netns/pl-guest-dns -- dnsmasq -k -C /dev/null -u root --pid-file= --listen-address=127.0.0.2 \
		--bind-interfaces --no-resolv --no-hosts --server=1.1.1.1 >"$LAB/tmp/dnsmasq.log" 2>&1 </dev/null 3>&- 4>&- &
	forwarder=$!
	cat >"$conf" <<-CONF
		server:
			interface: 127.0.0.3
			username: ""
			chroot: ""
			directory: "$LAB/tmp"
			pidfile: "$LAB/tmp/guest-unbound.pid"
			use-syslog: no
			do-daemonize: no
			module-config: "iterator"
		remote-control:
			control-enable: no
	CONF
	nsenter --net=/run/netns/pl-guest-dns -- "$LAB/bin/lab-unbound" -d -c "$conf" >"$LAB/tmp/guest-unbound.log" 2>&1 \
		</dev/null 3>&- 4>&- &
	resolver=$!
	mark
	wait_for 10 guest dns dig +tries=1 +time=1 @127.0.0.2 news.lab-site.org
	run -0 guest dns dig +short @127.0.0.2 www.lab-a.com
	equal "through the forwarder" 45.45.45.11 "$output"
	run -0 guest dns dig @127.0.0.2 www.lab-b.net
	matches "through the forwarder" 'status: NXDOMAIN' "$output"
	mark
	wait_for 10 guest dns dig +tries=1 +time=1 @127.0.0.3 localhost
	run -0 guest dns dig @127.0.0.3 www.lab-b.net
	matches "by the resolver" 'status: (SERVFAIL|NXDOMAIN|REFUSED)' "$output"
	kill $forwarder $resolver
	wait $forwarder $resolver || true
	dns_not_asked www.lab-b.net
	far_none "> 198\.41\.0\.4 "
	log_has dns '.kind == "dns" and .qtype == "NS" and .reason == "dns_denied" and .rcode == "REFUSED"
		and .detail == "the name is empty"'
	run -0 postern log dns
	matches "the root in the log" ' dns +\. NS -> REFUSED' "$output"
}

# bats test_tags=smoke
@test "C-03: of two questions in one write, each is decided for itself" {
	run -0 stub dns --half-close --one-write tcp news.lab-site.org www.lab-b.net smuggled.lab-b.net/TXT www.lab-a.com
	replies 4 'true'
	jq -e -s 'map(select(.rcode)) | map({key: .question, value: .rcode}) | from_entries == {"news.lab-site.org": "NOERROR",
		"www.lab-a.com": "NOERROR", "www.lab-b.net": "NXDOMAIN", "smuggled.lab-b.net": "NXDOMAIN"}' <<<"$output" >/dev/null ||
		fail "$output"
	# A second message within the first one's length, and one behind a UDP question.
	run -0 stub dns --half-close tcp "hex:0044 0001 0100 0001 0000 0000 0000 QNAME(news.lab-site.org) 0001 0001
		001f 0002 0100 0001 0000 0000 0000 QNAME(www.lab-b.net) 0001 0001"
	replies 1 '.rcode == "FORMERR" and .answers == []'
	run -0 stub dns udp "hex:0001 0100 0001 0000 0000 0000 QNAME(news.lab-site.org) 0001 0001 0002 0100 0001 0000 0000 0000
		QNAME(www.lab-b.net) 0001 0001"
	replies 1 '.rcode == "FORMERR" and .answers == []'
	equal "questions upstream" "news.lab-site.org www.lab-a.com" \
		"$(since_mark fdns.log | jq -r '.qname // "unread" | ascii_downcase' | sort | xargs)"
	log_has dns '.kind == "dns" and .proto == "tcp" and .qname == "smuggled.lab-b.net" and .qtype == "TXT"
		and .reason == "no_rule"'
	log_has dns '.kind == "dns" and .proto == "tcp" and .rcode == "FORMERR" and .reason == "dns_denied"'
}

@test "C-06: encrypted and odd-port DNS is refused at once and recorded" {
	local proto address port reason
	while read -r proto address port; do
		reason=not_leased
		[[ $proto == tcp ]] || reason=udp_denied
		guest_fails dns /usr/bin/python3 "$LAB_DIR/client.py" $proto "$address" $port x
		log_has dns ".kind == \"deny\" and .proto == \"$proto\" and .dst == \"$address\" and .dport == $port
			and .reason == \"$reason\""
	done <<-'TABLE'
		tcp 8.8.8.8 853
		tcp 2606:4700:4700::1111 853
		tcp 8.8.8.8 8853
		udp 8.8.8.8 853
		udp 2606:4700:4700::1111 853
		udp 8.8.8.8 784
		udp 8.8.8.8 5353
	TABLE
	run guest dns kdig +tls +timeout=2 +retry=0 @1.1.1.1 news.lab-site.org
	[[ $status -ne 0 ]]
	far_none "> (8\.8\.8\.8|1\.1\.1\.1|2606:4700:4700::1111) "
}

@test "C-07: an address that an allowed site tells is not reachable" {
	mkdir -p "$LAB/web/html"
	echo '{"Status":0,"Answer":[{"name":"lab-b.net","type":1,"data":"45.45.45.20"}]}' >"$LAB/web/html/dns-query.json"
	local address
	address=$(guest dns curl -sS https://www.lab-a.com/dns-query.json | jq -r '.Answer[0].data')
	equal "answer of the other resolver" 45.45.45.20 "$address"
	for name in lab-b.net www.lab-a.com; do
		guest_fails dns curl -sSk --resolve "$name:443:$address" "https://$name/"
		guest_fails dns curl -sSk --resolve "$name:80:$address" "http://$name/"
	done
	far_none "> 45\.45\.45\.20 "
	log_has dns '.kind == "deny" and .dst == "45.45.45.20" and .dport == 443 and .reason == "not_leased"'
	log_has dns '.kind == "deny" and .dst == "45.45.45.20" and .dport == 80 and .reason == "not_leased"'
}

@test "C-20: of all 65,536 types, upstream sees five" {
	local first file
	file=$(policy types 'host: news.lab-site.org')
	# Eight sandboxes, because of the rate that one may ask at.
	for first in {0..57344..8192}; do
		sandbox types$first --policy "$file"
		stub types$first --edns 1232 --window 100 types news.lab-site.org $first $((first + 8191)) >>"$LAB/tmp/types"
	done
	equal "replies" '{"NOERROR":65534,"REFUSED":2} {"A:A":1,"AAAA:AAAA":1,"ANY:HINFO":1}' "$(jq -c -s '
		def sum: map(to_entries[]) | group_by(.key) | map({key: .[0].key, value: (map(.value) | add)}) | from_entries;
		(map(.rcodes) | sum), (map(.answered) | sum)' "$LAB/tmp/types" | xargs -d '\n')"
	equal "types upstream" "A AAAA CNAME HTTPS SVCB" "$(since_mark fdns.log | jq -r .qtype | sort -u | xargs)"
	dns_recorded types0 8187 '.reason == "dns_type" and .verdict == "denied"'
	dns_recorded types0 5 '.verdict == "allowed"'
	for first in {8192..57344..8192}; do
		dns_recorded types$first 8192 '.reason == "dns_type" and .verdict == "denied"'
		sandbox_gone types$first
	done
	sandbox_gone types0
}

@test "C-20: types that are channels get nothing for an allowed name, and say so" {
	run -0 stub dns --edns 1232 udp text.lab-a.com/TXT mail.lab-a.com/MX text.lab-a.com/NULL www.lab-a.com/SRV www.lab-a.com/PTR \
		www.lab-a.com/RRSIG www.lab-a.com/TYPE65280
	replies 7 '.rcode == "NOERROR" and .answers == [] and .edns.ede == 21'
	run -0 stub dns --edns 1232 --half-close tcp www.lab-a.com/AXFR www.lab-a.com/IXFR
	replies 2 '.rcode == "REFUSED" and .answers == []'
	run -0 stub dns udp www.lab-a.com/ANY
	replies 1 '.rcode == "NOERROR" and (.answers | length) == 1 and .answers[0][1] == "HINFO"
		and .answers[0][3] == "hex:075246433834383200"'
	run -0 stub dns udp 10.45.45.45.in-addr.arpa/PTR 1.0.0.127.in-addr.arpa/PTR 1.0.0.2.ip6.arpa/PTR
	replies 3 '.rcode == "NXDOMAIN" and .answers == []'
	resolver_idle
	log_has dns '.qname == "text.lab-a.com" and .qtype == "TXT" and .reason == "dns_type" and .verdict == "denied"'
	log_has dns '.qname == "www.lab-a.com" and .qtype == "AXFR" and .reason == "dns_type" and .rcode == "REFUSED"'
}

# bats test_tags=smoke
@test "C-22: messages that are no plain question are answered with their error and go nowhere" {
	local rcode flags counts rest words=() wanted=() question='QNAME(news.lab-site.org) 0001 0001'
	while read -r rcode flags counts rest; do
		words+=("hex:4242 $flags ${counts//,/ } ${rest//QUESTION/$question}")
		wanted+=("$rcode")
	done <<-'TABLE'
		FORMERR 0100 0000,0000,0000,0000
		FORMERR 0100 0000,0000,0000,0000 QUESTION
		FORMERR 0100 0002,0000,0000,0000 QUESTION QUESTION
		FORMERR 0100 ffff,0000,0000,0000 QUESTION
		FORMERR 0100 0001,0001,0000,0000 QUESTION c00c 0001 0001 0000003c 0004 01020304
		FORMERR 0100 0001,0000,0001,0000 QUESTION c00c 0001 0001 0000003c 0004 01020304
		FORMERR 0100 0001,0000,0000,0001 QUESTION c00c 0001 0001 0000003c 0004 01020304
		FORMERR 0100 0001,0000,0000,0000 QUESTION 00
		FORMERR 0100 0001,0000,0000,0000 046e657773
		FORMERR 0100 0001,0000,0000,0001 QUESTION
		NOTIMP 0900 0001,0000,0000,0000 QUESTION
		NOTIMP 1100 0001,0000,0000,0000 QUESTION
		NOTIMP 2100 0001,0000,0000,0000 QUESTION
		NOTIMP 2900 0001,0000,0000,0000 QUESTION
		NOTIMP 3000 0000,0000,0000,0000 0001 0004 00000000
		NOTIMP 7900 0001,0000,0000,0000 QUESTION
		REFUSED 0100 0001,0000,0000,0000 QNAME(news.lab-site.org) 0001 0003
		REFUSED 0100 0001,0000,0000,0000 QNAME(news.lab-site.org) 0001 0004
		REFUSED 0100 0001,0000,0000,0000 QNAME(news.lab-site.org) 0001 00fe
		REFUSED 0100 0001,0000,0000,0000 QNAME(news.lab-site.org) 0001 00ff
		REFUSED 0100 0001,0000,0000,0000 QNAME(news.lab-site.org) 0001 0000
		REFUSED 0100 0001,0000,0000,0000 QNAME() 0001 0001
		REFUSED 0100 0001,0000,0000,0000 QNAME() 0002 0001
		silence 8180 0001,0000,0000,0000 QUESTION
		silence 8180 0001,0001,0000,0000 QUESTION c00c 0001 0001 0000003c 0004 01020304
	TABLE
	# Less than a header.
	words+=(hex:42 hex:4242010000010000000000)
	wanted+=(silence silence)
	run -0 stub dns --timeout 1 udp "${words[@]}"
	equal "replies" "${wanted[*]}" "$(jq -r 'if .end then "silence" else .rcode end' <<<"$output" | xargs)"
	jq -e -s 'all(.[]; .end or .id == 16962 and .answers == [])' <<<"$output" >/dev/null || fail "$output"
	resolver_idle
	# The guest's server works on.
	run -0 stub dns udp news.lab-site.org
	replies 1 '.rcode == "NOERROR"'
	log_has dns '.kind == "dns" and .rcode == "NOTIMP" and .reason == "dns_denied"'
	log_has dns '.kind == "dns" and .rcode == "FORMERR" and .reason == "dns_denied"'
	log_has dns '.kind == "dns" and .rcode == "REFUSED" and .reason == "dns_denied" and .qname == "news.lab-site.org"'
}

@test "B-13: the longest labels and names are asked for, longer ones are an error, and no other name reaches a policy" {
	local l63 ones name n words
	l63=$(printf 'a%.0s' {1..63})
	# 64 + 64 + 64 + 52 + 11 bytes are 255, the wire limit; text of 253.
	name=$l63.$l63.$l63.$(printf 'c%.0s' {1..51}).lab-a.com
	equal "length" 253 ${#name}
	ones=$(printf 'x.%.0s' {1..122})lab-a.com
	equal "length" 253 ${#ones}
	fdns _.lab-a.com '{"answers":[["A",60,"45.45.45.11"]]}'
	run -0 stub dns udp "$l63.lab-a.com" "$name" "$ones"
	replies 3 '.rcode == "NOERROR" and .answers[0][3] == "45.45.45.11"'
	dns_asked "$name"
	dns_asked "$ones"
	fdns _.lab-a.com
	mark
	run -0 stub dns --timeout 2 udp "hex:0001 0100 0001 0000 0000 0000 40${l63//a/61}61 056c61622d6103636f6d00 0001 0001" \
		"$l63.$l63.$l63.$(printf 'c%.0s' {1..52}).lab-a.com" "x.$ones" "$l63.$l63.$l63.$l63.lab-a.com"
	replies 4 '.rcode == "FORMERR" and .answers == []'
	# Bytes that no host name has: dots and NUL within a label, spaces, controls, the top bit.
	words=()
	for n in '09 6c61622d612e636f6d 00' '05 7777770061 056c61622d61 03636f6d 00' '03 772077 056c61622d61 03636f6d 00' \
		'03 77ff77 056c61622d61 03636f6d 00' '03 770a77 056c61622d61 03636f6d 00'; do
		words+=("hex:0001 0100 0001 0000 0000 0000 $n 0001 0001")
	done
	run -0 stub dns udp "${words[@]}"
	replies 5 '.rcode == "NXDOMAIN" and .answers == []'
	resolver_idle
	log_has dns '.kind == "dns" and .reason == "dns_denied" and .rcode == "FORMERR"'
	log_has dns '.kind == "dns" and .reason == "dns_denied" and .rcode == "NXDOMAIN"'
}

# bats test_tags=smoke
@test "B-14: no pointer is followed in a question" {
	local name
	local words=() framed=()
	for name in c00c c000 c002 'c010 00' 'c0ff' '03777777 c00c' '03777777 056c61622d61 03636f6d c00c' \
		'03777777 c012 056c61622d61 03636f6d 00' '40 777777 00' '80 777777 00' '41 04 00' 'bf'; do
		name="0001 0100 0001 0000 0000 0000 $name 0001 0001"
		words+=("hex:$name")
		framed+=("hex:$(printf %04x $(($(tr -d ' \n' <<<"$name" | wc -c) / 2))) $name")
	done
	run -0 stub dns --timeout 2 udp "${words[@]}"
	replies ${#words[@]} '.rcode == "FORMERR" and .answers == []'
	run -0 stub dns --half-close tcp "${framed[@]}"
	replies ${#words[@]} '.end or .rcode == "FORMERR" and .answers == []'
	ended fin
	resolver_idle
}

@test "C-17: nothing of the guest's EDNS goes upstream" {
	local secret long option
	secret=$(printf 'a guest secret' | od -An -v -tx1 | tr -d ' \n')
	long=$(printf "$secret%.0s" {1..70})
	for option in "65001:$long" "8:0001180001020300" "10:$secret" "3:" "12:$long" "15:$secret" "26946:$secret"; do
		run -0 stub dns --edns 4096 --option "$option" udp news.lab-site.org
		replies 1 '.rcode == "NOERROR" and .answers[0][3] == "45.45.45.10" and .edns.options == [] and .edns.size == 1232'
		run -0 stub dns --edns 512 --option "$option" --half-close tcp news.lab-site.org/AAAA
		replies 1 '.rcode == "NOERROR" and .answers[0][3] == "2600:1:2::10"'
	done
	# More padding than fits a packet: it comes in fragments.
	run -0 stub dns --edns 1232 --option "12:$(printf '%04000d' 0)" udp news.lab-site.org
	replies 1 '.rcode == "NOERROR" and .answers[0][3] == "45.45.45.10"'
	# CD, AD, Z and the DO bit are not ours to pass on either.
	run -0 stub dns --flags 0170 udp news.lab-site.org
	replies 1 '.rcode == "NOERROR" and (.flags | sort) == ["qr", "ra", "rd"]'
	equal "questions upstream" 16 "$(since_mark fdns.log | wc -l)"
	# Each is: our id, RD alone, one question, one OPT record of ours without options.
	equal "questions that are not ours to the last byte" "" "$(since_mark fdns.log | jq -r .raw | grep -vE \
		'^.{4}0100000100000000000104.{8}08.{16}03.{6}00(0001|001c)000100002904d0000000000000$' | head -n 3 || true)"
	if since_mark fdns.log | grep -qi "$secret"; then
		fail "the secret reached the resolver" || return 1
	fi
}

@test "C-17: another EDNS version is BADVERS, two OPT records are an error" {
	local opt='00 0029 04d0 00000000 0000'
	run -0 stub dns udp "hex:0001 0100 0001 0000 0000 0001 QNAME(news.lab-site.org) 0001 0001 00 0029 04d0 00010000 0000"
	replies 1 '.rcode == "BADVERS" and .answers == [] and .edns.version == 0'
	run -0 stub dns udp "hex:0001 0100 0001 0000 0000 0002 QNAME(news.lab-site.org) 0001 0001 $opt $opt" \
		"hex:0001 0100 0001 0000 0000 0001 QNAME(news.lab-site.org) 0001 0001 00 0029 04d0 00000000 0005 fde9 0002 00" \
		"hex:0001 0100 0001 0000 0000 0001 QNAME(news.lab-site.org) 0001 0001 0161 00 0029 04d0 00000000 0000" \
		"hex:0001 0100 0001 0000 0001 0000 QNAME(news.lab-site.org) 0001 0001 $opt"
	replies 4 '.rcode == "FORMERR" and .answers == []'
	resolver_idle
	# A size below 512 means 512.
	run -0 stub dns --edns 1 udp news.lab-site.org
	replies 1 '.rcode == "NOERROR" and .answers[0][3] == "45.45.45.10"'
}

@test "C-29: what leads clients to encrypted DNS is answered with no, even below an allowed wildcard" {
	run -0 stub dns udp use-application-dns.net use-application-dns.net/AAAA mask.icloud.com mask-h2.icloud.com mask.icloud.com/AAAA
	replies 5 '.rcode == "NXDOMAIN" and .answers == []'
	run -0 stub dns udp _dns.resolver.arpa/SVCB resolver.arpa/SVCB _dns.resolver.arpa/A
	replies 3 '.rcode == "NOERROR" and .answers == []'
	run -0 stub dns udp wpad.lab-a.com isatap.lab-a.com metadata.google.internal printer.local _http._tcp.local/PTR
	replies 5 '.rcode == "NXDOMAIN" and .answers == []'
	resolver_idle
	log_has dns '.qname == "use-application-dns.net" and .reason == "never_name"'
	log_has dns '.qname == "mask.icloud.com" and .reason == "never_name"'
	log_has dns '.qname == "_dns.resolver.arpa" and .reason == "never_name" and .rcode == "NOERROR"'
}

@test "C-30: a refusal does not end the walk through a search list" {
	printf '%s\n' "nameserver $GATEWAY4" "search corp.lab-b.net svc.cluster.local lab-site.org" "options ndots:5" \
		>"$LAB/guest/dns/resolv.conf"
	run -0 guest dns getent ahostsv4 news
	matches "short name" '^45.45.45.10 ' "$output"
	run -0 guest dns getent ahosts news.lab-site.org
	matches "long name" '^45.45.45.10 ' "$output"
	matches "long name" '^2600:1:2::10 ' "$output"
	run -0 guest dns curl -sS https://news.lab-site.org/
	equal "page" "lab web server for news.lab-site.org" "$output"
	run -2 guest dns getent ahosts nothing.lab-b.net
	equal "names upstream" news.lab-site.org "$(since_mark fdns.log | jq -r '.qname | ascii_downcase' | sort -u)"
	log_has dns '.qname == "news.corp.lab-b.net" and .reason == "no_rule" and .rcode == "NXDOMAIN"'
	log_has dns '.qname == "news.lab-site.org.svc.cluster.local" and .reason == "never_name"'
	echo "nameserver $GATEWAY4" >"$LAB/guest/dns/resolv.conf"
}
