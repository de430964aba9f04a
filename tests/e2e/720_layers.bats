#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Layers of a policy on the wire: an organisation's, presets, a sandbox's own.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	mkdir -p "$LAB/tmp/presets"
	cat >"$LAB/tmp/organisation.yaml" <<-'END'
		version: 1
		deny:
		  - host: www.lab-a.com
	END
	cat >"$LAB/tmp/presets/news.yaml" <<-'END'
		version: 1
		name: news
		allow:
		  - host: news.lab-site.org
	END
	cat >"$LAB/tmp/presets/no-edge.yaml" <<-'END'
		version: 1
		name: no-edge
		deny:
		  - host: www.lab-cname.com
	END
	chmod -R a+rX "$LAB/tmp"
	posternd_start --organisation "$LAB/tmp/organisation.yaml" --preset-dir "$LAB/tmp/presets"
	cat >"$LAB/tmp/layered.yaml" <<-'END'
		version: 1
		include: [preset:news, preset:no-edge]
		allow:
		  - host: "*.lab-a.com"
		  - host: www.lab-cname.com
	END
	sandbox layered --policy "$LAB/tmp/layered.yaml"
}

setup() {
	mark
}

@test "F-35: presets allow and deny what they say, and show tells where each rule comes from" {
	run -0 guest layered curl -sS https://news.lab-site.org/
	run -0 guest layered curl -sS https://api.lab-a.com/
	guest_fails layered curl -sSk https://www.lab-cname.com/
	dns_not_asked www.lab-cname.com
	log_has layered '.qname == "news.lab-site.org" and (.rule | test("preset:news.yaml:4"))'
	log_has layered '.qname == "www.lab-cname.com" and .reason == "rule_deny" and (.rule | test("preset:no-edge.yaml:4"))'
	run -0 postern show layered
	matches "show" 'deny www.lab-a.com +organisation.yaml:3' "${output//$LAB\/tmp\//}"
	matches "show" 'allow news.lab-site.org +preset:news.yaml:4' "$output"
	matches "show" 'allow \*.lab-a.com +layered.yaml:4' "$output"
}

@test "A-14: what the organisation denies, nothing below allows" {
	guest_fails layered curl -sS https://www.lab-a.com/
	run -0 postern allow layered www.lab-a.com
	guest_fails layered curl -sS https://www.lab-a.com/
	dns_not_asked www.lab-a.com
	log_has layered '.qname == "www.lab-a.com" and .reason == "rule_deny" and (.rule | test("organisation.yaml:3"))'
	run -1 postern test layered www.lab-a.com
	matches "test" "organisation.yaml:3" "$output"
	run -0 postern revoke layered www.lab-a.com
}

@test "a preset that is not there is said, with those that are, and nothing is attached" {
	cat >"$LAB/tmp/missing.yaml" <<-'END'
		version: 1
		include: [preset:nws]
	END
	run -5 sandbox missing --policy "$LAB/tmp/missing.yaml"
	matches "message" "nws" "$output"
	matches "message" "news" "$output"
	run postern show missing
	equal "exit status" 1 "$status"
}

@test "an organisation's policy that is broken stops the start" {
	printf 'version: 1\nallow:\n  - hots: x.com\n' >"$LAB/tmp/broken.yaml"
	chmod a+r "$LAB/tmp/broken.yaml"
	run "$BUILD/posternd" --runtime-dir "$LAB/run2" --state-dir "$LAB/state2" --gateway-user 64301 --audit-user 64302 \
		--control-user 64303 --group 0 --resolver 45.45.45.55 --organisation "$LAB/tmp/broken.yaml"
	[[ $status -ne 0 ]] || fail "it started"
	matches "message" "broken.yaml:3:5" "$output"
}

@test "without the organisation's allow, its key bounds nothing; with it, nothing is allowed that it does not allow" {
	cat >"$LAB/tmp/bound.yaml" <<-'END'
		version: 1
		allow:
		  - host: news.lab-site.org
	END
	chmod a+r "$LAB/tmp/bound.yaml"
	posternd_stop
	posternd_start --organisation "$LAB/tmp/bound.yaml" --preset-dir "$LAB/tmp/presets"
	run -0 guest layered curl -sS https://news.lab-site.org/
	guest_fails layered curl -sS https://api.lab-a.com/
	dns_not_asked api.lab-a.com
	run -0 postern policy show layered --effective
	matches "bound" '^allow at most news.lab-site.org \(.*bound.yaml:3\)$' "$output"
	run -1 postern test layered api.lab-a.com
	matches "hint" "hint +info +a rule allows it, but the organisation's policy does not" "$output"
	run -0 postern allow layered deep.lab-b.net
	matches "warning" "deep.lab-b.net stays denied: the organisation's policy does not allow it too" "$output"
	run -0 postern revoke layered deep.lab-b.net
	# What lies under every policy is no difference.
	export POSTERN_PRESET_DIR=$LAB/tmp/presets
	run -0 postern policy diff layered "$LAB/tmp/layered.yaml"
}
