#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fill a copy of an audit database with connections of a sandbox: fill.py DATABASE SANDBOX COUNT

They have no links in the chain, so that what reads the log is tried with them, not what verifies it."""
import random
import sqlite3
import sys

path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = sqlite3.connect(path)
(sandbox, start) = db.execute("SELECT id, attached_ts FROM sandboxes WHERE name = ?", (name,)).fetchone()
pick = random.Random(1)
columns = (
    "id, seq, sandbox_id, ts, count, proto, src, sport, dst, dport, name, name_source, verdict, reason, generation, "
    "flags, bytes_out, bytes_in, duration_us, closed_ts, end"
)


def row(i):
    """One closed, allowed connection, an hour being full of them."""
    ts = start + i * 3600 * 10**6 // count
    took = pick.randrange(9 * 10**6)
    host = f"h{pick.randrange(50)}.site{pick.randrange(400)}.lab-a.com"
    dst = f"45.45.{pick.randrange(40)}.{pick.randrange(200)}"
    out, back = pick.randrange(10**5), pick.randrange(10**6)
    return (10**15 + i, 10**9 + i, sandbox, ts, 1, 6, "172.16.0.2", 40000, dst, 443, host, 2, 0, 0, 1, 0, out, back,
            took, ts + took, 1)


db.executemany(f"INSERT INTO connections ({columns}) VALUES ({', '.join('?' * 21)})", (row(i) for i in range(count)))
db.commit()
