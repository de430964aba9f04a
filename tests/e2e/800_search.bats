#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The record is found again: every filter of log on real traffic, cursors, following; top and stats.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	local policy
	policy=$(policy news 'host: news.lab-site.org')
	sandbox red --policy "$policy" --label team=red --label task=1
	sandbox blue --policy "$policy" --label team=blue
	guest red curl -sS -4 https://news.lab-site.org/ >/dev/null
	guest red curl -sS -6 https://news.lab-site.org/ >/dev/null
	! guest red curl -sS -4 https://www.lab-b.net/ || return 1
	! guest blue curl -sS -4 --max-time 5 "http://$NET4.$WEB/" || return 1
	postern mark blue "step 1"
	settled() { [[ $(postern log -o json | jq -s 'map(select(.end == "fin")) | length') == 2 ]]; }
	wait_for 10 settled
}

setup() {
	mark
}

teardown() {
	! posternd_gone || posternd_start
}

teardown_file() {
	all_gone
	log_verifies
}

# What a filter leaves, a word for each row: kind, or event's kind, and what it is about.
rows() {
	postern log -o json "$@" | jq -r '.event // (.kind + " " + (.name // .qname // .dst))' | sort | uniq | paste -sd,
}

# bats test_tags=smoke
@test "each filter finds its rows, of real traffic" {
	local site=news.lab-site.org
	equal "--denied" "deny $NET4.$WEB,dns www.lab-b.net" "$(rows --denied)"
	equal "--verdict" "$(rows --denied)" "$(rows --verdict denied)"
	equal "--reason" "deny $NET4.$WEB" "$(rows --reason not_leased)"
	equal "--host" "dns $site,flow $site" "$(rows --host $site)"
	equal "--host *." "dns $site,flow $site" "$(rows --host '*.lab-site.org')"
	equal "--ip, IPv4" "deny $NET4.$WEB,flow $site" "$(rows --ip "$NET4.$WEB" --kind connection)"
	equal "--ip, IPv6" "flow $site" "$(rows --ip "$NET6:/48" --kind connection)"
	equal "--ip, answers" "dns $site" "$(rows --ip "$NET4.0/24" --kind dns)"
	equal "--ip, source" "" "$(rows --ip $GUEST4 --ip $GUEST6)"
	equal "--src" "$(rows --kind connection --kind dns)" "$(rows --src $GUEST4 --src $GUEST6)"
	equal "--port" "deny $NET4.$WEB" "$(rows --port 80)"
	equal "--port range" "deny $NET4.$WEB,flow $site" "$(rows --port 80-443 --kind connection)"
	equal "--proto" "deny $NET4.$WEB,flow $site" "$(rows --proto tcp)"
	equal "--rule" "dns $site,flow $site" "$(rows --rule "allow $site")"
	equal "--end" "flow $site" "$(rows --end fin)"
	equal "--min-bytes" "flow $site" "$(rows --min-bytes 100)"
	equal "--min-bytes" "" "$(rows --min-bytes 1GiB)"
	equal "--qtype" "dns $site,dns www.lab-b.net" "$(rows --qtype A)"
	equal "--event" "mark" "$(rows --event mark)"
	equal "--sandbox-id" "$(rows red)" "$(rows --sandbox-id "$(postern show red -o json | jq .id)")"
	equal "--label" "$(rows red)" "$(rows --label team=red)"
	equal "--id" "mark" "$(rows --id "$(postern log -o json --event mark | jq -r .id)")"
	equal "--country" "" "$(rows --country DE)"
	equal "--asn" "" "$(rows --asn AS64496)"
	far_none "> ($NET4\.|$NET6:)$WEB "
}

@test "repeats are alternatives, different filters must all hold, --not turns one round" {
	equal "OR" "attach,mark" "$(rows --event mark --event attach)"
	equal "OR" "$(rows --kind connection --kind dns)" "$(rows --verdict allowed --verdict denied)"
	equal "AND" "deny $NET4.$WEB" "$(rows --denied --port 80)"
	equal "AND, nothing" "" "$(rows --denied --host news.lab-site.org)"
	equal "two sandboxes" "$(rows --sandbox red --sandbox blue)" "$(rows red blue)"
	equal "NOT" "$(rows --kind dns --verdict allowed)" "$(rows --kind dns --not --denied)"
	equal "NOT, a tree" "deny $NET4.$WEB,dns www.lab-b.net" "$(rows --not --host '*.lab-site.org' --not --kind event)"
	equal "NOT of a label" "$(rows blue)" "$(rows --not --label team=red --not --event daemon_start)"
	equal "NOT twice" "deny $NET4.$WEB" "$(rows --denied --not --kind dns --not --host www.lab-b.net)"
	run -2 postern log --reason no_rulez
	matches "message" "one of allowed, no_rule, rule_deny" "$output"
	run -2 postern log --not
	run -1 postern log nobody
	matches "message" "no sandbox nobody" "$output"
}

@test "a shipper goes on from its cursor, across a restart of the daemon, without loss or repeats" {
	local cursor before after
	postern log -o json --after begin --show-cursor >"$LAB/tmp/all" 2>"$LAB/tmp/cursor"
	cursor=$(sed -n 's/^cursor: //p' "$LAB/tmp/cursor")
	equal "the last row's" "$cursor" "$(jq -r .cursor "$LAB/tmp/all" | tail -n 1)"
	# In bites of three it is the same.
	local at=begin
	: >"$LAB/tmp/bites"
	while postern log -o json --after "$at" -n 3 >"$LAB/tmp/bite" && [[ -s $LAB/tmp/bite ]]; do
		cat "$LAB/tmp/bite" >>"$LAB/tmp/bites"
		at=$(jq -r .cursor "$LAB/tmp/bite" | tail -n 1)
	done
	cmp "$LAB/tmp/all" "$LAB/tmp/bites" || fail "bites differ"
	equal "nothing new" "" "$(postern log -o json --after "$cursor")"
	posternd_stop
	posternd_start
	guest red curl -sS -4 https://news.lab-site.org/ >/dev/null
	closed() { [[ $(postern log -o json --after "$cursor" --end fin | wc -l) == 1 ]]; }
	wait_for 10 closed
	postern log -o json --after "$cursor" >"$LAB/tmp/more"
	equal "rows that came twice" "" "$(cat "$LAB/tmp/all" "$LAB/tmp/more" | jq -r .cursor | sort | uniq -d)"
	equal "all of it" "$(postern log -o json --after begin | jq -r .id | sort -u)" \
		"$(cat "$LAB/tmp/all" "$LAB/tmp/more" | jq -r .id | sort -u)"
	# Another log: all of it, and a word about it.
	run -0 --separate-stderr postern log -o json --after "$(tr 0-9a-f 1-9a-f0 <<<"${cursor%%:*}"):7"
	equal "rows" "$(postern log -o json --after begin | wc -l)" "${#lines[@]}"
	matches "message" "another log" "$stderr"
	run -2 postern log --after now
}

@test "a follower sees what its filter lets through, as it comes" {
	postern log -f -n 0 -o json --denied --host '*.lab-b.net' >"$LAB/tmp/follow" 3>&- &
	local pid=$!
	guest red curl -sS -4 https://news.lab-site.org/ >/dev/null
	seen() {
		guest red getent ahosts api.lab-b.net || true
		grep -q '"qname":"api.lab-b.net"' "$LAB/tmp/follow"
	}
	wait_for 15 seen
	kill "$pid"
	equal "nothing else" "api.lab-b.net" "$(jq -r .qname "$LAB/tmp/follow" | sort -u)"
	dns_not_asked api.lab-b.net
}

@test "top: by name, sandbox, reason, and what of it a filter leaves" {
	run -0 postern top
	matches "heading" "^CONNECTIONS +QUERIES +DENIED +OUT +IN +name$" "${lines[0]}"
	matches "most bytes" " news.lab-site.org$" "${lines[1]}"
	equal "by sandbox" "red" "$(postern top --group sandbox --by connections -o json | jq -r '.top[0].key')"
	equal "by reason" "no_rule" "$(postern top red --group reason --by denied -o json | jq -r '.top[0].key')"
	equal "by address" "$NET4.$WEB" "$(postern top --group ip --by denied -o json | jq -r '.top[0].key')"
	equal "refused only" "$NET4.$WEB" "$(postern top --denied --kind connection -n 1 -o json | jq -r '.top[0].key')"
	equal "bytes as in the log" "$(postern log -o json --kind connection | jq -s 'map(.bytes_out // 0) | add')" \
		"$(postern top -o json | jq '[.top[].bytes_out] | add')"
	run -2 postern top --by size
	matches "message" "one of bytes, connections, denied, queries" "$output"
	run -2 postern top --watch
	matches "message" "terminal" "$output"
	run timeout 4 script -qec "$BUILD/postern top --watch" /dev/null </dev/null
	matches "on a terminal" "news.lab-site.org" "$output"
}

@test "stats: totals that agree with the rows, names seen for the first time, figures of domains" {
	postern stats -o json >"$LAB/tmp/stats"
	equal "connections" "$(postern log -o json --since 1d --kind connection | jq -s 'map(.count) | add')" \
		"$(jq .connections.attempts "$LAB/tmp/stats")"
	equal "queries refused" "$(postern log -o json --since 1d --kind dns --denied | jq -s 'map(.count) | add')" \
		"$(jq .queries.denied "$LAB/tmp/stats")"
	equal "series" "$(jq .connections.attempts "$LAB/tmp/stats")" "$(jq '[.series[].connections] | add' "$LAB/tmp/stats")"
	equal "names" "$(postern log -o json --since 1d | jq -r '.name // .qname // empty' | sort -u | wc -l)" \
		"$(jq .names "$LAB/tmp/stats")"
	equal "first seen" "$(jq .names "$LAB/tmp/stats")" "$(jq .first_seen_names "$LAB/tmp/stats")"
	equal "a domain" 1 "$(jq '[.domains[] | select(.domain == "lab-site.org")][0].names' "$LAB/tmp/stats")"
	run -0 postern stats red --step minute
	matches "totals" "^connections +[0-9]+ +0 +0 +0$" "$output"
	matches "first time" "^names +2, 2 of them" "$(postern stats red --not --host api.lab-b.net)"
	run -1 postern stats nobody
}

@test "F-28: hostile names are escaped in top" {
	guest blue python3 - "$GATEWAY4" <<'END'
import socket, sys
name = b"\x07\x1b]0;x\x07" + b"\x03org"
query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + name + b"\x00\x00\x01\x00\x01"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.sendto(query, (sys.argv[1], 53))
try:
    s.recv(512)
except OSError:
    pass
END
	hostile() { postern top blue --by queries --group name | grep -qF '\x1b'; }
	wait_for 10 hostile
	postern top blue -n 100 >"$LAB/tmp/text"
	postern top blue -n 100 -o json >>"$LAB/tmp/text"
	postern stats blue >>"$LAB/tmp/text"
	equal "bytes that are not printable ASCII" "" "$(LC_ALL=C grep -nP '[^\x20-\x7e]' "$LAB/tmp/text" || true)"
}
