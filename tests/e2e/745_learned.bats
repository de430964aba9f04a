#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# From a run that is only watched to a policy: what the task did once, it may do, and nothing else.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	printf 'version: 1\nmode: learn\n' >"$LAB/tmp/learn.yaml"
}

setup() {
	mark
}

teardown() {
	all_gone
}

# Everything the task does; each part must work: workload NAME
workload() {
	local -i part=0
	rm -rf "$LAB/tmp/clone"
	guest "$1" curl -sS -4 -o /dev/null https://news.lab-site.org/ &&
		guest "$1" curl -sS -6 --http1.1 -o /dev/null http://news.lab-site.org/ && part=1 &&
		guest "$1" curl -sS -o /dev/null https://www.lab-cname.com/ && part=2 &&
		guest "$1" git clone -q https://git.lab-code.org/repo.git "$LAB/tmp/clone/https" && part=3 &&
		guest "$1" git clone -q "ssh://git.lab-code.org$LAB/git/repo.git" "$LAB/tmp/clone/ssh" && part=4 &&
		guest "$1" ssh -F "$LAB/ssh/config" git.lab-code.org true && part=5 &&
		[[ $(guest "$1" dig +short A www.lab-a.com) == "$NET4.$SHARED" ]] && part=6 &&
		[[ $(guest "$1" dig +short +tcp AAAA six.lab-a.com) == "$NET6:$SHARED" ]] && part=7 &&
		[[ $(guest "$1" "$LAB_DIR/client.py" --family 4 --half-close tcp echo.lab-site.org 9000 hello) == hello ]] ||
		fail "$1: the workload ended after part $part"
}

@test "a policy learned in one sandbox lets the same workload pass in a fresh one, and nothing else" {
	sandbox watched --policy "$LAB/tmp/learn.yaml"
	workload watched
	log_has watched '.kind == "flow" and .dport == 9000 and .verdict == "allowed" and .learned and .end == "fin"'
	equal "refused while learning" 0 "$(log_count watched '.verdict == "denied" and .kind != "dns"')"
	postern policy suggest watched >"$LAB/tmp/learned.yaml"
	run -0 postern policy check "$LAB/tmp/learned.yaml"
	run -0 postern policy replay "$LAB/tmp/learned.yaml" --sandbox watched
	matches "replay" "^nothing would change" "$output"
	sandbox_gone watched

	sandbox fresh --policy "$LAB/tmp/learned.yaml"
	equal "mode" enforce "$(postern show fresh -o json | jq -r .mode)"
	workload fresh
	equal "learned" 0 "$(log_count fresh '.learned')"
	equal "refused" 0 "$(log_count fresh '.verdict == "denied" and .kind != "dns"')"

	# Other names; their siblings; other ports of the same names, some of which are leased; what has no name.
	mark
	guest_fails fresh curl -sS https://www.lab-b.net/
	guest_fails fresh curl -sS https://www.lab-site.org/
	guest_fails fresh curl -sS https://api.lab-a.com/
	guest_fails fresh curl -sS https://lab-site.org/
	guest_fails fresh git clone -q https://bytes.lab-site.org/repo.git "$LAB/tmp/clone/other"
	guest_fails fresh ssh -F "$LAB/ssh/config" -o HostName=news.lab-site.org git.lab-code.org true
	guest_fails fresh "$LAB_DIR/client.py" --family 4 tcp news.lab-site.org 9000 hello
	guest_fails fresh "$LAB_DIR/client.py" --family 4 tcp echo.lab-site.org 9002 hello
	guest_fails fresh "$LAB_DIR/client.py" --family 4 tcp echo.lab-site.org 443 hello
	guest_fails fresh "$LAB_DIR/client.py" --family 4 udp echo.lab-site.org 5000 hello
	guest_fails fresh "$LAB_DIR/client.py" --family 4 tcp "$NET4.$OTHER" 443 hello
	guest_fails fresh curl -sSk --resolve "www.lab-b.net:443:$NET4.$WEB" https://www.lab-b.net/
	[[ -z $(guest fresh dig +short A www.lab-b.net) ]] || fail "dig got an answer"
	local name
	for name in www.lab-b.net www.lab-site.org api.lab-a.com lab-site.org bytes.lab-site.org; do
		dns_not_asked "$name"
		log_has fresh '.kind == "dns" and .qname == "'"$name"'" and .reason == "no_rule"'
	done
	far_none "> ($NET4\.|$NET6:)$OTHER "
	far_none "> $NET4\.$WEB (22|9000) "
	far_none "> $NET4\.$ECHO (443|9002|5000) "
	equal "hosts that the far side saw" "" "$(web_log .host)"
	log_has fresh '.kind == "deny" and .name == "www.lab-b.net" and .reason == "no_rule" and .dport == 443'
	log_has fresh '.kind == "deny" and .dst == "'"$NET4.$OTHER"'" and .reason == "not_leased"'
}

@test "suggest keeps together what a redirect and a chain of aliases brought in, and says so" {
	sandbox page --policy "$LAB/tmp/learn.yaml"
	guest page curl -sS -o /dev/null https://git.lab-code.org/
	log_has page '.kind == "flow" and .name == "git.lab-code.org" and .verdict == "allowed"'
	# Longer than what still counts as brought in by it.
	sleep 5.5
	guest page curl -sSL -o /dev/null https://www.lab-a.com/elsewhere
	fdns media.lab-site.org '{"answers": [["CNAME", 60, "edge.lab-cdn.net"], ["edge.lab-cdn.net", "A", 60, "45.45.45.12"]]}'
	guest page curl -sSk -o /dev/null https://www.lab-cname.com/
	sleep 5.5
	guest page curl -sSk -4 -o /dev/null https://media.lab-site.org/
	log_has page '.kind == "flow" and .name == "media.lab-site.org" and .verdict == "allowed"'
	postern policy suggest page --since 1h >"$LAB/tmp/page.yaml"
	run -0 postern policy check "$LAB/tmp/page.yaml"
	run -0 cat "$LAB/tmp/page.yaml"
	matches "redirect" 'host: "www.lab-b.net"  # allowed [0-9]+ so far; 20[0-9T:-]+Z to 20[0-9T:-]+Z$' "$output"
	matches "alias" 'host: "media.lab-site.org"  # allowed .*; an alias of edge.lab-cdn.net$' "$output"
	equal "in this order" "git.lab-code.org
lab-a.com
www.lab-a.com
www.lab-b.net
www.lab-cname.com
media.lab-site.org" "$(sed -nE 's/^  - host: "([^"]+)".*/\1/p; s/^  # -- ([^,]+), and what .*/\1/p' "$LAB/tmp/page.yaml")"
}
