#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# How questions and answers travel: TCP framing, truncation, forged and missing answers, floods.

# bats file_tags=alone
bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/dns

setup_file() {
	lab_up
	posternd_start --resolver "$NET6:$RESOLVER"
	sandbox dns --policy "$(policy dns 'host: news.lab-site.org' 'host: "*.lab-a.com"')"
	# For the last case: a connection without a word, and one with a byte a second, which is no sign of life.
	sandbox idle --policy "$(policy idle 'host: news.lab-site.org')"
	stub idle --timeout 30 tcp >"$LAB/tmp/idle" 2>&1 </dev/null 3>&- 4>&- &
	stub idle --timeout 30 --bytes 1 --gap 1 tcp "hex:0021000101000001000000000000$(printf '01%.0s' {1..40})" \
		>"$LAB/tmp/dribble" 2>&1 </dev/null 3>&- 4>&- &
	disown -a
}

setup() {
	mark
}

teardown() {
	resolver_up
	kill -CONT "$(posternd_pid)"
}

# Packets to the resolver: dropped or rejected, on IPv4 or on both. resolver_down drop|reject [4]
resolver_down() {
	internet nft -f - <<-NFT
		table inet down {
			chain input {
				type filter hook input priority -10
				ip daddr $NET4.$RESOLVER $1
				$([[ ${2:-} == 4 ]] || echo "ip6 daddr $NET6:$RESOLVER $1")
			}
		}
	NFT
}

resolver_up() {
	internet nft delete table inet down 2>/dev/null || true
}

# A script with so many addresses: addresses NAME COUNT [more JSON]
addresses() {
	fdns "$1" "$(jq -nc --argjson count "$2" --argjson more "${3:-{\}}" \
		'{answers: [range($count) | ["A", 60, "45.46.1.\(. + 1)"]]} + $more')"
}

@test "C-04: messages in pieces of every size are whole messages" {
	local bytes
	for bytes in 1 2 3 33 34 35 36 50; do
		run -0 stub dns --half-close --bytes $bytes --gap 0.003 tcp news.lab-site.org www.lab-b.net www.lab-a.com/AAAA
		replies 3 '.end or (.question == "www.lab-b.net") == (.rcode == "NXDOMAIN")'
		ended fin
	done
	equal "questions upstream" 16 "$(since_mark fdns.log | wc -l)"
	dns_not_asked www.lab-b.net
	log_has dns '.proto == "tcp" and .qname == "www.lab-b.net" and .verdict == "denied"'
}

# bats test_tags=smoke
@test "C-04: a length of zero, of more than any query, or more than comes ends the connection" {
	# What came before is answered, what comes behind is not looked at.
	for server in "$GATEWAY4" "$GATEWAY6"; do
		run -0 stub dns --server "$server" --one-write tcp news.lab-site.org hex:0000 www.lab-a.com
		replies 1 '.end or .question == "news.lab-site.org" and .rcode == "NOERROR"'
		ended fin
	done
	run -0 stub dns tcp "hex:ffff 0001 0100 0001 0000 0000 0000 QNAME(www.lab-a.com) 0001 0001"
	replies 0 'true'
	run -0 stub dns tcp "hex:1001 0001 0100 0001 0000 0000 0000 QNAME(www.lab-a.com) 0001 0001"
	replies 0 'true'
	run -0 stub dns --half-close tcp "hex:0040 0001 0100 0001 0000 0000 0000 QNAME(www.lab-a.com) 0001 0001"
	replies 0 'true'
	ended fin
	run -0 stub dns --half-close tcp hex:00
	ended fin
	# Less than a header, and a response: no answer, but no end either.
	run -0 stub dns --half-close tcp hex:000142 "hex:000c 0001 8100 0000 0000 0000 0000" news.lab-site.org
	replies 1 '.end or .question == "news.lab-site.org"'
	dns_not_asked www.lab-a.com
	dns_recorded dns 2 '.proto == "tcp" and .detail == "a message longer than any query" and .verdict == "denied"'
}

@test "C-04: a thousand questions in one write, and answers in the order in which they get ready" {
	# shellcheck disable=SC2046
	run -0 stub dns --one-write --half-close tcp $(yes $'news.lab-site.org\nwww.lab-b.net' | head -n 1000)
	replies 1000 '.end or .question == "news.lab-site.org" and .answers[0][3] == "45.45.45.10"
		or .question == "www.lab-b.net" and .rcode == "NXDOMAIN"'
	equal "denied" 500 "$(jq -c 'select(.rcode == "NXDOMAIN")' <<<"$output" | wc -l)"
	ended fin
	fdns slow.lab-a.com '{"delay_ms":600,"answers":[["A",60,"45.45.45.11"]]}'
	run -0 stub dns --one-write --half-close tcp slow.lab-a.com news.lab-site.org www.lab-b.net
	equal "order" slow.lab-a.com "$(jq -r 'select(.question) | .question' <<<"$output" | tail -n 1)"
	replies 3 '.end or .question != "slow.lab-a.com" or .answers[0][3] == "45.45.45.11"'
}

@test "C-04: a guest that does not read its answers is not read from, and gets them all when it does" {
	sandbox deaf --policy "$(policy deaf 'host: news.lab-site.org')"
	run -0 stub deaf deaf 7500 www.lab-b.net
	equal "replies" '{"blocked":true,"replies":{"NXDOMAIN":7500}}' "$(jq -c . <<<"$output")"
	dns_recorded deaf 7500 '.qname == "www.lab-b.net" and .proto == "tcp" and .reason == "no_rule"'
	sandbox_gone deaf
	resolver_idle
}

@test "C-04: connections beyond the maximum are closed and recorded" {
	run -0 stub dns crowd 130 news.lab-site.org
	equal "connections" '{"NOERROR":128,"closed":2}' "$(jq -cS .ends <<<"$output")"
	dns_recorded dns 2 '.reason == "limit_connections" and .verdict == "limited" and .proto == "tcp"'
	# Their places are free again.
	run -0 stub dns crowd 20 news.lab-site.org
	equal "connections" '{"NOERROR":20}' "$(jq -c .ends <<<"$output")"
}

# bats test_tags=smoke
@test "C-18: an answer that was cut short upstream is fetched whole, and only that counts" {
	sandbox cut --policy "$(policy cut 'host: "*.lab-a.com"')"
	addresses cut.lab-a.com 50 '{"udp":{"flags":512,"answers":[["A",60,"45.45.45.20"]]}}'
	run -0 stub cut --edns 1232 udp cut.lab-a.com
	replies 1 '(.answers | length) == 50 and (.flags | index("tc") | not)'
	equal "leases" 50 "$(leased cut 4 | grep -c '^45\.46\.1\.')"
	equal "leases of the part" "" "$(leased cut 4 | grep -F 45.45.45.20 || true)"
	equal "how upstream was asked" "udp tcp" "$(since_mark fdns.log | jq -r 'select(.qname) | .transport' | xargs)"
	# A guest that takes 512 bytes is sent to TCP, where it gets the same.
	run -0 stub cut udp cut.lab-a.com
	replies 1 '.flags == ["qr", "tc", "rd", "ra"] and .answers == [] and .size <= 512'
	run -0 stub cut --edns 600 udp cut.lab-a.com
	replies 1 '(.flags | index("tc")) and .answers == [] and .size <= 600'
	run -0 stub cut --edns 65535 udp cut.lab-a.com
	replies 1 '(.answers | length) == 50'
	run -0 stub cut --half-close tcp cut.lab-a.com
	replies 1 '.end or (.answers | length) == 50'
	run -0 guest cut dig +noedns +short cut.lab-a.com
	equal "addresses of dig" 50 "$(wc -l <<<"$output")"
	run -0 guest cut getent ahostsv4 cut.lab-a.com
	equal "addresses of getent" 50 "$(grep -c STREAM <<<"$output")"
	log_has cut '.qname == "cut.lab-a.com" and .verdict == "allowed" and .rcode == "NOERROR"'
	# TCP fails: no half answer.
	fdns broken.lab-a.com '{"udp":{"flags":512},"tcp":{"rcode":2,"answers":[]},"answers":[["A",60,"45.45.45.20"]]}'
	run -0 stub cut --edns 1232 udp broken.lab-a.com
	replies 1 '.rcode == "SERVFAIL" and .answers == []'
	equal "leases of the part" "" "$(leased cut 4 | grep -F 45.45.45.20 || true)"
	log_has cut '.qname == "broken.lab-a.com" and .verdict == "failed" and .reason == "upstream_error"'
	sandbox_gone cut
}

@test "C-23: wrong, early and double answers do not count; the right one does" {
	local evil='"answers":[["A",60,"45.45.45.20"]]' good='"answers":[["A",60,"45.45.45.11"]]' n=0 words=() before
	sandbox forged --policy "$(policy forged 'host: "*.lab-a.com"')"
	for before in "{\"id_add\":1,$evil}" "{\"question\":\"www.lab-b.net\",$evil}" "{\"question\":\"forged3.lab-a.com\",$evil}" \
		"{\"rcode\":2,\"answers\":[]}" "{\"rcode\":5,\"answers\":[]}" '{"raw":"ID"}' '{"raw":"00"}' \
		'{"raw":"ID 0100 0001 0000 0000 0000 QUESTION"}' "{\"id_add\":1,$evil},{\"id_add\":65535,$evil},{\"question\":\"x\",$evil}"; do
		n=$((n + 1))
		fdns forged$n.lab-a.com "{\"udp\":{\"before\":[$before],\"after\":[{$evil}],\"repeat\":2},$good}"
		words+=(forged$n.lab-a.com)
	done
	run -0 stub forged --edns 1232 udp "${words[@]}"
	replies $n '.rcode == "NOERROR" and [.answers[][3]] == ["45.45.45.11"]'
	equal "leases" 45.45.45.11 "$(leased forged 4)"
	dns_recorded forged $n '.verdict == "allowed" and .answers == ["A 45.45.45.11"]'
	# Each question from a port and with an id and a spelling of its own.
	mark
	# shellcheck disable=SC2046
	run -0 stub forged udp $(yes www.lab-a.com | head -n 40)
	[[ $(since_mark fdns.log | jq -r .sport | sort -u | wc -l) -ge 30 ]] || fail "few source ports"
	[[ $(since_mark fdns.log | jq -r '.raw[:4]' | sort -u | wc -l) -ge 38 ]] || fail "few ids"
	sandbox_gone forged
}

@test "C-31: when a resolver is silent the next one answers" {
	resolver_down drop 4
	run -0 stub dns --edns 1232 udp news.lab-site.org
	replies 1 '.answers[0][3] == "45.45.45.10" and .ms < 4500'
	# And is the first from then on: the silent one costs its time once.
	run -0 stub dns --edns 1232 udp www.lab-a.com news.lab-site.org www.lab-a.com/AAAA
	replies 3 '.rcode == "NOERROR" and .ms < 1500'
	since_mark fdns.log | jq -e -s --arg address "$NET6:$RESOLVER" 'any(.[]; .local == $address)' >/dev/null ||
		fail "$(since_mark fdns.log)"
}

@test "C-31: when no resolver answers: SERVFAIL in time, nothing opened, live leases go on, and it recovers at once" {
	run -0 guest dns curl -sS https://news.lab-site.org/
	local before
	before=$(leased dns 4)
	resolver_down drop
	run -0 stub dns --edns 1232 --timeout 8 udp www.lab-a.com
	replies 1 '.rcode == "SERVFAIL" and .answers == [] and .ms < 5500 and (.edns.ede | IN(22, 23))'
	log_has dns '.qname == "www.lab-a.com" and .verdict == "failed" and .reason == "upstream_error" and .rcode == "SERVFAIL"'
	# Denied names need no resolver; leased addresses stay.
	run -0 stub dns udp www.lab-b.net
	replies 1 '.rcode == "NXDOMAIN" and .ms < 2000'
	run -0 guest dns curl -sS --resolve "news.lab-site.org:443:$NET4.$WEB" https://news.lab-site.org/
	equal "page" "lab web server for news.lab-site.org" "$output"
	equal "leases" "$before" "$(leased dns 4)"
	resolver_up
	run -0 stub dns --timeout 8 udp www.lab-a.com
	replies 1 '.rcode == "NOERROR" and .ms < 3000'
	# Rejected instead of dropped.
	resolver_down reject
	run -0 stub dns --edns 1232 --timeout 8 udp new.lab-a.com
	replies 1 '.rcode == "SERVFAIL" and .ms < 5500 and (.edns.ede | IN(22, 23))'
	resolver_up
	run -0 stub dns udp new.lab-a.com
	replies 1 '.rcode == "NOERROR" and .ms < 3000'
}

@test "C-31: what a resolver refuses is SERVFAIL, what it does not have is said as it is" {
	local n
	for n in 1 2 4 5 9; do
		fdns rcode$n.lab-a.com "{\"rcode\":$n,\"answers\":[[\"A\",60,\"45.45.45.20\"]]}"
	done
	run -0 stub dns --edns 1232 --timeout 8 udp rcode{1,2,4,5,9}.lab-a.com
	replies 5 '.rcode == "SERVFAIL" and .answers == [] and .edns.ede == 22'
	fdns gone.lab-a.com '{"rcode":3,"answers":[]}'
	fdns gone2.lab-a.com '{"rcode":3,"answers":[["A",60,"45.45.45.20"]]}'
	fdns empty.lab-a.com '{"answers":[]}'
	run -0 stub dns --edns 1232 udp gone.lab-a.com gone2.lab-a.com empty.lab-a.com
	replies 3 '.answers == [] and .authority[0][1] == "SOA" and .edns.options == []'
	reply 1 '.rcode == "NXDOMAIN"'
	reply 2 '.rcode == "NXDOMAIN"'
	reply 3 '.rcode == "NOERROR"'
	equal "leases" "" "$(leased dns 4 | grep -F 45.45.45.20 || true)"
	log_has dns '.qname == "gone.lab-a.com" and .verdict == "allowed" and .rcode == "NXDOMAIN"'
	log_has dns '.qname == "rcode5.lab-a.com" and .verdict == "failed" and .reason == "upstream_error"
		and (.detail | contains("refused"))'
}

@test "C-13: no answer leaves before the kernel has its addresses; without the keeper there is none" {
	sandbox hold --policy "$(policy hold 'host: "*.lab-a.com"')"
	fdns hold.lab-a.com '{"answers":[["A",60,"45.45.45.11"]]}'
	fdns late.lab-a.com '{"answers":[["A",60,"45.45.45.12"]]}'
	kill -STOP "$(posternd_pid)"
	stub hold --timeout 9 udp hold.lab-a.com >"$LAB/tmp/hold" 3>&- &
	local asked=$!
	wait_for 5 dns_asked hold.lab-a.com
	# What needs no lease is answered meanwhile.
	run -0 stub hold udp www.lab-b.net hold.lab-a.com/TXT
	replies 2 '.answers == []'
	sleep 0.7
	equal "answer before the lease" "" "$(<"$LAB/tmp/hold")"
	kill -CONT "$(posternd_pid)"
	wait $asked
	output=$(<"$LAB/tmp/hold")
	replies 1 '.answers[0][3] == "45.45.45.11" and .ms > 700'
	run -0 guest hold curl -sS -4 https://hold.lab-a.com/
	equal "page" "lab web server for hold.lab-a.com" "$output"

	# For too long: no address for the guest, and what the kernel gets late opens nothing.
	kill -STOP "$(posternd_pid)"
	run -0 stub hold --edns 1232 --timeout 9 udp late.lab-a.com
	replies 1 '.rcode == "SERVFAIL" and .answers == [] and .ms < 7000'
	kill -CONT "$(posternd_pid)"
	wait_for 5 bash -c "source '$LAB_DIR/lab.bash'; source '$LAB_DIR/dns.bash'; leased hold 4 | grep -qxF 45.45.45.12"
	guest_fails hold curl -sSk --resolve late.lab-a.com:443:45.45.45.12 https://late.lab-a.com/
	far_none "> 45\.45\.45\.12 "
	log_has hold '.kind == "dns" and .qname == "late.lab-a.com" and .verdict == "failed" and .reason == "internal_error"'
	log_has hold '.kind == "deny" and .dst == "45.45.45.12"'
	sandbox_gone hold
}

# bats test_tags=smoke
@test "C-22, C-26: noise brings nothing down and nothing out" {
	local roles
	roles=$(pgrep -P "$(posternd_pid)" | sort | xargs)
	run -0 stub dns --window 64 noise 8000 news.lab-site.org
	# Random changes make other types and other names, too; what is asked for is allowed.
	equal "other names upstream" "" "$(since_mark fdns.log | jq -r '.qname // "unread" | ascii_downcase' |
		grep -vE '^(news\.lab-site\.org|.*\.lab-a\.com)$' | head -n 3 || true)"
	equal "other types upstream" "" "$(since_mark fdns.log | jq -r .qtype | grep -vxE 'A|AAAA|CNAME|HTTPS|SVCB' | head -n 3 || true)"
	equal "processes" "$roles" "$(pgrep -P "$(posternd_pid)" | sort | xargs)"
	run -0 stub dns udp news.lab-site.org www.lab-b.net
	reply 1 '.answers[0][3] == "45.45.45.10"'
	reply 2 '.rcode == "NXDOMAIN"'
	log_has dns '.kind == "dns" and .reason == "dns_denied" and .rcode == "FORMERR"'
}

@test "C-21: data in names below an allowed wildcard is cut at a budget" {
	local words
	sandbox tunnel --policy "$(policy tunnel 'host: "*.lab-a.com"')"
	fdns _.t.lab-a.com '{"answers":[["A",60,"45.45.45.11"]]}'
	mapfile -t words < <(for i in {1..800}; do printf '%060d.t.lab-a.com\n' "$i"; done)
	run -0 stub tunnel --edns 1232 udp "${words[@]}"
	replies 800 '.rcode == "NOERROR" or .rcode == "REFUSED" and .edns.ede == 15'
	local asked
	asked=$(since_mark fdns.log | jq -r '.qname // "" | ascii_downcase' | grep '\.t\.lab-a\.com$' | sort -u | wc -l)
	# 32 KiB at once and 256 bytes a second, of 72 each.
	[[ $asked -ge 400 && $asked -lt 600 ]] || fail "asked upstream: $asked"
	equal "answered" "$asked" "$(jq -c 'select(.rcode == "NOERROR")' <<<"$output" | wc -l)"
	dns_recorded tunnel $((800 - asked)) '.reason == "limit_rate" and .verdict == "limited" and .rcode == "REFUSED"'
	# Names asked for before are still answered, but for those (one in five) whose place another one took since.
	run -0 stub tunnel udp "${words[@]:$((asked / 2)):20}"
	local again
	again=$(jq -c 'select(.rcode == "NOERROR")' <<<"$output" | wc -l)
	[[ $again -ge 8 ]] || fail "of twenty names asked for before $again were answered: $output"
	sandbox_gone tunnel
}

@test "C-35: a flood of one sandbox does not starve another" {
	sandbox flood --policy "$(policy flood 'host: "*.lab-a.com"')"
	fdns _.flood.lab-a.com '{"answers":[["A",60,"45.45.45.11"]]}'
	stub flood flood 3 '%d.flood.lab-a.com' >"$LAB/tmp/flood" 3>&- &
	local flood=$!
	flooded() { since_mark fdns.log | grep -qiF .flood.lab-a.com; }
	wait_for 5 flooded
	# shellcheck disable=SC2046
	run -0 stub dns --timeout 5 udp $(yes $'news.lab-site.org\nwww.lab-b.net' | head -n 200)
	replies 200 '.question == "www.lab-b.net" or .answers[0][3] == "45.45.45.10"'
	local times
	times=$(jq -c -s 'map(.ms) | sort | {half: .[100], most: .[190], max: .[199]}' <<<"$output")
	jq -e '.half < 300 and .most < 1500' <<<"$times" >/dev/null || fail "milliseconds: $times"
	wait $flood
	jq -e '.sent > 20000' "$LAB/tmp/flood" >/dev/null || fail "no flood: $(cat "$LAB/tmp/flood")"
	# Over the budget of new names one by one, over the rate in sums.
	flood_recorded() { [[ $(dns_records flood '.reason == "limit_rate" and .verdict == "limited"') -gt 500 ]]; }
	wait_for 10 flood_recorded
	sandbox_gone flood
}

@test "C-04: idle and dribbling connections are closed" {
	wait_for 15 grep -q end "$LAB/tmp/idle"
	wait_for 15 grep -q end "$LAB/tmp/dribble"
	jq -e -s 'length == 1 and .[0].end == "fin" and .[0].ms > 9000 and .[0].ms < 19000' "$LAB/tmp/idle" >/dev/null ||
		fail "$(cat "$LAB/tmp/idle")"
	jq -e -s 'length == 1 and (.[0].end | IN("fin", "rst")) and .[0].ms > 9000 and .[0].ms < 19000' "$LAB/tmp/dribble" \
		>/dev/null || fail "$(cat "$LAB/tmp/dribble")"
}

@test "status says which resolvers are used, and doctor which of them do not answer" {
	posternd_stop
	posternd_start --resolver "$NET4.$WEB" # nobody answers DNS there
	run -0 postern status
	matches "status" "resolvers +$NET4.$RESOLVER, $NET4.$WEB" "$output"
	run postern doctor
	matches "the live one" "ok +resolvers +$NET4.$RESOLVER answers" "$output"
	matches "the dead one" "warn +resolvers +$NET4.$WEB does not answer within 2 s -> repair it, or set others" "$output"
}
