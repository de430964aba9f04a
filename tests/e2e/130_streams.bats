#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What TCP says besides bytes: the end of one direction, resets, segments that contradict each other.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/raw

setup_file() {
	lab_up
	posternd_start
	sandbox s --policy "$(policy s '{host: echo.lab-site.org, ports: ["9001-9005"]}' 'host: bytes.lab-site.org')"
}

setup() {
	mark
}

# talk FAMILY PORT DATA... [option...]: its words in $output, how it ended in $stderr
talk() {
	local family=$1 port=$2
	shift 2
	run --separate-stderr guest s "$LAB_DIR/client.py" --family "$family" --timeout 20 tcp echo.lab-site.org "$port" "$@"
}

# The end that the far side saw, of its connections since the mark: far_end BEHAVIOUR
far_ends() { origin_log "select(.event == \"close\" and .behaviour == \"$1\") | .end" | tr -d '"' | sort | uniq -c | xargs; }
far_ends_are() { [[ $(far_ends "$1") == "$2" ]]; }

# bats test_tags=smoke
@test "E-20: a reply goes on after the guest has ended its side" {
	local size=33554432 family sum
	sum=$(python3 -c "import sys; sys.stdout.buffer.write(bytes(range(256)) * ($size // 256))" | sha256sum | cut -d' ' -f1)
	for family in 4 6; do
		guest s "$LAB_DIR/client.py" --family $family --timeout 20 tcp echo.lab-site.org 9004 "$size\n" --half-close \
			>/dev/null 2>"$LAB/tmp/end"
		equal "end" "fin $size $sum" "$(jq -r '"\(.end) \(.received) \(.sha256)"' "$LAB/tmp/end")"
		# The reader sleeps while the server sends what fits, closes, and is gone.
		guest s "$LAB_DIR/client.py" --family $family --timeout 20 --pause 0.7 tcp echo.lab-site.org 9004 "$size\n" \
			>/dev/null 2>"$LAB/tmp/end"
		equal "end" "fin $size $sum" "$(jq -r '"\(.end) \(.received) \(.sha256)"' "$LAB/tmp/end")"
	done
	log_has s ".kind == \"flow\" and .dport == 9004 and .dst == \"$NET4.$ECHO\" and .end == \"fin\" and .bytes_in == $size"
	log_has s ".kind == \"flow\" and .dport == 9004 and .dst == \"$NET6:$ECHO\" and .end == \"fin\" and .bytes_in == $size"
	equal "ends at the far side" "4 fin" "$(far_ends blob)"
}

@test "E-20: the guest goes on sending after the server has ended its side" {
	for family in 4 6; do
		talk $family 9002 --gap 0.3 one two three --half-close
		equal "end" "fin" "$(jq -r .end <<<"$stderr")"
		equal "received" farewell "$output"
	done
	wait_for 5 far_ends_are farewell "2 fin"
	equal "bytes that arrived" "11 11" "$(origin_log 'select(.event == "close" and .behaviour == "farewell") | .bytes_in' | xargs)"
	log_has s '.kind == "flow" and .dport == 9002 and .end == "fin" and .bytes_out == 11 and .bytes_in == 9'
}

# bats test_tags=smoke
@test "E-21: a reset of the server is a reset for the guest, never an end in good order" {
	local family
	for family in 4 6; do
		# In the middle of a transfer, all of whose bytes arrive first; and before there was one.
		talk $family 9005 '300000\n'
		equal "end" "rst 300000" "$(jq -r '"\(.end) \(.received)"' <<<"$stderr")"
		talk $family 9003 x
		equal "end" "rst 0" "$(jq -r '"\(.end) \(.received)"' <<<"$stderr")"
	done
	log_has s ".kind == \"flow\" and .dport == 9005 and .dst == \"$NET4.$ECHO\" and .end == \"rst_origin\" and .bytes_in == 300000"
	log_has s ".kind == \"flow\" and .dport == 9005 and .dst == \"$NET6:$ECHO\" and .end == \"rst_origin\" and .bytes_in == 300000"
	log_has s '.kind == "flow" and .dport == 9003 and .end == "rst_origin"'
	equal "records" 4 "$(log_count s '.kind == "flow" and (.dport == 9005 or .dport == 9003)')"
	equal "records that say otherwise" 0 "$(log_count s '(.dport == 9005 or .dport == 9003) and .end != "rst_origin"')"
}

# bats test_tags=smoke
@test "E-21: a reset of the guest is a reset for the server" {
	local family
	for family in 4 6; do
		talk $family 9004 '90000000\n' --reset
	done
	wait_for 5 far_ends_are blob "2 rst"
	far_saw "> $NET4\.$ECHO 9004 R"
	far_saw "> $NET6:$ECHO 9004 R"
	log_has s ".kind == \"flow\" and .dport == 9004 and .dst == \"$NET4.$ECHO\" and .end == \"rst_guest\""
	log_has s ".kind == \"flow\" and .dport == 9004 and .dst == \"$NET6:$ECHO\" and .end == \"rst_guest\""
}

# bats test_tags=smoke
@test "E-08: segments that contradict each other: the server sees what was judged" {
	local family address ways sport
	# The guest's kernel knows nothing of these connections and would reset them.
	nsenter --net=/run/netns/pl-guest-s -- nft -f - <<-'NFT'
		table inet quiet {
			chain out {
				type filter hook output priority 0
				tcp sport 42000-42100 tcp flags rst drop
			}
		}
	NFT
	for family in A AAAA; do
		address=$(guest s dig +short $family bytes.lab-site.org)
		mark
		nsenter --net=/run/netns/pl-guest-s -- "$LAB_DIR/overlap.py" "$address" 443 bytes.lab-site.org other.lab-evil.net \
			>"$LAB/tmp/ways"
		ways=$(wc -l <"$LAB/tmp/ways")
		((ways >= 10))
		recorded() {
			# Segments behind a reset are no attempts, and not of these connections.
			log_json s | jq -c "select(.dst == \"$address\" and .dport == 443 and .sport >= 42000 and .reason != \"not_leased\")" \
				>"$LAB/tmp/records"
			[[ $(jq -c 'select(.end != "open")' "$LAB/tmp/records" | wc -l) == "$ways" ]]
		}
		wait_for 10 recorded || fail "$(cat "$LAB/tmp/ways")" "$(log_json s | grep '"sport":42' | tail -n 20)"
		# One record each; what was allowed has arrived with the name that was judged, what was denied has not arrived.
		equal "records of two kinds" 0 "$(jq -c 'select((.verdict == "allowed" and .name == "bytes.lab-site.org" and .name_source == "sni")
			or (.verdict == "denied" and .name != "bytes.lab-site.org" and .name_source == "claim") | not)' "$LAB/tmp/records" | wc -l)"
		equal "names at the far side" "bytes.lab-site.org" "$(origin_log 'select(.event == "close" and .port == 443) | .sni' | tr -d '"' | sort -u)"
		equal "connections at the far side" "$(jq -c 'select(.verdict == "allowed")' "$LAB/tmp/records" | wc -l)" \
			"$(origin_log 'select(.event == "close" and .port == 443 and .bytes_in > 0)' | wc -l)"
		# Some of either kind: otherwise nothing was tried.
		jq -e -s 'any(.[]; .verdict == "allowed") and any(.[]; .verdict == "denied")' "$LAB/tmp/records" >/dev/null ||
			fail "$(cat "$LAB/tmp/records")"
	done
	dns_not_asked other.lab-evil.net
}
