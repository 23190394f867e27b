"""Opening and stepping through the past of 10,000 events with 1,000 versions of documents."""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.bench import Bench
from tests.bench.collaborations import begin
from tests.bench.figures import Figure

EVENTS, EVERY = 10_000, 10
BEGIN = 1_767_225_600  # seconds since 1970
PEOPLE = ("server", "reader", "reviewer")
DOCUMENTS = ("proposal.md", "review.md", "decisions.md", "readiness.md", "conclusion.md")
TURNS = (("server", "proposal_submitted"), ("reader", "review_submitted"),
         ("reviewer", "review_submitted"))  # fmt: skip


def make_past(folder: Path) -> Path:
    """A collaboration of which every event and version was recorded."""
    from acp_core.history.schema import Observed
    from acp_core.history.store import Store, recording_path

    begin(folder, *PEOPLE)
    first = (folder / "events.jsonl").read_bytes().splitlines()[0]
    store = Store(recording_path(str(folder)))
    store._db.execute("PRAGMA synchronous = OFF")  # it is made here, not measured
    log, digest = b"", hashlib.sha256()
    for seq in range(1, EVENTS + 1):
        at = BEGIN + seq * 60
        line = _line(seq, at) if seq > 1 else first + b"\n"
        before, size = digest.digest(), len(log)
        log += line
        digest.update(line)
        found = [
            Observed("events.jsonl", True, "events.jsonl", at * 10**9, len(log), digest.digest(),
                     line, size, before if size else b"")
        ]  # fmt: skip
        if seq % EVERY == 0:
            name = DOCUMENTS[seq // EVERY % len(DOCUMENTS)]
            text = f"# {name} {seq}\n\n{'words and words here ' * 100}\n".encode()
            whole = hashlib.sha256(text).digest()
            found.insert(0, Observed(name, False, name, (at - 1) * 10**9, len(text), whole, text))
        store.add(found, now=at + 0.01)
    store.close()
    (folder / "events.jsonl").write_bytes(log)
    return folder


def _line(seq: int, at: int) -> bytes:
    who, event = TURNS[(seq - 2) % len(TURNS)]
    told = {
        "seq": seq, "at": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "from": who, "event": event, "summary": f"step {seq} {'x' * 60}", "reply_to": seq - 1,
        "doc": "proposal.md" if event.startswith("p") else "review.md",
    }  # fmt: skip
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"


def measure(bench: Bench) -> Iterator[Figure]:
    """Opening, a jump, and steps (median and worst), beside one reading of it as it is now."""
    bench.say(f"recording {EVENTS:,} events")
    folder = make_past(bench.path("replay") / "long")
    taken: dict[str, list[float]] = {}
    for _ in range(bench.runs):
        for name, milliseconds in _one(folder).items():
            taken.setdefault(name, []).append(milliseconds)
    middle = {name: statistics.median(each) for name, each in taken.items()}
    now = middle.pop("now")
    for name, value in middle.items():
        text = f"{EVENTS:,} events, {EVENTS // EVERY:,} versions, {name}"
        yield Figure("replay", text, "ms", value, "one reading of it as it is now", now)


def _one(folder: Path) -> dict[str, float]:
    from acp_core.history.past import Past
    from acp_core.model.clock import utc_now
    from acp_core.protocols.discovery import identify
    from acp_core.protocols.registry import bundled

    found = identify(folder, bundled())
    assert found is not None
    now = timed(lambda: found.open().refresh(utc_now()))
    opening = time.perf_counter()
    past = Past(found, utc_now())
    opened = (time.perf_counter() - opening) * 1_000
    last = len(past.moments) - 1
    jump = timed(lambda: past.at(last // 2))
    forward = steps(past.at, range(last // 2 + 1, last // 2 + 61))
    timed(lambda: past.at(last))
    back = steps(past.at, range(last - 1, last - 61, -1))
    past.close()
    return {
        "now": now,
        "opened": opened,
        "a jump into the middle": jump,
        "a step forward": statistics.median(forward),
        "a step forward, the slowest": max(forward),
        "a step back": statistics.median(back),
        "a step back, the slowest": max(back),
    }


def steps(at: Callable[[int], object], places: Iterable[int]) -> list[float]:
    """How long each of these steps takes, in milliseconds."""
    return [timed(lambda place=place: at(place)) for place in places]  # type: ignore[misc]


def timed(function: Callable[[], object]) -> float:
    """How long it takes, in milliseconds."""
    begin = time.perf_counter()
    function()
    return (time.perf_counter() - begin) * 1_000
