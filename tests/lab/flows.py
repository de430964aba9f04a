#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a capture of a device would tell of the flows on it: flows.py DEVICE FILE, until SIGTERM; then FILE holds a JSON line
for each TCP connection that began and each UDP flow:

  src, sport, dst, dport, proto, community_id, out and in (packets from src and to it); of a ClientHello that came first: ja4,
  version ("0x0304")

This reads packets and computes Community ID (version 1, seed 0) and JA4 from their public descriptions and shares nothing
with postern: it is what the log is held against. FILE is empty, but there, once packets are being read.
"""
import base64
import hashlib
import json
import signal
import socket
import struct
import sys

SO_RCVBUFFORCE = 33
TCP_SYN, TCP_ACK = 2, 16


def community_id(src, sport, dst, dport, proto):
    family = socket.AF_INET6 if ":" in src else socket.AF_INET
    ends = sorted([(socket.inet_pton(family, src), sport), (socket.inet_pton(family, dst), dport)])
    text = b"\0\0" + ends[0][0] + ends[1][0] + bytes([proto, 0]) + struct.pack(">HH", ends[0][1], ends[1][1])
    return "1:" + base64.b64encode(hashlib.sha1(text).digest()).decode()


def numbers(data):
    """16-bit numbers without GREASE."""
    values = [value for value, in struct.iter_unpack(">H", data)]
    return [value for value in values if not (value >> 8 == value & 255 and value & 15 == 10)]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else "0" * 12


def listing(values):
    return ",".join(f"{value:04x}" for value in values)


def handshake(stream):
    """The first handshake message of a stream of TLS records; None while it is incomplete or when it is no TLS."""
    message = b""
    while len(stream) >= 5 and stream[0] == 22:
        size = struct.unpack_from(">H", stream, 3)[0]
        message += stream[5 : 5 + size]
        stream = stream[5 + size :]
    if len(message) < 4 or message[0] != 1 or len(message) < 4 + int.from_bytes(message[1:4], "big"):
        return None
    return message[4 : 4 + int.from_bytes(message[1:4], "big")]


def ja4(hello):
    """(JA4, highest version) of the body of a ClientHello."""
    version, at = struct.unpack_from(">H", hello)[0], 34
    at += 1 + hello[at]
    size = struct.unpack_from(">H", hello, at)[0]
    ciphers = numbers(hello[at + 2 : at + 2 + size])
    at += 2 + size
    at += 1 + hello[at]
    extensions, first_protocol, signatures = {}, b"", []
    end = at + 2 + struct.unpack_from(">H", hello, at)[0] if at < len(hello) else at
    at += 2
    while at + 4 <= end:
        kind, size = struct.unpack_from(">HH", hello, at)
        extensions[kind] = hello[at + 4 : at + 4 + size]
        at += 4 + size
    if 43 in extensions:
        version = max(numbers(extensions[43][1:]))
    if 16 in extensions:
        first_protocol = extensions[16][3 : 3 + extensions[16][2]]
    if 13 in extensions:
        signatures = numbers(extensions[13][2:])
    kinds = numbers(b"".join(struct.pack(">H", kind) for kind in extensions))
    pair = "00"
    if first_protocol:
        plain = all(chr(byte).isalnum() and byte < 128 for byte in (first_protocol[0], first_protocol[-1]))
        text = first_protocol.decode() if plain else first_protocol.hex()
        pair = text[0] + text[-1]
    words = {0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10"}
    hashed = listing(sorted(kind for kind in kinds if kind not in (0, 16)))
    if hashed and signatures:
        hashed += "_" + listing(signatures)
    head = f"t{words.get(version, '00')}{'d' if 0 in extensions else 'i'}{min(len(ciphers), 99):02}{min(len(kinds), 99):02}"
    return f"{head}{pair}_{digest(listing(sorted(ciphers)))}_{digest(hashed)}", f"0x{version:04x}"


class Flow:
    def __init__(self, key, first_byte):
        self.key, self.first_byte = key, first_byte  # sequence number of the first byte of payload
        self.out = self.back = 0
        self.parts, self.hello = {}, None

    def take(self, seq, payload):
        """Payload of src: put together what is there from the first byte on."""
        if self.hello is not None or not payload:
            return
        self.parts[(seq - self.first_byte) % (1 << 32)] = payload
        stream = b""
        for offset in sorted(self.parts):
            if offset <= len(stream):
                stream = stream[:offset] + self.parts[offset]
        self.hello = handshake(stream)

    def row(self):
        src, sport, dst, dport, proto = self.key
        row = {"src": src, "sport": sport, "dst": dst, "dport": dport, "proto": {6: "tcp", 17: "udp"}[proto],
               "community_id": community_id(*self.key), "out": self.out, "in": self.back}
        if self.hello is not None:
            row["ja4"], row["version"] = ja4(self.hello)
        return row


def read_packet(packet):
    """(src, sport, dst, dport, proto, flags, sequence number, payload), or None."""
    if packet[0] >> 4 == 4:
        head, proto, total = (packet[0] & 15) * 4, packet[9], struct.unpack_from(">H", packet, 2)[0]
        src, dst = (socket.inet_ntop(socket.AF_INET, packet[i : i + 4]) for i in (12, 16))
    else:
        head, proto, total = 40, packet[6], 40 + struct.unpack_from(">H", packet, 4)[0]
        src, dst = (socket.inet_ntop(socket.AF_INET6, packet[i : i + 16]) for i in (8, 24))
    if proto not in (6, 17):
        return None
    sport, dport = struct.unpack_from(">HH", packet, head)
    if proto == 17:
        return src, sport, dst, dport, proto, 0, 0, packet[head + 8 : total]
    seq, flags, offset = struct.unpack_from(">I", packet, head + 4)[0], packet[head + 13], (packet[head + 12] >> 4) * 4
    return src, sport, dst, dport, proto, flags, seq, packet[head + offset : total]


def look(flows, packet):
    found = read_packet(packet)
    if found is None:
        return
    *ends, proto, flags, seq, payload = found
    src, sport, dst, dport = ends
    key, reverse = (src, sport, dst, dport, proto), (dst, dport, src, sport, proto)
    begins = flags & (TCP_SYN | TCP_ACK) == TCP_SYN if proto == 6 else reverse not in flows
    if begins and key not in flows:
        flows[key] = Flow(key, (seq + 1) % (1 << 32))
    if key in flows:
        flows[key].out += 1
        flows[key].take(seq, payload)
    elif reverse in flows:
        flows[reverse].back += 1


def main():
    device, path = sys.argv[1:3]
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    sock.bind((device, 3))
    flows = {}

    def end(*_):
        with open(path, "w", encoding="ascii") as out:
            for flow in flows.values():
                out.write(json.dumps(flow.row()) + "\n")
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    with open(path, "w", encoding="ascii"):
        pass
    while True:
        packet, (_, ethertype, *_) = sock.recvfrom(65536)
        if ethertype in (0x0800, 0x86DD):
            try:
                look(flows, packet)
            except (IndexError, struct.error):
                pass


if __name__ == "__main__":
    main()
