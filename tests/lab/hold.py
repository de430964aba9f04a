#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections that a guest keeps open and uses: hold.py LOG WHAT... until SIGTERM.

WHAT is tcp:HOST:PORT or udp:HOST:PORT (an echo), tls:HOST:PORT or http:HOST:PORT (a web server, kept alive), each with "/4"
or "/6" behind it for the family. Every --every seconds (0.1) each makes a round: something there, the answer back. LOG gets
JSON lines {"t": ..., "what": ..., "event": ...}: "open" after the first round, "end" with "end" (fin, rst, refused, timeout,
unresolved, unreachable), "rounds" and the time of the last round, "last"; and at SIGTERM "alive", likewise.
"""
import argparse
import json
import signal
import socket
import ssl
import sys
import threading
import time

STEP_SECONDS = 10
UDP_SECONDS, UDP_TRIES = 0.25, 40
stop = threading.Event()
lock = threading.Lock()


class Tls:
    """TLS over a socket that this program reads itself. Python's own wrapper, before 3.12.4, takes a reset for an end of
    file, so that a client of it cannot tell how its connection ended."""

    def __init__(self, sock, name):
        self.sock, self.arrived, self.leaving = sock, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = ssl.create_default_context().wrap_bio(self.arrived, self.leaving, server_hostname=name)
        self.until(self.tls.do_handshake)

    def until(self, step, *arguments):
        """What a step of TLS returns, once all that it has to read has arrived; what it has to write is sent."""
        while True:
            try:
                return step(*arguments)
            except ssl.SSLWantReadError:
                pass
            finally:
                if self.leaving.pending:
                    self.sock.sendall(self.leaving.read())
            data = self.sock.recv(65536)
            if not data:
                raise EOFError
            self.arrived.write(data)

    def sendall(self, data):
        self.until(self.tls.write, data)

    def recv(self, size):
        return self.until(self.tls.read, size)


class Held:
    def __init__(self, what):
        word, _, family = what.partition("/")
        self.what = what
        self.kind, host, port = word.split(":", 2)
        self.host = host
        wanted = {"": socket.AF_UNSPEC, "4": socket.AF_INET, "6": socket.AF_INET6}[family]
        kind = socket.SOCK_DGRAM if self.kind == "udp" else socket.SOCK_STREAM
        found, _, _, _, address = socket.getaddrinfo(host, int(port), wanted, kind)[0]
        self.sock = socket.socket(found, kind)
        self.sock.settimeout(UDP_SECONDS if self.kind == "udp" else STEP_SECONDS)
        self.sock.connect(address)
        if self.kind == "tls":
            self.sock = Tls(self.sock, host)
        self.rounds, self.last, self.pending = 0, 0.0, b""

    def receive(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError
        return data

    def ask(self, said):
        self.sock.sendall(said)
        return self.receive()

    def ask_again(self, said):
        """As a resolver or a QUIC stack does: a datagram may be lost."""
        for _ in range(UDP_TRIES):
            try:
                heard = self.ask(said)
                while heard != said:  # a late answer to an earlier one
                    heard = self.receive()
                return heard
            except TimeoutError:
                pass
        raise TimeoutError

    def round(self):
        if self.kind in ("tcp", "udp"):
            said = f"{self.what} {self.rounds}\n".encode()
            heard = self.ask_again(said) if self.kind == "udp" else self.ask(said)
            while len(heard) < len(said):
                heard += self.receive()
            if heard != said:
                raise ValueError(f"said {said!r}, heard {heard!r}")
        else:
            self.sock.sendall(f"GET / HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
            heard = b""
            while not heard.endswith(f"lab web server for {self.host}\n".encode()):
                heard += self.receive()
            if not heard.startswith(b"HTTP/1.1 200"):
                raise ValueError(f"heard {heard!r}")
        self.rounds += 1
        self.last = time.time()


def run(what, every, write):
    held, end = None, None
    try:
        held = Held(what)
        held.round()
        write(what, "open")
        while not stop.wait(every):
            held.round()
    except EOFError:
        end = "fin"
    except ConnectionRefusedError:
        end = "refused"
    except (ConnectionResetError, BrokenPipeError):
        end = "rst"
    except TimeoutError:
        end = "timeout"
    except socket.gaierror:
        end = "unresolved"
    except (OSError, ValueError) as error:
        end = f"unreachable ({error})"
    if end is None:
        write(what, "alive", rounds=held.rounds, last=held.last)
    else:
        write(what, "end", end=end, rounds=held.rounds if held else 0, last=held.last if held else 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=float, default=0.1)
    parser.add_argument("log")
    parser.add_argument("what", nargs="+")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with open(args.log, "a", encoding="utf-8") as log:
        def write(what, event, **more):
            with lock:
                log.write(json.dumps({"t": round(time.time(), 6), "what": what, "event": event, **more}) + "\n")
                log.flush()

        threads = [threading.Thread(target=run, args=(what, args.every, write)) for what in args.what]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
