#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Descriptors run out: who took them is refused, with a reason; nobody spins, nobody else loses anything, and it passes.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	# One gateway for all sandboxes: the neighbour is as near as can be.
	posternd_start --gateways 1
}

setup() {
	mark
}

teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 5 "$LAB/tmp/background.out" "$LAB/tmp/held" "$LAB/tmp/flood" "$LAB/posternd.log" || true
	background_end
	rm -f "$LAB/tmp/held" "$LAB/tmp/flood" "$LAB/tmp/background.out"
	all_gone
}

ECHO_RULE='{host: echo.lab-site.org, ports: [7]}'

fds() { find "/proc/$(role_pids "$1")/fd" -mindepth 1 | wc -l; }
# The soft limit of open files of a running role: limit ROLE NUMBER. It belongs to another user, and root need not be
# allowed everything here.
limit() {
	local uid=0
	[[ $1 != gateway ]] || uid=64201
	setpriv --reuid "$uid" --regid 0 --clear-groups prlimit --pid "$(role_pids "$1")" --nofile="$2:"
}
# Milliseconds of processor time that a role used in the last second.
busy() {
	local pid ticks
	pid=$(role_pids "$1")
	ticks=$(awk '{print $14 + $15}' "/proc/$pid/stat")
	sleep 1
	echo $((($(awk '{print $14 + $15}' "/proc/$pid/stat") - ticks) * 1000 / $(getconf CLK_TCK)))
}

flood_open() { tail -n 1 "$LAB/tmp/flood" | jq .open; }
flood_opens() { (($(flood_open) >= $1)); }
flood_refused() { (($(tail -n 1 "$LAB/tmp/flood" | jq .refused) >= $1)); }

neighbour_lives() {
	run -0 guest neighbour curl -sS https://news.lab-site.org/
	equal "the neighbour's page" "lab web server for news.lab-site.org" "$output"
	run -0 guest neighbour dig +short -t AAAA www.lab-site.org
	equal "the neighbour's answer" "2600:1:2::10" "$output"
}

@test "F-20: a sandbox that opens all it can gets its share, and its neighbour in the same gateway notices nothing" {
	# A limit that a gateway has from its start, as an ordinary user's daemon may.
	prlimit --pid "$(posternd_pid)" --nofile=400:400
	role_signal KILL gateway
	wait_for 10 all_ready
	sandbox neighbour --policy "$(policy neighbour "$ECHO_RULE" 'host: "*.lab-site.org"')"
	sandbox flood --policy "$(policy flood "$ECHO_RULE")"
	background guest neighbour "$LAB_DIR/hold.py" "$LAB/tmp/held" tcp:echo.lab-site.org:7/4 tls:news.lab-site.org:443/6
	held_opened() { (($(grep -c '"event": "open"' "$LAB/tmp/held") == 2)); }
	wait_for 10 held_opened
	background guest flood "$LAB_DIR/flood.py" "$LAB/tmp/flood" echo.lab-site.org 7 300
	wait_for 15 flood_opens 50
	wait_for 15 flood_refused 300
	(($(flood_open) < 200)) || fail "all of the flood was let in: $(tail -n 1 "$LAB/tmp/flood")"
	# The flood goes on; all others live as if it was not there, and new sandboxes can come.
	neighbour_lives
	sandbox third --policy "$LAB/tmp/neighbour.yaml"
	run -0 guest third curl -sS -6 https://news.lab-site.org/
	run -0 postern allow flood news.lab-site.org
	log_has flood '.verdict == "limited" and .reason == "limit_connections" and .dst == "45.45.45.30" or .dst == "2600:1:2::30"'
	background_end
	equal "the neighbour's connections" 2 "$(grep -c '"event": "alive"' "$LAB/tmp/held")"
	# And when it is over, it is over.
	run -0 guest flood "$LAB_DIR/client.py" tcp echo.lab-site.org 7 'in again' --half-close
	matches "echo" 'in again' "$output"
	equal "restarts of the gateway" 1 "$(postern status -o json | jq '[.roles[] | select(.role == "gateway") | .restarts] | add')"
}

@test "F-20: no descriptor is left at all: nobody spins, what lives lives on, and it recovers by itself" {
	sandbox neighbour --policy "$(policy neighbour "$ECHO_RULE" 'host: "*.lab-site.org"')"
	sandbox flood --policy "$(policy flood "$ECHO_RULE")"
	background guest neighbour "$LAB_DIR/hold.py" "$LAB/tmp/held" tcp:echo.lab-site.org:7/4 tls:news.lab-site.org:443/6
	held_opened() { (($(grep -c '"event": "open"' "$LAB/tmp/held") == 2)); }
	wait_for 10 held_opened
	neighbour_lives
	limit gateway $(($(fds gateway) + 7))
	background guest flood "$LAB_DIR/flood.py" "$LAB/tmp/flood" "$NET4.$ECHO" 7 100
	run -0 guest flood dig +tries=5 +time=1 +short echo.lab-site.org
	wait_for 15 flood_refused 100
	local used
	used=$(busy gateway)
	((used < 700)) || fail "the gateway used $used ms of processor time in a second"
	# What needs a descriptor fails with a reason, and only that.
	run ! sandbox third --policy "$LAB/tmp/neighbour.yaml"
	matches "message" "no descriptors left" "$output"
	[[ ! -e /run/netns/postern-third ]]
	local rounds
	rounds=$(far_packets "> $NET4\.$ECHO 7 [A-Z]*P" | wc -l)
	more_rounds() { (($(far_packets "> $NET4\.$ECHO 7 [A-Z]*P" | wc -l) > $1)); }
	wait_for 5 more_rounds "$rounds"
	log_has flood '.verdict == "limited" and .reason == "limit_connections"'
	# Room again.
	limit gateway 400
	wait_for 10 neighbour_lives
	sandbox third --policy "$LAB/tmp/neighbour.yaml"
	run -0 postern allow neighbour lab-a.com
	background_end
	equal "the neighbour's connections" 2 "$(grep -c '"event": "alive"' "$LAB/tmp/held")"
	run -0 guest neighbour curl -sS -o /dev/null https://lab-a.com/
}

@test "F-06: the keeper runs out of descriptors in the midst of an attach: nothing is left, and the next one works" {
	sandbox neighbour --policy "$(policy neighbour "$ECHO_RULE")"
	background guest neighbour "$LAB_DIR/hold.py" "$LAB/tmp/held" tcp:echo.lab-site.org:7/4
	held_opened() { (($(grep -c '"event": "open"' "$LAB/tmp/held") == 1)); }
	wait_for 10 held_opened
	local spare
	state() {
		ls /run/netns "$LAB/state/sandboxes"
		ip -o link show | cut -d' ' -f2
		fds keeper
	}
	# What the test before had goes a moment later.
	settled() { [[ $(state | tee "$LAB/tmp/before") == "$(sleep 0.3; state)" ]]; }
	wait_for 10 settled
	for ((spare = 0; spare < 30; spare++)); do
		limit keeper $(($(fds keeper) + spare))
		run sandbox failing --policy "$LAB/tmp/neighbour.yaml"
		limit keeper 400
		[[ $status -ne 0 ]] || break
		matches "message" "Too many open files|no descriptors left" "$output"
		clean() { state | diff "$LAB/tmp/before" -; }
		wait_for 3 clean || state | diff "$LAB/tmp/before" -
	done
	((spare > 5 && spare < 30)) || fail "it worked with $spare descriptors to spare"
	sandbox_gone failing
	sandbox failing --policy "$LAB/tmp/neighbour.yaml"
	run -0 guest failing "$LAB_DIR/client.py" tcp echo.lab-site.org 7 works --half-close
	background_end
	equal "the neighbour's connections" 1 "$(grep -c '"event": "alive"' "$LAB/tmp/held")"
}
