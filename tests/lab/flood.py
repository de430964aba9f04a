#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that opens as many connections as it can and keeps them: flood.py LOG HOST PORT COUNT, until SIGTERM.

COUNT connections are begun at once; what is refused is begun again after a moment, and so on. Each that opens sends a line
to an echo and wants it back. LOG gets a JSON line twice a second: {"open": answered and still there, "refused": so far}.
"""
import json
import select
import signal
import socket
import sys
import time

AGAIN_SECONDS = 0.05
running = True


def stop(*_):
    global running
    running = False


def begin(family, address, poll, socks):
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    sock.connect_ex(address)
    socks[sock.fileno()] = [sock, "connecting"]
    poll.register(sock, select.EPOLLOUT)


def step(entry, poll):
    """False: it is over."""
    sock, state = entry
    try:
        if state == "connecting":
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return False
            sock.send(b"hello\n")
            entry[1] = "asking"
            poll.modify(sock, select.EPOLLIN)
        else:
            if not sock.recv(64):
                return False
            entry[1] = "open"
    except BlockingIOError:
        pass
    except OSError:
        return False
    return True


def main():
    path, host, port, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    signal.signal(signal.SIGTERM, stop)
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    poll, socks, refused, told = select.epoll(), {}, 0, 0.0
    with open(path, "a", encoding="ascii", buffering=1) as log:
        while running:
            while len(socks) < count:
                begin(family, address, poll, socks)
            before = refused
            for fd, _ in poll.poll(0.1):
                if not step(socks[fd], poll):
                    poll.unregister(fd)
                    socks.pop(fd)[0].close()
                    refused += 1
            if refused > before:
                time.sleep(AGAIN_SECONDS)
            if time.monotonic() - told > 0.5:
                told = time.monotonic()
                log.write(json.dumps({"open": sum(s[1] == "open" for s in socks.values()), "refused": refused}) + "\n")


if __name__ == "__main__":
    main()
