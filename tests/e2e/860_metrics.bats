#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# GET /metrics: what it says is what the log says, through crashes of every role, and it can be read while the log is out.

bats_require_minimum_version 1.5.0
load ../lab/lab
load ../lab/unrecorded

DB=$LAB/state/audit/audit.db

setup_file() {
	lab_up
	mkdir -p "$LAB/state/audit"
	# A disk of its own, small enough to be filled.
	mount -t tmpfs -o size=8m tmpfs "$LAB/state/audit"
	posternd_start --gateways 2
}

setup() {
	mark
}

teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || tail -n 20 "$LAB/posternd.log" "$LAB/tmp/metrics" "$LAB/tmp/counted" || true
	rm -f "$LAB/state/audit/filler"
	background_end
	rm -f "$LAB/tmp/held" "$LAB/tmp/background.out"
	wait_for 10 all_ready
	all_gone
}

scrape() {
	curl -sS --fail --unix-socket "$LAB/run/control.sock" http://localhost/metrics -o "$LAB/tmp/metrics.new" || return 1
	mv "$LAB/tmp/metrics.new" "$LAB/tmp/metrics"
}
# A series' value in the last scrape: value SERIES
value() { awk -v series="$1" '$1 == series { print $2 }' "$LAB/tmp/metrics"; }
# ... in a new one
now() { scrape && value "$1"; }
is_now() { [[ $(now "$1") == "$2" ]]; }
# Series that fell between two scrapes: fell BEFORE AFTER. Counters only.
fell() {
	awk 'NR == FNR { if ($1 ~ /_total/) before[$1] = $2; next }
		$1 in before { seen[$1] = 1; if ($2 < before[$1]) print $1, before[$1], $2 }
		END { for (series in before) if (!(series in seen)) print series, "is gone" }' "$1" "$2"
}

# Attempts, connections that are open and bytes, as the log has them, in the words of /metrics.
counted() {
	sqlite3 -readonly -separator ' ' "$DB" "
		WITH rows (kind, verdict, count, open) AS (
			SELECT CASE WHEN last_ts IS NULL THEN 'connection' ELSE 'refused' END, verdict, count, end = 0 FROM connections
			UNION ALL SELECT 'dns', verdict, count, 0 FROM dns)
		SELECT 'postern_attempts_total{kind=\"' || k.kind || '\",verdict=\"' || v.word || '\"}',
			coalesce((SELECT sum(count) FROM rows r WHERE r.kind = k.kind AND r.verdict = v.id AND NOT r.open), 0)
		FROM (SELECT 'connection' kind UNION SELECT 'dns' UNION SELECT 'refused') k, verdicts v;
		SELECT 'postern_connections_open', count(*) FROM connections WHERE end = 0;
		SELECT 'postern_bytes_total{direction=\"upload\"}', coalesce(sum(bytes_out), 0) FROM connections;
		SELECT 'postern_bytes_total{direction=\"download\"}', coalesce(sum(bytes_in), 0) FROM connections;" | sort
}
# Do both say the same about series that match? Rows and totals may be some seconds behind what happened.
agrees() {
	counted | grep -E "$1" >"$LAB/tmp/counted"
	scrape
	sort "$LAB/tmp/metrics" | grep -E "^postern_($1)" | diff "$LAB/tmp/counted" - >"$LAB/tmp/differences"
}
agreed() { wait_for 15 agrees "$1" || fail "the log, and what /metrics says:" "$(cat "$LAB/tmp/differences")"; }
OF_ATTEMPTS='attempts_total|connections_open'
# Of what is open the log has the bytes only now and then.
OF_BYTES='bytes_total'

# Allowed, denied, failed, both protocols, queries of either kind, packets refused in the kernel: traffic NAME
traffic() {
	guest "$1" curl -sS -o /dev/null https://news.lab-site.org/
	guest "$1" curl -sS -o /dev/null http://news.lab-site.org/
	guest "$1" "$LAB_DIR/client.py" tcp "$NET4.$BYTES" 9001 something --half-close
	guest "$1" "$LAB_DIR/client.py" udp "$NET4.$ECHO" 7 hello
	guest_fails "$1" curl -sS -m 3 https://www.lab-b.net/
	guest_fails "$1" curl -sS -m 3 -H 'Host: www.lab-b.net' --fail http://news.lab-site.org/
	guest_fails "$1" "$LAB_DIR/client.py" tcp "$NET4.$ECHO" 9 nobody-listens
	guest_fails "$1" "$LAB_DIR/client.py" tcp "$NET4.$OTHER" 443 refused
	guest_fails "$1" "$LAB_DIR/client.py" udp "$NET4.$OTHER" 4000 refused --timeout 1
	guest_fails "$1" "$LAB_DIR/client.py" tcp 169.254.169.254 80 refused
	far_none "> $NET4\.$OTHER "
	far_no_trap
}
TRAFFIC=("${RULES[@]}" "{cidr: $NET4.$ECHO/32, ports: [9]}")

# The first case: a -wal that was longer before has room for what no disk has.
@test "metrics: audit_ok is 0 while the disk is full, records wait, and then they do not" {
	sandbox full --policy "$(policy full "${RULES[@]}")"
	guest full curl -sS -4 -o /dev/null https://news.lab-site.org/
	equal "audit_ok" 1 "$(now postern_audit_ok)"
	! dd if=/dev/zero of="$LAB/state/audit/filler" bs=4k 2>/dev/null
	run guest full "$LAB_DIR/client.py" --timeout 1 tcp "$NET4.$BYTES" 9001 unrecorded --half-close
	wait_for 5 is_now postern_audit_ok 0
	nothing_new full
	waiting() { (($(now postern_records_waiting) > 0)); }
	wait_for 5 waiting
	rm "$LAB/state/audit/filler"
	wait_for 10 is_now postern_audit_ok 1
	wait_for 10 is_now postern_records_waiting 0
	agreed "$OF_ATTEMPTS"
	(($(value 'postern_attempts_total{kind="connection",verdict="failed"}') > 0))
}

@test "metrics: mixed traffic of several sandboxes is counted as the log has it, to the byte" {
	sandbox one --policy "$(policy one "${TRAFFIC[@]}")"
	sandbox two --policy "$(policy two "${TRAFFIC[@]}")"
	traffic one
	traffic two
	hold one
	agreed "$OF_ATTEMPTS"
	# Two flows of datagrams, and those that are held.
	equal "open" 4 "$(value postern_connections_open)"
	local series
	for series in 'kind="connection",verdict="allowed"' 'kind="connection",verdict="denied"' \
		'kind="connection",verdict="failed"' 'kind="dns",verdict="allowed"' 'kind="dns",verdict="denied"' \
		'kind="refused",verdict="denied"'; do
		(($(value "postern_attempts_total{$series}") >= 2)) || fail "none: $series"
	done
	equal "sandboxes" "2 0 0" "$(value 'postern_sandboxes{state="attached"}') $(
		value 'postern_sandboxes{state="restoring"}') $(value 'postern_sandboxes{state="broken"}')"
	# What a sandbox that is gone did stays counted.
	cp "$LAB/tmp/metrics" "$LAB/tmp/before"
	sandbox_gone two
	background_end
	sandbox_gone one
	agreed "$OF_ATTEMPTS|$OF_BYTES"
	equal "in status" "$(value 'postern_attempts_total{kind="refused",verdict="denied"}') $(
		value 'postern_bytes_total{direction="upload"}') true" \
		"$(postern status -o json | jq -r '"\(.totals.attempts.refused.denied) \(.totals.upload) \(.log.changes > 0)"')"
	equal "counters that fell" "" "$(fell "$LAB/tmp/before" "$LAB/tmp/metrics")"
	equal "open" 0 "$(value postern_connections_open)"
	equal "sandboxes" 0 "$(value 'postern_sandboxes{state="attached"}')"
	equal "names of sandboxes in it" "" "$(grep -E '"(one|two)"' "$LAB/tmp/metrics" || true)"
}

@test "metrics: the form is that of the text format, and its content type says so" {
	run -0 curl -sS -o "$LAB/tmp/metrics" -w '%{content_type}' --unix-socket "$LAB/run/control.sock" http://localhost/metrics
	equal "content type" "text/plain; version=0.0.4; charset=utf-8" "$output"
	equal "lines that are none" "" "$(grep -vE '^# (HELP|TYPE) postern_[a-z_]+ .+$|^postern_[a-z_]+(\{([a-z]+="[^"\\]*",?)+\})? [0-9]+(\.[0-9]+)?$' \
		"$LAB/tmp/metrics" || true)"
	equal "version" 1 "$(value "postern_build_info{version=\"$(postern status -o json | jq -r .version)\"}")"
	local name
	while read -r name; do
		grep -q -- "^\*$name\*\|, \*$name\*" "$REPO/man/posternd.8.scd" || fail "the manual does not know $name" || return 1
	done < <(sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$LAB/tmp/metrics")
	local age=$(($(date +%s) - $(value postern_start_time_seconds | cut -d. -f1)))
	((age >= 0 && age < 600)) || fail "started $age s ago"
}

@test "metrics: what people do is counted, and the log's own state is what verify says of it" {
	local before after
	scrape
	before=$(value 'postern_events_total{event="policy"}')
	sandbox edits --policy "$(policy edits "$NEWS")"
	postern allow edits git.lab-code.org
	postern deny edits gist.lab-code.org
	postern mark edits 'step 1'
	scrape
	equal "edits" $((before + 2)) "$(value 'postern_events_total{event="policy"}')"
	(($(value 'postern_events_total{event="mark"}') >= 1 && $(value 'postern_events_total{event="attach"}') >= 1))
	changes_agree() { is_now postern_audit_changes_total "$(sqlite3 -readonly "$DB" 'SELECT max(seq) FROM chain')"; }
	wait_for 15 changes_agree
	sealed() { is_now postern_audit_unsealed_changes 0; }
	wait_for 25 sealed
	after=$(value postern_audit_last_seal_timestamp_seconds)
	matches "time of the newest seal" "^${after%??????}" "$(sqlite3 -readonly "$DB" "SELECT printf('%.6f', max(ts) / 1e6) FROM seals")"
	(($(value postern_audit_size_bytes) >= $(stat -c %s "$DB")))
}

@test "metrics: counters do not fall when roles die, and a gateway's last second is all that may be missing" {
	sandbox crash --policy "$(policy crash "${TRAFFIC[@]}")"
	traffic crash
	hold crash
	agreed "$OF_ATTEMPTS"
	local role
	for role in gateway auditor control; do
		cp "$LAB/tmp/metrics" "$LAB/tmp/before"
		role_signal KILL "$role"
		wait_for 10 all_ready
		scrape
		# What control itself did is its own to count.
		equal "counters that fell with $role" "" "$(fell "$LAB/tmp/before" "$LAB/tmp/metrics" | grep -v ^postern_events_total || true)"
		(($(value "postern_role_restarts_total{role=\"$role\",index=\"0\"}") > 0))
		equal "$role is up" 1 "$(value "postern_role_up{role=\"$role\",index=\"0\"}")"
		background_end
	done
	# All that was counted a second before the crash: here, all.
	agreed "$OF_ATTEMPTS"
	traffic crash
	agreed "$OF_ATTEMPTS"
}

@test "metrics: a sandbox's table that somebody changed is counted" {
	sandbox changed --policy "$(policy changed "$NEWS")"
	local before
	before=$(now postern_tampered_total)
	ip netns exec postern-changed nft delete table inet postern
	more_tampered() { (($(now postern_tampered_total) > before)); }
	wait_for 10 more_tampered
	equal "host chain" 1 "$(value postern_host_chain)"
	guest_fails changed "$LAB_DIR/client.py" tcp "$NET4.$OTHER" 443 refused
	far_none "> $NET4\.$OTHER "
}
