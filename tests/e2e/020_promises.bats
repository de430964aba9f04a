#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The seven promises of postern(7), one case each or more; each also asserts what the far side did not see.

# bats file_tags=alone
bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
}

setup() {
	mark
}

# Sandboxes of a case, whatever became of it.
teardown() {
	for name in $(postern list -o json 2>/dev/null | jq -r '.. | .name? // empty' | sort -u); do
		sandbox_gone "$name" || true
	done
}

NEWS='host: news.lab-site.org'

# bats test_tags=smoke
@test "promise 1: no way around: no uplink, no route out, nothing forwarded, and nothing leaves when posternd is dead" {
	sandbox p1 --policy "$(policy p1 "$NEWS")"
	run guest p1 curl -sS https://news.lab-site.org/
	equal "before" "lab web server for news.lab-site.org" "$output"

	local inside=(nsenter --net=/run/netns/postern-p1 --)
	# One guest-facing device beside lo; every route is either the guest's link or local delivery.
	equal "devices" 2 "$("${inside[@]}" ip -o link show | grep -cvE ' (sit0|tunl0|ip6tnl0|gre0|gretap0|erspan0)[@:]')"
	equal "routes via somewhere" "" "$("${inside[@]}" ip route show table all | grep -w via || true)"
	equal "routes via somewhere, IPv6" "" "$("${inside[@]}" ip -6 route show table all | grep -w via || true)"
	equal "forwarding" "0 0 0" "$("${inside[@]}" cat /proc/sys/net/ipv4/ip_forward \
		/proc/sys/net/ipv4/conf/all/forwarding /proc/sys/net/ipv6/conf/all/forwarding | xargs)"
	matches "base policy" "hook prerouting .*policy drop" "$("${inside[@]}" nft list ruleset)"

	# A packet to an allowed, leased address that is not a connection of the gateway's: ICMP, and UDP to a leased host.
	guest_fails p1 busybox ping -c 1 -W 1 "$NET4.$WEB"
	guest_fails p1 "$LAB_DIR/client.py" udp "$NET4.$WEB" 443 hello
	far_none "^(icmp|udp) .* > $NET4\.$WEB "

	# Dead, and not by its own will.
	mark
	posternd_kill9
	run guest p1 timeout 5 curl -sS -m 4 --resolve "news.lab-site.org:443:$NET4.$WEB" https://news.lab-site.org/
	[[ $status -ne 0 ]]
	run guest p1 timeout 5 dig +time=1 +tries=1 news.lab-site.org
	[[ $status -ne 0 ]]
	dns_not_asked news.lab-site.org
	far_none " > $NET4\.$WEB .* [SP]"
	posternd_start
	run guest p1 curl -sS https://news.lab-site.org/
	equal "after a restart" "lab web server for news.lab-site.org" "$output"
}

# bats test_tags=smoke
@test "promise 2: the never list holds whatever a policy says, for addresses, names and the host itself" {
	# No policy can say it: an entry inside the list is refused when it is written.
	for rule in 10.0.0.0/8:80 169.254.169.254/32:80 0.0.0.0/0:80 fd00:ec2::254/128:80 metadata.google.internal; do
		if sandbox p2 --allow "$rule" 2>/dev/null; then
			fail "a policy with $rule was taken" || return 1
		fi
	done

	local names=(private metadata loopback host mixed mapped nat64 ula alias) name address
	sandbox p2 --policy "$(policy p2 'host: "*.lab-evil.net"' "$NEWS")"
	for name in "${names[@]}"; do
		guest_fails p2 curl -sS "http://$name.lab-evil.net/"
		log_has p2 ".kind == \"dns\" and .qname == \"$name.lab-evil.net\" and .reason == \"dns_rebind\" and .verdict == \"denied\""
	done
	for address in "${TRAPS4[@]}" "$HOST4" 127.0.0.1; do
		guest_fails p2 curl -sS "http://$address:8080/"
	done
	for address in "${TRAPS6[@]}" "$HOST6"; do
		guest_fails p2 curl -sS "http://[$address]:8080/"
	done
	# Host names of metadata services are not even asked for.
	guest_fails p2 curl -sS http://metadata.google.internal/
	dns_not_asked metadata.google.internal
	far_no_trap
	log_has p2 '.kind == "deny" and .dst == "169.254.169.254" and .verdict == "denied" and .reason == "never_address"'
	log_has p2 '.kind == "deny" and .dst == "fd00:ec2::254" and .verdict == "denied" and .reason == "never_address"'
	log_has p2 '.kind == "dns" and .qname == "metadata.google.internal" and .reason == "never_name"'
}

# bats test_tags=smoke
@test "promise 3: three proofs of a name: resolved here, said in SNI or Host, and the address judged when dialled" {
	sandbox p3 --policy "$(policy p3 "$NEWS" 'host: lab-a.com')"
	sandbox other --policy "$(policy other "$NEWS" 'host: lab-a.com')"

	# (a) Allowed, but resolved by another sandbox and not by this one.
	guest other curl -sS -o /dev/null https://news.lab-site.org/
	mark
	guest_fails p3 curl -sS --resolve "news.lab-site.org:443:$NET4.$WEB" https://news.lab-site.org/
	far_none " > $NET4\.$WEB "
	log_has p3 '.dst == "45.45.45.10" and .verdict == "denied" and .reason == "not_leased"'

	# (b) Resolved here, but another name is said: on the same address (shared.lab-b.net lives on lab-a.com's) or not, in
	# SNI or in Host; or none.
	guest p3 curl -sS -o /dev/null https://lab-a.com/
	mark
	guest_fails p3 curl -sSk --resolve "shared.lab-b.net:443:$NET4.$SHARED" https://shared.lab-b.net/
	guest_fails p3 curl -sSk --resolve "news.lab-site.org:443:$NET4.$SHARED" https://news.lab-site.org/
	guest_fails p3 openssl s_client -connect "$NET4.$SHARED:443" -noservername
	guest_fails p3 curl -sS --fail -H 'Host: shared.lab-b.net' http://lab-a.com/
	guest_fails p3 curl -sS --fail -H 'Host: news.lab-site.org' http://lab-a.com/
	far_none " > $NET4\.$SHARED (443|80) .*P"
	equal "requests" "" "$(web_log)"
	log_has p3 '.reason == "no_rule" and .verdict == "denied" and .name == "shared.lab-b.net" and .name_source == "claim"'
	log_has p3 '.reason == "sni_mismatch" and .verdict == "denied" and .name == "news.lab-site.org"'
	log_has p3 '.reason == "sni_missing" and .verdict == "denied"'
	log_has p3 '.reason == "host_mismatch" and .verdict == "denied"'

	# (c) A good answer first, then the host's own address for the same name: the later answer does not get through.
	fdns lab-a.com '{"sequence":[{"answers":[["A",1,"45.45.45.11"]]},{"answers":[["A",1,"5.161.10.2"]]}]}'
	sandbox_gone p3
	sandbox p3 --policy "$(policy p3 'host: lab-a.com')"
	guest p3 curl -sS -4 -o /dev/null https://lab-a.com/
	wait_for 90 bash -c "source '$LAB_DIR/lab.bash'; guest p3 dig lab-a.com | grep -q 'status: \(NXDOMAIN\|REFUSED\|SERVFAIL\)'"
	guest_fails p3 curl -sS -4 http://lab-a.com/
	far_no_trap
	fdns lab-a.com
}

# bats test_tags=smoke
@test "promise 4: empty means nothing: no policy, empty, broken or half a policy reaches nothing" {
	local name file=$LAB/tmp/p4.yaml
	sandbox none
	echo 'version: 1' >"$file"
	sandbox empty --policy "$file"
	for name in none empty; do
		guest_fails "$name" curl -sS https://news.lab-site.org/
		guest_fails "$name" curl -sSk "https://$NET4.$WEB/"
		log_has "$name" '.kind == "dns" and .reason == "no_rule" and .verdict == "denied"'
		log_has "$name" '.kind == "deny" and .reason == "not_leased" and .dst == "45.45.45.10"'
	done
	for text in '' 'allow: [' 'version: 1
allow:
  - host: news.lab-site.org
deny
' 'version: 1
alow:
  - host: news.lab-site.org' 'version: 2'; do
		printf '%s' "$text" >"$file"
		run -5 sandbox broken --policy "$file"
		# An edit that does not parse leaves what was in force.
		equal "status of the edit" 422 "$(api PUT /v1/sandboxes/none/policy "$(jq -n --rawfile text "$file" '{policy: $text}')")"
	done
	guest_fails none curl -sS https://news.lab-site.org/
	dns_not_asked news.lab-site.org
	far_none " > ($NET4|$NET6)"
}

# bats test_tags=smoke
@test "promise 5: written before sent, one record for each attempt, and the counts add up" {
	sandbox p5 --policy "$(policy p5 "$NEWS" '{host: echo.lab-site.org, ports: [7]}')"
	# An echo that stays open: by the time its first byte has arrived at the far side, its record is there.
	background guest p5 "$LAB_DIR/hold.py" "$LAB/tmp/held" tcp:echo.lab-site.org:7/4
	payload_arrived() { since_mark witness.log | grep -qE "> ($NET4\.|$NET6:)$ECHO 7 [A-Z]*P"; }
	wait_for 3 payload_arrived
	equal "open record" 1 "$(log_count p5 '.kind == "flow" and .name == "echo.lab-site.org" and .end == "open"')"
	background_end

	for i in 1 2 3 4 5; do
		guest p5 curl -sS -4 -o /dev/null https://news.lab-site.org/
		guest_fails p5 curl -sSk "https://$NET4.$OTHER/"
	done
	equal "requests at the far side" 5 "$(web_log | wc -l)"
	log_has p5 '.dst == "45.45.45.10" and .end == "fin"'
	equal "allowed" 5 "$(log_count p5 '.kind == "flow" and .name == "news.lab-site.org"')"
	refused() { [[ $(log_json p5 | jq -s '[.[] | select(.kind == "deny" and .dst == "45.45.45.20") | .count // 1] | add') == 5 ]]; }
	wait_for 5 refused
}

# bats test_tags=smoke
@test "promise 6: refusals are fast and explain themselves" {
	sandbox p6 --policy "$(policy p6 "$NEWS")"
	# Refused, and within a quarter of a second by the client's own clock (it takes a tenth of a millisecond; the rest is
	# for a busy machine, and one that stood still has three tries): refused_soon WANTED-END CLIENT-WORD...
	refused_soon() {
		local wanted=$1 try
		shift
		for try in 1 2 3; do
			run -1 --separate-stderr guest p6 "$LAB_DIR/client.py" "$@"
			# shellcheck disable=SC2154 # bats sets it
			equal "how it ended ($*)" "$wanted" "$(jq -r .end <<<"$stderr")" || return 1
			! jq -e '.ms < 250' <<<"$stderr" >/dev/null || return 0
		done
		fail "not refused soon in $try tries ($*): $stderr"
	}
	# DNS says why.
	guest p6 dig www.lab-b.net >"$LAB/tmp/dig"
	matches "extended error" 'EDE: .*' "$(cat "$LAB/tmp/dig")"
	# TCP without a lease: reset at the SYN, not a timeout. IPv4 and IPv6.
	refused_soon refused tcp "$NET4.$OTHER" 443
	refused_soon refused tcp "$NET6:$OTHER" 443
	# TLS with a wrong name: reset after the hello.
	guest p6 curl -sS -4 -o /dev/null https://news.lab-site.org/
	refused_soon rst tcp "$NET4.$WEB" 443 --tls www.lab-b.net
	# HTTP: 403 and a body that says why.
	run guest p6 curl -sS -H 'Host: www.lab-b.net' http://news.lab-site.org/ -w '%{http_code}'
	matches "status" '403$' "$output"
	matches "body" 'postern|host' "$output"
	# UDP: ICMP port unreachable, which a socket sees as "connection refused".
	refused_soon refused udp "$NET4.$OTHER" 5000 hello
	refused_soon refused udp "$NET6:$OTHER" 5000 hello
	far_none " > ($NET4\.|$NET6:)$OTHER "
}

@test "promise 7: cost does not grow with the fleet" {
	# The measure is in tests/bench; here: with a hundred sandboxes more, nothing of a sandbox is bigger or slower by
	# an order of magnitude, and each has a table of its own of the same size.
	sandbox one --policy "$(policy p7 "$NEWS")"
	local before after rules_before rules_after i
	# Milliseconds of a request, the quickest of five.
	request() {
		local i
		for ((i = 0; i < 5; i++)); do
			took guest one curl -sS https://news.lab-site.org/
		done | sort -n | head -n 1
	}
	run -0 guest one curl -sS -o /dev/null https://news.lab-site.org/
	before=$(request)
	rules_before=$(nsenter --net=/run/netns/postern-one nft list ruleset | wc -l)
	for ((i = 0; i < 100; i++)); do
		postern attach "fleet$i" --policy "$LAB/tmp/p7.yaml"
	done
	run -0 guest one curl -sS -o /dev/null https://news.lab-site.org/
	after=$(request)
	rules_after=$(nsenter --net=/run/netns/postern-one nft list ruleset | wc -l)
	((after < before * 10 + 100)) || fail "a request took $before ms alone and $after ms beside a hundred others"
	((rules_after <= rules_before + 4)) || fail "the table grew from $rules_before to $rules_after lines"
	for ((i = 0; i < 100; i++)); do
		postern detach "fleet$i"
	done
}
