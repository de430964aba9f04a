#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""configs/openapi.yaml against what the daemon does: each difference is a line; none: nothing is printed.

  check_api.py paths SPEC SOURCE           its paths and methods against the table in gateway/control/control.c
  check_api.py requests SPEC METHOD PATH   the members that a request's body may have, a line each
  check_api.py answer SPEC METHOD PATH STATUS FILE
                                           an answer against its schema: members that are not there, and those not known
"""

import json
import re
import sys

import yaml

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Spec:
    def __init__(self, path):
        # The loader in C, where there is one: it takes a tenth of the time.
        self.root = yaml.load(read(path), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))

    def resolve(self, schema):
        """References followed, allOf put together; the later part's members win."""
        while "$ref" in schema:
            node = self.root
            for key in schema["$ref"].lstrip("#/").split("/"):
                node = node[key]
            schema = node
        if "allOf" not in schema:
            return schema
        whole = {"type": "object", "properties": {}, "required": []}
        for part in map(self.resolve, schema["allOf"]):
            whole["properties"].update(part.get("properties", {}))
            whole["required"] += part.get("required", [])
        return whole

    def check(self, value, schema, where):
        schema = self.resolve(schema)
        if value is None and schema.get("nullable"):
            return
        kind = TYPES[schema["type"]]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            print(f"{where}: {value!r} is no {schema['type']}")
        elif "enum" in schema and value not in schema["enum"]:
            print(f"{where}: {value!r} is none of {schema['enum']}")
        elif "pattern" in schema and not re.search(schema["pattern"], value):
            print(f"{where}: {value!r} does not match {schema['pattern']}")
        elif kind is list:
            for item in value:
                self.check(item, schema["items"], f"{where}[]")
        elif kind is dict:
            self.check_members(value, schema, where)

    def check_members(self, value, schema, where):
        known = schema.get("properties", {})
        for name in sorted(set(schema.get("required", [])) - set(value)):
            print(f"{where}: {name} is not there")
        for name, member in value.items():
            other = known.get(name, schema.get("additionalProperties"))
            if other:
                self.check(member, other, f"{where}.{name}")
            else:
                print(f"{where}: {name} is not in the description")

    def operation(self, method, path):
        return self.root["paths"][path][method.lower()]


def paths(spec, source):
    described = {
        (method.upper(), re.sub(r"\{\w+\}", "*", path))
        for path, methods in Spec(spec).root["paths"].items()
        for method in methods
        if method != "parameters"
    }
    served = set(re.findall(r'\{"([A-Z]+)", "(/[^"]*)"', read(source)))
    for method, path in sorted(described ^ served):
        print(f"{method} {path} is in {'the description' if (method, path) in described else 'the daemon'} only")


def requests(spec, method, path):
    spec = Spec(spec)
    body = spec.operation(method, path)["requestBody"]["content"]["application/json"]["schema"]
    print("\n".join(sorted(spec.resolve(body)["properties"])))


def answer(spec, method, path, status, file):
    spec = Spec(spec)
    responses = spec.operation(method, path)["responses"]
    response = spec.resolve(responses.get(status, responses["default"]))
    spec.check(json.loads(read(file)), response["content"]["application/json"]["schema"], f"{method} {path} {status}")


if __name__ == "__main__":
    {"paths": paths, "requests": requests, "answer": answer}[sys.argv[1]](*sys.argv[2:])
