#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that does not give up: attempts.py LOG TARGET... dials every target again and again until SIGTERM.

TARGET is HOST:PORT, the host a name or an address ("[2600::1]:7"). Each attempt is a new TCP connection that sends
"SPORT COUNT" and a newline, its own source port first, and wants it back. One JSON line for each: {"t": ..., "target": ...,
"sport": ..., "end": "echo|open|refused|rst|timeout|unresolved|unreachable"}; "open" means that the handshake was
completed, but nothing came back.

options: --timeout SECONDS (1) of each step, --pause SECONDS (0.02) between rounds, --workers N (1) of each target
"""
import argparse
import json
import signal
import socket
import sys
import threading
import time

stop = threading.Event()
lock = threading.Lock()


def attempt(host, port, timeout, count):
    sport, connected = 0, False
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.settimeout(timeout)
            sock.connect(address)
            connected, sport = True, sock.getsockname()[1]
            line = f"{sport} {count}\n".encode()
            sock.sendall(line)
            received = b""
            while len(received) < len(line):
                data = sock.recv(4096)
                if not data:
                    return sport, "open"
                received += data
            return sport, "echo" if received == line else "open"
    except ConnectionRefusedError:
        return sport, "refused"
    except (ConnectionResetError, BrokenPipeError):
        return sport, "rst"
    except TimeoutError:
        return sport, "open" if connected else "timeout"
    except socket.gaierror:
        return sport, "unresolved"
    except OSError:
        return sport, "unreachable"


def work(target, args, log):
    host, _, port = target.rpartition(":")
    count = 0
    while not stop.is_set():
        count += 1
        start = time.time()
        sport, end = attempt(host.strip("[]"), int(port), args.timeout, count)
        with lock:
            log.write(json.dumps({"t": round(start, 6), "target": target, "sport": sport, "end": end}) + "\n")
            log.flush()
        stop.wait(args.pause)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--timeout", type=float, default=1)
    parser.add_argument("--pause", type=float, default=0.02)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("log")
    parser.add_argument("target", nargs="+")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with open(args.log, "a", encoding="ascii") as log:
        threads = [threading.Thread(target=work, args=(target, args, log))
                   for target in args.target for _ in range(args.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
