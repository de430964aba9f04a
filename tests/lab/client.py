#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guest does that curl and dig do not: a plain client that says how a conversation ended, and when.

  client.py [option...] tcp HOST PORT [DATA...]   connect, send, read to the end
  client.py [option...] udp HOST PORT [DATA...]   send a datagram, wait for one
  client.py [option...] ws HOST PORT [TEXT...]    WebSocket: each text is sent and must come back

DATA is text with \\n, \\xNN and the like, or "hex:...", or "@FILE". It prints what it received on stdout and one JSON line
on stderr: {"end": "fin|rst|refused|timeout|unreachable|reply", "ms": ..., "connect_ms": ..., "received": ..., "sha256": ...}
The exit status is 0 for fin and reply, 1 for all else.

options: --timeout SECONDS (5), --half-close (shut the sending side after the data), --gap SECONDS (between the DATA
words, each in a segment of its own), --source PORT, --tls NAME (with this SNI, certificate checked), --family 4|6,
--name NAME (that a WebSocket's Host says; HOST or the SNI otherwise), --pause SECONDS (before tcp reads anything),
--reset (the connection at the first byte that tcp reads)
"""
import argparse
import base64
import hashlib
import json
import os
import socket
import ssl
import struct
import sys
import time


def data_bytes(word):
    if word.startswith("hex:"):
        return bytes.fromhex(word[4:])
    if word.startswith("@"):
        with open(word[1:], "rb") as file:
            return file.read()
    return word.encode("latin-1").decode("unicode_escape").encode("latin-1")


def converse_tcp(sock, args):
    for i, word in enumerate(args.data):
        if i and args.gap:
            time.sleep(args.gap)
        sock.sendall(data_bytes(word))
    if args.half_close:
        sock.shutdown(socket.SHUT_WR)
    time.sleep(args.pause)
    received = args.received  # what came before a reset counts too
    while data := sock.recv(65536):
        received += data
        if args.reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
            break
    return received, "fin"


def converse_udp(sock, args):
    sock.send(data_bytes(args.data[0] if args.data else "x"))
    return sock.recv(65536), "reply"


def read_exactly(sock, size):
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError("closed in the middle")
        data += more
    return data


def ws_open(sock, name):
    """The head of the answer; None when the protocol was switched."""
    key = base64.b64encode(os.urandom(16)).decode()
    sock.sendall(f"GET /ws HTTP/1.1\r\nHost: {name}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += read_exactly(sock, 1)
    return None if b" 101 " in head.split(b"\r\n")[0] else head


def ws_echo(sock, text):
    """Send a message, return the one that comes back."""
    mask = os.urandom(4)
    size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack(">H", len(text)) \
        if len(text) < 65536 else b"\xff" + struct.pack(">Q", len(text))
    sock.sendall(b"\x81" + size + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(text)))
    length = read_exactly(sock, 2)[1]
    if length == 126:
        length = struct.unpack(">H", read_exactly(sock, 2))[0]
    elif length == 127:
        length = struct.unpack(">Q", read_exactly(sock, 8))[0]
    return read_exactly(sock, length)


def converse_ws(sock, args):
    head = ws_open(sock, args.name or args.tls or args.host)
    if head is not None:
        return head, "refused"
    received = b""
    for word in args.data:
        text = data_bytes(word)
        echoed = ws_echo(sock, text)
        if echoed != text:
            return echoed, "different"
        received += echoed
    return received, "fin"


def connect(args, result):
    kind = socket.SOCK_DGRAM if args.what == "udp" else socket.SOCK_STREAM
    wanted = {"4": socket.AF_INET, "6": socket.AF_INET6}.get(args.family, 0)
    family, _, _, _, address = socket.getaddrinfo(args.host, args.port, family=wanted, type=kind)[0]
    sock = socket.socket(family, kind)
    sock.settimeout(args.timeout)
    if args.source:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("", args.source))
    start = time.monotonic()
    sock.connect(address)
    result["connect_ms"] = round((time.monotonic() - start) * 1000, 1)
    if args.tls:
        sock = ssl.create_default_context().wrap_socket(sock, server_hostname=args.tls)
    return sock


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--timeout", type=float, default=5)
    parser.add_argument("--half-close", action="store_true")
    parser.add_argument("--gap", type=float, default=0)
    parser.add_argument("--source", type=int)
    parser.add_argument("--tls")
    parser.add_argument("--family", choices=["4", "6"])
    parser.add_argument("--name")
    parser.add_argument("--pause", type=float, default=0)
    parser.add_argument("--reset", action="store_true")
    parser.add_argument("what", choices=["tcp", "udp", "ws"])
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("data", nargs="*")
    args = parser.parse_intermixed_args()
    args.received = bytearray()
    result, received, start = {}, b"", time.monotonic()
    try:
        received, end = {"tcp": converse_tcp, "udp": converse_udp, "ws": converse_ws}[args.what](
            connect(args, result), args)
    except ConnectionRefusedError:
        end = "refused"
    except (ConnectionResetError, BrokenPipeError):
        end = "rst"
    except TimeoutError:
        end = "timeout"
    except socket.gaierror:
        end = "unresolved"
    except OSError as error:
        end = "unreachable" if error.errno in (101, 113) else str(error)
    received = received or args.received
    result.update(end=end, ms=round((time.monotonic() - start) * 1000, 1), received=len(received),
                  sha256=hashlib.sha256(received).hexdigest())
    sys.stdout.buffer.write(received)
    sys.stdout.flush()
    print(json.dumps(result), file=sys.stderr)
    return 0 if end in ("fin", "reply") else 1


if __name__ == "__main__":
    sys.exit(main())
