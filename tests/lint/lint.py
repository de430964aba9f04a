#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the source tree, one function a rule: `make lint` runs them all.

    tests/lint/lint.py [--root DIR] [--build DIR] [--measure] [CHECK...]

Prints "path:line: text" for each violation, then "ok - lint CHECK" or "not ok - lint CHECK". Exit status 1 after a
violation. --measure prints the figures behind the rules instead. The rules by symbols read the objects in --build.
"""
import argparse
import collections
import os
import re
import subprocess
import sys

# Who may include whom: a room and the rooms below it. The longest prefix of a path is its room. Nothing includes upwards,
# and no two roles include each other: what both use is in gateway/shared.
ROOMS = {
    "base": [],
    "policy": ["base"],
    "audit": ["policy", "base"],
    "tap": ["policy", "base"],
    "gateway/shared": ["audit", "policy", "base"],
    "gateway/keeper": ["gateway/shared", "tap", "audit", "policy", "base"],
    "gateway/control": ["gateway/shared", "audit", "policy", "base"],
    "gateway/auditor": ["gateway/shared", "audit", "policy", "base"],
    "gateway/path": ["gateway/shared", "audit", "policy", "base"],
    "gateway": ["gateway/keeper", "gateway/control", "gateway/auditor", "gateway/path", "gateway/shared", "audit", "policy",
                "base"],
    "cli": ["audit", "policy", "base"],
}
# Headers of another room that a room may include all the same, with the reason.
EXCEPTIONS = {
    # The attach message carries a sandbox's network configuration as tap defines it.
    ("gateway/shared", "tap/tap.h"),
}
# Sources of a room that another may call all the same: the checks of a network configuration are pure.
CALLED = {("gateway/control", "tap/tap_config.c")}
# Within a room, a sub-room may use its parent's files and these siblings.
SIBLINGS = {
    "gateway/path": {"dns": ["count"], "tcp": ["count"], "udp": ["count"], "refused": ["count"], "count": []},
    "policy": {"names": [], "text": ["names"], "compiled": ["names", "text"]},
}
# Where a reader needs most help: each static function has a comment line, in at least this share of each room.
HARD = ["gateway/path", "gateway/keeper", "gateway/shared", "gateway/auditor", "tap", "policy/compiled", "policy/names",
        "audit/store", "audit/seal"]
DOC_SHARE = 0.8
COLUMNS = 120
FOLDER_FILES = 40
CYCLES, CYCLE_FILES = 6, 5
# The system calls of the role that reads what sandboxes send.
PATH_CALLS = 35
SUBJECT = 72
# The commit from which on subjects are short and imperative.
SUBJECTS_SINCE = "d58aede"

root = "."
build = "build"


def files(*endings):
    """The tree's files with these endings, tracked or new."""
    try:
        out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], check=True, text=True,
                             capture_output=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        out = [os.path.relpath(os.path.join(d, f), root) for d, _, fs in os.walk(root) for f in fs]
        out = [f for f in out if not f.startswith(("build", ".git/"))]
    return sorted(f for f in set(out) if f.endswith(endings) and os.path.exists(os.path.join(root, f)))


def product(*endings):
    return [f for f in files(*endings) if f.split("/")[0] in ("base", "policy", "audit", "tap", "gateway", "cli")]


def lines(path):
    with open(os.path.join(root, path), encoding="utf-8", errors="surrogateescape") as f:
        return f.read().splitlines()


def room_of(path):
    return max((r for r in ROOMS if path.startswith(r + "/")), key=len, default=None)


def includes(path):
    for number, line in enumerate(lines(path), 1):
        m = re.match(r'\s*#\s*include\s+"([a-z0-9_/]+\.h)"', line)
        if m:
            yield number, m.group(1)


# -- rules --------------------------------------------------------------------------------------------------------


def check_format():
    """clang-format changes nothing."""
    sources = files(".c", ".h")
    out = subprocess.run(["clang-format", "--dry-run", "-Werror"] + sources, cwd=root, text=True, capture_output=True)
    seen = set()
    for line in out.stderr.splitlines():
        m = re.match(r"([^:]+):(\d+):\d+: error", line)
        if m and m.group(1) not in seen:
            seen.add(m.group(1))
            yield m.group(1), int(m.group(2)), "clang-format would change this: clang-format -i %s" % m.group(1)
    if out.returncode and not seen:
        yield "clang-format", 0, (out.stderr or "failed").strip().splitlines()[-1]


def check_columns():
    """No line of C is wider than 120 columns."""
    for path in files(".c", ".h"):
        for number, line in enumerate(lines(path), 1):
            if len(line.expandtabs(8)) > COLUMNS:
                yield path, number, "%d columns, at most %d" % (len(line.expandtabs(8)), COLUMNS)


def may_include(path, header):
    room, other = room_of(path), room_of(header)
    if other is None or (room, header) in EXCEPTIONS:
        return True
    if other != room:
        return other in ROOMS[room]
    siblings = SIBLINGS.get(room)
    if siblings is None:
        return True
    mine, its = (p[len(room) + 1:].split("/") for p in (path, header))
    # A file of the room's own top folder may drive the sub-rooms; a sub-room its parent and the siblings named.
    return len(mine) == 1 or len(its) == 1 or mine[0] == its[0] or its[0] in siblings.get(mine[0], [])


def check_rooms():
    """Includes never go upwards, and never from one role into another."""
    for path in product(".c", ".h"):
        for number, header in includes(path):
            if not may_include(path, header):
                yield path, number, "%s may not include %s" % (os.path.dirname(path), header)


def check_sqlite():
    """sqlite3.h is included by the writer and the reader of the log only."""
    for path in product(".c", ".h"):
        if path.startswith(("audit/store/", "audit/query/")):
            continue
        for number, line in enumerate(lines(path), 1):
            if re.match(r"\s*#\s*include\s+<sqlite3", line):
                yield path, number, "sqlite3.h belongs to audit/store and audit/query"


def check_folders():
    """No folder is a long flat list."""
    count = collections.Counter(os.path.dirname(f) for f in files(".c", ".h"))
    for folder, n in sorted(count.items()):
        if n > FOLDER_FILES:
            yield folder, 0, "%d files, at most %d: make rooms" % (n, FOLDER_FILES)


CASE = re.compile(r"\b([A-G]-\d{2}[a-z]?)\b")


def cites(path, case):
    text = "\n".join(lines(path))
    return re.search(r"\b%s\b" % case, text) or re.search(r"case_%s(?![0-9])" % case.replace("-", "_"), text)


def check_cases():
    """Every case id that is cited stands in tests/CASES.md, and the tests named there cite it."""
    known = set()
    for number, line in enumerate(lines("tests/CASES.md"), 1):
        m = re.match(r"\|\s*([A-G]-\d{2}[a-z]?)\s*\|", line)
        if not m:
            continue
        known.add(m.group(1))
        for name in re.findall(r"`([a-z0-9_/-]+\.(?:bats|c|py))`", line):
            path = os.path.join("tests", name)
            if not os.path.exists(os.path.join(root, path)):
                yield "tests/CASES.md", number, "there is no %s" % path
            elif not cites(path, m.group(1)):
                yield "tests/CASES.md", number, "%s does not name %s" % (path, m.group(1))
    for path in files(".c", ".h", ".bats", ".py", ".bash", ".yaml", ".md", ".scd"):
        if path == "tests/CASES.md" or path.startswith("tests/lint/"):
            continue
        for number, line in enumerate(lines(path), 1):
            for case in CASE.findall(line):
                if case not in known:
                    yield path, number, "tests/CASES.md has no %s" % case


STATIC = re.compile(r"^static\b(?!.*;\s*$)(?!.*=)")


def functions(path):
    """Static functions: (line number, name, whether a comment stands right above)."""
    text = lines(path)
    for i, line in enumerate(text):
        # Return type on a line of its own, the name at the beginning of the next.
        if not STATIC.match(line) or i + 1 >= len(text):
            continue
        m = re.match(r"^([a-z_][a-z0-9_]*)\(", text[i + 1])
        if not m:
            continue
        j = i + 1
        while j < len(text) and not text[j].rstrip().endswith((")", ";", "{")):
            j += 1
        if j < len(text) and text[j].rstrip().endswith(";"):
            continue
        above = i - 1
        while above >= 0 and text[above].startswith(("#", "__attribute__")):
            above -= 1
        yield i + 2, m.group(1), above >= 0 and text[above].rstrip().endswith("*/")


def doc_share(hard):
    total, without = 0, []
    for path in product(".c"):
        if path.startswith(hard + "/"):
            for number, name, documented in functions(path):
                total += 1
                if not documented:
                    without.append((path, number, name))
    return total, without


def check_docs():
    """Static functions of the hard files say in a line what they do."""
    for hard in HARD:
        total, without = doc_share(hard)
        if total and 1 - len(without) / total < DOC_SHARE:
            for path, number, name in without:
                yield path, number, "%s has no comment line (%s: %d of %d have one)" % (
                    name, hard, total - len(without), total)


# -- rules by symbols ---------------------------------------------------------------------------------------------


def objects():
    for folder in ("base", "policy", "audit", "tap", "gateway", "cli"):
        for d, _, fs in os.walk(os.path.join(build, folder)):
            for f in sorted(fs):
                source = os.path.relpath(os.path.join(d, f), build)[:-2] + ".c"
                if f.endswith(".o") and os.path.exists(os.path.join(root, source)):
                    yield source, os.path.join(d, f)


def symbols(path):
    """Names that an object exports, and names that it wants."""
    exported, wanted = set(), set()
    for line in subprocess.run(["nm", "-g", path], check=True, text=True, capture_output=True).stdout.splitlines():
        parts = line.split()
        (wanted if parts[-2] in "Uw" else exported).add(parts[-1])
    return exported, wanted


def sanitizer_symbol(name):
    return name.startswith(("__asan", "__odr_asan", "__ubsan", "__sanitizer"))


def check_stems():
    """What a file exports begins with the file's stem."""
    found = False
    for source, path in objects():
        found = True
        stem = os.path.basename(source)[:-2]
        for name in sorted(symbols(path)[0]):
            if name not in ("main", stem) and not name.startswith(stem + "_") and not sanitizer_symbol(name):
                yield source, 0, "exports %s: call it %s_..., or move it" % (name, stem)
    if not found:
        yield build, 0, "no objects: run make first"


def check_links():
    """Each room's archive needs nothing but the rooms below it."""
    exported, wanted = collections.defaultdict(set), collections.defaultdict(dict)
    for source, path in objects():
        out, need = symbols(path)
        room = room_of(source)
        exported[room] |= out
        for name in need:
            wanted[room].setdefault(name, source)
    ours = {name: room for room, names in exported.items() for name in names}
    home = {name: source for source, path in objects() for name in symbols(path)[0]}
    for room, names in sorted(wanted.items()):
        for name, source in sorted(names.items()):
            other = ours.get(name)
            if other and other != room and other not in ROOMS[room] and (room, home[name]) not in CALLED:
                yield source, 0, "%s uses %s of %s" % (room, name, other)


def graph():
    """Product sources and whom each calls: {source: {source: number of names}}."""
    home, wants = {}, {}
    for source, path in objects():
        exported, wanted = symbols(path)
        wants[source] = wanted
        for name in exported:
            home[name] = source
    return {s: collections.Counter(home[n] for n in w if n in home and home[n] != s) for s, w in wants.items()}


def cycles():
    """Strongly connected components of more than one file (Tarjan)."""
    edges, index, low, stack, found = graph(), {}, {}, [], []
    sys.setrecursionlimit(10000)

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while True:
                part.append(stack.pop())
                if part[-1] == node:
                    break
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def check_cycles():
    """Few files need each other, and never many."""
    found = cycles()
    if len(found) > CYCLES:
        yield found[-1][0], 0, "%d cycles between files, at most %d" % (len(found), CYCLES)
    for part in found:
        if len(part) > CYCLE_FILES:
            yield part[0], 0, "a cycle of %d files, at most %d: %s" % (len(part), CYCLE_FILES, " ".join(part))


def call_list(role):
    path = os.path.join(build, "gen", "syscalls_%s.inc" % role)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return sorted(set(re.findall(r"^SYSCALL\(([a-z0-9_]+)", f.read(), re.M)))


# Functions of the C library that are a system call, where its name is another.
CALLS = {"recv": "recvfrom", "send": "sendto", "socket": "socket", "accept4": "accept4", "connect": "connect",
         "splice": "splice", "pipe2": "pipe2", "shutdown": "shutdown", "recvmsg": "recvmsg", "sendmsg": "sendmsg",
         "recvfrom": "recvfrom", "sendto": "sendto", "recvmmsg": "recvmmsg", "sendmmsg": "sendmmsg", "bind": "bind",
         "listen": "listen", "getsockname": "getsockname", "getpeername": "getpeername", "getsockopt": "getsockopt",
         "setsockopt": "setsockopt", "fcntl": "fcntl", "ioctl": "ioctl", "prctl": "prctl", "getrandom": "getrandom",
         "poll": "poll", "open": "openat", "openat": "openat", "timerfd_create": "timerfd_create",
         "eventfd": "eventfd2", "memfd_create": "memfd_create"}


def noted_calls(path):
    """System calls in the functions of a file: (line, function, call, whether the comment above the function has it)."""
    text, comment, function, noted = lines(path), [], None, set()
    for number, line in enumerate(text, 1):
        if line.startswith(("/*", " *")):
            comment = [line] if line.startswith("/*") else comment + [line]
        elif re.match(r"^[a-z_][a-z0-9_]*\(", line):
            function = line.split("(")[0]
            noted = set(re.findall(r"\b([a-z][a-z0-9_]*)", " ".join(c for c in comment if "syscalls" in c)))
            comment = []
        elif line.startswith("}"):
            function, comment = None, []
        if function:
            code = re.sub(r'"[^"]*"|/\*.*?\*/', "", line)
            for m in re.finditer(r"(?<![\w>.])([a-z0-9_]+)\(", code):
                if m.group(1) in CALLS and m.group(1) != function:
                    yield number, function, CALLS[m.group(1)], CALLS[m.group(1)] in noted


def check_syscalls():
    """The role that reads hostile bytes makes few system calls, each noted beside the function that makes it."""
    calls = call_list("gateway")
    if not calls:
        yield "gateway/path", 0, "no list of system calls in %s/gen: run make first" % build
    if len(calls) > PATH_CALLS:
        yield "gateway/path", 0, "%d system calls, at most %d: %s" % (len(calls), PATH_CALLS, " ".join(calls))
    for path in product(".c"):
        if path.startswith("gateway/path/"):
            for number, function, call, noted in noted_calls(path):
                if not noted:
                    yield path, number, "%s calls %s: note it above, as syscalls: %s" % (function, call, call)


def check_subjects():
    """Commit subjects are at most 72 characters."""
    out = subprocess.run(["git", "-C", root, "log", "--no-merges", "--format=%h %s", SUBJECTS_SINCE + "..HEAD"],
                         text=True, capture_output=True)
    for line in out.stdout.splitlines() if out.returncode == 0 else []:
        commit, subject = line.split(" ", 1)
        if len(subject) > SUBJECT:
            yield commit, 0, "a subject of %d characters: %s" % (len(subject), subject)


CHECKS = {name[6:]: rule for name, rule in list(globals().items()) if name.startswith("check_")}


# -- figures ------------------------------------------------------------------------------------------------------


def rooms_of_gateway(source):
    parts = source.split("/")
    return "/".join(parts[:3] if parts[1] == "path" and len(parts) > 3 else parts[:2]) if len(parts) > 2 else "gateway"


def measure():
    folder, n = collections.Counter(os.path.dirname(f) for f in product(".c", ".h")).most_common(1)[0]
    print("files in the largest product folder: %d (%s)" % (n, folder))
    print("product lines: %d" % sum(len(lines(f)) for f in product(".c", ".h")))
    arrows, against = set(), set()
    for path in product(".c", ".h"):
        if path.startswith("gateway/"):
            for _, header in includes(path):
                if header.startswith("gateway/") and rooms_of_gateway(path) != rooms_of_gateway(header):
                    arrows.add((rooms_of_gateway(path), rooms_of_gateway(header)))
                    if not may_include(path, header):
                        against.add((path, header))
    print("arrows between gateway's rooms: %d, against the order: %d" % (len(arrows), len(against)))
    found = cycles()
    print("cycles between files: %d, the largest: %d files" % (len(found), max(map(len, found), default=0)))
    for part in found:
        print("    " + " ".join(part))
    exported = strays = 0
    for source, path in objects():
        names = [s for s in symbols(path)[0] if s != "main" and not sanitizer_symbol(s)]
        exported += len(names)
    strays = sum(1 for _ in check_stems())
    print("exports: %d, without their file's stem: %d" % (exported, strays))
    total = missing = 0
    for hard in HARD:
        t, without = doc_share(hard)
        total, missing = total + t, missing + len(without)
        print("static functions with a doc line in %s: %d of %d" % (hard, t - len(without), t))
    print("static functions with a doc line in the hard files: %.0f %%" % (100 * (1 - missing / total)))
    print("lines over %d columns: %d" % (COLUMNS, sum(1 for _ in check_columns())))
    for role in ("gateway", "auditor", "control"):
        print("system calls of %s: %d" % (role, len(call_list(role))))


def main():
    global root, build
    parser = argparse.ArgumentParser(description="Checks of the source tree.")
    parser.add_argument("--root", default=".")
    parser.add_argument("--build", default="build")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    args = parser.parse_args()
    root, build = args.root, args.build
    if args.measure:
        measure()
        return 0
    if args.list:
        print("\n".join(CHECKS))
        return 0
    failed = 0
    for name in args.checks or CHECKS:
        if name not in CHECKS:
            parser.error("no check %s; there are %s" % (name, ", ".join(CHECKS)))
        bad = 0
        for path, number, text in CHECKS[name]():
            print("%s:%s %s" % (path, "%d:" % number if number else "", text))
            bad += 1
        print("%s - lint %s: %s" % ("not ok" if bad else "ok", name, CHECKS[name].__doc__))
        failed += bad > 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
