#!/usr/bin/env python3
"""A lock from Python, by the C interface alone: ctypes needs no compiler.

Run:    LD_LIBRARY_PATH=PREFIX/lib python3 lock.py 127.0.0.1:2181
"""

import ctypes
import sys
from contextlib import contextmanager

FOREVER = -1

zkl = ctypes.CDLL("libzklock.so")
zkl.zkl_last_error.restype = ctypes.c_char_p
zkl.zkl_guard_token.restype = ctypes.c_int64
zkl.zkl_guard_token.argtypes = [ctypes.c_void_p]
for free in (zkl.zkl_client_free, zkl.zkl_lock_free, zkl.zkl_guard_free):
    free.restype = None
    free.argtypes = [ctypes.c_void_p]
zkl.zkl_client_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
zkl.zkl_lock_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
zkl.zkl_lock_acquire.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
zkl.zkl_guard_release.argtypes = [ctypes.c_void_p]


class LockError(Exception):
    """A function failed; says what zklock says."""


def made(function, *arguments):
    """What a function puts into its last argument."""
    output = ctypes.c_void_p()
    checked(function(*arguments, ctypes.byref(output)))
    return output


def checked(code):
    if code != 0:
        raise LockError(zkl.zkl_last_error().decode())


@contextmanager
def held(client, path, timeout_ms=FOREVER):
    """Holds the lock within the block; gives its fencing token."""
    lock = made(zkl.zkl_lock_new, client, path.encode(), None)
    try:
        guard = made(zkl.zkl_lock_acquire, lock, timeout_ms)
    finally:
        zkl.zkl_lock_free(lock)
    try:
        yield zkl.zkl_guard_token(guard)
    except BaseException:
        zkl.zkl_guard_free(guard)
        raise
    checked(zkl.zkl_guard_release(guard))


def main():
    if len(sys.argv) != 2:
        print(f"usage: {sys.argv[0]} HOSTS", file=sys.stderr)
        return 2
    try:
        client = made(zkl.zkl_client_connect, sys.argv[1].encode(), None)
        with held(client, "/locks/python", 30000) as token:
            print(f"held, with the token {token}")
            try:
                with held(client, "/locks/python", 100):
                    return 1
            except LockError as error:
                print(error)
        zkl.zkl_client_free(client)
    except LockError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
