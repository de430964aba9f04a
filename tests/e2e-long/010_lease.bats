#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The shortest lease there is runs out while connections under it say nothing: they live, and nothing new may begin.

bats_require_minimum_version 1.5.0
load ../lab/lab

# A minute and half a minute of grace; the kernel's own element lasts half a minute longer.
LEASE_S=90 ELEMENT_S=120
IDLE_S=$((ELEMENT_S + 25))

# What has a lease in a sandbox: leases NAME
leases() {
	nsenter --net="/run/netns/postern-$1" -- nft -j list table inet postern |
		jq -r '.. | .elem? // empty | .. | .concat? // empty | map(tostring) | join(" ")' | sort -u
}

setup_file() {
	lab_up
	local name
	for name in news.lab-site.org www.lab-site.org:$WEB idle.lab-a.com:$SHARED ws.lab-a.com:$SHARED echo.lab-site.org:$ECHO; do
		[[ $name == *:* ]] || name+=:$WEB
		fdns "${name%:*}" "{\"answers\":[[\"A\",1,\"$NET4.${name#*:}\"],[\"AAAA\",1,\"$NET6:${name#*:}\"]]}"
	done
	posternd_start
	sandbox idle --policy "$(policy idle 'host: news.lab-site.org' 'host: www.lab-site.org' 'host: "*.lab-a.com"' \
		'{host: echo.lab-site.org, ports: [7]}' '{host: git.lab-code.org, ports: [22]}')"
}

setup() {
	mark
}

# No connection can be made without resolving again.
nothing_new() {
	mark
	guest_fails idle curl -sS --resolve "news.lab-site.org:443:$NET4.$WEB" https://news.lab-site.org/
	guest_fails idle curl -sS --resolve "news.lab-site.org:443:[$NET6:$WEB]" https://news.lab-site.org/
	guest_fails idle "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 7 hello
	guest_fails idle "$LAB_DIR/client.py" tcp "$NET6:$ECHO" 7 hello
	far_none " (S|SA) "
}

@test "C-11: connections outlive the lease that they began under; new ones need a new one" {
	local words=() family
	for family in 4 6; do
		words+=("echo:$family:echo.lab-site.org:7" "http:$family:news.lab-site.org:80" "https:$family:news.lab-site.org:443"
			"ws:$family:ws.lab-a.com:80" "wss:$family:ws.lab-a.com:443")
	done
	guest idle "$LAB_DIR/idle.py" $IDLE_S "${words[@]}" >"$LAB/tmp/idle" 2>"$LAB/tmp/idle.err" &
	local idle=$!
	wait_for 10 grep -q ready "$LAB/tmp/idle" || fail "$(cat "$LAB/tmp/idle.err")"
	# A shell on another machine, with nothing to say for as long.
	guest idle ssh -F "$LAB/ssh/config" git.lab-code.org "sleep $IDLE_S; echo still here" >"$LAB/tmp/ssh" 2>&1 &
	local ssh=$!
	# Another host of the same address and connection, whose name will be as old.
	guest idle dig +short www.lab-site.org >/dev/null
	guest idle "$LAB_DIR/idle.py" $IDLE_S http:4:news.lab-site.org:80:www.lab-site.org >"$LAB/tmp/other" 2>&1 &
	local other=$!
	matches "leases at first" "45.45.45.30" "$(leases idle)"

	# The lease is over, though the kernel would still let a packet through to us.
	sleep $((LEASE_S + 5))
	matches "elements" "45.45.45.30" "$(leases idle)"
	nothing_new
	equal "names refused" 2 "$(log_count idle '.kind == "deny" and .reason == "sni_mismatch" and .name == "news.lab-site.org"')"
	equal "addresses refused" 2 "$(log_count idle '.kind == "deny" and .reason == "not_leased" and .dport == 7')"
	# And now the kernel's element is, too.
	sleep $((ELEMENT_S - LEASE_S - 5))
	wait_for 12 no_element
	nothing_new
	equal "addresses refused" 2 "$(log_count idle '.kind == "deny" and .reason == "not_leased" and .dport == 443')"
	equal "addresses refused" 4 "$(log_count idle '.kind == "deny" and .reason == "not_leased" and .dport == 7')"

	wait $idle || fail "$(cat "$LAB/tmp/idle" "$LAB/tmp/idle.err")"
	equal "answered again" ${#words[@]} "$(grep -c '"again": true' "$LAB/tmp/idle")"
	wait $ssh || fail "$(cat "$LAB/tmp/ssh")"
	equal "shell" "still here" "$(<"$LAB/tmp/ssh")"
	# None of them is another connection than the first.
	far_none " (S|SA) "
	local sport
	while read -r sport; do
		log_has idle ".kind == \"flow\" and .sport == $sport and .end == \"fin\" and .dur_ms > ${IDLE_S}000 and .verdict == \"allowed\""
	done < <(jq -r '.sport' <(grep '^{' "$LAB/tmp/idle"))

	# A request under another name is a new thing: its lease is over, and that its connection lives does not help it.
	wait $other && fail "a request under an expired name was answered:" "$(<"$LAB/tmp/other")"
	log_has idle '.kind == "deny" and .reason == "host_mismatch" and .name == "www.lab-site.org"'
	equal "hosts that the far side saw" "news.lab-site.org ws.lab-a.com" \
		"$(web_log .host | tr -d '"' | sort -u | grep -v '^null$' | xargs)"
}
no_element() { ! leases idle | grep -qE '45\.45\.45\.(10|11|30)|2600:1:2::(10|11|30)'; }
