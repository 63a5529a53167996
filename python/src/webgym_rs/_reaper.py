"""Releases the leases of a process that was killed, or ended without its finalisers.

A small process of its own, one for each process that leases from a farm it did not start: it is told of every lease, waits
for the end of its owner, and releases what is left. Run as a script it imports only the standard library until then.
"""

from __future__ import annotations

import json
import os
import select
import sys
from typing import Any

POLL_SECONDS = 1.0
"""How often the owner is looked for, where the system cannot report its end."""


def watch(owner: int, orders: int) -> list[dict[str, str]]:
    """Reads orders until the owner ends, or says so. Returns its leases."""
    leases: dict[str, dict[str, str]] = {}
    handle, rest = _handle_of(owner), b""
    while True:
        waited = [orders] if handle is None else [orders, handle]
        readable, _, _ = select.select(waited, [], [], POLL_SECONDS if handle is None else None)
        read = os.read(orders, 65536) if orders in readable else None
        if read:
            *lines, rest = (rest + read).split(b"\n")
            if not _apply(lines, leases):
                return []
        # What the owner has written is read before its end counts.
        elif read == b"" or os.getppid() != owner or handle in readable:
            return list(leases.values())


def _handle_of(process: int) -> int | None:
    """Returns a descriptor that becomes readable when the process ends; None where there are none."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):
        return None


def _apply(lines: list[bytes], leases: dict[str, dict[str, str]]) -> bool:
    """Notes leases that begin and end. Returns false if the owner has released everything."""
    for line in lines:
        order: dict[str, Any] = json.loads(line)
        if order["order"] == "end":
            return False
        if order["order"] == "add":
            leases[order["instance_id"]] = order
        else:
            leases.pop(order["instance_id"], None)
    return True


def main() -> None:
    # Away from the owner's terminal and its Ctrl-C.
    os.setsid()
    path: list[str] = json.loads(sys.argv[2])
    leases = watch(int(sys.argv[1]), sys.stdin.fileno())
    if leases:
        # Only now, because a client takes more memory and time than the wait.
        sys.path[:] = path
        from webgym_rs._keeper import release_all

        release_all(leases)


if __name__ == "__main__":
    main()
