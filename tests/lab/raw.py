#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packets that no honest guest sends, and what comes back. raw.py [option...] PACKET...

A PACKET is one word of a shell: a kind and KEY=VALUE pairs, for instance

  raw.py "tcp src=8.8.8.8 dst=45.45.45.10 dport=443" "arp op=2 spa=172.16.0.1" "ip proto={0..255} dst=2600:1:2::10"

{1..9} and {a|b|c} stand for one packet each with these values; more than one of them multiply. Kinds and their keys:

  all       smac= dmac= (default: the device's and the gateway's), vlan=TAG, count=N (send it N times)
  frame     type=0x88cc data=
  arp       op=1 sha= spa= tha= tpa=
  tcp       sport= dport= flags=S seq= ack= data=
  udp       sport= dport= data=
  icmp      type= code= data=; isrc= idst= isport= idport=: an error about that TCP packet. ICMPv6 when dst= is IPv6
  ip        proto= data=
  ns na ra redirect mld   neighbour discovery: target= lladdr= (link-layer option), prefix= (ra)
  with IP   src= dst= ttl= id= options=HEX (IPv4) ext=hop,dst,routing,mobility,fragment,none (IPv6, in this order, dst*9
            for nine); dst-opts carry padding. cut=N: fragments of N bytes; keep=first|rest|odd|all, order=reverse,
            overlap=1: each fragment but the first comes behind one of other bytes that overlaps both

Addresses have the guest's defaults of the lab. A line for each packet that came back, like the witness's:
  tcp 45.45.45.10 443 > 172.16.0.2 40000 RA 0
  icmp 45.45.45.10 0 > 172.16.0.2 0 3/3 36
  arp 172.16.0.1 06:01:ac:10:00:01 > 172.16.0.2 06:00:ac:10:00:02 2
and at the end "sent N". options: --device NAME (eth0; waits until it is there), --listen MS after the last packet (300;
0: hear nothing), --gap US between packets
"""
import argparse
import itertools
import re
import select
import socket
import struct
import sys
import time

ETH_IP, ETH_IPV6, ETH_ARP, ETH_VLAN = 0x0800, 0x86DD, 0x0806, 0x8100
ICMP, TCP, UDP, ICMP6 = 1, 6, 17, 58
HEADERS = {"hop": 0, "routing": 43, "fragment": 44, "ah": 51, "none": 59, "dst": 60, "mobility": 135}
NDP = {"ra": 134, "ns": 135, "na": 136, "redirect": 137, "mld": 131}
PACKET_OUTGOING, SO_RCVBUFFORCE = 4, 33
DEVICE_WAIT_S = 10
SUM_COVERS = (TCP, UDP, ICMP6)
DEFAULTS = {4: "172.16.0.2", 6: "fd70:6f73:7465:726e::2"}
GATEWAY_MAC = "06:01:ac:10:00:01"


def mac_bytes(text):
    return bytes.fromhex(text.replace(":", ""))


def address(text):
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def number(text):
    return int(text, 0)


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def data_bytes(text):
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()


def expand(text):
    """Every packet that a word stands for."""
    parts = re.split(r"\{([^}]*)\}", text)
    choices = []
    for part in parts[1::2]:
        first, dots, last = part.partition("..")
        choices.append([str(n) for n in range(int(first), int(last) + 1)] if dots else part.split("|"))
    for choice in itertools.product(*choices):
        yield "".join(itertools.chain.from_iterable(itertools.zip_longest(parts[::2], choice, fillvalue="")))


class Packet:
    """One packet by its description; frames() are the bytes on the wire."""

    def __init__(self, text, device_mac):
        self.kind, *pairs = text.split()
        self.keys = dict(pair.split("=", 1) for pair in pairs)
        self.smac = mac_bytes(self.keys.get("smac", device_mac))
        self.dmac = mac_bytes(self.keys.get("dmac", GATEWAY_MAC))
        self.count = self.integer("count", 1)

    def integer(self, key, default=0):
        return number(self.keys[key]) if key in self.keys else default

    def text(self, key, default=""):
        return self.keys.get(key, default)

    def frames(self):
        if self.kind == "frame":
            return [self.ethernet(self.integer("type"), data_bytes(self.text("data", "x" * 46)))]
        if self.kind == "arp":
            sha = mac_bytes(self.keys["sha"]) if "sha" in self.keys else self.smac
            body = struct.pack(">HHBBH", 1, ETH_IP, 6, 4, self.integer("op", 1)) + sha
            body += address(self.text("spa", DEFAULTS[4])) + mac_bytes(self.text("tha", "00:00:00:00:00:00"))
            return [self.ethernet(ETH_ARP, body + address(self.text("tpa", "172.16.0.1")))]
        self.dst = address(self.text("dst", "ff02::1") if self.kind in NDP else self.keys["dst"])
        self.version = 6 if len(self.dst) == 16 else 4
        self.src = address(self.text("src", DEFAULTS[self.version]))
        proto, body = self.transport()
        packets = self.ipv6(proto, body) if self.version == 6 else self.ipv4(proto, body)
        return [self.ethernet(ETH_IPV6 if self.version == 6 else ETH_IP, packet) for packet in packets]

    def ethernet(self, ethertype, body):
        tag = struct.pack(">HH", ETH_VLAN, self.integer("vlan")) if "vlan" in self.keys else b""
        return self.dmac + self.smac + tag + struct.pack(">H", ethertype) + body

    def transport(self):
        data = data_bytes(self.text("data"))
        ports = struct.pack(">HH", self.integer("sport", 40000), self.integer("dport"))
        if self.kind == "tcp":
            flags = sum(1 << "FSRPAU".index(letter) for letter in self.text("flags", "S"))
            seq, ack = self.integer("seq", 1), self.integer("ack")
            head = ports + struct.pack(">IIBBHHH", seq, ack, 0x50, flags, 64240, 0, 0)
            return TCP, self.summed(TCP, head + data, 16)
        if self.kind == "udp":
            return UDP, self.summed(UDP, ports + struct.pack(">HH", 8 + len(data), 0) + data, 6)
        if self.kind == "icmp":
            return self.icmp(data)
        if self.kind in NDP:
            return ICMP6, self.summed(ICMP6, self.ndp(), 2)
        return self.integer("proto"), data or b"x" * 16

    def summed(self, proto, body, at):
        pseudo = self.src + self.dst + struct.pack(">II", len(body), proto)
        if proto not in SUM_COVERS:
            pseudo = b""
        return body[:at] + struct.pack(">H", checksum(pseudo + body)) + body[at + 2 :]

    def icmp(self, data):
        proto = ICMP6 if self.version == 6 else ICMP
        if "idst" in self.keys:
            inner = Packet(f"tcp src={self.text('isrc')} dst={self.text('idst')} sport={self.text('isport', '1')} "
                           f"dport={self.text('idport', '1')} seq={self.text('iseq', '1')}", "00:00:00:00:00:00")
            data = inner.frames()[0][14:]
        head = struct.pack(">BBHI", self.integer("type", 128 if self.version == 6 else 8), self.integer("code"), 0, 1)
        return proto, self.summed(proto, head + data, 2)

    def ndp(self):
        lladdr = mac_bytes(self.text("lladdr")) if "lladdr" in self.keys else b""
        target = address(self.text("target", DEFAULTS[6]))
        option = bytes([2 if self.kind in ("na", "redirect") else 1, 1]) + lladdr if lladdr else b""
        kind = NDP[self.kind]
        if self.kind == "ra":
            prefix = struct.pack(">BBBBIII", 3, 4, 64, 0xC0, 7200, 7200, 0) + address(self.text("prefix", "2600:9:9::"))
            return struct.pack(">BBHBBHII", kind, 0, 0, 64, 0, 1800, 0, 0) + prefix + option
        if self.kind == "redirect":
            return struct.pack(">BBHI", kind, 0, 0, 0) + target + self.dst + option
        flags = 0xA0000000 if self.kind == "na" else 0
        return struct.pack(">BBHI", kind, 0, 0, flags) + target + option

    def pieces(self, body):
        """(offset, more, bytes) of the fragments to send."""
        size = self.integer("cut")
        if not size:
            return [(0, False, body)]
        pieces = []
        for at in range(0, len(body), size):
            if at and self.text("overlap"):
                pieces.append((at - 8, True, bytes(byte ^ 0xFF for byte in body[at - 8 : at + 8].ljust(16, b"\0"))))
            pieces.append((at, at + size < len(body), body[at : at + size]))
        keep = self.text("keep", "all")
        pieces = {"first": pieces[:1], "rest": pieces[1:], "odd": pieces[::2], "all": pieces}[keep]
        return pieces[::-1] if self.text("order") == "reverse" else pieces

    def ipv4(self, proto, body):
        options = bytes.fromhex(self.text("options"))
        options += b"\0" * (-len(options) % 4)
        for at, more, piece in self.pieces(body):
            total = 20 + len(options) + len(piece)
            head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, total, self.integer("id", 1),
                               (at // 8) | (0x2000 if more else 0), self.integer("ttl", 64), proto, 0)
            head += self.src + self.dst + options
            yield head[:10] + struct.pack(">H", checksum(head)) + head[12:] + piece

    def ipv6(self, proto, body):
        names = []
        for word in filter(None, self.text("ext").split(",")):
            name, _, times = word.partition("*")
            names += [name] * (int(times) if times else 1)
        numbers = [HEADERS[name] for name in names] + [proto]
        chain = b""
        for i, name in enumerate(names):
            if name == "none":
                numbers[i + 1 :] = []
                break
            fill = {"routing": b"\0\0\0\0\0\0", "fragment": struct.pack(">HI", 0, 7), "ah": b"\0" * 6}
            chain += bytes([numbers[i + 1], 0]) + fill.get(name, b"\x01\x04\0\0\0\0")
        first = numbers[0]
        if "cut" in self.keys:
            chain, body = b"", chain + body
        for at, more, piece in self.pieces(body):
            if "cut" in self.keys:
                piece = struct.pack(">BBHI", first, 0, at | (1 if more else 0), self.integer("id", 1)) + piece
            hops = self.integer("ttl", 255 if self.kind in NDP else 64)
            following = HEADERS["fragment"] if "cut" in self.keys else first
            yield struct.pack(">IHBB", 0x60000000, len(chain) + len(piece), following, hops) + self.src + self.dst + chain + piece


def describe(frame):
    """A line about a frame, or None."""
    ethertype = struct.unpack_from(">H", frame, 12)[0]
    packet = frame[14:]
    if ethertype == ETH_ARP:
        op = struct.unpack_from(">H", packet, 6)[0]
        sha, tha = packet[8:14].hex(":"), packet[18:24].hex(":")
        return f"arp {socket.inet_ntoa(packet[14:18])} {sha} > {socket.inet_ntoa(packet[24:28])} {tha} {op}"
    if ethertype == ETH_IP:
        head, proto = (packet[0] & 15) * 4, packet[9]
        size = struct.unpack_from(">H", packet, 2)[0] - head
        src, dst = (socket.inet_ntop(socket.AF_INET, packet[i : i + 4]) for i in (12, 16))
    elif ethertype == ETH_IPV6:
        head, proto, size = 40, packet[6], struct.unpack_from(">H", packet, 4)[0]
        src, dst = (socket.inet_ntop(socket.AF_INET6, packet[i : i + 16]) for i in (8, 24))
    else:
        return f"frame 0x{ethertype:04x}"
    body, ports, what = packet[head : head + size], (0, 0), "-"
    if proto in (TCP, UDP):
        ports = struct.unpack_from(">HH", body)
    if proto == TCP:
        what = "".join(letter for bit, letter in enumerate("FSRPAU") if body[13] >> bit & 1) or "-"
        size -= (body[12] >> 4) * 4
    if proto in (ICMP, ICMP6):
        what = f"{body[0]}/{body[1]}"
    name = {ICMP: "icmp", TCP: "tcp", UDP: "udp", ICMP6: "icmp6"}.get(proto, f"proto{proto}")
    return f"{name} {src} {ports[0]} > {dst} {ports[1]} {what} {size}"


def open_device(name):
    deadline = time.monotonic() + DEVICE_WAIT_S
    while True:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            with open("/proc/self/net/dev", encoding="ascii") as devices:
                if f"{name}:" in devices.read():
                    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
                    sock.bind((name, 3))
                    return sock
        except OSError:
            pass
        sock.close()
        if time.monotonic() > deadline:
            sys.exit(f"raw.py: no device {name}")
        time.sleep(0.001)


def hear(sock, seconds):
    """Lines about what arrives within that time."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0 or select.select([sock], [], [], 0)[0]:
        if not select.select([sock], [], [], max(left, 0))[0]:
            break
        frame, (_, _, kind, *_) = sock.recvfrom(65536)
        if kind != PACKET_OUTGOING and (line := describe(frame)):
            yield line


def transmit(sock, frame):
    """Down is a device that is not up yet, ENOBUFS one that is busy: what is sent must be sent."""
    for _ in range(2000):
        try:
            return sock.send(frame)
        except OSError as error:
            if error.errno not in (100, 105):
                raise
            time.sleep(0.001)
    sys.exit("raw.py: the device does not take packets")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--device", default="eth0")
    parser.add_argument("--listen", type=float, default=300)
    parser.add_argument("--gap", type=float, default=0)
    parser.add_argument("packet", nargs="+")
    args = parser.parse_args()
    sock = open_device(args.device)
    own = sock.getsockname()[4].hex(":")
    sent = 0
    for text in itertools.chain.from_iterable(map(expand, args.packet)):
        packet = Packet(text, own)
        frames = packet.frames()
        for _ in range(packet.count):
            for frame in frames:
                transmit(sock, frame)
                if args.gap:
                    time.sleep(args.gap / 1e6)
            sent += 1
    if args.listen:
        for line in hear(sock, args.listen / 1000):
            print(line)
    print(f"sent {sent}")


if __name__ == "__main__":
    main()
