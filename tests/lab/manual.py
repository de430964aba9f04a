#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the manual say what the programs know, and nothing else? Each difference is a line; none: nothing is printed.

  manual.py options PAGE HELP...       the options that a page (man/*.scd) defines, and those of the commands' help texts
  manual.py audit PAGE DB JSONL        postern-audit(5) against a database and the output of postern log -o json
  manual.py members PAGE SOURCE...     its section JSON against the members that audit/columns.c and show/render_json.c name
  manual.py keys PAGE FILE...          the members of JSON objects, all levels, against the words that a page marks
  manual.py words PAGE SECTION WORD... the words that a section defines
  manual.py csv PAGE FILE              its section on CSV against a header line
  manual.py examples PAGE FOLDER       no check: each literal block of its section EXAMPLES as a file, 01, 02, ...
"""

import json
import re
import sqlite3
import sys

OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")
# *bold* or _underlined_; an underscore inside a word is part of it.
MARKED = re.compile(r"(?<![\w\\])(?:_(?P<u>[A-Za-z0-9](?:[\w.-]*?[A-Za-z0-9])?)_|\*(?P<b>[a-z0-9_]+)\*)(?!\w)")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sections(text):
    parts = re.split(r"(?m)^# (.*)$", text)
    return dict(zip(parts[1::2], parts[2::2]))


def marked(text):
    return {match["u"] or match["b"] for match in MARKED.finditer(text)}


def cells(text):
    """The words in the first column of a table."""
    rows = re.findall(r"(?m)^\|  (.+)$", text)
    return [word for row in rows for word in row.split(", ")]


def definitions(text):
    """{word: its text} of a list of definitions, "*word*, *word*" and a text that is indented."""
    found = {}
    for line, body in re.findall(r"(?m)^((?:\*[a-z_ ]+\*(?:, )?)+)\n((?:\t.*\n|\n(?=\t))+)", text):
        for word in re.findall(r"\*([a-z_ ]+)\*", line):
            found[word] = body
    return found


def tell(what, expected, found):
    for word in sorted(set(expected) - set(found)):
        print(f"{what}: {word} is missing in the manual")


def tell_both(what, expected, found):
    tell(what, expected, found)
    for word in sorted(set(found) - set(expected)):
        print(f"{what}: {word} is in the manual only")


def options(page, *helps):
    lines = re.findall(r"(?m)^(?:\*-|_[A-Z]+_, \*--).*$", read(page))
    defined = {word for line in lines for word in OPTION.findall(line.replace("\\", ""))}
    tell_both(page, {word for path in helps for word in OPTION.findall(read(path))}, defined)


def audit_schema(page, db):
    for name, kind in db.execute("SELECT name, type FROM sqlite_schema WHERE type IN ('view', 'table')"):
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
        if kind == "view":
            body = page.get(f"VIEW {name}", "")
            tell(f"view {name}", columns, set(cells(body)) | marked(body))
            tell_both(f"view {name}", set(columns), set(cells(body)) | set(columns))
            continue
        bodies = [body for heading, body in page.items() if re.search(r"\bTABLES?\b", heading)]
        paragraphs = [text for body in bodies for text in body.split("\n\n")]
        about = [text for text in paragraphs if re.match(rf"\n*(?:[_*]\w+[_*](?:, | and ))*[_*]{name}[_*]", text)]
        tell(f"table {name}", columns, marked("\n".join(about)))
        if name == "meta":
            tell("table meta", [row[0] for row in db.execute("SELECT key FROM meta")], marked("\n".join(about)))


def audit_words(page, db):
    events = definitions(page["EVENTS"])
    for table, found in (
        ("verdicts", definitions(page["VERDICTS"])),
        ("reasons", definitions(page["REASONS"])),
        ("name_sources", definitions(page["NAME SOURCES"])),
        ("event_kinds", events),
        ("ends", cells(page["ENDS"])),
    ):
        tell_both(table, {row[0] for row in db.execute(f"SELECT word FROM {table}")}, found)
    for word, detail in db.execute("SELECT event, detail FROM v_events WHERE detail IS NOT NULL"):
        tell(f"detail of event {word}", json.loads(detail), marked(events.get(word, "")) | marked(events["policy"]))
    for (detail,) in db.execute("SELECT detail FROM sandboxes WHERE detail IS NOT NULL"):
        tell("detail of sandboxes", json.loads(detail), marked(page["VIEW v_sandboxes"]))


def audit_json(page, path):
    paragraphs = page["JSON"].split("\n\n")
    common = marked(next(text for text in paragraphs if text.startswith("*All kinds*")))
    for kind in ("flow", "deny", "dns", "event"):
        known = common | marked(next(text for text in paragraphs if re.match(rf"(\*\w+\*, )?\*{kind}\*", text)))
        with open(path, encoding="ascii") as file:
            rows = [row for row in map(json.loads, file) if row["kind"] == kind]
        if not rows:
            print(f"JSON: there is no row of kind {kind}")
        tell(f"JSON of kind {kind}", {member for row in rows for member in row}, known)


def audit(page, path, lines):
    page = sections(read(page))
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    audit_schema(page, db)
    audit_words(page, db)
    audit_json(page, lines)


def members(page, *sources):
    page = sections(read(page))["JSON"]
    names = {name for source in sources for name in re.findall(r'(?:object, |\bJSON\()"(\w+)"', read(source))}
    if len(names) < 40:
        print(f"only {len(names)} members in {sources}")
    tell_both("JSON", names, marked(page) - ({"flow", "deny", "dns", "event"} - names))


def keys_of(value):
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    return set()


def keys(page, *paths):
    known = marked(read(page))
    for path in paths:
        text, at = read(path), 0
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            value, at = json.JSONDecoder().raw_decode(text, at)
            tell(path, keys_of(value), known)


def words(page, section, *expected):
    tell_both(section, set(expected), definitions(sections(read(page))[section]))


def csv(page, path):
    body = re.search(r"(?s)^## csv$(.*?)^\*Formulas", sections(read(page))["TO TAKE AWAY"], re.MULTILINE)[1]
    listed = MARKED.findall(re.sub(r"\([^)]*\)", "", body[body.index("_kind_") : body.index("They mean")]))
    header = re.findall(r'"(\w+)"', read(path).splitlines()[0])
    listed = [under for under, _ in listed]
    if header != listed:
        print(f"csv: {header}, but the manual has {listed}")


def examples(page, folder):
    for i, block in enumerate(re.findall(r"(?ms)^```\n(.*?)^```$", sections(read(page))["EXAMPLES"])):
        with open(f"{folder}/{i + 1:02}", "w", encoding="ascii") as file:
            # Outside literal blocks a backslash escapes; inside, two of them are one.
            file.write(block.replace("\\\\", "\\"))


if __name__ == "__main__":
    {"options": options, "audit": audit, "members": members, "keys": keys, "words": words, "csv": csv,
     "examples": examples}[sys.argv[1]](*sys.argv[2:])
