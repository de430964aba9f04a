# shellcheck shell=dash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the demonstration tries inside each sandbox, the same in the virtual machine and in the namespace. One line for
# each attempt: "ok" when it ended as it should, "WRONG" when not. The exit status tells whether any was wrong.

wrong=0
out=/tmp/out.$$

now_ms() {
	# Hundredths of a second since boot; dash and BusyBox have nothing finer in common.
	read -r up _ </proc/uptime
	echo "${up%.*}${up#*.}0"
}

# try reached|refused WHAT COMMAND...
try() {
	want=$1 what=$2
	shift 2
	start=$(now_ms)
	if "$@" >"$out" 2>&1 </dev/null; then got=reached; else got=refused; fi
	ms=$(($(now_ms) - start))
	mark=ok
	if [ "$got" != "$want" ]; then
		mark=WRONG
		wrong=1
	fi
	# The first thing said: a page's line, or curl's reason.
	said=$(grep -v '^$' "$out" | tail -n 1 | cut -c 1-60)
	printf '  %-5s %-8s %5d ms  %-46s %s\n' "$mark" "$got" "$ms" "$what" "$said"
}

# shellcheck disable=SC2317 # called by try
fetch() { curl -sS --fail -m 15 "$@"; }
# shellcheck disable=SC2317
look_up() { busybox nslookup "$@"; }

try reached "allowed site, HTTPS over IPv4" fetch -4 https://news.lab-site.org/
try reached "allowed site, HTTPS over IPv6" fetch -6 https://news.lab-site.org/
try reached "allowed site, plain HTTP" fetch http://news.lab-site.org/
try reached "allowed by a wildcard rule" fetch https://api.lab-a.com/ok.json
try refused "site that no rule allows" fetch https://www.lab-b.net/
try refused "a private address" fetch http://10.0.0.5/
try refused "the cloud's metadata address" fetch http://169.254.169.254/latest/meta-data/
try refused "allowed name that points to metadata" fetch http://metadata.lab-evil.net/
try refused "a raw public address" fetch -k https://45.45.45.20/
try refused "wrong SNI to an allowed site's address" fetch -k --connect-to www.lab-b.net:443:news.lab-site.org:443 https://www.lab-b.net/
try refused "wrong Host to an allowed site's address" fetch -H "Host: www.lab-b.net" http://news.lab-site.org/
try refused "a name, through somebody else's resolver" look_up www.lab-b.net 8.8.8.8
try refused "somebody else's resolver, DNS over TLS" busybox nc -w 5 1.1.1.1 853
try refused "allowed site on another port" fetch https://api.lab-a.com:8443/
rm -f "$out"
exit $wrong
