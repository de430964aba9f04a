#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# What a sandbox did, held against a policy that it does not have yet (replay), and made into one (suggest).

bats_require_minimum_version 1.5.0
load ../lab/lab

# Everything the task does; each part must work.
# shellcheck disable=SC2016 # expanded by the inner shell
workload() {
	guest "$1" curl -sS -o /dev/null https://news.lab-site.org/ &&
		guest "$1" curl -4 -sS -o /dev/null https://api.lab-a.com/ &&
		guest "$1" curl -6 -sS -o /dev/null https://six.lab-a.com/ &&
		guest "$1" bash -c 'exec 3<>/dev/tcp/echo.lab-site.org/7 && echo hello >&3 && read -r -t 5 line <&3 && [[ $line == hello ]]'
}

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
	sandbox task --policy "$LAB/tmp/wide.yaml"
	workload task
	guest_fails task curl -sS https://www.lab-b.net/
	guest_fails task curl -sS --resolve git.lab-code.org:443:45.45.45.22 https://git.lab-code.org/
	guest_fails task curl -sS -m 2 http://10.0.0.1/
	log_has task '.qname == "www.lab-b.net" and .reason == "no_rule"'
	log_has task '.dport == 7 and .verdict == "allowed"'
	log_has task '.reason == "never_address"'
}

setup() {
	mark
}

@test "replay of the policy in force changes nothing, and says what it left out" {
	run -0 postern policy replay "$LAB/tmp/wide.yaml" --sandbox task
	matches "nothing" "^nothing would change" "$output"
	matches "left out" "records judged; left out, as no rule changes them: .*never_address [0-9]+" "$output"
	equal "no traffic" "" "$(web_log)"
}

@test "replay of a narrower policy names exactly what then breaks and opens, with the rule, and so without the daemon" {
	cat >"$LAB/tmp/other.yaml" <<-'END'
		version: 1
		allow:
		  - host: news.lab-site.org
		  - host: www.lab-b.net
		  - host: echo.lab-site.org
		    ports: [9002]
		deny:
		  - host: six.lab-a.com
	END
	run -1 postern policy replay "$LAB/tmp/other.yaml" --sandbox task --since 1h -o json
	equal "breaks" "api.lab-a.com dns,api.lab-a.com:443/tcp,echo.lab-site.org:7/tcp,six.lab-a.com dns,six.lab-a.com:443/tcp" \
		"$(jq -r '[.breaks[].target] | sort | join(",")' <<<"$output")"
	equal "opens" "www.lab-b.net dns" "$(jq -r '[.opens[].target] | join(",")' <<<"$output")"
	equal "deny rule" "deny six.lab-a.com ($LAB/tmp/other.yaml:8)" \
		"$(jq -r '.breaks[] | select(.target == "six.lab-a.com:443/tcp") | .rule' <<<"$output")"
	equal "no rule" no_rule "$(jq -r '.breaks[] | select(.target == "echo.lab-site.org:7/tcp") | .reason' <<<"$output")"
	equal "rule that opens" "allow www.lab-b.net ($LAB/tmp/other.yaml:4)" "$(jq -r '.opens[0].rule' <<<"$output")"
	equal "count" 1 "$(jq '.breaks[] | select(.target == "echo.lab-site.org:7/tcp") | .count' <<<"$output")"

	posternd_stop
	run -1 postern policy replay "$LAB/tmp/other.yaml" --sandbox task
	matches "table" '^breaks +echo.lab-site.org:7/tcp +1 +20[0-9TZ:.-]+ +20[0-9TZ:.-]+ +no rule' "$output"
	matches "table" '^opens +www.lab-b.net dns .* allow www.lab-b.net \(.*other.yaml:4\)' "$output"
	posternd_start
}

@test "replay judges as posternd would: the organisation's policy under the file, live edits over it" {
	printf 'version: 1\nallow:\n  - host: news.lab-site.org\n  - host: "*.lab-a.com"\n' >"$LAB/tmp/half.yaml"
	printf 'version: 1\ndeny:\n  - host: api.lab-a.com\n' >"$LAB/tmp/organisation.yaml"
	run -1 --separate-stderr postern policy replay "$LAB/tmp/half.yaml" --sandbox task --since 1h -o json
	equal "breaks" "echo.lab-site.org dns,echo.lab-site.org:7/tcp" "$(jq -r '[.breaks[].target] | sort | join(",")' <<<"$output")"
	run -0 postern allow task echo.lab-site.org:7
	run -0 --separate-stderr postern policy replay "$LAB/tmp/half.yaml" --sandbox task --since 1h -o json
	run -1 --separate-stderr postern policy replay "$LAB/tmp/half.yaml" --sandbox task --since 1h -o json \
		--organisation "$LAB/tmp/organisation.yaml"
	equal "breaks" "api.lab-a.com dns,api.lab-a.com:443/tcp" "$(jq -r '[.breaks[].target] | sort | join(",")' <<<"$output")"
	equal "rule" "deny api.lab-a.com ($LAB/tmp/organisation.yaml:3)" "$(jq -r '.breaks[1].rule' <<<"$output")"
	# A database of another host has no daemon to ask.
	run -1 --separate-stderr postern policy replay "$LAB/tmp/half.yaml" --sandbox task --since 1h -o json \
		--db "$LAB/state/audit/audit.db"
	equal "breaks" "echo.lab-site.org dns,echo.lab-site.org:7/tcp" "$(jq -r '[.breaks[].target] | sort | join(",")' <<<"$output")"
	run -0 postern revoke task echo.lab-site.org:7
	run -2 postern policy replay "$LAB/tmp/half.yaml" --sandbox task --organisation
	run -1 postern policy replay "$LAB/tmp/half.yaml" --sandbox task --organisation "$LAB/tmp/none.yaml"
}

@test "replay refuses what would look like a good answer: no such sandbox, no database, a broken file, no name" {
	run -1 postern policy replay "$LAB/tmp/wide.yaml" --sandbox tsak
	matches "message" "no sandbox tsak" "$output"
	run -1 postern policy replay "$LAB/tmp/wide.yaml" --sandbox task --since 2099-01-01
	matches "message" "no record of task" "$output"
	run -1 postern policy replay "$LAB/tmp/wide.yaml" --sandbox task --db "$LAB/tmp/none.db"
	matches "message" "none.db" "$output"
	printf 'version: 1\nallow: [x]\n' >"$LAB/tmp/broken.yaml"
	run -5 postern policy replay "$LAB/tmp/broken.yaml" --sandbox task
	matches "message" "broken.yaml:2" "$output"
	run -2 postern policy replay "$LAB/tmp/wide.yaml"
	matches "message" "--sandbox" "$output"
	run -2 postern policy replay "$LAB/tmp/wide.yaml" --sandbox task --since tomorrow
}

@test "a suggested policy, applied to a fresh sandbox, lets the same workload pass and nothing else" {
	sandbox learned --allow '*.lab-site.org:7,80,443' --allow 'lab-a.com' --allow '*.lab-a.com'
	workload learned
	guest learned curl -sS -o /dev/null https://www.lab-a.com/
	guest_fails learned curl -sS https://metadata.google.internal/
	# A name that would break out of a comment, a string and a terminal.
	guest learned "$LAB_DIR/query.py" "$GATEWAY4:53" >/dev/null <<-'TABLE'
		dns_denied query("a\"\n  - host: \x1b[2J", "lab-b", "net")
	TABLE
	log_has learned '.reason == "dns_denied"'
	log_has learned '.qname == "www.lab-a.com" and .verdict == "allowed"'
	log_has learned '.dport == 7 and .verdict == "allowed"'
	log_has learned '.reason == "never_name"'
	postern policy suggest learned --since 1h >"$LAB/tmp/suggested.yaml"
	run -0 cat "$LAB/tmp/suggested.yaml"
	matches "exact host" '^  - host: "news.lab-site.org"  # allowed [0-9]+ so far; 20[0-9T:-]+Z to 20[0-9T:-]+Z$' "$output"
	matches "port" '^    ports: \[7\]$' "$output"
	matches "siblings" '^  - host: "\*.lab-a.com"  # allowed' "$output"
	matches "one of them" '^  # six.lab-a.com: allowed' "$output"
	matches "never list" '^# left out: metadata.google.internal: .*can never be allowed' "$output"
	matches "counted" '^# left out: 1 record about names and addresses that no rule can name' "$output"
	equal "rules" 3 "$(grep -c '^  - ' "$LAB/tmp/suggested.yaml")"
	run -1 grep -P '[^\x20-\x7e]' "$LAB/tmp/suggested.yaml"

	run -0 postern policy check "$LAB/tmp/suggested.yaml"
	run -0 postern policy replay "$LAB/tmp/suggested.yaml" --sandbox learned
	sandbox fresh
	guest_fails fresh curl -sS https://news.lab-site.org/
	run -0 postern policy apply fresh "$LAB/tmp/suggested.yaml"
	workload fresh
	guest fresh curl -sS -o /dev/null https://www.lab-a.com/
	mark
	guest_fails fresh curl -sS https://www.lab-site.org/
	guest_fails fresh curl -sS https://www.lab-b.net/
	guest_fails fresh curl -sS https://echo.lab-site.org/
	guest_fails fresh bash -c 'exec 3<>/dev/tcp/news.lab-site.org/7'
	dns_not_asked www.lab-site.org
	dns_not_asked www.lab-b.net
	far_none '> 45\.45\.45\.10 7 '
	log_has fresh '.qname == "www.lab-site.org" and .reason == "no_rule"'
}

@test "what was denied is suggested as such, and what a deny rule refused is not" {
	sandbox denied --deny www.lab-b.net
	guest_fails denied curl -sS https://www.lab-cname.com/
	guest_fails denied curl -sS https://www.lab-b.net/
	log_has denied '.qname == "www.lab-b.net" and .reason == "rule_deny"'
	posternd_stop
	run -0 postern policy suggest denied
	posternd_start
	matches "denied" '^  - host: "www.lab-cname.com"  # denied [0-9]+ so far' "$output"
	matches "counted" '^# left out: [0-9]+ records? refused by a deny rule' "$output"
	run -1 grep -c lab-b <<<"$output"
	run -1 postern policy suggest nosuch
	matches "message" "no sandbox nosuch" "$output"
	run -2 postern policy suggest denied -o json
}
