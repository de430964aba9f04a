#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Ten minutes: a program reads the audit database and does not let go, while sandboxes go on connecting.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/unrecorded

READ_S=600
DB=$LAB/state/audit/audit.db

setup_file() {
	lab_up
	posternd_start
}

setup() {
	mark
}

teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 20 "$LAB/posternd.log"
	background_end
	all_gone
}

# Is the log no longer than before it has to be started anew?
wal_is_short() { (($(stat -c %s "$DB-wal") < 80 << 20)); }
alarms() { postern log --kind event -o json | grep -c '"event":"audit_alarm"' || true; }

@test "F-23: a reader that holds a transaction for ten minutes under load costs disk space and an alarm, and nothing else" {
	sandbox reader --policy "$(policy reader "${RULES[@]}" "{cidr: $NET4.$ECHO/32, ports: [7]}")"
	hold reader
	mkfifo "$LAB/tmp/reader.in"
	sqlite3 "$DB" <"$LAB/tmp/reader.in" >"$LAB/tmp/reader.out" 2>&1 3>&- 4>&- &
	local reader=$!
	exec {READER}>"$LAB/tmp/reader.in"
	printf 'BEGIN; SELECT count(*) FROM connections; SELECT 424242;\n' >&"$READER"
	wait_for 5 grep -q 424242 "$LAB/tmp/reader.out"
	background guest reader "$LAB_DIR/attempts.py" --pause 0.005 --workers 4 "$LAB/tmp/tries" \
		"$NET4.$ECHO:7" "$NET4.$OTHER:443"
	local began=$SECONDS largest=0 size
	while ((SECONDS - began < READ_S)); do
		sleep 5
		size=$(stat -c %s "$DB-wal")
		((size <= largest)) || largest=$size
		((size < 1200 << 20)) || fail "the -wal has $size bytes"
		# Below the limit everybody is served; at it nobody is, and is told so.
		((size > 1000 << 20)) || all_ready || fail "out with a -wal of $size bytes"
	done
	echo "# the -wal grew to $((largest >> 20)) MiB" >&3
	((largest < 70 << 20)) || (($(alarms) > 0)) || fail "no alarm"
	printf 'SELECT count(*) FROM connections;\n' >&"$READER"
	exec {READER}>&-
	wait "$reader"
	equal "rows that the reader saw, at its beginning and at its end" 1 "$(grep -v 424242 "$LAB/tmp/reader.out" | sort -u | wc -l)"
	# All that was made meanwhile goes into the database, and the log is short again.
	wait_for 60 wal_is_short
	background_end
	held_alive
	wait_for 10 all_ready
	run -0 postern verify
}
