# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Words for tests of DNS, on top of lab.bash.

# Ask as the guest, by stub.py: stub NAME [option...] WORD...
stub() {
	local name=$1 python=/usr/bin/python3
	shift
	[[ -x $python ]] || python=python3
	guest "$name" "$python" "$LAB_DIR/stub.py" "$@"
}

# What stub.py printed last: as many messages as said, and a jq condition holds for each. replies COUNT CONDITION
replies() {
	# shellcheck disable=SC2154 # set by bats' run
	jq -e -s --argjson count "$1" "map(select(.rcode != null)) | length == \$count and all(.[]; $2)" <<<"$output" >/dev/null ||
		fail "wanted $1 replies with: $2" "got $(grep -c '"rcode"' <<<"$output"), and of these not so:" \
			"$(jq -c "select($2 | not) | del(.raw)" <<<"$output" | head -n 5)" "the last: $(tail -n 1 <<<"$output" | head -c 500)"
}

# The same for the n-th message alone: reply N CONDITION
reply() {
	jq -e -s --argjson n "$1" "map(select(.rcode != null))[\$n - 1] | $2" <<<"$output" >/dev/null ||
		fail "wanted reply $1 with: $2" "$output"
}

# How a TCP conversation of stub.py ended.
ended() {
	equal "end of the connection" "$1" "$(jq -r 'select(.end != null) | .end' <<<"$output")"
}

# Nothing at all was asked of the resolver since mark, for whatever name.
resolver_idle() {
	local seen
	far_sync
	seen=$(since_mark fdns.log | head -n 5)
	[[ -z $seen ]] || fail "the resolver was asked:" "$seen"
}

# Addresses in the kernel's lease set, sorted: leased NAME 4|6
leased() {
	ip netns exec "postern-$1" nft -j list set inet postern "lease$2" |
		jq -r '[.nftables[].set // empty | .elem // [] | .[].elem.val.concat[0]] | unique[]'
}

# Seconds that the kernel keeps an element of an address: lease_timeout NAME ADDRESS
lease_timeout() {
	local family=4
	[[ $2 != *:* ]] || family=6
	ip netns exec "postern-$1" nft -j list set inet postern "lease$family" |
		jq --arg address "$2" '[.nftables[].set // empty | .elem // [] | .[].elem
			| select(.val.concat[0] == $address) | .timeout] | min // 0'
}

# DNS records of the last hour that a jq condition holds for: dns_records NAME CONDITION
dns_records() {
	log_json "$1" --kind dns --since 1h | jq -s "[.[] | select($2) | .count] | add // 0"
}

# Wait until there are exactly so many: dns_recorded NAME COUNT CONDITION
dns_recorded() {
	dns_recorded_now() { [[ $(dns_records "$1" "$3") -eq $2 ]]; }
	wait_for 10 dns_recorded_now "$@" || fail "wanted $2 DNS records with: $3; have $(dns_records "$1" "$3")"
}
