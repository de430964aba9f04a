#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The programs that agents really use, each allowed once and refused once, over IPv4 and IPv6.

bats_require_minimum_version 1.5.0
load ../lab/lab

RULES=('host: news.lab-site.org' 'host: www.lab-site.org' 'host: "*.lab-a.com"' 'host: lab-a.com'
	'{host: git.lab-code.org, ports: [22, 443]}' '{host: echo.lab-site.org, ports: [7]}')

setup_file() {
	lab_up
	posternd_start
}

# A sandbox a test, so that a record counted is a record of this test.
setup() {
	box=box$BATS_TEST_NUMBER
	sandbox "$box" --policy "$(policy clients "${RULES[@]}")"
	mark
}

teardown() {
	sandbox_gone "$box"
}

# The address of a server in a family: at 4|6 SERVER; for a URL or [ADDRESS]:PORT: url_at
at() { if [[ $1 == 4 ]]; then echo "$NET4.$2"; else echo "$NET6:$2"; fi; }
url_at() { if [[ $1 == 4 ]]; then echo "$NET4.$2"; else echo "[$NET6:$2]"; fi; }

@test "curl: HTTP/1.1 and HTTP/2, many requests on one connection are one record" {
	local family version
	for family in 4 6; do
		for version in 1.1 2; do
			run -0 guest "$box" curl -sS "-$family" "--http$version" -w '%{http_version} %{num_connects}\n' \
				https://news.lab-site.org/ https://news.lab-site.org/ok.json
			equal "first request" "$version 1" "${lines[1]}"
			equal "second request" "$version 0" "${lines[3]}"
			log_has "$box" '.kind == "flow" and .name == "news.lab-site.org" and .dst == "'"$(at $family "$WEB")"'"
				and .name_source == "sni" and .end == "fin" and (.alpn | startswith("'"$([[ $version == 2 ]] &&
				echo h2 || echo http/1.1)"'"))'
		done
	done
	equal "records" 4 "$(log_count "$box" '.kind == "flow"')"
	equal "requests" 8 "$(web_log | wc -l)"
	for family in 4 6; do
		guest_fails "$box" curl -sS "-$family" --http2 https://www.lab-b.net/
		guest_fails "$box" curl -sSk --http2 --connect-to "::$(url_at $family "$WEB"):" https://www.lab-b.net/
		guest_fails "$box" curl -sSk --http1.1 --connect-to "::$(url_at $family "$OTHER"):" https://www.lab-b.net/
	done
	dns_not_asked www.lab-b.net
	equal "requests" 8 "$(web_log | wc -l)"
	far_none "> ($NET4\.|$NET6:)$OTHER "
	equal "refused names" 2 "$(log_count "$box" '.kind == "deny" and .name == "www.lab-b.net" and .reason == "no_rule"
		and .name_source == "claim" and .dport == 443')"
	equal "refused addresses" 2 "$(log_count "$box" '.kind == "deny" and .reason == "not_leased" and .dport == 443')"
}

@test "B-22: curl, one kept-alive connection and two hosts: two records; a third that is refused is not sent" {
	local family web
	for family in 4 6; do
		web=$(at $family "$WEB")
		guest "$box" curl -sS "-$family" -o /dev/null http://www.lab-site.org/
		mark
		# The port of this connection tells its records from those of others.
		run -0 guest "$box" curl -sS "-$family" -w '%{num_connects} %{http_code} %{local_port}\n' http://news.lab-site.org/ \
			--next -sS "-$family" -w '%{num_connects} %{http_code} %{local_port}\n' -H 'Host: www.lab-site.org' \
			http://news.lab-site.org/
		equal "first page" "lab web server for news.lab-site.org" "${lines[0]}"
		equal "second page" "lab web server for www.lab-site.org" "${lines[2]}"
		equal "one connection" "1 200 0 200" "$(cut -d' ' -f1,2 <<<"${lines[1]} "$'\n'"${lines[3]}" | xargs)"
		local port=${lines[3]##* }
		local flow=".kind == \"flow\" and .dst == \"$web\" and .sport == $port"
		log_has "$box" "$flow and .name == \"news.lab-site.org\" and .end == \"next_host\" and .bytes_out > 0"
		log_has "$box" "$flow and .name == \"www.lab-site.org\" and .end == \"fin\" and .bytes_out > 0"
		equal "records" 2 "$(log_count "$box" "$flow")"

		mark
		# The name of somebody else; curl sees a reset, asks again on a new connection, and is told why.
		run -0 guest "$box" curl -sS "-$family" http://news.lab-site.org/ --next -sS "-$family" -w '%{http_code}' \
			-H 'Host: www.lab-b.net' http://news.lab-site.org/
		equal "first page" "lab web server for news.lab-site.org" "${lines[0]}"
		matches "second page" "postern refused this request to www.lab-b.net: .* \(no_rule\)" "$output"
		equal "status" 403 "${lines[-1]}"
		equal "hosts that the far side saw" news.lab-site.org "$(web_log .host | tr -d '"' | sort -u)"
		equal "requests that the far side saw" 1 "$(web_log | wc -l)"
		log_has "$box" ".kind == \"deny\" and .name == \"www.lab-b.net\" and .reason == \"no_rule\" and .dst == \"$web\""
	done
}

@test "wget" {
	local family scheme
	for family in 4 6; do
		for scheme in http https; do
			run -0 guest "$box" wget -q "-$family" --ca-certificate="$LAB/tls/ca.crt" -O - "$scheme://www.lab-a.com/"
			equal "page" "lab web server for www.lab-a.com" "$output"
			guest_fails "$box" wget -q "-$family" --tries=1 --ca-certificate="$LAB/tls/ca.crt" -O - \
				"$scheme://www.lab-b.net/"
		done
		# A redirect to a name that is refused.
		guest_fails "$box" wget -q "-$family" --tries=1 --ca-certificate="$LAB/tls/ca.crt" -O - \
			https://www.lab-a.com/elsewhere
		guest_fails "$box" wget -q "-$family" --tries=1 --no-check-certificate --header 'Host: www.lab-b.net' -O - \
			http://www.lab-a.com/
		log_has "$box" '.kind == "flow" and .name == "www.lab-a.com" and .dst == "'"$(at $family "$SHARED")"'" and .dport == 80'
		log_has "$box" '.kind == "flow" and .name == "www.lab-a.com" and .dst == "'"$(at $family "$SHARED")"'" and .dport == 443'
		log_has "$box" '.kind == "deny" and .name == "www.lab-b.net" and .dst == "'"$(at $family "$SHARED")"'" and .dport == 80'
	done
	dns_not_asked www.lab-b.net
	equal "hosts that the far side saw" www.lab-a.com "$(web_log .host | tr -d '"' | sort -u)"
	far_none "> ($NET4\.|$NET6:)$OTHER "
	log_has "$box" '.kind == "dns" and .qname == "www.lab-b.net" and .verdict == "denied" and .reason == "no_rule"'
}

@test "B-18: git clones over HTTPS and SSH, and not from another name, nor by a port that no rule names" {
	local family
	for family in 4 6; do
		guest "$box" git clone -q "-$family" https://git.lab-code.org/repo.git "$LAB/tmp/https$family"
		guest "$box" git clone -q "-$family" "ssh://git.lab-code.org$LAB/git/repo.git" "$LAB/tmp/ssh$family"
		equal "content" "$(cat "$LAB/git/work/README")" "$(cat "$LAB/tmp/https$family/README")"
		equal "content" "$(cat "$LAB/git/work/README")" "$(cat "$LAB/tmp/ssh$family/README")"
		log_has "$box" '.kind == "flow" and .name == "git.lab-code.org" and .dport == 443 and .name_source == "sni"
			and .dst == "'"$(at $family "$GIT")"'" and .end == "fin"'
		log_has "$box" '.kind == "flow" and .name == "git.lab-code.org" and .dport == 22 and .name_source == "lease"
			and .dst == "'"$(at $family "$GIT")"'" and .end == "fin"'

		guest_fails "$box" git clone -q "-$family" https://www.lab-b.net/repo.git "$LAB/tmp/none"
		guest_fails "$box" git clone -q "ssh://www.lab-b.net$LAB/git/repo.git" "$LAB/tmp/none"
		# The same server by its address: no name, no host.
		guest_fails "$box" git -c http.sslVerify=false clone -q "https://$(url_at $family "$GIT")/repo.git" "$LAB/tmp/none"
		# Resolved, but this port is not in its rule.
		guest "$box" curl -sS "-$family" -o /dev/null https://lab-a.com/
		guest_fails "$box" git clone -q "-$family" "ssh://lab-a.com$LAB/git/repo.git" "$LAB/tmp/none"
		guest_fails "$box" git clone -q "-$family" http://git.lab-code.org/repo.git "$LAB/tmp/none"
		log_has "$box" '.kind == "deny" and .dport == 22 and .dst == "'"$(at $family "$SHARED")"'" and .reason == "not_leased"'
		log_has "$box" '.kind == "deny" and .dport == 80 and .dst == "'"$(at $family "$GIT")"'" and .reason == "not_leased"'
		log_has "$box" '.kind == "deny" and .dport == 443 and .dst == "'"$(at $family "$GIT")"'" and .reason == "sni_missing"'
	done
	[[ ! -e $LAB/tmp/none ]] || fail "something was cloned"
	dns_not_asked www.lab-b.net
	far_none "> ($NET4\.|$NET6:)($SHARED 22|$GIT 80|$OTHER) "
}

@test "D-01, D-02: openssl s_client with no name, a wrong name and the right one" {
	local family shared
	for family in 4 6; do
		shared=$(url_at $family "$SHARED"):443
		guest "$box" dig +short lab-a.com "$([[ $family == 4 ]] && echo A || echo AAAA)" >/dev/null
		mark
		guest_fails "$box" timeout 5 openssl s_client -connect "$shared" -noservername
		guest_fails "$box" timeout 5 openssl s_client -connect "$shared" -servername shared.lab-b.net
		# Allowed, and never resolved to this address.
		guest_fails "$box" timeout 5 openssl s_client -connect "$shared" -servername news.lab-site.org
		far_none "> ($NET4\.|$NET6:)$SHARED .*P"
		run -0 guest "$box" timeout 5 openssl s_client -connect "$shared" -servername lab-a.com -verify_return_error </dev/null
		matches "certificate" "Verify return code: 0" "$output"
		far_saw "> ($NET4\.|$NET6:)$SHARED 443 .*P"
		for reason in '"sni_missing" and (has("name") | not)' '"no_rule" and .name == "shared.lab-b.net"' \
			'"sni_mismatch" and .name == "news.lab-site.org"'; do
			log_has "$box" ".kind == \"deny\" and .dst == \"$(at $family "$SHARED")\" and .dport == 443 and .reason == $reason"
		done
		log_has "$box" '.kind == "flow" and .dst == "'"$(at $family "$SHARED")"'" and .name == "lab-a.com" and .name_source == "sni"'
	done
	equal "attempts refused" 6 "$(log_count "$box" '.kind == "deny"')"
	equal "connections" 2 "$(log_count "$box" '.kind == "flow"')"
}

@test "C-02, C-05: dig and kdig, UDP and TCP, of any resolver: ours answers in its place" {
	local resolver transport
	for resolver in "$GATEWAY4" "$GATEWAY6" 8.8.8.8 2606:4700:4700::1111 10.0.0.1 192.168.1.1 169.254.169.254 100.100.100.200 \
		fd00:ec2::254 45.45.45.99; do
		for transport in +notcp +tcp; do
			run -0 guest "$box" dig $transport +tries=1 +time=3 "@$resolver" AAAA www.lab-a.com
			matches "answer by $resolver" "AAAA\s+2600:1:2::11" "$output"
			matches "who answered" "SERVER: $resolver#53" "$output"
			run -0 guest "$box" dig $transport +tries=1 +time=3 "@$resolver" www.lab-b.net
			matches "refusal by $resolver" "status: NXDOMAIN" "$output"
			matches "why" "EDE: 15 \(Blocked\)" "$output"
		done
		run -0 guest "$box" kdig +time=3 +retry=0 +short "@$resolver" A www.lab-a.com
		equal "kdig of $resolver" 45.45.45.11 "$output"
		log_has "$box" ".kind == \"dns\" and .dst == \"$resolver\" and .proto == \"udp\" and .verdict == \"allowed\""
		log_has "$box" ".kind == \"dns\" and .dst == \"$resolver\" and .proto == \"tcp\" and .verdict == \"denied\"
			and .qname == \"www.lab-b.net\""
	done
	dns_asked www.lab-a.com
	dns_not_asked www.lab-b.net
	equal "resolvers that were asked" "$NET4.$RESOLVER" "$(since_mark fdns.log | jq -r .local | sort -u)"
	far_no_trap
	far_none "> (8\.8\.8\.8|2606:4700:4700::1111|45\.45\.45\.99) "
}

@test "C-03: kdig asks four things on one TCP connection: each is decided by itself" {
	run -0 guest "$box" kdig +tcp +keepopen +nocookie news.lab-site.org A www.lab-b.net A metadata.google.internal A www.lab-a.com AAAA
	equal "answers" "NOERROR NXDOMAIN NXDOMAIN NOERROR" "$(grep -o 'status: [A-Z]*' <<<"$output" | cut -d' ' -f2 | xargs)"
	dns_asked news.lab-site.org
	dns_asked www.lab-a.com
	dns_not_asked www.lab-b.net
	dns_not_asked metadata.google.internal
	log_has "$box" '.kind == "dns" and .qname == "www.lab-a.com" and .proto == "tcp"'
	equal "connections" 1 "$(log_json "$box" | jq -s '[.[] | select(.kind == "dns") | .sport] | unique | length')"
	equal "verdicts" "allowed denied denied allowed" "$(log_json "$box" | jq -r 'select(.kind == "dns") | .verdict' | xargs)"
}

@test "C-15: HTTPS records come without ech and h3" {
	run -0 guest "$box" kdig HTTPS h3.lab-a.com
	matches "answer" "HTTPS\s+1 \. alpn=\"?h2\"? ipv4hint=45\.45\.45\.11\$" "$(grep -E '^h3' <<<"$output")"
	run -0 guest "$box" dig TYPE65 h3.lab-a.com
	[[ $output != *ech=* && $output != *h3,* && $output != *cloudflare* ]] || fail "too much is left:" "$output"
	# It is what the hint says, and no more, that may be connected to.
	run -0 guest "$box" curl -sS --resolve "h3.lab-a.com:443:$NET4.$SHARED" https://h3.lab-a.com/
	equal "page at the hint's address" "lab web server for h3.lab-a.com" "$output"
	guest_fails "$box" curl -sS --resolve "h3.lab-a.com:443:[$NET6:$SHARED]" https://h3.lab-a.com/
	log_has "$box" '.kind == "dns" and .qtype == "HTTPS" and any(.answers[]; contains("hint 45.45.45.11"))'
	log_has "$box" '.kind == "flow" and .name == "h3.lab-a.com" and .dst == "45.45.45.11"'
	log_has "$box" '.kind == "deny" and .reason == "not_leased" and .dst == "2600:1:2::11"'
}

@test "B-21: WebSocket, plain and over TLS; refused where its name is" {
	local family
	for family in 4 6; do
		run -0 guest "$box" "$LAB_DIR/client.py" --family $family ws ws.lab-a.com 80 one "$(printf '%0300d' 7)"
		matches "echo" "one0*7" "$output"
		run -0 guest "$box" "$LAB_DIR/client.py" --family $family --tls ws.lab-a.com ws ws.lab-a.com 443 one two
		matches "echo" onetwo "$output"
		log_has "$box" '.kind == "flow" and .dport == 80 and .tunnel and .dst == "'"$(at $family "$SHARED")"'"
			and .name == "ws.lab-a.com" and .bytes_in > 0'
		log_has "$box" '.kind == "flow" and .dport == 443 and .dst == "'"$(at $family "$SHARED")"'" and .name == "ws.lab-a.com"'
		mark
		run -1 guest "$box" "$LAB_DIR/client.py" --family $family --name ws.lab-b.net ws ws.lab-a.com 80 one
		matches "answer" "403 Forbidden" "$output"
		matches "answer" "Postern-Reason: no_rule" "$output"
		guest_fails "$box" "$LAB_DIR/client.py" --family $family --tls shared.lab-b.net ws ws.lab-a.com 443 one
		guest_fails "$box" "$LAB_DIR/client.py" --family $family ws ws.lab-b.net 80 one
		equal "requests" "" "$(web_log)"
		dns_not_asked ws.lab-b.net
		log_has "$box" '.kind == "deny" and .name == "ws.lab-b.net" and .tunnel and .reason == "no_rule"
			and .dst == "'"$(at $family "$SHARED")"'"'
	done
}

@test "B-20, B-21, B-25: curl with an allowed host as a proxy, and with protocols that are not carried" {
	local family web
	for family in 4 6; do
		web=http://$(url_at $family "$WEB"):80
		guest "$box" dig +short news.lab-site.org "$([[ $family == 4 ]] && echo A || echo AAAA)" >/dev/null
		mark
		# A proxy is asked for a whole URL, or for a tunnel.
		run -0 guest "$box" curl -sS -m 3 -w '%{http_code}' -x "$web" http://www.lab-b.net/
		matches "through a proxy" "www.lab-b.net: .* \(no_rule\)" "$output"
		equal "status" 403 "${lines[-1]}"
		guest_fails "$box" curl -sS -x "$web" https://www.lab-b.net/
		guest_fails "$box" curl -sS -x "$web" https://news.lab-site.org/
		run -0 guest "$box" curl -sS -m 3 -w '%{http_code}' --http2 --resolve "news.lab-site.org:80:$(at $family "$WEB")" \
			http://news.lab-site.org/
		equal "status of Upgrade: h2c" 403 "${lines[-1]}"
		guest_fails "$box" curl -sS -"$family" --http2-prior-knowledge http://news.lab-site.org/
		guest_fails "$box" curl -sSk -"$family" https://news.lab-site.org:80/
		guest_fails "$box" curl -sS -"$family" http://news.lab-site.org:443/
		guest_fails "$box" curl -sS -"$family" --haproxy-protocol https://news.lab-site.org/
		equal "requests" "" "$(web_log)"
		dns_not_asked www.lab-b.net
		far_none "> ($NET4\.|$NET6:)$WEB .*P"
		# The same way, for what is allowed.
		run -0 guest "$box" curl -sS -x "$web" http://news.lab-site.org/
		equal "page" "lab web server for news.lab-site.org" "$output"
		for reason in '"no_rule" and .name == "www.lab-b.net" and .http_method == "GET"' '"proto_denied" and .http_method == "CONNECT"' \
			'"proto_denied" and .name == "news.lab-site.org" and (.detail | contains("Upgrade"))' \
			'"proto_denied" and .http_method == "PRI"' '"not_http" and (.detail | contains("TLS"))' '"not_tls"'; do
			log_has "$box" ".kind == \"deny\" and .dst == \"$(at $family "$WEB")\" and .reason == $reason"
		done
	done
}

@test "nc: bytes of no particular protocol, and a port next to the allowed one" {
	local family echo
	for family in 4 6; do
		echo=$(at $family "$ECHO")
		guest "$box" dig +short echo.lab-site.org "$([[ $family == 4 ]] && echo A || echo AAAA)" >/dev/null
		run -0 guest "$box" sh -c "echo hello | busybox nc -w 3 $echo 7"
		equal "echo" hello "$output"
		guest_fails "$box" busybox nc -w 3 "$echo" 22
		log_has "$box" ".kind == \"flow\" and .dst == \"$echo\" and .dport == 7 and .bytes_out == 6 and .bytes_in == 6"
		log_has "$box" ".kind == \"deny\" and .dst == \"$echo\" and .dport == 22 and .reason == \"not_leased\""
	done
	far_none "> ($NET4\.|$NET6:)$ECHO 22 "
}

# ICMP errors that the guest's kernel has sent, both families. (The columns of IPv4's differ from kernel to kernel.)
errors_sent() {
	guest "$box" awk '/^Icmp: [A-Z]/ {for (i = 2; i <= NF; i++) if ($i == "OutDestUnreachs") at = i}
		/^Icmp: [0-9]/ {print $at} /^Icmp6OutDestUnreachs/ {print $2}' /proc/net/snmp /proc/net/snmp6 | xargs
}

@test "a client that is gone when its answer comes is no attempt to reach anything" {
	equal "errors before" "0 0" "$(errors_sent)"
	ask_and_leave() {
		guest "$box" python3 -c '
import socket
query = bytes.fromhex("abcd01000001000000000000046e657773086c61622d73697465036f72670000010001")
for family, to in (socket.AF_INET, "172.16.0.1"), (socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "fd70:6f73:7465:726e::1"):
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.sendto(query, (to, 53))
    sock.close()
'
	}
	# On a busy machine an answer may be there before the socket is closed: then no error is sent, and we ask again.
	both_families() {
		local four six
		ask_and_leave
		sleep 0.3
		read -r four six <<<"$(errors_sent)"
		((four > 0 && six > 0))
	}
	wait_for 15 both_families
	equal "refused packets in the kernel" 0 "$(nsenter --net="/run/netns/postern-$box" -- nft -j list counters table inet postern |
		jq '[.nftables[].counter? // empty | .packets] | add')"
	equal "refusals" 0 "$(log_count "$box" '.kind == "deny"')"
}
