#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# TLS on port 443: the hello as it comes over the wire, whole and in pieces, sound and broken. Tables are for
# tests/lab/hello.py; each line is one connection, over IPv4 and over IPv6.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	sandbox tls --policy "$(policy tls 'host: bytes.lab-site.org' 'host: lab-a.com' 'host: "*.lab-a.com"' \
		'{host: echo.lab-site.org, ports: [25, 443]}' '{host: git.lab-code.org, ports: [22]}')"
}

setup() {
	mark
}

# bats test_tags=smoke
@test "D-01: no server name is let through by an address rule only" {
	cases tls hello bytes.lab-site.org:443 <<'TABLE'
allowed         hello()
sni_missing     hello(None)
sni_missing     hello(None, extensions=[])
TABLE
	mark
	guest_fails tls openssl s_client -connect "$NET4.$BYTES:443" -noservername
	guest_fails tls openssl s_client -connect "[$NET6:$BYTES]:443" -noservername
	far_none "> ($NET4\.|$NET6:)$BYTES "
	# A destination that this sandbox never resolved is not even connected to.
	cases tls hello "$NET4.$OTHER:443" "[$NET6:$OTHER]:443" <<'TABLE'
not_leased      hello(None)
TABLE
	far_none "> ($NET4\.|$NET6:)$OTHER "
	sandbox byaddr --policy "$(policy byaddr "{cidr: $NET4.$BYTES/32, ports: [443]}" \
		"{cidr: '$NET6:$BYTES/128', ports: [443]}" 'host: lab-a.com')"
	cases byaddr hello "$NET4.$BYTES:443" "[$NET6:$BYTES]:443" <<'TABLE'
allowed         hello(None)
allowed         hello("anything.lab-b.net")
never_name      hello("metadata.google.internal")
TABLE
	log_has byaddr '.verdict == "allowed" and .name_source == "cidr" and .dst == "45.45.45.40" and (has("name") | not)'
	log_has byaddr '.verdict == "allowed" and .name_source == "cidr" and .dst == "2600:1:2::40" and .name == "anything.lab-b.net"'
	sandbox_gone byaddr
}

# bats test_tags=smoke
@test "D-02: an allowed server name does not open another destination" {
	# Never resolved here.
	cases tls hello "$NET4.$OTHER:443" "[$NET6:$OTHER]:443" <<'TABLE'
not_leased      hello("bytes.lab-site.org")
not_leased      hello("lab-a.com")
TABLE
	far_none "> ($NET4\.|$NET6:)$OTHER "
	# Resolved here, for another allowed name; and a name of the same address that is not allowed.
	cases tls hello lab-a.com:443 <<'TABLE'
sni_mismatch    hello("bytes.lab-site.org")
sni_mismatch    hello("never-resolved.lab-a.com")
no_rule         hello("shared.lab-b.net")
no_rule         hello("news.lab-site.org")
TABLE
	far_none "> ($NET4\.|$NET6:)$SHARED "
	log_has tls '.reason == "sni_mismatch" and .dst == "45.45.45.11" and .name == "bytes.lab-site.org" and .name_source == "claim"'
	log_has tls '.reason == "no_rule" and .dst == "2600:1:2::11" and .name == "shared.lab-b.net" and .name_source == "claim"'
}

@test "D-03, D-15: a hello in TCP segments is read whole, wherever it is cut, and waited for until the deadline" {
	cases tls hello bytes.lab-site.org:443 <<'TABLE'
allowed         every(hello(), gap=0.01)
allowed         every(hello(), gap=0)
allowed         dribble(hello(), gap=0)
allowed         dribble(hello(), gap=0.01)
allowed         dribble(hello(pad=5000), gap=0.001, size=7)
no_rule         every(hello("www.lab-b.net"), gap=0.01)
no_rule         dribble(hello("www.lab-b.net"), gap=0.01)
sni_missing     every(hello(None), step=9)
# Up to its last byte nothing is decided, and at the deadline it is refused.
tls_malformed+late  [hello()[:i] for i in (1, 3, 5, 6, 9, 10, 60, 100, len(hello()) - 1)]
tls_malformed+late  dribble(hello(pad=2000), gap=0.1)
# A guest that waits for the server to speak: nobody is dialled for it.
not_tls+late        b""
TABLE
}

@test "D-04: a hello in TLS records is read whole, wherever it is cut" {
	cases tls hello bytes.lab-site.org:443 <<'TABLE'
allowed         every_record(message())
allowed         records(message(), 1)
allowed         records(message(), 2)
allowed         records(message(pad=1024), 511, 1)
allowed         records(message(pad=1024), 1, 511)
allowed         records(message(), 4, 1, 1, 1000)
allowed         dribble(records(message(), 1), gap=0)
allowed         dribble(records(message(), 50), gap=0.002, size=53)
no_rule         every_record(message("www.lab-b.net"))
no_rule         records(message("www.lab-b.net"), 1)
sni_missing     records(message(None), 1)
# Empty records, others in between, and what stands behind the hello in its own record.
not_tls         record(b"") + hello()
tls_malformed   [records(message()[:i], i) + record(b"") + records(message()[i:], 999) for i in (1, 4, 5, 40, 100)]
tls_malformed   [records(message()[:40], 40) + record(b"\1", kind=20) + records(message()[40:], 999)]
tls_malformed   [records(message()[:40], 40) + record(b"\2\50", kind=k) + records(message()[40:], 999) for k in (0, 21, 23, 24, 255)]
tls_malformed   record(message() + b"\0")
tls_malformed   record(message() + message("www.lab-b.net"))
tls_malformed   record(message("www.lab-b.net") + message())
# A second hello in a record of its own belongs to the server.
allowed         hello() + hello("www.lab-b.net")
# Records that are too long, too many, or of another version.
not_tls         record(message(pad=17000))
tls_malformed   record(message(pad=16390))
tls_malformed   records(message(pad=20000), 1)
allowed         record(message(), version=0x0303)
not_tls         [record(message(), version=v) for v in (0x0001, 0x0002, 0x0200, 0x0401, 0xfefd, 0x7f01)]
TABLE
}

@test "D-05: a hello as big as post-quantum keys make it, and one that is too big" {
	cases tls hello bytes.lab-site.org:443 <<'TABLE'
allowed         hello("bytes.lab-site.org", ext(KEY_SHARE, ML_KEM_SHARE))
allowed         [hello(pad=n) for n in (517, 1024, 1025, 2048, 4096, 8192, 16380, 16384, 16388, 32768, 60000, 65000)]
allowed         [records(message(pad=n), 512) for n in (4096, 16384, 60000)]
allowed         dribble(hello(pad=60000), gap=0.001, size=1400)
no_rule         [hello("www.lab-b.net", pad=n) for n in (1800, 16384, 60000)]
# The name behind all of it.
allowed         hello(None, ext(PADDING, b"\0" * 60000), ext(SERVER_NAME, sni("bytes.lab-site.org")))
no_rule         hello(None, ext(PADDING, b"\0" * 60000), ext(SERVER_NAME, sni("www.lab-b.net")))
tls_malformed   hello(pad=72000, ciphers=b"\x13\x01" * 4000)
tls_malformed   hello(pad=90000, ciphers=b"\x13\x01" * 15000)
tls_malformed   hello()[:6] + b"\xff\xff\xff" + hello()[9:]
TABLE
}

@test "D-06: more than one server name" {
	cases tls hello bytes.lab-site.org:443 <<'TABLE'
tls_malformed   hello(None, ext(SERVER_NAME, sni("bytes.lab-site.org", "www.lab-b.net")))
tls_malformed   hello(None, ext(SERVER_NAME, sni("www.lab-b.net", "bytes.lab-site.org")))
tls_malformed   hello(None, ext(SERVER_NAME, sni("bytes.lab-site.org", "bytes.lab-site.org")))
tls_malformed   hello("bytes.lab-site.org", ext(SERVER_NAME, sni("www.lab-b.net")))
tls_malformed   hello("www.lab-b.net", ext(SERVER_NAME, sni("bytes.lab-site.org")))
tls_malformed   hello("bytes.lab-site.org", ext(SERVER_NAME, sni("bytes.lab-site.org")))
tls_malformed   hello("bytes.lab-site.org", before=[ext(SERVER_NAME, b"")])
tls_malformed   hello("bytes.lab-site.org", ext(ALPN, alpn("h2")))
tls_malformed   hello("bytes.lab-site.org", ext(0x1234), ext(0x1234))
TABLE
	log_has tls '.reason == "tls_malformed" and .detail == "two server_name extensions"'
	log_has tls '.reason == "tls_malformed" and .detail == "server_name extension holds more than one name"'
}

@test "D-07, B-03, B-04, B-10, B-11, B-15, A-16: server names in every spelling" {
	cases tls hello bytes.lab-site.org:443 <<'TABLE'
# One final dot and case make no difference.
allowed         [hello(n) for n in ("bytes.lab-site.org.", "BYTES.LAB-SITE.ORG", "bYtEs.lab-Site.oRg.")]
sni_mismatch    [hello(n) for n in ("bytes.lab-site.org..", ".bytes.lab-site.org", "bytes..lab-site.org", ".", "..")]
no_rule         [hello(n) for n in ("www.lab-b.net.", "WWW.LAB-B.NET", "notbytes.lab-site.org", "bytes.lab-site.org.lab-b.net")]
no_rule         [hello(n) for n in ("xbytes.lab-site.org", "x.bytes.lab-site.org", "lab-site.org", "ytes.lab-site.org",
                "bytes.lab-site.or", "bytes-lab-site.org", "byteslab-site.org", "bytes.lab-site.orgg", "www.xlab-a.com")]
sni_mismatch    hello("*.lab-a.com")
never_name      [hello(n) for n in ("localhost", "com", "metadata.google.internal", "x.localhost", "printer.local")]
# The extension's own form.
tls_malformed   hello(None, ext(SERVER_NAME, b""))
tls_malformed   hello(None, ext(SERVER_NAME, b"\0"))
tls_malformed   hello(None, ext(SERVER_NAME, b"\0\0"))
tls_malformed   hello(None, ext(SERVER_NAME, vec16(entry(""))))
tls_malformed   [hello(None, ext(SERVER_NAME, vec16(entry("bytes.lab-site.org", kind=k)))) for k in (1, 2, 127, 255)]
tls_malformed   hello(None, ext(SERVER_NAME, vec16(entry("www.lab-b.net", kind=1) + entry("bytes.lab-site.org"))))
tls_malformed   hello(None, ext(SERVER_NAME, vec16(entry("bytes.lab-site.org") + entry("www.lab-b.net", kind=1))))
tls_malformed   hello(None, ext(SERVER_NAME, sni("bytes.lab-site.org") + b"\0"))
tls_malformed   hello(None, ext(SERVER_NAME, vec16(entry("bytes.lab-site.org") + b"\0")))
tls_malformed   hello(None, ext(SERVER_NAME, vec16(entry("bytes.lab-site.org"))[:-1]))
tls_malformed   hello(None, ext(SERVER_NAME, vec16(b"\0" + vec16(b"bytes.lab-site.org" + b"x" * 200)[:-200])))
tls_malformed   hello(None, ext(SERVER_NAME, entry("bytes.lab-site.org")))
# Lengths, ports, spaces.
sni_mismatch    [hello("a" * n + ".lab-a.com") for n in (64, 255, 256, 1000)]
sni_mismatch    hello("a." * 130 + "lab-a.com")
no_rule         hello("a" * 63 + ".lab-b.net")
sni_mismatch    [hello("bytes.lab-site.org" + t) for t in (":443", ":", " ", "/", "\t", "\r\n", "#", "?", "@lab-b.net", "%00")]
sni_mismatch    [hello(t + "bytes.lab-site.org") for t in (" ", "https://", "@", "user@", "\t", "[", "%")]
# B-15, A-16: addresses, however they are written.
sni_mismatch    [hello(n) for n in ("45.45.45.40", "1.2.3.4", "::1", "[::1]", "2600:1:2::40", "[2600:1:2::40]", "::ffff:1.2.3.4")]
sni_mismatch    [hello(n) for n in ("2130706433", "0x7f.1", "0177.0.0.1", "127.1", "010.8.8.8", "0x7f000001", "1.2.3.4.")]
sni_mismatch    [hello(n.encode()) for n in ("１２７.0.0.1", "127。0。0。1", "bytes。lab-site。org", "b\u00fccher.lab-a.com")]
# B-10: every byte. Only letters, digits, "-", "_" and the dot make a name.
no_rule         [hello(b"a" + bytes([c]) + b"b.lab-b.net") for c in range(256) if c < 128 and (chr(c).isalnum() or chr(c) in "-_.")]
sni_mismatch    [hello(b"a" + bytes([c]) + b"b.lab-b.net") for c in range(256) if not (c < 128 and (chr(c).isalnum() or chr(c) in "-_."))]
sni_mismatch    [hello(b"www.lab-b.net" + bytes([c]) + b".lab-a.com") for c in range(256) if not (c < 128 and (chr(c).isalnum()
                or chr(c) in "-_."))]
# B-11: a NUL at each place.
sni_mismatch    [hello(b"bytes.lab-site.org"[:i] + b"\0" + b"bytes.lab-site.org"[i:]) for i in range(19)]
sni_mismatch    hello("www.lab-b.net\0.lab-a.com")
TABLE
	log_has tls '.reason == "sni_mismatch" and .name == "www.lab-b.net\\x00.lab-a.com" and .name_source == "claim"'
	log_has tls '.reason == "sni_mismatch" and .name == "1.2.3.4" and .dst == "2600:1:2::40"'
	log_has tls '.reason == "allowed" and .name == "bytes.lab-site.org" and .name_source == "sni"'
}

@test "D-08: encrypted client hellos are recorded, and refused where the policy says so" {
	cases tls hello bytes.lab-site.org:443 <<'TABLE'
allowed         hello("bytes.lab-site.org", ext(ECH, ech()), protocols=["grease-ok"])
no_rule         hello("www.lab-b.net", ext(ECH, ech()))
no_rule         hello("cloudflare-ech.com", ext(ECH, ech()))
sni_missing     hello(None, ext(ECH, ech()))
allowed         hello(protocols=["no-ech"])
TABLE
	log_has tls '.verdict == "allowed" and .ech == true and .alpn == "grease-ok" and .name == "bytes.lab-site.org"'
	log_has tls '.verdict == "allowed" and .ech == false and .alpn == "no-ech"'
	log_has tls '.verdict == "denied" and .ech == true and .name == "cloudflare-ech.com"'

	printf '%s\n' 'version: 1' 'ech: deny' 'allow:' '  - host: bytes.lab-site.org' >"$LAB/tmp/ech.yaml"
	sandbox ech --policy "$LAB/tmp/ech.yaml"
	cases ech hello bytes.lab-site.org:443 <<'TABLE'
allowed         hello()
ech             hello("bytes.lab-site.org", ext(ECH, ech()))
ech             hello("bytes.lab-site.org", ext(ECH, ech(outer=False)))
ech             hello("bytes.lab-site.org", ext(ECH))
ech             hello("bytes.lab-site.org", before=[ext(ECH, ech())])
ech             records(message("bytes.lab-site.org", ext(ECH, ech())), 1)
no_rule         hello("www.lab-b.net", ext(ECH, ech()))
tls_malformed   hello("bytes.lab-site.org", ext(ECH, ech()), ext(ECH, ech()))
TABLE
	log_has ech '.reason == "ech" and .ech == true and .name == "bytes.lab-site.org" and .name_source == "claim"'
	sandbox_gone ech
}

@test "D-12: early data waits for the verdict, and a session of another host proves nothing" {
	cases tls hello bytes.lab-site.org:443 <<'TABLE'
allowed         hello("bytes.lab-site.org", ext(EARLY_DATA), ext(PSK, b"p" * 100)) + record(b"early" * 100, kind=23)
allowed         cut(hello("bytes.lab-site.org", ext(EARLY_DATA), ext(PSK, b"p" * 100)) + record(b"early" * 3000, kind=23), 200, 900)
no_rule         hello("www.lab-b.net", ext(EARLY_DATA), ext(PSK, b"p" * 100)) + record(b"early" * 100, kind=23)
no_rule         [hello("www.lab-b.net", ext(EARLY_DATA), ext(PSK, b"p" * 100)) + record(b"early" * 3000, kind=23) * 40]
sni_missing     hello(None, ext(EARLY_DATA), ext(PSK, b"p" * 100)) + record(b"early" * 100, kind=23)
TABLE
	# The same with a real client and server.
	# Its input must stay open: at its end the server closes.
	sleep 60 3>&- 4>&- | nsenter --net=/run/netns/pl-internet -- openssl s_server -accept "$NET4.$ECHO:443" -cert "$LAB/tls/server.crt" -key "$LAB/tls/server.key" -tls1_3 \
		-early_data -max_early_data 16384 -no_anti_replay -naccept 2 >"$LAB/tmp/s_server" 2>&1 3>&- 4>&- &
	wait_for 5 internet bash -c "ss -Hltn 'src $NET4.$ECHO:443' | grep -q ."
	guest tls dig +short echo.lab-site.org >/dev/null
	client() {
		# shellcheck disable=SC2016 # expanded by the inner shell
		guest tls sh -c '(sleep 1; echo Q) | timeout 8 openssl s_client -connect "$0:443" -tls1_3 "$@"' "$NET4.$ECHO" "$@" 2>&1
	}
	run -0 client -servername echo.lab-site.org -sess_out "$LAB/tmp/session"
	echo "this came early" >"$LAB/tmp/early"
	mark
	# Another host's name with this session: refused, whether allowed elsewhere or not.
	for name in www.lab-b.net bytes.lab-site.org; do
		run client -servername "$name" -sess_in "$LAB/tmp/session"
		[[ $status -ne 0 ]] || fail "$name with a session of another host was let through" "$output"
	done
	far_none "> $NET4\.$ECHO 443 "
	log_has tls '.reason == "no_rule" and .dst == "45.45.45.30" and .name == "www.lab-b.net"'
	log_has tls '.reason == "sni_mismatch" and .dst == "45.45.45.30" and .name == "bytes.lab-site.org"'
	run -0 client -servername echo.lab-site.org -sess_in "$LAB/tmp/session" -early_data "$LAB/tmp/early"
	matches "resumed" "Reused, TLSv1.3" "$output"
	matches "early data" "Early data was accepted" "$output"
	matches "at the far side" "this came early" "$(cat "$LAB/tmp/s_server")"
}

# bats test_tags=smoke
@test "D-02: a server that asks for a second hello gets one for the same name, and no other" {
	sleep 60 3>&- 4>&- | nsenter --net=/run/netns/pl-internet -- openssl s_server -accept "$NET4.$ECHO:443" -cert "$LAB/tls/server.crt" \
		-key "$LAB/tls/server.key" -tls1_3 -naccept 5 >"$LAB/tmp/s_server" 2>&1 3>&- 4>&- &
	wait_for 5 internet bash -c "ss -Hltn 'src $NET4.$ECHO:443' | grep -q ."
	guest tls dig +short echo.lab-site.org >/dev/null
	cat >"$LAB/tmp/retry.py" <<-'PYTHON'
		import os, socket, struct, sys
		sys.path.insert(0, sys.argv[1])
		import hello as h
		ALLOWED = "echo.lab-site.org"
		share = h.ext(h.KEY_SHARE, h.vec16(struct.pack(">HH", 29, 32) + os.urandom(32)))
		change = h.record(b"\x01", kind=20, version=0x0303)
		# In answer to the request, with the first hello, and behind early data.
		for name, first, before in ((ALLOWED, b"", change), ("www.lab-b.net", b"", change), ("bytes.lab-site.org", b"", b""),
		                            ("www.lab-b.net", change + h.hello("www.lab-b.net", share), b""),
		                            ("www.lab-b.net", h.record(b"early", kind=23) + h.hello("www.lab-b.net", share), b"")):
		    with socket.create_connection((sys.argv[2], 443), timeout=5) as sock:
		        sock.sendall(h.hello(ALLOWED, h.ext(h.KEY_SHARE, h.vec16(b""))) + first)
		        try:
		            answer = sock.recv(65536)
		            assert answer[11:15].hex() == "cf21ad74", answer
		            if not first:
		                sock.sendall(before + h.hello(name, share))
		            answer = sock.recv(65536)
		            print(name, "server hello" if b"\x02\0\0" in answer and len(answer) > 500 else f"{len(answer)} bytes")
		        except ConnectionResetError:
		            print(name, "reset")
	PYTHON
	run -0 guest tls /usr/bin/python3 "$LAB/tmp/retry.py" "$LAB_DIR" "$NET4.$ECHO"
	equal "answers" "$(printf '%s\n' "echo.lab-site.org server hello" "www.lab-b.net reset" "bytes.lab-site.org reset" \
		"www.lab-b.net reset" "www.lab-b.net reset")" "$output"
	[[ $(grep -c www.lab-b.net "$LAB/tmp/s_server") == 0 ]]
	log_has tls '.reason == "sni_mismatch" and .name == "bytes.lab-site.org" and (.detail // "" | contains("second hello"))'
	refused() { [[ $(log_count tls '.reason == "sni_mismatch" and .name == "www.lab-b.net" and .dst == "45.45.45.30"') == 3 ]]; }
	wait_for 5 refused
}

@test "D-13: SSLv2, SSLv3 and hellos without extensions" {
	cases tls hello bytes.lab-site.org:443 <<'TABLE'
# An SSLv2 hello, alone and one that offers TLS.
not_tls         b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10\x01\x00\x80\x02\x00\x80\x03\x00\x80\x04\x00\x80\x05\x00\x80\x06\x00\x40\x07\x00\xc0" + b"c" * 16
not_tls         b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10\x01\x00\x80\x02\x00\x80\x03\x00\x80\x04\x00\x80\x05\x00\x80\x06\x00\x40\x07\x00\xc0" + b"c" * 16
not_tls         b"\x00\x2e\x00\x01\x00\x02\x00\x15" + b"c" * 40
not_tls         b"\x80"
tls_malformed   [hello(version=v) for v in (0x0002, 0x0200, 0x0300, 0x02ff, 0x0400, 0x0000, 0xffff, 0xfefd)]
tls_malformed   record(message(version=0x0300), version=0x0300)
sni_missing     [hello(None, version=v, extensions=[]) for v in (0x0301, 0x0302, 0x0303)]
allowed         [hello(version=v) for v in (0x0301, 0x0302, 0x0303)]
TABLE
}

@test "D-15: where the server speaks first, it is dialled at once" {
	run -0 guest tls "$LAB_DIR/client.py" tcp echo.lab-site.org 25 'quit\n' --half-close
	matches "greeting" "220 lab ready" "$output"
	run -0 guest tls timeout 5 bash -c 'exec 5<>/dev/tcp/git.lab-code.org/22 && head -c 8 <&5'
	equal "banner" "SSH-2.0-" "$output"
	log_has tls '.verdict == "allowed" and .dport == 22 and .name == "git.lab-code.org" and .name_source == "lease"'
}

@test "D-20, B-25, D-22: what is no TLS is refused at its first bytes; lengths that lie are malformed" {
	cases tls hello bytes.lab-site.org:443 <<'TABLE'
not_tls         record(b"\2\0", kind=21)
not_tls         record(b"\1\0", kind=21)
not_tls         record(b"d" * 32, kind=23)
not_tls         record(b"\1", kind=20)
not_tls         record(b"\1\x40\0", kind=24)
not_tls         [record(b"x", kind=k) for k in (0, 1, 19, 25, 26, 127, 255)]
not_tls         b"\x16\x03\x01\x00\x00"
not_tls         [b"\x16\x03\x01" + n for n in (b"\x41\x01", b"\x42\x00", b"\xff\xff")]
tls_malformed   b"\x16\x03\x01\x41\x00"
not_tls         [b"\x16" + bytes([v]) for v in (0, 1, 2, 4, 254, 255)]
not_tls         [b"GET / HTTP/1.1\r\nHost: bytes.lab-site.org\r\n\r\n", b"G", b"POST / HTTP/1.1\r\n", b"CONNECT bytes.lab-site.org:443 HTTP/1.1\r\n\r\n"]
not_tls         [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"EHLO lab-a.com\r\n", b"\r\n"]
not_tls         [b"PROXY TCP4 10.0.0.1 10.0.0.2 443 443\r\n" + hello(), b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c" + hello()]
not_tls         [b"\x05\x01\x00", b"\x04\x01\x01\xbb\x0a\0\0\1\0", b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b"\x13BitTorrent protocol"]
not_tls         [b"\xc3\x00\x00\x00\x01\x08" + b"q" * 60, b"*1\r\n$4\r\nPING\r\n", b"\xff\x53\x4d\x42", b"\0", b" " + hello(), b"\0" + hello()]
not_tls         [bytes([c]) * 100 for c in range(0, 256, 5) if c != 22]
# Another handshake message.
tls_malformed   [record(bytes([t]) + b"\0\0\4abcd") for t in (0, 2, 11, 16, 20, 24, 255)]
# D-22: lengths that lie.
tls_malformed   record(b"\1\0\0\0")
tls_malformed   record(b"\1\0\0\1\3")
tls_malformed   [record(b"\1" + n.to_bytes(3, "big") + message()[4:]) for n in (1, 40, len(message()) - 5)]
tls_malformed   [hello(session=b"s" * n) for n in (33, 64, 255)]
tls_malformed   [hello(ciphers=c) for c in (b"", b"\x13", b"\x13\x01\xc0")]
tls_malformed   hello(compression=b"")
tls_malformed   [hello(rest=r) for r in (b"\0", b"\0\0", b"x" * 50)]
tls_malformed   hello("bytes.lab-site.org", b"\0")
tls_malformed   hello("bytes.lab-site.org", b"\x12\x34\0\5abcd")
tls_malformed   [hello(extensions=[e]) for e in (b"\0", b"\0\0", b"\0\0\0", b"\0\0\xff\xff")]
tls_malformed   [hello(None, ext(ALPN, a)) for a in (b"", b"\0", b"\0\0", b"\0\1\0", b"\0\2\5h", vec16(vec8(b"h2")) + b"x")]
tls_malformed   hello("bytes.lab-site.org", *[ext(0x4000 + i) for i in range(300)])
TABLE
	far_none "> ($NET4\.|$NET6:)$BYTES "
}

# bats test_tags=smoke
@test "D-23: every byte of a stream arrives once and in order" {
	cases tls hello bytes.lab-site.org:443 <<'TABLE'
allowed         streams(150, seed=1)
allowed         streams(4, seed=2, most=4194304)
no_rule         [hello("www.lab-b.net") + b"x" * 100000]
TABLE
	cases tls httpx bytes.lab-site.org:80 <<'TABLE'
allowed         streams(100, seed=3)
TABLE
}
