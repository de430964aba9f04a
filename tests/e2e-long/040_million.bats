#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# A million refused packets: the log grows by some rows, their counts add up exactly, and what is allowed meanwhile is
# recorded as if nothing were.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/raw
load ../lab/crash

# To each of these ports of each address so many times; v4 and v6, UDP and TCP: PORTS * TIMES * 4.
PORTS=500
TIMES=${MILLION_TIMES:-500}
DB=$LAB/state/audit/audit.db

setup_file() {
	lab_up
	posternd_start
}

setup() {
	mark
}

teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 20 "$LAB/tmp/background.out" "$LAB/tmp/tries" "$LAB/posternd.log" || true
	background_end
	rm -f "$LAB/tmp/tries" "$LAB/tmp/background.out"
	all_gone
}

log_bytes() { cat "$DB" "$DB-wal" | wc -c; }

@test "F-38, F-12: a million refused packets are some hundred rows that add up, and hide nothing that was allowed" {
	sandbox loud --policy "$(policy loud 'host: news.lab-site.org')"
	sandbox calm --policy "$(policy calm "$ECHO_RULE")"
	background guest calm "$LAB_DIR/attempts.py" --timeout 5 --pause 0.01 "$LAB/tmp/tries" echo.lab-site.org:7
	wait_for 10 works_since echo.lab-site.org:7 0
	local before after rows
	before=$(log_bytes)
	run -0 raw loud --listen 0 "udp dst=$NET4.$OTHER dport={1000..$((999 + PORTS))} count=$TIMES" \
		"tcp dst=$NET4.$OTHER dport={1000..$((999 + PORTS))} flags=S count=$TIMES" \
		"udp dst=$NET6:$OTHER dport={1000..$((999 + PORTS))} count=$TIMES" \
		"tcp dst=$NET6:$OTHER dport={1000..$((999 + PORTS))} flags=S count=$TIMES"
	matches "sent" "sent $((PORTS * TIMES * 4))\$" "$output"
	wait_for 60 adds_up loud
	# Not one of a million is missing, in the kernel or in the log.
	equal "refused packets" $((PORTS * TIMES * 4)) \
		"$(jq -s '.[1] | add' "$LAB/tmp/sums")"
	rows=$(sqlite3 -readonly "$DB" "SELECT count(*) FROM connections c JOIN sandboxes s ON s.id = c.sandbox_id WHERE s.name = 'loud'")
	after=$(log_bytes)
	echo "$rows rows, $(((after - before) / 1024)) KiB more, for $((PORTS * TIMES * 4)) packets" >&3
	((rows < 20000)) || fail "$rows rows"
	((after - before < 64 * 1024 * 1024)) || fail "the log grew by $((after - before)) bytes"
	background_end
	every_connection_once calm >&3
	# None of them failed, none had to wait until it gave up.
	equal "attempts that did not get their answer" 0 "$(jq -s '[.[] | select(.end != "echo")] | length' "$LAB/tmp/tries")"
	far_none "> ($NET4\.|$NET6:)$OTHER "
	run -0 postern verify
	matches "verified" 'OK: nothing was changed' "$output"
}
