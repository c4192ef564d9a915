"""kazoo's Lock (WriteLock, or the only permit of a Semaphore, as BENCH_KIND says), contended for by N clients in
processes of their own, the most of which there are being 32: called with HOSTS PATH N SECONDS, as the C programs beside it."""

import json
import multiprocessing
import os
import sys
import threading
import time

from kazoo.client import KazooClient

MOST_PROCESSES = 32
WARMING, MEASURING, OVER = range(3)


def contend(client, path, alone, shared):
    phase, count, last_release, latencies = shared
    kinds = {"write": client.WriteLock, "permit": client.Semaphore}
    lock = kinds.get(os.environ.get("BENCH_KIND"), client.Lock)(path)
    own = []
    while phase.value != OVER:
        asked = time.monotonic()
        lock.acquire()
        got = time.monotonic()
        since = asked if alone else last_release.value
        if phase.value == MEASURING and since >= asked:
            own.append(round((got - since) * 1e6))
        count.value += 1  # Nobody but the holder writes these two.
        last_release.value = time.monotonic()
        lock.release()
    latencies.put(own)


def process(hosts, path, alone, clients, ready, shared):
    connected = [KazooClient(hosts=hosts, timeout=30.0) for _ in range(clients)]
    for client in connected:
        client.start(timeout=30)
    ready.wait()
    threads = [threading.Thread(target=contend, args=(client, path, alone, shared)) for client in connected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in connected:
        client.stop()


def main():
    hosts, path, n, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    processes = min(n, MOST_PROCESSES)
    phase, count = multiprocessing.RawValue("i", WARMING), multiprocessing.RawValue("q", 0)
    latencies = multiprocessing.Queue()
    shared = phase, count, multiprocessing.RawValue("d", 0.0), latencies
    ready = multiprocessing.Barrier(processes + 1)
    share = [n // processes + (i < n % processes) for i in range(processes)]
    started = [
        multiprocessing.Process(target=process, args=(hosts, path, n == 1, clients, ready, shared), daemon=True)
        for clients in share
    ]
    for each in started:
        each.start()
    ready.wait(60)
    time.sleep(seconds / 4)
    before, start = count.value, time.monotonic()
    phase.value = MEASURING
    print("begin", flush=True)
    time.sleep(seconds)
    phase.value = OVER
    counted, took = count.value - before, time.monotonic() - start
    print("end", flush=True)
    samples = sorted(sample for _ in range(n) for sample in latencies.get(timeout=60))
    result = {"count": counted, "seconds": took}
    if samples:
        result["p50_us"] = samples[len(samples) // 2]
        result["p99_us"] = samples[len(samples) - 1 - len(samples) // 100]
    print(json.dumps(result), flush=True)
    for each in started:
        each.join(30)


if __name__ == "__main__":
    main()
