#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# A gibibyte each way arrives as it was sent, by way of each of the paths that bytes can take, and takes no memory.

# bats file_tags=alone
bats_require_minimum_version 1.5.0
load ../lab/lab

GIB=1073741824
# The first part of it, where the way is much like another.
QUARTER=$((GIB / 4))
# A transfer at the speed of an emulated disk would do; on two busy cores it takes some seconds.
TRANSFER_S=50

setup_file() {
	lab_up
	posternd_start
	sandbox bulk --policy "$(policy bulk 'host: news.lab-site.org' \
		'{host: echo.lab-site.org, ports: [9001, 9004]}')"
	# Every block of it differs, so that a lost, doubled or misplaced one shows. On the lab's tmpfs, once.
	head -c $GIB /dev/zero | openssl enc -aes-128-ctr -nosalt -K 706f737465726e -iv 0 2>/dev/null >"$LAB/web/html/1GiB"
	sha256sum <"$LAB/web/html/1GiB" | cut -d' ' -f1 >"$LAB/tmp/sha256"
	head -c $QUARTER "$LAB/web/html/1GiB" | sha256sum | cut -d' ' -f1 >"$LAB/tmp/sha256.quarter"
}

setup() {
	mark
	whole=$(<"$LAB/tmp/sha256")
	quarter=$(<"$LAB/tmp/sha256.quarter")
}

# Kibibytes that posternd and its children have in memory.
rss() {
	local pid total=0
	for pid in "$(posternd_pid)" $(pgrep -P "$(posternd_pid)"); do
		total=$((total + $(awk '/^VmRSS/ {print $2}' "/proc/$pid/status")))
	done
	echo "$total"
}

# Its cost in memory must not depend on what passes: no_growth KIB-BEFORE
no_growth() {
	local after
	# Freed memory is kept back by the address sanitizer.
	[[ $BUILD != *sanit* ]] || return 0
	after=$(rss)
	((after < $1 + 16384)) || fail "posternd grew from $1 to $after KiB"
}

# The record of a transfer: recorded bytes_in|bytes_out BYTES PORT ADDRESS
recorded() {
	log_has bulk '.kind == "flow" and .dport == '"$3"' and .dst == "'"$4"'" and .end == "fin" and .'"$1"' >= '"$2"
}

# download SHA256 CURL-OPTION...
download() {
	local before sent=$1
	shift
	before=$(rss)
	# shellcheck disable=SC2016 # expanded inside
	run -0 guest bulk timeout $TRANSFER_S sh -c 'curl -sS "$@" | sha256sum' sh "$@"
	equal "hash of what arrived" "$sent" "${output%% *}"
	no_growth "$before"
}

# What arrived is a JSON line of the lab's origin: arrived BYTES SHA256 LINE
arrived() {
	equal "bytes that arrived" "$1" "$(jq -r .body <<<"$3")"
	equal "hash of what arrived" "$2" "$(jq -r .sha256 <<<"$3")"
}

@test "D-23: a gibibyte down over HTTPS, IPv4" {
	download "$whole" -4 https://news.lab-site.org/1GiB
	recorded bytes_in $GIB 443 "$NET4.$WEB"
}

@test "D-23: a gibibyte up over HTTPS, IPv6" {
	local before
	before=$(rss)
	run -0 guest bulk timeout $TRANSFER_S curl -sS -6 -T "$LAB/web/html/1GiB" https://news.lab-site.org/api/upload
	arrived $GIB "$whole" "$output"
	no_growth "$before"
	recorded bytes_out $GIB 443 "$NET6:$WEB"
}

@test "down over plain HTTP, IPv6" {
	download "$quarter" -6 -r 0-$((QUARTER - 1)) http://news.lab-site.org/1GiB
	recorded bytes_in $QUARTER 80 "$NET6:$WEB"
}

@test "a gibibyte up over plain HTTP, whose requests are read one by one, IPv4" {
	local before
	before=$(rss)
	run -0 guest bulk timeout $TRANSFER_S curl -sS -4 -T "$LAB/web/html/1GiB" http://news.lab-site.org/api/upload
	arrived $GIB "$whole" "$output"
	no_growth "$before"
	recorded bytes_out $GIB 80 "$NET4.$WEB"
}

@test "up over plain HTTP in chunks, IPv6" {
	local before
	before=$(rss)
	# shellcheck disable=SC2016 # expanded inside
	run -0 guest bulk timeout $TRANSFER_S sh -c 'head -c "$1" "$2" | curl -sS -6 -T - http://news.lab-site.org/api/upload' \
		sh $QUARTER "$LAB/web/html/1GiB"
	arrived $QUARTER "$quarter" "$output"
	no_growth "$before"
	recorded bytes_out $QUARTER 80 "$NET6:$WEB"
}

@test "E-20: up on a port of no particular protocol, half-closed, then answered" {
	local before family address
	for family in A AAAA; do
		address=$(guest bulk dig +short $family echo.lab-site.org)
		before=$(rss)
		# shellcheck disable=SC2016 # expanded inside
		run -0 --separate-stderr guest bulk timeout $TRANSFER_S sh -c 'head -c "$1" "$2" |
			"$4" --timeout 20 --half-close tcp "$3" 9001 @/dev/stdin' \
			sh $QUARTER "$LAB/web/html/1GiB" "$address" "$LAB_DIR/client.py"
		equal "what arrived" "$QUARTER $quarter" "$output"
		no_growth "$before"
		recorded bytes_out $QUARTER 9001 "$address"
	done
}

@test "E-23: a reader that stops costs no memory, and gets all of it later" {
	local before size=67108864 family
	before=$(rss)
	for family in 4 6; do
		guest bulk "$LAB_DIR/client.py" --family $family --pause 3 --timeout 20 tcp echo.lab-site.org 9004 "$size\n" \
			>"$LAB/tmp/paused$family" 2>"$LAB/tmp/paused$family.json" &
	done
	sleep 2
	no_growth "$before"
	wait
	for family in 4 6; do
		equal "end" fin "$(jq -r .end "$LAB/tmp/paused$family.json")"
		equal "size" "$size" "$(stat -c %s "$LAB/tmp/paused$family")"
		equal "hash" "$(sha256sum <"$LAB/tmp/paused$family")" \
			"$(python3 -c "import sys; sys.stdout.buffer.write(bytes(range(256)) * ($size // 256))" | sha256sum)"
		rm "$LAB/tmp/paused$family"
	done
	no_growth "$before"
	log_has bulk ".kind == \"flow\" and .dport == 9004 and .bytes_in == $size and .dst == \"$NET4.$ECHO\""
	log_has bulk ".kind == \"flow\" and .dport == 9004 and .bytes_in == $size and .dst == \"$NET6:$ECHO\""
}

@test "a gibibyte from where it may not come from does not begin" {
	guest_fails bulk curl -sS -o /dev/null https://www.lab-b.net/1GiB
	guest_fails bulk curl -sSk -o /dev/null --connect-to ::news.lab-site.org: https://www.lab-b.net/1GiB
	guest_fails bulk curl -sS --fail -o /dev/null -H 'Host: www.lab-b.net' http://news.lab-site.org/1GiB
	guest_fails bulk curl -sSk -T "$LAB/web/html/1GiB" --connect-to ::news.lab-site.org: https://www.lab-b.net/api/upload
	guest_fails bulk curl -sS --fail -T "$LAB/web/html/1GiB" -H 'Host: www.lab-b.net' http://news.lab-site.org/api/upload
	equal "requests" "" "$(web_log)"
	dns_not_asked www.lab-b.net
	far_none "> ($NET4\.|$NET6:)($OTHER|$WEB) .*P"
	equal "refusals" 4 "$(log_count bulk '.kind == "deny" and .name == "www.lab-b.net" and .reason == "no_rule"')"
}
