#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Paths under which somebody else laid a link, or that somebody else may write: nothing is written through them, and the
# message names the path.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup() {
	lab_up
	VICTIM=$LAB/tmp/victim
	mkdir -p "$LAB/tmp" "$LAB/run" "$LAB/state/audit"
	echo "not ours" >"$VICTIM"
	chown 64202 "$LAB/state/audit"
}

teardown() {
	if [[ -z ${BATS_TEST_COMPLETED:-} ]]; then
		tail -n 20 "$LAB/posternd.log" || true
	fi
	if [[ -e $LAB/posternd.pid ]] && ! posternd_gone; then
		all_gone
		posternd_stop
	fi
	rm -rf "$LAB/state" "$LAB/run" "$LAB/posternd.pid"
}

# It does not start, and says why: not_started PATTERN [option...]
not_started() {
	local pattern=$1
	shift
	run -1 timeout 15 posternd --runtime-dir "$LAB/run" --state-dir "$LAB/state" --netns-dir /run/netns --gateway-user 64201 \
		--audit-user 64202 --control-user 64203 --group 0 --resolver "$NET4.$RESOLVER" "$@"
	matches "message" "$pattern" "$output"
}
untouched() {
	equal "the file the link leads to" "not ours" "$(cat "$VICTIM")"
	equal "what lies beside it" "" "$(find "$LAB/tmp" -name 'victim*' ! -name victim)"
}

@test "F-32: a database that is a symbolic link, dangling or not, is neither followed nor replaced" {
	ln -s "$VICTIM" "$LAB/state/audit/audit.db"
	not_started 'audit.db is not a regular file'
	untouched
	[[ -L $LAB/state/audit/audit.db ]]
	ln -sfn "$LAB/tmp/victim.new" "$LAB/state/audit/audit.db"
	not_started 'audit.db is not a regular file'
	untouched
}

@test "F-32: a key that is a symbolic link is not read and not written" {
	ln -s "$VICTIM" "$LAB/state/audit/seal.key"
	not_started 'seal.key'
	untouched
}

@test "F-32: directories that others may write, or that are links, are not used" {
	mkdir "$LAB/elsewhere"
	rm -rf "$LAB/run"
	ln -s "$LAB/elsewhere" "$LAB/run"
	not_started "$LAB/run"
	equal "files behind the link" "" "$(ls "$LAB/elsewhere")"
	rm "$LAB/run"
	mkdir "$LAB/run"
	chown 65534 "$LAB/run"
	not_started "$LAB/run"
	rm -rf "$LAB/run" "$LAB/elsewhere"
	mkdir "$LAB/run"
	chmod 0777 "$LAB/state"
	chown 65534 "$LAB/state"
	not_started "$LAB/state"
	chown 0 "$LAB/state"
	chmod 0755 "$LAB/state"
}

@test "what cannot be used at the start is named with its option and a remedy" {
	not_started 'victim: Not a directory.*name another one with --state-dir' --state-dir "$VICTIM"
	not_started '/proc/none: No such file or directory.*name another one with --state-dir' --state-dir /proc/none
	mkdir -m 0700 "$LAB/tmp/closed"
	not_started "--state-dir .*: $LAB/tmp/closed is closed to the roles' users \(mode 700\): chmod o\+x $LAB/tmp/closed" \
		--state-dir "$LAB/tmp/closed/state"
	rmdir "$LAB/tmp/closed"
	not_started '--organisation.*no policy file /nonexistent.yaml' --organisation /nonexistent.yaml
	printf 'version: 1\nallow:\n  - hots: x\n' >"$LAB/tmp/organisation.yaml"
	chmod 0600 "$LAB/tmp/organisation.yaml"
	not_started '--organisation.*as its own user.*Permission denied' --organisation "$LAB/tmp/organisation.yaml"
	chmod 0644 "$LAB/tmp/organisation.yaml"
	not_started "--organisation.*:3:5: unknown key 'hots'" --organisation "$LAB/tmp/organisation.yaml"
	not_started '--preset-dir.*/nonexistent' --preset-dir /nonexistent
	run -1 postern log --db "$LAB/tmp/none.db"
	matches "message" 'no audit log at .*posternd has not run' "$output"
}

@test "directories above the state directory are made so that the roles get through" {
	rm -rf "$LAB/state"
	posternd_start --state-dir "$LAB/tmp/new/below/state"
	run -0 postern status
	matches "log" 'written +yes' "$output"
	posternd_stop
	rm -rf "$LAB/tmp/new"
}

@test "F-32: a report and a policy's file are whole or not there, and no link is written through" {
	posternd_start
	sandbox paths --policy "$(policy paths 'host: news.lab-site.org')"
	run -0 guest paths curl -sS -4 -o /dev/null https://news.lab-site.org/
	ln -s "$VICTIM" "$LAB/tmp/page.html"
	postern report paths -o "$LAB/tmp/page.html"
	untouched
	[[ -f $LAB/tmp/page.html && ! -L $LAB/tmp/page.html ]]
	rm "$LAB/tmp/page.html"
	# The sandbox's own folder in the state directory, swapped for a link while the daemon is down.
	posternd_stop
	mv "$LAB/state/sandboxes/paths" "$LAB/tmp/kept"
	ln -s "$LAB/tmp/kept" "$LAB/state/sandboxes/paths"
	posternd_start
	run -0 postern show paths -o json
	matches "state" '"state": ?"broken"' "$output"
	mark
	guest_fails paths curl -sS -4 --max-time 5 -o /dev/null https://news.lab-site.org/
	far_none "> ($NET4|$NET6).*443"
	rm -rf "$LAB/tmp/kept"
}
