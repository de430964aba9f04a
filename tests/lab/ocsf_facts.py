#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write tests/lab/ocsf_facts.txt: what OCSF says about the members that postern's export uses, version by version.

usage: ocsf_facts.py REPOSITORY > ocsf_facts.txt     (a clone of github.com/ocsf/ocsf-schema, with its version branches)

Only facts are taken: a member's type, whether it is required, since when it is there, the numbers of its enumeration. The
test reads the table, not the repository, and so needs no network. Classes and objects are resolved as the schema's own
compiler does: "extends", "$include", profiles.
"""
import json
import subprocess
import sys

VERSIONS = ("1.1.0", "1.3.0", "1.5.0", "1.8.0")
CLASSES = ("base_event", "network_activity", "dns_activity", "entity_management", "application_lifecycle",
           "detection_finding")
OBJECTS = ("actor", "autonomous_system", "container", "dns_answer", "dns_query", "finding_info", "firewall_rule",
           "http_request", "ja4_fingerprint", "location", "managed_entity", "metadata", "network_connection_info",
           "network_endpoint", "network_proxy", "network_traffic", "policy", "process", "product", "resource_details",
           "tls", "tls_extension", "url", "user")
# Members that the export writes; required ones come by themselves.
USED = set("""
    action action_id activity_id activity_name actor answers app app_protocol_name autonomous_system bytes bytes_in
    bytes_out category_name category_uid class class_name class_uid cmd_line comment community_uid connection_info
    container count country created_time cumulative_traffic data direction direction_id disposition disposition_id
    dst_endpoint duration end_time entity entity_result event_code extension_list finding_info firewall_rule hostname
    http_method ip labels ja4_fingerprint_list location log_name log_provider log_version message metadata name number
    opcode_id original_time packets packets_in packets_out pid policy port process product profiles protocol_name
    protocol_num protocol_ver_id proxy_connection_info proxy_endpoint proxy_http_request query query_time rcode rcode_id
    rdata resources response_time scheme sequence severity severity_id sni src_endpoint start_time status status_code
    status_detail status_id time title tls traffic ttl type type_id type_name type_uid uid unmapped url url_string user
    value vendor_name version""".split())


class Schema:
    def __init__(self, repository, version):
        self.repository, self.branch = repository, "refs/heads/v" + version
        listing = self.git("ls-tree", "-r", "--name-only", self.branch).split()
        self.dictionary = self.load("dictionary.json")["attributes"]
        self.files = {}
        for folder in ("events", "objects"):
            for path in listing:
                if path.startswith(folder + "/") and path.endswith(".json"):
                    text = self.load(path)
                    self.files[(folder, text.get("name") or text.get("extends"))] = text
        self.categories = self.load("categories.json")["attributes"]
        self.commit = self.git("rev-parse", self.branch).strip()

    def git(self, *words):
        return subprocess.run(("git", "-C", self.repository) + words, check=True, capture_output=True, text=True).stdout

    def load(self, path):
        return json.loads(self.git("show", "%s:%s" % (self.branch, path)))

    def merge(self, members, name, said, profile=None):
        known = self.dictionary.get(name, {})
        member = members.setdefault(name, {
            "type": known.get("object_type") or known.get("type"), "array": bool(known.get("is_array")),
            "requirement": "optional", "profile": profile, "enum": set(known.get("enum", {}))})
        member["enum"] |= set(said.get("enum", {}))
        member["requirement"] = said.get("requirement", member["requirement"])
        if "profile" in said:
            member["profile"] = said["profile"]

    def resolve(self, folder, name):
        """Members, and names of which at least one must be there."""
        text = self.files[(folder, name)]
        parent = text.get("extends")
        members, one_of = self.resolve(folder, parent) if parent not in (None, name) else ({}, [])
        said = dict(text.get("attributes", {}))
        includes = said.pop("$include", [])
        for path in [includes] if isinstance(includes, str) else includes:
            included = self.load(path)
            for member, what in included["attributes"].items():
                self.merge(members, member, what, included["name"] if included.get("meta") == "profile" else None)
        for member, what in said.items():
            self.merge(members, member, what)
        return members, text.get("constraints", {}).get("at_least_one", one_of)

    def category(self, name):
        text = self.files[("events", name)]
        return self.categories.get(text.get("category") or self.files[("events", text["extends"])].get("category"),
                                   {"uid": 0})["uid"]


def write(schema, version, folder, name):
    if (folder, name) not in schema.files:
        return
    members, one_of = schema.resolve(folder, name)
    if folder == "events":
        category = schema.category(name)
        print("%s class %s %d" % (version, name, category * 1000 + schema.files[(folder, name)].get("uid", 0)))
    else:
        print("%s object %s" % (version, name))
    if one_of:
        print("  one_of %s" % ",".join(sorted(one_of)))
    for member in sorted(members):
        fact = members[member]
        if member in USED or fact["requirement"] == "required":
            enum = sorted(fact["enum"], key=lambda word: (len(word), word))
            if member in ("category_uid", "class_uid"):
                enum = []
            print("  %s %s%s %s %s %s" % (member, fact["type"], "[]" if fact["array"] else "",
                                          fact["requirement"], fact["profile"] or "-", ",".join(enum) or "-"))


def main():
    print("# Made by tests/lab/ocsf_facts.py; facts of github.com/ocsf/ocsf-schema (its own licence: Apache-2.0).")
    print("# MEMBER TYPE REQUIREMENT PROFILE ENUM, of the members that postern writes and those that are required.")
    for version in VERSIONS:
        schema = Schema(sys.argv[1], version)
        print("# %s: commit %s" % (version, schema.commit))
        for name in CLASSES:
            write(schema, version, "events", name)
        for name in OBJECTS:
            write(schema, version, "objects", name)


main()
