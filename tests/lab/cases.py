# SPDX-License-Identifier: GPL-3.0-or-later
"""Many attempts of a guest in one process, by a table: the part that hello.py, httpx.py and query.py share.

  TOOL [option...] TARGET... <TABLE >RESULTS

TARGET is HOST:PORT; a name stands for all of its addresses, as the guest resolves them. Every case is tried on every
target address, from a source port of its own, by which confront.py finds its record. A line of the table is

  EXPECT  EXPRESSION

EXPECT is the reason of the record that must come of it ("allowed", "no_rule", ...); several with commas between them are
the records of one connection, in order. A/B: A over IPv4 and B over IPv6. "+late" behind it: only when the head's deadline
is over. EXPRESSION is Python with the tool's words and yields what is sent: bytes, or a Case, or a list of these for as
many cases. Lines that begin with "#" and empty ones are skipped; a line that begins with a space goes on where the one
before ended.

One JSON line for each attempt: {"case", "expect", "late", "tool", "sport", "dst", "dport", "end", "ms", "sent", "sha256",
"received"}. sent and sha256 are of the bytes that the far side must get when the first expectation is "allowed"; received
is the beginning of what came back (latin-1). end: fin, rst, refused, timeout, unreachable.

options: --sport FIRST (20000), --workers N (32)
"""
import argparse
import concurrent.futures
import hashlib
import json
import socket
import sys
import threading
import time

RECEIVED_KEPT = 1024
# Longer than the deadline of a head, which some cases wait for.
TIMEOUT_S = 16
CHUNK = 65536


class Case:
    """What one connection sends: segments with a gap between them. passes: how much of it the far side must get (all)."""

    def __init__(self, segments, gap=0.0, passes=None, title=""):
        self.segments, self.gap, self.title = segments, gap, title
        data = b"".join(segments)
        self.passes = data if passes is None else passes

    def __repr__(self):
        return self.title


def cut(data, *at, gap=0.003):
    """Segments that end at these offsets."""
    edges = [0, *at, len(data)]
    return Case([data[a:b] for a, b in zip(edges, edges[1:])], gap, title=f"cut at {at[:3]}")


def every(data, gap=0.003, step=1):
    """Cut in two, at each offset in turn."""
    return [cut(data, i, gap=gap) for i in range(1, len(data), step)]


def dribble(data, gap=0.0, size=1):
    """Segments of that size."""
    return cut(data, *range(size, len(data), size), gap=gap)


def then(first, second, gap=0.05):
    """Two parts of which only the first may pass; gap None: both in one write."""
    parts = [first + second] if gap is None else [first, second]
    return Case(parts, gap or 0.0, passes=first, title="then")


def title_of(expression, case, index):
    text = case.title or (case.segments[0][:60] if case.segments else b"").decode("latin-1").encode("unicode_escape").decode()
    return f"{expression} [{index}: {text}]"


def read_table(text, words):
    """(expect, title, Case) of each case."""
    lines = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace() and lines:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
    for line in lines:
        expect, _, expression = line.partition(" ")
        made = eval(expression.strip(), words)  # pylint: disable=eval-used # a test's own table
        for i, case in enumerate(made if isinstance(made, list) else [made]):
            if isinstance(case, bytes):
                case = Case([case])
            yield expect, title_of(expression.strip(), case, i), case


def resolve(targets):
    for target in targets:
        host, _, port = target.rpartition(":")
        for info in socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM):
            yield info[0], info[4]


def end_of(error):
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    if isinstance(error, (ConnectionResetError, BrokenPipeError)):
        return "rst"
    if isinstance(error, TimeoutError):
        return "timeout"
    return "unreachable" if error.errno in (101, 113) else str(error)


def converse(sock, case, half_close):
    """(how it ended, what came back)"""
    received, over = b"", "fin"
    try:
        for i, segment in enumerate(case.segments):
            if i and case.gap:
                time.sleep(case.gap)
            for at in range(0, len(segment), CHUNK):
                sock.sendall(segment[at : at + CHUNK])
        if half_close:
            sock.shutdown(socket.SHUT_WR)
    except (ConnectionResetError, BrokenPipeError):
        over = "rst"  # what came before it can still be read
    except OSError as error:
        return end_of(error), received
    try:
        while data := sock.recv(CHUNK):
            received += data
    except OSError as error:
        return end_of(error), received
    return over, received


def attempt(case, half_close, family, address, sport):
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(TIMEOUT_S)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind(("", sport))
        start = time.monotonic()
        try:
            sock.connect(address)
        except OSError as error:
            end, received = end_of(error), b""
        else:
            end, received = converse(sock, case, half_close)
        return {"end": end, "ms": round((time.monotonic() - start) * 1000, 1), "received": received[:RECEIVED_KEPT].decode("latin-1")}


def main(tool, words, converse_once=attempt):
    parser = argparse.ArgumentParser()
    parser.add_argument("--sport", type=int, default=20000)
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("target", nargs="+")
    args = parser.parse_args()
    words = {**globals(), **words}
    table = list(read_table(sys.stdin.read(), words))
    lock = threading.Lock()

    def work(expect, title, case, family, address, sport):
        reasons, late = expect.removesuffix("+late"), expect.endswith("+late")
        # Without its FIN a far side that counts would wait for ever; with it, "more may come" would not be tested.
        seen = converse_once(case, reasons.endswith("allowed"), family, address, sport)
        row = {"case": title, "expect": reasons.split(","), "late": late, "tool": tool, "sport": sport, "dst": address[0],
               "dport": address[1], "sent": len(case.passes), "sha256": hashlib.sha256(case.passes).hexdigest(), **seen}
        with lock:
            print(json.dumps(row), flush=True)

    sport = args.sport
    with concurrent.futures.ThreadPoolExecutor(args.workers) as pool:
        jobs = []
        for family, address in resolve(args.target):
            for expect, title, case in table:
                expect = expect.split("/")[-1 if family == socket.AF_INET6 else 0]
                jobs.append(pool.submit(work, expect, title, case, family, address, sport))
                sport += 1
        for job in jobs:
            job.result()
