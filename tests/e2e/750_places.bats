#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# Rules by country and network: an allowed name does not help an address that is in the wrong place, and where the place cannot
# be told the answer is no.

bats_require_minimum_version 1.5.0
load ../lab/lab

# Where one of the lab's servers is, in both families: place LAST-PART COUNTRY ASN OWNER. GIT is nowhere.
place() {
	printf '%s.%s/32 %s %s %s\n' "$NET4" "$@"
	printf '%s:%s/128 %s %s %s\n' "$NET6" "$@"
}

setup_file() {
	lab_up
	{
		place "$WEB" DE 64510 "Lab Web"
		place "$SHARED" KP 64511 "Lab Shared"
		place "$CDN" DE 64512 "Lab CDN"
		place "$ECHO" FR 64530 "Lab Echo"
	} >"$LAB/tmp/places"
	"$LAB_DIR/mmdb" "$LAB/tmp/country.mmdb" nested <"$LAB/tmp/places"
	"$LAB_DIR/mmdb" "$LAB/tmp/asn.mmdb" flat <"$LAB/tmp/places"
	# Unreadable for the roles' own users, which get what the keeper has read.
	chmod 0600 "$LAB/tmp"/*.mmdb
	cat >"$LAB/tmp/places.yaml" <<-END
		version: 1
		allow:
		  - host: news.lab-site.org
		  - host: "*.lab-a.com"
		  - host: www.lab-cname.com
		  - host: git.lab-code.org
		    ports: [22, 443]
		  - host: "*.lab-evil.net"
		  - host: echo.lab-site.org
		    ports: [7, 22]
		  - host: echo.lab-site.org
		    ports: [5000]
		    udp: true
		  - cidr: $NET4.0/24
		    ports: [7, 9000]
		  - cidr: "2600:1:2::/112"
		    ports: [9000]
		deny:
		  - country: KP
		  - asn: 64512
		    ports: [80, 443]
		  - asn: 64530
		    ports: [9000]
		  - asn: 64530
		    ports: [5000]
		    udp: true
	END
	places_start
	sandbox places --policy "$LAB/tmp/places.yaml"
}

places_start() { posternd_start --country-db "$LAB/tmp/country.mmdb" --asn-db "$LAB/tmp/asn.mmdb" "$@"; }

setup() {
	mark
}

teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 20 "$LAB/posternd.log" || true
	background_end
	rm -f "$LAB/tmp/held"
}

# bats test_tags=smoke
@test "an allowed name whose address is in a denied country or network is refused when it is resolved, IPv4 and IPv6" {
	# Of the roles, those that decide or explain have the databases, and hold no descriptor of them.
	for pid in $(role_pids auditor) $(role_pids gateway) $(role_pids control); do
		equal "descriptors of $(tr '\0' ' ' <"/proc/$pid/cmdline")" 0 \
			"$(find "/proc/$pid/fd" -lname '*memfd:postern-places*' | wc -l)"
	done
	equal "mapped by the auditor" 0 "$(grep -c postern-places "/proc/$(role_pids auditor)/maps")"
	for family in 4 6; do
		run -0 guest places curl -sS -$family https://news.lab-site.org/
		guest_fails places curl -sSk -$family https://www.lab-a.com/
		guest_fails places curl -sSk -$family https://www.lab-cname.com/
	done
	far_none "> ($NET4\.|$NET6:)($SHARED|$CDN) "
	log_has places '.kind == "dns" and .qname == "www.lab-a.com" and .qtype == "A" and .reason == "rule_deny"
		and (.rule | test("^deny country:KP .*places.yaml:[0-9]+")) and .detail == "45.45.45.11: KP, AS64511"'
	log_has places '.kind == "dns" and .qname == "www.lab-a.com" and .qtype == "AAAA" and .reason == "rule_deny"
		and .detail == "2600:1:2::11: KP, AS64511"'
	log_has places '.kind == "dns" and .qname == "www.lab-cname.com" and (.rule | test("^deny asn:64512:80,443 "))'
	run guest places dig www.lab-a.com
	matches "refusal" "status: NXDOMAIN" "$output"
	matches "extended error" "deny rule" "$output"
}

@test "of an answer with several addresses, those in the wrong place are left out" {
	run -0 guest places dig +short many.lab-evil.net
	fdns many.lab-evil.net+A "{\"answers\":[[\"A\",30,\"$NET4.$WEB\"],[\"A\",30,\"$NET4.$SHARED\"],[\"A\",30,\"$NET4.$CDN\"]]}"
	run -0 guest places dig +short many.lab-evil.net
	equal "answer" "$NET4.$WEB" "$output"
	guest_fails places curl -sSk --resolve "many.lab-evil.net:443:$NET4.$SHARED" https://many.lab-evil.net/
	far_none "> $NET4\.$SHARED "
	# Hints of an HTTPS record are addresses, too: 1 . alpn=h2 ipv4hint=45.45.45.11,45.45.45.10
	fdns hint.lab-evil.net+HTTPS '{"answers":[["HTTPS",30,"hex:00010000010003026832000400082d2d2d0b2d2d2d0a"]]}'
	run -0 guest places kdig +short hint.lab-evil.net HTTPS
	matches "hints" "ipv4hint=$NET4.$WEB( |\$)" "$output"
	[[ $output != *$NET4.$SHARED* ]] || fail "a denied hint was passed on: $output"
	log_has places '.kind == "dns" and .qname == "many.lab-evil.net" and .detail == "1 of 3 addresses admitted"'
}

# bats test_tags=smoke
@test "an address rule does not help either: the exact address is judged when it is dialled, TCP and UDP" {
	# Country denied for every port; network denied for one port.
	guest_fails places "$LAB_DIR/client.py" tcp "$NET4.$SHARED" 9000 x
	guest_fails places "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 9000 x
	guest_fails places "$LAB_DIR/client.py" tcp "$NET6:$ECHO" 9000 x
	run -0 --separate-stderr guest places "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 7 passes --half-close
	matches "another port" passes "$output"
	far_none "> ($NET4\.$SHARED|$NET4\.$ECHO|$NET6:$ECHO) 9000 "
	log_has places '.kind == "deny" and .dst == "45.45.45.11" and .dport == 9000 and .reason == "rule_deny"
		and (.rule | test("^deny country:KP "))'
	log_has places '.kind == "deny" and .dst == "2600:1:2::30" and .dport == 9000 and (.rule | test("^deny asn:64530:9000 "))'
	# A UDP port of a name that is allowed on another port: resolved, refused as a datagram.
	run -0 guest places dig +short echo.lab-site.org
	guest_fails places "$LAB_DIR/client.py" udp "$NET4.$ECHO" 5000 x
	far_none "> $NET4\.$ECHO 5000 "
}

@test "an address that no database knows could be anywhere, and is refused" {
	guest_fails places git ls-remote git@git.lab-code.org:demo.git
	guest_fails places "$LAB_DIR/client.py" tcp "$NET4.$GIT" 9000 x
	far_none "> ($NET4\.|$NET6:)$GIT "
	log_has places '.kind == "dns" and .qname == "git.lab-code.org" and .reason == "place_unknown"
		and (.rule | test("^deny country:KP "))'
	log_has places '.kind == "deny" and .dst == "45.45.45.22" and .reason == "place_unknown"'
}

@test "test, show and status say where an address is and which rule counts" {
	run -1 postern test places "$NET4.$SHARED:9000"
	matches "place" "45.45.45.11 is in KP, AS64511, Lab Shared" "$output"
	matches "rule" "deny country:KP .*places.yaml" "$output"
	run -1 postern test places "$NET4.$GIT:9000"
	matches "place" "neither country nor network is known" "$output"
	matches "rule" "place_unknown|could be that one" "$output"
	run -0 postern test places news.lab-site.org
	matches "lease" "45.45.45.10 is in DE, AS64510, Lab Web" "$output"
	run -0 postern test places never-asked.lab-a.com
	matches "before it is resolved" "rules by country and network" "$output"
	run -0 postern allow places "$NET4.$SHARED/32:22"
	matches "warning" "45.45.45.11:22 stays denied by: deny country:KP" "$output"
	run -0 postern revoke places "$NET4.$SHARED/32:22"
	run -0 postern policy show places --effective
	matches "effective" "deny country:KP .places.yaml:[0-9]+" "$output"
	matches "effective" "deny an address whose country or network is not known" "$output"
	run -0 postern status -o json
	equal "type" Lab-nested "$(jq -r .places.country.type <<<"$output")"
	matches "built" "^20[0-9-]+T" "$(jq -r .places.asn.built <<<"$output")"
	run -0 postern status
	matches "status" "country database +Lab-nested" "$output"
}

# where WHERE: country|asn|as_org of the last connection that an SQL condition holds for
where() {
	sqlite3 -readonly "$LAB/state/audit/audit.db" \
		"select country, asn, as_org from v_connections where $1 order by id desc limit 1"
}
where_is() { [[ $(where "$1") == "$2" ]]; }

@test "the log says where each connection went, and which databases say so" {
	run -0 guest places curl -sS -6 https://news.lab-site.org/
	wait_for 5 where_is "dst = '2600:1:2::10' and verdict = 'allowed'" 'DE|64510|Lab Web'
	guest_fails places "$LAB_DIR/client.py" tcp "$NET4.$SHARED" 9000 x
	wait_for 5 where_is "dst = '45.45.45.11' and verdict = 'denied'" 'KP|64511|Lab Shared'
	guest_fails places "$LAB_DIR/client.py" tcp "$NET4.$SHARED" 1234 x
	wait_for 5 where_is "dport = 1234" 'KP|64511|Lab Shared'
	guest_fails places "$LAB_DIR/client.py" tcp "$NET4.$GIT" 9000 x
	wait_for 5 where_is "dst = '45.45.45.22' and verdict = 'denied'" '||'
	run -0 sqlite3 -readonly "$LAB/state/audit/audit.db" "select json_extract(detail, '$.country_db.type'),
		json_extract(detail, '$.asn_db.built') from v_events where event = 'daemon_start' order by id desc limit 1"
	matches "event" '^Lab-nested\|20[0-9-]+T' "$output"
}

@test "F-33: a live edit cuts exactly the connections to the denied country" {
	sandbox live --policy "$(policy live '{host: echo.lab-site.org, ports: [7]}' 'host: news.lab-site.org' \
		'{host: echo.lab-site.org, ports: [5000], udp: true}')"
	background guest live "$LAB_DIR/hold.py" "$LAB/tmp/held" tcp:echo.lab-site.org:7/4 tcp:echo.lab-site.org:7/6 \
		udp:echo.lab-site.org:5000/4 tls:news.lab-site.org:443/4 tls:news.lab-site.org:443/6
	held() { (($(grep -c "\"event\": \"$1\"" "$LAB/tmp/held") == $2)); }
	wait_for 15 held open 5
	run -0 postern deny live country:FR
	matches "answer" "3 connections cut" "$output"
	wait_for 20 held end 3 # a datagram that the relay refuses gets no ICMP
	equal "what ended" 3 "$(grep '"event": "end"' "$LAB/tmp/held" | grep -c echo.lab-site.org)"
	background_end
	equal "what lives" 2 "$(grep '"event": "alive"' "$LAB/tmp/held" | grep -c news.lab-site.org)"
	equal "records" 3 "$(log_count live '.end == "policy" and .reason == "revoked" and .name == "echo.lab-site.org"')"
	guest_fails live "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 7 x
	log_has live '.kind == "deny" and .dst == "45.45.45.30" and (.rule | test("^deny country:FR .edit by uid 0"))'
	run -0 postern revoke live country:FR
	run -0 --separate-stderr guest live "$LAB_DIR/client.py" tcp echo.lab-site.org 7 again --half-close
	matches "again" again "$output"
	sandbox_gone live
}

@test "without the database such a policy is not put in force, and one that is refuses what it cannot tell" {
	posternd_stop
	posternd_start --asn-db "$LAB/tmp/asn.mmdb"
	guest_fails places curl -sSk https://news.lab-site.org/
	guest_fails places "$LAB_DIR/client.py" tcp "$NET4.$WEB" 9000 x
	far_none "> ($NET4\.|$NET6:)$WEB "
	log_has places '.kind == "dns" and .qname == "news.lab-site.org" and .reason == "place_unknown"
		and (.detail | test("start posternd with --country-db"))'
	log_has places '.kind == "deny" and .dst == "45.45.45.10" and .reason == "place_unknown"
		and (.detail | test("start posternd with --country-db"))'
	run postern status
	matches "status" "places: places: .*--country-db" "$output"
	run postern doctor
	matches "doctor" "places: places: .*--country-db" "$output"
	# The sandbox can be edited to do without, and only so.
	run -5 postern policy apply places "$LAB/tmp/places.yaml"
	run -5 postern allow places www.lab-b.net
	matches "message" "places.yaml:[0-9]+: deny country:KP: no database of countries is loaded: .*--country-db FILE" "$output"
	run -5 sandbox other --deny country:KP
	matches "message" "deny country:KP: .*--country-db" "$output"
	run -0 postern policy apply places "$(policy without 'host: news.lab-site.org')"
	run -0 guest places curl -sS https://news.lab-site.org/
	# With it everything is as before.
	posternd_stop
	places_start
	run -0 postern policy apply places "$LAB/tmp/places.yaml"
	run -0 guest places curl -sS https://news.lab-site.org/
	guest_fails places curl -sSk https://www.lab-a.com/
}

# A start that must fail: start_fails MESSAGE OPTION...
start_fails() {
	local message=$1
	shift
	run timeout 20 "$BUILD/posternd" --runtime-dir "$LAB/run2" --state-dir "$LAB/state2" --gateway-user 64301 \
		--audit-user 64302 --control-user 64303 --group 0 --resolver 45.45.45.55 "$@"
	[[ $status -ne 0 && $status -ne 124 ]] || fail "it started"
	matches "message" "$message" "$output"
}

@test "a database that is missing, cut short or about something else stops the start, and so does an organisation that needs one" {
	start_fails "--country-db $LAB/tmp/nowhere.mmdb: cannot be opened: No such file" --country-db "$LAB/tmp/nowhere.mmdb"
	head -c 600 "$LAB/tmp/country.mmdb" >"$LAB/tmp/short.mmdb"
	start_fails "--country-db $LAB/tmp/short.mmdb: .*fetch the file again" --country-db "$LAB/tmp/short.mmdb"
	head -n 1 "$LAB/tmp/places" | "$LAB_DIR/mmdb" "$LAB/tmp/other.mmdb" other
	start_fails "--asn-db $LAB/tmp/other.mmdb: .*autonomous_system_number or asn" --asn-db "$LAB/tmp/other.mmdb"
	printf 'version: 1\ndeny:\n  - asn: 64511\n' >"$LAB/tmp/organisation.yaml"
	chmod a+rx "$LAB/tmp"
	chmod a+r "$LAB/tmp/organisation.yaml"
	start_fails "organisation.yaml:3: deny asn:64511: .*--asn-db" --organisation "$LAB/tmp/organisation.yaml" \
		--country-db "$LAB/tmp/country.mmdb"
}

@test "the organisation's places bound every sandbox, and a replaced file counts from the next start" {
	posternd_stop
	places_start --organisation "$LAB/tmp/organisation.yaml"
	run -0 postern policy apply places "$(policy open 'host: "*.lab-a.com"')"
	guest_fails places curl -sSk -4 https://www.lab-a.com/
	log_has places '.qname == "www.lab-a.com" and (.rule | test("^deny asn:64511 .*organisation.yaml:3"))'
	# Overwritten in place, as a careless download does: what runs does not notice.
	sed 's/64511/64599/' "$LAB/tmp/places" | "$LAB_DIR/mmdb" "$LAB/tmp/new.mmdb" flat
	cat "$LAB/tmp/new.mmdb" >"$LAB/tmp/asn.mmdb"
	guest_fails places curl -sSk -4 https://www.lab-a.com/
	posternd_stop
	POSTERN_COUNTRY_DB=$LAB/tmp/country.mmdb POSTERN_ASN_DB=$LAB/tmp/asn.mmdb \
		posternd_start --organisation "$LAB/tmp/organisation.yaml"
	run -0 guest places curl -sS -4 https://www.lab-a.com/
}

@test "an ordinary user's own daemon reads them too" {
	local stranger=5000
	mkdir -p -m 0755 "$LAB/etc" "$LAB/run-bin"
	echo "nameserver $NET4.$RESOLVER" >"$LAB/etc/resolv.conf"
	mount --bind "$LAB/etc/resolv.conf" "$(readlink -f /etc/resolv.conf)"
	cp "$BUILD/postern" "$BUILD/posternd" "$LAB/run-bin/"
	mkdir -m 0700 "$LAB/stranger" "$LAB/stranger/run"
	cp "$LAB/tmp/country.mmdb" "$LAB/stranger/"
	chown -R "$stranger:$stranger" "$LAB/stranger"
	as_stranger() {
		env -u POSTERN_RUNTIME_DIR -u POSTERN_STATE_DIR CURL_CA_BUNDLE="$LAB/tls/ca.crt" HOME="$LAB/stranger" \
			XDG_RUNTIME_DIR="$LAB/stranger/run" PATH="$LAB/run-bin:$PATH" \
			POSTERN_COUNTRY_DB="$LAB/stranger/country.mmdb" \
			setpriv --reuid "$stranger" --regid "$stranger" --clear-groups --no-new-privs "$@"
	}
	run -0 --separate-stderr as_stranger postern run --allow '*.lab-site.org' --deny country:FR -- \
		curl -sS https://news.lab-site.org/
	equal "page" "lab web server for news.lab-site.org" "$output"
	run --separate-stderr as_stranger postern run --allow '*.lab-site.org' --deny country:DE -- \
		curl -sS https://news.lab-site.org/
	equal "exit status of curl" 6 "$status"
	# shellcheck disable=SC2154 # set by run --separate-stderr
	matches "summary" "news.lab-site.org \(name\)  rule_deny" "$stderr"
}
