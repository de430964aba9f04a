#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Somebody with root's rights changes firewalls, on the host and in a sandbox's namespace; services stand where none should;
# the daemon dies: no way opens, and it is said.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/raw

setup_file() {
	lab_up
	posternd_start
	sandbox t --policy "$(policy t 'host: news.lab-site.org' '{host: echo.lab-site.org, ports: [7]}')"
}

setup() {
	mark
}

# What holds before and after: allowed works over both families, the rest is refused and not seen outside.
matrix() {
	equal "allowed" "lab web server for news.lab-site.org" "$(guest t curl -sS -4 https://news.lab-site.org/)" || return 1
	equal "allowed" "lab web server for news.lab-site.org" "$(guest t curl -sS -6 https://news.lab-site.org/)" || return 1
	refusals
}

refusals() {
	dials_refused t tcp "$NET4.$OTHER" "$NET6:$OTHER" 169.254.169.254 10.0.0.5 fd00:ec2::254 "$HOST4" "$HOST6" "$GATEWAY4" 80 443 8080 || return 1
	dials_refused t udp "$NET4.$OTHER" "$NET6:$OTHER" 169.254.169.254 "$HOST4" "$GATEWAY4" 443 123 || return 1
	far_none "> ($NET4\.$OTHER|$NET6:$OTHER) " || return 1
	far_none " (172\.16\.|fd70:)" || return 1
	far_no_trap
}

# Events of tampering: with the sandbox t, or with none (the host).
tampered() { postern log -o json --since 1d | jq -s "[.[] | select(.event == \"tampered\" and (.sandbox // \"host\") == \"$1\")] | length"; }
tampered_beyond() { (($(tampered "$1") > $2)); }

table_intact() { inside t nft list ruleset | grep -q 'hook prerouting .*policy drop'; }

# bats test_tags=smoke
@test "F-01: whatever happens to the host's firewall and forwarding, the sandbox's rules hold" {
	local before hold
	matrix
	before=$(tampered host)
	[[ $(nft list tables) == *"table inet postern-"* ]]
	guest t "$LAB_DIR/hold.py" "$LAB/tmp/hold.log" tcp:echo.lab-site.org:7/4 tcp:echo.lab-site.org:7/6 3>&- &
	hold=$!
	held() { [[ $(grep -c '"event": "open"' "$LAB/tmp/hold.log") == 2 ]]; }
	wait_for 5 held
	nft flush ruleset
	sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
		net.ipv4.conf.all.route_localnet=1
	nft add table ip nat
	nft add chain ip nat post "{ type nat hook postrouting priority 100; }"
	nft add rule ip nat post masquerade
	nft add table inet open
	nft add chain inet open ahead "{ type filter hook forward priority -300; }"
	nft add rule inet open ahead accept
	matrix
	wait_for 3 tampered_beyond host "$before"
	[[ $(nft list tables) == *"table inet postern-"* ]]
	nft flush ruleset
	matrix
	sysctl -q -w net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0 net.ipv4.conf.all.route_localnet=0
	kill "$(pgrep -f "hold.py $LAB/tmp/hold.log" | tail -n 1)"
	wait "$hold" || true
	equal "connections that lived through it" 2 "$(grep -c '"event": "alive"' "$LAB/tmp/hold.log")"
	# Back again, and not merely a table of that name.
	back() { nft list ruleset | grep -A 100 'table inet postern-' | grep -q 'skuid 64201 .*@never6'; }
	wait_for 3 back
}

# bats test_tags=smoke
@test "F-02: rules flushed in the sandbox's namespace come back within a second, and meanwhile nothing leaves" {
	local before start attempts
	matrix
	before=$(tampered t)
	# Somebody who tries all the time: a destination that was leased, ones that never were, the gateway.
	guest t "$LAB_DIR/attempts.py" "$LAB/tmp/attempts" --timeout 0.3 "$NET4.$WEB:80" "$NET4.$OTHER:443" "[$NET6:$OTHER]:443" \
		"$GATEWAY4:15001" "$GATEWAY4:80" "10.0.0.5:80" "169.254.169.254:80" "$HOST4:8080" 3>&- &
	attempts=$!
	tried() { (($(wc -l <"$LAB/tmp/attempts") > $1)); }
	wait_for 10 tried 16
	mark
	start=$(date +%s%N)
	inside t nft flush ruleset
	wait_for 5 tampered_beyond t "$before"
	(((($(date +%s%N) - start) / 1000000) < 4000)) || fail "said after $((($(date +%s%N) - start) / 1000000)) ms"
	table_intact
	wait_for 10 tried 32
	kill "$(pgrep -f "attempts.py $LAB/tmp/attempts" | tail -n 1)"
	wait "$attempts" || true
	equal "attempts that got through" 0 "$(jq -c "select(.t > $start / 1e9 + 0.05) | select(.end == \"echo\" or .end == \"open\")" "$LAB/tmp/attempts" | wc -l)"
	far_none "> ($NET4\.$WEB|$NET4\.$OTHER|$NET6:$OTHER|10\.0\.0\.5) "
	far_no_trap
	matrix
	log_has t '.event == "tampered"'
}

@test "F-02: so do rules that somebody added, took away, or opened" {
	local change before
	for change in "insert rule inet postern prerouting accept" "chain inet postern prerouting { policy accept; }" \
		"delete table netdev postern" "flush chain inet postern prerouting" "delete table inet postern" \
		"add table inet postern { flags dormant; }"; do
		before=$(tampered t)
		inside t nft "$change"
		wait_for 5 tampered_beyond t "$before" || fail "not found: $change" || return 1
		table_intact || fail "not repaired: $change" || return 1
	done
	matrix
	# A destination that somebody put among the leases by hand is not one: the gateway did not hear of it.
	inside t nft add element inet postern lease4 "{ $NET4.$OTHER . tcp . 443, 10.0.0.5 . tcp . 80 }"
	run guest t "$LAB_DIR/client.py" tcp "$NET4.$OTHER" 443 "$(printf 'hello')"
	equal "status" 1 "$status"
	matches "end" '"end": "(rst|refused|fin)"' "$output"
	dials_refused t tcp 10.0.0.5 80
	far_none "> ($NET4\.$OTHER|10\.0\.0\.5) "
	log_has t '.verdict == "denied" and .dst == "45.45.45.20" and .dport == 443 and .kind == "deny"'
	inside t nft delete element inet postern lease4 "{ $NET4.$OTHER . tcp . 443, 10.0.0.5 . tcp . 80 }"
}

# bats test_tags=smoke
@test "E-10: a service in the sandbox's namespace is out of the guest's reach, and is reported" {
	local before pids=()
	before=$(tampered t)
	mkdir -p "$LAB/tmp/empty"
	# Not "inside": that would be a shell with the server as its child.
	local enter=(nsenter --net=/run/netns/postern-t --)
	"${enter[@]}" python3 -m http.server -d "$LAB/tmp/empty" -b 0.0.0.0 8000 >"$LAB/tmp/http4" 2>&1 3>&- &
	pids+=($!)
	"${enter[@]}" python3 -m http.server -d "$LAB/tmp/empty" -b :: 8001 >"$LAB/tmp/http6" 2>&1 3>&- &
	pids+=($!)
	up() { inside t ss -Hltn 'sport >= :8000 and sport <= :8001' | grep -c LISTEN | grep -qx 2; }
	wait_for 10 up
	dials_refused t tcp "$GATEWAY4" "$GATEWAY6" "$NET4.$WEB" "$NET6:$WEB" 8.8.8.8 127.0.0.2 8000 8001 || {
		# The guest's own loopback is its own affair.
		grep -v ' 127.0.0.2 ' "$LAB/tmp/dials" | grep -v '^refused' && fail "reached"
	}
	equal "handshakes" "" "$(raw t "tcp dst={$GATEWAY4|127.0.0.1|172.16.0.3|$NET4.$WEB} dport=8000" \
		"tcp dst={$GATEWAY6|fe80::1|$NET6:$WEB} dport=8001" | grep ' S[A-Z]* ' || true)"
	wait_for 10 tampered_beyond t "$before"
	log_has t '.event == "tampered" and .detail.foreign_sockets == 2'

	# With the rules gone: until they are back somebody in the namespace can be heard, but after that nobody.
	before=$(tampered t)
	inside t nft flush ruleset
	wait_for 5 tampered_beyond t "$before"
	dials_refused t tcp "$GATEWAY4" "$NET4.$WEB" "$NET6:$WEB" 8000 8001

	# With the daemon dead.
	posternd_kill9
	roles_gone() { ! pgrep '^postern-(gateway|control|auditor)'; }
	wait_for 5 roles_gone
	dials_refused t tcp "$GATEWAY4" "$GATEWAY6" "$NET4.$WEB" "$NET6:$WEB" 8000 8001
	equal "handshakes" "" "$(raw t "tcp dst={$GATEWAY4|127.0.0.1|$NET4.$WEB} dport=8000" \
		"tcp dst={$GATEWAY6|fe80::1|$NET6:$WEB} dport=8001" | grep ' S[A-Z]* ' || true)"
	equal "requests" 0 "$(cat "$LAB/tmp/http4" "$LAB/tmp/http6" | grep -c "$GUEST4\|$GUEST6" || true)"
	kill "${pids[@]}"
	wait "${pids[@]}" || true
	posternd_start
	matrix
}

# bats test_tags=smoke
@test "F-03: with the daemon dead no port answers, none falls through to a service, and a restart brings all back" {
	local out before
	matrix
	mark
	posternd_kill9
	roles_gone() { ! pgrep '^postern-(gateway|control|auditor)'; }
	wait_for 10 roles_gone
	no_sockets() { [[ $(inside t ss -Hltnu | wc -l) -eq 0 ]]; }
	wait_for 10 no_sockets || fail "sockets in the namespace:" "$(inside t ss -Hltnu)"
	# All ports of the gateway: as many refusals.
	before=$(counted t never)
	raw t --listen 0 "tcp dst=$GATEWAY4 dport={1..65535}" >/dev/null
	equal "refused ports" 65535 $(($(counted t never) - before))
	# The usual ones, and those of an address that is leased.
	out=$(raw t "tcp dst={$GATEWAY4|$GATEWAY6|$NET4.$WEB|$NET6:$WEB} dport={1..1100}" \
		"tcp dst={$GATEWAY4|$NET4.$WEB|127.0.0.1} dport={15001|8080}")
	matches "sent" "sent 4406" "$(tail -n 1 <<<"$out")"
	equal "handshakes" "" "$(grep -E '^tcp .* [A-Z]*S[A-Z]* [0-9]+$' <<<"$out" | head -n 5 || true)"
	(($(grep -c '^tcp .* RA ' <<<"$out") > 1000)) || fail "few resets: $(grep -c '^tcp .* RA ' <<<"$out")"
	out=$(raw t "udp dst={$GATEWAY4|$GATEWAY6|$NET4.$WEB} dport={1..1100}")
	equal "answers" "" "$(grep '^udp' <<<"$out" || true)"
	# As programs see it: at once, not after a timeout.
	dials_refused t tcp "$NET4.$WEB" "$NET6:$WEB" "$NET4.$OTHER" 443
	dials_refused t udp "$GATEWAY4" 8.8.8.8 53
	far_none "> ($NET4\.($WEB|$OTHER)|$NET6:($WEB|$OTHER)) "
	dns_not_asked news.lab-site.org
	far_no_trap
	posternd_start
	matrix
	log_has t '.event == "restored"'
}

@test "F-07: namespaces, devices and descriptors are gone after a detach, live connections or not" {
	local round i pid descriptors_before descriptors_after clients
	descriptors() {
		for pid in $(posternd_pid) $(pgrep -P "$(posternd_pid)"); do
			echo "$(cat "/proc/$pid/comm") $(find "/proc/$pid/fd" -mindepth 1 2>/dev/null | wc -l)"
		done
	}
	namespaces_gone() {
		local i
		for i in {1..5}; do
			[[ ! -e /run/netns/postern-leak$i ]] || return 1
			# The other end lives as long as the sandbox's namespace does.
			! ip -n "pl-guest-leak$i" link show eth0 2>/dev/null || return 1
		done
	}
	posternd_stop
	posternd_start
	matrix
	for round in 1 2 3; do
		: >"$LAB/tmp/leak.log"
		clients=()
		for i in {1..5}; do
			sandbox "leak$i" --policy "$LAB/tmp/t.yaml" >/dev/null
			guest "leak$i" "$LAB_DIR/client.py" --timeout 30 tcp echo.lab-site.org 7 hello >/dev/null 2>>"$LAB/tmp/leak.log" 3>&- &
			clients+=($!)
		done
		for i in {1..5}; do
			wait_for 15 log_has "leak$i" '.kind == "flow" and .end == "open"'
		done
		# One at a time, several at once, and one with its rules changed in that moment.
		inside leak1 nft flush ruleset
		postern detach leak{1..5} >/dev/null
		wait_for 10 namespaces_gone
		wait "${clients[@]}" || true
		equal "ended at once" 5 "$(grep -c '"end": "rst"\|"end": "fin"\|"end": "unreachable"\|"end": "timeout"' "$LAB/tmp/leak.log")"
		for i in {1..5}; do
			log_has "leak$i" '.kind == "flow" and .end == "detached"'
			ip netns del "pl-guest-leak$i"
		done
		# Pipes, resolver channels and the like are made once and kept.
		[[ $round != 1 ]] || descriptors_before=$(descriptors)
	done
	# Fewer is fine: an idle resolver channel closes its socket, and one may have been open when we counted. A few more are
	# none of a sandbox's: the checkpointer opens its files when it first has work, a gateway that had none its resolver
	# channel and its pipes. A leak is ten more, one for each sandbox, and so five at least in one of two gateways.
	settled() {
		descriptors_after=$(descriptors)
		paste -d ' ' <(echo "$descriptors_before") <(echo "$descriptors_after") |
			awk '$1 != $3 || $4 > $2 + 4 {bad = 1} END {exit bad}'
	}
	wait_for 10 settled || fail "before: $(xargs <<<"$descriptors_before"), after: $(xargs <<<"$(descriptors)")"
	matrix
}

@test "F-07: a virtual machine that holds its TAP keeps no namespace alive" {
	local holder
	postern attach held --tap --policy "$LAB/tmp/t.yaml" >/dev/null
	# A device of ours whose other end is in the namespace is there as long as that is.
	ip link add pl-end type veth peer name pl-in netns postern-held
	nsenter --net=/run/netns/postern-held -- python3 -c '
import fcntl, os, struct, time
tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", b"tap0", 0x1002))
print("open", flush=True)
time.sleep(60)' >"$LAB/tmp/holder" 3>&- &
	holder=$!
	wait_for 10 grep -q open "$LAB/tmp/holder"
	# The holder is in the namespace too: like a VMM that was started by a jailer, it must end for that.
	postern detach held
	[[ ! -e /run/netns/postern-held ]]
	gone() { ! ip link show pl-end; }
	tap_gone() { ! nsenter --target "$holder" --net -- ip link show tap0; }
	wait_for 5 tap_gone
	kill "$holder"
	wait "$holder" || true
	wait_for 10 gone
	log_has held '.event == "detach"'
}
