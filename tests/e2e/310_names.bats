#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Names: one spelling in a policy, a question, a server name and a Host, compared label by label; and their ports.
# All of it runs under a Turkish locale, in which tolower("I") is not "i" (case B-04).

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/raw

setup_file() {
	lab_up
	# Where the sources of locales are not installed the name alone must do.
	mkdir -p "$LAB/locale"
	localedef -i tr_TR -f UTF-8 "$LAB/locale/tr_TR.UTF-8" 2>/dev/null || true
	# The C library itself loses a few bytes to LOCPATH, which a sanitizer build would report.
	echo 'leak:__argz_add_sep' >"$LAB/locale/lsan"
	export LSAN_OPTIONS=suppressions=$LAB/locale/lsan:print_suppressions=0
	LOCPATH=$LAB/locale LC_ALL=tr_TR.UTF-8 LANG=tr_TR.UTF-8 posternd_start
	sandbox names --policy "$(policy names 'host: bytes.lab-site.org' 'host: "*.lab-a.com"' 'host: lab-code.org' \
		'host: "*.lab-cdn.net"')"
}

setup() {
	mark
}

# A policy text is refused, with a place and a complaint: refused_policy TEXT
refused_policy() {
	printf '%s' "$1" >"$LAB/tmp/refused.yaml"
	run -5 sandbox refused --policy "$LAB/tmp/refused.yaml"
	matches "complaint about $1" 'refused.yaml:[0-9]+:[0-9]+: .+|refused.yaml: .+' "$output"
}

# bats test_tags=smoke
@test "B-01: an empty policy, in whatever way, is nothing allowed" {
	local text
	while IFS= read -r text; do
		printf '%b' "$text" >"$LAB/tmp/empty.yaml"
		sandbox empty --policy "$LAB/tmp/empty.yaml" >/dev/null
		cases empty query "$GATEWAY4:53" "[$GATEWAY6]:53" <<-'TABLE'
			no_rule     [name(n) for n in ("bytes.lab-site.org", "news.lab-site.org", "www.lab-a.com")]
			never_name  name("localhost")
		TABLE
		cases empty httpx "$NET4.$BYTES:80" "[$NET6:$BYTES]:80" "$NET4.$WEB:443" <<<'not_leased get()'
		far_none " > ($NET4\.|$NET6:)"
		log_has empty '.kind == "dns" and .reason == "no_rule" and .qname == "bytes.lab-site.org" and (has("rule") | not)'
		equal "records of something allowed" 0 "$(log_count empty '.verdict == "allowed"')"
		sandbox_gone empty >/dev/null
	done <<-'TABLE'
		version: 1\nallow: []\n
		version: 1\n
		version: 1\n# allow:\n#   - host: bytes.lab-site.org\n
		version: 1\ndeny:\n  - host: www.lab-b.net\n
		version: 1\nallow: []\ndeny: []\n
		{"version": 1, "allow": []}
	TABLE
	# These are not even taken; none of them is "everything" either.
	while IFS= read -r text; do
		refused_policy "$(printf '%b' "$text")"
	done <<-'TABLE'

		\n  \n
		# version: 1\n
		---\n...\n
		null
		[]
		{}
		version:\n
		version: 1\nallow:\n
		version: 1\nallow: ~\n
		version: 1\nallow: null\n
		version: 1\nallow: ""\n
		version: 1\nallow: {}\n
		version: 1\nallow: [~]\n
		version: 1\nallow: [[]]\n
		version: 1\nallow: [{}]\n
		version: 1\nallow: all\n
		version: 1\nallow: true\n
		version: 1\nallow:\n  - host: ""\n
		version: 1\nallow:\n  - host:\n
		version: 1\nallow:\n  - "*"\n
		version: 1\nallow:\n  - bytes.lab-site.org\n
		version: 1\nallow: []\nallow:\n  - host: bytes.lab-site.org\n
		version: 1\nAllow:\n  - host: bytes.lab-site.org\n
	TABLE
	far_none " > ($NET4\.|$NET6:)"
}

@test "B-03: one trailing dot makes no difference anywhere, anything more is an error" {
	printf '%s\n' 'version: 1' 'allow:' '  - host: bytes.lab-site.org.' '  - host: "*.lab-a.com."' 'deny:' \
		'  - host: www.lab-a.com.' >"$LAB/tmp/dots.yaml"
	sandbox dots --policy "$LAB/tmp/dots.yaml"
	cases dots query "$GATEWAY4:53" "[$GATEWAY6]:53" <<'TABLE'
allowed         [name(n) for n in ("bytes.lab-site.org", "x.lab-a.com")]
rule_deny       name("www.lab-a.com")
no_rule         [name(n) for n in ("lab-a.com", "www.lab-b.net")]
dns_denied      query()
TABLE
	cases dots httpx bytes.lab-site.org:80 <<'TABLE'
allowed         [get(h) for h in ("bytes.lab-site.org", "bytes.lab-site.org.", "bytes.lab-site.org.:80")]
host_mismatch   [get(h) for h in ("bytes.lab-site.org..", ".bytes.lab-site.org", "bytes..lab-site.org", ".", "..", ".bytes.lab-site.org.")]
no_rule         get("www.lab-b.net.")
TABLE
	cases dots httpx x.lab-a.com:80 <<'TABLE'
rule_deny       [get(h) for h in ("www.lab-a.com", "www.lab-a.com.", "WWW.lab-a.com.")]
host_mismatch   get("www.lab-a.com..")
allowed         get("x.lab-a.com.", "Connection: close")
TABLE
	cases dots hello x.lab-a.com:443 <<'TABLE'
rule_deny       [hello(n) for n in ("www.lab-a.com", "www.lab-a.com.", "www.LAB-a.com.")]
sni_mismatch    [hello(n) for n in ("www.lab-a.com..", ".www.lab-a.com", "x.lab-a.com..")]
TABLE
	sandbox_gone dots
	local host
	for host in bytes.lab-site.org.. .bytes.lab-site.org bytes..lab-site.org . .. '*..lab-a.com' '*.' '*.lab-a.com..' '.*.lab-a.com'; do
		refused_policy "$(printf 'version: 1\nallow:\n  - host: "%s"\n' "$host")"
		run -5 postern allow names "$host"
		run -5 postern deny names "$host"
	done
}

# bats test_tags=smoke
@test "B-04: upper and lower case are the same, and only those of ASCII" {
	printf '%s\n' 'version: 1' 'allow:' '  - host: BYTES.LAB-SITE.ORG' '  - host: "*.LAB-A.COM"' '  - host: news.lab-site.org' 'deny:' \
		'  - host: NEWS.LAB-SITE.ORG' >"$LAB/tmp/cases.yaml"
	sandbox upper --policy "$LAB/tmp/cases.yaml"
	cases upper query "$GATEWAY4:53" "[$GATEWAY6]:53" <<'TABLE'
allowed         [name(n) for n in ("bytes.lab-site.org", "BYTES.LAB-SITE.ORG", "bYtEs.lAb-SiTe.oRg", "I.LAB-A.COM", "i.lab-a.com")]
rule_deny       [name(n) for n in ("news.lab-site.org", "NEWS.LAB-SITE.ORG", "News.Lab-sIte.Org")]
dns_denied      [query("bytes".encode(), n.encode(), "org") for n in ("lab-s\u0131te", "LAB-S\u0130TE", "lab-\u017fite")]
dns_denied      [query(n.encode(), "lab-site", "org") for n in ("BYT\u0112S", "b\u0443tes", "\u212aytes")]
TABLE
	cases upper httpx bytes.lab-site.org:80 <<'TABLE'
allowed         [get(h) for h in ("BYTES.LAB-SITE.ORG", "bYtEs.lAb-SiTe.oRg", "bytes.lab-site.ORG")]
rule_deny       [get(h) for h in ("NEWS.LAB-SITE.ORG", "news.lab-sIte.org")]
host_mismatch   [get(h.encode()) for h in ("bytes.lab-s\u0131te.org", "BYTES.LAB-S\u0130TE.ORG", "bytes.lab-\u017fite.org", "b\u0443tes.lab-site.org")]
TABLE
	cases upper hello bytes.lab-site.org:443 <<'TABLE'
allowed         [hello(n) for n in ("BYTES.LAB-SITE.ORG", "bYtEs.lAb-SiTe.oRg", "bytes.lab-site.ORG")]
rule_deny       [hello(n) for n in ("NEWS.LAB-SITE.ORG", "news.lab-sIte.org")]
sni_mismatch    [hello(n.encode()) for n in ("bytes.lab-s\u0131te.org", "BYTES.LAB-S\u0130TE.ORG", "bytes.lab-\u017fite.org", "b\u0443tes.lab-site.org")]
TABLE
	# The command line, under the same locale.
	local name
	for name in BYTES.LAB-SITE.ORG bytes.lab-site.org I.LAB-A.COM; do
		LOCPATH=$LAB/locale LC_ALL=tr_TR.UTF-8 run -0 postern test upper "$name:443"
	done
	LOCPATH=$LAB/locale LC_ALL=tr_TR.UTF-8 run -1 postern test upper NEWS.LAB-SITE.ORG:443
	log_has upper '.kind == "flow" and .name == "bytes.lab-site.org" and .name_source == "sni"'
	sandbox_gone upper
}

@test "B-05, B-06: names are compared by whole labels from the right; a wildcard is what stands below, and not itself" {
	cases names query "$GATEWAY4:53" "[$GATEWAY6]:53" <<'TABLE'
# "*.lab-a.com": one or more labels below it.
allowed         [name(n) for n in ("a.lab-a.com", "a.b.lab-a.com", "a.b.c.d.e.f.lab-a.com", "lab-a.com.lab-a.com", "_x.lab-a.com")]
no_rule         [name(n) for n in ("lab-a.com", "xlab-a.com", "a.xlab-a.com", "notlab-a.com", "a-lab-a.com", "alab-a.com", "lab-a.co",
                "a.lab-a.co", "a.lab-a.comm", "a.lab-a.com.evil.net", "lab-a.com.evil.net", "a.lab-a.com.com", "a.lab.a.com",
                "a.lab-b.com", "a.ab-a.com", "a.lab-a.xcom", "a.lab-a.c0m", "a.lab_a.com", "com.lab-a")]
# An exact name: neither above nor below.
allowed         name("bytes.lab-site.org")
no_rule         [name(n) for n in ("lab-site.org", "a.bytes.lab-site.org", "xbytes.lab-site.org", "ytes.lab-site.org",
                "bytes.lab-site.or", "bytes.lab-site.orgx", "bytes.lab-site.org.evil.net", "byteslab-site.org", "bytes.labsite.org",
                "www.lab-code.org", "git.lab-code.org", "xlab-code.org", "lab-code.org.lab-b.net")]
# Literal wildcards are names to nobody.
dns_denied      [query("*", "lab-a", "com"), query("a", "*", "lab-a", "com"), query("a*", "lab-a", "com"), query("*"), query("**", "lab-a", "com")]
TABLE
	cases names httpx bytes.lab-site.org:80 <<'TABLE'
no_rule         [get(n) for n in ("lab-a.com", "a.xlab-a.com", "notlab-a.com", "a.lab-a.com.evil.net", "lab-site.org", "a.bytes.lab-site.org",
                "xbytes.lab-site.org", "bytes.lab-site.org.evil.net", "bytes.lab-site.orgx", "www.lab-code.org", "ytes.lab-site.org")]
host_mismatch   [get(n) for n in ("*.lab-a.com", "*", ".lab-a.com", "*.lab-site.org", "bytes.*", "a.never-resolved.lab-a.com", "lab-code.org")]
TABLE
	cases names hello a.lab-a.com:443 <<'TABLE'
no_rule         [hello(n) for n in ("lab-a.com", "xlab-a.com", "a.xlab-a.com", "a.lab-a.com.evil.net", "a.lab-a.comm", "a.b.c", "shared.lab-b.net")]
sni_mismatch    [hello(n) for n in ("*.lab-a.com", ".lab-a.com", "*", "b.a.lab-a.com", "bytes.lab-site.org")]
TABLE
	far_none "> ($NET4\.|$NET6:)$SHARED "
	# The command line's word for it is the same, and names the rule.
	local name
	for name in a.lab-a.com a.b.lab-a.com bytes.lab-site.org; do
		run -0 postern test names "$name"
		matches "rule for $name" "\*\.lab-a\.com|bytes\.lab-site\.org" "$output"
	done
	for name in lab-a.com a.bytes.lab-site.org notlab-a.com a.lab-a.com.evil.net www.lab-code.org; do
		run -1 postern test names "$name"
	done
}

@test "B-10, B-11: any byte in a label of a question, a NUL anywhere, and a NUL in a policy" {
	cases names query "$GATEWAY4:53" <<'TABLE'
allowed         [query(b"a" + bytes([c]) + b"b", "lab-a", "com") for c in range(256) if c < 128 and (chr(c).isalnum() or chr(c) in "-_")]
dns_denied      [query(b"a" + bytes([c]) + b"b", "lab-a", "com") for c in range(256) if not (c < 128 and (chr(c).isalnum() or chr(c) in "-_"))]
dns_denied      [query(b"www.lab-b.net" + bytes([c]), "lab-a", "com") for c in (0, 9, 10, 13, 32, 35, 37, 46, 47, 58, 64, 92, 255)]
dns_denied      [query(b"bytes"[:i] + b"\0" + b"bytes"[i:], "lab-site", "org") for i in range(6)]
dns_denied      [query("bytes", "lab-site", b"org"[:i] + b"\0" + b"org"[i:]) for i in range(4)]
dns_denied      [query("bytes", "lab-site", "org\0", "lab-b", "net"), query("www", "lab-b", "net\0", "lab-a", "com")]
dns_denied      query(b"bytes.lab-site.org")
no_rule         [name(n) for n in ("a" * 63 + ".lab-b.net", ("a" * 49 + ".") * 4 + "lab-b.net")]
TABLE
	log_has names '.reason == "dns_denied" and (.qname | contains("\\x00") or contains("\\000"))'
	printf 'version: 1\nallow:\n  - host: bytes.lab-site.org\0.lab-b.net\n' >"$LAB/tmp/nul.yaml"
	run -5 sandbox nul --policy "$LAB/tmp/nul.yaml"
	printf 'version: 1\nallow:\n  - host: bytes.lab-site.org\n\0  - host: www.lab-b.net\n' >"$LAB/tmp/nul.yaml"
	run -5 sandbox nul --policy "$LAB/tmp/nul.yaml"
	local escaped
	# shellcheck disable=SC1003 # YAML's own escapes
	for escaped in 'bytes.lab-site.org\0' '\0bytes.lab-site.org' 'bytes\x00.lab-site.org' 'by\ttes.lab-site.org' 'bytes.lab-site.org\n' \
		'bytes.lab-site.org ' ' bytes.lab-site.org' 'bytes%2elab-site.org' 'bytes\u2024lab-site.org x' 'bytes\\lab-site.org'; do
		refused_policy "$(printf 'version: 1\nallow:\n  - host: "%s"\n' "$escaped")"
	done
}

@test "B-15, B-16, B-17: addresses, brackets, users and ports in a policy's names and in one-word rules" {
	local before host word
	before=$(postern show names -o json | jq -c '[.. | objects | .generation? // empty] | first')
	for host in 1.2.3.4 45.45.45.40 ::1 '[::1]' '[bytes.lab-site.org]' '[[::1]]' '[::1' '::1]' 'bytes.lab-site.org]' bytes.lab-site.org:80 \
		bytes.lab-site.org: :80 bytes.lab-site.org@lab-b.net user@bytes.lab-site.org @ http://bytes.lab-site.org bytes.lab-site.org/ \
		bytes.lab-site.org/x //bytes.lab-site.org 'bytes.lab-site.org?x' 'bytes.lab-site.org#x' 'bytes lab-site.org' 'a,b.lab-site.org' \
		'bytes.lab-site.org;lab-b.net' 'a*.lab-a.com' '*a.lab-a.com' 'a.*.lab-a.com' '**.lab-a.com' '*.*.lab-a.com' '*.*' '*.1.2.3.4' \
		'.*\\.lab-a\\.com' '^lab-a.com$' '(lab|x).lab-a.com' '{a,b}.lab-a.com' '?.lab-a.com' '%.lab-a.com'; do
		refused_policy "$(printf "version: 1\nallow:\n  - host: '%s'\n" "$host")"
	done
	for word in '' : :80 bytes.lab-site.org: bytes.lab-site.org:0 bytes.lab-site.org:65536 bytes.lab-site.org:65537 bytes.lab-site.org:080 \
		bytes.lab-site.org:+80 bytes.lab-site.org:-80 bytes.lab-site.org:80:81 bytes.lab-site.org:80, bytes.lab-site.org:,80 \
		bytes.lab-site.org:80-79 bytes.lab-site.org:0x50 bytes.lab-site.org:http 'bytes.lab-site.org: 80' bytes.lab-site.org:80/sctp \
		bytes.lab-site.org:4294967376 bytes.lab-site.org::80 '[bytes.lab-site.org]:80' '[2600::1:443' '2600::1]:443' '[[2600::1]]:443' \
		2600::1:443 user@bytes.lab-site.org https://bytes.lab-site.org bytes.lab-site.org/ 45.45.45.40 '[2600::1]' 45.45.45.40/24:80 \
		bytes.lab-site.org:53 bytes.lab-site.org:443/udp 'bytes.lab-site.org:1-65535/udp'; do
		run -5 postern allow names "$word"
		[[ -n $output ]] || fail "no word about why '$word' is refused"
	done
	equal "generation" "$before" "$(postern show names -o json | jq -c '[.. | objects | .generation? // empty] | first')"
	run -1 postern test names www.lab-b.net
	far_none " > ($NET4\.($BYTES|$OTHER)|$NET6:)"
}

@test "B-18: an allowed name is allowed on its ports only, out of all there are" {
	sandbox ports --policy "$(policy ports 'host: bytes.lab-site.org' '{host: echo.lab-site.org, ports: [22, 9001]}')"
	local name address port ports=(22 25 5432 8080 8443 853 3128 1 65535)
	for name in bytes.lab-site.org echo.lab-site.org; do
		guest ports dig +short "$name" A "$name" AAAA >/dev/null
	done
	for port in 22 25 5432 8443; do
		guest_fails ports curl -sSk "https://bytes.lab-site.org:$port/"
		log_has ports ".dst == \"45.45.45.40\" and .dport == $port and .reason == \"not_leased\" and .verdict == \"denied\""
	done
	dials_refused ports tcp "$NET4.$BYTES" "$NET6:$BYTES" "${ports[@]}"
	mark
	# Every port there is. On 53, at any address, our own resolver answers.
	for address in "$NET6:$BYTES" "$NET4.$ECHO"; do
		seq 1 65535 | xargs -n 20000 -- nsenter --net=/run/netns/pl-guest-ports -- "$LAB_DIR/dial.py" tcp "$address" >"$LAB/tmp/sweep"
		equal "ports that were tried" 65535 "$(wc -l <"$LAB/tmp/sweep")"
		ports="53 80 443"
		[[ $address != *.$ECHO ]] || ports="22 53 9001"
		equal "open ports of $address" "$ports" "$(awk '$1 == "connected" {print $4}' "$LAB/tmp/sweep" | sort -n | xargs)"
		equal "other ends than refused" "" "$(awk '$1 != "refused" && $1 != "connected"' "$LAB/tmp/sweep")"
	done
	# Inspected ports are dialled for nobody who says nothing; of the others, exactly the allowed ones were.
	far_none "> ($NET4\.|$NET6:)$BYTES "
	equal "ports dialled upstream" "22 9001" "$(far_packets "> $NET4\.$ECHO .* S " | awk '{print $6}' | sort -nu | xargs)"
	log_has ports '.dst == "45.45.45.30" and .dport == 9001 and .verdict == "allowed" and .name_source == "lease"'
	equal "ports on record as allowed" "22 9001" "$(log_json ports | jq 'select(.kind == "flow") | .dport' | sort -nu | xargs)"
	log_has ports '.kind == "deny" and .reason == "not_leased" and .detail == "packets not logged one by one" and .count > 1000'
	sandbox_gone ports
}
