"""A peer with a lock of kazoo. What it is told, and answers, is in lines.rs."""

import logging
import sys
import threading

from kazoo.client import KazooClient, KazooState
from kazoo.version import __version__

TAG = "kazoo"

# Each of kazoo's locks that can be asked for, and what it takes for claims beside those of kazoo.
LOCKS = {
    "default": (lambda zk: zk.Lock, []),
    "lock": (lambda zk: zk.Lock, ["-lock-"]),
    "persistent": (lambda zk: zk.Lock, ["-lock-"]),
    "read": (lambda zk: zk.ReadLock, ["__WRIT__"]),
    "write": (lambda zk: zk.WriteLock, ["__READ__", "__WRIT__"]),
}


def increment(zk, lock, counter, times):
    taken_over = 0
    for _ in range(times):
        lock.acquire()
        value, writer = zk.get(counter)[0].decode().split(" ")
        taken_over += writer != TAG
        zk.set(counter, f"{int(value) + 1} {TAG}".encode())
        lock.release()
    return taken_over


def main(hosts, path, counter, session_ms, name):
    logging.basicConfig(level=logging.CRITICAL)
    zk = KazooClient(hosts=hosts, timeout=int(session_ms) / 1000)
    lost = threading.Event()
    zk.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)
    zk.start()
    kind, patterns = LOCKS[name]
    lock = kind(zk)(path, extra_lock_patterns=patterns)
    print("ready", __version__, flush=True)
    def answer(command, argument):
        if command == "acquire":
            assert lock.acquire(ephemeral=name != "persistent")
            lost.clear()
            return "acquired"
        if command == "release":
            lock.release()
            return "released"
        if command == "state":
            return "held" if lock.is_acquired and not lost.is_set() else "lost"
        if command == "increment":
            return f"incremented {increment(zk, lock, counter, int(argument))}"
        raise ValueError(f"no such command: {command}")

    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        try:
            said = answer(command, argument)
        except Exception as error:
            said = f"error {error!r}".replace("\n", " ")
        print(said, flush=True)


main(*sys.argv[1:])
