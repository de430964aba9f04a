#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Roles that die, also two at a time, and what the record says of it.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	sandbox roles --policy "$(policy roles 'host: news.lab-site.org' '{host: echo.lab-site.org, ports: [7]}')"
}

setup() {
	mark
}

in_db() { sqlite3 -readonly "$LAB/state/audit/audit.db" "$1"; }
auditor_gone() { [[ -z $(role_pids auditor) ]]; }
roles_back() { wait_for 20 all_ready; }

@test "F-21, F-22: a gateway that starts while there is no auditor numbers its records as its own" {
	local gateway epoch_zero
	# The auditor's pause before it is started again doubles with each death: long enough to look at what happens in it.
	for _ in 1 2 3 4 5 6; do
		wait_for 10 all_ready
		role_signal KILL auditor
		wait_for 5 auditor_gone
	done
	gateway=$(role_pids gateway)
	role_signal KILL gateway
	gateway_new() { [[ -n $(role_pids gateway) && $(role_pids gateway) != "$gateway" ]]; }
	wait_for 5 gateway_new
	guest_fails roles curl -sS https://news.lab-site.org/
	auditor_gone # or the test tests nothing
	roles_back
	log_has roles '.kind == "dns" and .reason == "audit_unavailable" and .verdict == "failed"'
	epoch_zero=$(in_db 'SELECT (SELECT count(*) FROM connections WHERE id >> 31 = 0) + (SELECT count(*) FROM dns WHERE id >> 31 = 0)')
	equal "records of nobody" 0 "$epoch_zero"
	far_none " > $NET4\.$WEB "
	run guest roles curl -sS https://news.lab-site.org/
	equal "afterwards" "lab web server for news.lab-site.org" "$output"
}

@test "F-12: what was refused last before the daemon stops is on record" {
	local kernel
	sandbox last --policy "$(policy last 'host: news.lab-site.org')"
	# More than the log's rate takes: the rest is known by the counters only.
	guest last python3 - "$NET4.$OTHER" <<-'END'
		import socket, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for _ in range(3000):
		    s.sendto(b'x', (sys.argv[1], 4000))
	END
	kernel=$(ip netns exec postern-last nft -j list counters table inet postern |
		jq '[.nftables[].counter | select(.name == "count_udp") | .packets] | add')
	posternd_stop
	equal "packets in rows" "$kernel" "$(in_db "SELECT sum(count) FROM v_connections WHERE sandbox = 'last' AND reason = 'udp_denied'")"
	((kernel >= 3000))
	posternd_start
}
