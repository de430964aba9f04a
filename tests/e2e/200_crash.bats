#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The daemon, or one of its roles, ends when nobody expected it, or stands still: nothing gets out meanwhile that should
# not, nothing is lost of what was said, and it goes on as before.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/crash

setup_file() {
	lab_up
	posternd_start
}

setup() {
	mark
}

teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 20 "$LAB/tmp/background.out" "$LAB/tmp/tries" "$LAB/tmp/held" "$LAB/posternd.log" || true
	role_signal CONT all 2>/dev/null || true
	background_end
	rm -f "$LAB/tmp/tries" "$LAB/tmp/held" "$LAB/tmp/background.out"
	! posternd_gone || posternd_start
	all_gone
}

# Connections that hold.py keeps: hold NAME WHAT...; and what became of one: held WHAT EVENT [jq condition]
hold() {
	background guest "$1" "$LAB_DIR/hold.py" "$LAB/tmp/held" "${@:2}"
	local what
	for what in "${@:2}"; do
		wait_for 10 held "$what" open
	done
}
held() {
	jq -e -s --arg what "$1" --arg event "$2" "any(.[]; .what == \$what and .event == \$event and (${3:-true}))" "$LAB/tmp/held"
}

@test "F-05: a guest that never stops trying gets nothing more out of twenty restarts" {
	sandbox f05 --policy "$(policy f05 "$ECHO_RULE")"
	impatient f05
	local denied=("$NET4.$OTHER:443" "[$NET6:$OTHER]:80" "$NET4.$ECHO:9000" "[$NET6:$ECHO]:22" 169.254.169.254:80
		www.lab-b.net:443)
	# What is allowed by several at once: a resolver whose question was lost waits a second.
	local allowed=(echo.lab-site.org:7 echo.lab-site.org:7 echo.lab-site.org:7 echo.lab-site.org:7)
	background guest f05 "$LAB_DIR/attempts.py" --timeout 0.5 "$LAB/tmp/tries" "${allowed[@]}" "${denied[@]}"
	wait_for 10 works_since echo.lab-site.org:7 0
	local round target began
	for ((round = 0; round < 20; round++)); do
		case $((round % 3)) in
		0) posternd_stop ;;
		1) posternd_kill9 ;;
		2) posternd_kill9_all ;;
		esac
		posternd_start
		began=$(date +%s.%N)
		wait_for 15 works_since echo.lab-site.org:7 "$began"
	done
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || head -c 2000 "$LAB/tmp/background.out" "$LAB/tmp/tries"
	background_end
	for target in "${denied[@]}"; do
		equal "attempts at $target that got through" 0 \
			"$(jq -s --arg target "$target" '[.[] | select(.target == $target and (.end == "echo" or .end == "open"))] | length' \
				"$LAB/tmp/tries")"
		(($(jq -s --arg target "$target" '[.[] | select(.target == $target)] | length' "$LAB/tmp/tries") > 20)) ||
			fail "too few attempts at $target to say anything"
	done
	dns_not_asked www.lab-b.net
	far_none "> ($NET4\.|$NET6:)$OTHER "
	far_none "> ($NET4\.|$NET6:)$ECHO (9000|22) "
	far_no_trap
	log_has f05 '.kind == "deny" and .dst == "45.45.45.20" and .reason == "not_leased"'
	log_has f05 '.kind == "deny" and .dst == "2600:1:2::20" and .reason == "not_leased"'
	equal "records that something denied was let through" 0 \
		"$(log_count f05 '.kind == "flow" and (.dport != 7 or (.dst | IN("45.45.45.30", "2600:1:2::30") | not))')"
}

@test "F-44: a second daemon on the same directories refuses, and the first does not notice" {
	sandbox f44 --policy "$(policy f44 "$ECHO_RULE")"
	hold f44 tcp:echo.lab-site.org:7/4
	mkdir -p "$LAB/other"
	local runtime state
	for runtime in "$LAB/run" "$LAB/other/run"; do
		for state in "$LAB/state" "$LAB/other/state"; do
			[[ $runtime$state != "$LAB/other/run$LAB/other/state" ]] || continue
			run -1 timeout 10 posternd --runtime-dir "$runtime" --state-dir "$state" --netns-dir /run/netns \
				--gateway-user 64201 --audit-user 64202 --control-user 64203 --group 0 --resolver "$NET4.$RESOLVER"
			matches "message" "another posternd uses ($runtime|$state): stop it, or give" "$output"
		done
	done
	rm -rf "$LAB/other"
	run -0 postern status
	matches "status" "sandboxes +1" "$output"
	run -0 guest f44 "$LAB_DIR/client.py" tcp echo.lab-site.org 7 again --half-close
	matches "echo" again "$output"
	background_end
	held tcp:echo.lab-site.org:7/4 alive
}

@test "SIGHUP ends nothing; the signals of a terminal reach all processes, and the daemon stops in order" {
	sandbox hup --policy "$(policy hup "$ECHO_RULE")"
	hold hup tcp:echo.lab-site.org:7/4
	local before crashes
	crashes() { postern log -o json --event role_crash --since 1d | wc -l; }
	before=$(role_pids all | sort)
	crashes=$(crashes)
	role_signal HUP all
	said() { grep -q 'SIGHUP: there is nothing to reload' "$LAB/posternd.log"; }
	wait_for 5 said
	run -0 guest hup "$LAB_DIR/client.py" tcp echo.lab-site.org 7 again --half-close
	equal "processes" "$before" "$(role_pids all | sort)"
	equal "ends of what is open" 0 "$(grep -c '"event": "end"' "$LAB/tmp/held")"
	# Ctrl-C: to the gateways first, as may happen.
	role_signal INT gateway
	role_signal INT all
	wait_for 15 posternd_gone
	background_end
	posternd_start
	equal "ends" "fin shutdown" "$(log_json hup | jq -r 'select(.kind == "flow") | .end' | sort | xargs)"
	equal "crashes" "$crashes" "$(crashes)"
}

@test "a gateway that crashed is back at once: what was open is closed and recorded, what waits is served" {
	sandbox crash --policy "$(policy crash "$ECHO_RULE" 'host: news.lab-site.org' "{cidr: $NET4.$BYTES/32, ports: [9001]}" \
		"{cidr: '$NET6:$BYTES/128', ports: [9001]}")"
	hold crash tcp:echo.lab-site.org:7/4 tcp:echo.lab-site.org:7/6 tls:news.lab-site.org:443/4 http:news.lab-site.org:80/6
	# Standing still, the keeper cannot start another one: all that the guest does now meets sockets that nobody serves.
	role_signal STOP keeper
	role_signal KILL gateway
	all_ended() { (($(grep -c '"event": "end"' "$LAB/tmp/held") == 4)); }
	wait_for 5 all_ended
	# Not as if that had been all of the data: broken off, on both sides.
	equal "how they ended" rst "$(jq -r 'select(.event == "end") | .end' "$LAB/tmp/held" | sort -u)"
	origins_ended() { [[ $(origin_log 'select(.event == "close" and .port == 7) | .end' | xargs) == "rst rst" ]]; }
	wait_for 5 origins_ended
	mark
	background guest crash "$LAB_DIR/client.py" --timeout 10 tcp "$NET4.$BYTES" 9001 waited --half-close
	background guest crash "$LAB_DIR/client.py" --timeout 10 tcp "$NET6:$BYTES" 9001 waited --half-close
	background guest crash dig +tries=1 +time=10 +noall +answer news.lab-site.org
	waiting() { (($(nsenter --net=/run/netns/pl-guest-crash -- ss -Htn dport = :9001 | wc -l) == 2)); }
	wait_for 5 waiting
	guest_fails crash "$LAB_DIR/client.py" tcp "$NET4.$OTHER" 443
	far_none "> ($NET4|$NET6)"
	role_signal CONT keeper
	served() { (($(grep -c "^6 $(printf waited | sha256sum | cut -d' ' -f1)" "$LAB/tmp/background.out") == 2)) &&
		grep -q "IN.A.$NET4.$WEB" "$LAB/tmp/background.out"; }
	wait_for 10 served
	run -0 guest crash curl -sS https://news.lab-site.org/
	equal "page" "lab web server for news.lab-site.org" "$output"
	equal "connections that are closed as they ended" 4 "$(log_count crash '.kind == "flow" and .end == "gateway_crash"')"
	equal "connections that seem to be open" 0 "$(log_count crash '.kind == "flow" and .end == "open"')"
	log_has crash '.dst == "45.45.45.40" and .name_source == "cidr" and .end == "fin" and .bytes_out == 6'
	log_has crash '.dst == "2600:1:2::40" and .end == "fin"'
	run -0 postern log -o json --kind event
	matches "event" '"event":"role_crash".*"role":"gateway","signal":9' "$output"
}

@test "F-22: a role that cannot be started again now is started when it can be, and the others go on" {
	sandbox later --policy "$(policy later "$ECHO_RULE")"
	# What numbers records cannot be stored.
	mv "$LAB/state/epoch" "$LAB/tmp/epoch"
	mkdir "$LAB/state/epoch"
	role_signal KILL gateway
	told() { grep -q 'the gateway cannot be started now' "$LAB/posternd.log"; }
	wait_for 10 told
	run -1 postern status
	matches "status" 'gateway +not running' "$output"
	rmdir "$LAB/state/epoch"
	mv "$LAB/tmp/epoch" "$LAB/state/epoch"
	wait_for 20 all_ready
	run -0 guest later "$LAB_DIR/client.py" --timeout 10 tcp echo.lab-site.org 7 again --half-close
	matches "echo" again "$output"
}

@test "live edits and policies outlive each of the daemon's processes" {
	sandbox keep --policy "$(policy keep "$ECHO_RULE" 'host: "*.lab-a.com"')"
	postern allow keep news.lab-site.org
	postern deny keep www.lab-a.com
	postern show keep -o json | jq 'del(.leases, .flows)' >"$LAB/tmp/before"
	local role
	for role in gateway auditor control keeper all; do
		case $role in
		keeper) posternd_kill9 && posternd_start ;;
		all) posternd_kill9_all && posternd_start ;;
		*) role_signal KILL "$role" && wait_for 10 all_ready ;;
		esac
		mark
		postern show keep -o json | jq 'del(.leases, .flows)' | diff "$LAB/tmp/before" -
		run -0 guest keep curl -sS https://news.lab-site.org/
		equal "page after the end of $role" "lab web server for news.lab-site.org" "$output"
		guest_fails keep curl -sS https://www.lab-a.com/
		guest_fails keep curl -sS https://www.lab-b.net/
		dns_not_asked www.lab-a.com
		far_none "> ($NET4|$NET6:)($SHARED|$OTHER) "
	done
	log_has keep '.kind == "event" and .event == "restored" and .detail.generation == 3'
	log_has keep '.kind == "dns" and .qname == "www.lab-a.com" and .reason == "rule_deny" and .policy_rev == 3'
	# And a container whose namespace went meanwhile is not kept for ever.
	posternd_kill9
	ip netns del pl-guest-keep
	posternd_start
	equal "sandboxes" 0 "$(postern list -o json | jq '[.. | .name? // empty] | length')"
	[[ ! -e /run/netns/postern-keep ]]
}

@test "a crash of control or the auditor cuts nothing" {
	sandbox calm --policy "$(policy calm "$ECHO_RULE" 'host: news.lab-site.org')"
	hold calm tcp:echo.lab-site.org:7/4 tls:news.lab-site.org:443/6
	background guest calm "$LAB_DIR/attempts.py" "$LAB/tmp/tries" "[$NET6:$ECHO]:7" echo.lab-site.org:7
	wait_for 5 works_since echo.lab-site.org:7 0
	local round began
	for round in control auditor control auditor; do
		role_signal KILL "$round"
		wait_for 15 all_ready
		began=$(date +%s.%N)
		wait_for 10 works_since echo.lab-site.org:7 "$began"
	done
	background_end
	held tcp:echo.lab-site.org:7/4 alive '.rounds > 5'
	held tls:news.lab-site.org:443/6 alive '.rounds > 5'
	# A connection that the guest had is on record once, whatever happened to the auditor.
	every_connection_once calm
	log_has calm '.kind == "flow" and .name == "news.lab-site.org" and .dport == 443 and .end != "gateway_crash"'
}

@test "F-25: sixteen crashes under load: all that the origin saw is on record, and nothing stays open" {
	sandbox f25 --policy "$(policy f25 "$ECHO_RULE")"
	impatient f25
	mark
	background guest f25 "$LAB_DIR/attempts.py" --timeout 0.5 --pause 0.005 --workers 3 "$LAB/tmp/tries" echo.lab-site.org:7
	local round began
	for ((round = 0; round < 16; round++)); do
		began=$(date +%s.%N)
		wait_for 15 works_since echo.lab-site.org:7 "$began"
		case $((round % 4)) in
		0) posternd_kill9 ;;
		1) role_signal KILL gateway ;;
		2) posternd_kill9_all ;;
		3) role_signal KILL auditor ;;
		esac
		! posternd_gone || posternd_start
		wait_for 15 all_ready
	done
	began=$(date +%s.%N)
	wait_for 15 works_since echo.lab-site.org:7 "$began"
	# One that is open in the moment of the crash, for each kind of crash.
	hold f25 tcp:echo.lab-site.org:7/6
	role_signal KILL gateway
	wait_for 10 all_ready
	rm "$LAB/tmp/held"
	hold f25 tcp:echo.lab-site.org:7/4
	posternd_kill9_all
	posternd_start
	background_end
	every_connection_once f25
	closed() { equal "$1" 0 "$(log_count f25 '.kind == "flow" and .end == "open"')"; }
	wait_for 5 closed "connections that seem to be open"
	log_has f25 '.kind == "flow" and .end == "gateway_crash"'
	log_has f25 '.kind == "flow" and .end == "daemon_crash" and .closed != null'
}

@test "F-21: a process that stands still lets nothing out, and goes on where it was" {
	sandbox f21 --policy "$(policy f21 "$ECHO_RULE" 'host: news.lab-site.org' "{cidr: $NET4.$BYTES/32, ports: [9001]}")"
	impatient f21
	hold f21 tcp:echo.lab-site.org:7/4
	# The gateways: nobody reads, nobody dials; the kernel goes on refusing.
	role_signal STOP gateway
	mark
	background guest f21 "$LAB_DIR/client.py" --timeout 15 tcp "$NET4.$BYTES" 9001 gateway --half-close
	run ! guest f21 dig +tries=1 +time=1 news.lab-site.org
	guest_fails f21 "$LAB_DIR/client.py" tcp "$NET6:$OTHER" 443
	far_none "> ($NET4|$NET6).* P"
	far_none "> ($NET4\.|$NET6:)($BYTES|$OTHER|$RESOLVER) "
	role_signal CONT gateway
	goes_on
	wait_for 5 digest_of gateway

	# The auditor: what is not on record does not leave; what was open lives on.
	role_signal STOP auditor
	mark
	background guest f21 "$LAB_DIR/client.py" --timeout 15 tcp "$NET4.$BYTES" 9001 auditor --half-close
	goes_on
	sleep 0.5
	far_none "> $NET4\.$BYTES 9001 [A-Z]*P"
	run ! digest_of auditor
	role_signal CONT auditor
	wait_for 5 digest_of auditor

	# Control: nobody can be asked, nothing else.
	role_signal STOP control
	run ! timeout 1 postern status
	run -0 guest f21 curl -sS https://news.lab-site.org/
	goes_on
	role_signal CONT control
	run -0 postern status

	# The keeper: no new name gets a lease, and so no answer.
	role_signal STOP keeper
	mark
	run guest f21 dig +tries=1 +time=1 +short -t AAAA echo.lab-site.org
	[[ $status -ne 0 || $output != *2600* ]] || fail "an answer without a lease: $output"
	goes_on
	role_signal CONT keeper
	answered() { guest f21 dig +tries=1 +time=2 +short -t AAAA echo.lab-site.org | grep -q "$NET6:$ECHO"; }
	wait_for 10 answered

	# All of them.
	role_signal STOP all
	mark
	run ! guest f21 "$LAB_DIR/client.py" --timeout 1 tcp "$NET4.$BYTES" 9001 all
	guest_fails f21 "$LAB_DIR/client.py" tcp "$NET4.$OTHER" 443
	far_none "> ($NET4|$NET6)"
	role_signal CONT all
	goes_on
	run -0 guest f21 curl -sS https://news.lab-site.org/
	background_end
	held tcp:echo.lab-site.org:7/4 alive
	run -0 postern status
	log_has f21 '.dst == "45.45.45.40" and .bytes_out == 7 and .end == "fin"'
	log_has f21 '.kind == "flow" and .name == "echo.lab-site.org" and .dport == 7 and .end != "gateway_crash" and .end != "timeout"'
}

# A round of the held echo comes back from now on.
goes_on() {
	local now
	echo_rounds() { far_packets "> $NET4\.$ECHO 7 [A-Z]*P" | wc -l; }
	now=$(echo_rounds)
	more_rounds() { (($(echo_rounds) > $1 + 2)); }
	wait_for 10 more_rounds "$now"
}
digest_of() { grep -q "^${#1} $(printf %s "$1" | sha256sum | cut -d' ' -f1)" "$LAB/tmp/background.out"; }
