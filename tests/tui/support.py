"""Snapshots for tests of the interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from acp_core import model
from acp_core.model import Event, PhaseState, Severity, Tone
from acp_core.model.matter import decision, remark

KEY = "/work/checkout-redesign"

START = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)
NOW = START + timedelta(minutes=50)

HOSTILE = (
    "[@click=app.quit]click[/] ",
    "[/x] text",
    "[bold]hi[/italic]",
    "[#zzz]x[/]",
    "[$v]a[/]",
    "[@click=nope(]x[/]",
    "a [/x",
    "[b + x",
    "ends with \\",
    "\x1b]52;c;aGFja2Vk\x07 \x1b]2;title\x07 \x1b[31mred \x9b31m",
    "bell \x07 back \x08 return \r tab \t end",
    "\u202eright to left\u2066 \u2028 \x85",
    "[link=https://example.org]x[/link]",
)
"""Texts that do harm where they are taken for markup or reach a terminal."""

HARMFUL = (
    *(HOSTILE[0], " ".join(HOSTILE[1:9]), " ".join(HOSTILE[9:])),
    *(pytest.param(text, marks=pytest.mark.slow) for text in HOSTILE[1:]),
)
"""The same for parameters: a few that hold all of them, and slowly one by one."""

TONES = {
    "initialized": Tone.START,
    "proposal_submitted": Tone.SUBMIT,
    "review_submitted": Tone.REVIEW,
    "proposal_revised": Tone.REVISE,
    "question_classified": Tone.DECIDE,
    "decision_accepted": Tone.ACCEPT,
    "readiness_passed": Tone.PASS,
    "completed": Tone.DONE,
    "blocked": Tone.BLOCKED,
}


def make_event(
    number: int,
    kind: str = "review_submitted",
    actor: str = "reader",
    summary: str = "A review of the proposal",
    **fields: Any,
) -> Event:
    """An event, a minute after the one with the number before."""
    values: dict[str, Any] = {
        "id": str(number),
        "order": number,
        "source": "events.jsonl",
        "kind": kind,
        "tone": TONES.get(kind, Tone.OTHER),
        "actor": actor,
        "at": START + timedelta(minutes=number),
        "at_source": "recorded",
        "summary": summary,
        "line": number,
    }
    return Event(**(values | fields))


def make_events() -> tuple[Event, ...]:
    """The first steps of a review: two reviewers are asked, one has answered."""
    return (
        make_event(1, "initialized", "server", "Collaboration workspace initialized"),
        make_event(2, "proposal_submitted", "server", "Proposal: keep sessions in the database",
                   reply_to="1", document="proposal.md", line=1),
        make_event(3, "review_submitted", "reviewer", "Wants a limit on the size of a session",
                   reply_to="2", document="review.md", line=5),
    )  # fmt: skip


class ManyEvents(Sequence[Event]):
    """A long log that builds each `Event` when it is asked for, as the protocols do."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.built = 0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self.length)))
        if index < 0:
            index += self.length
        if not 0 <= index < self.length:
            raise IndexError(index)
        self.built += 1
        number = index + 1
        kinds = tuple(TONES)
        return make_event(
            number,
            kinds[number % len(kinds)],
            ("server", "reader", "reviewer")[number % 3],
            f"Step {number} of a long night",
            at=START + timedelta(seconds=number),
            reply_to=str(number - 1) if number > 1 else None,
        )


def make_phases(current: int = 1) -> tuple[model.Phase, ...]:
    """The phases of a review; those before ``current`` are done."""
    names = ("drafting", "reviewing", "revising", "decision review", "readiness", "completed")
    phases = []
    for index, name in enumerate(names):
        entered = START + timedelta(minutes=2 * index)
        left = entered + timedelta(minutes=2) if index < current else None
        state = (
            PhaseState.DONE
            if index < current
            else PhaseState.CURRENT
            if index == current
            else PhaseState.AHEAD
        )
        visits = (model.Visit(entered, left),) if index <= current else ()
        phases.append(model.Phase(name.replace(" ", "_"), name, state, visits))
    return tuple(phases)


def make_documents(folder: str | None = None) -> tuple[model.Document, ...]:
    """The documents of a review."""
    names = ("proposal", "review", "decisions", "readiness", "conclusion")
    documents = [
        model.Document(
            id=f"{name}.md",
            title=name.capitalize(),
            kind="markdown",
            path=f"{folder}/{name}.md" if folder else None,
            size=812,
            changed=START + timedelta(minutes=46),
            version="1",
        )
        for name in names
    ]
    documents.append(
        model.Document("protocol.json", "State", "json", "state", version="1", size=600)
    )
    return tuple(documents)


def make_findings() -> tuple[model.Finding, ...]:
    """An error that points to a line, and a warning about the whole."""
    return (
        model.Finding(
            "ACP310", Severity.ERROR, "review.md heading seq 7: no matching event", "review.md", 14,
            None, "A review's heading names the number of its event.",
            "Correct the number in the heading.",
        ),
        model.Finding("ACP402", Severity.WARNING, "deferred items should include a reason",
                      "readiness.md", 3),
    )  # fmt: skip


def make_snapshot(key: str = KEY, **changes: Any) -> model.Snapshot:
    """A review in its second phase; ``changes`` replace fields."""
    snapshot = model.Snapshot(
        key=key,
        protocol="folder",
        dialect="v1",
        name=key.rstrip("/").rpartition("/")[2],
        objective="Decide where sessions are kept",
        location=key,
        as_of=NOW,
        headline="Reviewing, round 1: waiting for reader.",
        status=model.Status.ACTIVE,
        phase="reviewing",
        verdict=model.Verdict.VALID,
        progress=0.2,
        round=1,
        phases=make_phases(),
        participants=(
            model.Participant("server", "agent", "owner", "2", START + timedelta(minutes=2)),
            model.Participant("reviewer", "agent", "reviewer", "3", START + timedelta(minutes=3)),
            model.Participant("reader", "agent", "reviewer"),
        ),
        turns=(model.Turn("reader", "review", START + timedelta(minutes=2), "2"),),
        next_actions=(
            model.NextAction("reader", "append a structured review to review.md", True),
            model.NextAction("reviewer", "wait for the listed reviewer(s)", False),
            model.NextAction("server", "wait for the listed reviewer(s)", False),
        ),
        events=make_events(),
        documents=make_documents(),
        gates=(
            model.Gate("The objective is decided", False, "readiness.md", 20),
            model.Gate("Risks are listed", True, "readiness.md", 21),
        ),
        since=START + timedelta(minutes=2),
        started=START,
        changed=START + timedelta(minutes=3),
    )
    return replace(snapshot, **changes)


def hostile_snapshot(key: str, text: str) -> model.Snapshot:
    """A Snapshot with ``text`` wherever a Snapshot holds text."""
    target = model.Target(document=text, line=3)
    row = model.Row((text, text), 1, True, Tone.REVIEW, target)
    shapes = ("tree", "board", "thread", "unheard of")
    return make_snapshot(
        key,
        protocol=text, dialect=text, name=text, objective=text, location=text, headline=text,
        phase=text, doubt=text,
        source=model.Source(model.SourceState.STALE, text),
        phases=(model.Phase(text, text, PhaseState.CURRENT, (model.Visit(START, None),)),),
        participants=(model.Participant(text, text, text, text, START),),
        turns=(model.Turn(text, text, START, text),),
        next_actions=(model.NextAction(text, text, True),),
        events=tuple(
            make_event(number, text, text, text, source=text, reply_to=text, document=text,
                       problem=text, at_source=text)
            for number in range(1, 4)
        ),
        documents=tuple(
            model.Document(f"{number}{text}", text, "markdown", "document", None, 3, START, text,
                           "present", text, text)
            for number in range(2)
        ),
        gates=(model.Gate(text, None, text, 3, text),),
        findings=(model.Finding(text, Severity.ERROR, text, text, 3, text, text, text, text),),
        needs=(decision(text, text, text, text, START, text),),
        notices=(remark(text, text, text, START),),
        panels=tuple(
            model.Panel(f"{shape}{text}", text, shape, (text, text), (row, row), text)
            for shape in shapes
        ),
        lineage=(model.Link("continues", text, text, True, text),),
    )  # fmt: skip
