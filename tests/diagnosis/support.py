"""Cases made by hand: a Snapshot, loops as their state files tell of them, and a clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from acp_core.agents.processes import Identity
from acp_core.agents.state import Phase, Run, RunnerState, Saved
from acp_core.diagnosis import engine
from acp_core.diagnosis.standing import standing
from acp_core.model import Document, Event, Matter, Participant, Snapshot, Status, Tone, Turn
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext, Patience

NOON = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)
PEOPLE = ("server", "reader", "reviewer")

NOBODY = 1 << 22  # no process of Linux has this id, or one above


def problems(collaboration: Collaboration, case: DiagnosisContext) -> tuple[Matter, ...]:
    """Why it does not go on, in the order in which everybody tells it."""
    alone = replace(case.snapshot, needs=(), questions=(), notices=())
    return standing(alone, engine.diagnose(collaboration, case))


def after(minutes: float = 0, seconds: float = 0) -> datetime:
    """A moment after noon, when the turn began."""
    return NOON + timedelta(minutes=minutes, seconds=seconds)


def snapshot(
    *waited: str,
    spoke: tuple[str, ...] = PEOPLE,
    humans: tuple[str, ...] = (),
    changed: datetime | None = None,
    **more: Any,
) -> Snapshot:
    """A collaboration that waits for some (the reader, if none is named) since noon."""
    names = waited or ("reader",)
    events = tuple(
        Event(str(n), n, "log", "said", Tone.OTHER, who, NOON, "recorded", "Said so.")
        for n, who in enumerate(("server", *spoke), 1)
    )
    last = {event.actor: event.id for event in events}
    people = tuple(
        Participant(name, "human" if name in humans else "agent", last_event=last.get(name))
        for name in PEOPLE
    )
    document = Document(
        "proposal.md", "Proposal", "markdown", changed=changed or after(minutes=-1), version="1"
    )
    fields: dict[str, Any] = {
        "key": "/work/cache",
        "protocol": "folder",
        "dialect": "v1",
        "name": "cache",
        "objective": "Choose",
        "location": "/work/cache",
        "as_of": after(minutes=600),
        "headline": f"reviewing. Waiting for {', '.join(names)}.",
        "status": Status.ACTIVE,
        "phase": "reviewing",
        "participants": people,
        "turns": tuple(Turn(name, "review the proposal", NOON, "4") for name in names),
        "events": events,
        "documents": (document,),
        "changed": NOON,
    }
    return Snapshot(**(fields | more))


def run(**more: Any) -> Run:
    """A run that began a second after noon and said something at once."""
    fields: dict[str, Any] = {
        "number": 3,
        "process": Identity(NOBODY, 1.0),
        "started": after(seconds=1),
        "first_output": after(seconds=2),
        "last_output": after(seconds=2),
        "lines": ("I read the proposal.",),
    }
    return Run(**(fields | more))


def ended(**more: Any) -> Run:
    """A run that ended half a minute after noon, well."""
    fields = {"ended": after(seconds=30), "exit_code": 0, "exit": "exit code 0"}
    return run(**(fields | more))


def loop(
    phase: Phase = Phase.RUNNING,
    run: Run | None = None,
    *,
    participant: str = "reader",
    alive: bool = True,
    program_alive: bool | None = None,
    **more: Any,
) -> RunnerState:
    """A loop of a participant, with a program that is running unless its run ended."""
    fields: dict[str, Any] = {
        "folder": "/work/cache",
        "participant": participant,
        "process": Identity(NOBODY + 1, 1.0),
        "started": after(minutes=-60),
        "program": "claude",
        "phase": phase,
        "since": after(seconds=1),
        "turn": "4",
        "attempt": 1,
        "attempts": 4,
        "run": run,
    }
    if phase in (Phase.STOPPED, Phase.DONE):
        fields["ended"] = fields["since"]
    runs = run is not None and run.ended is None if program_alive is None else program_alive
    return RunnerState(
        folder="/work/cache",
        participant=participant,
        shown=Saved(**(fields | more)),
        alive=alive,
        program_alive=runs,
        log="/state/loops/reader/log",
        place="/state/loops/reader",
    )


def case(
    *loops: RunnerState, at: datetime, snapshot_: Snapshot | None = None, **more: Any
) -> DiagnosisContext:
    """What is seen at a moment."""
    return DiagnosisContext(snapshot_ or snapshot(), Clock(at), tuple(loops), **more)


def causes(*loops: RunnerState, at: datetime, **more: Any) -> list[Matter]:
    """What is found at a moment."""
    return list(engine.causes_of_turns(case(*loops, at=at, **more)))


def cause(*loops: RunnerState, at: datetime, **more: Any) -> Matter:
    """The only thing that is found at a moment."""
    found = causes(*loops, at=at, **more)
    assert len(found) == 1, found
    return found[0]


def quick(speed: float) -> Patience:
    """The patience of a demo."""
    return replace(Patience(), speed=speed)
