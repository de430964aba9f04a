#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS hellos of every kind, sound and broken: cases.py with words for them. See there for how to call it.

  hello(NAME, ...)          a ClientHello in one record (in several when it is long); see message for what can be said
  message(NAME, ...)        the handshake message alone; records(MESSAGE, SIZE...) puts it into records of these sizes, the
                            last size again and again
  sni(NAME...)              body of a server_name extension, one entry for each
"""
import random
import struct

import cases

ORIGIN = "bytes.lab-site.org"
HANDSHAKE, CLIENT_HELLO, RECORD_MAX = 22, 1, 16384
SERVER_NAME, ALPN, PADDING, KEY_SHARE, EARLY_DATA, PSK, ECH = 0, 16, 21, 51, 42, 41, 0xFE0D
COMMON = ((43, b"\x04\x03\x04\x03\x03"), (13, b"\0\x04\x04\x03\x08\x04"), (10, b"\0\x04\0\x1d\0\x17"))
# ML-KEM-1024 and X25519MLKEM768 shares are what makes a hello of today big.
ML_KEM_SHARE = struct.pack(">HHH", 1572 + 1220, 0x0202, 1568) + b"k" * 1568 + struct.pack(">HH", 0x11EC, 1216) + b"k" * 1216


def latin(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


def vec8(data):
    return bytes([len(data)]) + data


def vec16(data):
    return struct.pack(">H", len(data)) + data


def entry(name, kind=0):
    return bytes([kind]) + vec16(latin(name))


def sni(*names):
    return vec16(b"".join(entry(name) for name in names))


def alpn(*names):
    return vec16(b"".join(vec8(latin(name)) for name in names))


def ext(kind, body=b""):
    return struct.pack(">H", kind) + vec16(body)


def ech(outer=True):
    """As RFC 9849 has it: type outer, a suite, a config id, a key, a payload."""
    if not outer:
        return b"\x01"
    return b"\0\0\x01\0\x01\x2a" + vec16(b"e" * 32) + vec16(b"p" * 144)


def message(name=ORIGIN, *more, before=(), protocols=("h2", "http/1.1"), pad=0, version=0x0303, session=b"s" * 32,
            ciphers=b"\x13\x01\x13\x02\xc0\x2f", compression=b"\0", extensions=None, rest=b""):
    """more, before: extensions behind and before the usual ones; name None: no server_name; pad: to that length."""
    if extensions is None:
        extensions = list(before)
        if name is not None:
            extensions.append(ext(SERVER_NAME, sni(name)))
        extensions += [ext(kind, body) for kind, body in COMMON] + [ext(ALPN, alpn(*protocols))] + list(more)
    body = struct.pack(">H", version) + b"r" * 32 + vec8(session) + vec16(ciphers) + vec8(compression)
    short = pad - (4 + len(body) + 2 + sum(map(len, extensions)) + 4)
    if short > 0:
        extensions.append(ext(PADDING, b"\0" * short))
    if extensions:
        body += vec16(b"".join(extensions))
    body += rest
    return bytes([CLIENT_HELLO]) + len(body).to_bytes(3, "big") + body


def record(data, kind=HANDSHAKE, version=0x0301):
    return struct.pack(">BHH", kind, version, len(data)) + data


def records(data, *sizes):
    out, at, sizes = b"", 0, list(sizes) or [RECORD_MAX]
    while at < len(data):
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        out += record(data[at : at + size])
        at += size
    return out


def hello(*args, **keys):
    return records(message(*args, **keys))


def every_record(data):
    """Cut into two records, at each offset in turn."""
    return [records(data, i, len(data)) for i in range(1, len(data))]


def streams(count, seed, most=262144):
    """A hello and a random amount of data behind it, cut at random, for as many connections."""
    dice = random.Random(seed)
    out = []
    for i in range(count):
        data = records(message(pad=dice.choice((0, 0, 517, 1800, 20000))), dice.choice((16384, 700, 90))) + record(
            dice.randbytes(64), kind=23, version=0x0303) + dice.randbytes(int(most ** dice.random()))
        edges = sorted(dice.randrange(1, len(data)) for _ in range(dice.randrange(6)))
        out.append(cases.cut(data, *edges, gap=dice.choice((0, 0, 0.002))))
    return out


if __name__ == "__main__":
    cases.main("tls", globals())
