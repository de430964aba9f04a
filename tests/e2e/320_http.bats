#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# HTTP on port 80, request by request, as it comes over the wire: what some parser might read in another way than we do
# never leaves. Tables are for tests/lab/httpx.py; each line is one connection, over IPv4 and over IPv6.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	sandbox http --policy "$(policy http 'host: bytes.lab-site.org' 'host: lab-a.com' 'host: "*.lab-a.com"' \
		'{host: echo.lab-site.org, ports: [25]}')"
}

setup() {
	mark
}

# bats test_tags=smoke
@test "B-19: exactly one Host, in its strict form" {
	cases http httpx bytes.lab-site.org:80 <<'TABLE'
# What is sound arrives, byte by byte as it was sent.
allowed         get()
allowed         get("BYTES.Lab-Site.ORG")
allowed         get("bytes.lab-site.org.")
allowed         get("bytes.lab-site.org:80")
allowed         get(None, "hOsT: bytes.lab-site.org")
allowed         get(None, "Host:bytes.lab-site.org")
allowed         get(None, "Host: \t bytes.lab-site.org \t")
allowed         get(None, "X-Other: a, b", "Host: bytes.lab-site.org", "Accept: */*")
allowed         get(version="HTTP/1.0")
allowed         post("Content-Length: 5", body=b"hello")
allowed         chunked(chunk(b"hello"), LAST)
# Two, none, a list, a fold.
http_malformed  get("bytes.lab-site.org", "Host: bytes.lab-site.org")
http_malformed  get("bytes.lab-site.org", "Host: www.lab-b.net")
http_malformed  get("www.lab-b.net", "HOST: bytes.lab-site.org")
http_malformed  get(None)
http_malformed  get(None, version="HTTP/1.0")
http_malformed  get("")
http_malformed  get(None, "Host:")
host_mismatch   get("bytes.lab-site.org, www.lab-b.net")
host_mismatch   get("bytes.lab-site.org,")
host_mismatch   get("bytes.lab-site.org www.lab-b.net")
http_malformed  get(None, "Host: bytes.lab-site.org", " www.lab-b.net")
http_malformed  get(None, "Host:", " bytes.lab-site.org")
http_malformed  get(None, "Host:", "\tbytes.lab-site.org")
http_malformed  get(None, "X: y", " Host: bytes.lab-site.org")
# Space and other bytes around the colon and in the name.
http_malformed  get(None, "Host : bytes.lab-site.org")
http_malformed  get(None, "Host\t: bytes.lab-site.org")
http_malformed  get(None, " Host: bytes.lab-site.org")
http_malformed  get(None, "H\x6fst\x00: bytes.lab-site.org")
http_malformed  get(None, "Host\x0b: bytes.lab-site.org")
http_malformed  get(None, "Host bytes.lab-site.org")
http_malformed  get(None, ": bytes.lab-site.org")
http_malformed  get(None, "H\xf6st: bytes.lab-site.org")
# A field that is not it does not stand in for it.
http_malformed  get(None, "X-Host: bytes.lab-site.org")
http_malformed  get(None, "Hostt: bytes.lab-site.org")
http_malformed  get(None, "X-Forwarded-Host: bytes.lab-site.org")
# HTTP/0.9 and other versions.
http_malformed  b"GET /\r\n"
not_http        b"GET / \r\nHost: bytes.lab-site.org\r\n\r\n"
http_malformed  [get(version=v) for v in ("HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "HTTP/1.10", "HTTP/1", "HTTP/01.1")]
not_http        [get(version=v) for v in ("http/1.1", "HTTPS/1.1", "ICY/1.1")]
not_http        get(path="/a b")
TABLE
}

@test "B-20: an absolute target names the same host as Host, and scheme http" {
	cases http httpx bytes.lab-site.org:80 <<'TABLE'
allowed         get(path="http://bytes.lab-site.org/")
allowed         get(path="http://bytes.lab-site.org")
allowed         get(path="HTTP://BYTES.lab-site.org:80/x?y=http://www.lab-b.net/")
allowed         get("bytes.lab-site.org:80", path="http://bytes.lab-site.org./")
allowed         get(path="/http://www.lab-b.net/")
host_mismatch   get(path="http://www.lab-b.net/")
host_mismatch   get("www.lab-b.net", path="http://bytes.lab-site.org/")
host_mismatch   get(path="http://lab-a.com/")
host_mismatch   get(path="http://bytes.lab-site.org:8080/")
host_mismatch   get(path="http://45.45.45.40/")
no_rule         get("www.lab-b.net", path="http://www.lab-b.net/")
http_malformed  get(path="//www.lab-b.net/")
http_malformed  get(path="//bytes.lab-site.org/")
http_malformed  get(path="http:/www.lab-b.net/")
http_malformed  get(path="http:www.lab-b.net/")
http_malformed  get(path="http:///")
http_malformed  get(path="http://")
http_malformed  get(path="http://:80/")
http_malformed  [get(path=s + "://bytes.lab-site.org/") for s in ("https", "ftp", "gopher", "ws", "httpx", "")]
http_malformed  get(path="bytes.lab-site.org/")
http_malformed  get(path="bytes.lab-site.org:80")
http_malformed  get(path="\\www.lab-b.net\\")
http_malformed  get(path="http:\\\\www.lab-b.net/")
http_malformed  get(path="http://bytes.lab-site.org@www.lab-b.net/")
http_malformed  get(path="http://www.lab-b.net@bytes.lab-site.org/")
http_malformed  get(path="http://bytes.lab-site.org/#www.lab-b.net")
http_malformed  get(path="http://bytes.lab-site.org\t/")
http_malformed  get(path="*")
allowed         get(path="*", method="OPTIONS")
host_mismatch   get(path="http://bytes.lab-site.org\\.www.lab-b.net/")
host_mismatch   get(path="http://bytes.lab-site.org%2fwww.lab-b.net/")
http_malformed  get(None, path="http://bytes.lab-site.org/")
TABLE
}

@test "B-15, B-16, B-17: addresses, brackets, user information and ports in Host" {
	cases http httpx bytes.lab-site.org:80 <<'TABLE'
# B-15: no address rule covers this address: its literal is no way in, and neither is another's.
host_mismatch   [get(h) for h in ("45.45.45.40", "45.45.45.40:80", "[2600:1:2::40]", "[2600:1:2::40]:80")]
host_mismatch   [get(h) for h in ("1.2.3.4", "1.2.3.4:80", "[::1]", "[::1]:80", "10.0.0.1", "169.254.169.254")]
host_mismatch   [get(h) for h in ("127.0.0.1", "0.0.0.0", "255.255.255.255")]
http_malformed  [get(h) for h in ("[::ffff:45.45.45.40]", "[::ffff:2d2d:2d28]")]
# A-16: nor do other spellings of one.
host_mismatch   [get(h) for h in ("2130706433", "0x7f.1", "0177.0.0.1", "127.1", "010.8.8.8", "0x7f000001", "127.0.0.1.")]
host_mismatch   [get(h) for h in ("45.45.45.0x28", "45.45.45.050", "761081128", "45.45.11560", "\uff11.1".encode())]
host_mismatch   get("127。0。0。1".encode())
# B-16
http_malformed  [get(h) for h in ("[bytes.lab-site.org]", "[[::1]]", "[::1", "[www.lab-b.net]", "[45.45.45.40]", "[]", "[")]
http_malformed  [get(h) for h in ("[::1]x", "[::1].lab-a.com", "[::1%25lo]", "[fe80::1%eth0]", "[v1.bytes]", "[::1]]")]
host_mismatch   [get(h) for h in ("bytes.lab-site.org]", "bytes.lab-site.org[", "]", "bytes[.lab-site.org", "a]b.lab-site.org")]
# An IPv6 address without them: to us, a name and a malformed port.
http_malformed  [get(h) for h in ("::1", "::1]", "::ffff:1.2.3.4", "fe80::1")]
host_mismatch   get("2600:1:2::40")
# B-17
http_malformed  [get(h) for h in ("bytes.lab-site.org@www.lab-b.net", "www.lab-b.net@bytes.lab-site.org", "@bytes.lab-site.org")]
http_malformed  [get(h) for h in ("bytes.lab-site.org@", "u:p@bytes.lab-site.org", "bytes.lab-site.org:80@www.lab-b.net")]
http_malformed  [get("bytes.lab-site.org:" + p) for p in ("", "0", "65536", "65537", "65616", "4294967376", "99999999999999999999")]
http_malformed  [get("bytes.lab-site.org:" + p) for p in ("080", "+80", "-80", " 80", "80:81", "80 80", "0x50", "8o", "80.", "80,")]
http_malformed  [get("bytes.lab-site.org:" + p) for p in ("80/", "80?", "80#", "80%20", "\xb2", ":80", "http", "80\\")]
http_malformed  [get(h) for h in (":80", ":", ":80:80")]
host_mismatch   [get("bytes.lab-site.org:" + p) for p in ("81", "8", "443", "8080", "1", "65535")]
TABLE
	# Where an address rule covers it, the literal must still be the very destination.
	sandbox literal --policy "$(policy literal "{cidr: $NET4.$BYTES/32, ports: [80]}" "{cidr: '$NET6:$BYTES/128', ports: [80]}")"
	cases literal httpx "$NET4.$BYTES:80" <<'TABLE'
allowed         [get(h) for h in ("45.45.45.40", "45.45.45.40:80")]
host_mismatch   [get(h) for h in ("45.45.45.41", "1.2.3.4", "[2600:1:2::40]", "45.45.45.40:81", "761081128", "45.45.45.050")]
never_name      [get(h) for h in ("localhost", "metadata.google.internal")]
# B-22: what a rule for the address lets through is a claim, on record one by one, and not every name may be claimed.
allowed,allowed         get("a.lab-b.net") + get("b.lab-b.net")
allowed,allowed,allowed get("a.lab-b.net") + get("45.45.45.40") + get("A.lab-b.net.")
allowed,never_name      then(get("45.45.45.40"), get("localhost"), gap=None)
allowed,host_mismatch   then(get("45.45.45.40"), get("45.45.45.41"))
TABLE
	cases literal httpx "[$NET6:$BYTES]:80" <<'TABLE'
allowed         [get(h) for h in ("[2600:1:2::40]", "[2600:1:2:0:0:0:0:40]:80", "[2600:0001:0002::0040]")]
host_mismatch   [get(h) for h in ("[2600:1:2::41]", "[::1]", "45.45.45.40", "[2600:1:2::40]:8080")]
TABLE
	log_has literal '.verdict == "allowed" and .dst == "2600:1:2::40" and .name_source == "cidr" and (has("name") | not)'
	sandbox_gone literal
}

@test "B-10, B-11: any byte in a Host, a NUL anywhere" {
	cases http httpx bytes.lab-site.org:80 <<'TABLE'
# A label of one byte: only letters, digits, "-" and "_" make a name, which then has no rule.
no_rule         [get(b"a" + bytes([c]) + b"b.lab-b.net") for c in range(256) if chr(c) in "ABCXYZabcxyz0189-_."]
http_malformed  [get(b"a" + bytes([c]) + b"b.lab-b.net") for c in range(256) if c < 32 and c not in (9,) or c == 127]
http_malformed  [get(b"a" + bytes([c]) + b"b.lab-b.net") for c in b"@:"]
host_mismatch   [get(b"a" + bytes([c]) + b"b.lab-b.net") for c in range(256) if c == 9 or (c > 31 and c != 127
                and chr(c) not in "@:-_." and not (c < 128 and chr(c).isalnum()))]
# The same in front of the allowed name: no byte ends a name early or is skipped.
http_malformed  [get(b"www.lab-b.net" + bytes([c]) + b".lab-a.com") for c in (0, 10, 13, 27)]
host_mismatch   [get(b"www.lab-b.net" + bytes([c]) + b".lab-a.com") for c in b" %/\\?#&;\t\"'<>|^`~\x80\xff"]
# B-11: a NUL at each offset of the name, of an absolute target, and around.
http_malformed  [get(b"bytes.lab-site.org"[:i] + b"\0" + b"bytes.lab-site.org"[i:]) for i in range(19)]
http_malformed  get("www.lab-b.net\0.lab-a.com")
http_malformed  [get(path=b"http://bytes.lab-site.org/"[:i] + b"\0" + b"http://bytes.lab-site.org/"[i:]) for i in range(27)]
http_malformed  [get(None, "Ho\0st: bytes.lab-site.org"), get("bytes.lab-site.org", "X: \0"), get("bytes.lab-site.org", "\0")]
http_malformed  get(path="/\0")
not_http        [get(method=m) for m in ("\0GET", "G\0T", "GET\0")]
TABLE
	# The record keeps the bytes of the claim as they were.
	log_has http '.reason == "http_malformed" and .dport == 80 and (.detail | contains("NUL"))'
	log_has http '.reason == "host_mismatch" and .name_source == "claim" and .name == "www.lab-b.net\\x80.lab-a.com"'
}

@test "B-23: bodies whose end two parsers might see in two places" {
	cases http httpx bytes.lab-site.org:80 <<'TABLE'
allowed         post("Content-Length: 0")
allowed         post("Content-Length:5", body=b"12345")
allowed         chunked(chunk(b"a"), chunk(b"b" * 300), LAST)
allowed         chunked(b"0A\r\n0123456789\r\n0000\r\n\r\n")
allowed         chunked(chunk(b"a"), b"0\r\nX-Trailer: y\r\n\r\n")
allowed         chunked(chunk(b"a"), LAST, coding="CHUNKED")
# Both, twice, in a list.
http_malformed  post("Content-Length: 3", "Transfer-Encoding: chunked", body=LAST)
http_malformed  post("Transfer-Encoding: chunked", "Content-Length: 3", body=LAST)
http_malformed  post("Content-Length: 3", "Content-Length: 3", body=b"abc")
http_malformed  post("Content-Length: 3", "Content-Length: 4", body=b"abcd")
http_malformed  post("Content-Length: 3, 3", body=b"abc")
http_malformed  post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=LAST)
http_malformed  post("Transfer-Encoding: chunked", "Transfer-Encoding: identity", body=LAST)
# Numbers.
http_malformed  [post("Content-Length: " + n, body=b"abc") for n in ("+3", "-3", "03", "3.0", "0x3", "3 3", "", "3;", "1e1", "three")]
http_malformed  [post("Content-Length: " + n, body=b"abc") for n in ("18446744073709551619", "9223372036854775808",
                "4294967299" * 3, "3\x0b", "\xb3")]
# Chunked under other names.
http_malformed  [chunked(LAST, coding=c) for c in ("xchunked", "chunked, identity", "identity, chunked", "gzip, chunked",
                "chunked;q=1", "\x0bchunked", "chunked\x0b", "\"chunked\"", "chunke", "identity", "", "chunked,", "deflate")]
http_malformed  post("Transfer-Encoding : chunked", body=LAST)
http_malformed  post("Transfer-Encoding:", " chunked", body=LAST)
http_malformed  get("bytes.lab-site.org", "Transfer-Encoding: chunked", method="POST", version="HTTP/1.0", body=LAST)
# Chunk sizes.
http_malformed  [chunked(s + b"\r\nabc\r\n" + LAST) for s in (b"+3", b"-3", b"0x3", b" 3", b"3 ", b"3;x", b"3;x=y", b"3 ;x", b"",
                b"g", b"3\t", b"10000000000000003", b"0000000000000003", b"ffffffffffffffff", b"\xb3")]
http_malformed  [chunked(b"3" + e + b"abc\r\n" + LAST) for e in (b"\n", b"\r", b"\r\r\n", b"\0\r\n", b"\n\r")]
http_malformed  [chunked(b"3\r\nabc" + e + LAST) for e in (b"", b"\n", b"\r", b"\r\r", b"x\r\n", b"d\r\n")]
http_malformed  [chunked(b"0\r\n" + t + b"\r\n\r\n") for t in (b"Host: www.lab-b.net", b"Content-Length: 3",
                b"Transfer-Encoding: chunked", b"x", b" x: y", b"x : y", b"x: y\nz: w", b"x: \0")]
# Ends of lines.
http_malformed  get().replace(b"\r\n", b"\n")
http_malformed  b"GET / HTTP/1.1\nHost: bytes.lab-site.org\r\n\r\n"
http_malformed  b"GET / HTTP/1.1\r\nHost: bytes.lab-site.org\n\r\n"
http_malformed  b"GET / HTTP/1.1\r\nHost: bytes.lab-site.org\r\n\n"
http_malformed  b"GET / HTTP/1.1\r\nHost: bytes.lab-site.org\rX: y\r\n\r\n"
http_malformed  b"GET / HTTP/1.1\r\nHost: bytes.lab-site.org\r\r\n\r\n"
http_malformed  b"GET / HTTP/1.1\rHost: bytes.lab-site.org\r\r"
http_malformed  get("bytes.lab-site.org", "X: a\rHost: www.lab-b.net")
http_malformed  get("bytes.lab-site.org", "X: a\nHost: www.lab-b.net")
not_http        [b"\r\n" + get(), b"\n" + get(), b" " + get(), b"\t" + get()]
not_http        b"GET  / HTTP/1.1\r\nHost: bytes.lab-site.org\r\n\r\n"
not_http        b"GET /  HTTP/1.1\r\nHost: bytes.lab-site.org\r\n\r\n"
not_http        b"GET\t/\tHTTP/1.1\r\nHost: bytes.lab-site.org\r\n\r\n"
TABLE
}

# bats test_tags=smoke
@test "B-22: the second request on a kept-alive connection is judged as well" {
	cases http httpx bytes.lab-site.org:80 <<'TABLE'
# The same host again, in one write and in several: everything passes.
allowed               get() + get() + post("Content-Length: 3", body=b"abc") + get()
allowed               [cut(get() + get(), i) for i in range(1, 2 * len(get()), 7)]
allowed               chunked(chunk(b"GET / HTTP/1.1\r\nHost: www.lab-b.net\r\n\r\n"), LAST) + get()
# Another, in the same segment and in one of its own; also behind a body.
allowed,no_rule       then(get(), get("www.lab-b.net"), gap=None)
allowed,no_rule       then(get(), get("www.lab-b.net"))
allowed,no_rule       then(post("Content-Length: 3", body=b"abc"), get("www.lab-b.net"), gap=None)
allowed,no_rule       then(chunked(chunk(b"abc"), LAST), get("www.lab-b.net"), gap=None)
allowed,no_rule       then(get() * 20, get("www.lab-b.net"), gap=None)
allowed,no_rule       [Case([get() + get("www.lab-b.net")[:i], get("www.lab-b.net")[i:]], 0.02, passes=get())
                      for i in range(1, len(get("www.lab-b.net")), 5)]
allowed,host_mismatch then(get(), get("www.lab-a.com"), gap=None)
allowed,never_name    then(get(), get("localhost"))
# Something broken.
allowed,http_malformed then(get(), get(None))
allowed,http_malformed then(get(), get("bytes.lab-site.org", "Host: www.lab-b.net"), gap=None)
allowed,http_malformed then(get(), b"\r\n" + get())
allowed,http_malformed then(get(), b"\x16\x03\x01\x02\x00\x01")
allowed,proto_denied  then(get(), get(method="CONNECT"))
TABLE
	# A shared address and a server that answers: it saw the first host only, the guest its answer and then the end.
	cases http httpx lab-a.com:80 <<'TABLE'
allowed               get("lab-a.com", "Connection: close")
TABLE
	mark
	run guest http curl -sS -m 5 http://lab-a.com/ -: -sS -m 5 -H 'Host: shared.lab-b.net' http://lab-a.com/
	matches "first answer" "lab web server for lab-a.com" "$output"
	equal "hosts that the far side saw" lab-a.com "$(web_log .host | tr -d '"' | sort -u)"
	log_has http '.name == "shared.lab-b.net" and .reason == "no_rule" and .name_source == "claim"'
	# Two allowed hosts on one connection: two records.
	mark
	guest http dig +short one.lab-a.com two.lab-a.com >/dev/null
	run guest http "$LAB_DIR/client.py" tcp one.lab-a.com 80 \
		'GET / HTTP/1.1\r\nHost: one.lab-a.com\r\n\r\nGET / HTTP/1.1\r\nHost: two.lab-a.com\r\nConnection: close\r\n\r\n'
	matches "second answer" "lab web server for two.lab-a.com" "$output"
	log_has http '.name == "one.lab-a.com" and .end == "next_host" and .verdict == "allowed"'
	log_has http '.name == "two.lab-a.com" and .end == "fin" and .verdict == "allowed"'
}

@test "B-21: CONNECT, h2c and HTTP/2 are refused on port 80; WebSocket is let through and marked" {
	cases http httpx bytes.lab-site.org:80 <<'TABLE'
proto_denied    get(method="CONNECT", path="bytes.lab-site.org:80")
proto_denied    get(method="CONNECT", path="www.lab-b.net:443")
proto_denied    get(method="CONNECT", path="/")
proto_denied    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
proto_denied    get("bytes.lab-site.org", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
proto_denied    [get("bytes.lab-site.org", "Connection: upgrade", "Upgrade: " + u) for u in ("h2", "TLS/1.0", "websocket, h2c",
                "h2c, websocket", "websocket2", "connect-udp", "IRC/6.9", "WebSocket/13", "")]
proto_denied    get("bytes.lab-site.org", "Connection: upgrade", "Upgrade: websocket", "Upgrade: h2c")
proto_denied    get("bytes.lab-site.org", "Connection: upgrade", "Upgrade: websocket", method="POST")
proto_denied    get("bytes.lab-site.org", "Upgrade: websocket", "Content-Length: 1", body=b"x")
proto_denied    get("bytes.lab-site.org", "Upgrade: websocket", version="HTTP/1.0")
no_rule         get("www.lab-b.net", "Connection: upgrade", "Upgrade: websocket")
not_http        [get(method=m) for m in ("CONNECT\t", "(CONNECT)")]
# Only upper case is the method; another one is an ordinary request of that name.
allowed         get(method="connect")
TABLE
	mark
	run -0 guest http "$LAB_DIR/client.py" ws ws.lab-a.com 80 one two
	matches "echo" onetwo "$output"
	equal "at the far side" '"101"' "$(web_log '.status | tostring' | sort -u)"
	log_has http '.name == "ws.lab-a.com" and .dport == 80 and .tunnel == true and .verdict == "allowed" and .end == "fin"'
	# A server that does not switch: what follows is requests, and judged.
	cases http httpx lab-a.com:80 <<'TABLE'
allowed         get("lab-a.com", "Upgrade: websocket") + get("lab-a.com", "Connection: close")
TABLE
	mark
	run guest http "$LAB_DIR/client.py" --gap 0.3 tcp lab-a.com 80 \
		'GET / HTTP/1.1\r\nHost: lab-a.com\r\nUpgrade: websocket\r\n\r\n' 'GET / HTTP/1.1\r\nHost: shared.lab-b.net\r\n\r\n'
	equal "hosts that the far side saw" lab-a.com "$(web_log .host | tr -d '"' | sort -u)"
	log_has http '.name == "lab-a.com" and .tunnel == true and .end == "next_host"'
}

@test "B-25: other protocols on port 80 are refused at their first bytes" {
	cases http httpx bytes.lab-site.org:80 <<'TABLE'
not_http        b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03"
not_http        b"\x16"
not_http        b"SSH-2.0-OpenSSH_9.2\r\n"
not_http        b"EHLO lab-a.com\r\n"
not_http        b"PROXY TCP4 10.0.0.1 10.0.0.2 80 80\r\nGET / HTTP/1.1\r\nHost: bytes.lab-site.org\r\n\r\n"
not_http        b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"
not_http        b"\x05\x01\x00"
not_http        b"\x04\x01\x00\x50\x0a\x00\x00\x01\x00"
not_http        b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
not_http        b"\x13BitTorrent protocol" + b"\0" * 48
not_http        b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x3c\x00\x03abc"
not_http        b"*1\r\n$4\r\nPING\r\n"
not_http        b"\x03\x00\x00\x13\x0e\xe0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00"
not_http        b"\xff\x53\x4d\x42"
not_http        b"USER anonymous\r\n"
not_http        b"A1 LOGIN a b\r\n"
not_http        b"OPTIONS sip:a@lab-a.com SIP/2.0\r\n"
not_http        b"NICK someone\r\nUSER a 0 * :a\r\n"
not_http        b"<?xml version='1.0'?><stream:stream>"
not_http        bytes(range(255, 0, -1))
not_http        b"\0" * 100
TABLE
	far_none "> ($NET4\.|$NET6:)$BYTES "
}

@test "B-24: a head that never ends is refused at its limits and at its deadline" {
	cases http httpx bytes.lab-site.org:80 <<'TABLE'
allowed              get("bytes.lab-site.org", *[f"X-{i}: {'y' * 250}" for i in range(80)])
http_malformed       get("bytes.lab-site.org", "X: " + "y" * 40000)
http_malformed       get(path="/" + "y" * 40000)
http_malformed       get("bytes.lab-site.org", *[f"X-{i}: y" for i in range(10000)])
http_malformed       get(None, *[f"X-{i}: {'y' * 900}" for i in range(110)], "Host: bytes.lab-site.org")
not_http             b"G" * 100
http_malformed+late  [get()[:i] for i in (1, 3, 5, 20, 40, 43)]
http_malformed+late  dribble(get("bytes.lab-site.org", "X: " + "y" * 60000), gap=0.5, size=10)
not_http+late        b""
TABLE
}
