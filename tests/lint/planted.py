#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each check of lint.py finds a violation that is planted in a copy of the tree: TAP, one test a check.

    tests/lint/planted.py [--build DIR]

A check passes when it says nothing of the planted file before, and names it, with exit status 1, after.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))


class Tree:
    """A copy of the tree and, where a check reads objects, of one object made for it."""

    def __init__(self, build):
        self.top = tempfile.mkdtemp(prefix="postern-lint.")
        self.build = os.path.join(self.top, "build")
        shutil.copytree(TOP, self.top, dirs_exist_ok=True, symlinks=True,
                        ignore=shutil.ignore_patterns("build*", ".git", "seeds", "regress", "demo"))
        # The objects themselves are only read.
        shutil.copytree(os.path.join(TOP, build, "gen"), os.path.join(self.build, "gen"))
        for folder in ("base", "policy", "audit", "tap", "gateway", "cli"):
            shutil.copytree(os.path.join(TOP, build, folder), os.path.join(self.build, folder), copy_function=os.link,
                            ignore=lambda d, names: [n for n in names if n.endswith(".d")])

    def write(self, path, text, mode="w"):
        path = os.path.join(self.top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, mode, encoding="utf-8") as f:
            f.write(text)

    def compile(self, path, text):
        self.write(path, text)
        made = os.path.join(self.build, path[:-2] + ".o")
        os.makedirs(os.path.dirname(made), exist_ok=True)
        subprocess.run(["cc", "-c", "-o", made, os.path.join(self.top, path)], check=True)

    def lint(self, check):
        return subprocess.run([sys.executable, os.path.join(self.top, "tests/lint/lint.py"), "--root", self.top,
                               "--build", self.build, check], text=True, capture_output=True)

    def remove(self):
        shutil.rmtree(self.top)


def plant_format(tree):
    tree.write("base/planted.c", "int planted( void ){return 1;}\n")


def plant_columns(tree):
    tree.write("base/planted.c", "/* %s */\n" % ("x" * 120))


def plant_rooms(tree):
    tree.write("gateway/path/planted.c", '#include "gateway/keeper/keeper.h"\n')


def plant_sqlite(tree):
    tree.write("cli/planted.c", "#include <sqlite3.h>\n")


def plant_folders(tree):
    for i in range(41):
        tree.write("planted/file%d.c" % i, "")


def plant_cases(tree):
    tree.write("base/planted.c", "/* Refused (case A-99). */\n")


def plant_docs(tree):
    tree.write("gateway/keeper/planted.c", "".join("static int\nplanted_%d(void)\n{\n\treturn 1;\n}\n\n" % i for i in range(200)))


def plant_stems(tree):
    tree.compile("base/planted.c", "int strayed(void);\nint strayed(void) { return 1; }\n")


def plant_links(tree):
    tree.compile("gateway/keeper/planted.c", "int above(void);\nint above(void) { return 1; }\n")
    tree.compile("gateway/shared/planted_too.c", "int above(void);\nint planted(void);\nint planted(void) { return above(); }\n")


def plant_cycles(tree):
    for i in range(6):
        tree.compile("base/planted%d.c" % i, "int f%d(void);\nint f%d(void);\nint f%d(void) { return f%d(); }\n" % (
            i, (i + 1) % 6, i, (i + 1) % 6))


def plant_syscalls(tree):
    tree.write("gateway/path/planted.c", "static int\nplanted(int fd)\n{\n\treturn ioctl(fd, 1);\n}\n")
    tree.write("build/gen/syscalls_gateway.inc", "".join("SYSCALL(planted%d)\n" % i for i in range(36)))


def plant_subjects(tree):
    git = ["git", "-C", tree.top, "-c", "user.name=planted", "-c", "user.email=planted@lab.invalid"]
    subprocess.run(git + ["init", "-q"], check=True)
    subprocess.run(git + ["commit", "-q", "--allow-empty", "-m", "first"], check=True)
    first = subprocess.run(git + ["rev-parse", "HEAD"], check=True, text=True, capture_output=True).stdout.strip()
    subprocess.run(git + ["commit", "-q", "--allow-empty", "-m", "planted " * 12], check=True)
    path = os.path.join(tree.top, "tests/lint/lint.py")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    tree.write("tests/lint/lint.py", text.replace('SUBJECTS_SINCE = "d58aede"', 'SUBJECTS_SINCE = "%s"' % first))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    build = parser.parse_args().build
    plants = {name[6:]: plant for name, plant in globals().items() if name.startswith("plant_")}
    checks = subprocess.run([sys.executable, os.path.join(HERE, "lint.py"), "--list"], check=True, text=True,
                            capture_output=True).stdout.split()
    failed = 0
    print("1..%d" % len(checks))
    for number, check in enumerate(checks, 1):
        why = "no violation is planted for it"
        if check in plants:
            tree = Tree(build)
            try:
                before = tree.lint(check)
                plants[check](tree)
                after = tree.lint(check)
                why = ("" if "planted" not in before.stdout and after.returncode == 1 and "planted" in after.stdout
                       else "before: %s after: %s" % (before.stdout[-300:], after.stdout[-300:] + after.stderr[-300:]))
            finally:
                tree.remove()
        print("%s %d - lint %s finds a planted violation%s" % (
            "not ok" if why else "ok", number, check, " # " + why.replace("\n", " | ") if why else ""))
        failed += bool(why)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
