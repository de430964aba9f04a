#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What a guest says about addresses is not believed, and guests that look the same are told apart.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/raw

MAC=06:00:ac:10:00:02

setup_file() {
	lab_up
	posternd_start
	sandbox near --mac 06:00:ac:10:00:02 --policy "$(policy near 'host: news.lab-site.org')"
}

setup() {
	mark
}

# What the sandbox's namespace knows: routes, addresses, neighbours, but for ages and counts.
state() {
	inside "$1" ip route show table all
	inside "$1" ip -6 route show table all
	inside "$1" ip -o addr show
	inside "$1" ip neigh show nud permanent
}

unmoved() {
	state near >"$LAB/tmp/after"
	diff "$LAB/tmp/before" "$LAB/tmp/after" >&2 || fail "the namespace believed something"
	equal "over IPv4" "lab web server for news.lab-site.org" "$(guest near curl -sS -4 https://news.lab-site.org/)" || return 1
	equal "over IPv6" "lab web server for news.lab-site.org" "$(guest near curl -sS -6 https://news.lab-site.org/)"
}

# bats test_tags=smoke
@test "E-02: ARP in another's name, from another's hardware address, or for every address" {
	local before out
	state near >"$LAB/tmp/before"
	before=$(counted near spoofed)
	out=$(raw near "arp op={1|2} spa={$GATEWAY4|172.16.0.3|8.8.8.8|127.0.0.1} tpa=$GATEWAY4" \
		"arp op={1|2} sha=06:00:00:00:00:99 tpa=$GATEWAY4" "arp op=2 smac=06:00:00:00:00:99 dmac=ff:ff:ff:ff:ff:ff")
	equal "counted" 11 $(($(counted near spoofed) - before))
	equal "answers" "" "$(grep '^arp' <<<"$out" || true)"
	# Asked for every address, the gateway answers for its own alone; without a sender (a probe) likewise.
	out=$(raw near "arp dmac=ff:ff:ff:ff:ff:ff tpa={172.16.0.0|172.16.0.2|172.16.0.3|8.8.8.8|$NET4.$WEB|$HOST4|127.0.0.1|10.0.0.5}" \
		"arp spa=0.0.0.0 tpa={8.8.8.8|$NET4.$WEB}" "arp tpa=$GATEWAY4")
	equal "answers" "arp $GATEWAY4 06:01:ac:10:00:01 > $GUEST4 $MAC 2" "$(grep '^arp' <<<"$out")"
	# Many of them, for many.
	raw near --listen 0 "arp op=2 spa=45.45.{0..15}.{0..99} tpa=$GATEWAY4" "arp spa=$GUEST4 tpa=45.45.{0..3}.{0..99}" >/dev/null
	unmoved
	(($(inside near ip neigh show | wc -l) < 10)) || fail "$(inside near ip neigh show)"
	log_has near '.reason == "spoofed_source" and (.detail // "" | contains("EtherType 0x0806"))'
	far_none " (172\.16\.|fd70:)"
}

@test "E-02: neighbour discovery in another's name, or from another's hardware address" {
	local before
	state near >"$LAB/tmp/before"
	before=$(counted near spoofed)
	raw near "na src={$GATEWAY6|2600:9:9::1|$NET6:$WEB} dst=$GATEWAY6 target=$GATEWAY6 lladdr=06:00:00:00:00:99" \
		"ns src=2600:9:9::{1..20} dst=$GATEWAY6 target=$GATEWAY6 lladdr=$MAC" \
		"ns smac=06:00:00:00:00:99 dst=$GATEWAY6 target=$GATEWAY6 lladdr=06:00:00:00:00:99" >/dev/null
	equal "counted" 24 $(($(counted near spoofed) - before))
	# In its own name, but lying about the hardware address, or about the gateway's.
	raw near "ns dst=$GATEWAY6 target=$GATEWAY6 lladdr=06:00:00:00:00:99" "na dst=$GATEWAY6 target=$GUEST6 lladdr=06:00:00:00:00:99" \
		"na dst={$GATEWAY6|ff02::1} target={$GATEWAY6|fe80::1} lladdr=06:00:00:00:00:99" >/dev/null
	# Asked for every address, only the gateway's own are answered for.
	equal "answers" "" "$(raw near "ns dst=ff02::1 dmac=33:33:00:00:00:01 target={$NET6:$WEB|2600:1:ff::2|fd70:6f73:7465:726e::3} lladdr=$MAC" |
		grep '136/0' || true)"
	# A new name each time: each could be an entry in a table that all namespaces share, and so could an answer to each.
	raw near --listen 0 "ns src=fe80::5:{1..3000} dst=$GATEWAY6 target=$GATEWAY6 lladdr=$MAC" >/dev/null
	(($(inside near ip -6 neigh show | wc -l) < 120)) || fail "$(inside near ip -6 neigh show | wc -l) neighbours"
	# Those there are the kernel asks whether they are still there, some seconds later: in another case's packets.
	inside near ip -6 neigh flush all
	sleep 0.5 # the bucket of solicitations that are answered
	unmoved
	log_has near '.reason == "spoofed_source" and .src == "2600:9:9::1"'
	far_none " (172\.16\.|fd70:)"
}

# bats test_tags=smoke
@test "E-03: router advertisements, solicitations and redirects change nothing" {
	local before out
	state near >"$LAB/tmp/before"
	before=$(counted near spoofed)
	out=$(raw near "ra dmac=33:33:00:00:00:01 src={fe80::5|$GUEST6|$GATEWAY6} dst=ff02::1 lladdr=$MAC prefix=2600:9:9::" \
		"ra src={fe80::5|$GUEST6} dst={fe80::1|$GATEWAY6} lladdr=$MAC" \
		"redirect src={$GUEST6|$GATEWAY6|fe80::1} dst=$GATEWAY6 target=fe80::5 lladdr=$MAC")
	equal "counted" 10 $(($(counted near spoofed) - before))
	# In pieces, behind another header.
	out+=$(raw near "ra src=fe80::5 dst=ff02::1 dmac=33:33:00:00:00:01 cut={8|24} id=7{1..2} prefix=2600:9:9::" \
		"ra src={fe80::5|$GUEST6} dst=ff02::1 dmac=33:33:00:00:00:01 ext={hop|dst} prefix=2600:9:9::")
	equal "answers" "" "$(grep -v '^sent\| > ff02::' <<<"$out" || true)"
	unmoved
	equal "addresses of the prefix" 0 "$(inside near ip -6 addr | grep -c 2600:9:9 || true)"
	# Nobody advertises a router to the guest either.
	out=$(raw near "ip src=$GUEST6 dst=ff02::2 dmac=33:33:00:00:00:02 proto=58 data=hex:8500000000000000")
	equal "answers" "" "$(grep '134/0' <<<"$out" || true)"
	log_has near '.reason == "spoofed_source" and .src == "fe80::5" and .dst == "ff02::1"'
}

@test "E-04: who claims the gateway's addresses while it is set up delays nothing" {
	ip netns add pl-guest-dad
	mkdir -p "$LAB/guest/dad"
	echo "nameserver $GATEWAY4" >"$LAB/guest/dad/resolv.conf"
	raw dad --listen 0 "na src={::|fe80::1|$GATEWAY6|$GUEST6} dst=ff02::1 dmac=33:33:00:00:00:01 target={fe80::1|$GATEWAY6|$GUEST6} lladdr=06:00:00:00:00:99 count=500" \
		"arp op=2 spa=$GATEWAY4 dmac=ff:ff:ff:ff:ff:ff count=500" >"$LAB/tmp/dad" 2>&1 3>&- &
	local attacker=$!
	postern attach dad --netns /run/netns/pl-guest-dad --policy "$LAB/tmp/near.yaml"
	equal "not usable" "" "$(inside dad ip -6 -o addr show | grep 'tentative\|dadfailed' || true)"
	equal "over IPv6" "lab web server for news.lab-site.org" "$(guest dad curl -sS -6 https://news.lab-site.org/)"
	wait "$attacker"
	equal "attacked" "sent 6500" "$(cat "$LAB/tmp/dad")"
	equal "not usable" "" "$(inside dad ip -6 -o addr show | grep 'tentative\|dadfailed' || true)"
	equal "over IPv6" "lab web server for news.lab-site.org" "$(guest dad curl -sS -6 https://news.lab-site.org/)"
	log_has dad '.reason == "spoofed_source"'
	sandbox_gone dad
}

# bats test_tags=smoke
@test "E-31, F-16: two guests with the same addresses, hardware address and ports at once, each with its policy and log" {
	local name
	sandbox left --mac $MAC --policy "$(policy left 'host: news.lab-site.org' '{host: echo.lab-site.org, ports: [7]}')"
	sandbox right --mac $MAC --policy "$(policy right 'host: lab-a.com' '{host: echo.lab-site.org, ports: [7]}')"
	equal "hardware addresses" "$(postern show left -o json | jq -r .mac)" "$(postern show right -o json | jq -r .mac)"

	# The same connection in both, by all that a packet tells, and different words in it.
	for name in left right; do
		guest $name "$LAB_DIR/client.py" tcp "$(guest $name dig +short echo.lab-site.org)" 7 --source 33000 --gap 0.5 \
			"$name one " "$name two " --half-close >"$LAB/tmp/$name.echo" 2>/dev/null 3>&- &
	done
	wait
	for name in left right; do
		equal "$name hears" "$name one $name two " "$(cat "$LAB/tmp/$name.echo")"
	done

	for name in left right; do
		# shellcheck disable=SC2016 # expanded by the guest's shell
		guest $name sh -c 'for i in 1 2 3; do curl -sS https://news.lab-site.org/; curl -sS https://lab-a.com/; done' \
			>"$LAB/tmp/$name.pages" 2>&1 3>&- &
	done
	wait
	equal "left reaches" 3 "$(grep -c '^lab web server for news.lab-site.org$' "$LAB/tmp/left.pages")"
	equal "left is refused" 3 "$(grep -c 'resolve host: lab-a.com' "$LAB/tmp/left.pages")"
	equal "right reaches" 3 "$(grep -c '^lab web server for lab-a.com$' "$LAB/tmp/right.pages")"
	equal "right is refused" 3 "$(grep -c 'resolve host: news.lab-site.org' "$LAB/tmp/right.pages")"
	equal "requests" "3 3" "$(web_log .host | sort | uniq -c | awk '{print $1}' | xargs)"

	# One's lease is not the other's.
	dials_refused right tcp "$NET4.$WEB" 443 80
	dials_refused left tcp "$NET4.$SHARED" 443 80

	log_has left '.end == "fin" and .name == "echo.lab-site.org"'
	log_has right '.end == "fin" and .name == "echo.lab-site.org"'
	flows() { log_json "$1" | jq -r 'select(.kind == "flow") | .name' | sort | uniq -c | xargs; }
	equal "left's flows" "1 echo.lab-site.org 3 news.lab-site.org" "$(flows left)"
	equal "right's flows" "1 echo.lab-site.org 3 lab-a.com" "$(flows right)"
	equal "left's questions" 0 "$(log_count left '.kind == "dns" and .verdict == "allowed" and .qname == "lab-a.com"')"
	log_has left '.kind == "deny" and .reason == "not_leased" and .dst == "45.45.45.11" and .src == "172.16.0.2"'
	equal "right's refusals" 0 "$(log_count right '.kind == "deny" and .dst == "45.45.45.11"')"
	for name in left right; do
		equal "sandboxes in the log of $name" 1 "$(log_json $name | jq .sandbox_id | sort -u | wc -l)"
	done
	[[ $(log_json left | jq .sandbox_id | sort -u) != "$(log_json right | jq .sandbox_id | sort -u)" ]]
}

@test "F-16: a clone's old connections and cached answers are refused at once, and the original's go on" {
	local out
	sandbox clone --mac $MAC --policy "$LAB/tmp/left.yaml"
	nsenter --net=/run/netns/pl-guest-left -- "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 7 --source 41000 --gap 1.5 \
		one two --half-close >"$LAB/tmp/left.echo" 2>/dev/null 3>&- &
	local original=$!
	open() { log_json left | jq -e -s 'any(.[]; .sport == 41000 and .end == "open")'; }
	wait_for 5 open
	# The clone wakes up in the middle of it: data, acknowledgements, the end of a connection that it never made here.
	out=$(raw clone --listen 200 "tcp sport=41000 dst=$NET4.$ECHO dport=7 flags=PA seq=1000 ack=2000 data=hello" \
		"tcp sport=41000 dst=$NET4.$ECHO dport=7 flags=A seq=1000 ack=2000" \
		"tcp sport=41000 dst=$NET4.$ECHO dport=7 flags=FA seq=1000 ack=2000")
	equal "resets" 3 "$(grep -c "^tcp $NET4.$ECHO 7 > $GUEST4 41000 R" <<<"$out")"
	# What its browser remembers: an address that this sandbox did not ask for.
	REFUSAL_MS=500
	dials_refused clone tcp "$NET4.$WEB" "$NET6:$WEB" 443
	# With the name leased here, a segment of no connection is reset all the same.
	guest clone dig +short echo.lab-site.org >/dev/null
	out=$(raw clone --listen 200 "tcp sport=41001 dst=$NET4.$ECHO dport=7 flags=PA seq=1000 ack=2000 data=hello" \
		"tcp sport=41001 dst=$NET4.$ECHO dport=7 flags=A seq=1000 ack=2000" \
		"tcp sport=41001 dst=$NET4.$ECHO dport=7 flags=R seq=1000")
	equal "resets" 2 "$(grep -c "^tcp $NET4.$ECHO 7 > $GUEST4 41001 R" <<<"$out")"
	equal "still served" "lab web server for news.lab-site.org" "$(guest clone curl -sS https://news.lab-site.org/)"
	wait "$original"
	equal "the original's echo" onetwo "$(cat "$LAB/tmp/left.echo")"
	log_has clone '.reason == "not_leased" and .dst == "45.45.45.30" and .detail == "a segment of no connection, not an attempt"'
	log_has clone '.reason == "not_leased" and .dst == "45.45.45.10" and .dport == 443'
	log_has left '.sport == 41000 and .end == "fin"'
	equal "flows of the clone" news.lab-site.org "$(log_json clone | jq -r 'select(.kind == "flow") | .name' | sort -u)"
	far_none "> $NET4\.$ECHO 7 .*P 5$"
}
