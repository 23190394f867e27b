"""Appends events to a collaboration in a database, as a host does that does not give up.

``python -m tests.stores.appending URL ID NAME COUNT [STEP]``: prints ``SEQ KEY`` for each event that is
in the log. STEP is a wish of `tests.stores.process`: where the process is killed, or stopped.
"""

from __future__ import annotations

import json
import random
import sys
import time

from acp_core.stores.engine import (
    Change,
    Commit,
    InDoubt,
    StoreUnreachable,
    Tip,
    TipMoved,
    fault_point,
)
from acp_core.stores.postgres import link
from acp_core.stores.postgres.engine import PostgresEngine
from tests.stores.databases import engine
from tests.stores.process import At


def append(
    opened: PostgresEngine, read: Commit, log: bytes, name: str, key: str
) -> tuple[Commit, bytes, int]:
    """Append one event, however often it takes; what was read last, the log and the seq."""
    while True:
        for row in log.splitlines():
            found = json.loads(row)
            if found.get("key") == key:
                return read, log, found["seq"]
        seq = read.tip.seq + 1
        event = {"seq": seq, "from": name, "key": key}
        line = json.dumps(event).encode() + b"\n"
        try:
            opened.publish(read.tip, Change(log + line, line, seq, b"{}", sender=name, key=key))
        except TipMoved:
            time.sleep(random.uniform(0, 0.02))
        except (InDoubt, StoreUnreachable):
            time.sleep(0.05)
        read = until_read(opened, read.tip)
        log += read.added


def until_read(opened: PostgresEngine, since: Tip | None) -> Commit:
    """What is new, once the store answers."""
    while True:
        try:
            return opened.read(since)
        except StoreUnreachable:
            time.sleep(0.05)


def main(url: str, id: str, name: str, count: int, step: str = "") -> None:
    """Append so many events."""
    if step:
        link.SETTINGS["idle_in_transaction_session_timeout"] = "1s"
    with engine(url, id) as opened:
        read = until_read(opened, None)
        log = read.added
        if step:
            fault_point.listener = At(step)
        for number in range(count):
            key = f"{name}-{number}"
            read, log, seq = append(opened, read, log, name, key)
            print(seq, key, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), *sys.argv[5:])
