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
		done < <(sed -nE "s/^usage: postern $command //p" "$HELP/$command" | grep -oE '(^|\| )[a-z]+' | tr -d '| ')
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
	mapfile -t others < <(ls "$HELP" | grep -vE '^(log|top|stats|report|mark|verify|seal)$')
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
		equal "warnings about $name" "" "$(groff -Kutf8 -t -man -ww -z -Tutf8 "$page" 2>&1)"
		matches "footer of $name" "\"postern $(postern --version | cut -d' ' -f2)\"" "$(grep '^\.TH' "$page")"
	done
	while read -r name; do
		[[ -s $BUILD/man/${name/(/.} ]] || fail "there is no page $name"
	done < <(cat "$MAN"/*.scd "$REPO/README.md" "$REPO/configs/"*.service | grep -ohE 'posternd?(-[a-z]+)?\*?\([0-9]\)' |
		tr -d '*)' | sort -u)
}

@test "postern-audit(5) knows each table, view, column, word, event and member of a log that has them" {
	local edits=(--allow '*.lab-a.com')
	sandbox read --policy "$(policy read 'host: news.lab-site.org')" "${edits[@]}" --label team=red
	sandbox clone --parent read
	guest read curl -sS -o /dev/null https://news.lab-site.org/
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
	equal "members" "" "$(python3 "$LAB_DIR/manual.py" members "$MAN/postern-audit.5.scd" "$REPO/audit/render_json.c")"
	# A page that lacks a column and a word is noticed.
	sed -E '/^\|  up_sport$/,+2d; s/^\*sni_missing\*$/*sni*/' "$MAN/postern-audit.5.scd" >"$LAB/tmp/page.scd"
	run -0 python3 "$LAB_DIR/manual.py" audit "$LAB/tmp/page.scd" "$DB" "$LAB/tmp/rows"
	matches "the column" "view v_connections: up_sport is missing" "$output"
	matches "the word" "reasons: sni_missing is missing" "$output"
}
