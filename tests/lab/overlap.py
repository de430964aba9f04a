#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's TCP whose segments contradict each other: overlap.py ADDRESS PORT NAME OTHER

For each way to do it, a connection of its own (source ports from 42000 on), of raw packets: a ClientHello for NAME, and
somewhere in it, over the same sequence numbers, the bytes of OTHER (of the same length). Who inspects must see what
the server sees. A JSON line for each: {"sport": ..., "way": ..., "answer": "SA ... flags of what came back"}.
The guest's kernel knows nothing of these connections and must be kept from resetting them.
"""
import json
import sys
import time

import hello
import raw

FIRST_PORT, ISN = 42000, 1000
WAIT_S = 3


class Talk:
    def __init__(self, sock, mac, dst, port, sport):
        self.sock, self.mac, self.sport, self.answers = sock, mac, sport, []
        self.head = f"tcp dst={dst} dport={port} sport={sport}"
        self.theirs = 0

    def send(self, flags, at=0, data=b""):
        text = f"{self.head} flags={flags} seq={ISN + 1 + at} ack={self.theirs} data=hex:{data.hex()}"
        for frame in raw.Packet(text, self.mac).frames():
            raw.transmit(self.sock, frame)

    def hear(self, seconds):
        """The next packet of this connection: (flags, sequence number, size), or None."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.sock.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                frame, (_, _, kind, *_) = self.sock.recvfrom(65536)
            except TimeoutError:
                return None
            line = raw.describe(frame) if kind != raw.PACKET_OUTGOING else None
            if line and line.startswith("tcp ") and line.split()[5] == str(self.sport):
                at = 14 + (40 if line.split()[1].count(":") else 20)
                self.answers.append(line.split()[6])
                return line.split()[6], int.from_bytes(frame[at + 4 : at + 8], "big"), int(line.split()[7])
        return None

    def open(self):
        raw_syn = f"{self.head} flags=S seq={ISN}"
        for frame in raw.Packet(raw_syn, self.mac).frames():
            raw.transmit(self.sock, frame)
        answer = self.hear(WAIT_S)
        if not answer or answer[0] != "SA":
            sys.exit(f"overlap.py: no connection from port {self.sport}: {answer}")
        self.theirs = answer[1] + 1
        self.send("A")

    def finish(self, size):
        self.send("FA", size)
        while (answer := self.hear(WAIT_S)) and "R" not in answer[0]:
            self.theirs = max(self.theirs, answer[1] + answer[2] + ("F" in answer[0]))
            self.send("A", size + 1)
            if "F" in answer[0]:
                break


def ways(good, bad, at, length):
    """(title, [(offset, bytes)...]): what is sent, in this order. at, length: where the name stands."""
    end = at + length
    mixed = good[:at] + bad[at:end] + good[end:]
    name, other, rest = (at, good[at:end]), (at, bad[at:end]), [(0, good[:at]), (end, good[end:])]
    bytes_twice = [(i, data[i : i + 1]) for i in range(at, end) for data in (good, bad)]
    bytes_back = [(i, data[i : i + 1]) for i in range(end - 1, at - 1, -1) for data in (good, bad)]
    yield "the other name again, behind the whole", [(0, good), other]
    yield "the other hello again, behind the whole", [(0, good), (0, mixed)]
    yield "the other name first, out of order", [other, (0, good)]
    yield "the name first, out of order, then the other", [name, (0, mixed)]
    yield "the other name, then the name, then what is before", [other, name, *rest]
    yield "the name, then the other, then what is before", [name, other, *rest]
    yield "the tail, then the other over it, then the head", [(at, good[at:]), (at, mixed[at:]), (0, good[:at])]
    yield "byte by byte, each twice", [rest[0], *bytes_twice, rest[1]]
    yield "byte by byte from the end, each twice", [*bytes_back, rest[1], rest[0]]
    yield "half and half", [(0, good[: at + 4]), other, (at + 2, good[at + 2 :])]
    yield "the other hello whole, before it the first byte is missing", [(1, mixed[1:]), (0, good)]


def main():
    dst, port, name, other = sys.argv[1:5]
    good, bad = hello.hello(name), hello.hello(other)
    at = good.find(name.encode())
    if len(good) != len(bad) or bad.find(other.encode()) != at:
        sys.exit("overlap.py: names must be of the same length")
    sock = raw.open_device("eth0")
    mac = sock.getsockname()[4].hex(":")
    for i, (title, segments) in enumerate(ways(good, bad, at, len(name))):
        talk = Talk(sock, mac, dst, port, FIRST_PORT + i)
        talk.open()
        for offset, data in segments:
            talk.send("PA", offset, data)
        talk.finish(len(good))
        print(json.dumps({"sport": talk.sport, "way": title, "answer": " ".join(talk.answers)}), flush=True)


if __name__ == "__main__":
    main()
