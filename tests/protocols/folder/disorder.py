"""Logs and documents as they come about, legal or not, and what may befall their files."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st

from acp_core.protocols.folder.schema import records
from tests.protocols.folder.support import (
    OBJECTIVE,
    PEOPLE,
    UPTO,
    age,
    change_protocol,
    make_v1,
    make_v2,
    say,
)

MEMO = "deliverables/decision.md"
BARE = "2026-01-02T09:00:00"


class Happening(NamedTuple):
    """One thing that befalls a collaboration, and how a failing example names it."""

    name: str
    do: Callable[[Path], object]

    def __repr__(self) -> str:
        return self.name


def _add(name: str, text: str) -> Happening:
    def do(folder: Path) -> None:
        with (folder / name).open("a", encoding="utf-8") as stream:
            stream.write(text)

    return Happening(f"{name} += {text!r}", do)


def _lines(name: str, change: Callable[[list[bytes]], list[bytes]]) -> Happening:
    def do(folder: Path) -> None:
        path = folder / "events.jsonl"
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    return Happening(name, do)


def _field(**changes: object) -> Happening:
    """Other fields in the last event."""

    def change(lines: list[bytes]) -> list[bytes]:
        last = json.loads(lines[-1]) | changes
        kept = {key: value for key, value in last.items() if value is not None}
        return [*lines[:-1], json.dumps(kept).encode() + b"\n"]

    return _lines(f"the last event has {changes}", change)


def _remove(name: str) -> Happening:
    return Happening(f"{name} is gone", lambda folder: (folder / name).unlink())


def _protocol(**changes: object) -> Happening:
    return Happening(
        f"protocol.json has {changes}", lambda folder: change_protocol(folder, **changes)
    )


def _write(name: str, text: str) -> Happening:
    return Happening(f"{name} = {text!r}", lambda folder: (folder / name).write_text(text))


def _event(who: str, event: str, doc: str | None = None) -> Happening:
    more = {"doc": doc} if doc else {}
    return Happening(f"{who}: {event}", lambda folder: say(folder, who, event, **more))


DAMAGES = (
    _lines("a line is gone", lambda lines: [*lines[:1], *lines[2:]]),
    _lines("a line stands twice", lambda lines: [*lines, lines[-1]]),
    _lines("a line that is no JSON", lambda lines: [*lines[:1], b"{no\n", *lines[1:]]),
    _lines("a bad line at the end", lambda lines: [*lines, b"[]\n"]),
    _lines("a blank line", lambda lines: [*lines, b"\n"]),
    _lines("the end is torn", lambda lines: [*lines[:-1], lines[-1][:-9]]),
    _lines("the newline is gone", lambda lines: [*lines[:-1], lines[-1][:-1]]),
    _lines("carriage returns", lambda lines: [line[:-1] + b"\r" for line in lines]),
    _lines("an empty log", lambda lines: []),
    _field(at=BARE), _field(at="9999-12-31T23:59:59Z"), _field(at="2020-01-01T00:00:00Z"),
    _field(summary=None), _field(reply_to=99), _field(seq="1"), _field(sha256="0"),
    _add("readiness.md", "- [blocking] No access\n"),
    _add("readiness.md", "- [unresolved] Who pays?\n"),
    _add("readiness.md", "- [deferred_nonblocking] Metrics\n"),
    _add("review.md", "## t - reader - seq 3\n"),
    _add("conclusion.md", "TODO\n"),
    _write("readiness.md", "# Readiness\n"),
    _write("review.md", "# Reviews\n"),
    _write("state.log", "x"),
    _write("protocol.json", "{"),
    _remove("readiness.md"), _remove("proposal.md"), _remove("review.md"), _remove("protocol.json"),
    _remove("events.jsonl"), _remove(MEMO), _write(MEMO, "Status: Frozen\n"),
    _protocol(currentPhase="drafting", waitingFor=["server"]), _protocol(schemaVersion=3),
    _protocol(participants=["server", "reader"]), _protocol(participants=[]),
    _protocol(objective=""), _protocol(proposalOwner="reader"),
)  # fmt: skip
EVENTS = tuple(
    _event(who, event, "conclusion.md" if event == "completed" else None)
    for who in (*PEOPLE, "ghost")
    for event in records.EVENTS_V2
)
HAPPENINGS = st.lists(
    st.one_of(st.sampled_from(DAMAGES), st.sampled_from(EVENTS)), min_size=0, max_size=4
)
BEGINNINGS = st.tuples(st.sampled_from((make_v1, make_v2)), st.sampled_from(UPTO))


def befall(
    place: Path, beginning: tuple[Callable[..., Path], str], happenings: list[Happening]
) -> Path:
    """A collaboration in which all this happened, some time ago, as far as it could."""
    make, upto = beginning
    if currently_in_test_context():
        note(f"{make.__name__} up to {upto}, then {happenings}")
    folder = make(place / "run", upto)
    readme = "\n".join(
        ["# Collaboration", "", "## Objective", "", OBJECTIVE, "", "## Participants", ""]
        + [f"- `{name}`{' (owns the proposal)' if name == PEOPLE[0] else ''}" for name in PEOPLE]
        + ["", "## Completion Gates", "", "- The message contract is agreed", ""]
    )
    (folder / "README.md").write_text(readme)
    for each in happenings:
        with contextlib.suppress(OSError, ValueError, IndexError, KeyError, TypeError):
            each.do(folder)
    age(folder)
    os.utime(folder)
    return folder
