#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A resolver that says what a test tells it to, and writes down whatever it is asked.

fdns.py LOG SCRIPTS UPSTREAM ADDRESS... serves UDP and TCP port 53 of each address. Every query becomes a JSON line in
LOG before it is answered: what is not there was never asked. A query is answered from the first of these files in the
folder SCRIPTS, or else handed to UPSTREAM:53 as it is: NAME+TYPE.json, NAME.json, _.PARENT.json (any name below PARENT).

A script is a JSON object:
  answers     list of [TYPE, TTL, DATA] or [NAME, TYPE, TTL, DATA]; only CNAMEs and records of the asked type are sent
              unless "all" is true. DATA is text for A, AAAA, CNAME, NS, PTR, TXT; "hex:..." for any type;
              "next:ADDRESS" is a new address each time, counted up from ADDRESS
  authority, additional: the same, sent as they are
  rcode       number; 0 by default
  flags       number or-ed into the flags (0x0200 is TC)
  raw         hex of a whole message; "ID" and "QUESTION" in it are replaced by the query's
  id_add      number added to the message id: an answer to a question that nobody asked
  question    name to echo in place of the one asked
  delay_ms, drop (no answer at all), repeat (send so many copies)
  udp, tcp    objects that override the above for one transport
  before, after  lists of such objects: further messages, sent before or after this one
  sequence    list of such objects: the first query gets the first, ..., the last one stays
  cycle       the same, but after the last one comes the first again
"""
import ipaddress
import itertools
import json
import os
import socket
import struct
import sys
import threading
import time

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "DNAME": 39,
         "OPT": 41, "SVCB": 64, "HTTPS": 65, "ANY": 255}
TYPE_NAMES = {value: key for key, value in TYPES.items()}
UPSTREAM_SECONDS = 3

log_lock = threading.Lock()
counts = {}
nexts = itertools.count()


def parse_question(message):
    """(name, type, end of question); raises IndexError or struct.error on a short message."""
    labels, at = [], 12
    while message[at]:
        size = message[at]
        labels.append(message[at + 1 : at + 1 + size].decode("latin-1"))
        at += 1 + size
    qtype, _ = struct.unpack_from(">HH", message, at + 1)
    return ".".join(labels), qtype, at + 5


def name_wire(name):
    if name in ("", "."):
        return b"\0"
    return b"".join(bytes([len(label)]) + label.encode("latin-1") for label in name.rstrip(".").split(".")) + b"\0"


def record_wire(record, qname):
    if len(record) == 3:
        record = [qname, *record]
    name, kind, ttl, data = record
    number = TYPES[kind] if kind in TYPES else int(kind.removeprefix("TYPE"))
    if data.startswith("next:"):
        data = str(ipaddress.ip_address(data[5:]) + next(nexts))
    if data.startswith("hex:"):
        rdata = bytes.fromhex(data[4:])
    elif kind == "A":
        rdata = socket.inet_pton(socket.AF_INET, data)
    elif kind == "AAAA":
        rdata = socket.inet_pton(socket.AF_INET6, data)
    elif kind in ("CNAME", "NS", "PTR"):
        rdata = name_wire(data)
    elif kind == "TXT":
        rdata = bytes([len(data)]) + data.encode("latin-1")
    else:
        raise ValueError(f"no text form for {kind}: use hex:")
    return number, name_wire(name) + struct.pack(">HHIH", number, 1, ttl, len(rdata)) + rdata


def find_script(scripts, qname, qtype):
    name = qname.lower()
    kind = TYPE_NAMES.get(qtype, f"TYPE{qtype}")
    candidates = [f"{name}+{kind}", name]
    parts = name.split(".")
    candidates += ["_." + ".".join(parts[i:]) for i in range(1, len(parts))]
    for candidate in candidates:
        if "/" in candidate or "\0" in candidate:
            continue
        try:
            with open(os.path.join(scripts, candidate + ".json"), encoding="ascii") as file:
                script = json.load(file)
        except (FileNotFoundError, OSError):
            continue
        turns = script.get("sequence", script.get("cycle"))
        if turns:
            with log_lock:
                n = counts.get(candidate, 0)
                counts[candidate] = n + 1
            script = turns[n % len(turns) if "cycle" in script else min(n, len(turns) - 1)]
        return script
    return None


def build(script, query, qname, qtype, question_end):
    if "raw" in script:
        text = script["raw"].replace("ID", query[:2].hex()).replace("QUESTION", query[12:question_end].hex())
        return bytes.fromhex(text.replace(" ", ""))
    sections = []
    for section in ("answers", "authority", "additional"):
        wires = []
        for record in script.get(section, []):
            number, wire = record_wire(record, qname)
            if section != "answers" or script.get("all") or number in (qtype, 5, 39):
                wires.append(wire)
        sections.append(wires)
    ident = (struct.unpack(">H", query[:2])[0] + script.get("id_add", 0)) & 0xFFFF
    flags = 0x8180 | script.get("rcode", 0) | script.get("flags", 0)
    question = name_wire(script["question"]) + query[question_end - 4 : question_end] if "question" in script \
        else query[12:question_end]
    head = struct.pack(">HHHHHH", ident, flags, 1, *(len(s) for s in sections))
    return head + question + b"".join(b"".join(s) for s in sections)


def fit(message, transport, script, question_end):
    if transport == "tcp" or len(message) <= 1232 or "raw" in script:
        return message
    flags = struct.unpack_from(">H", message, 2)[0] | 0x0200
    return message[:2] + struct.pack(">HHHHH", flags, 1, 0, 0, 0) + message[12:question_end]


class Server:
    def __init__(self, log_path, scripts, upstream):
        self.log_file = open(log_path, "a", encoding="ascii")
        self.scripts, self.upstream = scripts, upstream

    def log(self, **row):
        with log_lock:
            self.log_file.write(json.dumps({"t": round(time.time(), 6), **row}) + "\n")
            self.log_file.flush()

    def answers(self, query, transport, local, peer):
        """Messages to send back."""
        try:
            qname, qtype, end = parse_question(query)
        except (IndexError, struct.error):
            self.log(event="query", transport=transport, local=local, peer=peer[0], qname=None, raw=query.hex())
            return []
        self.log(event="query", transport=transport, local=local, peer=peer[0], sport=peer[1], qname=qname,
                 qtype=TYPE_NAMES.get(qtype, f"TYPE{qtype}"), raw=query.hex())
        try:
            script = find_script(self.scripts, qname, qtype)
            if script is None:
                return [self.forward(query, transport)]
            script = {**script, **script.get(transport, {})}
            time.sleep(script.get("delay_ms", 0) / 1000)
            if script.get("drop"):
                return []
            scripts = [*script.get("before", []), *[script] * script.get("repeat", 1), *script.get("after", [])]
            return [fit(build(part, query, qname, qtype, end), transport, part, end) for part in scripts]
        except (OSError, ValueError, KeyError) as error:
            self.log(event="error", qname=qname, error=repr(error))
            return [query[:2] + struct.pack(">HHHHH", 0x8182, 1, 0, 0, 0) + query[12:end]]

    def forward(self, query, transport):
        kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
        with socket.socket(socket.AF_INET, kind) as sock:
            sock.settimeout(UPSTREAM_SECONDS)
            sock.connect((self.upstream, 53))
            if transport == "udp":
                sock.send(query)
                return sock.recv(65536)
            sock.sendall(struct.pack(">H", len(query)) + query)
            return read_message(sock)

    def serve_udp(self, address):
        sock = listen(address, socket.SOCK_DGRAM)

        def answer(query, peer):
            for message in self.answers(query, "udp", address, peer):
                sock.sendto(message, peer)

        while True:
            query, peer = sock.recvfrom(65536)
            threading.Thread(target=answer, args=(query, peer), daemon=True).start()

    def serve_tcp(self, address):
        listener = listen(address, socket.SOCK_STREAM)
        listener.listen(128)

        def converse(sock, peer):
            try:
                while query := read_message(sock):
                    for message in self.answers(query, "tcp", address, peer):
                        sock.sendall(struct.pack(">H", len(message)) + message)
            except OSError:
                pass
            sock.close()

        while True:
            threading.Thread(target=converse, args=listener.accept(), daemon=True).start()


def read_exactly(sock, size):
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            return b""
        data += more
    return data


def read_message(sock):
    head = read_exactly(sock, 2)
    return read_exactly(sock, struct.unpack(">H", head)[0]) if head else b""


def listen(address, kind):
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, 53))
    return sock


def main():
    server = Server(*sys.argv[1:4])
    for address in sys.argv[4:]:
        threading.Thread(target=server.serve_udp, args=(address,), daemon=True).start()
        threading.Thread(target=server.serve_tcp, args=(address,), daemon=True).start()
    server.log(event="ready")
    threading.Event().wait()


if __name__ == "__main__":
    main()
