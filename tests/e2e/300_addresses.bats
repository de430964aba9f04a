#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Addresses that nobody may reach, by whatever way a guest comes to them: an allowed name that answers with one, a packet
# to it, a policy that names it, another spelling of it.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/raw

setup_file() {
	lab_up
	posternd_start
}

# A sandbox for each case: rows of refused packets are limited in number, and each must be found.
setup() {
	sandbox addr --policy "$(policy addr 'host: "*.lab-evil.net"' 'host: bytes.lab-site.org' \
		'{host: many.lab-evil.net, ports: [22, 80, 443, 8080]}')"
	mark
}

teardown() {
	sandbox_gone addr
}

# The name that answers with an address: answering ADDRESS
answering() { echo "a${1//[:.]/-}.lab-evil.net"; }

# Names that answer with these addresses, as a table for query.py: answer_with EXPECT A|AAAA ADDRESS...
answer_with() {
	local expect=$1 kind=$2 number=1 address
	[[ $kind == A ]] || number=28
	shift 2
	for address in "$@"; do
		fdns "$(answering "$address")" "{\"answers\":[[\"$kind\",30,\"$address\"]]}"
		echo "$expect name(\"$(answering "$address")\", kind=$number)"
	done
}

# An allowed name with such an answer is refused, and a packet to the address is reset: unreachable A|AAAA ADDRESS...
unreachable() {
	local kind=$1 address words=()
	shift
	answer_with dns_rebind "$kind" "$@" | cases addr query "$GATEWAY4:53" "[$GATEWAY6]:53"
	mark
	for address in "$@"; do
		words+=("tcp dst=$address dport=80 sport=40080" "tcp dst=$address dport=443 sport=40443")
	done
	raw addr --listen 100 "${words[@]}" >/dev/null
	dialled() {
		log_json addr >"$LAB/tmp/log"
		jq -e -s '$ARGS.positional - (map(select(.kind == "deny" and .reason == "never_address" and .verdict == "denied"))
			| group_by(.dst) | map(select(map(.dport) | unique == [80, 443]) | .[0].dst)) == []' --args "$@" <"$LAB/tmp/log"
	}
	wait_for 8 dialled "$@" || fail "no rows of all of: $*" "$(tail -n 5 "$LAB/tmp/log")"
	far_none "> ($(IFS='|' && echo "${*//./\\.}")) "
	far_no_trap
}

# The record of a refused answer says which row of the list it was: because ADDRESS PATTERN
because() {
	log_has addr ".qname == \"$(answering "$1")\" and .reason == \"dns_rebind\" and .ede == 15 and .answers == []
		and (.detail | contains(\"$2\"))"
	log_has addr ".kind == \"deny\" and .dst == \"$1\" and .reason == \"never_address\" and (.detail | contains(\"$2\"))"
}

@test "A-01: a name that flips to a private address opens nothing, and nothing is resolved a second time" {
	fdns flip.lab-evil.net '{"sequence":[{"answers":[["A",30,"45.45.45.40"]]},{"answers":[["A",30,"10.0.0.5"]]}]}'
	equal "first answer" "45.45.45.40" "$(guest addr dig +short flip.lab-evil.net)"
	cases addr httpx "$NET4.$BYTES:80" <<<'allowed get("flip.lab-evil.net")'
	equal "second answer" "" "$(guest addr dig +short flip.lab-evil.net)"
	log_has addr '.qname == "flip.lab-evil.net" and .reason == "dns_rebind" and (.detail | contains("10.0.0.5"))'
	guest_fails addr curl -sS --resolve flip.lab-evil.net:80:10.0.0.5 http://flip.lab-evil.net/
	# What was proven before stays good for its lease; what is dialled is that address and no other.
	cases addr httpx "$NET4.$BYTES:80" <<<'allowed get("flip.lab-evil.net")'
	far_none "> 10\."
	far_no_trap
	log_has addr '.kind == "deny" and .dst == "10.0.0.5" and .reason == "never_address"'
	# One family good, the other not: each answer is judged by itself.
	fdns flop.lab-evil.net+A '{"answers":[["A",30,"45.45.45.40"]]}'
	fdns flop.lab-evil.net+AAAA '{"answers":[["AAAA",30,"fd00:ec2::254"],["AAAA",30,"2600:1:2::40"]]}'
	cases addr query "$GATEWAY4:53" <<-'TABLE'
		allowed     name("flop.lab-evil.net")
		dns_rebind  name("flop.lab-evil.net", kind=28)
	TABLE
	# Two questions came from the guest, and two went upstream.
	equal "questions upstream" 2 "$(dns_questions flop.lab-evil.net | wc -l)"
}

@test "A-02: IPv4-mapped IPv6 addresses" {
	local address
	answer_with dns_rebind AAAA ::ffff:169.254.169.254 ::ffff:7f00:1 ::ffff:10.0.0.5 ::ffff:45.45.45.40 ::ffff:0:0 ::ffff:0:a00:5 |
		cases addr query "$GATEWAY4:53" "[$GATEWAY6]:53"
	log_has addr '.reason == "dns_rebind" and .qtype == "AAAA" and (.detail | contains("169.254.169.254: 169.254.169.254/32"))'
	log_has addr '.reason == "dns_rebind" and (.detail | contains("::ffff:45.45.45.40: an IPv4-mapped address"))'
	# The name's IPv4 addresses were not leased by that.
	guest_fails addr curl -sS -4 --resolve x.lab-evil.net:80:45.45.45.41 http://x.lab-evil.net/
	# A hint says it too.
	fdns hint.lab-evil.net+HTTPS '{"answers":[["HTTPS",30,"hex:0001000006001000000000000000000000ffff2d2d2d14"]]}'
	guest addr dig +short HTTPS hint.lab-evil.net >"$LAB/tmp/hint"
	equal "records with a mapped hint" "" "$(cat "$LAB/tmp/hint")"
	log_has addr '.qname == "hint.lab-evil.net" and .qtype == "HTTPS" and (.detail | contains("an IPv4-mapped hint"))'
	mark
	# A guest's socket turns a mapped address into IPv4; a packet may still carry one.
	raw addr --listen 100 "tcp dst=::ffff:10.0.0.5 dport=80" "tcp dst=::ffff:169.254.169.254 dport=80" "tcp dst=::ffff:45.45.45.40 dport=80" \
		>/dev/null
	log_has addr '.kind == "deny" and .dst == "10.0.0.5" and (.src | contains("::2")) and .reason == "never_address"'
	log_has addr '.kind == "deny" and .dst == "169.254.169.254" and (.src | contains("::2")) and .reason == "never_address"'
	far_none " > ($NET4|10\.|169\.254)"
	far_no_trap
}

@test "A-03, A-05: IPv4 inside NAT64, 6to4, Teredo and ISATAP addresses" {
	# Teredo carries the client's address inverted: 127.0.0.1 is 80ff:fffe.
	unreachable AAAA 64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b::a9fe:a9fe 64:ff9b::808:808 64:ff9b:1::a00:1 \
		2002:a00:5::1 2002:7f00:1:: 2002:808:808::1 2001:0:a00:5::1 2001:0:4136:e378:8000:63bf:80ff:fffe
	because 64:ff9b::a00:1 "private"
	because 2002:a00:5::1 "6to4"
	because 2001:0:4136:e378:8000:63bf:80ff:fffe "Teredo"
	# ISATAP is known by its interface id, below any prefix: also where a rule allows the prefix.
	answer_with dns_rebind AAAA 2600:1:2::5efe:a00:5 2600:1:2::200:5efe:a00:5 2600::5efe:808:808 | cases addr query "$GATEWAY4:53"
	because2() { log_has "$1" ".kind == \"deny\" and .dst == \"$2\" and .reason == \"never_address\" and (.detail | contains(\"ISATAP\"))"; }
	sandbox isatap --policy "$(policy isatap "{cidr: '2600:1:2::/64', ports: [80, 8080]}")"
	cases isatap httpx "[2600:1:2::5efe:a00:5]:80" "[2600:1:2::200:5efe:a00:5]:80" <<<'never_address get("x.lab-site.org")'
	guest_fails isatap curl -sS "http://[2600:1:2::5efe:a00:5]:8080/"
	because2 isatap 2600:1:2::5efe:a00:5
	far_none "> 2600:1:2::(200:)?5efe:"
	cases isatap httpx "[$NET6:$BYTES]:80" <<<'allowed get("x.lab-site.org")'
	sandbox_gone isatap
}

@test "A-08: 0.0.0.0 and :: are no way to loopback, and no refusal answers with them" {
	unreachable A 0.0.0.0 0.0.0.1 0.1.2.3 127.0.0.1 127.255.255.254
	unreachable AAAA ::2
	answer_with dns_rebind AAAA :: ::1 ::127.0.0.1 ::10.0.0.5 | cases addr query "$GATEWAY4:53"
	because 0.0.0.0 "this host on this network"
	# (The kernel takes no packet for ::1 from a wire at all.)
	raw addr --listen 100 "tcp dst=:: dport=8080" "tcp dst=::1 dport=8080" >/dev/null
	log_has addr '.kind == "deny" and .dst == "::" and .dport == 8080 and .reason == "never_address"'
	far_no_trap
	for name in www.lab-b.net localhost "$(answering 127.0.0.1)" metadata.google.internal; do
		run guest addr dig "$name" A
		matches "status for $name" "status: (NXDOMAIN|REFUSED)" "$output"
		matches "no answer for $name" "ANSWER: 0," "$output"
	done
}

@test "A-09, A-07: shared address space and private ranges, to their edges" {
	unreachable A 100.64.0.0 100.64.0.1 100.100.100.200 100.127.255.255 10.0.0.0 10.255.255.255 172.16.0.3 172.31.255.255 \
		192.168.0.0 192.168.255.255 169.254.0.0 169.254.255.255 192.0.0.1 192.0.2.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 \
		224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.254 255.255.255.255
	because 100.100.100.200 Alibaba
	because 100.127.255.255 "shared address space"
	# Their neighbours are like any other address: resolved, and leased.
	answer_with allowed A 100.63.255.255 100.128.0.0 9.255.255.255 11.0.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 \
		169.253.255.255 169.255.0.0 192.0.1.0 198.17.255.255 198.20.0.0 223.255.255.255 126.255.255.255 128.0.0.0 1.0.0.0 |
		cases addr query "$GATEWAY4:53"
	far_no_trap
}

@test "A-10: the platform's public-looking address, also where a policy would cover it" {
	unreachable A 168.63.129.16
	because 168.63.129.16 "Azure WireServer"
	local rule
	for rule in 0.0.0.0/0:80 168.63.129.16/32:80 168.63.129.0/24:80 160.0.0.0/4:80 168.63.129.16:80; do
		run -5 sandbox wire --allow "$rule"
		matches "why $rule is refused" "168.63.129.16|can never be allowed" "$output"
	done
	# All around it is allowed; it is not.
	sandbox wire --policy "$(policy wire '{cidr: 168.63.129.0/28, ports: [80]}' '{cidr: 168.63.129.17/32, ports: [80]}')"
	mark
	guest_fails wire curl -sS -m 5 http://168.63.129.16/
	log_has wire '.dst == "168.63.129.16" and .reason == "never_address" and .verdict == "denied"'
	run -1 postern test wire 168.63.129.16:80
	far_no_trap
	sandbox_gone wire
}

@test "A-11, A-22: IPv6 metadata endpoints, and everything outside 2000::/3" {
	unreachable AAAA fd00:ec2::254 fd20:ce::254 fd00:42::42 fe80::a9fe:a9fe fd00::1 fc00::1
	because fd00:ec2::254 AWS
	because fd20:ce::254 GCP
	because fd00:42::42 Scaleway
	because fe80::a9fe:a9fe OpenStack
	unreachable AAAA 4000::1 1000::1 5f00::1 3ffe::1 fec0::1 100::1 200::1 400::1 800::1 1fff:ffff::1 6000::1 8000::1 a000::1 c000::1 \
		e000::1 f800::1 ff02::1 ff0e::1 3fff::1 2001:db8::1 2001:2::1 2001:10::1 2001:20::1 ::8:0:0:1
	because 4000::1 "outside 2000::/3"
	# The edges of what may be reached.
	answer_with allowed AAAA 2000::1 2001:200::1 2003::1 2600:1:2::40 3fff:1000::1 3ffd:ffff::1 2a00:1450::1 | cases addr query "$GATEWAY4:53"
}

@test "A-13: an address that the host gets after the start, without a restart" {
	local four=11.22.33.44 six=2600:7:7::44 python=/usr/bin/python3
	[[ -x $python ]] || python=python3
	# First it is somebody else's, far away, and reached.
	internet ip addr add $four/32 dev lo
	internet ip addr add $six/128 dev lo nodad
	# (A plain command: the shell of a function would hold bats' descriptors open.)
	nsenter --net=/run/netns/pl-internet -- "$python" "$LAB_DIR/origin.py" "$LAB/origin.log" "digest:$four:80,8080" "digest:$six:80" \
		>>"$LAB/origin.err" 2>&1 </dev/null 3>&- 4>&- &
	wait_for 5 internet bash -c ": </dev/tcp/$four/8080"
	fdns many.lab-evil.net+A "{\"answers\":[[\"A\",300,\"$four\"]]}"
	fdns many.lab-evil.net+AAAA "{\"answers\":[[\"AAAA\",300,\"$six\"]]}"
	cases addr httpx many.lab-evil.net:80 <<<'allowed get("many.lab-evil.net")'

	# Now it is the host's, and something listens there.
	ip addr add $four/32 dev lo
	ip addr add $six/128 dev lo nodad
	"$python" "$LAB_DIR/origin.py" "$LAB/host.log" "trap:$four:80,8080" "trap:$six:80,8080" \
		>>"$LAB/host.err" 2>&1 </dev/null 3>&- 4>&- &
	wait_for 5 bash -c ": </dev/tcp/$four/8080"
	# Leased as it is, it is refused when it is dialled, on inspected ports and on others.
	cases addr httpx "$four:80" "[$six]:80" <<<'never_address get("many.lab-evil.net")'
	guest_fails addr "$LAB_DIR/client.py" tcp $four 8080 hello
	guest_fails addr "$LAB_DIR/client.py" tcp $six 8080 hello
	log_has addr ".kind == \"deny\" and .dst == \"$four\" and .dport == 8080 and .reason == \"never_address\"
		and .detail == \"an address of the host itself\""
	log_has addr ".kind == \"deny\" and .dst == \"$six\" and .dport == 80 and .reason == \"never_address\""
	# And its name is refused from now on.
	cases addr query "$GATEWAY4:53" <<-'TABLE'
		dns_rebind  name("many.lab-evil.net")
		dns_rebind  name("many.lab-evil.net", kind=28)
	TABLE
	log_has addr ".qname == \"many.lab-evil.net\" and .detail == \"$four: an address of the host itself\""
	far_no_trap
	# Gone again, it is somebody else's again.
	ip addr del $four/32 dev lo
	ip addr del $six/128 dev lo
	cases addr httpx many.lab-evil.net:80 <<<'allowed get("many.lab-evil.net")'
}

@test "A-13, A-19: the host's own addresses of old, its broadcast and its other links" {
	ip link add pl-docker0 type veth peer name pl-docker1
	ip addr add 5.6.7.1/24 dev pl-docker0
	ip addr add 2600:8:8::1/64 dev pl-docker0 nodad
	ip link set pl-docker0 up
	answer_with dns_rebind A "$HOST4" 5.6.7.1 5.6.7.255 | cases addr query "$GATEWAY4:53"
	answer_with dns_rebind AAAA "$HOST6" 2600:8:8::1 | cases addr query "$GATEWAY4:53"
	sandbox links --policy "$(policy links '{cidr: 5.6.7.0/24, ports: [80, 8080]}' "{cidr: '2600:8:8::/64', ports: [8080]}" \
		"{cidr: $HOST4/32, ports: [80, 8080]}" "{cidr: '$HOST6/128', ports: [8080]}")"
	cases links httpx "$HOST4:80" 5.6.7.1:80 5.6.7.255:80 <<<'never_address get("x.lab-site.org")'
	local address
	for address in "$HOST4" "$HOST6" 5.6.7.1 5.6.7.255 2600:8:8::1; do
		guest_fails links "$LAB_DIR/client.py" tcp "$address" 8080 hello
		log_has links ".dst == \"$address\" and .dport == 8080 and .reason == \"never_address\"
			and .detail == \"an address of the host itself\""
	done
	far_no_trap
	sandbox_gone links
	ip link del pl-docker0
}

@test "A-14: always-block, then deny, then allow, however wide or narrow the rules are" {
	# Each line: the rules, and what becomes of a connection to bytes.lab-site.org (45.45.45.40, 2600:1:2::40) on port 80.
	local allow deny expect file=$LAB/tmp/a14.yaml
	while IFS='|' read -r allow deny expect; do
		{
			echo "version: 1"
			echo "allow:"
			printf '%s\n' "$allow" | tr ';' '\n' | sed 's/^ */  - /'
			[[ -z ${deny// /} ]] || {
				echo "deny:"
				printf '%s\n' "$deny" | tr ';' '\n' | sed 's/^ */  - /'
			}
		} >"$file"
		sandbox order --policy "$file" >/dev/null
		guest order dig +short bytes.lab-site.org >/dev/null
		guest order dig +short AAAA bytes.lab-site.org >/dev/null
		cases order httpx "$NET4.$BYTES:80" "[$NET6:$BYTES]:80" <<<"${expect// /} get()" || fail "with: $allow | $deny"
		sandbox_gone order >/dev/null
	done <<-'TABLE'
		host: bytes.lab-site.org                     |                                   | allowed/allowed
		host: bytes.lab-site.org                     | host: bytes.lab-site.org          | not_leased/not_leased
		host: bytes.lab-site.org                     | host: "*.lab-site.org"            | not_leased/not_leased
		host: bytes.lab-site.org                     | cidr: 45.0.0.0/8                  | not_leased/allowed
		host: bytes.lab-site.org                     | cidr: 45.45.45.40/32              | not_leased/allowed
		host: bytes.lab-site.org                     | cidr: 45.45.45.41/32              | allowed/allowed
		host: bytes.lab-site.org                     | cidr: "2600::/16"                 | allowed/not_leased
		host: bytes.lab-site.org                     | {cidr: 45.0.0.0/8, ports: [443]}  | allowed/allowed
		host: bytes.lab-site.org                     | {host: bytes.lab-site.org, ports: [443]} | allowed/allowed
		{cidr: 45.45.45.40/32, ports: [80]}          | cidr: 45.0.0.0/8                  | not_leased/not_leased
		{cidr: 45.45.45.40/32, ports: [80]}          | cidr: 45.45.45.40/32              | not_leased/not_leased
		{cidr: 45.0.0.0/8, ports: [80]}              | cidr: 45.45.45.40/32              | not_leased/not_leased
		{cidr: 45.0.0.0/8, ports: [80]}              | cidr: 45.45.45.41/32              | allowed/not_leased
		{cidr: 45.0.0.0/8, ports: ["1-52","54-65535"]}; host: bytes.lab-site.org | {cidr: 45.45.45.0/24, ports: [80]} | not_leased/allowed
		{cidr: 45.45.45.40/32, ports: [80]}          | host: bytes.lab-site.org          | rule_deny/not_leased
		{cidr: 45.45.45.40/32, ports: [80]}; {cidr: "2600:1:2::/48", ports: [80]} | host: "*.lab-site.org" | rule_deny/rule_deny
	TABLE
	# What holds the always-blocked is no rule at all.
	for rule in 0.0.0.0/0:80 ::/0:80 '[::/0]:80' 10.0.0.5/32:80 8.0.0.0/5:80 '[2000::/3]:80'; do
		run -5 sandbox order --allow "$rule"
	done
	far_no_trap
}

@test "A-15: a rule that can never or must never apply is an error, and what was in force stays in force" {
	sandbox strict --policy "$(policy strict 'host: bytes.lab-site.org')"
	cases strict httpx bytes.lab-site.org:80 <<<'allowed get()'
	local before bad count=0
	before=$(postern show strict -o json | jq -c '[.. | objects | .generation? // empty] | first')
	while read -r bad; do
		printf 'version: 1\nallow:\n  - host: www.lab-b.net\n  - %s\n' "$bad" >"$LAB/tmp/bad.yaml"
		run -5 sandbox bad --policy "$LAB/tmp/bad.yaml"
		matches "complaint about $bad" 'bad.yaml:4:[0-9]+: .+' "$output"
		equal "edit with $bad" 422 "$(api PUT /v1/sandboxes/strict/policy "$(jq -n --rawfile text "$LAB/tmp/bad.yaml" '{policy: $text}')")"
		count=$((count + 1))
	done <<-'TABLE'
		{cidr: 10.0.0.0/8, ports: [80]}
		{cidr: 10.1.2.3/32, ports: [80]}
		{cidr: 127.0.0.1/32, ports: [80]}
		{cidr: 169.254.169.254/32, ports: [80]}
		{cidr: 169.254.0.0/16, ports: [80]}
		{cidr: 169.254.1.1/32, ports: [80]}
		{cidr: 172.16.0.0/12, ports: [80]}
		{cidr: 192.168.1.0/24, ports: [80]}
		{cidr: 100.64.0.0/10, ports: [80]}
		{cidr: 100.100.100.200, ports: [80]}
		{cidr: 168.63.129.16/32, ports: [80]}
		{cidr: 0.0.0.0/0, ports: [80]}
		{cidr: 0.0.0.0/32, ports: [80]}
		{cidr: 128.0.0.0/1, ports: [80]}
		{cidr: 224.0.0.0/4, ports: [80]}
		{cidr: 255.255.255.255/32, ports: [80]}
		{cidr: 198.18.0.0/15, ports: [80]}
		{cidr: "::/0", ports: [80]}
		{cidr: "::1/128", ports: [80]}
		{cidr: "fd00:ec2::254/128", ports: [80]}
		{cidr: "fe80::/10", ports: [80]}
		{cidr: "fe80::a9fe:a9fe", ports: [80]}
		{cidr: "::ffff:10.0.0.1", ports: [80]}
		{cidr: "64:ff9b::/96", ports: [80]}
		{cidr: "2002::/16", ports: [80]}
		{cidr: "2000::/3", ports: [80]}
		{cidr: "4000::/16", ports: [80]}
		{cidr: 45.45.45.40/24, ports: [80]}
		{cidr: 45.45.45.40/33, ports: [80]}
		{cidr: 45.45.45.40}
		{cidr: 010.8.8.8/32, ports: [80]}
		{cidr: 0x2d.45.45.40/32, ports: [80]}
		{cidr: 45.45.11560/32, ports: [80]}
		{host: metadata.google.internal}
		{host: metadata.goog}
		{host: localhost}
		{host: printer.local}
		{host: "*.internal"}
		{host: "*.svc.cluster.local"}
		{host: host.docker.internal}
		{host: wpad.lab-site.org}
		{host: 169.254.169.254}
		{host: bytes.lab-site.org, ports: [53]}
		{host: bytes.lab-site.org, ports: [443], udp: true}
		{host: bytes.lab-site.org, ports: [0]}
		{host: bytes.lab-site.org, ports: [65536]}
		{host: "*"}
		{host: "*.org"}
		{host: intranet}
	TABLE
	((count >= 40)) || fail "only $count rules were tried"
	equal "generation" "$before" "$(postern show strict -o json | jq -c '[.. | objects | .generation? // empty] | first')"
	cases strict httpx bytes.lab-site.org:80 <<<'allowed get()'
	guest_fails strict curl -sS http://www.lab-b.net/
	dns_not_asked www.lab-b.net
	log_has strict '.qname == "www.lab-b.net" and .reason == "no_rule"'
	sandbox_gone strict
}

@test "A-16: other spellings of an address are no names, in a policy and in a question" {
	local spelling
	for spelling in 2130706433 0x7f.1 0177.0.0.1 127.1 010.8.8.8 0x7f000001 127.0.0.1 45.45.45.40 1.2.3 0x2d2d2d28 '::1' '[::1]' \
		'2600:1:2::40' １２７.0.0.1 127。0。0。1 ①②⑦.0.0.1 ::ffff:127.0.0.1 a.1 lab-a.0x1; do
		printf 'version: 1\nallow:\n  - host: "%s"\n' "$spelling" >"$LAB/tmp/spelling.yaml"
		run -5 sandbox spelling --policy "$LAB/tmp/spelling.yaml"
		matches "complaint about $spelling" 'spelling.yaml:3:[0-9]+: ' "$output"
		printf 'version: 1\nallow:\n  - {cidr: "%s/32", ports: [80]}\n' "$spelling" >"$LAB/tmp/spelling.yaml"
		[[ $spelling == 45.45.45.40 || $spelling == 2600:1:2::40 ]] || run -5 sandbox spelling --policy "$LAB/tmp/spelling.yaml"
	done
	cases addr query "$GATEWAY4:53" "[$GATEWAY6]:53" <<-'TABLE'
		dns_denied  [query(*n.split(".")) for n in ("2130706433", "0x7f.1", "0177.0.0.1", "127.1", "010.8.8.8", "0x7f000001")]
		dns_denied  [query(*n.split(".")) for n in ("127.0.0.1", "45.45.45.40", "10.0.0.5", "a.lab-evil.1", "lab-evil.net.0xa")]
		dns_denied  [query(b"127.0.0.1"), query(b"45.45.45.40"), query("::1"), query("[::1]"), query(b"127.0.0.1", "lab-evil", "net")]
		dns_denied  [query(n.encode()) for n in ("１２７", "127。0。0。1")]
		dns_denied  [query("127\u3002".encode() + b"0", "lab-evil", "net")]
	TABLE
}
