#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# A lease ends: a minute after an answer with a short TTL, and half a minute of grace. `make test-long`.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	fdns echo.lab-site.org "{\"answers\":[[\"A\",1,\"$NET4.$ECHO\"],[\"AAAA\",1,\"$NET6:$ECHO\"]]}"
}

teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 20 "$LAB/tmp/held" "$LAB/posternd.log"
	background_end
}

setup() {
	mark
}

@test "F-33: a lease's end cuts nothing that lives, and lets nothing new through" {
	sandbox lease --policy "$(policy lease '{host: echo.lab-site.org, ports: [7]}' '{host: echo.lab-site.org, ports: [5000], udp: true}' \
		'host: short.lab-a.com')"
	background guest lease "$LAB_DIR/hold.py" "$LAB/tmp/held" tcp:echo.lab-site.org:7/4 tcp:echo.lab-site.org:7/6 \
		udp:echo.lab-site.org:5000/4 udp:echo.lab-site.org:5000/6 tls:short.lab-a.com:443/4 http:short.lab-a.com:80/4
	held_opened() { (($(grep -c '"event": "open"' "$LAB/tmp/held") == 6)); }
	wait_for 10 held_opened
	equal "leases" 3 "$(postern show lease -o json | jq '.leases | length')"
	run -0 guest lease "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 7 leased --half-close

	leases_gone() { [[ $(postern show lease -o json | jq '.leases | length') -eq 0 ]]; }
	sleep 85
	wait_for 30 leases_gone
	refused() { ! guest lease "$LAB_DIR/client.py" tcp "$1" "$2" late --half-close; }
	wait_for 10 refused "$NET4.$ECHO" 7
	wait_for 10 refused "$NET6:$ECHO" 7
	wait_for 10 refused "$NET4.$SHARED" 443
	# The kernel's elements go half a minute later, but for those that live datagram flows need.
	elements_gone() {
		nsenter --net=/run/netns/postern-lease -- nft -j list ruleset | jq -e -s '[.[].nftables[].set? |
			select(. != null and (.name | startswith("lease"))) | .elem[]?.elem.val.concat[1]] | sort == ["udp", "udp"]'
	}
	sleep 25
	wait_for 20 elements_gone
	mark
	refused "$NET4.$ECHO" 7
	far_none "> $NET4\.$ECHO 7 S "
	local now
	now=$(date +%s.%N)
	sleep 5
	background_end
	equal "alive" 6 "$(jq -s --argjson now "$now" '[.[] | select(.event == "alive" and .last > $now)] | length' "$LAB/tmp/held")"
	equal "ended" 0 "$(grep -c '"event": "end"' "$LAB/tmp/held" || true)"
	# One that comes later asks again, and is let through again.
	run -0 guest lease "$LAB_DIR/client.py" tcp echo.lab-site.org 7 again --half-close
	log_has lease '.kind == "deny" and .reason == "not_leased" and .dst == "45.45.45.30" and .dport == 7'
	log_has lease '.kind == "flow" and .proto == "udp" and .end == "open" or .bytes_in > 0'
}
