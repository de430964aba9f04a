#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Origin servers of the lab that nginx, nsd and sshd are too polite for: origin.py LOG BEHAVIOUR:ADDRESS:PORTS...

TCP behaviours:
  echo      sends back what arrives; on end of input closes
  first     speaks first ("220 lab ready"), then echoes
  digest    reads to the end of input, then sends "BYTES SHA256" and closes (so it needs a half-close to answer)
  farewell  sends "farewell", shuts its sending side, and reads on to the end
  reset     resets the connection at the first byte
  blob      reads a line with a number and sends that many bytes
  cut       likewise, but then resets the connection
  http      HTTP/1.1: answers each request with a JSON line of method, path, host, body size and hash
  websocket HTTP Upgrade, then echoes messages
  answered  like digest, but says "!" as soon as something came, as a TLS server answers a hello before it hears more
  trap      like digest, but answers at once; for addresses that nobody may reach
UDP behaviours: udp-echo, udp-trap.

LOG gets a JSON line for each connection at its beginning and at its end, and for each datagram: address dialled, peer,
the first bytes, the TLS server name in them, count and SHA-256 of all received bytes, and how it ended (fin, rst, error).
"""
import base64
import hashlib
import http.server
import json
import socket
import struct
import sys
import threading
import time

FIRST_BYTES_KEPT = 512
log_lock = threading.Lock()
log_file = None
next_id = 0


def log(**row):
    row = {"t": round(time.time(), 6), **row}
    with log_lock:
        log_file.write(json.dumps(row) + "\n")
        log_file.flush()


def server_name(hello):
    """The SNI of a ClientHello at the beginning of these bytes, or None. One record, whole: enough for a witness."""
    try:
        if hello[0] != 22 or hello[5] != 1:
            return None
        at = 9 + 2 + 32
        at += 1 + hello[at]
        at += 2 + struct.unpack_from(">H", hello, at)[0]
        at += 1 + hello[at]
        end = at + 2 + struct.unpack_from(">H", hello, at)[0]
        at += 2
        while at + 4 <= end:
            kind, size = struct.unpack_from(">HH", hello, at)
            if kind == 0:
                length = struct.unpack_from(">H", hello, at + 7)[0]
                return hello[at + 9 : at + 9 + length].decode("latin-1")
            at += 4 + size
    except (IndexError, struct.error):
        pass
    return None


class Connection:
    """A connection that remembers what it received; behaviours read through it."""

    def __init__(self, sock, peer, behaviour):
        global next_id
        with log_lock:
            next_id += 1
            self.id = next_id
        self.sock, self.behaviour = sock, behaviour
        local = sock.getsockname()
        self.about = {"id": self.id, "behaviour": behaviour, "local": local[0], "port": local[1], "peer": peer[0]}
        self.first, self.count, self.sent, self.hash = b"", 0, 0, hashlib.sha256()
        log(event="open", **self.about)

    def read(self, size=65536):
        data = self.sock.recv(size)
        if len(self.first) < FIRST_BYTES_KEPT:
            self.first += data[: FIRST_BYTES_KEPT - len(self.first)]
        self.count += len(data)
        self.hash.update(data)
        return data

    def write(self, data):
        self.sock.sendall(data)
        self.sent += len(data)

    def readline(self):
        line = b""
        while not line.endswith(b"\n"):
            byte = self.read(1)
            if not byte:
                break
            line += byte
        return line

    def run(self):
        end = "fin"
        try:
            BEHAVIOURS[self.behaviour](self)
        except ConnectionResetError:
            end = "rst"
        except BrokenPipeError:
            end = "rst"
        except OSError as error:
            end = f"error {error.errno}"
        except Exception as error:  # a behaviour that stumbles over odd bytes must not take the others along
            end = f"error {error}"
        try:
            self.sock.close()
        except OSError:
            pass
        log(event="close", **self.about, first=self.first.hex(), sni=server_name(self.first), bytes_in=self.count,
            bytes_out=self.sent, sha256=self.hash.hexdigest(), end=end)


def echo(c):
    while data := c.read():
        c.write(data)


def first(c):
    c.write(b"220 lab ready\r\n")
    echo(c)


def digest(c):
    while c.read():
        pass
    c.write(f"{c.count} {c.hash.hexdigest()}\n".encode())


def answered(c):
    if c.read():
        c.write(b"!")
        digest(c)


def farewell(c):
    c.write(b"farewell\n")
    c.sock.shutdown(socket.SHUT_WR)
    while c.read():
        pass


def reset(c):
    c.read(1)
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def blob(c):
    left = int(c.readline())
    chunk = bytes(range(256)) * 256
    while left > 0:
        c.write(chunk[:left])
        left -= len(chunk)


def cut(c):
    blob(c)
    time.sleep(0.2)  # a reset overtakes what is still on its way, and this is about one that comes behind it
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def trap(c):
    c.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\ntrap\n")
    c.read()


class Stream:
    """What http.server wants of a socket's file objects, over a Connection."""

    closed = False

    def __init__(self, c):
        self.c, self.buffer = c, b""

    def readline(self, limit=-1):
        while b"\n" not in self.buffer and (limit < 0 or len(self.buffer) < limit):
            data = self.c.read()
            if not data:
                break
            self.buffer += data
        at = self.buffer.find(b"\n") + 1 or len(self.buffer)
        if limit >= 0:
            at = min(at, limit)
        line, self.buffer = self.buffer[:at], self.buffer[at:]
        return line

    def read(self, size):
        while len(self.buffer) < size:
            data = self.c.read()
            if not data:
                break
            self.buffer += data
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def write(self, data):
        self.c.write(bytes(data))
        return len(data)

    def flush(self):
        pass

    def close(self):
        pass


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        self.connection = self.request.sock
        self.rfile = self.wfile = Stream(self.request)

    def finish(self):
        pass

    def log_message(self, *args):
        pass

    def parts(self):
        """The body, in parts: it may be larger than what is left of memory."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            yield from self.exactly(int(self.headers.get("Content-Length", 0)))
            return
        while (size := int(self.rfile.readline().split(b";")[0], 16)) > 0:
            yield from self.exactly(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def exactly(self, size):
        while size > 0 and (part := self.rfile.read(min(size, 65536))):
            size -= len(part)
            yield part

    def answer(self):
        size, digest = 0, hashlib.sha256()
        for part in self.parts():
            size += len(part)
            digest.update(part)
        row = {"method": self.command, "path": self.path, "host": self.headers.get("Host"), "body": size,
               "sha256": digest.hexdigest()}
        log(event="request", id=self.request.id, **row)
        text = (json.dumps(row) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = do_OPTIONS = do_PATCH = answer


def http_server(c):
    Request(c, c.about["peer"], None)


def websocket(c):
    head = {}
    c.readline()
    while line := c.readline().strip():
        key, _, value = line.partition(b":")
        head[key.strip().lower()] = value.strip()
    accept = base64.b64encode(hashlib.sha1(head[b"sec-websocket-key"] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    c.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
            + accept + b"\r\n\r\n")
    stream = Stream(c)
    while len(frame := stream.read(2)) == 2:
        opcode, size = frame[0] & 15, frame[1] & 127
        if size == 126:
            size = struct.unpack(">H", stream.read(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", stream.read(8))[0]
        mask = stream.read(4)
        data = bytes(byte ^ mask[i % 4] for i, byte in enumerate(stream.read(size)))
        log(event="message", id=c.id, opcode=opcode, size=size, sha256=hashlib.sha256(data).hexdigest())
        reply = bytes([0x80 | opcode])
        reply += bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size) if size < 65536 else b"\x7f" + struct.pack(">Q", size)
        c.write(reply + data)
        if opcode == 8:
            break


BEHAVIOURS = {"echo": echo, "first": first, "digest": digest, "answered": answered, "farewell": farewell, "reset": reset, "blob": blob, "cut": cut,
              "http": http_server, "websocket": websocket, "trap": trap}


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def serve_tcp(behaviour, address, port):
    listener = socket.socket(family(address), socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family(address) == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind((address, port))
    listener.listen(512)

    def accept():
        while True:
            sock, peer = listener.accept()
            threading.Thread(target=Connection(sock, peer, behaviour).run, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def serve_udp(behaviour, address, port):
    sock = socket.socket(family(address), socket.SOCK_DGRAM)
    sock.bind((address, port))

    def answer():
        while True:
            data, peer = sock.recvfrom(65536)
            log(event="datagram", behaviour=behaviour, local=address, port=port, peer=peer[0], size=len(data),
                data=data[:FIRST_BYTES_KEPT].hex())
            sock.sendto(data, peer)

    threading.Thread(target=answer, daemon=True).start()


def main():
    global log_file
    log_file = open(sys.argv[1], "a", encoding="ascii")
    for word in sys.argv[2:]:
        behaviour, _, rest = word.partition(":")
        address, _, ports = rest.rpartition(":")
        for port in ports.split(","):
            serve = serve_udp if behaviour.startswith("udp-") else serve_tcp
            serve(behaviour, address.strip("[]"), int(port))
    log(event="ready")
    threading.Event().wait()


if __name__ == "__main__":
    main()
