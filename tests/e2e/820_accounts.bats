#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Is anything missing? What came in, counted where it arrives, is what is on record, counted in the log's rows: by kind and
# verdict, for each sandbox and gateway, after everything that a guest can do and through crashes and restarts.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/raw

DB=$LAB/state/audit/audit.db
RULES=('{host: news.lab-site.org, ports: [443, 80]}' '{host: echo.lab-site.org, ports: [7]}'
	"{cidr: $NET4.$WEB/32, ports: [9999]}" "{cidr: '$NET6:$WEB/128', ports: [9999]}"
	"{cidr: $NET4.$ECHO/32, ports: [7], udp: true}" "{cidr: '$NET6:$ECHO/128', ports: [7], udp: true}")

setup_file() {
	lab_up
	posternd_start
}

setup() {
	mark
}

teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 20 "$LAB/posternd.log"
	! posternd_gone || posternd_start
	all_gone
}

sql() { sqlite3 -readonly "$DB" "$1"; }
sandbox_id() { sql "SELECT max(id) FROM sandboxes WHERE name = '$1'"; }

# box NAME [line of its policy...]
box() {
	local name=$1 file
	shift
	file=$(policy "$name" "${RULES[@]}")
	printf '%s\n' "$@" >>"$file"
	sandbox "$name" --policy "$file"
}

# A bit of everything that gets a record: some_traffic NAME
some_traffic() {
	local name=$1 to
	guest "$name" curl -4 -sS -o /dev/null https://news.lab-site.org/
	guest "$name" curl -6 -sS -o /dev/null http://news.lab-site.org/
	guest_fails "$name" curl -sS -o /dev/null https://lab-b.net/ # DNS says no
	guest_fails "$name" curl -4 -k -sS -o /dev/null --resolve "lab-b.net:443:$NET4.$WEB" https://lab-b.net/
	# On one connection, a request for another host behind one that is allowed.
	guest "$name" "$LAB_DIR/client.py" tcp "$NET4.$WEB" 80 --half-close \
		'GET / HTTP/1.1\r\nHost: news.lab-site.org\r\n\r\nGET / HTTP/1.1\r\nHost: lab-b.net\r\n\r\n' || true
	for to in "$NET4.$WEB" "$NET6:$WEB"; do
		guest_fails "$name" "$LAB_DIR/client.py" tcp "$to" 9999 # nobody listens there
		guest_fails "$name" "$LAB_DIR/client.py" tcp "$to" 22
	done
	guest "$name" dig +tcp +short "@$GATEWAY6" echo.lab-site.org
	for to in "$NET4.$ECHO" "$NET6:$ECHO"; do
		guest "$name" "$LAB_DIR/client.py" udp "$to" 7 hello
	done
	# What is no query; spoofed; never; QUIC; ping.
	raw "$name" --listen 0 "udp dst=$GATEWAY4 dport=53 data=hex:123481800000000000000000" \
		"tcp src=8.8.8.8 dst=$NET4.$WEB dport=443" "tcp src=2a00::1 dst=$NET6:$WEB dport=443" \
		"udp dst=10.0.0.5 dport=80" "udp dst={$NET4.$WEB|$NET6:$WEB} dport=443" "icmp dst={8.8.8.8|2a00::8}"
}

FLOOD=("tcp dst=$NET4.$OTHER dport={101..5100}" "tcp dst=$NET6:$OTHER dport={101..5100}" "udp dst=$NET4.$OTHER dport=9 count=20000"
	"udp dst=$NET6:$OTHER dport=9 count=10000" "icmp dst=8.8.8.8 count=6000" "tcp src=9.9.9.9 dst=$NET4.$WEB dport=443 count=4000")

# Rows of a sandbox by verdict (allowed denied limited failed), and the account's word on them, from the gateways whose
# account is CONDITION: books ID CONDITION; two equal lines when all is well
books() {
	sql "WITH a AS (SELECT id >> 31 AS epoch, * FROM accounts WHERE sandbox_id = $1 AND $2),
		r(kind, verdict, n) AS (
			SELECT iif(c.last_ts IS NULL, 'connection', 'packet'), c.verdict, c.count FROM connections c JOIN a
				ON c.id >> 31 >= a.epoch AND c.id >> 31 < a.epoch + 64 WHERE c.sandbox_id = $1
			UNION ALL SELECT 'query', d.verdict, d.count FROM dns d JOIN a
				ON d.id >> 31 >= a.epoch AND d.id >> 31 < a.epoch + 64 WHERE d.sandbox_id = $1),
		k(kind) AS (VALUES ('connection'), ('query'), ('packet'))
		SELECT group_concat(line, '; ') FROM (SELECT kind || ' ' || coalesce(sum(n), 0) || ':' ||
			coalesce(sum(n) FILTER (WHERE verdict = 0), 0) || ' ' || coalesce(sum(n) FILTER (WHERE verdict = 1), 0)
			|| ' ' || coalesce(sum(n) FILTER (WHERE verdict = 2), 0) || ' ' ||
			coalesce(sum(n) FILTER (WHERE verdict = 3), 0) AS line FROM k LEFT JOIN r USING (kind)
			GROUP BY kind ORDER BY kind = 'packet', kind);
		SELECT 'connection ' || sum(connections) || ':' || sum(connections_allowed) || ' ' || sum(connections_denied) || ' '
			|| sum(connections_limited) || ' ' || sum(connections_failed) || '; query ' || sum(queries) || ':' ||
			sum(queries_allowed) || ' ' || sum(queries_denied) || ' ' || sum(queries_limited) || ' ' ||
			sum(queries_failed) || '; packet ' || sum(packets) || ':' || sum(packets_allowed) || ' ' ||
			sum(packets_denied) || ' ' || sum(packets_limited) || ' ' || sum(packets_failed)
		FROM accounts WHERE sandbox_id = $1 AND $2"
}

finals() { sql "SELECT group_concat(final, ' ') FROM (SELECT final FROM accounts WHERE sandbox_id = $1 ORDER BY id)"; }
finals_are() { [[ $(finals "$1") == "$2" ]]; }

# The final accounts of a sandbox say what the rows say: balanced ID FINALS, with the final flags of all its accounts
balanced() {
	wait_for 10 finals_are "$1" "$2" || fail "final: $(finals "$1"), not $2"
	books "$1" "final = 1" >"$LAB/tmp/books"
	[[ $(sort -u "$LAB/tmp/books" | wc -l) == 1 ]] || fail "rows, account:" "$(cat "$LAB/tmp/books")"
}

# What a gateway that crashed had said is in the rows, and maybe more: bounded ID
bounded() {
	local rows account
	{ read -r rows; read -r account; } < <(books "$1" "final = 0" | sed 's/[a-z]* [0-9]*:\([^;]*\)/\1/g')
	python3 - "$rows" "$account" <<-'END' || fail "rows: $rows" "account: $account"
		import sys
		total = lambda text: [sum(map(int, part.split())) for part in text.split(";")]
		sys.exit(not all(row >= counted for row, counted in zip(total(sys.argv[1]), total(sys.argv[2]))))
	END
}

# Of all of them: nothing lost, and the log is what was written.
nothing_lost() {
	equal "records lost" 0 "$(sql "SELECT count(*) FROM v_events WHERE event = 'records_lost'")"
	run -0 postern verify
}

@test "F-12: everything that comes in has its record, in two sandboxes, by kind and verdict" {
	box one 'limits:' '  dns_queries_per_second: 100'
	box two
	some_traffic one
	some_traffic two
	# Beyond the rates: questions; and flows of UDP.
	guest one "$LAB_DIR/burst.py" dns "$GATEWAY4" lab-b.net 14000
	guest one "$LAB_DIR/burst.py" dns "$GATEWAY6" lab-b.net 3000
	guest two "$LAB_DIR/burst.py" udp "$NET4.$ECHO" 7 400
	guest two "$LAB_DIR/burst.py" udp "$NET6:$ECHO" 7 300
	run -0 raw two --listen 0 "${FLOOD[@]}"
	matches "sent" "^sent 50000" "$output"
	wait_for 40 adds_up two || fail "$(cat "$LAB/tmp/sums")"
	wait_for 20 adds_up one || fail "$(cat "$LAB/tmp/sums")"
	local one two
	one=$(sandbox_id one)
	two=$(sandbox_id two)
	inside two nft -j list counters | jq '[.nftables[].counter | select(. != null) | .packets] | add' >"$LAB/tmp/kernel"
	sandbox_gone one
	sandbox_gone two
	balanced "$one" 1
	balanced "$two" 1
	# Not by having nothing to count.
	equal "kinds and verdicts that are there" "1 1 1 1 1 1" "$(sql "SELECT connections_allowed >= 5, connections_denied >= 2,
		connections_failed >= 2, queries_denied > 2, queries_limited > 0, packets_denied > 5 FROM accounts
		WHERE sandbox_id = $one" | tr '|' ' ')"
	equal "a burst of packets, and of UDP flows" "1 1" "$(sql "SELECT packets_denied >= 50000, packets_limited > 0 FROM accounts
		WHERE sandbox_id = $two" | tr '|' ' ')"
	equal "questions, counting those that the resolver's queue had no room for" "1" "$(sql "SELECT queries >= 17000 FROM accounts
		WHERE sandbox_id = $one")"
	# The kernel's counters, apart from what the relay refused.
	equal "refused by the kernel" "$(cat "$LAB/tmp/kernel")" "$(sql "SELECT sum(count) FROM v_connections JOIN sandboxes s
		ON s.name = sandbox AND s.id = $two WHERE last_time IS NOT NULL AND verdict = 'denied'")"
	nothing_lost
}

@test "F-12, F-25: a gateway that is killed in the middle leaves what it said; the next one's account is whole" {
	box killed
	box other
	some_traffic killed
	some_traffic other
	local killed other
	killed=$(sandbox_id killed)
	other=$(sandbox_id other)
	raw killed --listen 0 "udp dst=$NET4.$OTHER dport=9 count=3000" &
	role_signal KILL gateway
	wait
	wait_for 15 all_ready
	# What the kernel refused while there was no gateway is the next one's to tell.
	some_traffic killed
	sandbox_gone killed
	sandbox_gone other
	balanced "$killed" "0 1"
	balanced "$other" "0 1"
	bounded "$killed"
	bounded "$other"
	(($(sql "SELECT count(*) FROM v_events WHERE event = 'role_crash' AND detail ->> '$.role' = 'gateway'") >= 1))
	nothing_lost
}

@test "F-12: a restart in order ends the accounts, and begins others" {
	box stays
	some_traffic stays
	local stays starts
	stays=$(sandbox_id stays)
	posternd_stop
	balanced "$stays" 1
	posternd_start
	wait_for 15 all_ready
	some_traffic stays
	sandbox_gone stays
	balanced "$stays" "1 1"
	equal "after a stop" "" "$(sql "SELECT detail ->> '$.after' FROM v_events WHERE event = 'daemon_start' ORDER BY id DESC
		LIMIT 1")"
	nothing_lost
}

@test "F-12, F-25: a daemon that is killed leaves what it said, and the next start says so" {
	box crash
	some_traffic crash
	local crash
	crash=$(sandbox_id crash)
	posternd_kill9_all
	posternd_start
	wait_for 15 all_ready
	equal "after a crash" crash "$(sql "SELECT detail ->> '$.after' FROM v_events WHERE event = 'daemon_start' ORDER BY id DESC
		LIMIT 1")"
	some_traffic crash
	sandbox_gone crash
	balanced "$crash" "0 1"
	bounded "$crash"
	nothing_lost
}

# Something that befalls them: befall WHAT
befall() {
	case $1 in
	again) # the same name, another sandbox
		postern detach rest1
		postern attach rest1 --netns /run/netns/pl-guest-rest1 --policy "$LAB/tmp/rest1.yaml"
		;;
	gateway | auditor | control) role_signal KILL "$1" ;;
	silence) # of the log, for less time than it takes to give it up
		role_signal STOP auditor
		sleep 0.5
		role_signal CONT auditor
		;;
	lock) # and for more
		sqlite3 "$DB" '.timeout 5000' 'BEGIN IMMEDIATE' '.shell sleep 3' 'COMMIT'
		;;
	edit)
		postern deny rest2 news.lab-site.org
		postern policy apply rest2 "$LAB/tmp/rest2.yaml" || true
		;;
	stop)
		posternd_stop
		posternd_start
		;;
	crash)
		posternd_kill9_all
		posternd_start
		;;
	esac
	wait_for 20 all_ready || fail "after $1"
}

@test "F-12, F-22, F-25: what a guest leaves half done while everything goes wrong has one record each" {
	local seed=${SEED:-$RANDOM} what
	echo "SEED=$seed brings the same again"
	box rest1
	box rest2
	background guest rest1 "$LAB_DIR/restless.py" "$seed.1" "$GATEWAY4" "$NET4.$WEB" "$NET4.$ECHO"
	background guest rest2 "$LAB_DIR/restless.py" "$seed.2" "$GATEWAY4" "$NET4.$WEB" "$NET4.$ECHO"
	for what in $(printf '%s\n' again again gateway auditor control silence lock edit stop crash |
		shuf --random-source=<(yes "$seed")); do
		echo "$what"
		sleep 0.3
		befall "$what"
	done
	sleep 1
	postern detach rest1
	postern detach rest2
	background_end
	ip netns del pl-guest-rest1
	ip netns del pl-guest-rest2
	settled() { (($(sql "SELECT count(*) FROM accounts a WHERE final = 0 AND id = (SELECT max(id) FROM accounts WHERE
		sandbox_id = a.sandbox_id)") == 0)); }
	wait_for 15 settled
	nothing_lost
	equal "attempts that were recorded" 1 "$(sql "SELECT min(connections) > 0 AND min(queries) > 0 FROM (SELECT sum(connections) AS
		connections, sum(queries) AS queries FROM accounts a JOIN sandboxes s ON s.id = a.sandbox_id
		WHERE s.name LIKE 'rest%' GROUP BY s.name)")"
}
