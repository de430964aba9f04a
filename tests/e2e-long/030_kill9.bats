#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# A thousand ends by SIGKILL under load, of the daemon or of a role, at times nobody chose: every connection of which the
# origin saw a byte is on record, once, and the log verifies.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/crash

# As many as the issue of the log asks for; fewer to try the test itself.
KILL_CYCLES=${KILL_CYCLES:-1000}

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
	! posternd_gone || posternd_start
	all_gone
}

@test "F-25: $KILL_CYCLES ends by SIGKILL under load lose no record of what the origin saw" {
	sandbox f25 --policy "$(policy f25 "$ECHO_RULE")"
	impatient f25
	background guest f25 "$LAB_DIR/attempts.py" --timeout 0.5 --pause 0.005 --workers 3 "$LAB/tmp/tries" echo.lab-site.org:7
	local round began
	for ((round = 0; round < KILL_CYCLES; round++)); do
		began=$(date +%s.%N)
		wait_for 30 works_since echo.lab-site.org:7 "$began"
		# Anywhere within a batch, a commit, a checkpoint, a start.
		sleep "0.0$((RANDOM % 100 + 100))"
		case $((round % 4)) in
		0) posternd_kill9 ;;
		1) role_signal KILL gateway ;;
		2) posternd_kill9_all ;;
		3) role_signal KILL auditor ;;
		esac
		! posternd_gone || posternd_start
		wait_for 30 all_ready
	done
	began=$(date +%s.%N)
	wait_for 30 works_since echo.lab-site.org:7 "$began"
	background_end
	every_connection_once f25 | tee "$LAB/tmp/counted" >&3
	closed() { equal "$1" 0 "$(log_count f25 '.kind == "flow" and .end == "open"')"; }
	wait_for 5 closed "connections that seem to be open"
	equal "logs set aside" "" "$(find "$LAB/state/audit" -name '*.corrupt-*')"
	run -0 postern verify
	matches "verified" 'OK: nothing was changed' "$output"
}
