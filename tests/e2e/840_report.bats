#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
# postern report: a page that says what the log says, asks nothing of any network, opens in a real browser, and in which
# nothing that a guest said is more than text.

bats_require_minimum_version 1.5.0
load ../lab/lab

setup_file() {
	lab_up
	posternd_start
	mkdir -p "$LAB/tmp/chromium"
}

setup() {
	mark
}

teardown() {
	if [[ -z ${BATS_TEST_COMPLETED:-} ]]; then
		tail -n 20 "$LAB/posternd.log"
	fi
	all_gone
}

DB=$LAB/state/audit/audit.db
PAGE=$LAB/tmp/report.html

# Chromium without any network, what it says about the page in $LAB/tmp/chromium.log: browse OPTION...
browse() {
	unshare -n timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --enable-logging=stderr --v=0 \
		--user-data-dir="$LAB/tmp/chromium/profile" "$@" "file://$PAGE" 2>"$LAB/tmp/chromium.log"
}

# Width and height, from the file's first chunk.
png_size() { od -An -j16 -N8 -tu4 --endian=big "$1" | xargs; }

@test "report: steps, connections and refusals stand side by side, and the page opens in a browser without a complaint" {
	sandbox seen --policy "$(policy seen 'host: news.lab-site.org' 'host: "*.lab-a.com"')" --label task=4711
	postern mark seen "step 1: open the news"
	run -0 guest seen curl -sS -4 -o /dev/null https://news.lab-site.org/
	run -0 guest seen curl -sS -6 -o /dev/null https://news.lab-site.org/
	postern mark seen "step 2: click Export"
	run -0 guest seen curl -sS -o /dev/null https://api.lab-a.com/ok.json
	guest_fails seen curl -sS --max-time 5 https://www.lab-b.net/
	log_has seen '.verdict == "denied"'
	postern report seen -o "$PAGE"
	equal "its mode" 644 "$(stat -c %a "$PAGE")"
	matches "sandbox" '<h1>Sandbox seen</h1>' "$(cat "$PAGE")"
	matches "label" 'task=4711' "$(cat "$PAGE")"
	matches "verified" '✓ Verified.</strong> [0-9]+ changes of the log and [0-9]+ seals fit' "$(cat "$PAGE")"
	matches "policy" 'allow news.lab-site.org .*seen.yaml' "$(cat "$PAGE")"
	dom=$(browse --dump-dom)
	matches "first step" 'step 1: open the news' "$dom"
	# In the row of the step, what was reached and what was refused in it.
	row=$(grep -o '<tr>.*step 2: click Export.*</tr>' <<<"$dom")
	matches "reached in step 2" 'api.lab-a.com' "$row"
	matches "refused in step 2" 'www.lab-b.net' "$row"
	[[ $row != *news.lab-site.org* ]]
	equal "connections allowed" 3 "$(grep -oP '<b class="ok">\K[0-9,]+(?=</b> connections allowed)' <<<"$dom")"
	run ! grep CONSOLE "$LAB/tmp/chromium.log"
	# A style sheet that somebody touched is not applied, and the browser says so: it was listened to.
	cp "$PAGE" "$LAB/tmp/untouched.html"
	sed -i 's/margin:0;background/margin:1px;background/' "$PAGE"
	browse --dump-dom >/dev/null
	grep 'CONSOLE.*Content Security Policy' "$LAB/tmp/chromium.log"
	mv "$LAB/tmp/untouched.html" "$PAGE"
	# Not a word of it came from elsewhere.
	run ! grep -E '(src|href)="[^#]' "$PAGE"
	postern detach seen
	# The log outlives the sandbox; its policy is told by the events.
	postern report seen >"$PAGE"
	matches "detached" 'detached <time' "$(cat "$PAGE")"
	matches "policy" 'The sandbox is not attached now' "$(cat "$PAGE")"
}

@test "F-28, F-30: names, marks and hosts full of markup and control bytes are text in the page" {
	sandbox evil --policy "$(policy evil 'host: news.lab-site.org')"
	postern mark evil '</td><script>document.title="owned"</script><img src=x onerror=document.title="owned">'
	guest_fails evil curl -sS --fail --max-time 5 -H 'Host: <script>document.title="owned"</script>' http://news.lab-site.org/
	run -0 guest evil dig +time=2 +tries=1 '"><script>x</script>.example'
	matches "answer" 'status: NXDOMAIN' "$output"
	postern report evil -o "$PAGE"
	run ! grep -i '<script' "$PAGE"
	dom=$(browse --dump-dom)
	run ! grep -i '<script\|<img' <<<"$dom"
	matches "title" '<title>postern report: evil</title>' "$dom"
	matches "mark" '&lt;script&gt;document.title="owned"&lt;/script&gt;' "$dom"
	postern detach evil
}

@test "report: it reads on a phone, in the dark and in print" {
	sandbox look --policy "$(policy look 'host: news.lab-site.org')"
	run -0 guest look curl -sS -4 -o /dev/null https://news.lab-site.org/
	postern report look -o "$PAGE"
	# Of so many pixels, and not one colour.
	browse --window-size=390,1600 --screenshot="$LAB/tmp/phone.png" >/dev/null
	browse --window-size=1280,1600 --blink-settings=preferredColorScheme=0 --screenshot="$LAB/tmp/dark.png" >/dev/null
	browse --window-size=1280,1600 --screenshot="$LAB/tmp/light.png" >/dev/null
	browse --print-to-pdf="$LAB/tmp/print.pdf" >/dev/null
	equal "phone" "390 1600" "$(png_size "$LAB/tmp/phone.png")"
	equal "dark" "1280 1600" "$(png_size "$LAB/tmp/dark.png")"
	equal "print" "%PDF" "$(head -c 4 "$LAB/tmp/print.pdf")"
	(($(stat -c %s "$LAB/tmp/phone.png") > 20000))
	run ! cmp -s "$LAB/tmp/dark.png" "$LAB/tmp/light.png"
	postern detach look
}

@test "report: a sandbox with 100,000 connections makes a page of less than a megabyte that opens" {
	sandbox busy --policy "$(policy busy 'host: news.lab-site.org')"
	run -0 guest busy curl -sS -4 -o /dev/null https://news.lab-site.org/
	postern detach busy
	cp "$DB" "$LAB/tmp/busy.db"
	cp "$DB-wal" "$LAB/tmp/busy.db-wal"
	"$LAB_DIR/fill.py" "$LAB/tmp/busy.db" busy 100000
	postern report busy --db "$LAB/tmp/busy.db" -o "$PAGE"
	matches "count" '<b class="ok">100,001</b> connections allowed' "$(cat "$PAGE")"
	(($(stat -c %s "$PAGE") < 1048576))
	# Nobody's gateway wrote those: the page says so.
	matches "verified" '✗ NOT VERIFIED.</strong> [0-9]+ faults in the log; the first: inserted' "$(cat "$PAGE")"
	postern report busy --db "$LAB/tmp/busy.db" --no-verify -o "$PAGE"
	matches "not verified" 'Not verified.</strong>' "$(cat "$PAGE")"
	dom=$(browse --dump-dom)
	matches "all of it" 'This page holds no script' "$dom"
}

@test "report: the log is verified from the newest seal before the sandbox was attached, and the page says since when" {
	local copy=$LAB/tmp/since.db seal
	sandbox early --policy "$(policy early 'host: news.lab-site.org')"
	run -0 guest early curl -sS -4 -o /dev/null https://news.lab-site.org/
	postern detach early
	# An orderly end seals all there is.
	posternd_stop
	posternd_start
	sandbox late --policy "$(policy late 'host: news.lab-site.org')"
	seal=$(sqlite3 -readonly "$DB" "SELECT strftime('%FT%H:%M:%S', max(ts) / 1000000, 'unixepoch') FROM seals
		WHERE ts < (SELECT attached_ts FROM sandboxes WHERE name = 'late')")
	run -0 guest late curl -sS -4 -o /dev/null https://news.lab-site.org/
	log_has late '.verdict == "allowed" and .kind == "flow"'
	postern detach late
	sqlite3 "$DB" ".backup '$copy'"
	postern report late --db "$copy" -o "$PAGE"
	matches "since" "✓ Verified.</strong> [0-9]+ changes of the log and [0-9]+ seals fit each other since $seal" "$(cat "$PAGE")"
	# What was before is another page's business.
	sqlite3 "$copy" "UPDATE connections SET rule = 'x' WHERE sandbox_id = (SELECT id FROM sandboxes WHERE name = 'early')"
	postern report late --db "$copy" -o "$PAGE"
	matches "not before" '✓ Verified.</strong> [0-9]+ changes .* since ' "$(cat "$PAGE")"
	postern report early --db "$copy" -o "$PAGE"
	matches "before" '✗ NOT VERIFIED.</strong> [0-9]+ faults in the log; the first: changed' "$(cat "$PAGE")"
	sqlite3 "$copy" "UPDATE connections SET rule = 'x' WHERE sandbox_id = (SELECT id FROM sandboxes WHERE name = 'late')"
	postern report late --db "$copy" -o "$PAGE"
	matches "after" '✗ NOT VERIFIED.</strong> [0-9]+ faults in the log; the first: changed' "$(cat "$PAGE")"
}

@test "report: what does not exist is said to, and no half page is left" {
	run -1 postern report nobody -o "$PAGE.new"
	matches "message" 'no sandbox nobody in this log' "$output"
	[[ ! -e $PAGE.new ]]
	run -2 postern report
	matches "message" 'missing operand: SANDBOX, or --id' "$output"
	run -1 postern report nobody --db "$LAB/tmp/none.db"
	matches "message" 'no audit log at' "$output"
}

@test "report: a pipe or a device is written to and stays what it is, and what cannot be written is said" {
	local reader

	sandbox piped
	postern detach piped
	mkfifo "$LAB/tmp/page.pipe"
	cat "$LAB/tmp/page.pipe" >"$PAGE" &
	reader=$!
	run -0 timeout 20 postern report piped --no-verify -o "$LAB/tmp/page.pipe"
	wait "$reader"
	matches "begin" '<h1>Sandbox piped</h1>' "$(cat "$PAGE")"
	matches "end" '</html>' "$(cat "$PAGE")"
	[[ -p $LAB/tmp/page.pipe ]]
	run -1 postern report piped --no-verify -o /dev/full
	matches "message" '/dev/full cannot be written: No space left' "$output"
	[[ -c /dev/full ]]
	run -1 bash -c 'postern report piped --no-verify >/dev/full'
	matches "message" 'standard output cannot be written: No space left' "$output"
}

@test "report: a daemon that cannot be asked is not said to have no such sandbox" {
	sandbox asked
	postern report asked --no-verify -o "$PAGE"
	matches "policy" 'deny everything else' "$(cat "$PAGE")"
	postern report asked --no-verify -R "$LAB/tmp/nowhere" -o "$PAGE"
	matches "why" 'posternd did not answer' "$(cat "$PAGE")"
	run ! grep 'not attached now' "$PAGE"
	postern detach asked
}
