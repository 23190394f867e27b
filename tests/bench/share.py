"""Shared collaborations over git and PostgreSQL, beside bare pushes and plain statements of the same run.

The server is a real one of this machine, with a cluster of its own on a socket, and syncs what it commits.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence

from acp_core.stores.address import parse
from acp_core.stores.engine import Change, Tip
from acp_core.stores.postgres import link
from acp_core.stores.postgres.engine import PostgresEngine
from acp_core.stores.postgres.hosts import Overview
from tests.bench import share_folders
from tests.bench.bench import Bench
from tests.bench.figures import Aim, Figure, percentile
from tests.bench.programs import Failed
from tests.bench.share_load import line
from tests.support.postgres import NoServer, Server, running

SECTION = "share"
BESIDE = "the same rows by plain statements"
NOTIFY = "a bare NOTIFY in the same run"
PROCESSES, THREADS = 4, 8
TOGETHER = Aim("500 acknowledged appends a second", 2.0)
NEWS = Aim("150 ms on another host's screen", 150.0)
OPENED = Aim("10,000 collaborations in 1.5 s", 1_500.0)
SECONDS, SHORT = 3.0, 0.5
LISTED = 10_000


def measure(bench: Bench) -> Iterator[Figure]:
    """Every figure as often as the bench has runs; the list once for each run, too."""
    quick = bench.changes < 10
    yield from share_folders.measure_git(bench)
    try:
        with running() as server:
            url = server.database()
            connection = link.connect(url)
            link.prepare(connection)
            yield from _appends(bench, url, SHORT if quick else SECONDS)
            yield from _long_log(url, 200 if quick else 5_000)
            yield from _news(bench, url, 20 if quick else 300)
            yield from _list(bench, server, 200 if quick else LISTED)
            many = server.database()
            prepared = link.connect(many)
            link.prepare(prepared)
            prepared.close()
            yield from share_folders.followed(bench, "postgresql", many)
            connection.close()
    except NoServer as reason:
        bench.say(f"{SECTION}: left out: {reason}")


def _appends(bench: Bench, url: str, seconds: float) -> Iterator[Figure]:
    for name, processes, threads in (
        ("1 connection", 1, 1),
        ("32 connections", PROCESSES, THREADS),
    ):
        bench.say(f"appending over {name}")
        medians: dict[str, list[float]] = {"acp": [], "bare": []}
        each: dict[str, list[float]] = {"acp": [], "bare": []}
        slow: dict[str, list[float]] = {"acp": [], "bare": []}
        for number in range(bench.runs):
            for kind in medians:
                taken = _load(url, f"{kind}{processes}x{number}", processes, threads, seconds, kind)
                medians[kind].append(statistics.median(taken))
                slow[kind].append(percentile(taken, 0.99))
                each[kind].append(seconds * 1e3 / len(taken))
        ours, other = (statistics.median(medians[kind]) for kind in ("acp", "bare"))
        yield Figure(SECTION, f"append, {name}, p50", "ms", ours, BESIDE, other)
        ours, other = (statistics.median(slow[kind]) for kind in ("acp", "bare"))
        yield Figure(SECTION, f"append, {name}, p99", "ms", ours, BESIDE, other)
        ours, other = (statistics.median(each[kind]) for kind in ("acp", "bare"))
        if processes == 1:
            yield Figure(
                SECTION, "append, added to the transaction", "ms", ours - other, BESIDE, other
            )
        else:
            yield Figure(
                SECTION,
                f"{name}: time for each of all appends",
                "ms",
                ours,
                BESIDE,
                other,
                TOGETHER,
            )
            yield Figure(SECTION, f"{name}: appends", "events/s", 1e3 / ours, BESIDE, 1e3 / other)


def _load(
    url: str, name: str, processes: int, threads: int, seconds: float, kind: str
) -> list[float]:
    """The milliseconds of all appends that processes make at the same time."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.bench.share_load", url, f"{name}p{number}", str(threads),
             str(seconds), kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ),
        )
        for number in range(processes)
    ]  # fmt: skip
    try:
        for each in started:
            assert each.stdout is not None
            if each.stdout.readline() != "ready\n":
                raise Failed("a client of the database did not start")
        for each in started:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        return [value for each in started for value in json.loads(each.communicate(timeout=120)[0])]
    finally:
        for each in started:
            each.kill()
            each.wait()


def _long_log(url: str, events: int) -> Iterator[Figure]:
    """Appending to a long log, beside a short one."""
    took: dict[int, list[float]] = {10: [], events: []}
    for length, values in took.items():
        log = b"".join(line(seq) for seq in range(1, length + 1))
        with PostgresEngine(parse(f"{url}#long-{length}")) as engine:
            tip = engine.publish(None, Change(log, None, length, b"{}"))
            for seq in range(length + 1, length + 101):
                new = line(seq)
                log += new
                began = time.perf_counter()
                tip = engine.publish(tip, Change(log, new, seq, b"{}", sender="w", key=f"k{seq}"))
                values.append((time.perf_counter() - began) * 1e3)
    long, short = (statistics.median(took[length]) for length in (events, 10))
    aim = Aim("twice that of 10 events", 2 * short)
    yield Figure(SECTION, f"append to {events:,} events", "ms", long, "to 10 events", short, aim)


def _news(bench: Bench, url: str, count: int) -> Iterator[Figure]:
    """From just before a change is made until another connection's `wait` ends."""
    bench.say("waiting for news")
    ours = _heard(url, count)
    bare = _notified(url, count)
    for share in (0.5, 0.99):
        aim = NEWS if share == 0.5 else None
        name = f"news of a change on another connection, p{share * 100:.0f}"
        yield Figure(
            SECTION, name, "ms", percentile(ours, share), NOTIFY, percentile(bare, share), aim
        )


def _heard(url: str, count: int) -> Sequence[float]:
    came: list[float] = []
    first = line(1)
    with (
        PostgresEngine(parse(f"{url}#news")) as writer,
        PostgresEngine(parse(f"{url}&application_name=listener#news")) as reader,
    ):
        tip = writer.publish(None, Change(first, first, 1, b"{}"))
        log = first
        reader.read(None)
        for seq in range(2, count + 2):
            log += line(seq)
            waiting = threading.Thread(target=_wait, args=(reader, tip, came))
            waiting.start()
            time.sleep(0.005)
            began = time.perf_counter()
            tip = writer.publish(tip, Change(log, line(seq), seq, b"{}"))
            waiting.join()
            came[-1] = (came[-1] - began) * 1e3
            reader.read(tip)
    return came


def _wait(reader: PostgresEngine, tip: Tip, came: list[float]) -> None:
    reader.wait(tip, 10)
    came.append(time.perf_counter())


def _notified(url: str, count: int) -> Sequence[float]:
    came: list[float] = []
    listener, sender = link.connect(url), link.connect(url)
    listener.execute("listen bench")
    for _ in range(count):
        began = time.perf_counter()
        sender.execute("notify bench")
        for _ in listener.notifies(timeout=10, stop_after=1):
            came.append((time.perf_counter() - began) * 1e3)
    listener.close()
    sender.close()
    return came


def _list(bench: Bench, server: Server, count: int) -> Iterator[Figure]:
    """All collaborations of a store, beside a bare select of their names."""
    bench.say(f"listing {count:,} collaborations")
    url = server.database()
    connection = link.connect(url)
    link.prepare(connection)
    connection.execute(
        f"""with made as (insert into acp.collab (name, revision, mark, seq, lines, size, sha256, protocol, phase, waiting)
        select 'c' || n, 1, decode(lpad(to_hex(n), 32, '0'), 'hex'), 1, 1, 200, sha256('x'), '{{}}', 'reviewing',
        array['reader', 'critic'] from generate_series(1, {count}) n returning id),
        events as (insert into acp.event (collab, line_number, line) select id, 1, repeat('x', 200)::bytea from made)
        insert into acp.host (collab, name, state) select id, 'laptop', '{{"account": "anna", "participants": {{}}}}' from made""".encode()
    )
    connection.execute(b"analyze")
    opened, looks, bare = [], [], []
    for _ in range(bench.runs):
        overview = Overview(url)
        began = time.perf_counter()
        overview.refresh()
        opened.append((time.perf_counter() - began) * 1e3)
        if len(overview.listed) != count:
            raise Failed(f"{len(overview.listed)} collaborations were listed")
        began = time.perf_counter()
        overview.refresh()
        looks.append((time.perf_counter() - began) * 1e3)
        overview.close()
        began = time.perf_counter()
        connection.execute("select name from acp.collab").fetchall()
        bare.append((time.perf_counter() - began) * 1e3)
    connection.close()
    beside = statistics.median(bare)
    name = f"{count:,} collaborations"
    select = "a bare select of their names"
    yield Figure(
        SECTION, f"{name}: first list", "ms", statistics.median(opened), select, beside, OPENED
    )
    yield Figure(
        SECTION, f"{name}: a look, nothing new", "ms", statistics.median(looks), select, beside
    )
