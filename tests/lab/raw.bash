# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Words for cases about packets, beside lab.bash: raw ones, and the kernel's own count of what it refused.

# Packets from a guest's device, see raw.py; prints what came back: raw NAME [option...] PACKET...
raw() {
	local name=$1
	shift
	nsenter --net="/run/netns/pl-guest-$name" -- "$LAB_DIR/raw.py" "$@"
}

# Run something inside a sandbox's own namespace, where its guest is not: inside NAME COMMAND...
inside() {
	local name=$1
	shift
	nsenter --net="/run/netns/postern-$name" -- "$@"
}

# Refused packets of a class (spoofed never tcp udp icmp proto), over both tables: counted NAME CLASS
counted() {
	inside "$1" nft -j list counters |
		jq --arg name "count_$2" '[.nftables[].counter | select(.name == $name) | .packets] | add // 0'
}

# Packets that were refused, as the kernel counted them and as the log's rows tell, by reason: two lines of JSON to compare.
# ICMP and other protocols have a counter each, and one reason.
sums() {
	inside "$1" nft -j list counters | jq -c '[.nftables[].counter | select(. != null)] | group_by(.name) |
		map({(.[0].name): (map(.packets) | add)}) | add | {spoofed_source: .count_spoofed, never_address: .count_never,
		not_leased: .count_tcp, udp_denied: .count_udp, proto_denied: (.count_icmp + .count_proto)}'
	log_json "$1" | jq -c -s 'map(select(.kind == "deny")) | reduce .[] as $row ({spoofed_source: 0, never_address: 0,
		not_leased: 0, udp_denied: 0, proto_denied: 0}; if has($row.reason) then .[$row.reason] += $row.count else . end)'
}

# For wait_for, because the log lags some seconds behind: adds_up NAME
adds_up() {
	sums "$1" >"$LAB/tmp/sums"
	[[ $(sort -u "$LAB/tmp/sums" | wc -l) == 1 ]]
}

# Dial addresses at ports as a guest, see dial.py: dials NAME tcp|udp WORD...; no line of it may differ from "refused",
# none may have taken longer than REFUSAL_MS: dials_refused NAME tcp|udp WORD...
dials() {
	local name=$1
	shift
	nsenter --net="/run/netns/pl-guest-$name" -- "$LAB_DIR/dial.py" "$@"
}

dials_refused() {
	dials "$@" >"$LAB/tmp/dials" || return 1
	[[ -s $LAB/tmp/dials ]] || return 1
	if awk -v most="$REFUSAL_MS" '$1 != "refused" || $5 > most {print; bad = 1} END {exit !bad}' "$LAB/tmp/dials" >&2; then
		fail "not refused, or late"
	fi
}
