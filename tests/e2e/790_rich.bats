#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What a record holds beside the verdict: the client behind a hello, methods, times, packets, the names that other tools have
# for the flow, the count so far; held against two captures that share nothing with postern. And what it must never hold.

bats_require_minimum_version 1.5.0
load ../lab/lab

# Long enough that nothing else depends on it, short enough to wait for.
PROGRESS_MS=300

setup_file() {
	lab_up
	posternd_start --progress-ms $PROGRESS_MS
	sandbox rich --policy "$(policy rich 'host: news.lab-site.org' 'host: "*.lab-a.com"' \
		'{host: git.lab-code.org, ports: [22, 443]}' '{host: echo.lab-site.org, ports: [7, 25]}' \
		'{host: echo.lab-site.org, ports: [5000], udp: true}')"
}

setup() {
	mark
}

teardown() {
	background_end
}

# Capture the guest's side and the host's uplink from here on, until captured.
capture() {
	rm -f "$LAB/tmp/guest.flows" "$LAB/tmp/far.flows"
	background nsenter --net=/run/netns/pl-guest-rich -- python3 "$LAB_DIR/flows.py" eth0 "$LAB/tmp/guest.flows"
	background internet python3 "$LAB_DIR/flows.py" pl-net "$LAB/tmp/far.flows"
	wait_for 10 test -e "$LAB/tmp/guest.flows" -a -e "$LAB/tmp/far.flows"
}
captured() { background_end; }

# One line a flow, of a capture and of the log: seen FILE TEXT; recorded TEXT. TEXT is a jq string.
seen() { jq -r "select(.dport != 53 and .dport != 9) | $2" "$LAB/tmp/$1.flows" | sort; }
recorded() { log_json rich | jq -r "select(.kind == \"flow\" or .kind == \"deny\") | $1" | sort; }
# Each line of a capture must stand in the log: all_recorded WHAT FILE TEXT-OF-CAPTURE TEXT-OF-LOG
all_recorded() {
	seen "$2" "$3" >"$LAB/tmp/seen"
	[[ -s $LAB/tmp/seen ]] || fail "$1: the capture has nothing" || return 1
	recorded "$4" >"$LAB/tmp/recorded"
	[[ -z $(comm -23 "$LAB/tmp/seen" "$LAB/tmp/recorded") ]] ||
		fail "$1: not so in the log:" "$(comm -23 "$LAB/tmp/seen" "$LAB/tmp/recorded")" "log:" "$(cat "$LAB/tmp/recorded")"
}

# bats test_tags=smoke
@test "TLS version, JA4 and Community IDs are those that others compute from the packets" {
	capture
	for family in 4 6; do
		guest rich curl -sS -$family https://news.lab-site.org/
		guest rich curl -sS -$family https://www.lab-a.com/
		guest rich curl -sS -$family --tls-max 1.2 https://news.lab-site.org/
		guest rich curl -sS -$family --http1.1 https://news.lab-site.org/
		guest rich openssl s_client -$family -connect news.lab-site.org:443 -servername news.lab-site.org </dev/null
		guest rich curl -sS -$family http://news.lab-site.org/
	done
	guest_fails rich curl -sSk --resolve "www.lab-b.net:443:$NET4.$WEB" https://www.lab-b.net/
	log_has rich '.kind == "deny" and .name == "www.lab-b.net" and (.ja4 | startswith("t13d"))'
	captured
	# shellcheck disable=SC2016
	versions='{"0x0304": "TLSv1.3", "0x0303": "TLSv1.2"}[.version // ""]'
	all_recorded "hello" guest "\"\(.sport) \(.ja4) \($versions)\"" '"\(.sport) \(.ja4) \(.tls_version)"'
	all_recorded "ID of the guest's side" guest '"\(.sport) \(.community_id)"' '"\(.sport) \(.community_id)"'
	all_recorded "ID of the host's side" far '"\(.src) \(.sport) \(.dst) \(.community_id)"' \
		'"\(.up_src) \(.up_sport) \(.dst) \(.up_community_id)"'

	# One program, one fingerprint, whatever host it asks for; another program, another one.
	ja4_of() { log_json rich | jq -r "select(.kind == \"flow\" and .dport == 443) | select($1) | .ja4" | sort -u; }
	equal "of curl" 1 "$(ja4_of '.tls_version == "TLSv1.3" and .alpn == "h2,http/1.1"' | wc -l)"
	equal "of curl with HTTP/1.1 only" 1 "$(ja4_of '.alpn == "http/1.1"' | wc -l)"
	equal "of openssl" 1 "$(ja4_of '.alpn == null' | wc -l)"
	equal "all" 4 "$(ja4_of true | wc -l)"
	matches "of curl" '^t13d[0-9]{4}h2_[0-9a-f]{12}_[0-9a-f]{12}$' "$(ja4_of '.tls_version == "TLSv1.3" and .alpn == "h2,http/1.1"')"
	matches "of curl up to 1.2" '^t12d[0-9]{4}h2_' "$(ja4_of '.tls_version == "TLSv1.2"')"
}

@test "a port where no hello is read: git over SSH" {
	capture
	guest rich git clone -q "git.lab-code.org:$LAB/git/repo.git" "$LAB/tmp/by-ssh"
	log_has rich '.dport == 22 and .end == "fin"'
	captured
	log_has rich '.dport == 22 and .name_source == "lease" and .dns_us > 0 and .connect_us > 0
		and .first_byte_us > .connect_us and (has("hello_us") or has("ja4") or has("tls_version") or has("http_method") | not)'
	# Without the SYN and what came when the socket was closed already; and a capture on the host sees segments that the
	# kernel has not cut yet, or has joined.
	for way in out in; do
		logged=$(log_json rich | jq "select(.dport == 22) | .packets_$way")
		seen=$(jq "select(.dport == 22) | .$way" "$LAB/tmp/guest.flows")
		((logged >= seen - 4 && logged <= seen + 4)) || fail "packets $way: captured $seen, on record: $logged"
	done
}

@test "HTTP methods, of what is allowed and of what is not" {
	for method in GET POST PUT DELETE PROPFIND; do
		guest rich curl -sS -o /dev/null -X $method http://www.lab-a.com/api/method
		log_has rich ".kind == \"flow\" and .http_method == \"$method\" and .name == \"www.lab-a.com\" and .hello_us > 0
			and (has(\"alpn\") or has(\"ja4\") | not)"
	done
	guest rich curl -sS -I -o /dev/null http://www.lab-a.com/api/method
	log_has rich '.kind == "flow" and .http_method == "HEAD"'
	guest rich curl -sS -o /dev/null -X PATCH -H 'Host: www.lab-b.net' http://www.lab-a.com/
	log_has rich '.kind == "deny" and .http_method == "PATCH" and .name == "www.lab-b.net" and .hello_us > 0'
	equal "TLS versions of HTTP in the view" "" "$(sqlite3 -readonly "$LAB/state/audit/audit.db" \
		'SELECT tls_version FROM v_connections WHERE http_method IS NOT NULL AND tls_version IS NOT NULL')"
	run -0 postern log rich -o wide --denied
	matches "wide" 'www\.lab-b\.net:80 .*  src=172\.16\.0\.2:[0-9]+  proof=claim  method=PATCH  hello=[0-9.]+ms' "$output"
}

@test "times: the question's, until the head was whole, until the first byte" {
	fdns slow.lab-a.com '{"answers": [["A", 60, "45.45.45.11"]], "delay_ms": 400}'
	run -0 guest rich "$LAB_DIR/client.py" --family 4 --gap 0.5 --name slow.lab-a.com tcp slow.lab-a.com 80 \
		'GET /api/slow HTTP/1.1\r\nHost: slow.lab-' 'a.com\r\nConnection: close\r\n\r\n'
	log_has rich '.kind == "flow" and .name == "slow.lab-a.com" and .end == "fin" and .dns_us >= 400000 and .hello_us >= 500000
		and .hello_us < 5000000 and .connect_us > 0 and .connect_us < 5000000 and .first_byte_us > .hello_us'
	log_has rich '.kind == "dns" and .qname == "slow.lab-a.com" and .qtype == "A" and .rtt_ms >= 400 and .leases == 1
		and .domain == "lab-a.com" and .entropy == 2'
	fdns slow.lab-a.com
}

@test "datagrams are counted, both ways" {
	address=$(guest rich dig +short echo.lab-site.org)
	capture
	guest rich python3 -c '
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(5)
sock.connect((sys.argv[1], 5000))
for i in range(5):
    sock.send(b"x" * 10)
    sock.recv(100)
' "$address"
	log_has rich '.proto == "udp" and .packets_out == 5 and .packets_in == 5 and .bytes_out == 50 and .end == "open"
		and .first_byte_us > 0 and (has("connect_us") | not)'
	captured
	all_recorded "datagrams" guest '"\(.proto) \(.sport) \(.out) \(.in) \(.community_id)"' \
		'"\(.proto) \(.sport) \(.packets_out) \(.packets_in) \(.community_id)"'
	all_recorded "ID of the host's side" far '"\(.src) \(.sport) \(.community_id)"' '"\(.up_src) \(.up_sport) \(.up_community_id)"'
}

# Say something to the echo and stay: stay NAME BYTES
stay() {
	background guest "$1" python3 -c '
import socket, sys, time
sock = socket.create_connection(("echo.lab-site.org", 7))
sock.sendall(b"x" * int(sys.argv[1]))
time.sleep(60)
' "$2"
}

@test "a crash leaves the last count: of the gateway, of everything" {
	sandbox count --policy "$(policy count '{host: echo.lab-site.org, ports: [7]}')"
	stay count 1234
	log_has count '.kind == "flow" and .end == "open" and .bytes_out == 1234 and .bytes_in == 1234 and .packets_out > 0
		and .dur_ms > 0 and (.up_community_id | startswith("1:")) and (has("closed") | not)'
	role_signal KILL gateway
	log_has count '.kind == "flow" and .end == "gateway_crash" and .bytes_out == 1234 and .bytes_in == 1234 and .packets_in > 0
		and .up_sport > 0 and has("closed")'
	wait_for 10 all_ready
	stay count 4321
	log_has count '.end == "open" and .bytes_out == 4321 and .bytes_in == 4321'
	posternd_kill9_all
	posternd_start --progress-ms $PROGRESS_MS
	log_has count '.end == "daemon_crash" and .bytes_out == 4321 and .bytes_in == 4321 and .packets_out > 0'
	# A count that was written along the way is a change of its row like any other.
	run -0 postern verify
	matches "verification" '^OK' "$output"
	# Counted once each: the sum over the rows is what was sent.
	equal "bytes" 5555 "$(log_json count | jq -s '[.[].bytes_out // 0] | add')"
}

# Everything that postern keeps and says, with what is not yet in the database itself.
kept() { grep -laiF -- "$1" "$LAB"/state/audit/* "$LAB"/posternd.log; }

@test "case_F_39 secrets in audit: nothing of a path, a query, a header, a body or of garbage; a name is a name" {
	secret=S3cretTok3n
	printf '%s' "$secret-upload" >"$LAB/tmp/upload"
	for scheme in http https; do
		guest rich curl -sS -o /dev/null -u "user:$secret-basic" -H "Authorization-Extra: $secret-header" -H "Cookie: a=$secret-cookie" \
			-A "$secret-agent" -e "https://x.example/$secret-referer" --data-binary "@$LAB/tmp/upload" \
			"$scheme://www.lab-a.com/api/$secret-path?token=$secret-query"
	done
	# Refused ones: another Host, a broken head, a target that is none, a body that breaks off.
	guest rich curl -sS -o /dev/null -H 'Host: www.lab-b.net' -H "X: $secret-refused" "http://www.lab-a.com/$secret-refused?$secret-refused"
	for text in "GET /$secret-broken HTTP/1.1\r\nHost: www.lab-a.com\r\nA: $secret-broken\rx" "GET $secret-target\r\n\r\n" \
		"$secret-garbage" "POST / HTTP/1.1\r\nHost: www.lab-a.com\r\nTransfer-Encoding: chunked\r\n\r\n$secret-chunk\r\n"; do
		guest rich "$LAB_DIR/client.py" --timeout 3 --half-close tcp www.lab-a.com 80 "$text" || true
	done
	# No TLS where TLS should be, and what other ports and protocols carry.
	guest rich "$LAB_DIR/client.py" --timeout 3 --half-close tcp www.lab-a.com 443 "$secret-garbage" || true
	guest rich "$LAB_DIR/client.py" --timeout 3 --half-close tcp echo.lab-site.org 7 "$secret-raw"
	guest rich "$LAB_DIR/client.py" udp "$(guest rich dig +short echo.lab-site.org)" 5000 "$secret-datagram"
	log_has rich '.proto == "tcp" and .dport == 7 and .bytes_out == 15 and .end == "fin"'
	log_has rich '.dport == 443 and .reason == "not_tls"'
	# It did leave, in the clear, and the far side has it: a search that finds nothing here would find nothing anywhere.
	web_log | grep -qF "$secret-path"
	run kept "$secret"
	equal "files that hold it" "" "$output"
	# What is said as a name is recorded as one, wherever a name can be said.
	guest_fails rich curl -sS "https://$secret-name.lab-b.net/"
	guest_fails rich curl -sSk --resolve "$secret-sni.lab-b.net:443:$(guest rich dig +short www.lab-a.com)" "https://$secret-sni.lab-b.net/"
	guest rich curl -sS -o /dev/null -H "Host: $secret-host.lab-b.net" http://www.lab-a.com/
	log_has rich ".kind == \"dns\" and .qname == \"${secret,,}-name.lab-b.net\""
	log_has rich ".kind == \"deny\" and .name == \"${secret,,}-sni.lab-b.net\" and .reason == \"no_rule\""
	log_has rich ".kind == \"deny\" and .name == \"$secret-host.lab-b.net\" and .name_source == \"claim\""
	# A search that could not find it would prove nothing.
	run -0 kept "$secret"
}
