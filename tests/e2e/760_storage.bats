#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What lies under the log fails: its disk goes read-only, another program locks the database or reads it for ever, its
# directory disappears. Nothing new is let out meanwhile, what is open goes on, and it recovers by itself with an event.
# Full disks and damage are in 210_audit.bats; a fault at each single call in tests/unit/audit/audit_faults_test.c.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/unrecorded

DB=$LAB/state/audit/audit.db

setup_file() {
	lab_up
	mkdir -p "$LAB/disk"
	mount -t tmpfs -o size=64m,mode=0700,uid=64202 tmpfs "$LAB/disk"
	disk_attach
	posternd_start --wal-limit 4MiB
}

setup() {
	mark
}

teardown() {
	if [[ -z ${BATS_TEST_COMPLETED:-} ]]; then
		tail -n 20 "$LAB/posternd.log"
		tail -n 5 "$LAB/tmp/background.out" "$LAB/tmp/held" "$LAB/tmp/tries" || true
	fi
	reader_end
	role_signal CONT keeper 2>/dev/null || true
	mount -o remount,rw "$LAB/disk" || true
	mountpoint -q "$LAB/state/audit" || disk_attach
	background_end
	rm -f "$LAB/tmp/held" "$LAB/tmp/background.out" "$LAB/tmp/tries"
	wait_for 10 all_ready
	all_gone
}

# The disk of the log, as part of the state directory or not.
disk_attach() {
	mkdir -p "$LAB/state/audit"
	mount --bind "$LAB/disk" "$LAB/state/audit"
}
disk_detach() {
	umount -l "$LAB/state/audit"
	rmdir "$LAB/state/audit"
}

# Another program with the database open, fed with SQL through a pipe: reader SQL..., until reader_end
reader() {
	rm -f "$LAB/tmp/reader.in" "$LAB/tmp/reader.out"
	mkfifo "$LAB/tmp/reader.in"
	sqlite3 "$DB" <"$LAB/tmp/reader.in" >"$LAB/tmp/reader.out" 2>&1 3>&- 4>&- &
	echo $! >"$LAB/tmp/reader.pid"
	exec {READER}>"$LAB/tmp/reader.in"
	printf '%s;\n' "$@" 'SELECT 424242' >&"$READER"
	reader_is_there() { grep -q 424242 "$LAB/tmp/reader.out"; }
	wait_for 5 reader_is_there
}
reader_end() {
	[[ -e $LAB/tmp/reader.pid ]] || return 0
	exec {READER}>&-
	reader_gone() { ! kill -0 "$(cat "$LAB/tmp/reader.pid")" 2>/dev/null; }
	wait_for 5 reader_gone
	rm "$LAB/tmp/reader.pid"
}

# It works again, and the log says that it had not, and why: recovered NAME PATTERN
recovered() {
	wait_for 10 all_ready
	# Every gateway has heard of it in a moment.
	wait_for 5 guest "$1" "$LAB_DIR/client.py" tcp "$NET4.$BYTES" 9001 recorded --half-close
	log_has "$1" '.dst == "45.45.45.40" and .verdict == "allowed" and .bytes_out == 8'
	log_has "$1" '.reason == "audit_unavailable" and .dst == "2600:1:2::40"'
	# The newest one.
	matches "event" "\"why\":\"[^\"]*$2" "$(postern log --kind event -o json | grep audit_resumed | tail -n 1)"
	background_end
	held_alive
}

@test "F-23: a database that another program has locked: refused, and it recovers by itself" {
	sandbox locked --policy "$(policy locked "${RULES[@]}")"
	hold locked
	reader 'BEGIN EXCLUSIVE'
	run ! guest locked "$LAB_DIR/client.py" --timeout 5 tcp "$NET4.$BYTES" 9001 unrecorded --half-close
	far_none "> $NET4\.$BYTES 9001 [A-Z]*P"
	wait_for 10 audit_out
	nothing_new locked
	# What was before can be read meanwhile.
	log_has locked '.kind == "flow" and .name == "echo.lab-site.org"'
	reader_end
	recovered locked 'database is locked'
	equal "files set aside" "" "$(ls "$DB".corrupt-* 2>/dev/null || true)"
}

@test "F-22: a disk that became read-only: refused, nothing set aside, and it recovers by itself" {
	sandbox readonly --policy "$(policy readonly "${RULES[@]}")"
	hold readonly
	# Only a file system on which nothing is open for writing can be remounted.
	role_signal STOP keeper
	role_signal KILL auditor
	remounted() { mount -o remount,ro "$LAB/disk"; }
	wait_for 5 remounted
	role_signal CONT keeper
	wait_for 5 audit_out
	nothing_new readonly
	mount -o remount,rw "$LAB/disk"
	recovered readonly 'Read-only file system'
	equal "files set aside" "" "$(ls "$DB".corrupt-* 2>/dev/null || true)"
	equal "connections that seem to be open" 0 "$(log_count readonly '.kind == "flow" and .end == "open"')"
}

@test "F-24: the audit directory is gone, and is back: refused meanwhile, and no record of before is lost" {
	sandbox gone --policy "$(policy gone "${RULES[@]}")"
	guest gone curl -sS -4 -o /dev/null https://news.lab-site.org/
	hold gone
	disk_detach
	wait_for 10 audit_out
	nothing_new gone
	disk_attach
	recovered gone 'was removed or replaced while in use'
	log_has gone '.kind == "flow" and .name == "news.lab-site.org" and .dport == 443'
}

@test "F-24: in a new audit directory a new database is begun, loudly, and who is attached is in it" {
	sandbox anew --policy "$(policy anew "${RULES[@]}")"
	hold anew
	disk_detach
	wait_for 10 audit_out
	nothing_new anew
	rm -rf "$LAB"/disk/*
	disk_attach
	recovered anew 'was removed or replaced while in use'
	matches "event" '"event":"audit_replaced".*"why":"[^"]*directory' "$(postern log --kind event -o json)"
	equal "attached" 1 "$(sqlite3 -readonly "$DB" "SELECT count(*) FROM sandboxes WHERE name = 'anew' AND detached_ts IS NULL")"
}

wal_size() { stat -c %s "$DB-wal"; }
alarmed() { postern status -o json | jq -e '.missing[] | select(test("a reader holds an old view of the log, its -wal has grown to [1-9]"))'; }
not_alarmed() { ! alarmed; }

@test "F-23: a reader that never ends: an alarm, then nothing new before the disk is full, then it goes on" {
	sandbox reader --policy "$(policy reader "${RULES[@]}" "{cidr: $NET4.$ECHO/32, ports: [7]}")"
	hold reader
	reader 'BEGIN' 'SELECT count(*) FROM connections'
	not_alarmed
	local round
	for ((round = 0; round < 30; round++)); do
		! audit_out || break
		guest reader timeout 1 "$LAB_DIR/attempts.py" --timeout 0.5 --pause 0.01 --workers 4 "$LAB/tmp/tries" \
			"$NET4.$ECHO:7" "$NET4.$OTHER:443" || true
	done
	audit_out
	wait_for 5 alarmed
	(($(wal_size) < 6 << 20)) || fail "the -wal has $(wal_size) bytes"
	run -1 postern status
	matches "status" "missing +audit: the log cannot be written" "$output"
	nothing_new reader
	reader_end
	recovered reader 'wal has grown to 4 MiB and cannot be cut while a reader holds'
	alarm_recorded() { postern log --kind event -o json | grep '"event":"audit_alarm"' | grep -q '"wal_bytes":[0-9]'; }
	wait_for 5 alarm_recorded
	# And the alarm ends.
	wait_for 10 not_alarmed
	matches "what posternd says" "the -wal of .* can shrink again" "$(cat "$LAB/posternd.log")"
}

@test "F-26: the auditor alone has the database open, by SQLite's own descriptors, and its locks stay" {
	sandbox f26 --policy "$(policy f26 "${RULES[@]}")"
	guest f26 curl -sS -4 -o /dev/null https://news.lab-site.org/
	local auditor pid fd
	auditor=$(role_pids auditor)
	for pid in $(role_pids all); do
		[[ $pid == "$auditor" ]] ||
			equal "descriptors of the database in $pid" "" "$(readlink "/proc/$pid"/fd/* | grep "^$DB" || true)"
	done
	# The writer's and the checkpoint thread's; a third that SQLite keeps for the next look, as closing it would drop the
	# others' locks. One shared memory.
	matches "files that the auditor has open" "^[23] $DB 1 $DB-shm 2 $DB-wal 1 $DB.lock\$" \
		"$(readlink "/proc/$auditor"/fd/* | grep "^$DB" | sort | uniq -c | xargs)"
	for fd in "/proc/$auditor"/fd/*; do
		[[ $(readlink "$fd") != "$DB"* ]] || matches "flags of $fd" '^flags:.*02[0-9]{6}$' "$(cat "/proc/$auditor/fdinfo/${fd##*/}")"
	done
	# It looks at its files each second by opening them; closing them again must not drop the process's locks.
	sleep 2.5
	locks_on() { grep " POSIX .* $auditor .*:$(stat -c %i "$1") " /proc/locks; }
	matches "locks of the database" READ "$(locks_on "$DB")"
	matches "locks of the shared memory" READ "$(locks_on "$DB-shm")"
}
