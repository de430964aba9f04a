#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Whole policies on the command line: check, show, diff, apply with and without --dry-run; presets.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	cat >"$LAB/tmp/wide.yaml" <<-'END'
		version: 1
		allow:
		  - host: news.lab-site.org
		  - host: "*.lab-a.com"
		  - host: echo.lab-site.org
		    ports: [7, 9002]
	END
	cat >"$LAB/tmp/narrow.yaml" <<-'END'
		version: 1
		allow:
		  - host: news.lab-site.org
		  - host: www.lab-cname.com
		  - host: echo.lab-site.org
		    ports: [9002]
	END
	sandbox task --policy "$LAB/tmp/wide.yaml"
}

setup() {
	mark
}

@test "check reports every error of a file with line and column, and what is good" {
	printf 'version: 1\nallow:\n  - hots: x.com\n  - host: 10.0.0.1\n  - host: a.com\n    ports: [70000]\n' >"$LAB/tmp/bad.yaml"
	run -5 postern policy check "$LAB/tmp/bad.yaml"
	matches "first" "bad.yaml:3:5" "$output"
	matches "second" "bad.yaml:4" "$output"
	matches "third" "bad.yaml:6" "$output"
	# All of them, however many: the unquoted wildcard does not hide what stands behind it, and none is only counted.
	{
		printf 'version: 1\nallow:\n  - host: *.lab-a.com\n'
		printf '  - host: a..%s.example\n' {1..60}
	} >"$LAB/tmp/many.yaml"
	run -5 postern policy check "$LAB/tmp/many.yaml"
	equal "errors" 61 "$(grep -c "many.yaml:[0-9]*:11: " <<<"$output")"
	run -5 --separate-stderr postern policy check -o json "$LAB/tmp/many.yaml" "$LAB/tmp/wide.yaml"
	equal "JSON" "false 61 3 true 0" "$(jq -r '[.[0].good, (.[0].errors | length), .[0].errors[0].line, .[1].good,
		(.[1].errors | length)] | join(" ")' <<<"$output")"
	run -0 postern policy check "$LAB/tmp/wide.yaml" "$LAB/tmp/narrow.yaml"
	matches "good" "wide.yaml: good, 3 rules" "$output"
}

@test "show prints the text as given, and the effective rules with their origin, the implicit ones included" {
	run -0 postern policy show task
	equal "text" "$(cat "$LAB/tmp/wide.yaml")" "$output"
	run -0 postern policy show task --effective
	matches "never list" "^deny the never list" "$output"
	matches "rule" '^allow \*.lab-a.com \(wide.yaml:4\)' "$output"
	matches "the rest" "^deny everything else" "$output"
}

@test "diff compares files and sandboxes by rule" {
	run -1 postern policy diff task "$LAB/tmp/narrow.yaml"
	matches "gone" '^-allow \*.lab-a.com ' "$output"
	matches "new" '^\+allow www.lab-cname.com ' "$output"
	run -0 postern policy diff "$LAB/tmp/wide.yaml" "$LAB/tmp/wide.yaml"
	equal "nothing" "" "$output"
}

@test "terms and settings count as much as rules: diff, dry run and show --effective say them" {
	cat >"$LAB/tmp/terms.yaml" <<-'END'
		version: 1
		mode: learn
		limits: {upload: {soft: 1MiB, hard: 3MiB}}
		allow:
		  - host: news.lab-site.org
		    uses: 3
		    limits: {connections: 20}
		  - host: "*.lab-a.com"
		  - host: echo.lab-site.org
		    ports: [7, 9002]
		    expires: 2030-01-01T00:00:00Z
	END
	run -1 postern policy diff "$LAB/tmp/wide.yaml" "$LAB/tmp/terms.yaml"
	equal "difference" "-allow news.lab-site.org (wide.yaml:3)
-allow echo.lab-site.org:7,9002 (wide.yaml:5)
+mode: learn (terms.yaml:2)
+limits: upload 3MiB (soft 1MiB) (terms.yaml:3)
+allow news.lab-site.org 3 uses, connections 20 (terms.yaml:5)
+allow echo.lab-site.org:7,9002 until 2030-01-01T00:00:00Z (terms.yaml:9)" "${output//$LAB\/tmp\//}"
	sandbox terms --policy "$LAB/tmp/terms.yaml"
	run -0 postern policy diff terms "$LAB/tmp/terms.yaml"
	run -0 postern show terms
	matches "loud" '^mode +learn: what no rule allows is let through' "$output"
	run -0 postern policy apply task "$LAB/tmp/terms.yaml" --dry-run
	matches "warning" 'task would learn: what no rule allows is let through' "$output"
	run -0 postern policy show terms --effective
	matches "mode" '^mode: learn \(terms.yaml:2\)$' "$output"
	matches "limit" '^limits: upload 3MiB \(soft 1MiB\) \(terms.yaml:3\)$' "$output"
	matches "terms" '^allow news.lab-site.org \(terms.yaml:5\) 0 of 3 used, connections 20$' "$output"
	matches "learning" '^allow TCP to everything else by its name, and mark it' "$output"
	run -0 postern policy apply terms "$LAB/tmp/wide.yaml" --dry-run
	matches "mode" '^-mode: learn \(terms.yaml:2\)$' "$output"
	matches "limit" '^-limits: upload 3MiB \(soft 1MiB\) \(terms.yaml:3\)$' "$output"
	matches "old terms" '^-allow news.lab-site.org 3 uses, connections 20 ' "$output"
	matches "new terms" '^\+allow news.lab-site.org \(wide.yaml:3\)$' "$output"
	sandbox_gone terms
}

# The connections that an answer ($output) says are cut, a line each: record, name, port. jq would round the record's number.
cut_of() {
	python3 -c 'import json, sys
for cut in json.load(sys.stdin)["cut"]:
    print("%016x" % cut["record"], cut["name"], cut["port"])' <<<"$output" | sort
}

@test "F-33: apply --dry-run names exactly the connections that apply then cuts, and changes nothing" {
	local dry applied
	# Three that the new policy cuts, and one that it does not.
	background guest task "$LAB_DIR/hold.py" "$LAB/tmp/held" tcp:echo.lab-site.org:7/4 tcp:echo.lab-site.org:7/4 \
		tcp:echo.lab-site.org:7/6 tls:news.lab-site.org:443/4
	four() { (($(grep -c '"event": "open"' "$LAB/tmp/held") == 4)); }
	wait_for 10 four
	equal "open" 4 "$(postern show task -o json | jq .flows)"
	run -0 postern policy apply task "$LAB/tmp/narrow.yaml" --dry-run -o json
	dry=$(cut_of)
	equal "would be cut" 3 "$(jq '.cut_count' <<<"$output")"
	equal "preview" true "$(jq '.preview' <<<"$output")"
	run -0 postern policy show task
	equal "still the old text" "$(cat "$LAB/tmp/wide.yaml")" "$output"
	run -0 postern policy apply task "$LAB/tmp/narrow.yaml" -o json
	applied=$(cut_of)
	equal "cut" "$dry" "$applied"
	three_ended() { (($(grep -c '"event": "end"' "$LAB/tmp/held") == 3)); }
	wait_for 10 three_ended
	background_end
	equal "the one that goes on" 1 "$(grep -c '"event": "alive"' "$LAB/tmp/held")"
	# Nothing else ended by it, and all of these did.
	log_has task '.end == "policy"'
	ended() { [[ $(log_json task | jq -r 'select(.end == "policy") | "\(.id) \(.name) \(.dport)"' | sort) == "$1" ]]; }
	wait_for 5 ended "$dry" || fail "ended: $(log_json task | jq -c 'select(.end)')"
	matches "difference" '-allow \*.lab-a.com' "$(jq -c .change <<<"$output")"
	run -0 postern policy show task
	equal "the new text" "$(cat "$LAB/tmp/narrow.yaml")" "$output"
	guest_fails task curl -sS https://api.lab-a.com/
	run -0 guest task curl -sS https://news.lab-site.org/
	log_has task '.end == "policy" and .dport == 7'
}

@test "test says which rule comes near: other ports, names below, the name above" {
	sandbox near --policy "$LAB/tmp/wide.yaml"
	run -1 postern test near echo.lab-site.org
	matches "ports" 'hint +info +of echo.lab-site.org these ports are allowed: 7, 9002$' "$output"
	run -1 postern test near lab-a.com
	matches "below" 'hint +info +allow \*.lab-a.com \(wide.yaml:4\) is about names below lab-a.com, not about itself' "$output"
	run -1 postern test near a.b.news.lab-site.org:80
	matches "above" 'hint .*allow news.lab-site.org \(wide.yaml:3\) is about news.lab-site.org alone' "$output"
	run -1 postern test near lab-b.net
	[[ $output != *hint* ]] || fail "a hint: $output"
	run -2 postern test near 'https://news.lab-site.org\@lab-b.net/'
	sandbox_gone near
}

@test "a policy that is broken is not applied" {
	printf 'version: 1\nallow: [x]\n' >"$LAB/tmp/broken.yaml"
	run -5 postern policy apply task "$LAB/tmp/broken.yaml"
	matches "message" "broken.yaml:2" "$output"
	run -0 guest task curl -sS https://news.lab-site.org/
}

@test "presets are listed and shown" {
	mkdir -p "$LAB/tmp/presets"
	printf 'version: 1\nname: news\nallow:\n  - host: news.lab-site.org\n' >"$LAB/tmp/presets/news.yaml"
	export POSTERN_PRESET_DIR=$LAB/tmp/presets
	run -0 postern preset list
	equal "list" news "$output"
	run -0 postern preset show news
	matches "text" "host: news.lab-site.org" "$output"
	run -0 postern preset show news -o json
	equal "JSON" news "$(jq -r 'select(.text | test("host: news")) | .name' <<<"$output")"
	run -1 postern preset show nws
	matches "message" "news" "$output"
}

@test "--if-generation: who builds on an older generation changes nothing" {
	local generation
	generation=$(postern show task -o json | jq .generation)
	run -0 postern allow task one.lab-a.com --if-generation "$generation"
	run -1 postern allow task two.lab-a.com --if-generation "$generation"
	matches "message" "is at generation $((generation + 1)), not $generation" "$output"
	run -1 postern policy apply task "$LAB/tmp/wide.yaml" --if-generation "$generation"
	run -1 postern revoke task one.lab-a.com --if-generation "$generation"
	run -2 postern deny task one.lab-a.com --if-generation next
	equal "generation" $((generation + 1)) "$(postern show task -o json | jq .generation)"
	run -0 postern revoke task one.lab-a.com --if-generation $((generation + 1))
}
