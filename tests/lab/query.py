#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions with names that no resolver library would send: cases.py with words for them. See there for how to call it.

  query(LABEL..., kind=1)   a question over UDP whose name is these labels, as they are
  name(TEXT)                the same for a name in the usual form ("a.example.com")

A result has "qname", "rcode" and "answers" (their count) beside what cases.py says.
"""
import socket
import struct
import time

import cases

TIMEOUT_S = 5
# EDNS, so that a refusal can tell its reason.
OPT = struct.pack(">BHHIH", 0, 41, 1232, 0, 0)


def latin(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


class Query(cases.Case):
    def __init__(self, labels, kind):
        wire = b"".join(bytes([len(label)]) + label for label in labels)
        message = struct.pack(">HHHHHH", 0x1234, 0x0100, 1, 0, 0, 1) + wire + struct.pack(">BHH", 0, kind, 1) + OPT
        super().__init__([message], title=repr(b".".join(labels)))
        self.qname = b".".join(labels).decode("latin-1").lower()


def query(*labels, kind=1):
    return Query([latin(label) for label in labels], kind)


def name(text, kind=1):
    return query(*text.split("."), kind=kind)


def ask(case, _, family, address, sport):
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(TIMEOUT_S)
        sock.bind(("", sport))
        sock.connect(address)
        start = time.monotonic()
        seen = {"qname": case.qname, "rcode": -1, "answers": 0, "received": ""}
        try:
            sock.send(case.segments[0])
            _, flags, _, seen["answers"] = struct.unpack_from(">HHHH", sock.recv(65536))
            seen.update(end="reply", rcode=flags & 15)
        except (OSError, struct.error) as error:
            seen.update(end=cases.end_of(error) if isinstance(error, OSError) else "short")
        return {**seen, "ms": round((time.monotonic() - start) * 1000, 1)}


if __name__ == "__main__":
    cases.main("dns", globals(), ask)
