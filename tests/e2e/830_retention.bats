#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Retention: what is older than wanted goes, whole sealed segments at a time, with an event that says so; what lives on stays,
# and so do the seals.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start --retain-for forever --retain-size unlimited
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

teardown_file() {
	all_gone
	log_verifies
}

DB=$LAB/state/audit/audit.db
NEWS='host: news.lab-site.org'
ECHO_RULE='{host: echo.lab-site.org, ports: [7]}'

sql() { sqlite3 -readonly "$DB" "$1"; }
pruned() { (($(sql "SELECT value FROM meta WHERE key = 'pruned_through'") > 0)); }
restart() {
	posternd_stop
	posternd_start "$@"
}

@test "retention: old segments go with an event, seals and what is attached stay, the daemon goes on writing" {
	sandbox keep --policy "$(policy keep "$NEWS" "$ECHO_RULE")"
	sandbox old --policy "$(policy old "$NEWS")"
	run -0 guest old curl -sS -4 -o /dev/null https://news.lab-site.org/
	guest_fails old curl -sS -6 --max-time 5 https://other.lab-site.org/
	log_has old '.verdict == "denied"'
	postern detach old
	# A segment is sealed by each orderly end; the newest one is never dropped.
	restart --retain-for forever
	run -0 guest keep curl -sS -6 -o /dev/null https://news.lab-site.org/
	restart --retain-for 1s
	wait_for 15 pruned
	equal "rows of the sandbox that is gone" "0" "$(sql "SELECT count(*) FROM connections c JOIN sandboxes s ON s.id = c.sandbox_id WHERE s.name = 'old'")"
	equal "the sandbox that is gone" "0" "$(sql "SELECT count(*) FROM sandboxes WHERE name = 'old'")"
	equal "the sandbox that lives" "1" "$(sql "SELECT count(*) FROM sandboxes WHERE name = 'keep'")"
	(($(sql "SELECT count(*) FROM seals") >= 2))
	equal "links of what is gone" "0" "$(sql "SELECT count(*) FROM chain WHERE seq <= (SELECT value FROM meta WHERE key = 'pruned_through')")"
	run -0 postern log --kind event -o json
	matches "event" '"event":"pruned".*"rows".*"why":"age"' "$output"
	# And nothing has changed for those who work.
	run -0 guest keep curl -sS -4 -o /dev/null https://news.lab-site.org/
	log_has keep '.verdict == "allowed" and .name == "news.lab-site.org" and .dport == 443'
	postern detach keep
}

@test "retention: a connection that is open while its segment goes keeps its record" {
	sandbox long --policy "$(policy long "$ECHO_RULE")"
	background guest long "$LAB_DIR/hold.py" "$LAB/tmp/held" tcp:echo.lab-site.org:7/4
	opened() { (($(grep -c '"event": "open"' "$LAB/tmp/held") == 1)); }
	wait_for 10 opened
	before=$(sql "SELECT value FROM meta WHERE key = 'pruned_through'")
	# Two seals later (10 s each, if something is added) its segment is old.
	pruned_further() {
		guest long dig +short echo.lab-site.org >/dev/null
		(($(sql "SELECT value FROM meta WHERE key = 'pruned_through'") > before)) &&
			(($(sql "SELECT seq > (SELECT value FROM meta WHERE key = 'pruned_through') FROM connections WHERE end = 0 AND name = 'echo.lab-site.org'") == 1))
	}
	log_has long '.dport == 7 and .end == "open"'
	wait_for 40 pruned_further
	equal "still one" 1 "$(sql "SELECT count(*) FROM connections WHERE end = 0 AND name = 'echo.lab-site.org'")"
	background_end
	closed() { log_has long '.dport == 7 and .end != "open"'; }
	wait_for 10 closed
	postern detach long
}

@test "retention: what somebody else dropped is a fault, and an event tells of it before more goes" {
	local up_to
	restart --retain-for forever
	posternd_stop
	# All but the newest segment, which is never dropped.
	up_to=$(sql "SELECT last_seq FROM seals ORDER BY n DESC LIMIT 1 OFFSET 1")
	sqlite3 "$DB" "DELETE FROM connections WHERE seq <= $up_to; DELETE FROM dns WHERE seq <= $up_to;
		DELETE FROM events WHERE seq <= $up_to; DELETE FROM sandboxes WHERE seq <= $up_to;
		DELETE FROM accounts WHERE seq <= $up_to; DELETE FROM chain WHERE seq <= $up_to;
		UPDATE meta SET value = $up_to WHERE key = 'pruned_through'"
	run -1 postern verify
	matches "fault" "rows up to number $up_to were pruned, but no event of retention says so" "$output"
	posternd_start --retain-for 1s
	told() { sql "SELECT detail FROM v_events WHERE event = 'tampered'" | grep -q "up to number $up_to had been dropped"; }
	wait_for 30 told
	run -0 postern verify
	matches "gap" '^gap .* tampered .*and not by retention' "$output"
}

@test "retention: options that make no sense are refused with what to give" {
	for bad in "--retain-for 5" "--retain-for -1d" "--retain-size 10" "--retain-size 10XB"; do
		# shellcheck disable=SC2086
		run -2 posternd $bad
		matches "message" 'retain-(for|size) .*: give a' "$output"
	done
}
