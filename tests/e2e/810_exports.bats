#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# The log taken away, as CSV, Zeek's logs, OCSF and ECS: real traffic of every kind, each format checked against its schema
# by tests/lab/check_export.py, and held against the native JSON of the same rows.

bats_require_minimum_version 1.5.0
load ../lab/lab

NEWS='host: news.lab-site.org'

setup_file() {
	lab_up
	printf '%s.%s/32 DE 64510 Lab Web\n' "$NET4" "$WEB" >"$LAB/tmp/places"
	"$LAB_DIR/mmdb" "$LAB/tmp/country.mmdb" nested <"$LAB/tmp/places"
	"$LAB_DIR/mmdb" "$LAB/tmp/asn.mmdb" flat <"$LAB/tmp/places"
	posternd_start --country-db "$LAB/tmp/country.mmdb" --asn-db "$LAB/tmp/asn.mmdb"
	sandbox take --policy "$(policy take "$NEWS" '{host: echo.lab-site.org, ports: [7, 5000], udp: true}' \
		'{host: echo.lab-site.org, ports: [7, 81, 9003]}')" --label task=4711
	sandbox other --policy "$(policy other "$NEWS")"
	# Allowed, in both protocols and families, reset by the far side, nobody there.
	guest take curl -sS -4 -o /dev/null https://news.lab-site.org/
	guest take curl -sS -6 -o /dev/null https://news.lab-site.org/
	guest take curl -sS -4 -o /dev/null http://news.lab-site.org/
	guest take dig +short echo.lab-site.org >/dev/null
	guest take "$LAB_DIR/client.py" udp "$NET4.$ECHO" 5000 hello
	guest_fails take curl -sS -4 -m 3 http://echo.lab-site.org:9003/
	guest_fails take curl -sS -4 -m 3 http://echo.lab-site.org:81/
	# Refused: by name in DNS, by hello, by Host, by address, by the kernel.
	guest_fails take curl -sS -m 3 https://www.lab-b.net/
	guest_fails take curl -sS -m 3 --resolve "www.lab-b.net:443:$NET4.$WEB" https://www.lab-b.net/
	guest_fails take curl -sS -m 3 --fail --resolve "www.lab-b.net:80:$NET4.$WEB" http://www.lab-b.net/
	guest_fails take curl -sS -m 3 http://169.254.169.254/latest/
	guest_fails take ping -c 1 -W 1 "$NET4.$WEB"
	# Edits, marks, an edit that cuts.
	postern allow take www.lab-a.com
	postern deny take gist.example.org
	postern mark take "step 1: „open“ the =news"
	guest other curl -sS -4 -o /dev/null https://news.lab-site.org/
	counted() { log_json take | jq -e -s 'any(.[]; .reason == "never_address" and .kind == "deny") and
		([.[] | select(.kind == "flow" and .proto == "tcp" and .end == "open")] == [])'; }
	wait_for 10 counted
}

setup() {
	mark
}

# taken FORMAT [option...]: write an export to $LAB/tmp/out; says how many rows it has
taken() {
	local format=$1
	shift
	postern log -o "$format" "$@" >"$LAB/tmp/out"
}
# Is it valid? valid csv|zeek|ecs|ocsf [VERSION] WANTED-ROWS
valid() {
	local wanted=${*: -1}
	run -0 "$LAB_DIR/check_export.py" "${@:1:$#-1}" <"$LAB/tmp/out"
	equal "rows of $1" "$wanted" "$output"
}
rows() { postern log --since 1d -o json "$@" | wc -l; }

# bats test_tags=smoke
@test "csv: one table of all kinds, quoted, with the rows and figures of the JSON" {
	taken csv take
	valid csv "$(rows take)"
	python3 - "$LAB/tmp/out" <(log_json take) <<-'PYTHON'
		import csv, json, sys
		table = list(csv.DictReader(open(sys.argv[1], newline="")))
		rows = [json.loads(line) for line in open(sys.argv[2])]
		for cell, row in zip(table, rows):
		    assert cell["id"] == row["id"] and cell["time"] == row["ts"] and cell["sandbox"] == "take", (cell, row)
		    for name in ("verdict", "reason", "src", "dst", "sport", "dport", "proto", "end", "community_id", "ja4", "country", "asn"):
		        assert cell[name] == str(row.get(name, "")), (name, cell[name], row)
		    for name in ("bytes_out", "bytes_in"):
		        assert cell[name] == str(row.get(name, "")), (name, cell[name], row)
		    assert cell["name"] == row.get("name", row.get("qname", "")), row
		assert len(table) == len(rows)
		assert {cell["kind"] for cell in table} == {"connection", "dns", "event"}
		assert any(cell["country"] == "DE" and cell["asn"] == "64510" and cell["as_org"] == "Lab Web" for cell in table)
		assert {cell["labels"] for cell in table} == {'{"task":"4711"}'}, table
	PYTHON
	equal "in JSON" '{"task":"4711"}' "$(log_json take | jq -c .labels | sort -u)"
}

@test "zeek: conn, dns, ssl and http logs with Zeek's headers and types, joined by uid" {
	taken zeek take
	valid zeek "$(rows take --kind connection)"
	conn() { grep -v '^#' "$LAB/tmp/out" | cut -f "$1"; }
	matches "fields" $'^#fields\tts\tuid\tid.orig_h' "$(grep '^#fields' "$LAB/tmp/out")"
	matches "closed" '^#close' "$(tail -n 1 "$LAB/tmp/out")"
	equal "connections that ended in order" "$(log_count take '.kind == "flow" and .end == "fin" and .proto == "tcp"')" \
		"$(grep -c $'\ttcp\t.*\tSF\t' "$LAB/tmp/out")"
	# Guest, far side and bytes of one of them.
	local want
	want=$(log_json take | jq -r 'select(.kind == "flow" and .name == "news.lab-site.org" and .dport == 443 and .dst == "45.45.45.10") |
		["C" + .id, .src, .sport, .dst, .dport, .bytes_out, .bytes_in, .community_id] | @tsv' | head -n 1)
	equal "one line" "$want" "$(grep "^[0-9.]*"$'\t'"${want%%$'\t'*}" "$LAB/tmp/out" | cut -f 2-6,10,11,23)"
	grep $'\tssl\t.*\tSF\t' "$LAB/tmp/out" | cut -f 2 | sort >"$LAB/tmp/uids"
	matches "states" "RSTR" "$(conn 12)"
	matches "states" "REJ" "$(conn 12)"
	matches "metadata" $'169.254.169.254\t80\ttcp\t.*\tREJ\t.*never_address' "$(cat "$LAB/tmp/out")"
	taken zeek-ssl take
	valid zeek "$(grep -vc '^#' "$LAB/tmp/out")"
	equal "uids that conn.log does not have" "" "$(grep -v '^#' "$LAB/tmp/out" | cut -f 2 | sort | comm -13 - "$LAB/tmp/uids")"
	matches "hello" $'\tnews.lab-site.org\t.*\tt13d[^\t]*\tTLSv13\t' "$(cat "$LAB/tmp/out")"
	taken zeek-http take
	valid zeek "$(grep -vc '^#' "$LAB/tmp/out")"
	matches "request" $'\t80\t-\tGET\tnews.lab-site.org\t' "$(cat "$LAB/tmp/out")"
	taken zeek-dns take
	valid zeek "$(rows take --kind dns)"
	matches "answer" $'\tnews.lab-site.org\t1\tC_INTERNET\t1\tA\t0\tNOERROR\t.*\t'"$NET4.$WEB"$'\t[0-9]+.000000\tF\t' "$(cat "$LAB/tmp/out")"
	matches "refusal" $'\twww.lab-b.net\t.*\tNXDOMAIN\t.*\tT\ttake\tdenied\tno_rule\t' "$(cat "$LAB/tmp/out")"
}

@test "ocsf: valid in each version by its own required members and enumerations, and nothing is lost in the old ones" {
	local version
	for version in 1.1 1.3 1.5 1.8; do
		taken ocsf take --ocsf-version "$version"
		valid ocsf "$version" "$(rows take)"
		equal "versions" "$version.0" "$(jq -r .metadata.version "$LAB/tmp/out" | sort -u)"
		equal "uids" "" "$(jq -r .metadata.uid "$LAB/tmp/out" | sort | uniq -d)"
		# Wherever it stands.
		equal "community ids in $version" "$(log_json take | jq -r '.community_id // empty' | sort)" \
			"$(jq -r '.connection_info.community_uid // .unmapped.community_uid // empty' "$LAB/tmp/out" | sort)"
		equal "ja4 in $version" "$(log_json take | jq -r '.ja4 // empty' | sort)" \
			"$(jq -r '(.ja4_fingerprint_list // .unmapped.ja4_fingerprint_list // [])[].value' "$LAB/tmp/out" | sort)"
		equal "networks in $version" "$(log_json take | jq -r '.asn // empty' | sort)" \
			"$(jq -r '(.dst_endpoint.autonomous_system // .unmapped.autonomous_system // {}).number // empty' "$LAB/tmp/out" | sort)"
	done
	taken ocsf take
	equal "the newest is the default" "1.8.0" "$(jq -r .metadata.version "$LAB/tmp/out" | sort -u)"
	has() { jq -e -s "any(.[]; $1)" "$LAB/tmp/out" >"$LAB/tmp/has" || fail "none with: $1"; }
	has '.type_uid == 400102 and .action_id == 1 and .dst_endpoint.hostname == "news.lab-site.org" and .traffic.bytes_in > 0 and .tls.version == "1.3"'
	has '.type_uid == 400103 and .dst_endpoint.port == 9003'
	has '.type_uid == 400104 and .disposition_id == 27 and .status_code == "upstream_error"'
	has '.type_uid == 400105 and .action_id == 2 and .status_code == "never_address" and .severity_id == 3 and .dst_endpoint.ip == "169.254.169.254"'
	has '.type_uid == 400306 and .query.hostname == "news.lab-site.org" and .answers[0].rdata == "45.45.45.10"'
	has '.type_uid == 400306 and .query.hostname == "www.lab-b.net" and .action_id == 2 and .rcode_id == 3'
	has '.type_uid == 300401 and .entity.name == "take" and .actor.user.uid == "0"'
	has '.type_uid == 300403 and .entity.type_id == 5 and .actor.process.name == "postern" and (.comment | test("www.lab-a.com"))'
	equal "labels" '["task=4711"]' "$(jq -c .metadata.labels "$LAB/tmp/out" | sort -u)"
	has '.class_uid == 0 and .message == "step 1: „open“ the =news"'
	equal "totals" "$(log_json take | jq -s '[.[].bytes_out // 0] | add')" "$(jq -s '[.[] | (.traffic // .cumulative_traffic).bytes_out // 0] | add' "$LAB/tmp/out")"
	# The daemon's own.
	taken ocsf --kind event
	valid ocsf 1.8 "$(rows --kind event)"
	has '.type_uid == 600203 and .app.name == "posternd"'
}

@test "ecs: fields and words of the schema; what a firewall refused is a success of it" {
	taken ecs take
	valid ecs "$(rows take)"
	has() { jq -e -s "any(.[]; $1)" "$LAB/tmp/out" >"$LAB/tmp/has" || fail "none with: $1"; }
	has '.event.type == ["connection", "allowed", "end"] and .destination.domain == "news.lab-site.org" and .source.nat.ip != null
		and .destination.geo.country_iso_code == "DE" and .destination["as"].number == 64510 and .network.community_id != null'
	has '.event.type == ["connection", "denied"] and .event.outcome == "success" and .event.code == "never_address"'
	has '.event.type == ["protocol", "denied"] and .dns.question.name == "www.lab-b.net" and .dns.response_code == "NXDOMAIN"'
	has '.dns.resolved_ip == ["45.45.45.10"]'
	equal "labels" '{"task":"4711"}' "$(jq -c .labels "$LAB/tmp/out" | sort -u)"
	has '.event.action == "policy" and .event.category == ["configuration"] and .process.name == "postern" and .user.id == "0"'
	has '.event.action == "mark" and .message == "step 1: „open“ the =news"'
	equal "totals" "$(log_json take | jq -s '[.[].bytes_in // 0] | add')" "$(jq -s '[.[].destination.bytes // 0] | add' "$LAB/tmp/out")"
	equal "ids" "" "$(jq -r .event.id "$LAB/tmp/out" | sort | uniq -d)"
}

@test "all filters of log hold in every format, and -n counts what is printed" {
	local format
	for format in csv zeek zeek-dns ocsf ecs; do
		taken "$format" --sandbox other
		run ! grep -q 'lab-b\|169\.254' "$LAB/tmp/out"
		grep -q 'news.lab-site.org' "$LAB/tmp/out"
	done
	taken ocsf take --denied
	valid ocsf 1.8 "$(rows take --denied)"
	equal "actions" 2 "$(jq .action_id "$LAB/tmp/out" | grep -v 1 | sort -u)"
	taken ecs take --host news.lab-site.org --kind dns
	equal "names" "news.lab-site.org" "$(jq -r .dns.question.name "$LAB/tmp/out" | sort -u)"
	taken zeek take -n 3
	valid zeek 3
	taken zeek-dns take -n 2
	valid zeek 2
	taken csv take --until 2001-01-01T00:00:00Z
	valid csv 0
	taken csv --kind event --event mark
	valid csv 1
	run -2 postern log -o zeek --kind dns
	matches "message" "no place for rows" "$output"
	run -2 postern log -o ocsf --ocsf-version 2
	matches "message" "1.1, 1.3, 1.5 or 1.8" "$output"
	run -2 postern log -o eve
	matches "message" "csv, ocsf, ecs, zeek" "$output"
	run -1 postern log nobody -o csv
	equal "no table" "" "$(postern log nobody -o csv 2>/dev/null || true)"
}

@test "-f: a connection opens and closes as two events, in Zeek's log it is one line at its end" {
	postern log take -o ocsf -n 0 -f >"$LAB/tmp/follow.ocsf" 3>&- &
	local ocsf=$!
	postern log take -o zeek -n 0 -f >"$LAB/tmp/follow.zeek" 3>&- &
	local zeek=$!
	headed() { grep -q '^#types' "$LAB/tmp/follow.zeek"; }
	wait_for 5 headed
	background guest take "$LAB_DIR/hold.py" "$LAB/tmp/held" tcp:echo.lab-site.org:7/4
	opened() { jq -e -s 'any(.[]; .type_uid == 400101 and .dst_endpoint.port == 7)' "$LAB/tmp/follow.ocsf"; }
	wait_for 10 opened
	equal "lines of Zeek's" 0 "$(grep -c $'\t7\ttcp' "$LAB/tmp/follow.zeek" || true)"
	background_end
	closed() { jq -e -s 'any(.[]; (.type_uid == 400102 or .type_uid == 400103) and .dst_endpoint.port == 7 and .traffic.bytes_out > 0)' \
		"$LAB/tmp/follow.ocsf" && grep -q $'\t7\ttcp' "$LAB/tmp/follow.zeek"; }
	wait_for 10 closed
	kill "$ocsf" "$zeek"
	equal "lines of Zeek's" 1 "$(grep -c $'\t7\ttcp' "$LAB/tmp/follow.zeek")"
	equal "one connection" 1 "$(jq -r 'select(.dst_endpoint.port == 7) | .connection_info.uid' "$LAB/tmp/follow.ocsf" | sort -u | wc -l)"
	equal "events twice" "" "$(jq -r .metadata.uid "$LAB/tmp/follow.ocsf" | sort | uniq -d)"
	cp "$LAB/tmp/follow.ocsf" "$LAB/tmp/out"
	valid ocsf 1.8 "$(wc -l <"$LAB/tmp/out")"
	cp "$LAB/tmp/follow.zeek" "$LAB/tmp/out"
	valid zeek "$(grep -vc '^#' "$LAB/tmp/out")"
}

@test "F-28, F-29, F-30: names, hosts and marks full of control bytes, formulas and markup are text in every format" {
	sandbox hostile --policy "$(policy hostile "$NEWS")"
	guest hostile env "PYTHONPATH=$LAB_DIR" python3 - "$GATEWAY4" <<-'PYTHON'
		import sys
		import hostile
		names = [b"\x1b]0;owned\x07", b"a\r\nfaked line", "\u202egpj.exe".encode(), b"\xff\xfe\x00", b"=cmd|' /C calc'!A0", b"-1+1",
		         b"@SUM(1)", b"+1", b"<script>alert(1)</script>", b"\"},{\"x\":\"", b"a\tb,c", b"-", b"(empty)", b"\\x1b'); DROP TABLE",
		         b"\x80" * 253]
		hostile.offer(sys.argv[1], names)
	PYTHON
	equal "requests at the far side" "" "$(web_log)"
	far_none "> ($NET4\.|$NET6:)$WEB (80|443) [A-Z]*P"
	local text
	for text in '=cmd|calc' '<img src=x onerror=y>' "'); DROP TABLE events;--" $'\u202egpj.exe' '"},{"x":"'; do
		postern mark hostile "$text"
	done
	denied() { (($(log_count hostile '.kind == "deny"') >= 30)); }
	wait_for 5 denied
	taken csv hostile
	valid csv "$(rows hostile)"
	# What stands in the table, and what a spreadsheet would see first.
	matches "a formula" "\"'=cmd\\|' /C calc'!A0\"" "$(cat "$LAB/tmp/out")"
	run ! grep -E '(^|,)"[=+@-]' "$LAB/tmp/out"
	for format in zeek zeek-dns zeek-ssl zeek-http; do
		taken "$format" hostile
		valid zeek "$(grep -vc '^#' "$LAB/tmp/out")"
		run ! grep -q '^faked' "$LAB/tmp/out"
	done
	local version
	for version in 1.1 1.3 1.5 1.8; do
		taken ocsf hostile --ocsf-version "$version"
		valid ocsf "$version" "$(rows hostile)"
	done
	equal "marks" 5 "$(jq -r 'select(.metadata.event_code == "mark") | .message' "$LAB/tmp/out" | wc -l)"
	taken ecs hostile
	valid ecs "$(rows hostile)"
	postern detach hostile
}
