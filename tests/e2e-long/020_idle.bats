#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Ten minutes: connections that say nothing for so long go on as if nothing had been, and a name that is asked for again
# and again can be connected to each time.

bats_require_minimum_version 1.5.0
load ../lab/lab

# Longer than a lease of the lab's names (TTL 300), and than the gateway's patience with a peer that is gone.
IDLE_S=600
STEP_S=30

setup_file() {
	lab_up
	posternd_start
	sandbox idle --policy "$(policy idle 'host: news.lab-site.org' 'host: "*.lab-a.com"' \
		'{host: echo.lab-site.org, ports: [7]}' '{host: git.lab-code.org, ports: [22]}')"
	fdns zero.lab-a.com "{\"answers\":[[\"A\",0,\"$NET4.$CDN\"],[\"AAAA\",0,\"$NET6:$CDN\"]]}"
}

setup() {
	mark
}

@test "C-11, C-14, E-19: ten minutes of silence end no connection; a name asked for every half minute always connects" {
	local words=() family
	for family in 4 6; do
		words+=("echo:$family:echo.lab-site.org:7" "http:$family:news.lab-site.org:80" "https:$family:news.lab-site.org:443"
			"ws:$family:news.lab-site.org:80" "wss:$family:news.lab-site.org:443")
	done
	guest idle "$LAB_DIR/idle.py" $IDLE_S "${words[@]}" >"$LAB/tmp/idle" 2>"$LAB/tmp/idle.err" &
	local idle=$!
	guest idle ssh -F "$LAB/ssh/config" git.lab-code.org "sleep $IDLE_S; echo still here" >"$LAB/tmp/ssh" 2>&1 &
	local ssh=$!
	wait_for 10 grep -q ready "$LAB/tmp/idle" || fail "$(cat "$LAB/tmp/idle.err")"

	local began=$SECONDS turn=0
	while ((SECONDS - began < IDLE_S - STEP_S)); do
		# As soon as the answer is there, and under a lifetime of five minutes, of one second and of none.
		for name in www short zero; do
			run -0 guest idle sh -c "curl -sS --resolve $name.lab-a.com:443:\$(dig +short $name.lab-a.com) https://$name.lab-a.com/"
			equal "page in turn $turn" "lab web server for $name.lab-a.com" "$output"
		done
		turn=$((turn + 1))
		sleep $((turn * STEP_S - (SECONDS - began) > 0 ? turn * STEP_S - (SECONDS - began) : 0))
	done
	equal "refused" 0 "$(log_count idle '.verdict != null and .verdict != "allowed"')"
	equal "pages" $((turn * 3)) "$(log_count idle '.kind == "flow" and .dport == 443 and (.name | endswith("lab-a.com"))')"

	wait $idle || fail "$(cat "$LAB/tmp/idle" "$LAB/tmp/idle.err")"
	equal "answered again" ${#words[@]} "$(grep -c '"again": true' "$LAB/tmp/idle")"
	wait $ssh || fail "$(cat "$LAB/tmp/ssh")"
	equal "shell" "still here" "$(<"$LAB/tmp/ssh")"
	# Their leases were over long before; it is on the connections they had that they went on.
	guest_fails idle curl -sS --resolve "news.lab-site.org:443:$NET4.$WEB" https://news.lab-site.org/
	guest_fails idle curl -sS --resolve "news.lab-site.org:443:[$NET6:$WEB]" https://news.lab-site.org/
	local sport
	while read -r sport; do
		log_has idle ".kind == \"flow\" and .sport == $sport and .end == \"fin\" and .dur_ms > ${IDLE_S}000 and .verdict == \"allowed\""
	done < <(jq -r .sport <(grep '^{' "$LAB/tmp/idle"))
	log_has idle ".kind == \"flow\" and .dport == 22 and .end == \"fin\" and .dur_ms > ${IDLE_S}000"
}
