#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# A browser on a page of which half is refused: nothing stalls. The same page without postern is the measure.

bats_require_minimum_version 1.5.0
load ../lab/lab

# The load event may come this much later than without postern (which itself is some 200 ms after the start).
LATER_MS_MAX=2000

setup_file() {
	command -v chromium >/dev/null || return 0
	lab_up
	mkdir -p "$LAB/web/html/browse" "$LAB/home/.pki/nssdb"
	cp "$LAB_DIR"/browse/* "$LAB/web/html/browse/"
	certutil -d "sql:$LAB/home/.pki/nssdb" -N --empty-password
	certutil -d "sql:$LAB/home/.pki/nssdb" -A -n lab -t C,, -i "$LAB/tls/ca.crt"
	# They exist, and serve: without postern all parts of the page load.
	fdns _.lab-b.net "{\"answers\":[[\"A\",60,\"$NET4.$OTHER\"],[\"AAAA\",60,\"$NET6:$OTHER\"]]}"
	mkdir -p "$LAB/guest/none"
	echo "nameserver $NET4.$RESOLVER" >"$LAB/guest/none/resolv.conf"
	posternd_start
	sandbox browser --policy "$(policy browser 'host: news.lab-site.org' 'host: "*.lab-a.com"' \
		'host: www.lab-cname.com' '{host: lab-a.com, ports: [80]}')"
}

setup() {
	command -v chromium >/dev/null || skip "no chromium"
	mark
}

# What postern is compared with: the lab's host, which reaches everything.
unguarded() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare -m sh -c 'mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && exec "$@"' \
		"$LAB/guest/none/resolv.conf" "$@"
}

report() {
	web_log 'select(.request | startswith("GET /report?")) | .request | split("[ ?]"; null)[2] | split("&")
		| map(split("=") | {(.[0]): .[1]}) | add'
}
reported() { [[ -n $(report) ]]; }

# Open a page in a browser that has seen nothing yet, until it reports; prints the report as JSON: browse URL COMMAND...,
# where the command is what the browser is run by.
browse() {
	local url=$1 profile browser
	shift
	mark
	profile=$(mktemp -d "$LAB/tmp/profile.XXXXXX")
	# Not --disable-quic: that QUIC is refused at once is what is tested.
	"$@" env HOME="$LAB/home" chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync --user-data-dir="$profile" "$url" >"$LAB/tmp/chromium.log" 2>&1 3>&- &
	browser=$!
	wait_for 40 reported || {
		tail -n 20 "$LAB/tmp/chromium.log" >&2
		web_log >&2
		return 1
	}
	report
	# The first process of this profile is the browser, the others end with it.
	pkill -o -f -- "--user-data-dir=$profile" || true
	wait "$browser" || true
}

# What became of a report's parts: how load|error REPORT
how() { jq -r --arg how "$1" 'to_entries | map(select(.value == $how) | .key) | sort | join(" ")' <<<"$2"; }

# A page in a browser in the sandbox, and beside it: whole URL
check() {
	local without with later
	without=$(browse "$1" unguarded)
	matches "parts that load without postern" "fetch-allowed fetch-denied fetch-own image-allowed image-beside image-denied \
image-own script-allowed script-denied( script-h3)? socket-allowed socket-denied style-denied" "$(how load "$without")"

	with=$(browse "$1" guest browser)
	equal "parts that load" "fetch-allowed fetch-own image-allowed image-own script-allowed script-h3 socket-allowed" \
		"$(how load "$with")"
	equal "parts that are refused" "fetch-denied image-address image-beside image-denied script-denied socket-denied style-denied" \
		"$(how error "$with")"
	# Nothing of what is refused was asked for, and nothing that left went elsewhere.
	equal "hosts that the far side saw" "" "$(web_log .host | grep -E 'lab-b.net|www.lab-site.org' || true)"
	far_none "> ($NET4\.|$NET6:)$OTHER "
	for name in fonts tracker api push ads frame; do
		dns_not_asked "$name.lab-b.net"
		log_has browser ".kind == \"dns\" and .qname == \"$name.lab-b.net\" and .reason == \"no_rule\" and .verdict == \"denied\""
	done
	dns_not_asked www.lab-site.org
	for name in h3.lab-a.com www.lab-a.com ws.lab-a.com; do
		log_has browser ".kind == \"dns\" and .qname == \"$name\" and .verdict == \"allowed\""
	done
	# (The others may share a connection with the page, as HTTP/2 lets them: the same address, the same certificate.)
	for name in www.lab-cname.com ws.lab-a.com news.lab-site.org; do
		log_has browser ".kind == \"flow\" and .name == \"$name\" and .name_source == \"sni\" and .dport == 443"
	done
	log_has browser ".kind == \"deny\" and .dst == \"$NET4.$OTHER\" and .dport == 443 and .reason == \"not_leased\""

	later=$(($(jq -r .load <<<"$with") - $(jq -r .load <<<"$without")))
	echo "# the load event came $later ms later than without postern, all was settled after $(jq -r .settled <<<"$with") ms" >&3
	if ((later > LATER_MS_MAX)); then
		# Whether the machine was busy for a moment, or the page stalls, a second look tells.
		with=$(browse "$1" guest browser)
		later=$(($(jq -r .load <<<"$with") - $(jq -r .load <<<"$without")))
		((later <= LATER_MS_MAX)) || fail "the load event came $later ms later than without postern:" "$without" "$with"
	fi
}

@test "D-08, D-18: a page over IPv4, HTTP/2: no stall, each part as its rule says" {
	check https://four.lab-a.com/browse/page.html
	# Browsers send a meaningless encrypted hello in each; and try QUIC, as the server says they could.
	log_has browser '.kind == "flow" and .name == "four.lab-a.com" and .ech and (.alpn | startswith("h2"))'
	log_has browser '.kind == "deny" and .dst == "45.45.45.11" and .proto == "udp" and .dport == 443 and .reason == "udp_denied"'
	far_none "^udp .* 443 "
}

@test "D-08, D-18: a page over IPv6, HTTP/2: no stall, each part as its rule says" {
	check https://six.lab-a.com/browse/page.html
	log_has browser '.kind == "flow" and .dst == "2600:1:2::11" and .name == "six.lab-a.com" and .ech'
	log_has browser '.kind == "deny" and .dst == "2600:1:2::11" and .proto == "udp" and .dport == 443 and .reason == "udp_denied"'
	far_none "^udp .* 443 "
}

@test "B-22: a page over plain HTTP, several connections, each request judged" {
	# A browser tries HTTPS first, which this name may not, and the refusal tells it so at once.
	check http://lab-a.com/browse/page.html
	log_has browser '.kind == "deny" and .name == "lab-a.com" and .dport == 443 and .reason == "no_rule"'
	log_has browser '.kind == "flow" and .name == "lab-a.com" and .dport == 80 and .name_source == "host" and .bytes_in > 0'
}
