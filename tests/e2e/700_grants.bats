#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Grants end and limits hold in the data path, at their second and at their byte, and no restart makes them whole again.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	head -c $((64 << 20)) /dev/zero >"$LAB/web/html/64MiB"
}

setup() {
	mark
}

teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 20 "$LAB/tmp/background.out" "$LAB/tmp/held" "$LAB/posternd.log" || true
	background_end
	rm -f "$LAB/tmp/held" "$LAB/tmp/background.out" "$LAB/tmp/slow."*
	! posternd_gone || posternd_start
	all_gone
}

# A policy of lines: write_policy NAME TEXT; prints its path
write_policy() {
	printf 'version: 1\n%s\n' "$2" >"$LAB/tmp/$1.yaml"
	echo "$LAB/tmp/$1.yaml"
}
# A point in time, in whole seconds: in_seconds N
in_seconds() { date -u -d "@$(($(date +%s) + $1))" +%Y-%m-%dT%H:%M:%SZ; }

client() { guest "$1" "$LAB_DIR/client.py" "${@:2}"; }
# One round with the echo: echoes NAME [-4|-6]
echoes() {
	run -0 --separate-stderr client "$1" --family "${2:-4}" --half-close tcp echo.lab-site.org 7 hello
	equal "echo" hello "$output"
}
echoes_not() { guest_fails "$1" "$LAB_DIR/client.py" --family "${2:-4}" --half-close tcp echo.lab-site.org 7 hello; }

hold() {
	background guest "$1" "$LAB_DIR/hold.py" "$LAB/tmp/held" "${@:2}"
	local what
	for what in "${@:2}"; do
		wait_for 10 held "$what" open
	done
}
held() {
	jq -e -s --arg what "$1" --arg event "$2" "any(.[]; .what == \$what and .event == \$event and (${3:-true}))" "$LAB/tmp/held"
}

# A download that would take a minute; when it ends, what curl said: slow NAME URL, in the background
slow() {
	# shellcheck disable=SC2016 # expanded inside
	background guest "$1" sh -c 'curl -sS --limit-rate 1M "$1" -o /dev/null -w "%{size_download}" >"$0.size" 2>&1
		echo "$? $(date +%s.%N)" >"$0.end"' "$LAB/tmp/slow.$1" "$2"
}
slow_ended() { [[ -s $LAB/tmp/slow.$1.end ]]; }

@test "an expiry cuts a live download at its second, and the log says so; what another rule allows goes on" {
	local deadline ended status cut
	deadline=$(in_seconds 8)
	sandbox x1 --policy "$(write_policy x1 "allow:
  - host: news.lab-site.org
    expires: $deadline
  - host: echo.lab-site.org
    ports: [7]
    expires: $deadline
  - host: echo.lab-site.org
    ports: [7, 22]")"
	hold x1 tcp:echo.lab-site.org:7/4 tcp:echo.lab-site.org:7/6
	slow x1 https://news.lab-site.org/64MiB
	wait_for 5 bash -c "source '$LAB_DIR/lab.bash'; [[ -n \$(far_packets '> $NET4.$WEB 443|> $NET6:$WEB 443') ]]"
	sleep 1
	! slow_ended x1 || fail "ended before its time: $(cat "$LAB/tmp/slow.x1".*)"
	wait_for 10 slow_ended x1
	read -r status ended <"$LAB/tmp/slow.x1.end"
	[[ $status == 56 || $status == 18 || $status == 92 ]] || fail "curl ended with $status: $(cat "$LAB/tmp/slow.x1.size")"
	log_has x1 '.name == "news.lab-site.org" and .end == "policy" and .reason == "expired" and .verdict == "allowed"'
	cut=$(log_json x1 | jq -r 'select(.name == "news.lab-site.org" and .end == "policy") | .closed')
	# The guest has what was on its way to read first, at its own speed.
	awk -v cut="$(date -d "$cut" +%s.%N)" -v end="$ended" -v deadline="$(date -d "$deadline" +%s)" \
		'BEGIN {exit !(cut >= deadline && cut < deadline + 1.5 && end >= cut && end < deadline + 5)}' ||
		fail "cut at $cut, ended at $(date -d "@$ended"), not at $deadline"
	log_has x1 '.event == "grant_expired" and .detail.rule == "allow news.lab-site.org"'
	equal "ends" 2 "$(log_count x1 '.event == "grant_expired"')"

	# The other rule's connections live, and nothing more of the expired one's.
	mark
	guest_fails x1 curl -sS https://news.lab-site.org/
	log_has x1 '.kind == "dns" and .qname == "news.lab-site.org" and .reason == "expired" and .verdict == "denied"
		and (.rule | test("news.lab-site.org"))'
	guest_fails x1 curl -sS --resolve "news.lab-site.org:443:$NET4.$WEB" https://news.lab-site.org/
	guest_fails x1 curl -sS --resolve "news.lab-site.org:443:[$NET6:$WEB]" https://news.lab-site.org/
	dns_not_asked news.lab-site.org
	far_none "^tcp .* > ($NET4\.$WEB|$NET6:$WEB) 443 .*S"
	echoes x1
	background_end
	held tcp:echo.lab-site.org:7/4 alive
	held tcp:echo.lab-site.org:7/6 alive
}

@test "an address rule's end: its packets still come to the gateway, which refuses them and says why" {
	sandbox x2 --policy "$(write_policy x2 "allow:
  - cidr: $NET4.$ECHO/32
    ports: [7]
    expires: $(in_seconds 5)
  - cidr: '$NET6:$ECHO/128'
    ports: [7]
    expires: $(in_seconds 5)")"
	hold x2 "tcp:$NET4.$ECHO:7"
	wait_for 10 held "tcp:$NET4.$ECHO:7" end
	log_has x2 '.end == "policy" and .reason == "expired"'
	mark
	guest_fails x2 "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 7 hello
	guest_fails x2 "$LAB_DIR/client.py" tcp "$NET6:$ECHO" 7 hello
	log_has x2 '.verdict == "denied" and .reason == "expired" and .dst == "'"$NET4.$ECHO"'" and (.rule | test(":7"))'
	log_has x2 '.verdict == "denied" and .reason == "expired" and .dst == "'"$NET6:$ECHO"'"'
	far_none "^tcp .* 7 .*S"
}

@test "a deny rule's end opens at its second what another rule allows, by address and by name" {
	local deadline
	deadline=$(in_seconds 6)
	sandbox x3 --policy "$(write_policy x3 "allow:
  - cidr: $NET4.$ECHO/32
    ports: [7]
  - host: news.lab-site.org
deny:
  - cidr: $NET4.$ECHO/32
    expires: $deadline
  - host: '*.lab-site.org'
    expires: $deadline")"
	guest_fails x3 "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 7 hello
	guest_fails x3 curl -sS https://news.lab-site.org/
	far_none "^tcp .* (7|443) .*S"
	dns_not_asked news.lab-site.org
	log_has x3 '.verdict == "denied" and .reason == "rule_deny" and .dst == "'"$NET4.$ECHO"'"'
	log_has x3 '.kind == "dns" and .verdict == "denied" and .reason == "rule_deny"'
	opened() { [[ $(client x3 --half-close tcp "$NET4.$ECHO" 7 hello 2>/dev/null) == hello ]]; }
	wait_for 10 opened
	(($(date +%s) >= $(date -d "$deadline" +%s))) || fail "open before $deadline"
	run -0 guest x3 curl -sS https://news.lab-site.org/
	equal "ends" 2 "$(log_count x3 '.event == "grant_expired"')"
}

@test "an end that comes while nothing runs is recorded at the next start, late and once" {
	local ends
	ends=$(in_seconds 3)
	sandbox x4 --policy "$(write_policy x4 "allow:
  - host: news.lab-site.org
    expires: $ends
  - host: echo.lab-site.org
    ports: [7]")"
	run -0 guest x4 curl -sS https://news.lab-site.org/
	posternd_kill9_all
	over() { (($(date +%s) > $(date -d "$ends" +%s))); }
	wait_for 10 over
	posternd_start
	wait_for 10 all_ready
	log_has x4 '.event == "grant_expired" and .detail.rule == "allow news.lab-site.org" and .detail.noticed == "start"
		and .detail.ended == "'"$ends"'"'
	mark
	guest_fails x4 curl -sS https://news.lab-site.org/
	dns_not_asked news.lab-site.org
	posternd_stop
	posternd_start
	wait_for 10 all_ready
	echoes x4
	equal "ends" 1 "$(log_count x4 '.event == "grant_expired"')"
}

USES="allow:
  - host: echo.lab-site.org
    ports: [7]
    uses: 3
  - host: news.lab-site.org"

@test "uses: as many connections as were granted; then neither name nor address, and what lives lives on" {
	sandbox u1 --policy "$(write_policy u1 "$USES")"
	echoes u1 4
	echoes u1 6
	hold u1 tcp:echo.lab-site.org:7/4
	log_has u1 '.event == "grant_used_up" and .detail.rule == "allow echo.lab-site.org:7"'
	mark
	echoes_not u1 4
	log_has u1 '.kind == "dns" and .reason == "expired" and .detail == "used up" and .qname == "echo.lab-site.org"'
	guest_fails u1 "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 7 hello
	log_has u1 '.verdict == "denied" and .reason == "expired" and .detail == "used up" and .dst == "'"$NET4.$ECHO"'"'
	dns_not_asked echo.lab-site.org
	far_none "^tcp .* 7 .*S"
	run -1 postern test u1 echo.lab-site.org:7
	matches "test" 'used up' "$output"
	# An edit changes nothing about it.
	run -0 postern allow u1 www.lab-a.com
	echoes_not u1 4
	run -0 guest u1 curl -sS https://news.lab-site.org/
	background_end
	held tcp:echo.lab-site.org:7/4 alive
	equal "ends" 1 "$(log_count u1 '.event == "grant_used_up"')"
}

@test "uses outlive gateways, a stopped daemon and kill -9 of all of it" {
	sandbox u2 --policy "$(write_policy u2 "$USES")"
	echoes u2 4
	role_signal KILL gateway
	wait_for 10 all_ready
	echoes u2 6
	wait_for 5 grep -q '"uses": 2' "$LAB/state/sandboxes/u2/usage.json"
	posternd_kill9_all
	posternd_start
	wait_for 10 all_ready
	echoes u2 4
	log_has u2 '.event == "grant_used_up"'
	echoes_not u2 4
	role_signal KILL gateway
	wait_for 10 all_ready
	echoes_not u2 4
	posternd_stop
	posternd_start
	wait_for 10 all_ready
	mark
	echoes_not u2 4
	echoes_not u2 6
	far_none "^tcp .* 7 .*S"
	equal "ends" 1 "$(log_count u2 '.event == "grant_used_up"')"
}

@test "a count that cannot be read breaks the sandbox: nothing is reachable" {
	sandbox u3 --policy "$(write_policy u3 "$USES")"
	echoes u3 4
	wait_for 5 test -s "$LAB/state/sandboxes/u3/usage.json"
	posternd_stop
	sed -i 's/"uses": 1/"uses": "none"/' "$LAB/state/sandboxes/u3/usage.json"
	posternd_start
	mark
	echoes_not u3 4
	guest_fails u3 curl -sS https://news.lab-site.org/
	dns_not_asked echo.lab-site.org
	matches "list" broken "$(postern list)"
}

@test "bytes: a soft limit is told of, the hard one cuts at the byte, and a restart does not fill it up" {
	sandbox b1 --policy "$(write_policy b1 "limits:
  download: {soft: 100KiB, hard: 200KiB}
allow:
  - host: echo.lab-site.org
    ports: [7, 9004]
  - host: news.lab-site.org")"
	run -0 --separate-stderr client b1 --family 4 tcp echo.lab-site.org 9004 '102000\n'
	equal "whole" 102000 "$(jq .received <<<"$stderr")"
	equal "no word yet" 0 "$(log_count b1 '.event == "limit_soft"')"
	run --separate-stderr client b1 --family 4 tcp echo.lab-site.org 9004 '1000000\n'
	[[ $status -ne 0 ]]
	(($(jq .received <<<"$stderr") <= 204800 - 102000 + 1)) || fail "too much: $stderr"
	log_has b1 '.event == "limit_soft" and .detail.limit == "download" and .detail.soft == 102400 and .detail.hard == 204800'
	log_has b1 '.end == "policy" and .reason == "limit_download" and .bytes_in == 102801'
	mark
	guest_fails b1 "$LAB_DIR/client.py" tcp echo.lab-site.org 7 hello
	log_has b1 '.verdict == "limited" and .reason == "limit_download" and .dport == 7'
	run -0 guest b1 curl -sS http://news.lab-site.org/
	matches "answer" limit_download "$output"
	far_none "^tcp .* (7|80) .*S"
	role_signal KILL gateway
	wait_for 10 all_ready
	guest_fails b1 "$LAB_DIR/client.py" tcp echo.lab-site.org 7 hello
	wait_for 5 grep -q '"download": 204801' "$LAB/state/sandboxes/b1/usage.json"
	posternd_kill9_all
	posternd_start
	wait_for 10 all_ready
	guest_fails b1 "$LAB_DIR/client.py" tcp echo.lab-site.org 7 hello
	equal "told once" 1 "$(log_count b1 '.event == "limit_soft"')"
	far_none "^tcp .* (7|80) .*S"
}

@test "bytes of one rule: its connections are cut, others go on; HTTP and TLS bodies up are counted as they go" {
	sandbox b2 --policy "$(write_policy b2 "allow:
  - host: bytes.lab-site.org
    ports: [80, 443]
    limits:
      upload: 100kB
  - host: news.lab-site.org")"
	head -c 300000 /dev/zero >"$LAB/tmp/body"
	run guest b2 curl -sS -4 -T "$LAB/tmp/body" http://bytes.lab-site.org/x
	[[ $status -ne 0 ]]
	log_has b2 '.name == "bytes.lab-site.org" and .dport == 80 and .end == "policy" and .reason == "limit_upload"
		and .bytes_out == 100001'
	# The reset that ends it overtakes what its origin has not read yet.
	arrived() { origin_log 'select(.event == "close" and .port == 80)' | jq -e -s 'length == 1 and .[0].bytes_in <= 100001'; }
	wait_for 5 arrived
	guest_fails b2 openssl s_client -connect bytes.lab-site.org:443 -servername bytes.lab-site.org
	log_has b2 '.name == "bytes.lab-site.org" and .dport == 443 and .verdict == "limited" and .reason == "limit_upload"'
	run -0 guest b2 curl -sS -T "$LAB/tmp/body" https://news.lab-site.org/api/upload
	equal "another rule's body" 300000 "$(jq .body <<<"$output")"
	log_has b2 '.event == "limit_soft" and .detail.limit == "upload" and .detail.soft == 80000
		and (.detail.rule | test("bytes.lab-site.org"))'
}

@test "connections: at a time, and new ones within a minute" {
	sandbox c1 --policy "$(write_policy c1 "limits:
  connections: 2
  new_connections_per_minute: {soft: 2, hard: 4}
allow:
  - host: echo.lab-site.org
    ports: [7]")"
	hold c1 tcp:echo.lab-site.org:7/4 tcp:echo.lab-site.org:7/6
	mark
	echoes_not c1 4
	log_has c1 '.verdict == "limited" and .reason == "limit_connections" and .detail == "the sandbox'"'"'s connections"'
	far_none "^tcp .* 7 .*S"
	log_has c1 '.event == "limit_soft" and .detail.limit == "new_connections_per_minute"'
	log_has c1 '.event == "limit_soft" and .detail.limit == "connections"'
	background_end
	echoes c1 4
	echoes c1 6
	mark
	echoes_not c1 4
	log_has c1 '.verdict == "limited" and .reason == "limit_rate" and .dport == 7'
	far_none "^tcp .* 7 .*S"
}

@test "DNS: queries within a second, and different names within a minute" {
	sandbox d1 --policy "$(write_policy d1 "limits:
  dns_queries_per_second: 50
  unique_names_per_minute: {soft: 2, hard: 3}
allow:
  - host: '*.lab-site.org'")"
	local name
	for name in news www echo; do
		run -0 guest d1 dig +short "$name.lab-site.org"
		matches "$name" "$NET4" "$output"
		run -0 guest d1 dig +short -t AAAA "$name.lab-site.org"
	done
	mark
	run -0 guest d1 dig bytes.lab-site.org
	matches "answer" "status: REFUSED" "$output"
	dns_not_asked bytes.lab-site.org
	log_has d1 '.kind == "dns" and .qname == "bytes.lab-site.org" and .verdict == "limited" and .reason == "limit_rate"'
	log_has d1 '.event == "limit_soft" and .detail.limit == "unique_names_per_minute"'
	run -0 guest d1 dig +short news.lab-site.org
	matches "known" "$NET4" "$output"

	sleep 1.2
	# shellcheck disable=SC2016 # expanded inside
	guest d1 python3 -c '
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(2)
question = b"\x04news\x08lab-site\x03org\0\0\x01\0\x01"
for i in range(200):
    sock.sendto(i.to_bytes(2, "big") + b"\x01\0\0\1\0\0\0\0\0\0" + question, (sys.argv[1], 53))
refused = answered = 0
for i in range(200):
    if sock.recv(4096)[3] & 15 == 5: refused += 1
    else: answered += 1
print(answered, refused)' "$GATEWAY4" >"$LAB/tmp/out"
	read -r answered refused <"$LAB/tmp/out"
	((answered >= 50 && answered <= 60 && answered + refused == 200)) || fail "answered $answered, refused $refused"
	counted() {
		log_json d1 | jq -e -s --argjson n "$refused" '[.[] | select(.kind == "dns" and .reason == "limit_rate" and
			(.detail | test("queries per second"))) | .count] | add == $n'
	}
	wait_for 5 counted
}

@test "allow --uses: so many from now on, shown as used, granted anew by the same words" {
	sandbox g1 --policy "$(write_policy g1 "allow:
  - host: news.lab-site.org")"
	run -0 postern allow g1 echo.lab-site.org:7 --uses 1 --for 1h
	matches "answer" '\+allow echo.lab-site.org:7 until 20.*, 1 use$' "$output"
	echoes g1 4
	echoes_not g1 4
	run -0 postern show g1
	matches "show" 'allow echo.lab-site.org:7 .*until 20.*, 1 of 1 used' "$output"
	run -0 postern allow g1 echo.lab-site.org:7 --uses 2
	run -0 postern show g1
	matches "show" '1 of 3 used' "$output"
	echoes g1 4
	echoes g1 6
	mark
	echoes_not g1 4
	far_none "^tcp .* 7 .*S"
	equal "ends" 2 "$(log_count g1 '.event == "grant_used_up"')"
	run -0 postern revoke g1 echo.lab-site.org:7
	run -0 postern allow g1 echo.lab-site.org:7 --uses 1
	echoes g1 6
	echoes_not g1 6
	# Without a count: any number.
	run -0 postern allow g1 echo.lab-site.org:7
	echoes g1 4
	echoes g1 6
	run -2 postern allow g1 echo.lab-site.org:7 --uses 0
	run -2 postern allow g1 echo.lab-site.org:7 --uses some
	run -2 postern deny g1 echo.lab-site.org:7 --uses 1
	equal "API" 400 "$(api POST /v1/sandboxes/g1/rules '{"action":"deny","rules":["x.lab-site.org"],"uses":1}')"
}
