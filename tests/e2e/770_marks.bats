#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The agent's own timeline: marks among the connections they belong to; labels and parents, which say of a sandbox what
# it is for and decide nothing.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	# The build may be in a folder that strangers cannot look into.
	mkdir -m 0755 "$LAB/bin" 2>/dev/null || chmod 0755 "$LAB/bin"
	cp "$BUILD/postern" "$LAB/bin/"
}

setup() {
	mark
}

teardown() {
	! posternd_gone || posternd_start
	all_gone
}

NEWS='host: news.lab-site.org'

# The texts of a sandbox's marks, a line each.
marks() {
	log_json "$1" | jq -r 'select(.event == "mark") | .detail.text'
}

# mark_by_api NAME TEXT: prints the HTTP status
mark_by_api() {
	api POST "/v1/sandboxes/$1/marks" "$(jq -n --arg text "$2" '{text: $text}')"
}

# bats test_tags=smoke
@test "marks stand among the connections of their steps, from the command line and from the API" {
	sandbox agent --policy "$(policy agent "$NEWS")"
	run -0 postern mark agent "step 1: open the news"
	equal "output" "" "$output"
	run -0 guest agent curl -sS -4 https://news.lab-site.org/
	equal "status" 201 "$(mark_by_api agent 'step 2: click "Export"')"
	equal "sandbox in the answer" agent "$(jq -r .sandbox "$LAB/tmp/answer")"
	guest_fails agent curl -sS -4 https://www.lab-b.net/
	run -0 postern mark agent "step 3: give up" -o json
	local answer=$output
	equal "requests at the far side" 1 "$(web_log | wc -l)"
	dns_not_asked www.lab-b.net
	log_has agent '.kind == "flow" and .end == "fin"'
	equal "the timeline" "step 1: open the news|flow news.lab-site.org|step 2: click \"Export\"|deny www.lab-b.net|step 3: give up" \
		"$(log_json agent | jq -r 'if .event == "mark" then .detail.text
			elif .kind == "flow" then "flow " + .name
			elif .kind == "dns" and .verdict == "denied" and .qtype == "A" then "deny " + .qname
			else empty end' | uniq | paste -sd'|')"
	log_has agent ".event == \"mark\" and .uid == 0 and .detail.text == \"step 3: give up\" and .id == $(jq .id <<<"$answer")
		and .ts == $(jq .ts <<<"$answer")"
	run -0 postern log agent
	matches "as text" "event +mark  by uid 0 .*step 1: open the news" "$output"
	run -0 sqlite3 -readonly "$LAB/state/audit/audit.db" \
		"SELECT json_extract(detail, '\$.text') FROM v_events WHERE sandbox = 'agent' AND event = 'mark' ORDER BY time LIMIT 1"
	equal "in plain SQL" "step 1: open the news" "$output"
}

@test "F-28: hostile text in a mark is refused, or escaped wherever it is shown" {
	sandbox hostile
	local text
	for text in $'\e]0;owned\a' $'two\nlines' $'a\rb' $'\x7f' $'\u009b31m' ''; do
		run -2 postern mark hostile "$text"
		equal "status of $(printf %q "$text")" 400 "$(mark_by_api hostile "$text")"
	done
	run -2 postern mark hostile $'\xff\xfe'
	matches "message" "UTF-8" "$output"
	equal "status" 400 "$(api POST /v1/sandboxes/hostile/marks $'{"text":"\xff\xfe"}')"
	equal "status" 400 "$(api POST /v1/sandboxes/hostile/marks '{"text":"a\u0000b"}')"
	equal "status" 400 "$(api POST /v1/sandboxes/hostile/marks '{"text":"a","kind":"policy"}')"
	equal "marks so far" "" "$(marks hostile)"
	local texts=($'\u202egpj.exe' '"}, {"event":"policy' "'); DROP TABLE events;--" '%s%n <img onerror=x> \u001b[2J' '=cmd' 'Schritt 4: „Größe“ ✓')
	for text in "${texts[@]}"; do
		run -0 postern mark hostile "$text"
	done
	equal "what comes back" "$(printf '%s\n' "${texts[@]}")" "$(marks hostile)"
	postern log hostile >"$LAB/tmp/text"
	log_json hostile >"$LAB/tmp/json"
	equal "bytes that are not printable ASCII" "" "$(LC_ALL=C grep -nP '[^\x20-\x7e]' "$LAB/tmp/text" "$LAB/tmp/json" || true)"
	equal "lines" "$(wc -l <"$LAB/tmp/json")" "$(wc -l <"$LAB/tmp/text")"
	equal "events of other kinds" "attach" "$(jq -r 'select(.kind == "event" and .event != "mark") | .event' "$LAB/tmp/json")"
	far_none "> ($NET4\.|$NET6:)"
}

@test "a mark has 1 to 512 bytes, is about a sandbox that is there, and comes by the line on standard input" {
	sandbox lines
	local long
	long=$(printf 'x%.0s' {1..512})
	run -0 postern mark lines "$long"
	run -2 postern mark lines "${long}x"
	matches "message" "1 to 512 bytes" "$output"
	run -0 postern mark lines "$(printf '"%.0s' {1..512})"
	run -1 postern mark nobody "hello"
	matches "message" "no sandbox nobody" "$output"
	equal "status" 404 "$(mark_by_api nobody hello)"
	equal "status" 405 "$(api GET /v1/sandboxes/lines/marks)"
	run -2 postern mark lines
	run -2 postern mark lines two words
	run -0 postern mark lines - < <(printf 'first\n\nsecond\nthe last, without an end')
	equal "marks" "$(printf '%s\n' first second 'the last, without an end')" "$(marks lines | tail -n 3)"
	run -2 postern mark lines - < <(printf 'good\nbad\tone\nnever read\n')
	matches "message" "line 2: .*control character" "$output"
	equal "the last" good "$(marks lines | tail -n 1)"
	run -2 postern mark lines - < <(printf 'a\0b\n')
	matches "message" "line 1: .*NUL" "$output"
	run -2 timeout 10 "$BUILD/postern" mark lines - < <(tr '\0' x </dev/zero)
	matches "message" "line 1: longer than" "$output"
	run -0 postern mark lines - </dev/null
	equal "in all" 6 "$(marks lines | wc -l)"
}

@test "a runaway marker is held back, alone, and what was taken is on record" {
	sandbox runaway --policy "$(policy runaway "$NEWS")"
	sandbox calm
	local urls=()
	while ((${#urls[@]} < 400)); do
		urls+=(-o /dev/null http://postern/v1/sandboxes/runaway/marks)
	done
	curl -sS -Z --parallel-max 40 --unix-socket "$LAB/run/control.sock" -d '{"text":"again"}' -w '%{http_code}\n' \
		"${urls[@]}" >"$LAB/tmp/codes"
	local taken refused
	taken=$(grep -c '^201$' "$LAB/tmp/codes")
	refused=$(grep -c '^429$' "$LAB/tmp/codes" || true)
	equal "answers" $((${#urls[@]} / 3)) $((taken + refused))
	((refused == 0 || taken >= 100)) || fail "only $taken were taken"
	equal "on record" "$taken" "$(marks runaway | wc -l)"
	run -0 postern mark calm "mine"
	again() { postern mark runaway "later"; }
	wait_for 5 again
	run -0 guest runaway curl -sS https://news.lab-site.org/
}

@test "a mark is answered when it is on disk, not before" {
	sandbox durable
	role_signal STOP auditor
	postern mark durable "while nobody writes" 3>&- &
	local pid=$!
	sleep 0.5
	kill -0 "$pid" || fail "it was answered"
	equal "rows" "" "$(marks durable)"
	role_signal CONT auditor
	wait "$pid"
	equal "rows" "while nobody writes" "$(marks durable)"
}

@test "labels and parents are on record, found by, and kept when the daemon restarts; nothing is inherited" {
	sandbox base --policy "$(policy base "$NEWS")" --label role=template
	run -0 sandbox clone --parent base --label task=4711 --label 'org/team=a "b" = c'
	matches "shown" '^labels +task=4711, org/team=a "b" = c$' "$output"
	matches "shown" '^parent +base$' "$output"
	local base
	base=$(postern show base -o json | jq .id)
	guest_fails clone curl -sS https://news.lab-site.org/
	dns_not_asked news.lab-site.org
	far_none "> ($NET4\.|$NET6:)$WEB "
	kept() {
		equal "labels" '{"task":"4711","org/team":"a \"b\" = c"}' "$(postern show clone -o json | jq -c .labels)"
		equal "parent" "{\"name\":\"base\",\"id\":$base}" "$(postern show clone -o json | jq -c .parent)"
		equal "by label" "clone" "$(postern list --label task -o json | jq -r '.sandboxes[].name')"
		equal "by label and value" "clone" "$(postern list --label task=4711 --label org/team -o json | jq -r '.sandboxes[].name')"
		equal "by both" "" "$(postern list --label task --label role -o json | jq -r '.sandboxes[].name')"
		equal "by another value" "" "$(postern list --label task=47 -o json | jq -r '.sandboxes[].name')"
		run -0 postern list -o wide
		matches "wide" '^clone .* base +task=4711, org/team=a "b" = c$' "$output"
	}
	kept
	posternd_stop
	posternd_start
	kept
	posternd_kill9_all
	posternd_start
	kept
	sandbox_gone base
	equal "parent that is gone" base "$(postern show clone -o json | jq -r .parent.name)"
	equal "in the log" "4711 base $base" "$(sqlite3 -readonly -separator ' ' "$LAB/state/audit/audit.db" \
		"SELECT detail ->> '\$.labels.task', detail ->> '\$.parent.name', detail ->> '\$.parent.id' FROM sandboxes WHERE name = 'clone'")"
	# Wrong words.
	run -1 postern attach other --parent base
	matches "message" "parent base: no sandbox of this name is attached" "$output"
	run -2 postern attach other --label Task=1
	matches "message" "label 'Task': a key is" "$output"
	run -2 postern attach other --label task
	matches "message" "KEY=VALUE" "$output"
	run -2 postern attach other --label a=1 --label a=2
	matches "message" "given twice" "$output"
	run -2 postern attach other --label $'a=\e[2J'
	matches "message" "printable ASCII" "$output"
	run -2 postern list -o narrow
	equal "none of them came about" clone "$(postern list -o json | jq -r '.sandboxes[].name')"
}

@test "the sandbox of run has labels and takes marks, while it is there" {
	mkfifo "$LAB/tmp/go"
	postern run --quiet --name errand --label task=7 --allow news.lab-site.org -- \
		sh -c "read -r word <'$LAB/tmp/go'; curl -sS --cacert '$LAB/tls/ca.crt' https://news.lab-site.org/" \
		>"$LAB/tmp/page" 2>&1 3>&- &
	local pid=$!
	marked() { postern mark errand "step 1: go"; }
	wait_for 15 marked
	equal "label" 7 "$(postern show errand -o json | jq -r .labels.task)"
	echo >"$LAB/tmp/go"
	wait "$pid" || fail "run: $(cat "$LAB/tmp/page")"
	equal "page" "lab web server for news.lab-site.org" "$(cat "$LAB/tmp/page")"
	run -1 postern mark errand "too late"
	equal "the timeline" "attach mark flow detach" \
		"$(log_json errand | jq -r 'select(.kind == "flow" or .kind == "event") | .event // .kind' | paste -sd' ')"
	rm "$LAB/tmp/go"
}

# as_user UID GID COMMAND...
as_user() {
	setpriv --reuid "$1" --regid "$2" --clear-groups --no-new-privs "${@:3}"
}

@test "who runs without root marks without root: the user's own daemon is found" {
	mkdir -m 0700 "$LAB/stranger" "$LAB/stranger/run"
	mkfifo "$LAB/stranger/go"
	chown -R 5000:5000 "$LAB/stranger"
	cp "$BUILD/posternd" "$LAB/bin/"
	own() {
		env -u POSTERN_RUNTIME_DIR -u POSTERN_STATE_DIR HOME="$LAB/stranger" XDG_RUNTIME_DIR="$LAB/stranger/run" \
			setpriv --reuid 5000 --regid 5000 --clear-groups --no-new-privs "$@"
	}
	own "$LAB/bin/postern" run --quiet --name own --label task=8 -- sh -c "read -r word <'$LAB/stranger/go'" \
		>"$LAB/tmp/own" 2>&1 3>&- &
	local pid=$!
	marked() { own "$LAB/bin/postern" mark own "step 1: wait"; }
	wait_for 20 marked || fail "$(cat "$LAB/tmp/own")"
	equal "label" own "$(own "$LAB/bin/postern" list --label task=8 -o json | jq -r '.sandboxes[].name')"
	echo >"$LAB/stranger/go"
	wait "$pid" || fail "run: $(cat "$LAB/tmp/own")"
	equal "mark" "5000 step 1: wait" "$(own "$LAB/bin/postern" log own -o json | jq -r 'select(.event == "mark") | "\(.uid) \(.detail.text)"')"
}

@test "members of the socket's group may mark, and the log says who did; strangers may not" {
	posternd_stop
	posternd_start --group 64210
	sandbox shared
	run -0 as_user 5000 64210 "$LAB/bin/postern" mark shared "from the runtime"
	run -4 as_user 5001 5001 "$LAB/bin/postern" mark shared "from a stranger"
	matches "message" "permission denied; become root" "$output"
	run -0 as_user 5002 64210 curl -sS --fail --unix-socket "$LAB/run/control.sock" -d '{"text":"by curl"}' \
		http://postern/v1/sandboxes/shared/marks
	equal "who said what" "5000 from the runtime|5002 by curl" \
		"$(log_json shared | jq -r 'select(.event == "mark") | "\(.uid) \(.detail.text)"' | paste -sd'|')"
	all_gone
	posternd_stop
	posternd_start
}
