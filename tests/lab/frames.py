#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual machine monitor gone bad: frames that no device makes, written to a TAP. frames.py DEVICE COUNT

Half of them without and half with the header by which a monitor speaks of checksums and segments (virtio-net), whose every
field lies as well. Frames are of all sizes, runts and giants among them: noise, noise behind an Ethernet header, and noise
in a sound IPv4 packet. Prints how many the kernel took and how many it refused to.
"""
import fcntl
import os
import random
import struct
import sys

TUNSETIFF, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x400454CA, 0x0002, 0x1000, 0x4000
GUEST_MAC, GATEWAY_MAC = bytes.fromhex("0600ac100002"), bytes.fromhex("0601ac100001")
SIZES = (0, 1, 5, 13, 14, 15, 20, 33, 34, 46, 60, 1500, 9000, 65521, 65535, 65550)
ETHERTYPES = (0x0800, 0x86DD, 0x0806, 0x8100, 0x88A8, 0x0010, 0x88CC)
READ_EVERY = 64


def device(name, flags):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    return fd


def ipv4(dice, body):
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, 64, dice.choice((1, 6, 17, 47)), 0,
                       bytes([172, 16, 0, 2]), bytes([45, 45, 45, 30]))
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack(">H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF) + head[12:] + body


def frame(dice):
    size = dice.choice(SIZES) if dice.random() < 0.5 else dice.randrange(2000)
    kind = dice.randrange(3)
    if kind == 0:
        return dice.randbytes(size)
    head = GATEWAY_MAC + GUEST_MAC + struct.pack(">H", dice.choice(ETHERTYPES) if kind == 1 else 0x0800)
    if kind == 1:
        return (head + dice.randbytes(size))[:size]
    return head + ipv4(dice, dice.randbytes(min(size, 65000)))


def offload(dice):
    offset = lambda: dice.choice((0, 14, 34, 54, 66, 0xFFFF, dice.randrange(65536)))
    return struct.pack("<BBHHHH", dice.choice((0, 1, 2, 4, 255)), dice.choice((0, 1, 3, 4, 5, 0x81, 0x84, 255)), offset(),
                       dice.choice((0, 1, 100, 1400, 65535)), offset(), dice.choice((0, 6, 16, 65535)))


def main():
    dice = random.Random(2641)
    taken = refused = 0
    for flags in (IFF_TAP | IFF_NO_PI, IFF_TAP | IFF_NO_PI | IFF_VNET_HDR):
        fd = device(sys.argv[1], flags)
        for i in range(int(sys.argv[2]) // 2):
            data = frame(dice)
            if flags & IFF_VNET_HDR:
                data = offload(dice) + data
            try:
                os.write(fd, data)
                taken += 1
            except OSError:
                refused += 1
            try:
                while i % READ_EVERY == 0:
                    os.read(fd, 70000)
            except BlockingIOError:
                pass
        os.close(fd)
    print(taken, refused)


main()
