#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hold what a guest saw (the results of cases.py) against the record and the far side: confront.py SANDBOX RESULTS LOG FROM

LOG is the origins' log (for query.py: the resolver's), looked at from line FROM + 1 on. Each attempt must have ended as its
expectation says, with exactly the expected records, and the far side must have got exactly the bytes of the allowed ones.
Closing records and logs come a moment later, so that what does not agree is looked at again for some seconds. What still
does not is printed, and the exit status is 1.
"""
import collections
import json
import subprocess
import sys
import time

REFUSAL_MS = 3000
LATE_MS = (9000, 14000)
PATIENCE_S = 8
SHOWN = 12
HTTP_ANSWERED = ("http_malformed", "host_mismatch", "no_rule", "rule_deny", "never_name", "never_address", "proto_denied")
AT_SYN = ("not_leased", "never_address")


def guest_fault(result):
    """What is wrong with how it ended for the guest, or None."""
    first, last = result["expect"][0], result["expect"][-1]
    slowest = LATE_MS[1] if result["late"] else REFUSAL_MS
    if result["late"] and result["ms"] < LATE_MS[0]:
        return "refused before its deadline"
    if first == last == "allowed":
        if result["received"].startswith("HTTP/1.1 200") or result["received"].removeprefix("!") == f"{result['sent']} {result['sha256']}\n":
            return None if result["end"] == "fin" else "not closed in order"
        return "not all of it, or something else, arrived"
    if result["ms"] > slowest:
        return "refused too slowly"
    if first == "allowed":
        return None if result["end"] == "rst" else "should have been reset after its first part"
    if result["end"] == "refused":
        return None if first in AT_SYN else "refused at its SYN"
    if result["tool"] == "http" and first in HTTP_ANSWERED:
        status = "400" if first == "http_malformed" else "403"
        head = result["received"].partition("\r\n\r\n")[0]
        if not head.startswith(f"HTTP/1.1 {status} ") or f"\r\nPostern-Reason: {first}" not in head:
            return "no answer that tells the reason"
        return None if result["end"] in ("fin", "rst") else "not closed"
    return None if result["end"] == "rst" and not result["received"] else "should have been reset"


def record_fault(result, rows):
    """What is wrong with its records, or None."""
    if result["end"] == "refused":
        key = (result["dst"], result["dport"])
        return None if any((row["dst"], row["dport"]) == key and row["reason"] == result["expect"][0]
                           for row in rows["deny"]) else "no row of the refused packet"
    mine = rows[result["sport"]]
    reasons = [row["reason"] for row in mine]
    if reasons != result["expect"]:
        return f"records say {reasons}"
    for row in mine:
        if (row["dst"], row["dport"]) != (result["dst"], result["dport"]):
            return "record of another destination"
        if (row["verdict"] == "allowed") != (row["reason"] == "allowed"):
            return f"verdict {row['verdict']}"
        if row["reason"] == "allowed" and row["end"] == "open":
            return "record not closed"
        if row["reason"] == "allowed" and len(mine) == 1 and (row["end"], row["bytes_out"]) != ("fin", result["sent"]):
            return f"record says {row['end']}, {row['bytes_out']} bytes"
    return None


def query_fault(result, rows):
    mine = [row for row in rows["dns"] if row["sport"] == result["sport"]]
    allowed = result["expect"] == ["allowed"]
    if [row["reason"] for row in mine] != result["expect"]:
        return f"records say {[row['reason'] for row in mine]}"
    if (mine[0]["verdict"] == "allowed") != allowed:
        return f"verdict {mine[0]['verdict']}"
    if allowed != (result["rcode"] == 0 and result["answers"] > 0):
        return f"rcode {result['rcode']} with {result['answers']} answers"
    if not allowed and result["rcode"] not in (1, 3, 5):
        return f"refused with rcode {result['rcode']}"
    return None if allowed or result["ms"] < REFUSAL_MS else "refused too slowly"


def far_faults(results, log):
    """The far side got the allowed bytes, each once, and nothing of the rest."""
    served = {(r["dst"], r["dport"]) for r in results if r["received"].startswith("HTTP/1.1 200")}
    mine = {(r["dst"], r["dport"]) for r in results} - served
    seen, opened, wanted = collections.Counter(), collections.Counter(), collections.Counter()
    for row in log:
        key = (row.get("local"), row.get("port"))
        if key in mine and row["event"] == "open":
            opened[key] += 1
        if key in mine and row["event"] == "close":
            seen[(key, row["sha256"])] += 1
    for r in results:
        key = (r["dst"], r["dport"])
        if key in mine and r["expect"][0] == "allowed":
            wanted[(key, r["sha256"])] += 1
    for what, count in ((seen - wanted), "too much"), ((wanted - seen), "too little"):
        for (key, digest), n in what.items():
            yield f"{key[0]} port {key[1]} got {n} times {count} of {digest}"
    if sum(opened.values()) != sum(wanted.values()):
        yield f"{sum(opened.values())} connections arrived, {sum(wanted.values())} were allowed"


def asked_faults(results, log):
    """The resolver heard of nothing that may not be asked; a name that is refused for its answer was asked for."""
    allowed = {r["qname"] for r in results if r["expect"][0] in ("allowed", "dns_rebind")}
    for row in log:
        if row["event"] == "query" and (row["qname"] or "").lower() not in allowed:
            yield f"the resolver was asked for {row['qname']!r}"


def read_rows(sandbox):
    text = subprocess.run(["postern", "log", sandbox, "-o", "json", "-n", "1000000"], check=True, capture_output=True).stdout
    rows = collections.defaultdict(list)
    for line in text.splitlines():
        row = json.loads(line)
        if row["kind"] in ("dns", "deny"):
            rows[row["kind"]].append(row)
        if row["kind"] in ("flow", "deny") and row.get("sport"):
            rows[row["sport"]].append(row)
    return rows


def faults(sandbox, results, log_path, skip):
    rows = read_rows(sandbox)
    with open(log_path, encoding="ascii") as file:
        log = [json.loads(line) for line in file.readlines()[skip:] if line.endswith("\n")]
    queries = results and results[0]["tool"] == "dns"
    for result in results:
        checks = (query_fault(result, rows),) if queries else (guest_fault(result), record_fault(result, rows))
        for fault in filter(None, checks):
            yield f"{fault}: {json.dumps(result)}"
    yield from asked_faults(results, log) if queries else far_faults(results, log)


def main():
    sandbox, results_path, log_path, skip = sys.argv[1:]
    with open(results_path, encoding="ascii") as file:
        results = [json.loads(line) for line in file]
    if not results:
        sys.exit("confront.py: no attempts were made")
    deadline = time.monotonic() + PATIENCE_S
    while found := list(faults(sandbox, results, log_path, int(skip))):
        if time.monotonic() > deadline:
            print("\n".join(found[:SHOWN]), f"{len(found)} disagreements, {len(results)} attempts", sep="\n", file=sys.stderr)
            return 1
        time.sleep(0.1)
    print(f"{len(results)} attempts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
