#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Names that open more than who writes them thinks: public suffixes, providers' suffixes, odd wildcards, hosts of many
# people, names that hold addresses. And: what "postern test" says is what happens.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
}

setup() {
	mark
}

teardown() {
	all_gone
}

# One host rule, in a file and as a word, is refused with this complaint, and opens nothing: refused PATTERN HOST...
refused() {
	local host pattern=$1
	shift
	for host in "$@"; do
		printf 'version: 1\nallow:\n  - host: "%s"\n' "$host" >"$LAB/tmp/refused.yaml"
		run -5 postern policy check "$LAB/tmp/refused.yaml"
		matches "complaint about $host" "refused.yaml:3:11: .*($pattern)" "$output"
		run -5 postern allow names "$host"
	done
	run -5 postern policy apply names "$LAB/tmp/refused.yaml"
}

# Nothing was changed by what was refused.
untouched() {
	equal "generation" 1 "$(postern show names -o json | jq .generation)"
	equal "rules" 0 "$(postern show names -o json | jq '.rules | length')"
}

# A file is good, and a note about its rule says this: noted PATTERN HOST...
noted() {
	local host pattern=$1
	shift
	for host in "$@"; do
		printf 'version: 1\nallow:\n  - host: "%s"\n' "$host" >"$LAB/tmp/noted.yaml"
		run -0 postern policy check "$LAB/tmp/noted.yaml"
		matches "note about $host" "noted.yaml:3:11: .*($pattern)" "$output"
	done
}

@test "B-07: wildcards of public suffixes are refused; those of providers, unless the rule says that it means it" {
	sandbox names
	refused "whole top-level domain|public suffix|anybody" '*.com' '*.co.uk' '*.uk' '*.xn--p1ai'
	refused "shared: true" '*.github.io' '*.s3.amazonaws.com' '*.workers.dev' '*.blob.core.windows.net' '*.herokuapp.com'
	untouched
	# A tenant's own name is one party's; the whole suffix can be had by saying so, but a public one cannot.
	printf 'version: 1\nallow:\n  - host: "*.octocat.github.io"\n  - {host: "*.github.io", shared: true}\n' >"$LAB/tmp/good.yaml"
	run -0 postern policy check "$LAB/tmp/good.yaml"
	run -0 postern policy apply names "$LAB/tmp/good.yaml"
	run -0 postern test names https://anybody.github.io/
	run -1 postern test names https://github.io/
	printf 'version: 1\nallow:\n  - {host: "*.co.uk", shared: true}\n' >"$LAB/tmp/public.yaml"
	run -5 postern policy check "$LAB/tmp/public.yaml"
	# To deny them is no mistake.
	run -0 postern deny names '*.github.io' '*.zip'
	run -1 postern test names https://anybody.github.io/
	guest_fails names curl -sS https://anybody.github.io/
	log_has names '.qname == "anybody.github.io" and .reason == "rule_deny"'
	dns_not_asked anybody.github.io
}

@test "B-08: a wildcard is one star for all that stands left, and nothing else" {
	sandbox names
	refused . '*' '**' '*.' '.*' '*.*' '**.lab-a.com' '*.*.lab-a.com' 'a*.lab-a.com' '*a.lab-a.com' 'api-*.lab-a.com' \
		'api.*.lab-a.com' 'lab-a.*' '*lab-a.com' '*.com.' 'lab-?.com' '[a-z].lab-a.com' '(a|b).lab-a.com' '^lab-a.com$' \
		'.lab-a.com' '%.lab-a.com' '*.1.2.3.4' '*.45.45.45.0/24' '*:443' '＊.lab-a.com'
	# Without quotes YAML takes the star for an alias; the message says what to write.
	printf 'version: 1\nallow:\n  - host: *.lab-a.com\n' >"$LAB/tmp/bare.yaml"
	run -5 postern policy check "$LAB/tmp/bare.yaml"
	matches "hint" 'bare.yaml:3:11: .*must be quoted' "$output"
	untouched
	guest_fails names curl -sS https://www.lab-a.com/
	far_none "^tcp .* 443 "
	dns_not_asked www.lab-a.com
}

@test "B-26: a host where anybody can put things gets a note; its own upload limit cuts, and the record has the bytes" {
	noted "may be sent there" github.com gist.github.com raw.githubusercontent.com huggingface.co pastebin.com
	noted "docs.google.com holds documents" '*.google.com'
	printf 'version: 1\nallow:\n  - {host: github.com, shared: true}\n' >"$LAB/tmp/meant.yaml"
	run -0 postern policy check "$LAB/tmp/meant.yaml"
	run -1 grep "may be sent there" <<<"$output"
	printf 'version: 1\nallow:\n  - {host: bytes.lab-site.org, limits: {upload: 1MB}}\n' >"$LAB/tmp/limit.yaml"
	sandbox drop --policy "$LAB/tmp/limit.yaml"
	truncate -s 1G "$LAB/tmp/loot"
	run guest drop curl -sS -4 -T "$LAB/tmp/loot" http://bytes.lab-site.org/x
	[[ $status -ne 0 ]]
	log_has drop '.name == "bytes.lab-site.org" and .end == "policy" and .reason == "limit_upload" and .bytes_out == 1000001'
	arrived() { origin_log 'select(.event == "close" and .port == 80)' | jq -e -s 'length == 1 and .[0].bytes_in <= 1000001'; }
	wait_for 5 arrived
}

@test "B-28: a name that holds an address gets a note, and leads to no address that is never reached" {
	local part
	noted "whoever asks chooses where it leads" '*.nip.io' 10-0-0-5.sslip.io app.lvh.me
	printf 'version: 1\nallow:\n  - host: "*.nip.io"\n    ports: [7, 80]\n' >"$LAB/tmp/nip.yaml"
	sandbox nip --policy "$LAB/tmp/nip.yaml"
	for part in 10.0.0.5 127.0.0.1 169.254.169.254 192.168.1.1 "$HOST4"; do
		fdns "${part//./-}.nip.io" '{"answers": [["A", 60, "'"$part"'"]]}'
		guest_fails nip curl -sS -4 "http://${part//./-}.nip.io/"
		log_has nip '.qname == "'"${part//./-}"'.nip.io" and .reason == "dns_rebind"'
	done
	far_no_trap
	# One that holds a public address is a name like any other.
	fdns "45-45-45-$ECHO.nip.io" '{"answers": [["A", 60, "'"$NET4.$ECHO"'"]]}'
	run -0 --separate-stderr guest nip "$LAB_DIR/client.py" --family 4 --half-close tcp "45-45-45-$ECHO.nip.io" 7 hello
	equal "echo" hello "$output"
}

@test "B-27: what postern test says of a name and a port is what a question and a connection then meet" {
	local name port said met
	# An address for each name: on ports where the protocol says no name, one address is as good as another of its names.
	internet ip route add local 45.47.0.0/16 dev lo
	# Not by "internet": a shell that stays behind would hold the descriptors that bats waits for.
	nsenter --net=/run/netns/pl-internet -- /usr/bin/python3 -c '
import selectors, socket
ready = selectors.DefaultSelector()
for port in (9100, 9101):
	ready.register(socket.create_server(("", port), backlog=64), selectors.EVENT_READ)
while True:
	for key, _ in ready.select():
		connection, _ = key.fileobj.accept()
		connection.sendall(connection.recv(64))
		connection.close()
' >/dev/null 2>&1 </dev/null 3>&- 4>&- &
	disown
	for name in _.lab-b27.org lab-b27.org xlab-b27.org lab-b27.org.lab-a.com; do
		fdns "$name" '{"answers": [["A", 60, "next:45.47.0.1"]]}'
	done
	cat >"$LAB/tmp/b27.yaml" <<-END
		version: 1
		allow:
		  - {host: exact.lab-b27.org, ports: [9100]}
		  - {host: "*.below.lab-b27.org", ports: [9100, 9101]}
		  - {host: tree.lab-b27.org, subdomains: true, ports: ["9101-9110"]}
		  - {host: lab-b27.org, ports: [9101]}
		  - {host: gone.lab-b27.org, ports: [9100], expires: 2020-01-01T00:00Z}
		deny:
		  - host: no.below.lab-b27.org
		  - host: "*.deny.tree.lab-b27.org"
	END
	sandbox b27 --policy "$LAB/tmp/b27.yaml"
	for name in exact.lab-b27.org EXACT.Lab-B27.org exact.lab-b27.org. x.exact.lab-b27.org xexact.lab-b27.org \
		below.lab-b27.org a.below.lab-b27.org a.b.c.below.lab-b27.org abelow.lab-b27.org no.below.lab-b27.org \
		x.no.below.lab-b27.org tree.lab-b27.org a.tree.lab-b27.org a.b.tree.lab-b27.org deny.tree.lab-b27.org \
		a.deny.tree.lab-b27.org atree.lab-b27.org lab-b27.org www.lab-b27.org xlab-b27.org lab-b27.org.lab-a.com \
		gone.lab-b27.org; do
		for port in 9100 9101; do
			said=denied met=denied
			! postern test b27 "$name:$port" >"$LAB/tmp/said" 2>&1 || said=allowed
			[[ $(guest b27 timeout 5 "$LAB_DIR/client.py" --family 4 --half-close tcp "$name" "$port" hello 2>/dev/null) != hello ]] ||
				met=allowed
			echo "$name:$port $said $met" >>"$LAB/tmp/b27"
		done
	done
	run -1 grep -E ' (allowed denied|denied allowed)$' "$LAB/tmp/b27"
	# It was not all the same.
	equal "allowed" 14 "$(grep -c 'allowed allowed' "$LAB/tmp/b27")"
	equal "denied" 30 "$(grep -c 'denied denied' "$LAB/tmp/b27")"
}
