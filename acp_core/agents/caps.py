"""The budgets of what is done once (`acp_core.agents.assignment`): who set them, and where that is kept.

Those of config.toml hold, then those that a command named for a run of a collaboration, then what a
person raised since. A file for each collaboration keeps the latter two, for as long as the same
run stands there. What a person raised for the day ends with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from acp_core.agents import budgets, codec
from acp_core.agents.budgets import Cap
from acp_core.files import modes
from acp_core.model.errors import Refused
from acp_core.person import paths, settings
from acp_core.person.paths import key_of

_DAY = "day"


@dataclass(frozen=True, slots=True)
class CapRecord:
    """The caps of a run.

    Attributes:
        run: the run; of what was raised for a day, its date.
        everyone: caps that hold for all participants, as they are written.
        own: what was raised for single participants.
    """

    run: str = ""
    everyone: tuple[str, ...] = ()
    own: dict[str, object] = field(default_factory=dict)

    def raised(self, participant: str) -> tuple[Cap, ...]:
        """What was raised for a participant alone."""
        own = self.own.get(participant)
        return (
            _parsed([each for each in own if isinstance(each, str)])
            if isinstance(own, list)
            else ()
        )

    def of(self, participant: str) -> tuple[Cap, ...]:
        """The caps of a participant."""
        return budgets.merged(_parsed(self.everyone), self.raised(participant))


def in_force(
    folder: str, participant: str, run_id: str, clock: Callable[[], datetime]
) -> Callable[[], tuple[Cap, ...]]:
    """What gives the caps of a participant as they are now.

    Args:
        folder: the collaboration, a path or URL.
        participant: whose programs are capped.
        run_id: the collaboration's run.
        clock: says what time it is.

    Raises:
        Refused: the settings are not what they should be.
    """
    usual = budgets.caps_of(settings.load().budgets, [])

    def read() -> tuple[Cap, ...]:
        caps = budgets.merged(usual, _read(_file(folder), run_id).of(participant))
        if any(cap.scope == _DAY for cap in caps):
            known = {(cap.scope, cap.unit) for cap in caps}
            today = _read(_file(), _date(clock())).of("")
            caps = budgets.merged(caps, [c for c in today if (c.scope, c.unit) in known])
        return caps

    return read


def choose(folder: str, run_id: str, chosen: Sequence[str]) -> None:
    """Set caps for all participants of a run; what was raised of the same kind is forgotten.

    Args:
        folder: the collaboration, a path or URL.
        run_id: its run.
        chosen: caps as a person writes them; with none, nothing changes.

    Raises:
        Refused: one is none.
        OSError: they cannot be written.
    """
    if not chosen:
        return
    new = tuple(map(budgets.parse, chosen))
    kinds = {(cap.scope, cap.unit) for cap in new}
    kept = _read(_file(folder), run_id)
    own: dict[str, object] = {
        name: [str(cap) for cap in kept.raised(name) if (cap.scope, cap.unit) not in kinds]
        for name in kept.own
    }
    everyone = budgets.merged(_parsed(kept.everyone), new)
    _write(_file(folder), replace(kept, everyone=tuple(map(str, everyone)), own=own))


def raise_to(cap: Cap, folder: str, participant: str, run_id: str, now: datetime) -> None:
    """Raise a cap for whom it counts: the day's for all, a collaboration's for all who take part.

    Args:
        cap: the new limit.
        folder: the collaboration, a path or URL.
        participant: whose program it stops.
        run_id: the collaboration's run.
        now: the time; what is raised for a day holds for its day.

    Raises:
        OSError: it cannot be written.
    """
    path, run = (_file(), _date(now)) if cap.scope == _DAY else (_file(folder), run_id)
    kept = _read(path, run)
    if cap.scope in ("turn", "participant"):
        raised = budgets.merged(kept.raised(participant), (cap,))
        kept = replace(kept, own={**kept.own, participant: [str(each) for each in raised]})
    else:
        everyone = budgets.merged(_parsed(kept.everyone), (cap,))
        kept = replace(kept, everyone=tuple(map(str, everyone)))
    _write(path, kept)


def _parsed(words: Sequence[str]) -> tuple[Cap, ...]:
    """Caps out of a file; what is none is left out."""
    found = []
    for each in words:
        try:
            found.append(budgets.parse(each))
        except Refused:
            continue
    return tuple(found)


def _date(now: datetime) -> str:
    return f"{now.astimezone():%Y-%m-%d}"


def _file(folder: str = "") -> Path:
    """The file of a collaboration; without one, that of the day."""
    name = _DAY
    if folder:
        name = hashlib.sha256(key_of(folder).encode(errors="surrogatepass")).hexdigest()[:24]
    return paths.state_folder() / "budgets" / f"{name}.json"


def _read(path: Path, run: str) -> CapRecord:
    """What is kept of a run; nothing of another one."""
    try:
        kept = codec.read(CapRecord, path)
    except codec.CodecError:
        return CapRecord(run)
    return kept if kept.run == run else CapRecord(run)


def _write(path: Path, kept: CapRecord) -> None:
    modes.private_folder(path.parent)
    codec.write(path, kept)
