#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# `postern run`: a newcomer's first try is one line, as root and as an ordinary user.

bats_require_minimum_version 1.5.0
load ../lab/lab

# Somebody who is not in any group of the machine.
STRANGER=5000

setup_file() {
	lab_up
	# A daemon that `run` starts reads its resolver here. The file is ours alone: a bind mount in the lab's mounts.
	mkdir -p -m 0755 "$LAB/etc"
	echo "nameserver $NET4.$RESOLVER" >"$LAB/etc/resolv.conf"
	chmod 0644 "$LAB/etc/resolv.conf"
	mount --bind "$LAB/etc/resolv.conf" "$(readlink -f /etc/resolv.conf)"
	# The build may be in a folder that strangers cannot look into.
	mkdir -m 0755 "$LAB/run-bin"
	cp "$BUILD/postern" "$BUILD/posternd" "$LAB/run-bin/"
	mkdir -m 0700 "$LAB/stranger" "$LAB/stranger/run"
	chown -R "$STRANGER:$STRANGER" "$LAB/stranger"
}

setup() {
	mark
}

# What the user of `run` sees of the world: the lab's certificate authority, and directories of their own.
as_root() {
	env CURL_CA_BUNDLE="$LAB/tls/ca.crt" POSTERN_RUNTIME_DIR="$LAB/root-run" POSTERN_STATE_DIR="$LAB/root-state" \
		PATH="$LAB/run-bin:$PATH" "$@"
}
as_stranger() {
	env -u POSTERN_RUNTIME_DIR -u POSTERN_STATE_DIR CURL_CA_BUNDLE="$LAB/tls/ca.crt" HOME="$LAB/stranger" \
		XDG_RUNTIME_DIR="$LAB/stranger/run" TMPDIR=/tmp PATH="$LAB/run-bin:$PATH" \
		setpriv --reuid "$STRANGER" --regid "$STRANGER" --clear-groups --no-new-privs "$@"
}

both_ways() {
	local user=$1 family
	for family in 4 6; do
		run --separate-stderr "$user" postern run --allow news.lab-site.org -- \
			curl -sS -$family https://news.lab-site.org/
		equal "exit status as $user" 0 "$status"
		equal "page as $user over IPv$family" "lab web server for news.lab-site.org" "$output"
		# shellcheck disable=SC2154 # set by run --separate-stderr
		matches "summary" "1 × news.lab-site.org:443 .* bytes out" "$stderr"
	done
	run --separate-stderr "$user" postern run --allow news.lab-site.org -- curl -sS https://www.lab-b.net/
	equal "exit status of curl" 6 "$status"
	matches "summary" "reached nothing" "$stderr"
	matches "summary" "www.lab-b.net \(name\)  no_rule" "$stderr"
	dns_not_asked www.lab-b.net
	run --separate-stderr "$user" postern run --allow news.lab-site.org -- curl -sS http://169.254.169.254/
	equal "exit status of curl" 7 "$status"
	matches "summary" "169.254.169.254:80  never_address" "$stderr"
	far_no_trap
}

@test "run as root: allowed works, denied does not, the summary says which" {
	mkdir -p "$LAB/root-run" "$LAB/root-state"
	both_ways as_root
}

@test "run without root: the same, and what is missing is said" {
	both_ways as_stranger
	run --separate-stderr as_stranger postern run --allow news.lab-site.org -- true
	matches "summary" "rootless: without" "$stderr"
	run as_stranger postern status
	matches "status" "rootless +yes" "$output"
	matches "status" "separate users" "$output"
	matches "status" "host chain" "$output"
	run -0 as_stranger postern log --denied -o json
	matches "the log of the user's own daemon" '"qname": ?"www.lab-b.net"' "$output"
}

@test "a rootless log can be read after its daemon is gone" {
	as_stranger postern run --quiet --allow news.lab-site.org --name keep -- curl -sS https://news.lab-site.org/
	# The daemon of `run` stops by itself.
	wait_for 20 stranger_daemon_gone
	run -0 as_stranger postern log keep -o json
	matches "record" '"name": ?"news.lab-site.org"' "$output"
}
stranger_daemon_gone() { ! pgrep -u "$STRANGER" postern >/dev/null; }

@test "the command runs as its caller, without a way back" {
	local user
	for user in as_root as_stranger; do
		[[ $user == as_root ]] && mkdir -p "$LAB/root-run" "$LAB/root-state"
		# shellcheck disable=SC2016 # expanded inside
		run -0 "$user" postern run --quiet -- sh -c '
			id -u
			ls "${POSTERN_RUNTIME_DIR:-$XDG_RUNTIME_DIR/postern}" | wc -l
			ls /proc | grep -c "^[0-9]"
			awk "/^CapEff/ {print \$2}" /proc/self/status
			nsenter --net=/proc/1/ns/net true 2>/dev/null && echo entered
			postern allow run-$$ evil.lab-b.net >/dev/null 2>&1; echo $?'
		[[ $user == as_root ]] || equal "uid" "$STRANGER" "${lines[0]}"
		equal "files of the daemon in sight ($user)" 0 "${lines[1]}"
		((lines[2] < 10)) || fail "other processes are in sight: ${lines[2]}"
		[[ $user == as_root ]] || equal "capabilities" 0000000000000000 "${lines[3]}"
		equal "the control socket answers nobody inside" 3 "${lines[4]}"
	done
}

@test "E-33: no socket that the network does not confine, and no other daemon's socket or state" {
	local user python='
import ctypes, errno, socket, sys
for family in range(64):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind)
        except OSError as error:
            continue
        print("family", family)
        break
libc = ctypes.CDLL(None, use_errno=True)
print("io_uring", libc.syscall(425, 8, 0), errno.errorcode[ctypes.get_errno()])'
	mkdir -p "$LAB/root-run" "$LAB/root-state" /run/postern
	touch /run/postern/control.sock
	# The user's own daemon answers in the tests above and below; the system's socket is there as well.
	for user in as_root as_stranger; do
		run -0 "$user" postern run --quiet -- /usr/bin/python3 -c "$python"
		equal "sockets of $user" "family 1 family 2 family 10 family 16 io_uring -1 ENOSYS" "$(xargs <<<"$output")"
		run "$user" postern run --quiet -- ls -A /run/postern
		equal "in the system's directory" "" "$output"
	done
	rm -r /run/postern
}

@test "the exit status and signals are the command's" {
	mkdir -p "$LAB/root-run" "$LAB/root-state"
	run as_root postern run --quiet -- sh -c 'exit 42'
	equal "exit status" 42 "$status"
	run -127 as_root postern run --quiet -- /nonexistent/command
	# shellcheck disable=SC2016
	run as_root postern run --quiet -- sh -c 'kill -TERM $$'
	equal "killed by SIGTERM" 143 "$status"
	run as_root postern run -- 
	equal "no command" 2 "$status"
	run as_root postern run --allow 'https://news.lab-site.org/' -- true
	equal "a bad rule" 5 "$status"
	matches "a bad rule" "host" "$output"
}

@test "run uses a daemon that is there, and a policy file" {
	posternd_start
	cat >"$LAB/tmp/run.yaml" <<-'END'
		version: 1
		allow:
		  - host: "*.lab-a.com"
	END
	run --separate-stderr env CURL_CA_BUNDLE="$LAB/tls/ca.crt" postern run --policy "$LAB/tmp/run.yaml" --name by-file -- \
		curl -sS https://www.lab-a.com/
	equal "exit status" 0 "$status"
	log_has by-file '.verdict == "allowed" and .name == "www.lab-a.com" and (.rule | test("run.yaml:3"))'
	run postern list -o json
	equal "sandboxes left" "[]" "$(jq -c '.sandboxes // .' <<<"$output")"
	posternd_stop
}
