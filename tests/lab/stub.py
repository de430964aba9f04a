#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's resolver that dig is not: odd messages, odd framing, many questions at once, and answers down to the byte.

  stub.py [option...] udp WORD...           each word is a datagram, sent one after another's reply
  stub.py [option...] tcp WORD...           the words are a stream on one connection
  stub.py [option...] denied COUNT PARENT   so many random names, below PARENT and elsewhere; some over TCP
  stub.py [option...] types NAME FIRST LAST a question for each type
  stub.py [option...] flood SECONDS NAME    as fast as possible ("%d" in NAME is a number); replies are counted, not read
  stub.py [option...] noise COUNT NAME      so many datagrams of random bytes, and questions with random changes
  stub.py [option...] crowd COUNT NAME      so many connections at once, a question on each
  stub.py [option...] deaf COUNT NAME       so many questions on one connection, and only then read
  stub.py [option...] race COUNT PORT NAME  ask, and connect the moment the answer is there

A WORD is a question, NAME/TYPE (type A; "%d" is not special), or "hex:..." for bytes as they are; in "hex:" the letters
QNAME(name) become the wire form of a name. Over TCP a question gets its length in front, "hex:" does not.

udp and tcp print a JSON object for each message that came back, and tcp one more that says how the connection ended:
  {"end": "fin|rst|refused|timeout", "ms": ...}; udp prints the same where nothing came back.
A message: {"ms", "asked", "from", "id", "rcode", "flags", "question", "qtype", "answers", "authority", "additional", "edns", "size",
"raw"}; a record in it is [NAME, TYPE, TTL, DATA]; "edns" is {"size", "version", "options": [[CODE, HEX]...], "ede", "text"}.
The other commands print one JSON object with counts.

options: --server ADDRESS (172.16.0.1; several with commas for udp and tcp), --timeout SECONDS (5), --edns SIZE (0: no OPT record), --option CODE:HEX, --id N,
--flags HEX (0100), --class N, --one-write (the whole stream in one write), --bytes N (writes of so many bytes),
--gap SECONDS (between writes), --half-close, --window N (questions under way, 50)
"""
import argparse
import collections
import json
import os
import random
import re
import select
import socket
import struct
import sys
import time

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "NULL": 10, "PTR": 12, "HINFO": 13, "MX": 15, "TXT": 16, "AAAA": 28,
         "SRV": 33, "NAPTR": 35, "OPT": 41, "RRSIG": 46, "DNSKEY": 48, "SVCB": 64, "HTTPS": 65, "IXFR": 251,
         "AXFR": 252, "ANY": 255, "CAA": 257}
TYPE_NAMES = {value: key for key, value in TYPES.items()}
RCODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED", 16: "BADVERS"}
FLAGS = {0x8000: "qr", 0x0400: "aa", 0x0200: "tc", 0x0100: "rd", 0x0080: "ra", 0x0020: "ad", 0x0010: "cd"}
EDE = 15


# -- messages -----------------------------------------------------------------------------------------------------------

def type_number(word):
    return TYPES[word] if word in TYPES else int(word.removeprefix("TYPE"))


def type_name(number):
    return TYPE_NAMES.get(number, f"TYPE{number}")


def name_wire(name):
    labels = [label for label in name.encode("latin-1").split(b".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def opt_record(args):
    options = b""
    for option in args.option:
        code, value = option.split(":")
        options += struct.pack(">HH", int(code), len(value) // 2) + bytes.fromhex(value)
    return b"\0" + struct.pack(">HHIH", 41, args.edns, 0, len(options)) + options


def question(args, name, qtype, ident=None):
    if ident is None:
        ident = args.id if args.id is not None else random.randrange(65536)
    edns = args.edns > 0
    return struct.pack(">HHHHHH", ident, args.flags, 1, 0, 0, edns) + name_wire(name) \
        + struct.pack(">HH", qtype, args.qclass) + (opt_record(args) if edns else b"")


def word_bytes(args, word, framed):
    if word.startswith("hex:"):
        text = re.sub(r"QNAME\(([^)]*)\)", lambda match: name_wire(match[1]).hex(), word[4:])
        return bytes.fromhex(text)
    name, _, kind = word.rpartition("/") if "/" in word else (word, "", "A")
    message = question(args, name, type_number(kind))
    return (struct.pack(">H", len(message)) if framed else b"") + message


def read_name(message, at):
    labels, end = [], None
    while message[at]:
        size = message[at]
        if size >= 192:
            end = end or at + 2
            at = struct.unpack_from(">H", message, at)[0] & 0x3FFF
            continue
        labels.append(message[at + 1 : at + 1 + size].decode("latin-1"))
        at += 1 + size
    return ".".join(labels), end or at + 1


def record_text(message, kind, at, size):
    if kind == 1 and size == 4:
        return socket.inet_ntop(socket.AF_INET, message[at : at + 4])
    if kind == 28 and size == 16:
        return socket.inet_ntop(socket.AF_INET6, message[at : at + 16])
    if kind in (2, 5, 12):
        return read_name(message, at)[0]
    return "hex:" + message[at : at + size].hex()


def read_edns(rr_class, ttl, rdata):
    edns = {"size": rr_class, "version": ttl >> 16 & 255, "options": []}
    while rdata:
        code, size = struct.unpack_from(">HH", rdata)
        edns["options"].append([code, rdata[4 : 4 + size].hex()])
        if code == EDE:
            edns["ede"] = struct.unpack_from(">H", rdata, 4)[0]
            edns["text"] = rdata[6 : 4 + size].decode()
        rdata = rdata[4 + size :]
    return edns


def read_reply(message):
    ident, flags, questions, *counts = struct.unpack_from(">HHHHHH", message)
    reply = {"id": ident, "flags": [word for bit, word in FLAGS.items() if flags & bit], "question": None}
    rcode, at = flags & 15, 12
    for _ in range(questions):
        reply["question"], at = read_name(message, at)
        reply["qtype"] = type_name(struct.unpack_from(">H", message, at)[0])
        at += 4
    for section, count in zip(("answers", "authority", "additional"), counts):
        reply[section] = []
        for _ in range(count):
            name, at = read_name(message, at)
            kind, rr_class, ttl, size = struct.unpack_from(">HHIH", message, at)
            at += 10
            if kind == 41:
                reply["edns"] = read_edns(rr_class, ttl, message[at : at + size])
                rcode |= ttl >> 24 << 4
            else:
                reply[section].append([name, type_name(kind), ttl, record_text(message, kind, at, size)])
            at += size
    if at != len(message):
        raise ValueError(f"{len(message) - at} bytes behind the reply")
    reply["rcode"] = RCODES.get(rcode, str(rcode))
    return {**reply, "size": len(message), "raw": message.hex()}


def say(**row):
    print(json.dumps(row), flush=True)


def since(start):
    return round((time.monotonic() - start) * 1000, 1)


# -- one message after another --------------------------------------------------------------------------------------------

def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def run_udp(args):
    # Not connected: a reply from another address than the one asked is seen, and said.
    sock = socket.socket(family_of(args.server), socket.SOCK_DGRAM)
    sock.settimeout(args.timeout)
    for word in args.words:
        start = time.monotonic()
        sock.sendto(word_bytes(args, word, False), (args.server, 53))
        try:
            message, peer = sock.recvfrom(65536)
            say(ms=since(start), asked=args.server, **{"from": peer[0]}, **read_reply(message))
        except TimeoutError:
            say(end="timeout", ms=since(start))


def connect(address, port, timeout, buffers=0):
    sock = socket.socket(family_of(address), socket.SOCK_STREAM)
    sock.settimeout(timeout)
    if buffers:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers)
    sock.connect((address, port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def tcp_writes(args):
    words = [word_bytes(args, word, True) for word in args.words]
    if not args.one_write and not args.bytes:
        return words
    stream = b"".join(words)
    size = args.bytes or len(stream)
    return [stream[i : i + size] for i in range(0, len(stream), size)]


def read_exactly(sock, size):
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def read_message(sock):
    return read_exactly(sock, struct.unpack(">H", read_exactly(sock, 2))[0])


def tcp_converse(args, sock, start):
    peer = sock.getpeername()[0]
    for i, data in enumerate(tcp_writes(args)):
        if i and args.gap:
            time.sleep(args.gap)
        sock.sendall(data)
    if args.half_close:
        sock.shutdown(socket.SHUT_WR)
    while True:
        say(ms=since(start), asked=args.server, **{"from": peer}, **read_reply(read_message(sock)))


def run_tcp(args):
    start = time.monotonic()
    try:
        tcp_converse(args, connect(args.server, 53, args.timeout), start)
    except EOFError:
        end = "fin"
    except ConnectionRefusedError:
        end = "refused"
    except (ConnectionResetError, BrokenPipeError):
        end = "rst"
    except TimeoutError:
        end = "timeout"
    say(end=end, ms=since(start))


# -- many at once -----------------------------------------------------------------------------------------------------

class Asker:
    """Keeps a window of questions under way over UDP, asks again what got no reply or was over the rate."""

    def __init__(self, args):
        self.args = args
        self.sock = socket.socket(family_of(args.server), socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.sock.connect((args.server, 53))
        self.under_way = {}
        self.ident = random.randrange(65536)
        self.again = 0

    def send(self, ident, name, qtype):
        self.under_way[ident] = (name, qtype, time.monotonic())
        self.sock.send(question(self.args, name, qtype, ident))

    def receive(self, handler):
        if not select.select([self.sock], [], [], 0.5)[0]:
            for ident, (name, qtype, sent) in list(self.under_way.items()):
                if time.monotonic() - sent > self.args.timeout:
                    self.again += 1
                    self.send(ident, name, qtype)
            return
        message = self.sock.recv(65536)
        ident = struct.unpack_from(">H", message)[0]
        if ident not in self.under_way:
            return
        name, qtype, _ = self.under_way[ident]
        reply = read_reply(message)
        if "rate" in reply.get("edns", {}).get("text", ""):
            self.again += 1
            time.sleep(0.02)
            self.send(ident, name, qtype)
            return
        del self.under_way[ident]
        handler(name, qtype, reply)

    def run(self, questions, handler):
        for name, qtype in questions:
            while len(self.under_way) >= self.args.window:
                self.receive(handler)
            while self.ident in self.under_way:
                self.ident = (self.ident + 1) % 65536
            self.send(self.ident, name, qtype)
            self.ident = (self.ident + 1) % 65536
        while self.under_way:
            self.receive(handler)


def random_name(parent):
    data = "".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789-", k=random.randrange(1, 50))).strip("-") or "x"
    return random.choice((f"{data}.{parent}", f"{data}.com", f"a.{data}.net", data, f"{data}.{parent}.lab-b.net",
                          f"_{data}._tcp.{parent}", f"{random.randrange(256)}.1.168.192.in-addr.arpa"))


def run_denied(args):
    count, parent = int(args.words[0]), args.words[1]
    rcodes, answers = collections.Counter(), 0
    kinds = [1, 28, 5, 16, 12, 65, 64, 15, 33, 255]

    def handler(_name, _qtype, reply):
        nonlocal answers
        rcodes[reply["rcode"]] += 1
        answers += len(reply["answers"])

    by_tcp = count // 10
    asker = Asker(args)
    asker.run(((random_name(parent), random.choice(kinds)) for _ in range(count - by_tcp)), handler)
    sock = connect(args.server, 53, args.timeout)
    for _ in range(by_tcp):
        message = question(args, random_name(parent), random.choice(kinds))
        sock.sendall(struct.pack(">H", len(message)) + message)
        handler("", 0, read_reply(read_message(sock)))
    say(rcodes=rcodes, answers=answers, again=asker.again)


def run_types(args):
    name, first, last = args.words[0], int(args.words[1]), int(args.words[2])
    rcodes, answered = collections.Counter(), collections.Counter()

    def handler(_name, qtype, reply):
        rcodes[reply["rcode"]] += 1
        for record in reply["answers"]:
            answered[f"{type_name(qtype)}:{record[1]}"] += 1

    asker = Asker(args)
    asker.run(((name, qtype) for qtype in range(first, last + 1)), handler)
    say(rcodes=rcodes, answered=answered, again=asker.again)


def run_flood(args):
    seconds, name = float(args.words[0]), args.words[1]
    sock = socket.socket(family_of(args.server), socket.SOCK_DGRAM)
    sock.connect((args.server, 53))
    sock.setblocking(False)
    end, sent, received = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        for _ in range(20):
            try:
                sock.send(question(args, name.replace("%d", str(sent)), 1))
                sent += 1
            except BlockingIOError:
                break
        try:
            while sock.recv(65536):
                received += 1
        except BlockingIOError:
            pass
    say(sent=sent, received=received)


def run_noise(args):
    sock = socket.socket(family_of(args.server), socket.SOCK_DGRAM)
    sock.connect((args.server, 53))
    sock.setblocking(False)
    rcodes = collections.Counter()
    for i in range(int(args.words[0])):
        data = bytearray(question(args, args.words[1], random.choice((1, 28, 65))))
        for _ in range(random.randrange(6)):
            data[random.randrange(len(data))] = random.choice((0, 1, 0x3F, 0x40, 0xC0, 0xFF, random.randrange(256)))
        if i % 4 == 0:
            data = random.randbytes(random.randrange(600))
        sock.send(data[: random.choice((len(data), len(data), random.randrange(len(data) + 1)))])
        # Slower than the rate at which one sandbox may ask.
        time.sleep(0.0003)
        try:
            rcodes[RCODES.get(sock.recv(65536)[3] & 15, "other")] += 1
        except BlockingIOError:
            pass
    say(rcodes=rcodes)


def run_crowd(args):
    ends = collections.Counter()
    socks = [connect(args.server, 53, args.timeout) for _ in range(int(args.words[0]))]
    for sock in socks:
        message = question(args, args.words[1], 1)
        try:
            sock.sendall(struct.pack(">H", len(message)) + message)
            ends[read_reply(read_message(sock))["rcode"]] += 1
        except (OSError, EOFError) as error:
            ends["timeout" if isinstance(error, TimeoutError) else "closed"] += 1
    say(ends=ends)


def run_deaf(args):
    count, name = int(args.words[0]), args.words[1]
    sock = connect(args.server, 53, args.timeout, buffers=8192)
    stream = b"".join(struct.pack(">H", len(message)) + message
                      for message in (question(args, name, 1, i % 65536) for i in range(count)))
    sock.setblocking(False)
    sent, quiet, replies, at = 0, time.monotonic(), collections.Counter(), 0
    # Write until the other side has taken nothing for a while.
    while sent < len(stream) and time.monotonic() - quiet < 0.5:
        try:
            sent += sock.send(stream[sent : sent + 65536])
            quiet = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    blocked = sent < len(stream)
    # Then read all of it, and go on writing.
    data, last = bytearray(), time.monotonic()
    while sum(replies.values()) < count and time.monotonic() - last < args.timeout:
        _, writable, _ = select.select([sock], [sock] if sent < len(stream) else [], [], 0.1)
        if writable:
            sent += sock.send(stream[sent : sent + 65536])
        try:
            more = sock.recv(1 << 20)
        except BlockingIOError:
            continue
        if not more:
            break
        data += more
        last = time.monotonic()
        while len(data) - at >= 2 and len(data) - at >= 2 + (data[at] << 8 | data[at + 1]):
            size = data[at] << 8 | data[at + 1]
            replies[RCODES[data[at + 5] & 15]] += 1
            at += 2 + size
    say(blocked=blocked, replies=replies)


def run_race(args):
    count, port, name = int(args.words[0]), int(args.words[1]), args.words[2]
    ends, slowest = collections.Counter(), 0.0
    for i in range(count):
        with socket.socket(family_of(args.server), socket.SOCK_DGRAM) as sock:
            sock.settimeout(args.timeout)
            sock.connect((args.server, 53))
            qtype = 28 if i % 2 else 1
            sock.send(question(args, name.replace("%d", str(i)), qtype))
            reply = read_reply(sock.recv(65536))
        addresses = [record[3] for record in reply["answers"] if record[1] in ("A", "AAAA")]
        if not addresses:
            ends["unresolved " + reply["rcode"]] += 1
            continue
        start = time.monotonic()
        try:
            connect(addresses[0], port, args.timeout).close()
            ends["connected"] += 1
        except OSError as error:
            ends[type(error).__name__] += 1
        slowest = max(slowest, since(start))
    say(ends=ends, slowest_ms=slowest)


COMMANDS = {"udp": run_udp, "tcp": run_tcp, "denied": run_denied, "types": run_types, "flood": run_flood,
            "noise": run_noise, "crowd": run_crowd, "deaf": run_deaf, "race": run_race}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default=os.environ.get("GATEWAY4", "172.16.0.1"))
    parser.add_argument("--timeout", type=float, default=5)
    parser.add_argument("--edns", type=int, default=0)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--id", type=int)
    parser.add_argument("--flags", type=lambda text: int(text, 16), default=0x0100)
    parser.add_argument("--class", dest="qclass", type=int, default=1)
    parser.add_argument("--one-write", action="store_true")
    parser.add_argument("--bytes", type=int)
    parser.add_argument("--gap", type=float, default=0)
    parser.add_argument("--half-close", action="store_true")
    parser.add_argument("--window", type=int, default=50)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("words", nargs="*")
    args = parser.parse_intermixed_args()
    for args.server in args.server.split(","):
        COMMANDS[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
