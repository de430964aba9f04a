#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's witness: one line for each IP packet that arrives on a device. witness.py DEVICE LOG

  tcp 5.161.10.2 40000 > 45.45.45.10 443 S 0
  udp 5.161.10.2 40001 > 45.45.45.55 53 - 52

protocol, source, source port, destination, destination port, TCP flags, payload bytes. Ports are 0 where there are
none. Tests assert from it that nothing for an address ever left the host; the line "lost N" says that the witness itself
missed packets, and then nothing can be asserted.
"""
import socket
import struct
import sys

ETH_P_IP, ETH_P_IPV6 = 0x0800, 0x86DD
PACKET_OUTGOING = 4
SOL_PACKET, PACKET_STATISTICS = 263, 6
PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6"}


def describe(ethertype, packet):
    if ethertype == ETH_P_IP:
        head, proto = (packet[0] & 15) * 4, packet[9]
        total = struct.unpack_from(">H", packet, 2)[0]
        source, destination = (socket.inet_ntop(socket.AF_INET, packet[i : i + 4]) for i in (12, 16))
    else:
        head, proto = 40, packet[6]
        total = 40 + struct.unpack_from(">H", packet, 4)[0]
        source, destination = (socket.inet_ntop(socket.AF_INET6, packet[i : i + 16]) for i in (8, 24))
    sport = dport = 0
    flags, size = "-", total - head
    if proto in (6, 17):
        sport, dport = struct.unpack_from(">HH", packet, head)
    if proto == 6:
        flags = "".join(letter for bit, letter in enumerate("FSRPAU") if packet[head + 13] >> bit & 1) or "-"
        size -= (packet[head + 12] >> 4) * 4
    if proto == 17:
        size -= 8
    return f"{PROTOCOLS.get(proto, f'proto{proto}')} {source} {sport} > {destination} {dport} {flags} {size}"


def main():
    device, path = sys.argv[1:3]
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    sock.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
    sock.bind((device, 3))
    with open(path, "a", encoding="ascii", buffering=1) as log:
        log.write("ready\n")
        while True:
            packet, (_, ethertype, kind, *_) = sock.recvfrom(200)
            if kind == PACKET_OUTGOING or ethertype not in (ETH_P_IP, ETH_P_IPV6):
                continue
            try:
                line = describe(ethertype, packet)
            except (IndexError, struct.error):
                line = f"short {packet.hex()}"
            log.write(line + "\n")
            # The marker of a test that asks whether all has been seen: answer with what was lost so far.
            if line.startswith("udp") and line.split()[5] == "9":
                _, lost = struct.unpack("II", sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
                if lost:
                    log.write(f"lost {lost}\n")


if __name__ == "__main__":
    main()
