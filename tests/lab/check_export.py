#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is what `postern log -o FORMAT` wrote valid by its schema? Reads standard input; prints how many rows it checked.

usage: check_export.py csv | zeek | ecs | ocsf VERSION

Every format must be printable ASCII but for its separators. CSV must be RFC 4180, rectangular, without formulas; Zeek's
logs must have Zeek's headers, as many fields as types, and values of those types; ECS must use only fields that ECS has
(or "postern.*"), with the values that it allows; OCSF is checked against ocsf_facts.txt: classes, required members,
members that the version knows, types, enumerations, profiles. Exit status 1 and the first errors otherwise.
"""
import csv
import io
import ipaddress
import json
import os
import re
import sys

ERRORS_SHOWN = 20
errors = []


def wrong(row, text):
    errors.append("row %d: %s" % (row, text))


# --- CSV

CSV_COLUMNS_FIRST = ["kind", "time", "id", "seq", "sandbox", "sandbox_id", "verdict", "reason", "rule", "detail", "generation"]


def check_csv(data):
    if not data.endswith("\r\n"):
        wrong(0, "the last line has no CRLF")
    if re.search(r"(?<!\r)\n|\r(?!\n)", data):
        wrong(0, "a CR or LF that does not end a line")
    rows = list(csv.reader(io.StringIO(data, newline=""), strict=True))
    if rows[0][:len(CSV_COLUMNS_FIRST)] != CSV_COLUMNS_FIRST:
        wrong(1, "columns %s" % rows[0])
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            wrong(number, "%d cells, not %d" % (len(row), len(rows[0])))
        for cell in row:
            if cell[:1] in ("=", "+", "-", "@", "\t", "\r", "\n"):
                wrong(number, "a formula: %r" % cell)
        if row[0] not in ("connection", "dns", "event"):
            wrong(number, "kind %r" % row[0])
    # Quoted everywhere: nothing but separators stands outside quotes.
    if re.sub(r'"(?:[^"]|"")*"', "", data).strip(",\r\n"):
        wrong(0, "a cell without quotes")
    return len(rows) - 1


# --- Zeek

ZEEK_TYPES = {
    "time": r"\d+\.\d{6}", "interval": r"\d+\.\d{6}", "string": r"[^\t]+", "count": r"\d+", "bool": "[TF]",
    "enum": r"\w+", "port": r"\d{1,5}",
}
ZEEK_FIELDS = {  # what Zeek 7 writes, in its order; others may follow
    "conn": """ts time uid string id.orig_h addr id.orig_p port id.resp_h addr id.resp_p port proto enum service string
        duration interval orig_bytes count resp_bytes count conn_state string local_orig bool local_resp bool
        missed_bytes count history string orig_pkts count orig_ip_bytes count resp_pkts count resp_ip_bytes count
        tunnel_parents set[string] ip_proto count community_id string""",
    "dns": """ts time uid string id.orig_h addr id.orig_p port id.resp_h addr id.resp_p port proto enum trans_id count
        rtt interval query string qclass count qclass_name string qtype count qtype_name string rcode count
        rcode_name string AA bool TC bool RD bool RA bool Z count answers vector[string] TTLs vector[interval]
        rejected bool""",
    "ssl": """ts time uid string id.orig_h addr id.orig_p port id.resp_h addr id.resp_p port version string
        cipher string curve string server_name string resumed bool last_alert string next_protocol string
        established bool ssl_history string cert_chain_fps vector[string] client_cert_chain_fps vector[string]
        sni_matches_cert bool""",
    "http": """ts time uid string id.orig_h addr id.orig_p port id.resp_h addr id.resp_p port trans_depth count
        method string host string uri string referrer string version string user_agent string origin string
        request_body_len count response_body_len count status_code count status_msg string info_code count
        info_msg string tags set[enum] username string password string proxied set[string] orig_fuids vector[string]
        orig_filenames vector[string] orig_mime_types vector[string] resp_fuids vector[string]
        resp_filenames vector[string] resp_mime_types vector[string]""",
}
ZEEK_STATES = {"S0", "S1", "SF", "REJ", "S2", "S3", "RSTO", "RSTR", "RSTOS0", "RSTRH", "SH", "SHR", "OTH"}


def zeek_value(number, name, kind, value):
    inner = re.fullmatch(r"(?:set|vector)\[(\w+)\]", kind)
    if value == "-" or value == "(empty)":
        return
    if inner:
        for item in value.split(","):
            zeek_value(number, name, inner.group(1), item)
    elif kind == "addr":
        try:
            ipaddress.ip_address(value)
        except ValueError:
            wrong(number, "%s is no address: %r" % (name, value))
    elif not re.fullmatch(ZEEK_TYPES[kind], value):
        wrong(number, "%s is no %s: %r" % (name, kind, value))
    elif kind == "port" and int(value) > 65535:
        wrong(number, "%s: %r" % (name, value))


def check_zeek(data):
    if not data.endswith("\n"):
        wrong(0, "the last line has no end")
    lines = data[:-1].split("\n")
    if lines[0] != "#separator \\x09" or lines[1:4] != ["#set_separator\t,", "#empty_field\t(empty)", "#unset_field\t-"]:
        wrong(1, "not Zeek's header: %r" % lines[:4])
    path = lines[4].split("\t")[1]
    if not re.fullmatch(r"#open\t\d{4}(-\d\d){5}", lines[5]):
        wrong(6, lines[5])
    fields, types = lines[6].split("\t"), lines[7].split("\t")
    if fields[0] != "#fields" or types[0] != "#types" or len(fields) != len(types):
        wrong(7, "fields and types")
    fields, types, known = fields[1:], types[1:], ZEEK_FIELDS[path].split()
    if fields[:len(known) // 2] != known[::2] or types[:len(known) // 2] != known[1::2]:
        wrong(7, "not the columns of %s.log: %s" % (path, fields))
    rows = 0
    for number, line in enumerate(lines[8:], 9):
        if line.startswith("#close\t"):
            if number != len(lines):
                wrong(number, "#close is not the last line")
            continue
        values = line.split("\t")
        rows += 1
        if len(values) != len(fields):
            wrong(number, "%d values, not %d" % (len(values), len(fields)))
            continue
        for name, kind, value in zip(fields, types, values):
            zeek_value(number, name, kind, value)
        row = dict(zip(fields, values))
        if path == "conn" and row["conn_state"] not in ZEEK_STATES:
            wrong(number, "conn_state %r" % row["conn_state"])
        if path == "dns" and len(row["answers"].split(",")) != len(row["TTLs"].split(",")):
            wrong(number, "not a TTL for each answer: %s %s" % (row["answers"], row["TTLs"]))
    return rows


# --- ECS (9.4): the fields used, with their types

ECS_FIELDS = {
    "@timestamp": "date", "message": "text", "ecs.version": "keyword", "event.kind": "kind",
    "event.category": "keyword[]", "event.type": "keyword[]", "event.outcome": "outcome", "event.action": "keyword",
    "event.code": "keyword", "event.reason": "keyword", "event.id": "keyword", "event.sequence": "long",
    "event.start": "date", "event.end": "date", "event.duration": "long", "event.module": "keyword",
    "event.dataset": "keyword", "event.provider": "keyword", "network.type": "keyword", "network.transport": "keyword",
    "network.iana_number": "keyword", "network.direction": "direction", "network.protocol": "keyword",
    "network.community_id": "keyword", "network.bytes": "long", "network.packets": "long", "source.ip": "ip",
    "source.port": "long", "source.bytes": "long", "source.packets": "long", "source.nat.ip": "ip",
    "source.nat.port": "long", "destination.ip": "ip", "destination.port": "long", "destination.domain": "keyword",
    "destination.bytes": "long", "destination.packets": "long", "destination.as.number": "long",
    "destination.as.organization.name": "keyword", "destination.geo.country_iso_code": "keyword",
    "rule.name": "keyword", "rule.ruleset": "keyword", "rule.version": "keyword", "container.id": "keyword",
    "container.name": "keyword", "observer.type": "keyword", "observer.vendor": "keyword",
    "observer.product": "keyword", "observer.version": "keyword", "tls.client.server_name": "keyword",
    "http.request.method": "keyword", "url.scheme": "keyword", "url.domain": "keyword", "url.port": "long",
    "dns.type": "keyword", "dns.op_code": "keyword", "dns.question.name": "keyword", "dns.question.type": "keyword",
    "dns.question.class": "keyword", "dns.question.registered_domain": "keyword", "dns.answers": "object[]",
    "dns.answers.class": "keyword", "dns.answers.data": "keyword", "dns.answers.type": "keyword",
    "dns.answers.ttl": "long", "dns.resolved_ip": "ip[]", "dns.response_code": "keyword", "user.id": "keyword",
    "process.pid": "long", "process.name": "keyword", "process.command_line": "keyword",
}
ECS_EXPECTED = {  # event.type by event.category
    "network": "access allowed connection denied end info protocol start", "configuration":
    "access change creation deletion info", "host": "access change end info start",
    "process": "access change end info start", "database": "access change info error",
}
ECS_WORDS = {
    "kind": {"alert", "asset", "enrichment", "event", "metric", "state", "pipeline_error", "signal"},
    "outcome": {"failure", "success", "unknown"},
    "direction": {"ingress", "egress", "inbound", "outbound", "internal", "external", "unknown"},
}


def ecs_value(number, name, kind, value):
    if kind.endswith("[]"):
        if not isinstance(value, list):
            wrong(number, "%s is no array" % name)
            return
        for item in value:
            if kind == "object[]":
                ecs_walk(number, name + ".", item)
            else:
                ecs_value(number, name, kind[:-2], item)
    elif kind == "long":
        if not isinstance(value, int) or isinstance(value, bool) or not -2**63 <= value < 2**63:
            wrong(number, "%s is no long: %r" % (name, value))
    elif not isinstance(value, str):
        wrong(number, "%s is no string: %r" % (name, value))
    elif kind == "date" and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", value):
        wrong(number, "%s is no date: %r" % (name, value))
    elif kind in ECS_WORDS and value not in ECS_WORDS[kind]:
        wrong(number, "%s: %r" % (name, value))
    elif kind == "ip":
        try:
            ipaddress.ip_address(value)
        except ValueError:
            wrong(number, "%s is no address: %r" % (name, value))


def ecs_walk(number, prefix, document):
    for key, value in document.items():
        name = prefix + key
        if name == "postern":
            continue
        if name == "labels":
            if not all(isinstance(label, str) and "." not in key for key, label in value.items()):
                wrong(number, "labels %r" % value)
            continue
        if name in ECS_FIELDS:
            ecs_value(number, name, ECS_FIELDS[name], value)
        elif isinstance(value, dict) and any(field.startswith(name + ".") for field in ECS_FIELDS):
            ecs_walk(number, name + ".", value)
        else:
            wrong(number, "ECS has no %s" % name)


def ecs_row(number, document):
    ecs_walk(number, "", document)
    event = document["event"]
    for name in ("@timestamp", "ecs", "event", "postern"):
        if name not in document:
            wrong(number, "no %s" % name)
    if len(event["category"]) != 1 or event["category"][0] not in ECS_EXPECTED:
        wrong(number, "category %r" % event["category"])
        return
    for kind in event["type"]:
        if kind not in ECS_EXPECTED[event["category"][0]].split():
            wrong(number, "type %r of category %r" % (kind, event["category"][0]))
    if "denied" in event["type"] and event.get("outcome") != "success":
        wrong(number, "a firewall that denies has done its work: outcome %r" % event.get("outcome"))


# --- OCSF

OCSF_TYPES = {"integer_t": int, "long_t": int, "timestamp_t": int, "port_t": int, "boolean_t": bool}


class Facts:
    def __init__(self, version):
        self.version, self.classes, self.objects = version, {}, {}
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ocsf_facts.txt")
        with open(path, encoding="ascii") as lines:
            for line in lines:
                words = line.split()
                if line.startswith("#"):
                    continue
                if not line.startswith(" "):
                    current = {"members": {}, "one_of": []}
                    if words[0] == version and words[1] == "class":
                        self.classes[int(words[3])] = current
                    elif words[0] == version:
                        self.objects[words[2]] = current
                elif words[0] == "one_of":
                    current["one_of"] = words[1].split(",")
                else:
                    current["members"][words[0]] = words[1:]


def ocsf_value(facts, profiles, number, where, fact, value):
    kind, enum = fact[0], fact[3]
    if kind.endswith("[]"):
        if not isinstance(value, list) or not value:
            wrong(number, "%s is no array, or empty" % where)
            return
        for item in value:
            ocsf_value(facts, profiles, number, where, [kind[:-2]] + fact[1:], item)
        return
    if kind in facts.objects:
        ocsf_members(facts, profiles, number, where + ".", facts.objects[kind], value)
    elif kind in ("object", "json_t"):
        pass
    elif not isinstance(value, OCSF_TYPES.get(kind, str)) or (kind != "boolean_t" and isinstance(value, bool)):
        wrong(number, "%s is no %s: %r" % (where, kind, value))
    elif enum != "-" and str(value) not in enum.split(","):
        wrong(number, "%s: %r is not in its enumeration" % (where, value))
    elif kind == "port_t" and not 0 <= value <= 65535:
        wrong(number, "%s: %r" % (where, value))
    elif kind == "ip_t":
        try:
            ipaddress.ip_address(value)
        except ValueError:
            wrong(number, "%s is no address: %r" % (where, value))


def ocsf_members(facts, profiles, number, prefix, shape, value):
    if not isinstance(value, dict):
        wrong(number, "%s is no object" % prefix)
        return
    for name, member in value.items():
        fact = shape["members"].get(name)
        if fact is None:
            wrong(number, "%s has no %s%s" % (facts.version, prefix, name))
        elif fact[2] != "-" and fact[2] not in profiles:
            wrong(number, "%s%s without its profile %s" % (prefix, name, fact[2]))
        else:
            ocsf_value(facts, profiles, number, prefix + name, fact, member)
    for name, fact in shape["members"].items():
        if fact[1] == "required" and name not in value and (fact[2] == "-" or fact[2] in profiles):
            wrong(number, "%s%s is required" % (prefix, name))
    if shape["one_of"] and not any(name in value for name in shape["one_of"]):
        wrong(number, "%s has none of %s" % (prefix, shape["one_of"]))


def ocsf_row(facts, number, event):
    shape = facts.classes.get(event.get("class_uid"))
    if shape is None:
        wrong(number, "class_uid %r" % event.get("class_uid"))
        return
    ocsf_members(facts, event["metadata"].get("profiles", []), number, "", shape, event)
    if event["type_uid"] != event["class_uid"] * 100 + event["activity_id"]:
        wrong(number, "type_uid %r" % event["type_uid"])
    if event["category_uid"] != event["class_uid"] // 1000:
        wrong(number, "category_uid %r" % event["category_uid"])
    if event["metadata"]["version"] != facts.version:
        wrong(number, "metadata.version %r" % event["metadata"]["version"])


# ---


def no_duplicates(pairs):
    names = [name for name, value in pairs]
    if len(names) != len(set(names)):
        raise ValueError("a member twice: %s" % names)
    return dict(pairs)


def check_lines(data, check):
    rows = data.split("\n")
    if rows.pop() != "":
        wrong(0, "the last line has no end")
    for number, line in enumerate(rows, 1):
        try:
            document = json.loads(line, object_pairs_hook=no_duplicates)
        except ValueError as error:
            wrong(number, "no JSON: %s: %.200s" % (error, line))
            continue
        check(number, document)
    return len(rows)


def main():
    data = sys.stdin.buffer.read()
    what = sys.argv[1]
    allowed = {"csv": b"\r\n", "zeek": b"\t\n"}.get(what, b"\n")
    bad = [byte for byte in data if not 0x20 <= byte <= 0x7E and byte not in allowed]
    if bad:
        wrong(0, "byte 0x%02x" % bad[0])
    text = data.decode("latin-1")
    if what == "csv":
        rows = check_csv(text)
    elif what == "zeek":
        rows = check_zeek(text)
    elif what == "ecs":
        rows = check_lines(text, ecs_row)
    else:
        facts = Facts(sys.argv[2] + ".0")
        rows = check_lines(text, lambda number, event: ocsf_row(facts, number, event))
    for error in errors[:ERRORS_SHOWN]:
        print(error)
    if errors:
        sys.exit(1)
    print(rows)


main()
