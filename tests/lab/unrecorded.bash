# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Words about a log that cannot be written, for the bats files that break it in their ways; after tests/lab/lab.bash.

ECHO_RULE='{host: echo.lab-site.org, ports: [7]}'
NEWS='host: news.lab-site.org'
# Everything that gets through a gateway when the log is there.
RULES=("$ECHO_RULE" "$NEWS" "{cidr: $NET4.$BYTES/32, ports: [9001]}" "{cidr: '$NET6:$BYTES/128', ports: [9001]}"
	"{cidr: $NET4.$ECHO/32, ports: [7], udp: true}")

audit_out() { postern status -o json | jq -e '.audit_ok == false'; }

# Two connections that are kept open, each with an exchange now and then: hold NAME; held_alive after background_end
hold() {
	background guest "$1" "$LAB_DIR/hold.py" "$LAB/tmp/held" tcp:echo.lab-site.org:7/4 tcp:echo.lab-site.org:7/6
	held_opened() { (($(grep -c '"event": "open"' "$LAB/tmp/held") == 2)); }
	wait_for 10 held_opened
}
held_alive() { equal "connections alive" 2 "$(grep -c '"event": "alive"' "$LAB/tmp/held")"; }

# Nothing new gets out while the log is out, and the guest is told so at once: nothing_new NAME
nothing_new() {
	mark
	run -0 guest "$1" dig news.lab-site.org
	matches "answer" 'status: SERVFAIL' "$output"
	matches "extended error" 'EDE: 14 .*log cannot be written' "$output"
	guest_fails "$1" "$LAB_DIR/client.py" tcp "$NET4.$BYTES" 9001 unrecorded --half-close
	guest_fails "$1" "$LAB_DIR/client.py" tcp "$NET6:$BYTES" 9001 unrecorded --half-close
	guest_fails "$1" "$LAB_DIR/client.py" udp "$NET4.$ECHO" 7 unrecorded --timeout 1
	guest_fails "$1" curl -sS -m 3 --resolve "news.lab-site.org:443:$NET4.$WEB" https://news.lab-site.org/
	dns_not_asked news.lab-site.org
	far_none "> ($NET4\.|$NET6:)($BYTES|$WEB) "
	far_none "^udp .* > ($NET4\.|$NET6:)$ECHO "
	equal "datagrams" "" "$(origin_log 'select(.event == "datagram")')"
}
