# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: GPL-3.0-or-later
# Who lives where in the lab's Internet. The addresses look public because documentation ranges are on the never list;
# they exist only inside tests/lab/enter. Names: zones/lab.zone.

# The link between the lab's host and its Internet.
HOST4=5.161.10.2 HOST4_GW=5.161.10.1
HOST6=2600:1:ff::2 HOST6_GW=2600:1:ff::1

# Servers, as the last part of 45.45.45.x and 2600:1:2::x.
NET4=45.45.45 NET6=2600:1:2:
WEB=10       # news.lab-site.org
SHARED=11    # lab-a.com and *.lab-a.com, and shared.lab-b.net of somebody else
CDN=12       # edge.lab-cdn.net
OTHER=20     # lab-b.net: allowed by no test's policy
GIT=22       # git.lab-code.org
ECHO=30      # echo.lab-site.org, tests/lab/origins.conf
BYTES=40     # bytes.lab-site.org: logs what arrives on 80 and 443, serves nothing
RECURSIVE=53 # unbound
AUTHORITY=54 # nsd
RESOLVER=55  # fdns.py: logs every query, scripted answers, otherwise asks unbound. posternd's upstream
SILENT=99    # drops everything
SERVERS=("$WEB" "$SHARED" "$CDN" "$OTHER" "$GIT" "$ECHO" "$BYTES" "$RECURSIVE" "$AUTHORITY" "$RESOLVER" "$SILENT")
WEB_SERVERS=("$WEB" "$SHARED" "$CDN" "$OTHER" "$GIT")

# Addresses that postern must never reach. They answer here, so that a leak is seen and not merely suspected.
TRAPS4=(10.0.0.5 10.96.0.1 100.64.0.1 100.100.100.200 168.63.129.16 169.254.169.254 169.254.170.2 172.20.0.1
	192.0.0.192 192.168.1.1 198.18.0.1)
TRAPS6=(fd00:ec2::254 fd20:ce::254 64:ff9b::a00:5 2002:a00:5::1 2001:0:a00:5::1)
# Resolvers of others: only ever asked by a guest, never by postern.
FOREIGN_RESOLVERS=(8.8.8.8 1.1.1.1 2606:4700:4700::1111)
