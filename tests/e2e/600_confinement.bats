#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What each role of a running daemon may do, as the kernel sees it: a role that a guest takes over has nothing to take.

bats_require_minimum_version 1.5.0
load ../lab/lab

STRANGER=5000

setup_file() {
	lab_up
	# A shell that has a file open, and a key in its environment.
	echo secret >"$LAB/tmp/secret"
	exec 8<>"$LAB/tmp/secret"
	export CLOUD_SECRET_KEY=hunter2
	posternd_start --gateways 2
	exec 8>&-
	unset CLOUD_SECRET_KEY
	# One guest of each gateway: ids spread them, so make some.
	for i in 1 2 3 4 5 6; do
		sandbox "conf$i" --policy "$(policy conf 'host: news.lab-site.org' \
			'{host: echo.lab-site.org, ports: [5000], udp: true}')"
	done
}

setup() {
	mark
}

# One field of a process's status: status_of PID FIELD
status_of() { sed -nE "s/^$2:[[:space:]]*//p" "/proc/$1/status" | tr '\t' ' '; }

# Inodes of a process's sockets, a line each.
sockets_of() { find "/proc/$1/fd" -printf '%l\n' | sed -nE 's/^socket:\[([0-9]+)\]$/\1/p' | sort; }

# What a process has open beside sockets, a line each.
files_of() { find "/proc/$1/fd" -type l -printf '%f %l\n' | grep -v ' socket:' | sort -n; }

# Inodes of all sockets in a sandbox's namespace: sandbox_sockets NAME
sandbox_sockets() {
	nsenter --net="/run/netns/postern-$1" ss -tulnaeH | grep -oE 'ino:[0-9]+' | cut -d: -f2 | grep -vx 0 | sort
}

owner_of_role() {
	case $1 in
	keeper) echo 0 ;;
	gateway) echo 64201 ;;
	auditor) echo 64202 ;;
	control) echo 64203 ;;
	esac
}

# All of a process's tasks, since each has credentials and filters of its own: each_task PID COMMAND...
each_task() {
	local pid=$1 task
	shift
	for task in "/proc/$pid/task/"*; do
		"$@" "$pid/task/${task##*/}" || return 1
	done
}

confined() {
	local role=$1 pid=$2 field uid
	uid=$(owner_of_role "$role")
	equal "$role: uids" "$uid $uid $uid $uid" "$(status_of "$pid" Uid)" || return 1
	equal "$role: no_new_privs" 1 "$(status_of "$pid" NoNewPrivs)" || return 1
	equal "$role: seccomp" 2 "$(status_of "$pid" Seccomp)" || return 1
	equal "$role: ambient capabilities" 0000000000000000 "$(status_of "$pid" CapAmb)" || return 1
	equal "$role: inheritable capabilities" 0000000000000000 "$(status_of "$pid" CapInh)" || return 1
	[[ $role != keeper ]] || return 0
	equal "$role: groups" "" "$(status_of "$pid" Groups | tr -d ' ')" || return 1
	for field in CapPrm CapEff CapBnd; do
		equal "$role: $field" 0000000000000000 "$(status_of "$pid" "$field")" || return 1
	done
}

# bats test_tags=smoke
@test "every role has its own uid, no capability, no way to get one, and a system-call filter; the keeper few" {
	local role pid uids caps bit
	for role in keeper auditor control gateway; do
		[[ -n $(role_pids "$role") ]]
		for pid in $(role_pids "$role"); do
			each_task "$pid" confined "$role"
		done
	done
	equal "gateways" 2 "$(role_pids gateway | wc -l)"
	uids=$(for role in keeper auditor control gateway; do owner_of_role "$role"; done | sort -u | wc -l)
	equal "different uids" 4 "$uids"
	# Raw sockets, modules, raw I/O, boot, nodes, kernel log, other files by number: the keeper gave them up for good.
	caps=$((16#$(status_of "$(posternd_pid)" CapBnd)))
	for bit in 2 13 16 17 22 27 34 35 38 39; do
		equal "keeper: capability $bit" 0 $((caps >> bit & 1))
	done
}

@test "F-40: nobody but root may look into a role" {
	local role pid
	for role in auditor control gateway; do
		for pid in $(role_pids "$role"); do
			# A process that may be dumped has files of its own uid here.
			equal "$role: owner of its memory map" 0 "$(stat -c %u "/proc/$pid/maps")"
			run setpriv --reuid "$(owner_of_role "$role")" --clear-groups cat "/proc/$pid/environ"
			[[ $status -ne 0 ]]
		done
	done
}

@test "a gateway's root is empty, and nobody can write there" {
	local pid
	for pid in $(role_pids gateway); do
		equal "files" "" "$(ls -A "/proc/$pid/root/")"
		equal "mode and owner" "555 0" "$(stat -L -c '%a %u' "/proc/$pid/root")"
		equal "working directory" "$(stat -L -c %i "/proc/$pid/root")" "$(stat -L -c %i "/proc/$pid/cwd")"
	done
}

@test "the auditor has no network; gateways and control are in the host's, and nobody is in a sandbox's" {
	local role pid host
	host=$(readlink "/proc/$(posternd_pid)/ns/net")
	for role in control gateway; do
		for pid in $(role_pids "$role"); do
			equal "$role: namespace" "$host" "$(readlink "/proc/$pid/ns/net")"
		done
	done
	pid=$(role_pids auditor)
	[[ $(readlink "/proc/$pid/ns/net") != "$host" ]]
	equal "auditor: devices that are up" "" "$(nsenter --net="/proc/$pid/ns/net" ip -o link show up)"
	equal "auditor: routes" "" "$(nsenter --net="/proc/$pid/ns/net" ip route show table all)"
}

@test "no role has what whoever started the daemon had open, nor the environment's keys" {
	local role pid
	for role in keeper auditor control gateway; do
		for pid in $(role_pids "$role"); do
			if files_of "$pid" | grep -F "$LAB/tmp/secret"; then
				fail "$role: has a file of whoever started it" || return 1
			fi
			[[ $role == keeper ]] || equal "$role: keys" "" "$(tr '\0' '\n' <"/proc/$pid/environ" | grep CLOUD_SECRET_KEY || true)"
		done
	done
}

@test "each role has the descriptors of its work and no others" {
	local pid other name control_socket lines left
	# Traffic first, so that pipes and sockets of connections have been there.
	for name in 1 2 3 4 5 6; do
		guest "conf$name" curl -sS -o /dev/null https://news.lab-site.org/
		guest "conf$name" "$LAB_DIR/client.py" udp echo.lab-site.org 5000 ping >/dev/null || true
	done
	for pid in $(role_pids gateway); do
		left=$(files_of "$pid" | grep -vE '^[012] |anon_inode:\[eventpoll\]$|pipe:\[[0-9]+\]$' |
			grep -vF " $(readlink "/proc/$pid/fd/2")" || true)
		equal "gateway: files, namespaces, policies" "" "$left"
	done
	pid=$(role_pids auditor)
	left=$(files_of "$pid" | grep -vE "^[012] |anon_inode:\[event(poll|fd)\]$| $LAB/state/audit/" || true)
	equal "auditor: files beside the database" "" "$left"
	pid=$(role_pids control)
	left=$(files_of "$pid" | grep -vE "^[012] |anon_inode:\[event(poll|fd)\]$| $LAB/state/sandboxes$| /.*/presets$" || true)
	# Of compiled policies it keeps the newest few.
	(($(grep -c ' /memfd:postern-policy (deleted)$' <<<"$left") <= 256)) || fail "control keeps policies:" "$left"
	equal "control: files beside the state, the presets and policies" "" "$(grep -v ' /memfd:postern-policy (deleted)$' <<<"$left")"

	# The listening control socket is control's (and the keeper's, for a new control).
	control_socket=$(ss -xlH src "$LAB/run/control.sock" | awk '{print $6}')
	[[ -n $control_socket ]]
	grep -qx "$control_socket" <(sockets_of "$(role_pids control)")
	for pid in $(role_pids auditor) $(role_pids gateway); do
		if grep -qx "$control_socket" <(sockets_of "$pid"); then
			fail "$(tr '\0' ' ' <"/proc/$pid/cmdline") has the control socket" || return 1
		fi
	done

	# A sandbox's sockets are its gateway's, and no other role's. (An accepted connection would be the gateway's alone.)
	for name in 1 2 3 4 5 6; do
		lines=$(sandbox_sockets "conf$name")
		[[ $(wc -l <<<"$lines") -ge 8 ]]
		other=0
		for pid in $(role_pids gateway); do
			left=$(comm -12 <(echo "$lines") <(sockets_of "$pid") | wc -l)
			if ((left > 0)); then
				other=$((other + 1))
				equal "conf$name: sockets that its gateway lacks" "" "$(comm -23 <(echo "$lines") <(sockets_of "$pid"))"
			fi
		done
		equal "conf$name: gateways that have its sockets" 1 "$other"
		for pid in $(role_pids auditor) $(role_pids control); do
			equal "conf$name: sockets of another role" "" "$(comm -12 <(echo "$lines") <(sockets_of "$pid"))"
		done
	done
}

@test "a restarted gateway is as confined as the first" {
	local before pid
	before=$(role_pids gateway | sort)
	role_signal KILL gateway
	gateways_new() { [[ $(role_pids gateway | wc -l) == 2 && -z $(comm -12 <(echo "$before") <(role_pids gateway | sort)) ]]; }
	wait_for 10 gateways_new
	wait_for 10 all_ready
	for pid in $(role_pids gateway); do
		each_task "$pid" confined gateway
		equal "files" "" "$(ls -A "/proc/$pid/root/")"
		equal "keys" "" "$(tr '\0' '\n' <"/proc/$pid/environ" | grep CLOUD_SECRET_KEY || true)"
	done
	run guest conf1 curl -sS https://news.lab-site.org/
	equal "afterwards" "lab web server for news.lab-site.org" "$output"
}

@test "without root: roles have no capability, even in the user namespace that is their own, and a filter" {
	local pid roles=0 field
	mkdir -m 0755 "$LAB/run-bin"
	cp "$BUILD/posternd" "$BUILD/postern" "$LAB/run-bin/"
	mkdir -m 0700 "$LAB/stranger"
	chown "$STRANGER:$STRANGER" "$LAB/stranger"
	background env -u POSTERN_RUNTIME_DIR -u POSTERN_STATE_DIR HOME="$LAB/stranger" setpriv --reuid "$STRANGER" \
		--regid "$STRANGER" --clear-groups --no-new-privs "$LAB/run-bin/posternd" --runtime-dir "$LAB/stranger/run" \
		--state-dir "$LAB/stranger/state" --resolver "$NET4.$RESOLVER"
	stranger_ready() { POSTERN_RUNTIME_DIR=$LAB/stranger/run postern status; }
	wait_for 15 stranger_ready
	for pid in $(pgrep -u "$STRANGER" -f -- '--role '); do
		roles=$((roles + 1))
		for field in CapPrm CapEff CapInh CapAmb; do
			equal "$field" 0000000000000000 "$(status_of "$pid" "$field")"
		done
		equal "no_new_privs" 1 "$(status_of "$pid" NoNewPrivs)"
		equal "seccomp" 2 "$(status_of "$pid" Seccomp)"
		equal "owner of its memory map" 0 "$(stat -c %u "/proc/$pid/maps")"
	done
	((roles >= 3))
	background_end
}
