#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dial many addresses at once, as a guest that looks for a way: dial.py [--timeout S] PROTO ADDRESS... PORT...

PROTO is tcp or udp; every address is tried at every port (words of digits only), all at the same time. A line each:
  refused tcp 8.8.8.8 853 1.3
how it ended (refused, unreachable, timeout, connected; for udp also answered), where, and after how many milliseconds.
"""
import argparse
import selectors
import socket
import time

NAMES = {1: "refused", 13: "refused", 104: "refused", 111: "refused", 101: "unreachable", 113: "unreachable", 110: "timeout"}
AT_ONCE = 500


def begin(proto, address, port):
    family, kind, _, _, to = socket.getaddrinfo(
        address, port, type=socket.SOCK_STREAM if proto == "tcp" else socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)[0]
    sock = socket.socket(family, kind)
    sock.setblocking(False)
    start = time.monotonic()
    error = sock.connect_ex(to)
    if proto == "udp" and not error:
        sock.send(b"question")
    return sock, start, error if error != 115 else 0


def ended(proto, sock):
    error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        return NAMES.get(error, f"error {error}")
    return "connected" if proto == "tcp" else "answered"


def dial(proto, targets, timeout):
    selector = selectors.DefaultSelector()

    def say(how, address, port, start):
        print(how, proto, address, port, round((time.monotonic() - start) * 1000, 1), flush=True)

    for address, port in targets:
        sock, start, error = begin(proto, address, port)
        if error:
            say(NAMES.get(error, f"error {error}"), address, port, start)
            continue
        event = selectors.EVENT_WRITE if proto == "tcp" else selectors.EVENT_READ
        selector.register(sock, event, (address, port, start))
    deadline = time.monotonic() + timeout
    while selector.get_map() and time.monotonic() < deadline:
        for key, _ in selector.select(deadline - time.monotonic()):
            say(ended(proto, key.fileobj), *key.data)
            selector.unregister(key.fileobj)
            key.fileobj.close()
    for key in list(selector.get_map().values()):
        say("timeout", *key.data)
        key.fileobj.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--timeout", type=float, default=3)
    parser.add_argument("proto", choices=["tcp", "udp"])
    parser.add_argument("word", nargs="+")
    args = parser.parse_args()
    ports = [int(word) for word in args.word if word.isdigit()]
    targets = [(address, port) for address in args.word if not address.isdigit() for port in ports]
    for at in range(0, len(targets), AT_ONCE):
        dial(args.proto, targets[at : at + AT_ONCE], args.timeout)


if __name__ == "__main__":
    main()
