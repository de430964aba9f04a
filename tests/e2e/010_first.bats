#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The first sandbox: what is allowed works as without postern, what is not is refused at once, and both are on record.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	sandbox first --policy "$(policy first 'host: news.lab-site.org' 'host: "*.lab-a.com"' 'host: www.lab-cname.com' \
		'{host: git.lab-code.org, ports: [22, 443]}' '{host: echo.lab-site.org, ports: [7, 25, 9001, 9002]}')"
}

setup() {
	mark
}

# bats test_tags=smoke
@test "an allowed site answers over HTTPS, IPv4 and IPv6" {
	for family in 4 6; do
		run guest first curl -sS -$family https://news.lab-site.org/
		equal "page over IPv$family" "lab web server for news.lab-site.org" "$output"
	done
	far_saw "> $NET4\.$WEB 443 S"
	far_saw "> $NET6:$WEB 443 S"
	equal "requests" 2 "$(web_log | wc -l)"
	log_has first '.kind == "flow" and .name == "news.lab-site.org" and .dst == "45.45.45.10"
		and .name_source == "sni" and .end == "fin" and .bytes_in > 0 and .bytes_out > 0'
	log_has first '.verdict == "allowed" and .dst == "2600:1:2::10" and .dport == 443'
	log_has first '.kind == "dns" and .qname == "news.lab-site.org" and .qtype == "AAAA" and .verdict == "allowed"'
}

# bats test_tags=smoke
@test "a site that no rule allows is refused, by name and by its address" {
	guest_fails first curl -sS https://www.lab-b.net/
	guest_fails first curl -sSk -4 --resolve "www.lab-b.net:443:$NET4.$OTHER" https://www.lab-b.net/
	guest_fails first curl -sSk -6 --resolve "www.lab-b.net:443:[$NET6:$OTHER]" https://www.lab-b.net/
	dns_not_asked www.lab-b.net
	far_none "> ($NET4\.|$NET6:)$OTHER "
	log_has first '.kind == "dns" and .qname == "www.lab-b.net" and .verdict == "denied" and .reason == "no_rule"'
	log_has first '.kind == "deny" and .reason == "not_leased" and .dst == "45.45.45.20"'
	log_has first '.kind == "deny" and .reason == "not_leased" and .dst == "2600:1:2::20"'
}

# bats test_tags=smoke
@test "names resolve over UDP and TCP, and a refusal says why" {
	run guest first dig +short news.lab-site.org
	equal "over UDP" "45.45.45.10" "$output"
	run guest first dig +short +tcp AAAA news.lab-site.org
	equal "over TCP" "2600:1:2::10" "$output"
	run guest first dig +short www.lab-cname.com
	matches "chain of names" "45.45.45.12" "$output"
	run guest first dig www.lab-b.net
	matches "refusal" "status: (NXDOMAIN|REFUSED)" "$output"
	matches "extended error" "EDE: *15 *\(Blocked\)|EDE: *18 *\(Prohibited\)|EDE: *17|EDE: *16" "$output"
	dns_asked news.lab-site.org
	dns_not_asked www.lab-b.net
}

# bats test_tags=smoke
@test "plain HTTP is judged by its Host" {
	run guest first curl -sS http://news.lab-site.org/
	equal "page" "lab web server for news.lab-site.org" "$output"
	run guest first curl -sS -o /dev/null -w '%{http_code}' -H 'Host: www.lab-b.net' http://news.lab-site.org/
	equal "status for another Host" 403 "$output"
	equal "hosts that the far side saw" news.lab-site.org "$(web_log .host | tr -d '"' | sort -u)"
	log_has first '.kind == "deny" and .name == "www.lab-b.net" and .name_source == "claim" and .reason == "no_rule"'
	# A name that is allowed, but whose address this is not.
	run guest first curl -sS -o /dev/null -w '%{http_code}' -H 'Host: www.lab-a.com' http://news.lab-site.org/
	equal "status for an allowed name of another address" 403 "$output"
	log_has first '.kind == "deny" and .name == "www.lab-a.com" and .reason == "host_mismatch"'
}

# bats test_tags=smoke
@test "a port where the server speaks first" {
	run -0 guest first "$LAB_DIR/client.py" tcp echo.lab-site.org 25 'quit\n' --half-close
	matches "greeting" "220 lab ready" "$output"
	log_has first '.verdict == "allowed" and .name == "echo.lab-site.org" and .dport == 25 and .name_source == "lease"'
}

# bats test_tags=smoke
@test "git clones over SSH and over HTTPS" {
	guest first git clone -q "git.lab-code.org:$LAB/git/repo.git" "$LAB/tmp/by-ssh"
	guest first git clone -q https://git.lab-code.org/repo.git "$LAB/tmp/by-https"
	equal "content" "$(cat "$LAB/git/work/README")" "$(cat "$LAB/tmp/by-ssh/README")"
	equal "content" "$(cat "$LAB/git/work/README")" "$(cat "$LAB/tmp/by-https/README")"
	log_has first '.verdict == "allowed" and .name == "git.lab-code.org" and .dport == 22 and .end == "fin"'
}

# bats test_tags=smoke
@test "ten mebibytes arrive whole, both ways, HTTP/1.1 and HTTP/2" {
	for version in --http1.1 --http2; do
		guest first curl -sS $version -o "$LAB/tmp/down" https://www.lab-a.com/10MiB
		cmp "$LAB/tmp/down" "$LAB/web/html/10MiB"
	done
	run guest first curl -sS --data-binary "@$LAB/web/html/10MiB" -H 'Expect:' https://www.lab-a.com/api/upload
	matches "upload" "$(sha256sum "$LAB/web/html/10MiB" | cut -d' ' -f1)" "$output"
	log_has first '.verdict == "allowed" and .name == "www.lab-a.com" and .bytes_in > 10485760'
	log_has first '.verdict == "allowed" and .name == "www.lab-a.com" and .bytes_out > 10485760'
}

# bats test_tags=smoke
@test "half-close passes both ways" {
	run -0 guest first "$LAB_DIR/client.py" tcp echo.lab-site.org 9001 'some bytes' --half-close
	matches "digest of what arrived" "^10 $(printf 'some bytes' | sha256sum | cut -d' ' -f1)" "$output"
	run -0 guest first "$LAB_DIR/client.py" tcp echo.lab-site.org 9002 'some bytes' --half-close
	matches "farewell" farewell "$output"
}

# bats test_tags=smoke
@test "WebSocket, plain and over TLS" {
	run -0 guest first "$LAB_DIR/client.py" ws ws.lab-a.com 443 --tls ws.lab-a.com one two
	matches "echo" onetwo "$output"
	run -0 guest first "$LAB_DIR/client.py" ws ws.lab-a.com 80 one two
	matches "echo" onetwo "$output"
}
