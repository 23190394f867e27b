"""Folder collaborations made by hand, file by file, as other tools leave them.

`make_v1` and `make_v2` tell one story each, up to a given point; `say` appends an event and
brings protocol.json up to date as any tool would. File times are those of the events, so
that a folder looks as if it had lain there for long: nothing is "being written".
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.golden.builders.folder import GATES as GATES
from tests.golden.builders.folder import OBJECTIVE as OBJECTIVE
from tests.golden.builders.folder import PEOPLE, Story

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STEP = timedelta(minutes=10)
UPTO = (
    "drafting",
    "reviewing",
    "revising",
    "decision_review",
    "classified",
    "readiness_check",
    "passed",
    "completed",
)
CLASSIFIED = "[resolved] Who starts?"


def make_v1(folder: Path, upto: str = "reviewing", **more: Any) -> Path:
    """A valid v1 collaboration in ``folder`` up to a point of `UPTO`; returns the folder.

    The first of the ``participants`` owns the proposal. With ``rounds`` above 1 the proposal went
    to the reviewers that many times before the story goes on. ``blocked`` is the summary of a last
    ``blocked`` event by the last participant. ``objective`` and ``gates`` are those of the story.
    """
    return _make(folder, upto, **more)


def make_v2(folder: Path, upto: str = "reviewing", **more: Any) -> Path:
    """The same story in the dialect with deliverables: a decision memo.

    With ``repo_root`` (such as ``..``) the deliverable lies outside the folder, in
    ``deliverables/`` of that folder's parent.
    """
    return _make(folder, upto, v2=True, **more)


class _Story(Story):
    """Lines as acp writes them, from another day on."""

    start, step = START, STEP

    def line(self, entry: dict[str, Any]) -> str:
        return line_of(entry).decode()


def _make(
    folder: Path,
    upto: str,
    *,
    participants: tuple[str, ...] = PEOPLE,
    rounds: int = 1,
    blocked: str = "",
    **more: Any,
) -> Path:
    story = _Story(folder, [{"id": name} for name in participants], **more)
    reached = UPTO.index(upto)
    if story.v2:
        story.memo("Draft")
    if reached and story.v2:
        story.draft()
    for number in range(rounds if reached else 0):
        story.submit()
        for name in story.others if number < rounds - 1 or reached > 1 else ():
            story.review(name)
    steps = (
        story.revise,
        lambda: story.classify(CLASSIFIED),
        lambda: story.accept(*story.names),
        lambda: story.freeze() if story.v2 else None,
        lambda: story.ready(CLASSIFIED),
        story.complete,
    )
    for point, step in zip((3, 4, 5, 6, 6, 7), steps, strict=True):
        if reached >= point:
            step()
    if blocked:
        story.block(participants[-1], blocked)
    return folder


def say(
    folder: Path,
    sender: str,
    event: str,
    summary: str = "Said so.",
    *,
    at: datetime | str | None = None,
    seq: int | None = None,
    **fields: Any,
) -> int:
    """Append an event as it is, legal or not, and update protocol.json; returns its seq."""
    from acp_core.protocols.folder import state
    from acp_core.protocols.folder.schema import records

    lines = [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]
    seq = seq or (lines[-1]["seq"] + 1 if lines else 1)
    if at is None:
        last = datetime.fromisoformat(lines[-1]["at"]) if lines else START
        at = max(last, datetime.now(UTC))
    moment = at if isinstance(at, str) else at.strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = {"seq": seq, "from": sender, "event": event, "at": moment, "summary": summary}
    if seq > 1:
        entry["reply_to"] = seq - 1
    with (folder / "events.jsonl").open("ab") as log:
        log.write(line_of(entry | fields))
    protocol = read_protocol(folder)
    machine, _ = state.derive(
        (
            item
            for item in records.parse_lines((folder / "events.jsonl").read_bytes())
            if isinstance(item, records.Entry)
        ),
        records.participant_ids(protocol),
        records.dialect_of(protocol),
    )
    protocol |= {
        "currentPhase": machine.phase,
        "proposalOwner": machine.owner,
        "waitingFor": machine.waiting,
        "updatedAt": moment,
    }
    write_protocol(folder, protocol)
    return seq


def extend(folder: Path, data: str | bytes, name: str = "events.jsonl") -> None:
    """Append to the log, or to a document, as it is."""
    with (folder / name).open("ab") as file:
        file.write(data.encode() if isinstance(data, str) else data)


def line_of(entry: dict[str, Any]) -> bytes:
    """An event as the log holds it, with its newline."""
    order = ("seq", "from", "event", "at", "summary", "doc", "reply_to", "role", "sha256", "key")
    ordered = {name: entry[name] for name in order if name in entry} | entry
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_protocol(folder: Path) -> dict[str, Any]:
    """protocol.json as it stands."""
    protocol: dict[str, Any] = json.loads((folder / "protocol.json").read_text(encoding="utf-8"))
    return protocol


def write_protocol(folder: Path, protocol: dict[str, Any]) -> None:
    """Replace protocol.json."""
    text = json.dumps(protocol, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    (folder / "protocol.json").write_text(text, encoding="utf-8")


def change_protocol(folder: Path, **changes: Any) -> None:
    """Change some keys of protocol.json; None removes one."""
    protocol = read_protocol(folder) | changes
    write_protocol(folder, {key: value for key, value in protocol.items() if value is not None})
    age(folder)


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Replace the one place in a document where ``old`` stands."""
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
    path.write_text(text.replace(old, new), encoding="utf-8")
    age(folder, name)


def age(folder: Path, *names: str, at: datetime | None = None) -> None:
    """Give files (all of them where none is named) the time of the last event, or ``at``."""
    moment = at or _last_time(folder)
    paths = [folder / name for name in names] if names else [*folder.rglob("*")]
    for path in paths:
        if path.is_file():
            os.utime(path, (moment.timestamp(), moment.timestamp()))


def _last_time(folder: Path) -> datetime:
    """The time of the last event that can be read, however damaged the log is."""
    log = folder / "events.jsonl"
    for line in reversed(log.read_bytes().splitlines() if log.is_file() else []):
        try:
            at = datetime.fromisoformat(json.loads(line)["at"])
            if at < datetime.now(at.tzinfo):  # no file was changed later than now
                return at
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return START
