#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# mode: learn lets through what no rule allows, says so of each record, and nothing that is refused otherwise.

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
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 20 "$LAB/tmp/held" "$LAB/posternd.log" || true
	background_end
	rm -f "$LAB/tmp/held"
	all_gone
}

# A policy of lines: write_policy NAME TEXT; prints its path
write_policy() {
	printf 'version: 1\n%s\n' "$2" >"$LAB/tmp/$1.yaml"
	echo "$LAB/tmp/$1.yaml"
}

LEARN="mode: learn
allow:
  - host: www.lab-a.com
  - {cidr: $NET4.$ECHO/32, ports: [9000]}
deny:
  - host: lab-b.net
  - cidr: $NET4.$CDN/32"

@test "learning: what no rule allows passes, by its name, and every record says so" {
	sandbox l1 --policy "$(write_policy l1 "$LEARN")"
	run -0 guest l1 curl -sS https://news.lab-site.org/
	equal "page" "lab web server for news.lab-site.org" "$output"
	run -0 guest l1 curl -sS -6 http://news.lab-site.org/
	log_has l1 '.kind == "dns" and .qname == "news.lab-site.org" and .verdict == "allowed" and .learned and .rule == "mode: learn"'
	log_has l1 '.kind == "flow" and .name == "news.lab-site.org" and .dport == 443 and .learned and .name_source == "sni"'
	log_has l1 '.kind == "flow" and .name == "news.lab-site.org" and .dport == 80 and .learned and .name_source == "host"'
	# A port that no rule names, of a name that was resolved.
	run -0 --separate-stderr guest l1 "$LAB_DIR/client.py" --family 6 --half-close tcp echo.lab-site.org 9000 hello
	equal "echo" hello "$output"
	log_has l1 '.kind == "flow" and .dport == 9000 and .learned and .name == "echo.lab-site.org" and .name_source == "lease"'
	run -0 postern test l1 news.lab-site.org
	matches "end" '^allowed: by no rule, but mode: learn lets it through$' "$output"
	matches "test" "mode: learn lets it through" "$output"
	run -1 postern test l1 lab-b.net
	run -1 postern test l1 "$NET4.$OTHER:443"
	# What a rule allows is not marked, be it by name or by address.
	run -0 --separate-stderr guest l1 "$LAB_DIR/client.py" --family 4 --half-close tcp echo.lab-site.org 9000 hello
	log_has l1 '.kind == "flow" and .dport == 9000 and .name_source == "cidr" and (has("learned") | not)'
	run -0 guest l1 curl -sS https://www.lab-a.com/
	log_has l1 '.kind == "flow" and .name == "www.lab-a.com" and .rule != "mode: learn" and (has("learned") | not)'
}

@test "learning: denies, proofs of name, the never list and UDP are as ever" {
	sandbox l2 --policy "$(write_policy l2 "$LEARN")"
	guest_fails l2 curl -sS https://lab-b.net/
	log_has l2 '.kind == "dns" and .qname == "lab-b.net" and .reason == "rule_deny"'
	guest_fails l2 curl -sSk "https://$NET4.$WEB/"
	guest_fails l2 "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 7 hello
	log_has l2 '.dst == "'"$NET4.$ECHO"'" and .reason == "not_leased" and .verdict == "denied"'
	guest_fails l2 "$LAB_DIR/client.py" tcp "$NET4.$CDN" 80 hello
	far_none "^tcp .* > ($NET4\.$ECHO|$NET4\.$CDN|$NET4\.$WEB) .*S"
	run -0 guest l2 curl -sS -o /dev/null https://www.lab-a.com/
	mark
	guest_fails l2 curl -sSk -4 --resolve "news.lab-site.org:443:$NET4.$SHARED" https://news.lab-site.org/
	log_has l2 '.reason == "sni_mismatch" and .name == "news.lab-site.org"'
	guest_fails l2 openssl s_client -connect "$NET4.$SHARED:443" -noservername
	log_has l2 '.reason == "sni_missing"'
	guest_fails l2 "$LAB_DIR/client.py" udp echo.lab-site.org 5000 hello
	guest_fails l2 curl -sS http://metadata.google.internal/
	guest_fails l2 curl -sS http://metadata.lab-evil.net/
	guest_fails l2 curl -sS -m 2 http://169.254.169.254/
	log_has l2 '.kind == "dns" and .reason == "dns_rebind"'
	far_none "^udp .* 5000 "
	far_none "^tcp .* > $NET4\.$SHARED 443 .*P"
	far_no_trap
}

@test "learning is said loudly, and its end cuts what only it let through" {
	sandbox l3 --policy "$(write_policy l3 "$LEARN")"
	postern status >"$LAB/tmp/status" || true
	matches "status" "learning: l3" "$(cat "$LAB/tmp/status")"
	equal "mode" learn "$(postern show l3 -o json | jq -r .mode)"
	background guest l3 "$LAB_DIR/hold.py" "$LAB/tmp/held" tls:www.lab-a.com:443 tcp:echo.lab-site.org:7
	opened() { jq -e -s '[.[] | select(.event == "open")] | length == 2' "$LAB/tmp/held"; }
	wait_for 10 opened
	run -0 postern policy apply l3 "$(write_policy l3 "${LEARN/learn/enforce}")"
	ended() { jq -e -s 'any(.[]; .event == "end" and .what == "tcp:echo.lab-site.org:7")' "$LAB/tmp/held"; }
	wait_for 10 ended
	log_has l3 '.name == "echo.lab-site.org" and .end == "policy" and .reason == "revoked"'
	mark
	guest_fails l3 curl -sS https://news.lab-site.org/
	dns_not_asked news.lab-site.org
	postern status >"$LAB/tmp/status" || true
	! grep -q learning "$LAB/tmp/status"
	equal "still there" 0 "$(jq -s '[.[] | select(.event == "end" and .what == "tls:www.lab-a.com:443")] | length' "$LAB/tmp/held")"
}
