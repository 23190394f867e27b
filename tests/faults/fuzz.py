"""Every file of every protocol is changed at random; whatever stands there, it is read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random

from acp_core.protocols.contract import Collaboration
from tests.faults import places
from tests.faults.campaign import Campaign, Case
from tests.faults.looking import acp, ask, look, opened
from tests.faults.mutations import mutated

_COMMANDS = (
    ("show",), ("show", "--json", "--all"), ("validate",), ("validate", "--json"), ("why", "--json"),
    ("status", "--json"), ("stats",), ("replay",), ("report",), ("report", "--format", "html"),
    ("report", "--format", "json"), ("report", "--format", "csv"), ("report", "--format", "otlp"),
    ("chart",), ("act",),
)  # fmt: skip


def cases(place: Path, seed: int) -> Iterator[Case]:
    """Mutations of the files that our own programs made, without an end."""
    kinds = list(places.MAKERS)
    for number in count():
        chance = Random(f"{seed}-{number}")  # a case can be made again by its number alone
        kind = kinds[number % len(kinds)]
        yield Case(
            f"fuzz {kind} seed {seed} case {number}", lambda k=kind, c=chance: _one(place, k, c)
        )


def _one(place: Path, kind: str, chance: Random) -> None:
    root = places.copied(kind, place, place / "fuzz" / kind)
    before = opened(root)
    now = datetime.now(UTC)
    if before is not None:
        before.refresh(now)
    names = list(places.files(root))
    for name in chance.sample(names, min(len(names), chance.randint(1, 3))):
        path = root / name
        data = mutated(path.read_bytes(), chance)
        if name.endswith("-shm"):
            path.unlink()  # cut under a process that has mapped it, it would end that process
        path.write_bytes(data)
    look(root)  # as somebody sees it who comes now
    if before is not None:  # and as somebody sees it who has looked all the time
        _on(before, now + timedelta(seconds=3))
    command = chance.choice(_COMMANDS)
    acp(command[0], str(root), *command[1:])


def _on(collaboration: Collaboration, now: datetime) -> None:
    try:
        ask(collaboration, now)
    finally:
        collaboration.close()


FUZZ = Campaign(
    "fuzz", "random changes to every file of every protocol, read by all readers", cases
)
