"""A scenario: who takes part, what they decide, and every step with the texts that it writes.

One TOML file each. Standard library only.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp_core.protocols.folder.schema import V1

SCENARIOS = Path(__file__).with_name("scenarios")
"""The ones that a demo plays."""
FLEET = Path(__file__).with_name("fleet")
"""Shorter ones, for a fleet in which collaborations stand at different points."""


@dataclass(frozen=True, slots=True)
class Write:
    """One change of one file, made in stages that take ``seconds`` in all.

    ``text`` is the whole new content; or ``find`` is replaced by ``replace``; or, with
    ``tick``, every empty check box is checked.
    """

    file: str
    text: str | None = None
    find: str = ""
    replace: str = ""
    tick: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: think, write, append the event.

    ``reply_to`` names a kind of event: the latest of that kind is replied to. ``review`` is
    a text that goes into review.md together with the event. ``freeze`` records the
    document's SHA-256 with the event.
    """

    by: str
    event: str
    reply_to: str
    doc: str
    summary: str
    think: float = 0.0
    writes: tuple[Write, ...] = ()
    review: str | None = None
    role: str | None = None
    freeze: bool = False


@dataclass(frozen=True, slots=True)
class Deliverable:
    """The primary deliverable of a scenario in dialect v2; ``file`` is relative to ``deliverables``."""

    type: str
    file: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole collaboration, as it is going to happen."""

    name: str
    objective: str
    dialect: str
    participants: tuple[str, ...]
    gates: tuple[str, ...]
    steps: tuple[Step, ...]
    deliverable: Deliverable | None = None

    def steps_of(self, participant: str) -> tuple[Step, ...]:
        """The steps of one participant, in order."""
        return tuple(step for step in self.steps if step.by == participant)


def names() -> list[str]:
    """The scenarios that a demo can play, by name."""
    return sorted(path.stem for path in SCENARIOS.glob("*.toml"))


def load(name: str, folder: Path = SCENARIOS) -> Scenario:
    """The scenario of this name, out of `SCENARIOS` or `FLEET`.

    Raises:
        FileNotFoundError: there is none.
        KeyError: a step names a text that the file does not hold.
        TypeError: the file has a field that no scenario has.
    """
    with (folder / f"{name}.toml").open("rb") as file:
        return _scenario(name, tomllib.load(file))


def _scenario(name: str, data: dict[str, Any]) -> Scenario:
    texts: Mapping[str, str] = data.pop("texts", {})
    deliverable = data.pop("deliverable", None)
    return Scenario(
        name=name,
        objective=data.pop("objective"),
        dialect=data.pop("dialect", V1),
        participants=tuple(data.pop("participants")),
        gates=tuple(data.pop("gates")),
        steps=tuple(_step(step, texts) for step in data.pop("steps")),
        deliverable=Deliverable(**deliverable) if deliverable else None,
        **data,
    )


def _step(data: dict[str, Any], texts: Mapping[str, str]) -> Step:
    writes = tuple(_write(write, texts) for write in data.pop("writes", ()))
    review = data.pop("review", None)
    return Step(writes=writes, review=texts[review] if review else None, **data)


def _write(data: dict[str, Any], texts: Mapping[str, str]) -> Write:
    text = data.pop("text", None)
    return Write(text=texts[text] if text else None, **data)
