#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Wrong words, from people, from their files and from sandboxes: said clearly, with the exit status that postern(1) promises,
# shown harmlessly, and nothing is left of what was not done.

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
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 20 "$LAB/posternd.log"
	! posternd_gone || posternd_start
	all_gone
}

NEWS='host: news.lab-site.org'

# says STATUS PATTERN COMMAND...: ends with this status, says this on standard error, and nothing on standard output
says() {
	local wanted=$1 pattern=$2
	shift 2
	run --separate-stderr "$@"
	equal "exit status of $* ($output $stderr)" "$wanted" "$status"
	# shellcheck disable=SC2154 # set by run --separate-stderr
	matches "message of $*" "$pattern" "$stderr"
	equal "output of $*" "" "$output"
}

@test "a policy with several errors: each is told with file, line and column, and nothing is attached" {
	local file=$LAB/tmp/several.yaml
	cat >"$file" <<-YAML
		version: 1
		allow:
		  - host: "exa mple.com"
		  - host: good.example.com
		    ports: [0, "9-3"]
		  - cidr: 10.0.0.0/8
		    ports: [22]
		  - hots: x.com
		  - host: a.*.com
		allow: []
	YAML
	says 5 "several.yaml:3:11: .*exa mple.com" postern attach several --policy "$file"
	local place
	for place in '5:13: .*0' "5:16: .*9-3" '6:11: 10.0.0.0/8 .*never be allowed' "8:5: unknown key 'hots'" '9:11: .*a\.\*\.com' \
		"10:1: 'allow' stands twice, first in line 2"; do
		matches "message" "several.yaml:$place" "$stderr"
	done
	[[ ! -e /run/netns/postern-several ]]
	says 1 'no sandbox several' postern show several
	# The same over the socket, and for a sandbox that has another policy.
	sandbox whole --policy "$(policy whole "$NEWS")"
	equal "status" 422 "$(api PUT /v1/sandboxes/whole/policy "$(jq -n --rawfile text "$file" '{policy: $text, policy_file: "x.yaml"}')")"
	matches "answer" 'x.yaml:3:11: .*\\nx.yaml:5:13: .*x.yaml:10:1:' "$(cat "$LAB/tmp/answer")"
	run -0 guest whole curl -sS https://news.lab-site.org/
	# A file that is no text, a folder, one that is not there.
	head -c 3000 /dev/urandom >"$file"
	run -5 postern attach several --policy "$file"
	says 1 'no policy file|not a file|folder|directory' postern attach several --policy "$LAB/tmp"
	says 1 "no policy file $LAB/tmp/none.yaml" postern attach several --policy "$LAB/tmp/none.yaml"
}

@test "commands, options, names and rules that are none" {
	says 2 "unknown command 'attahc'" postern attahc x
	matches "message" "did you mean attach" "$stderr"
	says 2 "usage: postern" postern
	says 2 "unknown option '-Z'" postern -Z
	says 2 "postern list: extra operand 'extra'" postern list extra
	says 2 "postern attach: missing operand: SANDBOX" postern attach
	matches "message" "try 'postern attach --help'" "$stderr"
	says 2 "unknown option '--frob'" postern attach a --frob
	says 2 "options must follow 'policy check'" postern policy -o json check
	says 2 "unknown command 'policy chek'" postern policy chek
	local name
	for name in '' 'Upper' '../../etc' 'a b' '-a' '.a' $'a\nb' "$(printf 'a%.0s' {1..64})" 'ä'; do
		run postern attach -- "$name"
		equal "exit status for the name '$name'" 2 "$status"
	done
	says 5 "character that no host name has" postern attach a --allow 'exa mple.com'
	says 5 "'99999' is no port" postern attach a --allow 'example.com:99999'
	says 5 "can never be allowed" postern attach a --allow 10.0.0.0/8:22
	says 5 "must name its ports" postern attach a --allow 8.8.8.0/24
	says 2 "guest_ip" postern attach a --guest-ip 300.1.1.1/30
	says 2 "mac" postern attach a --mac zz
	for name in show log 'allow nosuch x.com' 'deny nosuch x.com' 'revoke nosuch x.com' 'test nosuch x.com' detach; do
		[[ $name == *' '* ]] || name+=' nosuch'
		# shellcheck disable=SC2086 # words
		says 1 "no sandbox nosuch" postern $name
	done
	says 2 "not a time" postern log --since yesterday
	says 2 "short" postern log -o xml
	equal "namespaces" "pl-internet" "$(ls /run/netns)"
	equal "sandboxes" "" "$(ls "$LAB/state/sandboxes")"
}

# What there is of sandboxes on this machine.
everything() {
	ls /run/netns "$LAB/state/sandboxes"
	ip -o link show | cut -d' ' -f2
	ip -n pl-guest-odd -o link show | cut -d' ' -f2
	find "/proc/$(posternd_pid)/fd" -mindepth 1 | wc -l
}

# Some of it goes behind the answer's back.
as_before() {
	same() { everything | cmp -s "$LAB/tmp/before" -; }
	wait_for 15 same || everything | diff "$LAB/tmp/before" -
}

@test "F-06: what cannot be attached leaves nothing, and the name can be used afterwards" {
	ip netns add pl-guest-odd
	mkfifo "$LAB/tmp/fifo"
	everything >"$LAB/tmp/before"
	local netns
	for netns in "$LAB/tmp/fifo" "$LAB/posternd.log" "$LAB/tmp" /dev/zero /proc/self/ns/mnt /proc/self/ns/net /nonexistent "$LAB/nsd" \
		"$(printf 'x%.0s' {1..600})"; do
		run timeout 5 postern attach odd --netns "$netns"
		[[ $status -eq 1 || $status -eq 2 ]] || fail "status $status for ${netns:0:60}: $output"
		matches "message" "namespace|netns" "$output"
	done
	says 1 "is not there" postern attach odd --pid 999999
	says 2 "own network namespace" postern attach odd --pid 1
	says 2 'ifname|device' postern attach odd --netns pl-guest-odd --ifname 'a/b'
	says 2 'ifname|device' postern attach odd --netns pl-guest-odd --ifname lo
	# The container has such a device, or such an address.
	ip -n pl-guest-odd link add eth0 type bridge
	run ! postern attach odd --netns pl-guest-odd
	matches "message" "has (a|another) device,? eth0" "$output"
	ip -n pl-guest-odd link del eth0
	as_before
	# Something of that name is in the way.
	touch /run/netns/postern-odd
	run ! postern attach odd --netns pl-guest-odd
	rm -f /run/netns/postern-odd
	as_before

	run -0 postern attach odd --netns pl-guest-odd --policy "$(policy odd "$NEWS")"
	says 1 "attached already" postern attach odd --netns pl-guest-odd
	run ! postern attach another --netns pl-guest-odd
	matches "message" "eth0|attached" "$output"
	mkdir -p "$LAB/guest/odd"
	echo "nameserver $GATEWAY4" >"$LAB/guest/odd/resolv.conf"
	run -0 guest odd curl -sS https://news.lab-site.org/
	equal "page" "lab web server for news.lab-site.org" "$output"
	sandbox_gone odd
	ip netns add pl-guest-odd
	as_before
	ip netns del pl-guest-odd
}

@test "requests that are none get an answer that says so, and change nothing" {
	local body
	for body in '' '{' '[]' '"x"' '{"name": 5}' '{"name": "a", "kind": "frob"}' '{"name": "a", "name": "b"}' '{"name": "a\u0000b", "kind": "tap"}' \
		'{"name": "a", "kind": "tap", "frob": 1}' '{"name": "a", "kind": "netns"}' '{"name": "A", "kind": "tap"}' $'{"name": "\xff"}' \
		'{"name": "a", "kind": "tap", "policy": 7}' '{"name": "a", "kind": "netns", "pid": -1}' "$(printf '[%.0s' {1..5000})"; do
		equal "status for ${body:0:60}" 400 "$(api POST /v1/sandboxes "$body")"
		jq -e '.error == "usage" and (.message | length > 10)' "$LAB/tmp/answer"
	done
	equal "status" 422 "$(api POST /v1/sandboxes '{"name": "a", "kind": "tap", "allow": ["x y"]}')"
	jq -e '.error == "policy_invalid"' "$LAB/tmp/answer"
	equal "status" 404 "$(api GET /v1/nothing)"
	equal "status" 404 "$(api GET /v1/sandboxes/nosuch)"
	equal "status" 404 "$(api DELETE /v1/sandboxes/..%2f..%2fetc)"
	equal "status" 405 "$(api PATCH /v1/status)"
	head -c 30000000 /dev/zero | tr '\0' a >"$LAB/tmp/big"
	equal "status of 30 MB" 413 "$(api POST /v1/sandboxes "@$LAB/tmp/big")"
	rm "$LAB/tmp/big"
	# Not HTTP at all; half a request; a hundred connections that say nothing.
	head -c 5000 /dev/urandom | timeout 5 python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.stdin.buffer.read()); s.shutdown(1)
while s.recv(4096): pass' "$LAB/run/control.sock" || true
	python3 -c 'import socket, subprocess, sys
held = [socket.socket(socket.AF_UNIX) for _ in range(40)]
for s in held: s.connect(sys.argv[1]); s.sendall(b"GET /v1/status HTTP/1.1\r\nHo")
sys.exit(subprocess.run(["postern", "list"], timeout=20).returncode)' "$LAB/run/control.sock"
	equal "sandboxes" "" "$(ls "$LAB/state/sandboxes")"
	equal "restarts of control" 0 "$(postern status -o json | jq '.roles[] | select(.role == "control") | .restarts')"
}

@test "no daemon: exit status 3 and what to do; the log can be read all the same" {
	posternd_stop
	local words
	for words in list status 'show a' 'attach a' 'detach a' 'allow a x.com' 'deny a x.com' 'revoke a x.com' 'test a x.com'; do
		# shellcheck disable=SC2086 # words
		says 3 "control.sock: no daemon answers; posternd is not running" postern $words
	done
	# What is wrong with the words comes first.
	says 2 "unknown command" postern frob
	says 5 "can never be allowed" postern allow a 10.0.0.0/8:22
	run -0 postern log --kind event
	matches "log" "daemon_stop" "$output"
	says 3 "no daemon answers" postern -R /nonexistent status
	# A socket that nobody listens on, and a file in its place.
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$LAB/tmp/control.sock"
	says 3 "no daemon answers" postern -R "$LAB/tmp" status
	rm "$LAB/tmp/control.sock"
	posternd_start
	run -0 postern list
}

@test "damaged state: the daemon starts, says what is broken, all others work, and it can be detached" {
	local name state=$LAB/state/sandboxes
	for name in good other badjson cut badpolicy badedits; do
		sandbox "$name" --policy "$(policy "$name" "$NEWS")" --allow lab-a.com
	done
	posternd_kill9
	echo '{' >"$state/badjson/attachment.json"
	: >"$state/cut/attachment.json"
	printf 'version: 1\nallow:\n  - host: "\x1b]0;x"\n' >"$state/badpolicy/policy.yaml"
	echo nonsense >"$state/badedits/edits.yaml"
	echo nonsense >"$state/.last-id"
	mkdir -m 0700 "$state/Not A Name"
	: >"$LAB/posternd.log"
	posternd_start
	run -1 --separate-stderr postern status
	for name in 'badjson: attachment.json' 'cut: attachment.json' 'badpolicy: badpolicy.yaml:1:1' 'badedits: edits.yaml:1:1'; do
		matches "status" "^broken +$name" "$output"
		matches "what posternd says" "control: sandbox ${name%%:*} is broken: ${name#*: }" "$(cat "$LAB/posternd.log")"
	done
	matches "what posternd says" "control: state: .last-id does not contain a number: continuing" "$(cat "$LAB/posternd.log")"
	matches "what posternd says" "control: state: ignoring Not A Name" "$(cat "$LAB/posternd.log")"
	equal "bytes that are not printable" "" "$(LC_ALL=C grep -nP '[^\x20-\x7e]' "$LAB/posternd.log" || true)"
	for name in good other; do
		run -0 guest "$name" curl -sS https://news.lab-site.org/
		equal "page" "lab web server for news.lab-site.org" "$output"
	done
	mark
	for name in badjson cut badpolicy badedits; do
		run ! guest "$name" curl -sS -m 3 https://news.lab-site.org/
		run ! guest "$name" curl -sS -m 3 --resolve "lab-a.com:443:$NET4.$SHARED" https://lab-a.com/
	done
	dns_not_asked news.lab-site.org
	far_none "> ($NET4\.|$NET6:)($WEB|$SHARED) "
	log_has badpolicy '.kind == "event" and .event == "restored" and (.detail.error | contains("badpolicy.yaml:1:1"))'
	# One is mended, others removed and made again: under the same name, of the same container.
	equal "status" 200 "$(api PUT /v1/sandboxes/badpolicy/policy "$(jq -n --rawfile text "$LAB/tmp/good.yaml" '{policy: $text}')")"
	run -0 guest badpolicy curl -sS -o /dev/null https://news.lab-site.org/
	for name in badjson cut badedits; do
		run -0 postern detach "$name"
		[[ ! -e /run/netns/postern-$name ]]
		run -0 postern attach "$name" --netns "pl-guest-$name" --policy "$LAB/tmp/good.yaml"
		run -0 guest "$name" curl -sS -o /dev/null https://news.lab-site.org/
	done
	run -0 postern status

	# Only control is new, and cannot read what the keeper serves: that ends, too.
	echo '{' >"$state/good/attachment.json"
	role_signal KILL control
	wait_for 10 all_ready
	closed() { ! guest good curl -sS -m 2 -o /dev/null https://news.lab-site.org/; }
	wait_for 10 closed
	run -0 guest other curl -sS -o /dev/null https://news.lab-site.org/
	run -0 postern detach good
	run -0 postern attach good --netns pl-guest-good --policy "$LAB/tmp/good.yaml"
	run -0 guest good curl -sS -o /dev/null https://news.lab-site.org/
	rmdir "$state/Not A Name"
}

@test "F-28: hostile bytes in names are shown as printable ASCII, and JSON is valid" {
	sandbox hostile --policy "$(policy hostile "$NEWS")"
	guest hostile env "PYTHONPATH=$LAB_DIR" python3 - "$GATEWAY4" <<-'PYTHON'
		import sys
		import hostile
		names = [b"\x1b]0;owned\x07", b"a\r\nfaked line", "\u202egpj.exe".encode(), b"\x9b31m", b"\xff\xfe\x00", b"\"\\'", b"%s%n", b"\x7f\x08\x08"]
		hostile.offer(sys.argv[1], names, below=b"\5lab-b\3net")
	PYTHON
	equal "requests at the far side" "" "$(web_log)"
	far_none "> ($NET4\.|$NET6:)$WEB (80|443) [A-Z]*P"
	denied() { (($(log_count hostile '.kind == "deny" and (.dport == 443 or .dport == 80)') == 16)); }
	wait_for 5 denied
	equal "queries" 8 "$(log_json hostile | jq -s '[.[] | select(.kind == "dns" and .verdict == "denied" and .rcode != "NOERROR") | .count] | add')"
	# As text: printable ASCII in every byte, to a file and to a terminal; a line is a row.
	postern log hostile --since 1d >"$LAB/tmp/text"
	script -qec "postern log hostile --since 1d" "$LAB/tmp/typescript" >"$LAB/tmp/terminal" </dev/null || true
	equal "bytes that are not printable" "" "$(LC_ALL=C grep -nP '[^\x20-\x7e]' "$LAB/tmp/text" || true)"
	equal "on a terminal" "" "$(tr -d '\r' <"$LAB/tmp/terminal" | sed -E 's/\x1b\[[0-9;]*m//g' | LC_ALL=C grep -nP '[^\x20-\x7e]' || true)"
	equal "lines" "$(log_json hostile | wc -l)" "$(wc -l <"$LAB/tmp/text")"
	matches "an escape" '\\x1b\]0;owned\\x07' "$(cat "$LAB/tmp/text")"
	matches "another" '\\xe2\\x80\\xaegpj.exe' "$(cat "$LAB/tmp/text")"
	equal "lines that were made up" "" "$(grep '^faked' "$LAB/tmp/text" || true)"
	# As JSON: every line an object, in ASCII, and with the name in it.
	log_json hostile >"$LAB/tmp/json"
	equal "bytes that are not ASCII" "" "$(LC_ALL=C grep -nP '[^\x20-\x7e]' "$LAB/tmp/json" || true)"
	python3 -c 'import json, sys
for line in open(sys.argv[1], encoding="utf-8", errors="strict"): assert isinstance(json.loads(line), dict)' "$LAB/tmp/json"
	log_has hostile '.kind == "dns" and (.qname | contains("\\x1b]0;owned\\x07"))'
	log_has hostile '.kind == "deny" and .dport == 443 and (.name // "" | contains("\\x9b31m"))'
	log_has hostile '.kind == "deny" and .dport == 80 and (.name // "" | contains("\\xe2\\x80\\xaegpj.exe"))'
	equal "what posternd said" "" "$(LC_ALL=C grep -nP '[^\x20-\x7e]' "$LAB/posternd.log" || true)"
}

# A stranger, or somebody in the group: as_user UID GID COMMAND...
as_user() {
	setpriv --reuid "$1" --regid "$2" --clear-groups --no-new-privs "${@:3}"
}

@test "F-31: the control socket is for its owner and group alone, whatever the umask; nothing abstract, nothing on TCP" {
	posternd_stop
	# A socket of a dead daemon that everybody could use.
	rm -f "$LAB/run/control.sock"
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$LAB/run/control.sock"
	chmod 0777 "$LAB/run/control.sock"
	umask 000
	posternd_start --group 64210
	umask 022
	mode() { stat -c '%a %u %g' "$LAB/$1"; }
	equal "control socket" "660 0 64210" "$(mode run/control.sock)"
	equal "its folder" "755 0 0" "$(mode run)"
	equal "state" "755 0 0" "$(mode state)"
	equal "audit" "750 64202 64210" "$(mode state/audit)"
	equal "database" "640 64202 64210" "$(mode state/audit/audit.db)"
	equal "its log" "640 64202 64210" "$(mode state/audit/audit.db-wal)"
	equal "sandboxes" "700 64203 64210" "$(mode state/sandboxes)"
	equal "files that others may write" "" "$(find "$LAB/run" "$LAB/state" ! -type l -perm /002)"
	equal "abstract sockets" "" "$(ss -xlH | awk '$5 ~ /^@/')"
	equal "unix sockets that listen" "$LAB/run/control.sock" "$(ss -xlHp | grep -E 'postern' | awk '{print $5}' | sort -u)"
	equal "TCP sockets that listen" "" "$(ss -tlnHp | grep postern || true)"
	# A stranger.
	says 4 "permission denied; become root or a member of its group" as_user 5000 5000 "$LAB/bin/postern" list
	says 4 "permission denied" as_user 5000 5000 "$LAB/bin/postern" attach mine
	says 4 "you may not read it; become root or a member of the daemon.s group" as_user 5000 5000 "$LAB/bin/postern" log
	run ! as_user 5000 5000 curl -sS --unix-socket "$LAB/run/control.sock" http://postern/v1/status
	# The roles themselves have no business with it.
	says 4 "permission denied" as_user 64201 5000 "$LAB/bin/postern" list
	# Somebody in the group.
	run -0 as_user 5000 64210 "$LAB/bin/postern" attach theirs
	run -0 as_user 5000 64210 "$LAB/bin/postern" allow theirs news.lab-site.org
	run -0 as_user 5000 64210 "$LAB/bin/postern" log theirs -o json
	matches "who did it" '"event":"attach","uid":5000' "$output"
	run -0 as_user 5000 64210 "$LAB/bin/postern" detach theirs
	posternd_stop
	posternd_start
}

@test "make install: programs, pages, unit and examples; each command explains itself and is in the manual" {
	local root=$LAB/root command
	# What make has built is taken as it is; this must not build in the midst of a test.
	run -0 make -C "$REPO" --no-print-directory -o all install BUILD="$BUILD" DESTDIR="$root" SANITIZE= CI=
	local file
	for file in usr/sbin/posternd usr/bin/postern usr/share/man/man1/postern.1 usr/share/man/man1/postern-log.1 \
		usr/share/man/man1/postern-report.1 usr/share/man/man1/postern-verify.1 usr/share/man/man8/posternd.8 \
		usr/share/man/man5/postern-policy.5 usr/share/man/man5/postern-audit.5 usr/lib/systemd/system/posternd.service \
		usr/lib/sysusers.d/postern.conf; do
		[[ -s $root/$file ]] || fail "$file was not installed"
	done
	[[ -d $root/etc/postern ]]
	equal "examples that are no policies" "" "$(for file in "$root"/usr/share/doc/postern/examples/*.yaml; do
		grep -q '^version: 1' "$file" || echo "$file"
	done)"
	run -0 "$root/usr/bin/postern" --version
	matches "version" '^postern [0-9]' "$output"
	run -0 "$root/usr/sbin/posternd" --version
	matches "version" '^posternd [0-9]' "$output"
	# What the unit starts is there.
	[[ -x $root$(sed -nE 's/^ExecStart=([^ ]+).*/\1/p' "$root/usr/lib/systemd/system/posternd.service") ]]

	run -0 "$root/usr/bin/postern" --help
	local commands
	mapfile -t commands < <(sed -nE 's/^  ([a-z]+) .*/\1/p' <<<"$output")
	((${#commands[@]} >= 12)) || fail "only ${#commands[@]} commands: ${commands[*]}"
	for command in "${commands[@]}"; do
		run -0 --separate-stderr "$root/usr/bin/postern" "$command" --help
		equal "messages of $command --help" "" "$stderr"
		matches "help of $command" "usage: postern $([[ $command == help ]] || echo "$command")" "$output"
		run -0 "$root/usr/bin/postern" help "$command"
		matches "manual about $command" "postern( |\\\\fR \\\\fB|\\\\fB )?$command" "$(tr -d '\\' <"$root/usr/share/man/man1/postern.1" |
			sed -E 's/f[BRI]//g')"
	done
	run -0 make -C "$REPO" --no-print-directory uninstall BUILD="$BUILD" DESTDIR="$root"
	equal "left" "" "$(find "$root" -type f)"
	rm -rf "$root"
}
