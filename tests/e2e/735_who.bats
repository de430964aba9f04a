#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Who changed what: each change of a policy names the user, the process, and what that process says of itself.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
}

teardown() {
	all_gone
}

# The last change of a sandbox's policy: last_change NAME JQ-EXPRESSION
last_change() { log_json "$1" --kind event | jq -r -s "[.[] | select(.event == \"policy\")][-1] | $2"; }

@test "who changed a policy: uid, pid, name and command line, and the policy's hash before and after" {
	local before after
	sandbox w1
	log_has w1 '.event == "attach" and .uid == 0 and .detail.comm == "postern" and (.detail.command | test("^[^ ]*postern attach w1 --netns "))'
	before=$(postern show w1 -o json | jq -r .policy_hash)
	run -0 postern allow w1 news.lab-site.org --for 1h
	after=$(postern show w1 -o json | jq -r .policy_hash)
	log_has w1 '.event == "policy" and .uid == 0'
	equal "before" "$before" "$(last_change w1 .detail.hash_before)"
	equal "after" "$after" "$(last_change w1 .detail.hash)"
	equal "name" postern "$(last_change w1 .detail.comm)"
	matches "command" '^[^ ]*postern allow w1 news.lab-site.org --for 1h$' "$(last_change w1 .detail.command)"
	matches "pid" '^[1-9][0-9]*$' "$(last_change w1 .detail.pid)"
}

@test "who changed a policy: another user's process with a hostile name is recorded as what it is" {
	sandbox w2
	# shellcheck disable=SC2016 # not the shell's
	cat >"$LAB/tmp/hostile.py" <<-'END'
		import ctypes, json, os, socket, sys
		ctypes.CDLL(None).prctl(15, b"\x1b[2J\n\"},{\xff", 0, 0, 0)
		body = json.dumps({"action": "allow", "rules": ["news.lab-site.org"]})
		s = socket.socket(socket.AF_UNIX)
		s.connect(sys.argv[1])
		s.sendall(f"POST /v1/sandboxes/w2/rules HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
		answer = b""
		while piece := s.recv(4096):
		    answer += piece
		print(os.getpid())
		sys.exit(b" 200 " not in answer.split(b"\n")[0])
	END
	# Its command line: longer than what is kept, with an end of line and a backslash in it.
	run -0 setpriv --reuid 64210 --regid 0 --clear-groups python3 - "$LAB/run/control.sock" $'new\nline\\' \
		"$(printf 'x%.0s' {1..3000})" <"$LAB/tmp/hostile.py"
	log_has w2 '.event == "policy" and .uid == 64210'
	equal "pid" "$output" "$(last_change w2 .detail.pid)"
	equal "name" '\x1b[2J\x0a"},{\xff' "$(last_change w2 .detail.comm)"
	matches "command" '^python3 - [^ ]*control.sock new\\x0aline\\x5c x+$' "$(last_change w2 .detail.command)"
	equal "change" '["+allow news.lab-site.org"]' "$(last_change w2 '.detail.change | tojson')"
	run -1 grep -P '[^\x20-\x7e]' <<<"$(postern log w2 --since 1d --kind event)"
}

@test "who changed a policy: a change too long for a record costs the command line first, never who it was" {
	local -a rules=()
	for i in {1..9}; do
		rules+=("a-rather-long-name-that-takes-its-place-in-the-record-$i.lab-site.org")
	done
	sandbox w3
	run -0 postern allow w3 "${rules[@]}"
	log_has w3 '.event == "policy" and .detail.pid > 0 and .detail.comm == "postern" and .detail.command == "..."
		and (.detail.change | length) == 9'
	# And then the end of the list, and how many it had.
	for i in {10..41}; do
		rules+=("a-rather-long-name-that-takes-its-place-in-the-record-$i.lab-site.org")
	done
	run -0 postern allow w3 "${rules[@]}"
	RULE="${rules[9]}" log_has w3 '.event == "policy" and .detail.to == 3 and .detail.comm == "postern" and .detail.change ==
		(.detail.change[0:8] + ["... and 24 more"]) and .detail.change[0] == "+allow \(env.RULE)"'
}
