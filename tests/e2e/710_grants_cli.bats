#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Grants that end by themselves, as people make them.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	sandbox grants --allow news.lab-site.org
}

setup() {
	mark
}

@test "allow --for: it works, show says until when, it ends by itself, and the log has all of it" {
	guest_fails grants curl -sS https://www.lab-a.com/
	run -0 postern allow grants www.lab-a.com --for 6s
	matches "answer" '\+allow www.lab-a.com until 20[0-9-]+T[0-9:.]+Z' "$output"
	run -0 postern show grants
	matches "show" 'allow www.lab-a.com +edit by uid 0 +until 20' "$output"
	equal "expiry in JSON" 1 "$(postern show grants -o json | jq '[.rules[] | select(.expires)] | length')"
	run -0 guest grants curl -sS https://www.lab-a.com/
	run -0 guest grants curl -sS https://news.lab-site.org/
	refused_now() { ! guest grants curl -sS -m 2 https://www.lab-a.com/; }
	wait_for 10 refused_now
	guest_fails grants curl -sS https://www.lab-a.com/
	run -0 guest grants curl -sS https://news.lab-site.org/
	log_has grants '.event == "grant_expired" and (.detail.rule | test("www.lab-a.com"))'
	log_has grants '.event == "policy" and (.detail.change[0] | test("www.lab-a.com until"))'
	log_has grants '.verdict == "denied" and .qname == "www.lab-a.com"'
}

@test "the same words again renew, and the end survives kill -9" {
	run -0 postern allow grants www.lab-cname.com --for 2s
	run -0 postern allow grants www.lab-cname.com --for 1h
	sleep 2.5
	run -0 guest grants curl -sSk https://www.lab-cname.com/
	first=$(postern show grants -o json | jq -r '.rules[] | select(.rule | test("lab-cname")) | .expires')
	posternd_kill9
	posternd_start
	equal "the end after a restart" "$first" \
		"$(postern show grants -o json | jq -r '.rules[] | select(.rule | test("lab-cname")) | .expires')"
	# Without --for: for good.
	run -0 postern allow grants www.lab-cname.com
	equal "no end" null "$(postern show grants -o json | jq -r '.rules[] | select(.rule | test("lab-cname")) | .expires')"
}

@test "a policy file's relative expiry counts from its attach, not from a restart" {
	cat >"$LAB/tmp/expiring.yaml" <<-'END'
		version: 1
		allow:
		  - host: www.lab-a.com
		    expires: 1h
	END
	sandbox expiring --policy "$LAB/tmp/expiring.yaml"
	first=$(postern show expiring -o json | jq -r '.rules[0].expires')
	matches "an instant" '^20' "$first"
	posternd_kill9
	sleep 1.1
	posternd_start
	equal "the end after a restart" "$first" "$(postern show expiring -o json | jq -r '.rules[0].expires')"
}

@test "what is no duration is said, and nothing is changed" {
	run -2 postern allow grants www.lab-a.com --for soon
	matches "message" "not a duration" "$output"
	run -2 postern allow grants www.lab-a.com --for 0s
	run curl -sS --unix-socket "$POSTERN_RUNTIME_DIR/control.sock" -d '{"action":"allow","rules":["www.lab-a.com"],"for":-1}' \
		http://postern/v1/sandboxes/grants/rules
	matches "message" '^"for" must be' "$(jq -r .message <<<"$output")"
}
