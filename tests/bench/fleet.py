#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# fleet.py RUN-DIR PID-ONE PID-MANY PID-BIG FLEET FLEET-BIG RULES: see tests/bench/fleet. Prints figures beside what they
# ought to be; exits with 1 when one is missed.
#
# The two daemons of the edits run side by side, and each edit of one is followed or preceded by the same edit of the other:
# what else the machine does then meets both, and the ratio of each pair says what the fleet costs.
import http.client
import json
import os
import random
import socket
import statistics
import sys
import time

PAIRS = 300
RATIO_MAX = 1.25
# Fewer of these: each leaves the kernel a namespace to take apart.
ATTACH_PAIRS = 100
# Of the keeper, which looks at each sandbox's rules twice a second and counts its sockets every five seconds.
REST_S = 10
REST_US_MAX = 100
# The keeper lists the sockets of each new sandbox once, so many a second (gateway/keeper/keeper_watch.c): only then is it at rest.
LISTINGS_A_S = 20
# What a further sandbox with the large file may take more than one with a small one. A copy would be some 20 MB.
EXTRA_KIB_MAX = 64

# Measured from here on: by then every gateway has mapped the file, and the heaps have grown to what one request takes.
WARM = 10
# Fewer further sandboxes than this say nothing of what each takes: pages and heaps come in larger pieces.
SLOPE_MIN = 50

missed = False


class Api(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("postern")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def ask(self, method, path, body):
        self.request(method, path, None if body is None else json.dumps(body))
        answer = self.getresponse()
        text = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {text[:300]!r}")

    def attach(self, name, policy):
        self.ask("POST", "/v1/sandboxes", {"name": name, "kind": "tap", "policy": policy})

    def come_and_go(self, name, policy):
        start = time.perf_counter()
        self.attach(name, policy)
        attached = time.perf_counter()
        self.ask("DELETE", f"/v1/sandboxes/{name}", None)
        return attached - start, time.perf_counter() - attached

    def edit(self, name, method):
        start = time.perf_counter()
        self.ask(method, f"/v1/sandboxes/{name}/rules", {"action": "allow", "rules": ["new.example.com"]})
        return time.perf_counter() - start


def show(what, value, unit, most=None):
    global missed
    over = most is not None and value > most
    missed = missed or over
    goal = "" if most is None else f"  (at most {most:g})" + ("  MISSED" if over else "")
    print(f"{what:<58} {value:10.3f} {unit}{goal}", flush=True)


def roles(keeper):
    with open(f"/proc/{keeper}/task/{keeper}/children") as children:
        for pid in [keeper] + [int(word) for word in children.read().split()]:
            with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                words = cmdline.read().split(b"\0")
            yield pid, words[words.index(b"--role") + 1].decode() if b"--role" in words else "keeper"


# KiB by role: proportional set size, in which memory that n processes share counts 1/n in each.
def memory(keeper):
    sizes = {}
    for pid, role in roles(keeper):
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            pss = next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
        sizes[role] = sizes.get(role, 0) + pss
    return sizes


# Processor time in milliseconds.
def used(pid):
    with open(f"/proc/{pid}/stat") as stat:
        words = stat.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) * 1e3 / os.sysconf("SC_CLK_TCK")


def rest(keeper, fleet):
    time.sleep(fleet / LISTINGS_A_S + 5)
    before = used(keeper)
    time.sleep(REST_S)
    show(f"keeper at rest, processor time a second, {fleet} sandboxes", (used(keeper) - before) / REST_S, "ms",
         max(fleet * REST_US_MAX / 1e3, 10))


def attaches(one, many, fleet, policy):
    times = {one: [], many: []}
    one.close()  # it may have waited for longer than a connection is kept; the next request makes a new one
    many.close()
    for pair in range(ATTACH_PAIRS):
        for api in (one, many) if pair % 2 else (many, one):
            times[api].append(api.come_and_go("comes-and-goes", policy))
    for which, what in enumerate(("attach", "detach")):
        took = {api: [pair[which] for pair in times[api]] for api in times}
        show(f"{what}, one sandbox on the host, median", statistics.median(took[one]) * 1e3, "ms")
        show(f"{what}, {fleet} sandboxes on the host, median", statistics.median(took[many]) * 1e3, "ms")
        # A detach is short: on a busy machine it waits longer for the processor than it uses it, so there is no goal.
        show("ratio of their pairs, median", statistics.median(m / o for o, m in zip(took[one], took[many])), "",
             RATIO_MAX if what == "attach" else None)


def edits(one, many, fleet):
    times = {one: [], many: []}
    for pair in range(PAIRS):
        names = {one: "one", many: f"m{random.randrange(fleet)}"}
        # The same change there and back again; who begins takes turns.
        for method in ("POST", "DELETE"):
            for api in (one, many) if pair % 2 else (many, one):
                times[api].append(api.edit(names[api], method))
    ratios = [m / o for o, m in zip(times[one], times[many])]
    quarters = statistics.quantiles(ratios, n=4)
    show("an edit, one sandbox on the host, median", statistics.median(times[one]) * 1e3, "ms")
    show(f"an edit, {fleet} sandboxes on the host, median", statistics.median(times[many]) * 1e3, "ms")
    show(f"ratio of {len(ratios)} pairs, median", statistics.median(ratios), "", RATIO_MAX)
    print(f"{'ratio, middle half of the pairs':<58} {quarters[0]:6.3f} to {quarters[2]:.3f}")


# KiB that each further sandbox takes, by role.
def slope(before, after, count):
    return {role: (after[role] - before[role]) / count for role in before}


def attach(api, prefix, first, count, policy):
    start = time.perf_counter()
    for i in range(first, count):
        api.attach(f"{prefix}{i}", policy)
    return (time.perf_counter() - start) * 1e3 / max(count - first, 1)


def main():
    run, (pid_one, pid_many, pid_big, fleet, fleet_big, rules) = sys.argv[1], map(int, sys.argv[2:])
    one, many, big = (Api(f"{run}/{name}/control.sock") for name in ("one", "many", "big"))
    small = "version: 1\nallow:\n  - host: www.example.com\n"
    large = "version: 1\nallow:\n" + "".join(f"  - host: host{i}.site{i % 997}.example\n" for i in range(rules))

    one.attach("one", small)
    many.attach("m0", small)
    attach(many, "m", 1, WARM, small)
    before = memory(pid_many)
    show(f"attach, 1 rule, mean of {fleet - WARM}", attach(many, "m", WARM, fleet, small), "ms")
    a_small = slope(before, memory(pid_many), fleet - WARM)
    rest(pid_many, fleet)
    attaches(one, many, fleet, small)
    edits(one, many, fleet)

    show(f"attach, {rules} rules, the first", attach(big, "b", 0, 1, large), "ms")
    attach(big, "b", 1, WARM, large)
    before = memory(pid_big)
    show(f"attach, {rules} rules, the same file, mean", attach(big, "b", WARM, fleet_big, large), "ms")
    after = memory(pid_big)
    a_large = slope(before, after, fleet_big - WARM)
    for role in a_large:
        show(f"{role}, PSS with {WARM} sandboxes of {rules} rules", before[role] / 1024, "MiB")
        show(f"{role}, PSS with {fleet_big} of the same file", after[role] / 1024, "MiB")
        show(f"{role}, PSS a further sandbox of 1 rule", a_small[role], "KiB")
        show(f"{role}, PSS a further sandbox of the same file", a_large[role], "KiB",
             a_small[role] + EXTRA_KIB_MAX if min(fleet, fleet_big) - WARM >= SLOPE_MIN else None)
    sys.exit(1 if missed else 0)


main()
