"""Collaborations to measure with: valid ones, of any length and any number."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.bench.programs import ACP, run

OWNER, READER = "owner", "reader"
AGE = timedelta(hours=2)


def begin(folder: Path, *participants: str) -> Path:
    """A collaboration as `acp init` makes it."""
    words = ["init", "--folder", str(folder), "--objective", "Measure", "--completion", "Measured"]
    for name in participants or (OWNER, READER):
        words += ["--participant", name]
    run([*ACP, *words])
    return folder


def of_length(folder: Path, events: int) -> Path:
    """A collaboration of so many events: review rounds without end, each review written down.

    All of it happened two hours ago: ages that are counted in seconds would be drawn anew every
    second, which is not what a program at rest is like.
    """
    begin(folder)
    log = folder / "events.jsonl"
    at = (datetime.now(UTC) - AGE).strftime("%Y-%m-%dT%H:%M:%SZ")
    event = json.loads(log.read_bytes())
    first = log.read_bytes().replace(event["at"].encode(), at.encode())
    lines = [line(seq, at, f"Entry {seq} of a long collaboration") for seq in range(2, events + 1)]
    log.write_bytes(first + b"".join(lines))
    reviews = "\n".join(
        f"## {at} - {READER} - seq {seq}\n\nPosition:\n- Fine.\n" for seq in range(3, events + 1, 2)
    )
    (folder / "review.md").write_text(f"# Review\n\n{reviews}")
    return state(folder, events)


def of_decisions(folder: Path, events: int, length: int) -> Path:
    """A collaboration of so many events in which decisions are classified and accepted without end.

    Args:
        folder: where.
        events: how many, 4 at least.
        length: of each event's line in bytes.
    """
    of_length(folder, 3)
    log = folder / "events.jsonl"
    at = json.loads(log.read_bytes().splitlines()[-1])["at"]
    with log.open("ab") as file:
        for seq in range(4, events + 1):
            sender, event, doc = (
                (OWNER, "proposal_revised", "proposal.md") if seq == 4
                else (OWNER, "question_classified", "decisions.md") if seq % 2
                else (READER, "decision_accepted", "decisions.md")
            )  # fmt: skip
            fields = {
                "seq": seq, "from": sender, "event": event, "at": at,
                "summary": "-", "doc": doc, "reply_to": seq - 1,
            }  # fmt: skip
            written = json.dumps(fields, separators=(",", ":"))
            summary = f"Entry {seq} ".ljust(length - len(written), "x")
            file.write(written.replace('"-"', f'"{summary}"', 1).encode() + b"\n")
    protocol = json.loads((folder / "protocol.json").read_bytes())
    protocol |= {"currentPhase": "decision_review", "waitingFor": [OWNER, READER]}
    (folder / "protocol.json").write_text(json.dumps(protocol, indent=2, sort_keys=True) + "\n")
    return folder


def line(seq: int, at: str, summary: str) -> bytes:
    """An event of such rounds: the owner's proposals bear even numbers, the reviews odd ones."""
    proposes = seq % 2 == 0
    event = {
        "seq": seq,
        "from": OWNER if proposes else READER,
        "event": "proposal_submitted" if proposes else "review_submitted",
        "at": at,
        "summary": summary,
        "doc": "proposal.md" if proposes else "review.md",
        "reply_to": seq - 1,
    }
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def state(folder: Path, events: int) -> Path:
    """Write into protocol.json what follows from so many events."""
    path = folder / "protocol.json"
    protocol: dict[str, Any] = json.loads(path.read_bytes())
    if events > 1:
        even = events % 2 == 0
        protocol["currentPhase"] = "reviewing" if even else "revising"
        protocol["waitingFor"] = [READER if even else OWNER]
    path.write_text(json.dumps(protocol, indent=2, sort_keys=True) + "\n")
    return folder


def fleet(base: Path, collaborations: int, events: int = 10) -> Path:
    """So many collaborations of a few events each, below one folder."""
    pattern = of_length(base / "c0000", events)
    for number in range(1, collaborations):
        shutil.copytree(pattern, base / f"c{number:04}")
    return base


class Writer:
    """Appends events to a collaboration whose length is known, as another program would."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "events.jsonl"
        lines = self.path.read_bytes().splitlines()
        last = json.loads(lines[-1])
        self.seq, self._at = int(last["seq"]), str(last["at"])

    def append(self) -> str:
        """Append one event; returns the word in its summary that nothing else on a screen says."""
        self.seq += 1
        word = f"tok{self.seq}x"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, line(self.seq, self._at, word))
        finally:
            os.close(descriptor)
        return word


def numbers(text: str) -> Iterator[int]:
    """The numbers of the events of a `Writer` that a screen shows."""
    for piece in text.split("tok")[1:]:
        number, end, _ = piece.partition("x")
        if end and number.isdecimal():
            yield int(number)
