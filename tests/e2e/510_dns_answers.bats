#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What becomes of an answer: what the guest gets of it, what the kernel's lease sets get, and when.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/dns

# Addresses without end for the rotating answers, and a server that takes connections on all of them.
ROTATING4=45.46.0.0 ROTATING6=2600:1:46::

setup_file() {
	lab_up
	posternd_start
	internet ip route add local $ROTATING4/16 dev lo
	internet ip -6 route add local $ROTATING6/48 dev lo
	# Not by "internet": a shell that stays behind would hold the descriptors that bats waits for.
	nsenter --net=/run/netns/pl-internet -- /usr/bin/python3 -c '
import socket
listener = socket.create_server(("::", 9100), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
while True:
	listener.accept()[0].close()
' >/dev/null 2>&1 </dev/null 3>&- 4>&- &
	disown
	sandbox dns --policy "$(answers_policy dns)"
}

answers_policy() {
	policy "$1" 'host: "*.lab-a.com"' '{host: race.lab-a.com, ports: [9100]}' 'host: news.lab-site.org' \
		'host: www.lab-cname.com'
}

setup() {
	mark
}

# A fresh sandbox, whose lease sets are empty: fresh NAME
fresh() {
	sandbox "$1" --policy "$(answers_policy "$1")" >/dev/null
}

# A script with a chain of COUNT links from NAME to an address: chain NAME COUNT ADDRESS
chain() {
	fdns "$1" "$(jq -nc --arg name "$1" --argjson count "$2" --arg address "$3" '
		def link($n): if $n == 0 then $name else "link\($n).\($name)" end;
		{answers: [(range($count) | [link(.), "CNAME", 60, link(. + 1)]), [link($count), "A", 60, $address]]}')"
}

# bats test_tags=smoke
@test "C-08: a name that answers with public and private addresses in turn opens no private one" {
	fresh rebind
	fdns rebind.lab-a.com "$(jq -nc '{cycle: (["45.45.45.11", "10.0.0.5", "45.45.45.12", "127.0.0.1", "169.254.169.254",
		"5.161.10.2", "192.168.1.1", "100.64.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1"]
		| map({answers: [["A", 0, .]]}))}')"
	fdns rebind6.lab-a.com "$(jq -nc '{cycle: (["2600:1:2::11", "::1", "fd00:ec2::254", "::ffff:10.0.0.5", "64:ff9b::a00:5",
		"2600:1:ff::2", "fe80::1", "::", "2002:a00:5::1", "ff02::1"] | map({answers: [["AAAA", 0, .]]}))}')"
	# shellcheck disable=SC2046
	run -0 stub rebind udp $(yes rebind.lab-a.com/A | head -n 220) $(yes rebind6.lab-a.com/AAAA | head -n 200)
	replies 420 '(.answers == [] and .rcode == "NXDOMAIN")
		or (.answers | length == 1 and (.[0][3] | IN("45.45.45.11", "45.45.45.12", "2600:1:2::11")))'
	equal "answers with an address" 60 "$(jq -c 'select(.answers != [])' <<<"$output" | wc -l)"
	equal "leases" "45.45.45.11 45.45.45.12" "$(leased rebind 4 | xargs)"
	equal "leases, IPv6" "2600:1:2::11" "$(leased rebind 6 | xargs)"
	dns_recorded rebind 360 '.reason == "dns_rebind" and .verdict == "denied" and .rcode == "NXDOMAIN"'
	log_has rebind '.reason == "dns_rebind" and (.detail | startswith("100.64.0.1: "))'
	log_has rebind '.reason == "dns_rebind" and (.detail | startswith("2600:1:ff::2: "))'
	# One bad address among good ones refuses them all, wherever it stands.
	fdns mixed.lab-a.com '{"answers":[["A",60,"45.45.45.20"],["A",60,"45.45.45.10"],["A",60,"10.0.0.5"]]}'
	run -0 stub rebind udp mixed.lab-a.com
	replies 1 '.rcode == "NXDOMAIN" and .answers == []'
	equal "leases" "45.45.45.11 45.45.45.12" "$(leased rebind 4 | xargs)"
	guest_fails rebind curl -sS http://mixed.lab-a.com/
	far_no_trap
	sandbox_gone rebind
}

@test "C-09: a chain of names leads to its end, up to 16 links, in one message or in many" {
	fresh chain
	chain chain1.lab-a.com 1 45.45.45.11
	chain chain16.lab-a.com 16 45.45.45.12
	chain chain17.lab-a.com 17 45.45.45.20
	run -0 stub chain udp chain1.lab-a.com chain16.lab-a.com chain17.lab-a.com
	replies 3 'true'
	reply 1 '[.answers[][1]] == ["CNAME", "A"] and .answers[1] == ["link1.chain1.lab-a.com", "A", 60, "45.45.45.11"]'
	reply 2 '(.answers | length) == 17 and .answers[16] == ["link16.chain16.lab-a.com", "A", 60, "45.45.45.12"]'
	reply 3 '.rcode == "SERVFAIL" and .answers == []'
	equal "leases" "45.45.45.11 45.45.45.12" "$(leased chain 4 | xargs)"
	run -0 guest chain curl -sS https://chain16.lab-a.com/
	equal "page" "lab web server for chain16.lab-a.com" "$output"
	log_has chain '.qname == "chain16.lab-a.com" and .qtype == "A" and (.answers | length) == 17
		and .answers[15] == "CNAME link16.chain16.lab-a.com" and .answers[16] == "A 45.45.45.12"'
	log_has chain '.qname == "chain17.lab-a.com" and .reason == "upstream_error" and (.detail | contains("too long"))'

	# A resolver that gives one link at a time: each further name is asked for.
	local n
	for n in {0..16}; do
		fdns "$([[ $n == 0 ]] || echo "link$n.")steps.lab-a.com" "{\"answers\":[[\"CNAME\",60,\"link$((n + 1)).steps.lab-a.com\"]]}"
	done
	fdns link16.steps.lab-a.com '{"answers":[["A",60,"45.45.45.10"]]}'
	run -0 stub chain udp steps.lab-a.com
	replies 1 '(.answers | length) == 17 and .answers[16] == ["link16.steps.lab-a.com", "A", 60, "45.45.45.10"]'
	dns_asked link16.steps.lab-a.com
	fdns link16.steps.lab-a.com '{"answers":[["CNAME",60,"link17.steps.lab-a.com"]]}'
	fdns link17.steps.lab-a.com '{"answers":[["A",60,"45.45.45.20"]]}'
	run -0 stub chain udp steps.lab-a.com
	replies 1 '.rcode == "SERVFAIL" and .answers == []'
	dns_not_asked link17.steps.lab-a.com
	equal "leases" "45.45.45.10 45.45.45.11 45.45.45.12" "$(leased chain 4 | xargs)"
	sandbox_gone chain
}

@test "C-09: a chain to a private address or a metadata name is refused; to another's name it carries the name asked for" {
	fresh chain2
	chain private.lab-a.com 3 10.0.0.5
	fdns meta.lab-a.com '{"answers":[["CNAME",60,"metadata.google.internal"]]}'
	fdns meta2.lab-a.com '{"answers":[["CNAME",60,"www.lab-b.net"],["www.lab-b.net","CNAME",60,"kubernetes.default.svc"],
		["kubernetes.default.svc","A",60,"45.45.45.20"]]}'
	run -0 stub chain2 udp private.lab-a.com meta.lab-a.com meta2.lab-a.com
	replies 3 '.rcode == "NXDOMAIN" and .answers == []'
	dns_not_asked metadata.google.internal
	equal "leases" "" "$(leased chain2 4)"
	log_has chain2 '.qname == "private.lab-a.com" and .reason == "dns_rebind" and (.answers | length) == 3'
	log_has chain2 '.qname == "meta.lab-a.com" and .reason == "dns_rebind" and .answers == ["CNAME metadata.google.internal"]'
	log_has chain2 '.qname == "meta2.lab-a.com" and .reason == "dns_rebind"'

	fdns other.lab-a.com '{"answers":[["CNAME",60,"www.lab-b.net"],["www.lab-b.net","A",60,"45.45.45.20"]]}'
	run -0 guest chain2 curl -sS -4 https://other.lab-a.com/ -o /dev/null -w '%{http_code} %{remote_ip}'
	equal "the name asked for" "200 45.45.45.20" "$output"
	mark
	guest_fails chain2 curl -sSk --resolve www.lab-b.net:443:45.45.45.20 https://www.lab-b.net/
	far_none "> 45\.45\.45\.20 443 .*P"
	log_has chain2 '.kind == "deny" and .name == "www.lab-b.net" and .name_source == "claim" and .reason == "no_rule"'
	far_no_trap
	sandbox_gone chain2
}

@test "C-09: chains that loop, fork or run backwards" {
	fresh chain3
	fdns loop.lab-a.com '{"answers":[["CNAME",60,"loop2.lab-a.com"],["loop2.lab-a.com","CNAME",60,"loop.lab-a.com"],
		["loop.lab-a.com","A",60,"45.45.45.20"]]}'
	fdns self.lab-a.com '{"answers":[["CNAME",60,"self.lab-a.com"],["A",60,"45.45.45.20"]]}'
	fdns fork.lab-a.com '{"answers":[["CNAME",60,"x.lab-a.com"],["CNAME",60,"y.lab-a.com"],["x.lab-a.com","A",60,"45.45.45.20"],
		["y.lab-a.com","A",60,"45.45.45.20"]]}'
	run -0 stub chain3 udp loop.lab-a.com self.lab-a.com fork.lab-a.com
	replies 3 '.rcode == "SERVFAIL" and .answers == []'
	equal "leases" "" "$(leased chain3 4)"
	log_has chain3 '.qname == "loop.lab-a.com" and .reason == "upstream_error" and (.detail | contains("loops"))'
	# The order of records means nothing; a DNAME is followed by its CNAME.
	fdns back.lab-a.com '{"answers":[["z.lab-a.com","A",60,"45.45.45.11"],["y.lab-a.com","CNAME",60,"z.lab-a.com"],
		["CNAME",60,"y.lab-a.com"]]}'
	fdns a.dname.lab-a.com '{"answers":[["dname.lab-a.com","DNAME",60,"hex:036e6577056c61622d6103636f6d00"],
		["CNAME",60,"a.new.lab-a.com"],["a.new.lab-a.com","A",60,"45.45.45.12"]]}'
	run -0 stub chain3 udp back.lab-a.com a.dname.lab-a.com
	reply 1 '[.answers[][3]] == ["y.lab-a.com", "z.lab-a.com", "45.45.45.11"]'
	reply 2 '[.answers[][1]] == ["CNAME", "A"] and .answers[1][3] == "45.45.45.12"'
	# CNAME asked for by itself: one link, and no lease for anything.
	fresh chain4
	run -0 stub chain4 udp back.lab-a.com/CNAME
	replies 1 '.answers == [["back.lab-a.com", "CNAME", 60, "y.lab-a.com"]]'
	equal "leases" "" "$(leased chain4 4)"
	sandbox_gone chain3
	sandbox_gone chain4
}

@test "C-11: TTLs of zero, one, very many and too many seconds: what the guest is told, and how long the kernel keeps it" {
	local raw told kept name n=0
	fresh ttl
	while read -r raw told kept; do
		n=$((n + 1))
		name=ttl$n.lab-a.com
		fdns $name "{\"answers\":[[\"A\",$raw,\"45.46.9.$n\"],[\"AAAA\",$raw,\"2600:1:46:9::$n\"]]}"
		run -0 stub ttl udp $name $name/AAAA
		replies 2 ".answers[0][2] == $told"
		equal "kernel's timeout for a TTL of $raw" $kept "$(lease_timeout ttl 45.46.9.$n)"
		equal "kernel's timeout for a TTL of $raw, IPv6" $kept "$(lease_timeout ttl 2600:1:46:9::$n)"
		dns_recorded ttl 2 ".qname == \"$name\" and .ttl == $told"
	done <<-'TABLE'
		0 0 120
		1 1 120
		59 59 120
		61 61 121
		300 300 360
		3600 3600 3660
		3601 3600 3660
		2147483647 3600 3660
		2147483648 0 120
		4294967295 0 120
	TABLE
	# The smallest of a chain and of its records counts.
	fdns min.lab-a.com '{"answers":[["CNAME",900,"min2.lab-a.com"],["min2.lab-a.com","CNAME",80,"min3.lab-a.com"],
		["min3.lab-a.com","A",700,"45.46.9.100"],["min3.lab-a.com","A",90,"45.46.9.101"]]}'
	run -0 stub ttl udp min.lab-a.com
	replies 1 '[.answers[][2]] == [80, 80, 80, 80]'
	equal "kernel's timeout" 140 "$(lease_timeout ttl 45.46.9.100)"
	# A TTL of zero is good for a connection.
	fdns zero.lab-a.com '{"answers":[["A",0,"45.45.45.11"]]}'
	run -0 guest ttl curl -sS -4 https://zero.lab-a.com/
	equal "page" "lab web server for zero.lab-a.com" "$output"
	sandbox_gone ttl
}

@test "C-11, C-14: a shorter answer later, or one for another name, does not shorten what the guest was promised" {
	fresh keep
	fdns keep.lab-a.com '{"sequence":[{"answers":[["A",3600,"45.46.8.1"]]},{"answers":[["A",1,"45.46.8.1"]]}]}'
	fdns keep2.lab-a.com '{"answers":[["A",1,"45.46.8.1"],["A",1,"45.46.8.2"]]}'
	run -0 stub keep udp keep.lab-a.com
	replies 1 '.answers[0][2] == 3600'
	run -0 stub keep udp keep.lab-a.com keep2.lab-a.com
	replies 2 '.answers[0][2] == 1'
	[[ $(lease_timeout keep 45.46.8.1) -ge 3600 ]] || fail "shortened to $(lease_timeout keep 45.46.8.1)"
	sandbox_gone keep
}

@test "C-14: every answer starts the lease anew" {
	fresh again
	fdns again.lab-a.com '{"answers":[["A",300,"45.45.45.11"]]}'
	local left='[.nftables[].set // empty | .elem // [] | .[].elem.expires] | min'
	seconds_left() { ip netns exec postern-again nft -j list set inet postern lease4 | jq "$left"; }
	run -0 stub again udp again.lab-a.com
	sleep 4.1
	local before
	before=$(seconds_left)
	((before <= 356))
	run -0 stub again udp again.lab-a.com
	(($(seconds_left) > before))
	# Also when the kernel's element is gone: as if it had just run out.
	ip netns exec postern-again nft flush set inet postern lease4
	guest_fails again curl -sSk --resolve again.lab-a.com:443:45.45.45.11 https://again.lab-a.com/
	run -0 guest again curl -sS -4 https://again.lab-a.com/
	equal "page" "lab web server for again.lab-a.com" "$output"
	equal "asked upstream each time" 3 "$(dns_questions again.lab-a.com | grep -cx A)"
	sandbox_gone again
}

@test "C-12: answers with very many addresses are cut to what is leased, and say so in the record" {
	fresh many
	fdns many100.lab-a.com "$(jq -nc '{answers: [range(100) | ["A", 60, "45.46.11.\(. + 1)"]]}')"
	fdns many500.lab-a.com "$(jq -nc '{answers: [range(500) | ["A", 60, "45.46.\(. / 250 | floor + 15).\(. % 250 + 1)"]]}')"
	fdns manybad.lab-a.com "$(jq -nc '{answers: ([range(100) | ["A", 60, "45.46.20.\(. + 1)"]] + [["A", 60, "10.0.0.5"]])}')"
	run -0 stub many --half-close tcp many100.lab-a.com many500.lab-a.com manybad.lab-a.com
	jq -e -s 'all(.[]; .end or (.question == "manybad.lab-a.com" and .rcode == "NXDOMAIN") or (.answers | length) == 64)
		and length == 4' <<<"$output" >/dev/null || fail "$output"
	# Exactly what was handed out is open.
	equal "leases" "$(jq -r '.answers // [] | .[][3]' <<<"$output" | LC_ALL=C sort)" "$(leased many 4 | LC_ALL=C sort)"
	log_has many '.qname == "many100.lab-a.com" and .verdict == "allowed" and .detail == "64 of 100 addresses admitted"'
	log_has many '.qname == "many500.lab-a.com" and .verdict == "allowed" and .detail == "64 of 500 addresses admitted"'
	log_has many '.qname == "manybad.lab-a.com" and .reason == "dns_rebind"'
	sandbox_gone many
}

@test "C-13, C-12: a connection right behind its answer is never refused, with a new address each time" {
	fdns race.lab-a.com "{\"answers\":[[\"A\",1,\"next:$ROTATING4\"],[\"AAAA\",1,\"next:$ROTATING6\"]]}"
	run -0 stub dns race 500 9100 race.lab-a.com
	equal "connections" '{"connected":500}' "$(jq -c .ends <<<"$output")"
	dns_recorded dns 500 '.qname == "race.lab-a.com" and .verdict == "allowed"'
	equal "refused" 0 "$(log_json dns --since 1h | jq -s 'map(select(.dport == 9100 and .verdict != "allowed")) | length')"
	far_saw "> 45\.46\..* 9100 S"
	far_saw "> 2600:1:46::.* 9100 S"
}

# bats test_tags=smoke
@test "C-15: of HTTPS and SVCB records only harmless keys and leased hints are left" {
	local record kind public4=2d2d2d0b public6=26000001000200000000000000000011
	# alpn h2 h3 h3-29, ipv4hint private and public, ech, ipv6hint private and public, an unknown key.
	record="0001 00 0001 000c 026832 026833 0568332d3239 0004 0008 0a000001 $public4 0005 0004 deadbeef
		0006 0020 fd000ec2000000000000000000000254 $public6 ff00 0003 616263"
	for kind in HTTPS SVCB; do
		fresh svc
		fdns svc.lab-a.com "{\"answers\":[[\"$kind\",60,\"hex:${record//[$'\n\t ']/}\"]]}"
		run -0 stub svc udp svc.lab-a.com/$kind
		replies 1 "(.answers | length) == 1 and .answers[0][1] == \"$kind\" and .answers[0][3] ==
			\"hex:0001000001000302683200040004${public4}00060010$public6\""
		equal "leases" 45.45.45.11 "$(leased svc 4)"
		equal "leases, IPv6" 2600:1:2::11 "$(leased svc 6)"
		log_has svc ".qtype == \"$kind\" and .answers == [\"$kind .\", \"hint 45.45.45.11\", \"hint 2600:1:2::11\"]"
		# The hint is as good as an address that was asked for.
		run -0 guest svc curl -sS --resolve svc.lab-a.com:443:45.45.45.11 https://svc.lab-a.com/
		equal "page" "lab web server for svc.lab-a.com" "$output"
		guest_fails svc curl -sS --resolve svc.lab-a.com:80:10.0.0.1 http://svc.lab-a.com/
		sandbox_gone svc
	done
	# The zone's own: with a real ECH configuration.
	run -0 stub dns udp h3.lab-a.com/HTTPS
	replies 1 '.answers[0][3] == "hex:00010000010003026832000400042d2d2d0b"'
	far_no_trap
}

@test "C-15: HTTPS records that lead elsewhere or need what is not passed on are left out" {
	local n=0 words=() rdata
	fresh svc2
	while read -r rdata; do
		n=$((n + 1))
		fdns s$n.lab-a.com "{\"answers\":[[\"HTTPS\",60,\"hex:${rdata//[# ]/}\"]]}"
		words+=(s$n.lab-a.com/HTTPS)
	done <<-'TABLE'
		0000 03777777056c61622d62036e657400
		0000 00
		0001 03777777056c61622d62036e657400
		0001 00 0000 0002 0005 0001 0003 026832 0005 0002 dead
		0001 00 0000 0002 0004 0004 0004 0a000001
		0001 00 0003 0002 20fb
		0001 00 0003 0002 0000
		0001 00 0001 0003 026833 0002 0000
		0001 00 0004 0004 2d2d2d14 0001 0003 026832
		0001 00 0004 0003 2d2d2d
		0001 00 0004 00ff 2d2d2d14
		0001 00 0001 0002 0568
		0001 c00c
		00
	TABLE
	run -0 stub svc2 --edns 1232 udp "${words[@]}"
	replies 14 '.rcode == "NOERROR" and .answers == []'
	equal "leases" "" "$(leased svc2 4)"
	# Without the hints that are left out, a record is as good as before.
	fdns plain.lab-a.com '{"answers":[["HTTPS",60,"hex:0001000001000302683200040004c0a80101"]]}'
	run -0 stub svc2 udp plain.lab-a.com/HTTPS
	replies 1 '.answers[0][3] == "hex:00010000010003026832"'
	equal "leases" "" "$(leased svc2 4)"
	log_has svc2 '.qname == "s6.lab-a.com" and (.detail | contains("port"))'
	log_has svc2 '.qname == "s1.lab-a.com" and (.detail | contains("alias"))'
	sandbox_gone svc2
}

@test "C-19: the question comes back as it was spelt, upstream spells it anew, and a resolver without case still works" {
	run -0 stub dns udp NeWs.LaB-sItE.oRg WWW.LAB-CNAME.COM
	reply 1 '.question == "NeWs.LaB-sItE.oRg" and .answers[0][0] == "NeWs.LaB-sItE.oRg"'
	reply 2 '.question == "WWW.LAB-CNAME.COM" and .answers[0][0] == "WWW.LAB-CNAME.COM" and .answers[1][3] == "45.45.45.12"'
	# shellcheck disable=SC2046
	run -0 stub dns udp $(yes NEWS.LAB-SITE.ORG | head -n 30)
	replies 30 '.rcode == "NOERROR"'
	[[ $(since_mark fdns.log | jq -r .qname | sort -u | wc -l) -ge 20 ]] || fail "upstream's case is no random"
	log_has dns '.qname == "news.lab-site.org" and .verdict == "allowed"'
	fdns nocase.lab-a.com '{"question":"nocase.lab-a.com","answers":[["A",60,"45.45.45.11"]]}'
	run -0 stub dns udp NoCase.Lab-A.com
	replies 1 '.question == "NoCase.Lab-A.com" and .answers[0][3] == "45.45.45.11"'
	# Denied names keep their case as well.
	run -0 stub dns udp WwW.lAb-B.nEt
	replies 1 '.rcode == "NXDOMAIN" and .question == "WwW.lAb-B.nEt"'
	log_has dns '.qname == "www.lab-b.net" and .verdict == "denied"'
}

@test "C-24: records for other names, in whatever section, reach neither guest nor kernel" {
	fresh junk
	fdns junk.lab-a.com '{"all":true,"answers":[["www.lab-b.net","A",60,"45.45.45.20"],["A",60,"45.45.45.11"],
		["evil.lab-a.com","A",60,"45.45.45.12"],["AAAA",60,"2600:1:2::20"],["TXT",60,"junk"],
		["other.lab-a.com","CNAME",60,"junk.lab-a.com"]],
		"authority":[["lab-a.com","NS",60,"ns.lab-b.net"],["junk.lab-a.com","A",60,"45.45.45.22"]],
		"additional":[["ns.lab-b.net","A",60,"45.45.45.20"],["junk.lab-a.com","A",60,"45.45.45.30"],
		["junk.lab-a.com","AAAA",60,"2600:1:2::20"]]}'
	run -0 stub junk --edns 1232 udp junk.lab-a.com
	replies 1 '.answers == [["junk.lab-a.com", "A", 60, "45.45.45.11"]] and .authority == [] and .additional == []
		and .edns.options == []'
	equal "leases" 45.45.45.11 "$(leased junk 4)"
	equal "leases, IPv6" "" "$(leased junk 6)"
	log_has junk '.qname == "junk.lab-a.com" and .answers == ["A 45.45.45.11"]'
	# Only junk is no answer.
	fdns junk2.lab-a.com '{"all":true,"answers":[["www.lab-b.net","A",60,"45.45.45.20"]],"additional":[["junk2.lab-a.com","A",60,"45.45.45.20"]]}'
	run -0 stub junk udp junk2.lab-a.com
	replies 1 '.answers == []'
	# The flags of the resolver are not ours either (AA, AD, CD, Z).
	fdns flags.lab-a.com '{"flags":1136,"answers":[["A",60,"45.45.45.11"]]}'
	run -0 stub junk udp flags.lab-a.com
	replies 1 '.flags == ["qr", "rd", "ra"] and .answers[0][3] == "45.45.45.11"'
	sandbox_gone junk
}

# bats test_tags=smoke
@test "B-13, B-14, C-26: answers that do not parse open nothing" {
	local n=0 words=() raw pointers
	fresh bad
	# A name of 100 pointers, each to the one before.
	pointers="$(for n in {0..99}; do printf 'c0%02x' $((n * 2 + 12 + 22)); done)"
	n=0
	while read -r raw; do
		n=$((n + 1))
		fdns bad$n.lab-a.com "{\"raw\":\"ID 8180 ${raw//POINTERS/$pointers}\"}"
		words+=(bad$n.lab-a.com)
	done <<-'TABLE'
		0001 0001 0000 0000 QUESTION c000 0001 0001 0000003c 0004 2d2d2d14
		0001 0001 0000 0000 QUESTION c006 0001 0001 0000003c 0004 2d2d2d14
		0001 0001 0000 0000 QUESTION c0ff 0001 0001 0000003c 0004 2d2d2d14
		0001 0001 0000 0000 QUESTION c020 0001 0001 0000003c 0004 2d2d2d14
		0001 0001 0000 0000 QUESTION c021 c021 0001 0001 0000003c 0004 2d2d2d14
		0001 0001 0000 0000 QUESTION 40 0001 0001 0000003c 0004 2d2d2d14
		0001 0001 0000 0000 QUESTION 80 0001 0001 0000003c 0004 2d2d2d14
		0001 0001 0000 0000 QUESTION c00c 0001 0001 0000003c 0005 2d2d2d1400
		0001 0001 0000 0000 QUESTION c00c 0001 0001 0000003c 0003 2d2d2d
		0001 0001 0000 0000 QUESTION c00c 0001 0001 0000003c ffff 2d2d2d14
		0001 0001 0000 0000 QUESTION c00c 0001 0001 0000003c 0004 2d2d2d14 00
		0001 0002 0000 0000 QUESTION c00c 0001 0001 0000003c 0004 2d2d2d14
		0001 0001 0000 0001 QUESTION c00c 0001 0001 0000003c 0004 2d2d2d14 00 0029 04d0
		0001 ffff 0000 0000 QUESTION c00c 0001 0001 0000003c 0004 2d2d2d14
		0001 0001 0000 0000 QUESTION POINTERS 0001 0001 0000003c 0004 2d2d2d14
		0001 0001 0000 0000 QUESTION c00c 0005 0001 0000003c 0001 40
		0001 0001 0000 0000 QUESTION c00c 0005 0001 0000003c 0002 c00c
	TABLE
	run -0 stub bad --edns 1232 --timeout 6 udp "${words[@]}"
	replies 17 '.rcode == "SERVFAIL" and .answers == []'
	equal "leases" "" "$(leased bad 4)"
	dns_recorded bad 17 '.verdict == "failed" and .reason == "upstream_error"'
	sandbox_gone bad
}

@test "C-37: a client that asks for DNSSEC gets no signatures and no claim that they were checked" {
	run -0 guest dns dig +dnssec +cd +ad news.lab-site.org
	matches "answer" '45\.45\.45\.10' "$output"
	if grep -qE '^;; flags:[^;]* ad|RRSIG' <<<"$output"; then
		fail "$output" || return 1
	fi
	run -0 guest dns kdig +dnssec +short news.lab-site.org
	equal "kdig" 45.45.45.10 "$output"
	run -0 stub dns udp www.lab-a.com/RRSIG www.lab-a.com/DNSKEY www.lab-a.com/TYPE43
	replies 3 '.rcode == "NOERROR" and .answers == []'
}

@test "C-30: without an IPv6 route, AAAA is an empty answer and nobody is asked" {
	ip -6 route del default
	run -0 stub dns udp news.lab-site.org/AAAA news.lab-site.org/A
	run -0 --separate-stderr guest dns getent ahosts news.lab-site.org
	local seen=$output
	run -0 stub dns udp news.lab-site.org/AAAA news.lab-site.org/A www.lab-b.net/AAAA
	local replies=$output
	ip -6 route add default via "$HOST6_GW"
	output=$replies
	reply 1 '.rcode == "NOERROR" and .answers == [] and .authority[0][1] == "SOA"'
	reply 2 '.answers[0][3] == "45.45.45.10"'
	reply 3 '.rcode == "NXDOMAIN"'
	matches "getent" '^45.45.45.10 ' "$seen"
	if grep -q 2600: <<<"$seen"; then
		fail "$seen" || return 1
	fi
	equal "types upstream" A "$(dns_questions news.lab-site.org | sort -u)"
	log_has dns '.qname == "news.lab-site.org" and .qtype == "AAAA" and (.detail // "" | contains("no IPv6"))'
	run -0 stub dns udp news.lab-site.org/AAAA
	replies 1 '.answers[0][3] == "2600:1:2::10"'
	run -0 guest dns curl -sS -6 https://news.lab-site.org/
	equal "page" "lab web server for news.lab-site.org" "$output"
}
