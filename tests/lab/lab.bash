# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The lab's words, for bats files and for the demonstration; inside tests/lab/enter only.
#
#   setup_file() { load ../lab/lab; lab_up; posternd_start; }
#   setup()      { load ../lab/lab; mark; }
#
# Each case asserts three things: what the guest saw (guest, guest_fails), what the far side saw (far_saw, far_none,
# dns_asked, dns_not_asked), and the record (log_has, log_json). The far side's logs are read from `mark` on.

: "${PL_INSIDE:?tests/lab/lab.bash: run this under tests/lab/enter}" "${LAB:?}"
LAB_DIR=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
REPO=$(readlink -f "$LAB_DIR/../..")
BUILD=${BUILD:-build}
[[ $BUILD == /* ]] || BUILD=$REPO/$BUILD
VM_DIR=${VM_DIR:-$REPO/build/vm}
[[ $VM_DIR == /* ]] || VM_DIR=$REPO/$VM_DIR
# Debian's own programs first: a wrapper that somebody has for python3 can take seconds on a busy machine.
PATH=$BUILD:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
# shellcheck source=tests/lab/addresses.bash
source "$LAB_DIR/addresses.bash"
export POSTERN_RUNTIME_DIR=$LAB/run POSTERN_STATE_DIR=$LAB/state
# What a test says about sizes and times of a terminal must not depend on who runs it.
export LC_ALL=C.UTF-8 TZ=UTC NO_COLOR=1 PAGER=cat

# Addresses that sandboxes have unless they are told otherwise.
export GUEST4=172.16.0.2 GATEWAY4=172.16.0.1
export GUEST6=fd70:6f73:7465:726e::2 GATEWAY6=fd70:6f73:7465:726e::1

# -- saying no ------------------------------------------------------------------------------------------------------

fail() {
	printf '%s\n' "$@" >&2
	return 1
}

# equal WHAT WANTED GOT
equal() {
	[[ $2 == "$3" ]] || fail "$1: wanted '$2', got '$3'"
}

# matches WHAT PATTERN TEXT: extended regular expression
matches() {
	grep -qE -- "$2" <<<"$3" || fail "$1: wanted a match of '$2', got:" "$3"
}

# wait_for SECONDS COMMAND...: until it succeeds. Not less than PATIENCE_S: a machine that does other things as well may need
# so long for anything, and whoever waits for something to happen loses nothing. How soon it does, tests that ask it measure.
PATIENCE_S=15
wait_for() {
	local deadline=$(($(date +%s%N) + ($1 > PATIENCE_S ? $1 : PATIENCE_S) * 1000000000))
	shift
	until "$@" >/dev/null 2>&1; do
		(($(date +%s%N) < deadline)) || fail "waited in vain for: $*" || return 1
		sleep 0.05
	done
}

# Milliseconds that a command took, whatever its exit status: took COMMAND...
took() {
	local start end
	start=$(date +%s%N)
	"$@" >/dev/null 2>&1 || true
	end=$(date +%s%N)
	echo $(((end - start) / 1000000))
}

# -- the Internet ---------------------------------------------------------------------------------------------------

lab_up() {
	[[ -e $LAB/internet.up ]] || "$LAB_DIR/internet"
}

# Run something among the servers.
internet() {
	nsenter --net=/run/netns/pl-internet -- "$@"
}

# Script an answer of the lab's resolver: fdns NAME JSON (see fdns.py); without JSON: forget it.
fdns() {
	if [[ $# -eq 1 ]]; then
		rm -f "$LAB/fdns/$1.json"
	else
		# Renamed into place, so that the resolver never reads half a script.
		printf '%s\n' "$2" >"$LAB/fdns/.new"
		mv "$LAB/fdns/.new" "$LAB/fdns/$1.json"
	fi
}

# -- posternd -------------------------------------------------------------------------------------------------------

# posternd_start [option...]; what it says goes to $LAB/posternd.log
posternd_start() {
	mkdir -p "$LAB/run" "$LAB/state"
	"$BUILD/posternd" --runtime-dir "$LAB/run" --state-dir "$LAB/state" --netns-dir /run/netns \
		--gateway-user 64201 --audit-user 64202 --control-user 64203 --group 0 \
		--resolver "$NET4.$RESOLVER" "$@" >>"$LAB/posternd.log" 2>&1 </dev/null 3>&- 4>&- &
	echo $! >"$LAB/posternd.pid"
	disown
	wait_for 10 postern list || {
		tail -n 20 "$LAB/posternd.log" >&2
		return 1
	}
}

posternd_pid() { cat "$LAB/posternd.pid"; }
posternd_gone() { ! kill -0 "$(posternd_pid)" 2>/dev/null; }
posternd_stop() {
	kill -TERM "$(posternd_pid)"
	wait_for 15 posternd_gone
}
posternd_kill9() {
	kill -KILL "$(posternd_pid)"
	wait_for 5 posternd_gone
}

# Process ids of a role, a line each: keeper, auditor, control, gateway, or all.
role_pids() {
	case $1 in
	keeper) posternd_pid ;;
	all)
		posternd_pid
		pgrep -P "$(posternd_pid)"
		;;
	*) pgrep -P "$(posternd_pid)" -f -- "--role $1 " ;;
	esac
}
keeper_sleeps() { [[ $(ps -o stat= -p "$(posternd_pid)") == T* ]]; }
# Send all of a role's processes a signal, in one moment: role_signal SIGNAL ROLE. After KILL of one role the keeper knows
# of it, so that what all_ready says is of its successor; unless it was stopped and cannot.
role_signal() {
	local pids
	mapfile -t pids < <(role_pids "$2")
	kill "-$1" "${pids[@]}"
	role_reaped() { ! kill -0 "${pids[@]}" 2>/dev/null; }
	[[ $1 != KILL || $2 == all ]] || keeper_sleeps || wait_for 10 role_reaped
}
# All processes, as a crash of the machine would end them.
posternd_kill9_all() {
	role_signal KILL all
	wait_for 5 posternd_gone
}
# Are all roles running and have said so?
all_ready() { postern status -o json | jq -e 'all(.roles[]; .pid != 0) and .audit_ok'; }

# A request to the control API; prints the HTTP status, the answer is in $LAB/tmp/answer: api METHOD PATH [BODY]
api() {
	curl -sS -o "$LAB/tmp/answer" -w '%{http_code}' --unix-socket "$LAB/run/control.sock" -X "$1" \
		-H 'Content-Type: application/json' ${3:+--data-binary "$3"} "http://postern$2"
}

# -- sandboxes ------------------------------------------------------------------------------------------------------

# A container-style guest: sandbox NAME [postern attach option...]. Its namespace is pl-guest-NAME.
sandbox() {
	local name=$1
	shift
	ip netns add "pl-guest-$name"
	ip -n "pl-guest-$name" link set lo up
	mkdir -p "$LAB/guest/$name"
	echo "nameserver $GATEWAY4" >"$LAB/guest/$name/resolv.conf"
	local status=0
	postern attach "$name" --netns "/run/netns/pl-guest-$name" "$@" || status=$?
	((status == 0)) || ip netns del "pl-guest-$name"
	return "$status"
}

# policy NAME TEXT...: write a policy file with these lines under "allow:", print its path
policy() {
	local file=$LAB/tmp/$1.yaml
	shift
	{
		echo "version: 1"
		echo "allow:"
		printf '  - %s\n' "$@"
	} >"$file"
	echo "$file"
}

sandbox_gone() {
	postern detach "$1"
	ip netns del "pl-guest-$1"
}

# What a test made, whatever became of it; for teardown.
all_gone() {
	local name
	for name in $(postern list -o json 2>/dev/null | jq -r '.. | .name? // empty' | sort -u); do
		sandbox_gone "$name" >/dev/null 2>&1 || true
	done
}

# Run a command beside the test until background_end: background guest NAME COMMAND...
background() {
	# A process group of its own, so that all of it gets the signal: "guest" is a shell with the command below it.
	set -m
	{
		# What bats waits for at the end must not be open in it.
		local fd
		for fd in /proc/"$BASHPID"/fd/*; do
			fd=${fd##*/}
			((fd < 3 || fd == 255)) || eval "exec $fd>&-"
		done
		"$@"
	} >>"$LAB/tmp/background.out" 2>&1 </dev/null &
	echo $! >>"$LAB/tmp/background"
	set +m
}
# Ask what runs there to end, by SIGTERM, and wait until it has.
background_end() {
	local pid
	[[ -e $LAB/tmp/background ]] || return 0
	while read -r pid; do
		kill -TERM -- "-$pid" 2>/dev/null || true
	done <"$LAB/tmp/background"
	while read -r pid; do
		wait_for 20 background_gone "$pid"
	done <"$LAB/tmp/background"
	rm -f "$LAB/tmp/background"
}
background_gone() { ! kill -0 -- "-$1" 2>/dev/null; }

# Run a command as the guest, with its own resolv.conf and the lab's certificate authority: guest NAME COMMAND...
guest() {
	local name=$1
	shift
	# shellcheck disable=SC2016 # expanded by the inner shell
	nsenter --net="/run/netns/pl-guest-$name" -- unshare -m env -u POSTERN_RUNTIME_DIR -u POSTERN_STATE_DIR \
		HOME="$LAB/tmp" CURL_CA_BUNDLE="$LAB/tls/ca.crt" SSL_CERT_FILE="$LAB/tls/ca.crt" \
		GIT_SSL_CAINFO="$LAB/tls/ca.crt" GIT_SSH_COMMAND="ssh -F $LAB/ssh/config" GIT_CONFIG_NOSYSTEM=1 \
		sh -c 'mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && exec "$@"' \
		"$LAB/guest/$name/resolv.conf" "$@"
}

# The guest's command must fail, and soon: refusals are fast. guest_fails NAME COMMAND...
REFUSAL_MS=3000
guest_fails() {
	local start ms
	start=$(date +%s%N)
	if guest "$@" >"$LAB/tmp/out" 2>&1; then
		fail "this should have been refused: $*" "$(head -c 2000 "$LAB/tmp/out")" || return 1
	fi
	ms=$((($(date +%s%N) - start) / 1000000))
	# A machine that needs seconds to start a program is slow, not the refusal.
	((ms < REFUSAL_MS || ms - $(took guest "$1" python3 -c 'import json, socket, ssl') < REFUSAL_MS)) ||
		fail "refused only after $ms ms: $*" "$(tail -c 2000 "$LAB/tmp/out")"
}

# A real guest: vm NAME COMMANDS-FILE [tests/lab/vm/run option...]; its sandbox was attached with a TAP.
vm() {
	local name=$1 commands=$2
	shift 2
	"$LAB_DIR/vm/run" --netns "/run/netns/postern-$name" --ca "$LAB/tls/ca.crt" "$@" "$VM_DIR" "$commands"
}

# -- the far side ---------------------------------------------------------------------------------------------------

# From here on: what far_* and dns_* look at.
mark() {
	local log
	far_sync
	for log in witness.log fdns.log web/access.log origin.log host.log; do
		wc -l <"$LAB/$log" >"$LAB/tmp/mark.${log//\//.}" 2>/dev/null || echo 0 >"$LAB/tmp/mark.${log//\//.}"
	done
}

since_mark() {
	tail -n "+$(($(cat "$LAB/tmp/mark.${1//\//.}") + 1))" "$LAB/$1"
}

# Wait until the witness has seen all that left before: a packet of our own is the last.
far_sync() {
	local before
	before=$(grep -c "> $HOST4_GW 9 " "$LAB/witness.log" || true)
	echo >"/dev/udp/$HOST4_GW/9"
	far_synced() { (($(grep -c "> $HOST4_GW 9 " "$LAB/witness.log" || true) > $1)); }
	wait_for 5 far_synced "$before"
}

# Packets that arrived since mark and match: far_packets PATTERN (see witness.py for the form of a line)
far_packets() {
	far_sync
	if since_mark witness.log | grep -q '^lost '; then
		echo "the witness lost packets"
	fi
	since_mark witness.log | grep -E -- "$1" || true
}

far_saw() {
	[[ -n $(far_packets "$1") ]] || fail "the far side saw nothing of: $1"
}

far_none() {
	local seen
	seen=$(far_packets "$1")
	[[ -z $seen ]] || fail "the far side saw what it should not have ($1):" "$seen"
}

# Nothing at all for any of the addresses that must never be reached, nor for the host's own services.
far_no_trap() {
	local address pattern=''
	for address in "${TRAPS4[@]}" "${TRAPS6[@]}"; do
		pattern+="|> ${address//./\\.} "
	done
	# Explicit, because a test's "run" switches off the shell's own leaving on errors.
	far_none "${pattern#|}" || return 1
	if since_mark host.log | grep -q '"open"\|"datagram"'; then
		fail "a service of the host was reached:" "$(since_mark host.log)"
	fi
}

# Was a question for this name asked upstream (by postern, of its resolver)?
dns_questions() { since_mark fdns.log | jq -r --arg name "$1" 'select(.qname != null and (.qname | ascii_downcase) == $name) | .qtype'; }
dns_asked() { [[ -n $(dns_questions "$1") ]] || fail "nobody asked for $1"; }
dns_not_asked() {
	local seen
	seen=$(dns_questions "$1")
	[[ -z $seen ]] || fail "somebody asked for $1:" "$seen"
}

# Lines of a server's log since mark: web_log [jq filter], origin_log [jq filter]
web_log() { since_mark web/access.log | jq -c "${1:-.}"; }
origin_log() { since_mark origin.log | jq -c "${1:-.}"; }

# -- the record -----------------------------------------------------------------------------------------------------

# log_json NAME [option...]: a JSON object a line; all of them, unless an option says otherwise
log_json() {
	local name=$1
	shift
	postern log "$name" --since 1d -o json "$@"
}

# Is there a record that a jq condition holds for? log_has NAME CONDITION. Closings and aggregates are written a moment
# after the event, so it looks again for a while.
log_has() {
	log_has_now() { log_json "$1" | jq -e -s "any(.[]; $2)"; }
	wait_for 5 log_has_now "$1" "$2" || fail "no record of $1 with: $2" "$(log_json "$1" | tail -n 20)"
}

# How many records does a condition hold for? log_count NAME CONDITION
log_count() { log_json "$1" | jq -s "[.[] | select($2)] | length"; }

# -- many attempts at once ------------------------------------------------------------------------------------------

# Run a table of attempts (stdin) as a guest and hold what it saw against the record and the far side, one by one:
# cases NAME httpx|hello|query TARGET...; see cases.py and confront.py.
cases() {
	local name=$1 tool=$2 log=origin.log sport
	shift 2
	[[ $tool != query ]] || log=fdns.log
	sport=$(cat "$LAB/tmp/sport" 2>/dev/null || echo 2000)
	mark
	PYTHONDONTWRITEBYTECODE=1 guest "$name" "$LAB_DIR/$tool.py" --sport "$sport" "$@" >"$LAB/tmp/results"
	echo $((sport + $(wc -l <"$LAB/tmp/results"))) >"$LAB/tmp/sport"
	"$LAB_DIR/confront.py" "$name" "$LAB/tmp/results" "$LAB/$log" "$(cat "$LAB/tmp/mark.$log")"
}

# After an orderly end: nothing in the log is other than it was written, and every attempt that a gateway counted has its
# record, whatever the file's cases did. A file whose cases damage the log says VERIFY=no.
VERIFY=yes
log_verifies() {
	[[ $VERIFY == yes && -f $LAB/state/audit/audit.db ]] || return 0
	posternd_gone || posternd_stop
	postern verify >"$LAB/tmp/verify" || {
		echo "the log does not verify:" >&2
		cat "$LAB/tmp/verify" >&2
		sqlite3 -readonly -header "$LAB/state/audit/audit.db" "SELECT * FROM accounts" >&2
		return 1
	}
}

# -- the end of a file ----------------------------------------------------------------------------------------------

# For bats. A role that a sanitizer ended is started again, and the cases around it may pass: so look.
teardown_file() {
	if grep -qE 'AddressSanitizer|LeakSanitizer|runtime error:' "$LAB/posternd.log" 2>/dev/null; then
		grep -E -A 20 'AddressSanitizer|LeakSanitizer|runtime error:' "$LAB/posternd.log" | head -n 60 >&2
		return 1
	fi
	log_verifies
}
