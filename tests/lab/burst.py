#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest in a hurry.

burst.py dns SERVER NAME COUNT      COUNT questions for the address of NAME, as fast as they go out, answers unread
burst.py udp ADDRESS PORT COUNT     COUNT datagrams, each from a port of its own: as many flows
"""
import socket
import struct
import sys


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def dns(server, name, count):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    sock = socket.socket(family(server), socket.SOCK_DGRAM)
    sock.connect((server, 53))
    for i in range(count):
        sock.send(struct.pack(">HHHHHH", i & 0xFFFF, 0x0100, 1, 0, 0, 0) + labels + b"\0\0\x01\0\x01")


def udp(address, port, count):
    for _ in range(count):
        with socket.socket(family(address), socket.SOCK_DGRAM) as sock:
            sock.sendto(b"burst", (address, port))


if sys.argv[1] == "dns":
    dns(sys.argv[2], sys.argv[3], int(sys.argv[4]))
else:
    udp(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
