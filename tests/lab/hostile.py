# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest whose names are hostile bytes, for programs inside tests: each is asked for, and said in a TLS hello and as a Host."""
import socket
import struct

import hello

RCODE_MASK = 15


def ask(server, names, below=b""):
    """Each name, or as much of it as fits, as one label above the wire form `below`: no answer says that it exists."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as dns:
        dns.settimeout(15)
        for i, name in enumerate(names):
            label = name[:63]
            dns.sendto(struct.pack(">HHHHHH", i, 0x0100, 1, 0, 0, 0) + bytes([len(label)]) + label + below + b"\0" +
                       struct.pack(">HH", 1, 1), (server, 53))
            answer = dns.recv(4096)
            assert answer[:2] == struct.pack(">H", i) and answer[3] & RCODE_MASK != 0, answer


def say(port, data):
    """To a name that is allowed, and until the other side has ended it."""
    with socket.create_connection(("news.lab-site.org", port), timeout=15) as sock:
        sock.sendall(data)
        try:
            while sock.recv(4096):
                pass
        except ConnectionResetError:
            pass


def offer(server, names, below=b""):
    ask(server, names, below)
    for name in names:
        say(443, hello.hello(name))
        say(80, b"GET / HTTP/1.1\r\nHost: " + name.replace(b"\r\n", b"\r") + b"\r\n\r\n")
