"""Locks of other libraries on the servers of zklock's stores: redis-py's Lock, and PostgreSQL's advisory locks by psycopg.
N processes contend for one lock: called with redis|postgres URL N SECONDS, prints one JSON object."""

import json
import multiprocessing
import sys
import time


def redis_lock(url):
    import redis

    # Waiters poll: as often as is sensible, where the default is ten times a second.
    return redis.Redis.from_url(url).lock("peer", timeout=10, sleep=0.001)


class AdvisoryLock:
    def __init__(self, url):
        import psycopg

        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)

    def acquire(self):
        self.connection.execute("SELECT pg_advisory_lock(1)")

    def release(self):
        self.connection.execute("SELECT pg_advisory_unlock(1)")


def contend(kind, url, seconds, ready, counts):
    lock = {"redis": redis_lock, "postgres": AdvisoryLock}[kind](url)
    ready.wait(60)
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        lock.acquire()
        count += 1
        lock.release()
    counts.put(count)


def main():
    kind, url, n, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    ready, counts = multiprocessing.Barrier(n), multiprocessing.Queue()
    started = [
        multiprocessing.Process(target=contend, args=(kind, url, seconds, ready, counts), daemon=True) for _ in range(n)
    ]
    for each in started:
        each.start()
    counted = [counts.get(timeout=seconds + 60) for _ in started]
    print(json.dumps({"library": kind, "acquisitions_per_second": sum(counted) / seconds, "per_thread": counted}))


if __name__ == "__main__":
    main()
