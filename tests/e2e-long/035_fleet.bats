#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What goes well with three sandboxes, with so many that the keeper has more than a thousand descriptors open.

bats_require_minimum_version 1.5.0
load ../lab/lab

FLEET=${FLEET:-150}

setup_file() {
	lab_up
	posternd_start
	sandbox f21 --allow www.lab-a.com
	local i
	for ((i = 0; i < FLEET; i++)); do
		postern attach "fleet$i" >/dev/null
	done
}

setup() {
	mark
}

serves() { guest f21 curl -sS -m 5 -o /dev/null https://www.lab-a.com/; }
all_attached() {
	postern list -o json | jq -e --argjson n $((FLEET + 1)) '[.sandboxes[] | select(.state == "attached")] | length == $n'
}

@test "F-21: each role of a fleet that is killed is back, with all sandboxes" {
	((FLEET < 100 || $(find "/proc/$(posternd_pid)/fd" -mindepth 1 | wc -l) > 1024)) || fail "this is no large fleet"
	local role
	for role in gateway auditor control; do
		role_signal KILL "$role"
		wait_for 30 all_ready || fail "the $role: $(postern status)"
		wait_for 30 all_attached || fail "the $role: $(postern list)"
		wait_for 10 serves || fail "the $role: it serves nobody"
	done
}

@test "a fleet's daemon ends in order and takes all over again" {
	local before
	before=$(find /run/netns -name 'postern-*' | wc -l)
	posternd_stop
	run -0 postern verify
	matches "verified" 'OK: nothing was changed' "$output"
	equal "namespaces kept" "$before" "$(find /run/netns -name 'postern-*' | wc -l)"
	posternd_start
	wait_for 30 all_attached
	wait_for 10 serves
	all_gone
	equal "namespaces" "" "$(find /run/netns -name 'postern-*')"
	equal "stored" "" "$(find "$LAB/state/sandboxes" -mindepth 1 -type d)"
}
