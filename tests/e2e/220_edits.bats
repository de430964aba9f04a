#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# A policy changes while connections live: what is no longer allowed ends at once, all else does not notice; and a change that
# fails changes nothing.

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
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 40 "$LAB/tmp/background.out" "$LAB/tmp/held" "$LAB/posternd.log" || true
	background_end
	rm -f "$LAB/tmp/held" "$LAB/tmp/background.out"
	all_gone
}

# Connections that hold.py keeps, all of them open when it returns: hold NAME WHAT...
hold() {
	background guest "$1" "$LAB_DIR/hold.py" "$LAB/tmp/held" "${@:2}"
	local wanted=$(($# - 1))
	held_opened() { (($(grep -c '"event": "open"' "$LAB/tmp/held") == $1)); }
	wait_for 15 held_opened "$wanted"
}

# Run an edit, and look which connections end by it: cuts COMMAND... -- WHAT...
# Exactly these end, within a second of the command's return and not before it began; all others make rounds after that.
cuts() {
	local command=() before after
	while [[ $1 != -- ]]; do
		command+=("$1")
		shift
	done
	shift
	before=$(date +%s.%N)
	"${command[@]}" >"$LAB/tmp/edit"
	after=$(date +%s.%N)
	cut_as_wanted() {
		python3 - "$LAB/tmp/held" "$@" <<-'PYTHON'
			import json, sys, time
			before, after, wanted = float(sys.argv[2]), float(sys.argv[3]), set(sys.argv[4:])
			rows = [json.loads(line) for line in open(sys.argv[1])]
			ended = {row["what"]: row for row in rows if row["event"] == "end" and row["t"] >= before}
			assert set(ended) == wanted, f"ended: {sorted(ended)}"
			for what, row in ended.items():
			    assert row["end"] in ("rst", "refused"), row
			    assert row["t"] < after + 1, f"{row} after {row['t'] - after}"
			    assert row["last"] < after + 0.25, f"a round went through {row['last'] - after} s after the edit: {row}"
		PYTHON
	}
	wait_for 2 cut_as_wanted "$before" "$after" "$@" || cut_as_wanted "$before" "$after" "$@"
	# What was told is what happened.
	matches "answer" "generation [0-9]+, $# connections? cut" "$(cat "$LAB/tmp/edit")"
	local what name
	for what in "$@"; do
		name=${what#*:}
		matches "answer" "^cut .*${name%%[:/]*}.*" "$(cat "$LAB/tmp/edit")"
	done
}

ended_count() { grep -c '"event": "end"' "$LAB/tmp/held"; }

@test "F-33: tightening a policy cuts exactly what is no longer allowed, and at once" {
	sandbox f33 --policy "$(policy f33 '{host: echo.lab-site.org, ports: [7]}' '{host: echo.lab-site.org, ports: [5000], udp: true}' \
		"{cidr: $NET4.$ECHO/32, ports: [9000]}" "{cidr: '$NET6:$ECHO/128', ports: [9000]}" 'host: "*.lab-a.com"' 'host: lab-a.com')"
	postern allow f33 news.lab-site.org '*.lab-cname.com'
	local all=(tcp:echo.lab-site.org:7/4 tcp:echo.lab-site.org:7/6 udp:echo.lab-site.org:5000/4 udp:echo.lab-site.org:5000/6
		"tcp:$NET4.$ECHO:9000/4" tls:www.lab-a.com:443/4 tls:www.lab-a.com:443/6 http:four.lab-a.com:80/4 tls:lab-a.com:443/4
		tls:news.lab-site.org:443/4 http:news.lab-site.org:80/6 tls:www.lab-cname.com:443/4)
	hold f33 "${all[@]}"

	# One name of several that live on the same address.
	cuts postern deny f33 www.lab-a.com -- tls:www.lab-a.com:443/4 tls:www.lab-a.com:443/6
	guest_fails f33 curl -sS https://www.lab-a.com/
	run -0 guest f33 curl -sS https://lab-a.com/
	# A port of a name.
	cuts postern deny f33 news.lab-site.org:80 -- http:news.lab-site.org:80/6
	# What was allowed by an edit, withdrawn.
	cuts postern revoke f33 '*.lab-cname.com' -- tls:www.lab-cname.com:443/4
	# Addresses.
	cuts postern deny f33 "$NET4.$ECHO/32:9000" -- "tcp:$NET4.$ECHO:9000/4"
	# Another policy: no UDP, no names below lab-a.com.
	put_policy() {
		equal "status" 200 "$(api PUT /v1/sandboxes/f33/policy "$(jq -n --rawfile text "$(policy f33b '{host: echo.lab-site.org, ports: [7]}' \
			'host: lab-a.com')" '{policy: $text, policy_file: "f33b.yaml"}')")"
		jq -r '"f33: generation \(.generation), \(.cut_count) connections cut", (.cut[] | "cut \(.name) \(.address):\(.port)")' "$LAB/tmp/answer"
	}
	cuts put_policy -- udp:echo.lab-site.org:5000/4 udp:echo.lab-site.org:5000/6 http:four.lab-a.com:80/4
	# Something that does not matter to any of them.
	cuts postern allow f33 git.lab-code.org --
	cuts postern deny f33 git.lab-code.org --
	# All that is left.
	local now
	now=$(date +%s.%N)
	# Twenty rounds.
	sleep 2
	background_end
	jq -s --argjson now "$now" '[.[] | select(.event == "alive" and .last > $now) | .what] | sort | .[]' "$LAB/tmp/held" >"$LAB/tmp/alive"
	equal "alive" "$(printf '"%s"\n' tcp:echo.lab-site.org:7/4 tcp:echo.lab-site.org:7/6 tls:lab-a.com:443/4 tls:news.lab-site.org:443/4 | sort)" \
		"$(cat "$LAB/tmp/alive")"

	equal "records of what was cut" 8 "$(log_count f33 '.kind == "flow" and .end == "policy" and .reason == "revoked" and .verdict == "allowed"')"
	log_has f33 '.end == "policy" and .name == "www.lab-a.com" and .dst == "2600:1:2::11"'
	log_has f33 '.end == "policy" and .proto == "udp" and .bytes_in > 0'
	equal "cuts as the events count them" "0 0 0 1 1 1 2 3" \
		"$(log_json f33 --kind event | jq -r 'select(.event == "policy") | .detail.cut' | sort -n | xargs)"
	# What was cut does not come back: the name is not resolved, the address not leased.
	mark
	guest_fails f33 curl -sS http://four.lab-a.com/
	guest_fails f33 "$LAB_DIR/client.py" udp "$NET4.$ECHO" 5000 again
	guest_fails f33 "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 9000 again
	guest_fails f33 curl -sS http://news.lab-site.org/
	dns_not_asked four.lab-a.com
	far_none "> $NET4\.$ECHO (5000|9000) "
	equal "requests" "" "$(web_log)"
}

@test "F-34: edits that fail change nothing, and a denied probe stays denied through a hundred of them" {
	sandbox f34 --policy "$(policy f34 '{host: echo.lab-site.org, ports: [7]}' 'host: lab-a.com')"
	hold f34 tcp:echo.lab-site.org:7/4 tls:lab-a.com:443/6
	background guest f34 "$LAB_DIR/attempts.py" "$LAB/tmp/tries" "$NET4.$OTHER:443" "[$NET6:$OTHER]:443" www.lab-b.net:443 "$NET4.$ECHO:9000"
	local before round body
	before=$(postern show f34 -o json | jq -c '{generation, policy_hash, rules}')
	for ((round = 0; round < 25; round++)); do
		equal "status of nonsense" 422 "$(api PUT /v1/sandboxes/f34/policy '{"policy": "version: 1\nallow:\n  - hosst: www.lab-b.net\n"}')"
		equal "status of an impossible rule" 422 "$(api POST /v1/sandboxes/f34/rules '{"action": "allow", "rules": ["10.0.0.0/8:443"]}')"
		body=$(jq -n --arg text $'version: 1\nallow:\n  - host: lab-a.com\n  - host: www.lab-b.net\n    ports: [70000]\n' '{policy: $text}')
		equal "status of half a policy" 422 "$(api PUT /v1/sandboxes/f34/policy "$body")"
		equal "status of half a request" 400 "$(api PUT /v1/sandboxes/f34/policy '{"policy": "version: 1')"
	done
	equal "in force" "$before" "$(postern show f34 -o json | jq -c '{generation, policy_hash, rules}')"
	# And ones that succeed, there and back.
	for ((round = 0; round < 10; round++)); do
		postern allow f34 news.lab-site.org >/dev/null
		postern revoke f34 news.lab-site.org >/dev/null
	done
	background_end
	equal "probes that came through" 0 "$(jq -s '[.[] | select(.end == "open" or .end == "echo")] | length' "$LAB/tmp/tries")"
	(($(wc -l <"$LAB/tmp/tries") > 40)) || fail "too few probes to say anything"
	equal "connections alive" 2 "$(grep -c '"event": "alive"' "$LAB/tmp/held")"
	dns_not_asked www.lab-b.net
	far_none "> ($NET4\.|$NET6:)$OTHER "
	equal "policy events" 20 "$(log_json f34 --kind event | jq -s '[.[] | select(.event == "policy")] | length')"
	rm "$LAB/tmp/tries"
}

@test "an edit is for one sandbox, names its maker, and is gone when it is withdrawn" {
	sandbox one --policy "$(policy one 'host: lab-a.com')"
	sandbox two --policy "$LAB/tmp/one.yaml"
	run -0 postern allow one news.lab-site.org
	equal "answer" "+allow news.lab-site.org
one: generation 2, 0 connections cut" "$output"
	run -0 guest one curl -sS https://news.lab-site.org/
	guest_fails two curl -sS https://news.lab-site.org/
	# Once more is no change.
	run -0 --separate-stderr postern allow one news.lab-site.org
	# shellcheck disable=SC2154 # set by run --separate-stderr
	matches "message" "nothing to change" "$stderr"
	equal "generation" 2 "$(postern show one -o json | jq .generation)"
	run -0 postern test one https://news.lab-site.org/
	run -1 postern test two https://news.lab-site.org/
	log_has one '.event == "policy" and .uid == 0 and .detail.change == ["+allow news.lab-site.org"]'
	# Deny beats allow, also the other way round in time.
	run -0 postern deny one '*.lab-site.org'
	guest_fails one curl -sS https://news.lab-site.org/
	run -0 postern allow one news.lab-site.org:443
	guest_fails one curl -sS https://news.lab-site.org/
	run -0 postern revoke one '*.lab-site.org'
	run -0 guest one curl -sS https://news.lab-site.org/
	equal "page" "lab web server for news.lab-site.org" "$output"
	# What was not added by an edit cannot be withdrawn by one.
	run ! postern revoke one lab-a.com
	run -0 guest one curl -sS -o /dev/null https://lab-a.com/
}
