# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Words for tests in which processes end when nobody expected it, beside lab.bash: a guest that goes on trying
# (attempts.py), and whether all that the origin saw of it is on record.

# shellcheck disable=SC2034 # for those who load this
ECHO_RULE='{host: echo.lab-site.org, ports: [7]}'

# A guest of such tests: its resolver gives up soon.
impatient() {
	echo "options timeout:1 attempts:2" >>"$LAB/guest/$1/resolv.conf"
}

# When the newest attempts at a target began that ended so: tried TARGET END
tried() {
	tail -n 500 "$LAB/tmp/tries" | jq -r --arg target "$1" --arg how "$2" 'select(.target == $target and .end == $how) | .t'
}
# Has an attempt at this target that began after TIME come through? works_since TARGET TIME
works_since() { tried "$1" echo | awk -v since="$2" '$1 > since {found = 1} END {exit !found}'; }

# Each connection of attempts.py that reached the echo is one row, and those that it got an answer from are among them.
# Prints how many there were: every_connection_once NAME
every_connection_once() {
	jq -s '[.[] | select(.end == "echo") | .sport] | sort' "$LAB/tmp/tries" >"$LAB/tmp/sports.guest"
	origin_log 'select(.event == "close" and .behaviour == "echo" and .port == 7 and .bytes_in > 0) | .first' |
		python3 -c 'import json, sys; print(sorted(int(bytes.fromhex(json.loads(line)).split()[0]) for line in sys.stdin
			if bytes.fromhex(json.loads(line))[:1].isdigit()))' >"$LAB/tmp/sports.origin"
	all_recorded() {
		log_json "$1" | jq -s '[.[] | select(.kind == "flow" and .dport == 7) | .sport] | sort' >"$LAB/tmp/sports.log"
		python3 - "$LAB"/tmp/sports.{guest,origin,log} <<-'PYTHON'
			import collections, json, sys
			guest, origin, log = (collections.Counter(json.load(open(path))) for path in sys.argv[1:])
			print("answered", guest.total(), "at the origin", origin.total(), "rows", log.total())
			if guest.total() < 10 or guest - log or origin - log or guest - origin:
			    sys.exit(f"not on record: {guest - log} {origin - log}; not at the origin: {guest - origin}")
		PYTHON
	}
	wait_for 5 all_recorded "$1" || true
	all_recorded "$1"
}
