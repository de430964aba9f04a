#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP/1 as no library would send it: cases.py with words for requests. See there for how to call it.

  get(HOST, FIELD..., method=, path=, version=, body=)   a request; HOST None: without the field; FIELD as "Name: value"
  post(FIELD..., body=), chunked(PART...)                likewise; the body is these bytes as they are
Text is latin-1, so that every byte can be named.
"""
import random

import cases

ORIGIN = "bytes.lab-site.org"


def latin(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


def get(host=ORIGIN, *fields, method="GET", path="/", version="HTTP/1.1", body=b""):
    lines = [b"%s %s %s" % (latin(method), latin(path), latin(version))]
    if host is not None:
        lines.append(b"Host: " + latin(host))
    return b"\r\n".join(lines + [latin(field) for field in fields]) + b"\r\n\r\n" + body


def post(*fields, host=ORIGIN, body=b""):
    return get(host, *fields, method="POST", body=body)


def chunked(*parts, host=ORIGIN, coding="chunked"):
    return post(f"Transfer-Encoding: {coding}", host=host, body=b"".join(parts))


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST = b"0\r\n\r\n"


def streams(count, seed, most=262144):
    """Requests with bodies of random sizes and codings, cut at random, for as many connections."""
    dice = random.Random(seed)
    out = []
    for _ in range(count):
        data = b""
        for _ in range(dice.choice((1, 1, 2, 5))):
            body = dice.randbytes(int(most ** dice.random()))
            at = dice.randrange(len(body))
            data += dice.choice((get(), post(f"Content-Length: {len(body)}", body=body),
                                 chunked(*[chunk(part) for part in (body[:at], body[at:]) if part], LAST)))
        edges = sorted(dice.randrange(1, len(data)) for _ in range(dice.randrange(6)))
        out.append(cases.cut(data, *edges, gap=dice.choice((0, 0, 0.002))))
    return out


if __name__ == "__main__":
    cases.main("http", globals())
