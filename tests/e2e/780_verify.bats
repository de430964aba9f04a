#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The log is evidence: verify finds what somebody changed in it, and names it; what was exported cannot be changed later; the
# chain goes on over restarts, crashes and a log of the version before.

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
	if [[ -z ${BATS_TEST_COMPLETED:-} ]]; then
		tail -n 20 "$LAB/posternd.log"
	fi
	background_end
	! posternd_gone || posternd_start
}

DB=$LAB/state/audit/audit.db
COPY=$LAB/tmp/copy.db
NEWS='host: news.lab-site.org'

sql() { sqlite3 -readonly "$DB" "$1"; }
seals() { sql 'SELECT count(*) FROM seals'; }
seals_at_least() { (($(seals) >= $1)); }
all_sealed() { (($(sql 'SELECT max(seq) FROM chain') == $(sql 'SELECT max(last_seq) FROM seals'))); }
# Something of each kind: allowed, denied by name, refused in the kernel, an event.
traffic() {
	run -0 guest "$1" curl -sS -4 -o /dev/null https://news.lab-site.org/
	guest_fails "$1" curl -sS -m 3 https://www.lab-b.net/
	guest_fails "$1" curl -sSk -4 -m 3 --resolve "www.lab-b.net:443:$NET4.$OTHER" https://www.lab-b.net/
	postern mark "$1" "step of $1"
	log_has "$1" '.kind == "flow" and .end == "fin"'
	log_has "$1" '.kind == "deny" and .reason == "not_leased"'
}
# A copy on its own, to tamper with: no daemon, no -wal.
copy() {
	rm -f "$COPY"*
	sqlite3 "$DB" ".backup '$COPY'"
}
# In a fresh copy verify finds it: broken SQL FAULT [TABLE]
broken() {
	copy
	sqlite3 "$COPY" "$1"
	run -1 postern verify --db "$COPY" --key "$LAB/tmp/key" -o json
	equal "what verify found of: $1" "$2 ${3:-}" "$(jq -r '.first.fault + " " + (.first.table // "")' <<<"$output")"
	equal "ok" false "$(jq .ok <<<"$output")"
}

@test "a log that nobody touched verifies, with the daemon up and down, and on a copy" {
	sandbox one --policy "$(policy one "$NEWS")"
	traffic one
	run -0 postern verify
	matches "verdict" '^OK: ' "${lines[-1]}"
	matches "key" 'not pinned' "$output"
	wait_for 10 seals_at_least 1
	postern seal key >"$LAB/tmp/key"
	run -0 diff "$LAB/tmp/key" "$LAB/state/audit/seal.key.pub"
	equal "mode of the key" 600 "$(stat -c %a "$LAB/state/audit/seal.key")"
	equal "owner of the key" 64202 "$(stat -c %u "$LAB/state/audit/seal.key")"
	run -0 postern verify --key "$LAB/tmp/key" -o json
	equal "pinned, ok" "true true" "$(jq -r '"\(.key_pinned) \(.ok)"' <<<"$output")"
	equal "rows" "$(sql 'SELECT count(*) FROM connections')" "$(jq .rows.connections <<<"$output")"
	copy
	run -0 postern verify --db "$COPY" --key "$LAB/tmp/key"
	posternd_stop
	all_sealed
	run -0 postern verify --key "$(cat "$LAB/tmp/key")" --sandbox one
	equal "not sealed after an orderly end" "" "$(grep 'not sealed yet' <<<"$output" || true)"
	run -0 postern verify --since 1h
}

@test "what was changed, removed, inserted, exchanged or cut off is found and named" {
	posternd_stop
	broken "UPDATE connections SET verdict = 0 WHERE id = (SELECT min(id) FROM connections WHERE verdict = 1)" changed connections
	broken "UPDATE dns SET qname = 'innocent.example' WHERE id = (SELECT max(id) FROM dns)" changed dns
	broken "UPDATE events SET detail = '{}' WHERE kind = 14" changed events
	broken "UPDATE sandboxes SET name = 'two'" changed sandboxes
	broken "DELETE FROM connections WHERE id = (SELECT max(id) FROM connections)" removed connections
	broken "DELETE FROM events WHERE kind = 14" removed events
	broken "INSERT INTO events SELECT id + 1, 1000000, sandbox_id, ts, kind, uid, detail FROM events WHERE kind = 14" inserted events
	broken "DELETE FROM dns WHERE seq = (SELECT max(seq) FROM dns); DELETE FROM chain WHERE seq = (SELECT max(seq) FROM chain WHERE tbl = 2)" removed
	broken "UPDATE chain SET digest = zeroblob(32) WHERE seq = (SELECT seq FROM events WHERE kind = 14)" changed events
	broken "UPDATE seals SET ts = ts + 1000000 WHERE n = 1" "bad seal"
	broken "DELETE FROM seals WHERE n = 1" "bad seal"
	broken "DELETE FROM chain WHERE seq > 5" truncated
	# The beginning, as retention would drop it but for its event.
	local up_to="seq <= (SELECT last_seq FROM seals WHERE n = 1)"
	broken "DELETE FROM connections WHERE $up_to; DELETE FROM dns WHERE $up_to; DELETE FROM events WHERE $up_to;
		DELETE FROM sandboxes WHERE $up_to; DELETE FROM accounts WHERE $up_to; DELETE FROM chain WHERE $up_to;
		UPDATE meta SET value = (SELECT last_seq FROM seals WHERE n = 1) WHERE key = 'pruned_through'" removed
	matches "whose doing" 'no event of retention says so' "$output"
	# In words, with the id that the log shows.
	copy
	local id
	id=$(sqlite3 "$COPY" "SELECT printf('%016x', id) FROM connections WHERE verdict = 1 LIMIT 1")
	sqlite3 "$COPY" "UPDATE connections SET verdict = 0 WHERE verdict = 1"
	run -1 postern verify --db "$COPY"
	matches "first bad record" "^FIRST BAD RECORD: connections [0-9a-f]{16}, number [0-9]+, is not as it was written" "$output"
	matches "its id" "$id" "$output"
	matches "how many" "^BROKEN: [0-9]+ fault" "$(tail -n 1 <<<"$output")"
}

@test "exported seals show that the log was cut off, or written anew by the key's holder" {
	run -0 postern seal export
	echo "$output" >"$LAB/tmp/seals"
	equal "notes" "$(seals)" "$(grep -c '^postern-audit/' "$LAB/tmp/seals")"
	run -0 postern verify --key "$LAB/tmp/key" --seals "$LAB/tmp/seals"
	matches "all of them" "^elsewhere  $(seals) seals" "$output"
	# Cut off after the first seal, seals and all: whole by itself.
	copy
	local last
	last=$(sqlite3 "$COPY" 'SELECT last_seq FROM seals WHERE n = 1')
	sqlite3 "$COPY" "DELETE FROM seals WHERE n > 1; DELETE FROM chain WHERE seq > $last;
		DELETE FROM connections WHERE seq > $last; DELETE FROM dns WHERE seq > $last; DELETE FROM events WHERE seq > $last;
		DELETE FROM sandboxes WHERE seq > $last; DELETE FROM accounts WHERE seq > $last"
	run -1 postern verify --db "$COPY" --key "$LAB/tmp/key" --seals "$LAB/tmp/seals" -o json
	equal "seals that are gone" "$(($(seals) - 1))" "$(jq .faults.truncated <<<"$output")"
	# Another log in its place.
	copy
	sqlite3 "$COPY" "UPDATE meta SET value = '00000000000000000000000000000000' WHERE key = 'log_id'"
	run -1 postern verify --db "$COPY" --key "$LAB/tmp/key" --seals "$LAB/tmp/seals"
	matches "whose seals" "; $(seals) are of other logs" "$output"
	run -2 postern verify --seals /dev/null
	run -2 postern verify --key /dev/null
}

@test "seals are exported as they are made" {
	local before
	before=$(seals)
	background postern seal export -f --since "$((before + 1))"
	traffic one
	wait_for 20 seals_at_least "$((before + 1))"
	exported() { grep -q "^seal $((before + 1)) from " "$LAB/tmp/background.out"; }
	wait_for 10 exported
}

@test "the chain goes on over restarts, kill -9 and a change of the key" {
	traffic one
	posternd_kill9_all
	posternd_start
	wait_for 10 all_ready
	traffic one
	run -0 postern verify --key "$LAB/tmp/key"
	posternd_stop
	mv "$LAB/state/audit/seal.key" "$LAB/tmp/seal.key.old"
	rm "$LAB/state/audit/seal.key.pub"
	posternd_start
	traffic one
	posternd_stop
	run -1 postern verify --key "$LAB/tmp/key"
	matches "what is missing" 'not among the keys' "$output"
	run -0 postern verify --key "$LAB/tmp/key" --key "$LAB/state/audit/seal.key.pub" --seals "$LAB/tmp/seals"
	equal "keys" 2 "$(postern seal key | wc -l)"
}

@test "a log whose end is changed while the daemon has it open is noticed at once, and told" {
	traffic one
	sqlite3 "$DB" 'PRAGMA busy_timeout = 5000; DELETE FROM events WHERE seq = (SELECT max(seq) FROM events);
		DELETE FROM chain WHERE seq = (SELECT max(seq) FROM chain)' >/dev/null
	told() { postern log --kind event -o json | grep -q '"event":"tampered".*changed by another program'; }
	wait_for 10 told
	wait_for 10 all_ready
	matches "log of the daemon" 'changed by another program' "$(cat "$LAB/posternd.log")"
	traffic one
	# What was cut off was not sealed yet: the event is the witness.
	run postern verify
	matches "gap" "^gap .* tampered .*changed by another program" "$output"
}
