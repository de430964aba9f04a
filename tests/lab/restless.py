#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that begins much and ends little of it, until it is killed.

restless.py SEED GATEWAY WEB ECHO
"""
import random
import socket
import ssl
import struct
import sys
import time

SEED, GATEWAY, WEB, ECHO = sys.argv[1:]
NEWS = "news.lab-site.org"
chance = random.Random(SEED)


def question(name, number=None):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    number = chance.randrange(65536) if number is None else number
    return struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + labels + b"\0\0\x01\0\x01"


def hello(name):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    try:
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


HELLOS = [hello(NEWS), hello("lab-b.net")]
REQUESTS = [b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % name for name in (NEWS.encode(), b"lab-b.net")]


def ask():
    """A datagram or a few to the resolver: good, refused, no query at all."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.3)
        sock.connect((GATEWAY, 53))
        for _ in range(chance.randrange(1, 4)):
            sock.send(chance.choice([question(NEWS), question("lab-b.net"), question("x.invalid"), b"\x12\x34\x81\x80",
                                     question(NEWS)[:20]]))
        if chance.random() < 0.7:
            sock.recv(2048)


def end(sock):
    """In order, or with a reset."""
    if chance.random() < 0.5:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def cut(port, parts, to):
    """Some of it, perhaps with a part of the next, and away; or a moment later; or an answer first."""
    with socket.create_connection((to, port), 0.3) as sock:
        data = b"".join(parts[: chance.randrange(len(parts) + 1)])
        data = data[: chance.randrange(len(data) + 1)] if chance.random() < 0.4 else data
        if data:
            sock.sendall(data)
        time.sleep(chance.choice([0, 0, 0.02, 0.1]))
        if chance.random() < 0.5:
            sock.settimeout(0.2)
            sock.recv(4096)
        end(sock)


def pipelined():
    """Questions over TCP, several in one go, the last one cut."""
    messages = [question(chance.choice([NEWS, "lab-b.net", "echo.lab-site.org"])) for _ in range(chance.randrange(1, 6))]
    cut(53, [struct.pack(">H", len(message)) + message for message in messages], GATEWAY)


def again():
    """Datagrams from a port that had a flow a moment ago, and from others."""
    for port in (0, 4000, 4000, 4001):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("", port))
            sock.sendto(b"again", (chance.choice([ECHO, WEB]), 7))


DOINGS = [ask, ask, pipelined, again, lambda: cut(443, [chance.choice(HELLOS)], WEB),
          lambda: cut(80, [chance.choice(REQUESTS) for _ in range(3)], WEB),
          lambda: cut(chance.choice([22, 9999]), [b"x"], WEB), lambda: cut(7, [b"echo", b"more"], ECHO)]
while True:
    try:
        chance.choice(DOINGS)()
    except OSError:
        pass
    time.sleep(0.005)
