#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The log cannot be written: nothing new is let out, everybody is told why, and it goes on by itself when it can. A log that
# is gone or damaged is set aside, loudly, and nothing more is lost than what was in it.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/unrecorded

setup_file() {
	lab_up
	mkdir -p "$LAB/state/audit"
	# A disk of its own, small enough to be filled.
	mount -t tmpfs -o size=8m tmpfs "$LAB/state/audit"
	posternd_start
}

setup() {
	mark
}

teardown() {
	if [[ -z ${BATS_TEST_COMPLETED:-} ]]; then
		tail -n 20 "$LAB/posternd.log"
		tail -n 5 "$LAB/tmp/background.out" "$LAB/tmp/held" || true
	fi
	rm -f "$LAB/state/audit/filler" "$LAB"/state/audit/*.corrupt-*
	background_end
	rm -f "$LAB/tmp/held" "$LAB/tmp/background.out"
	! posternd_gone || posternd_start
	wait_for 10 all_ready
	all_gone
}

DB=$LAB/state/audit/audit.db

disk_fill() { ! dd if=/dev/zero of="$LAB/state/audit/filler" bs=4k 2>/dev/null; }
disk_free() { rm "$LAB/state/audit/filler"; }

@test "F-22: with a full disk nothing new gets out, what is open lives on, and it recovers by itself" {
	sandbox full --policy "$(policy full "${RULES[@]}")"
	local began
	began=$(wc -l <"$LAB/origin.log")
	guest full curl -sS -4 -o /dev/null https://news.lab-site.org/
	hold full
	disk_fill
	# The first attempt finds it out. Its connection may be tried, but not a byte of it leaves.
	mark
	run ! guest full "$LAB_DIR/client.py" --timeout 1 tcp "$NET4.$BYTES" 9001 unrecorded --half-close
	wait_for 5 audit_out
	far_none "> $NET4\.$BYTES 9001 [A-Z]*P"
	nothing_new full
	# A policy can be edited all the same: who takes something away must not have to wait.
	run -0 postern deny full git.lab-code.org
	run -1 postern status
	matches "status" "audit log can be written +no" "$output"
	matches "status" "missing +audit: .*new connections are refused" "$output"
	# The log of what was before can be read.
	log_has full '.kind == "flow" and .name == "news.lab-site.org" and .dport == 443'
	equal "rows about it so far" 0 "$(log_count full '.reason == "audit_unavailable"')"

	disk_free
	wait_for 5 all_ready
	mark
	run -0 guest full "$LAB_DIR/client.py" tcp "$NET6:$BYTES" 9001 recorded --half-close
	run -0 guest full curl -sS https://news.lab-site.org/
	equal "page" "lab web server for news.lab-site.org" "$output"
	log_has full '.dst == "2600:1:2::40" and .verdict == "allowed" and .bytes_out == 8'
	# All that was refused meanwhile is on record now, once.
	log_has full '.kind == "dns" and .reason == "audit_unavailable" and .verdict == "failed" and .rcode == "SERVFAIL"'
	log_has full '.proto == "udp" and .reason == "audit_unavailable" and .dst == "45.45.45.30" and .count == 1'
	log_has full '.dst == "45.45.45.10" and .reason == "audit_unavailable"'
	# The first attempt may have been refused, too: accounts and seals find the full disk as well.
	local refused
	refused=$(log_count full '.proto == "tcp" and .reason == "audit_unavailable" and .dport == 9001 and .end == "refused"')
	((refused == 2 || refused == 3)) || fail "$refused rows of refused connections"
	log_has full '.kind == "event" and .event == "policy" and .detail.change == ["+deny git.lab-code.org"]'
	run -0 postern log --kind event -o json
	matches "event" '"event":"audit_resumed".*"lost":0.*"why":"[^"]*full' "$output"
	background_end
	held_alive
	# What the origin got is what the log says, to the byte; the first attempt's may have left once it was on record.
	equal "bytes that the origin got" \
		"$(tail -n "+$((began + 1))" "$LAB/origin.log" | jq -s '[.[] | select(.event == "close" and .port == 9001) | .bytes_in] | add')" \
		"$(log_json full | jq -s '[.[] | select(.dport == 9001) | .bytes_out // 0] | add')"
}

# Put the database into a bad state while it is in use.
damage() {
	case $1 in
	removed) rm "$DB" ;;
	log-removed) rm "$DB-wal" ;;
	replaced) cp -p "$DB" "$DB.new" && mv "$DB.new" "$DB" ;;
	truncated) : >"$DB" && : >"$DB-wal" ;;
	overwritten)
		dd if=/dev/urandom of="$DB" bs=4k count=20 conv=notrunc status=none
		dd if=/dev/urandom of="$DB-wal" bs=4k count=20 conv=notrunc status=none
		;;
	memory-truncated) : >"$DB-shm" ;;
	esac
}

@test "F-24: a database that is removed or damaged while in use is noticed, and the log goes on" {
	sandbox bad --policy "$(policy bad "${RULES[@]}")"
	hold bad
	# What is in a file that a later damage sets aside counts, too.
	local kind since events=""
	for kind in removed log-removed replaced truncated overwritten memory-truncated; do
		since=$(date -u +%Y-%m-%dT%H:%M:%SZ)
		damage "$kind"
		resumed() {
			guest bad "$LAB_DIR/client.py" tcp "$NET4.$BYTES" 9001 "$kind" --half-close &&
				log_json bad --since "$since" | jq -e -s "any(.[]; .kind == \"flow\" and .dport == 9001 and .bytes_out == ${#kind})"
		}
		wait_for 15 resumed || fail "after: $kind"
		wait_for 5 all_ready
		events+=$(postern log --kind event -o json)$'\n'
	done
	matches "event" '"event":"audit_replaced".*"moved_to":"[^"]*audit.db.corrupt-' "$events"
	matches "event" '"event":"audit_resumed".*"why":"' "$events"
	local said
	for said in 'audit.db was removed or replaced while in use' 'audit.db-wal was removed or replaced while in use' \
		'DATABASE REPLACED: the database is gone, its -wal is left; it is now .*\.corrupt-' \
		'DATABASE REPLACED: .*audit.db(: .+| has lost its tables); it is now'; do
		matches "what posternd says" "auditor: .*$said" "$(cat "$LAB/posternd.log")"
	done
	ls "$DB".corrupt-*-wal
	background_end
	held_alive
}

@test "a database that may not be written is no reason to let anything out, and no reason to give it up" {
	sandbox ro --policy "$(policy ro "${RULES[@]}")"
	guest ro curl -sS -4 -o /dev/null https://news.lab-site.org/
	hold ro
	# An open file stays writable; so with an auditor that has to open it.
	chmod 0440 "$DB"
	role_signal KILL auditor
	wait_for 5 audit_out
	nothing_new ro
	chmod 0640 "$DB"
	wait_for 10 all_ready
	run -0 guest ro "$LAB_DIR/client.py" tcp "$NET4.$BYTES" 9001 recorded --half-close
	log_has ro '.dst == "45.45.45.40" and .verdict == "allowed" and .bytes_out == 8'
	# It is still the same file, with all that was in it.
	log_has ro '.kind == "flow" and .name == "news.lab-site.org" and .dport == 443'
	log_has ro '.reason == "audit_unavailable" and .dst == "2600:1:2::40"'
	equal "files set aside" "" "$(ls "$DB".corrupt-* 2>/dev/null || true)"
	background_end
	held_alive
}

@test "F-24: a database that is corrupt at the start is set aside, loudly; one of a newer version is not touched" {
	sandbox begin --policy "$(policy begin "${RULES[@]}")"
	posternd_stop
	: >"$LAB/posternd.log"
	dd if=/dev/urandom of="$DB" bs=1k count=40 seek=3 conv=notrunc status=none
	posternd_start
	matches "what posternd says" "auditor: DATABASE REPLACED: .*; it is now $DB.corrupt-[0-9]+" "$(cat "$LAB/posternd.log")"
	run -0 postern log --kind event -o json
	matches "event" '"event":"audit_replaced".*"moved_to"' "$output"
	run -0 guest begin "$LAB_DIR/client.py" tcp "$NET4.$BYTES" 9001 after --half-close
	log_has begin '.dport == 9001 and .bytes_out == 5'

	posternd_stop
	python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute("PRAGMA user_version = 99")' "$DB"
	cp "$DB" "$LAB/tmp/newer.db"
	run -1 timeout 15 posternd --runtime-dir "$LAB/run" --state-dir "$LAB/state" --netns-dir /run/netns --gateway-user 64201 \
		--audit-user 64202 --control-user 64203 --group 0 --resolver "$NET4.$RESOLVER"
	matches "message" "audit.db was made by a newer postern" "$output"
	matches "message" "auditor did not start" "$output"
	cmp "$DB" "$LAB/tmp/newer.db"
	# With no daemon, nothing.
	mark
	run ! guest begin "$LAB_DIR/client.py" --timeout 1 tcp "$NET4.$BYTES" 9001 nothing --half-close
	far_none "> ($NET4|$NET6)"
	python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute("PRAGMA user_version = 1")' "$DB"
	posternd_start
	log_has begin '.dport == 9001 and .bytes_out == 5'
}
