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
	local gateway epoch_zero deaths refused=no
	gateway_new() { [[ -n $(role_pids gateway) && $(role_pids gateway) != "$gateway" ]]; }
	# The auditor's pause before it is started again doubles with each death. Both die until it is long enough, on this
	# machine, to look at what the gateway does in it.
	for ((deaths = 1; ; deaths++)); do
		roles_back
		role_signal KILL auditor
		((deaths > 4)) || continue
		gateway=$(role_pids gateway)
		role_signal KILL gateway
		wait_for 10 gateway_new
		if guest_fails roles curl -sS https://news.lab-site.org/; then refused=yes; else refused=no; fi
		! auditor_gone || break
		((deaths < 10)) || fail "there was always an auditor again too early"
	done
	equal "refused while there is no auditor" yes "$refused"
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

# Hundredths of a second of processor time that all roles have used.
used() {
	local pid total=0
	for pid in $(role_pids all); do
		# Behind the name in brackets, user and system time are the 12th and 13th field.
		total=$((total + $(sed 's/.*) //' "/proc/$pid/stat" | awk '{print $12 + $13}')))
	done
	echo "$total"
}

@test "E-19, E-20, E-23: connections in which nothing happens cost no processor time" {
	local before after
	sandbox quiet --policy "$(policy quiet 'host: news.lab-site.org' \
		'{host: echo.lab-site.org, ports: [7, 9001, 9002, 9004]}' '{host: echo.lab-site.org, ports: [5000], udp: true}')"
	cat >"$LAB/tmp/held.py" <<-'END'
		import socket, sys, time
		def dial(host, port, data=b"", family=socket.AF_INET):
		    s = socket.socket(family, socket.SOCK_STREAM)
		    s.settimeout(5)
		    s.connect(socket.getaddrinfo(host, port, family)[0][4])
		    s.sendall(data)
		    return s
		held = []
		for family in (socket.AF_INET, socket.AF_INET6):
		    held.append(dial("echo.lab-site.org", 7, family=family))                     # idle
		    held.append(dial("echo.lab-site.org", 9001, b"half of what", family))        # the origin waits for the end
		    held.append(dial("echo.lab-site.org", 9002, b"bye", family))                 # a half-closed guest, answered
		    held[-1].shutdown(socket.SHUT_WR)
		    held.append(dial("echo.lab-site.org", 9004, b"9999999\n", family))           # a reader that has stopped
		    held.append(dial("news.lab-site.org", 80, b"GET / HTTP/1.1\r\nHost: news.lab-site.org\r\n\r\n", family))
		    held.append(dial("news.lab-site.org", 80, b"GET / HT", family))              # half a head
		    held.append(dial("news.lab-site.org", 80, b"GET / HTTP/1.1\r\nHost: www.lab-b.net\r\n\r\n", family)) # refused
		    held.append(dial("news.lab-site.org", 443, b"\x16\x03\x01\x02", family))     # half a hello
		held.append(dial("172.16.0.1", 53))
		held.append(dial("172.16.0.1", 53, b"\x00\x20\x12"))                            # half a query
		held.append(dial("172.16.0.1", 53))
		held[-1].shutdown(socket.SHUT_WR)
		u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		u.sendto(b"x", (socket.gethostbyname("echo.lab-site.org"), 5000))
		open(sys.argv[1], "w").close()
		time.sleep(60)
	END
	background guest quiet python3 "$LAB/tmp/held.py" "$LAB/tmp/held"
	wait_for 10 test -e "$LAB/tmp/held"
	sleep 0.5
	before=$(used)
	sleep 3
	after=$(used)
	((after - before < 30)) || fail "the roles used $((after - before)) hundredths of a second in 3 s" || return 1
	# All of them are there still, or the case says nothing.
	(($(log_count quiet '.kind == "flow" and .end == "open"') >= 9))
	background_end
}
