"""Appends for a while over several connections: ``python -m tests.bench.share_load URL NAME THREADS SECONDS KIND``.

KIND is ``acp`` (our own store) or ``bare`` (the same transaction, as plain statements). Each thread has a
connection and a collaboration of its own. Prints "ready", waits for a line, then prints one JSON object:
the milliseconds of each append.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from acp_core.stores.address import parse
from acp_core.stores.engine import Change
from acp_core.stores.postgres import link
from acp_core.stores.postgres.engine import PostgresEngine


def acp(url: str, name: str) -> Callable[[], None]:
    """Appends to a collaboration through our own code."""
    engine = PostgresEngine(parse(f"{url}&application_name={name}#{name}"))
    first = line(1)
    tip = engine.publish(None, Change(first, first, 1, b"{}"))
    log, seq = first, 1

    def append() -> None:
        nonlocal tip, log, seq
        seq += 1
        new = line(seq)
        log += new
        change = Change(log, new, seq, b"{}", {"notes.md": b"%d" % seq}, {}, "writer", str(seq))
        tip = engine.publish(tip, change)

    return append


def bare(url: str, name: str) -> Callable[[], None]:
    """The same rows, written by plain statements: what any client has to do."""
    connection = link.connect(f"{url}&application_name={name}")
    made = connection.execute(
        "insert into acp.collab (name, revision, mark, seq, lines, size, sha256, protocol, phase, waiting)"
        " values (%s, 1, %b, 1, 1, 1, %b, '', '', '{}') returning id",
        (name, secrets.token_bytes(16), bytes(32)),
    ).fetchone()
    assert made
    collab, seq = made[0], 1

    def append() -> None:
        nonlocal seq
        seq += 1
        data = b"%d" % seq
        digest = hashlib.sha256(data).digest()
        connection.execute(
            f"begin; select id from acp.collab where id = {collab} for update".encode()
        )
        with connection.pipeline():
            mark = secrets.token_bytes(16)
            values: tuple[Any, ...] = (collab, seq, mark, seq, seq, seq, bytes(32), "{}")
            connection.execute(
                "insert into acp.revision (collab, number, mark, seq, lines, size, sha256, about)"
                " values (%s, %s, %b, %s, %s, %s, %b, %s::json)",
                values,
            )
            connection.execute(
                "insert into acp.event (collab, line_number, key, line) values (%s, %s, %b, %b)",
                (collab, seq, mark, line(seq)),
            )
            connection.execute(
                "insert into acp.blob values (%b, %b) on conflict do nothing", (digest, data)
            )
            connection.execute(
                "insert into acp.doc (collab, revision, path, digest) values (%s, %s, 'notes.md', %b)",
                (collab, seq, digest),
            )
            connection.execute(
                "update acp.collab set revision = %s, mark = %b, seq = %s, lines = %s, size = %s where id = %s",
                (seq, mark, seq, seq, seq, collab),
            )
            connection.execute("commit")

    return append


def line(seq: int) -> bytes:
    """An event of a usual size."""
    event = {
        "seq": seq,
        "from": "writer",
        "event": "proposal_revised",
        "summary": "x" * 60,
        "key": str(seq),
    }
    return json.dumps(event).encode() + b"\n"


def main(url: str, name: str, threads: int, seconds: float, kind: str) -> None:
    """Append with so many threads for so long."""
    acts = [(acp if kind == "acp" else bare)(url, f"{name}-{number}") for number in range(threads)]
    print("ready", flush=True)
    sys.stdin.readline()
    taken: list[float] = []
    deadline = time.monotonic() + seconds

    def work(append: Callable[[], None]) -> None:
        while time.monotonic() < deadline:
            began = time.perf_counter()
            append()
            taken.append((time.perf_counter() - began) * 1e3)

    workers = [threading.Thread(target=work, args=(act,)) for act in acts]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    print(json.dumps(taken))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
