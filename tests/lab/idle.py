#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections that say something, say nothing for a long time, and say something again.

  idle.py SECONDS KIND:FAMILY:HOST:PORT[:LATER]...   KIND is echo, http, https, ws or wss; FAMILY is 4 or 6

All of them are open at the same time; "ready" is printed when each has had its first answer, then SECONDS pass, then a JSON
line for each is printed: {"what": "http:4:...", "sport": ..., "again": true or what went wrong}. LATER, for http: the Host
of the later request, on the same connection. The exit status is 0 when all of them were answered again.
"""
import http.client
import json
import socket
import ssl
import sys
import time

from client import ws_echo, ws_open, read_exactly

ANSWER_SECONDS = 10


class Idler:
    def __init__(self, word):
        self.word = word
        self.kind, family, self.host, port, *later = word.split(":")
        self.later = later[0] if later else self.host
        wanted = socket.AF_INET if family == "4" else socket.AF_INET6
        family, kind, _, _, address = socket.getaddrinfo(self.host, int(port), wanted, socket.SOCK_STREAM)[0]
        self.sock = socket.socket(family, kind)
        self.sock.settimeout(ANSWER_SECONDS)
        self.sock.connect(address)
        self.sport = self.sock.getsockname()[1]
        if self.kind in ("https", "wss"):
            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)
        if self.kind.startswith("ws") and ws_open(self.sock, self.host) is not None:
            raise ConnectionError("no WebSocket")
        if self.kind.startswith("http"):
            self.http = http.client.HTTPConnection(self.host)
            self.http.auto_open = 0  # never a second connection in secret
            self.http.sock = self.sock

    def ask(self, text, name):
        if self.kind.startswith("http"):
            self.http.request("GET", "/", headers={"Host": name})
            answer = self.http.getresponse()
            got = answer.read()
            wanted = f"lab web server for {name}\n".encode()
            return answer.status == 200 and got == wanted or f"{answer.status} {got!r}"
        if self.kind.startswith("ws"):
            got = ws_echo(self.sock, text)
        else:
            self.sock.sendall(text)
            got = read_exactly(self.sock, len(text))
        return got == text or repr(got)

    def again(self):
        try:
            return self.ask(b"still here", self.later)
        except (OSError, http.client.HTTPException) as error:
            return repr(error)


def main():
    idlers = [Idler(word) for word in sys.argv[2:]]
    for idler in idlers:
        first = idler.ask(b"hello", idler.host)
        if first is not True:
            sys.exit(f"{idler.word}: {first}")
    print("ready", flush=True)
    time.sleep(float(sys.argv[1]))
    good = True
    for idler in idlers:
        again = idler.again()
        good = good and again is True
        print(json.dumps({"what": idler.word, "sport": idler.sport, "again": again}), flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
