"""Budgets: how much money and how many tokens programs may take, who set that, and where it is kept.

A cap is written as ``turn=2usd`` or ``day=500ktokens``. Money is what programs say that they cost; a
program that says nothing is capped by its tokens only. Of what is done once
(`acp_core.agents.assignment`) the caps of config.toml hold, then those that a command named for a run
of a collaboration, then what a person raised since. A file for each collaboration keeps the latter
two, for as long as the same run stands there. What a person raised for the day ends with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.agents import codec
from acp_core.files import atomic
from acp_core.model.errors import Refused
from acp_core.person import paths, settings
from acp_core.person.paths import key_of

if TYPE_CHECKING:
    from acp_core.agents.state import Run

SCOPES = ("turn", "participant", "collaboration", "day")

"""One turn of a participant; all its turns; all participants of the collaboration, and all agents
of the day, of this account."""

WARN = 0.8

"""The share of a budget from which on it is warned."""

_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([kM]?)\s*(usd|tokens?)")

_FACTORS = {"": 1, "k": 1_000, "M": 1_000_000}

_OF = {
    "turn": "this turn",
    "participant": "this participant",
    "collaboration": "this collaboration",
    "day": "today",
}

_SENTENCE = "the budget for "


@dataclass(frozen=True, slots=True)
class Cap:
    """A limit: ``amount`` of ``unit`` ("usd" or "tokens") in one of `SCOPES`."""

    scope: str
    unit: str
    amount: float

    def __str__(self) -> str:
        """As it is written."""
        if self.unit == "usd":
            return f"{self.scope}={self.amount:g}usd"
        return f"{self.scope}={self.amount:.0f}tokens"


@dataclass(frozen=True, slots=True)
class Spent:
    """What was taken; ``unknown`` says that the cost of a part of it is not known."""

    tokens: int = 0
    usd: float = 0.0
    unknown: bool = False

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        unknown = self.unknown or other.unknown
        return Spent(self.tokens + other.tokens, self.usd + other.usd, unknown)


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a budget is used; ``at_least`` where the cost of a part of it is not known."""

    scope: str
    unit: str
    spent: float
    amount: float
    at_least: bool = False

    @property
    def share(self) -> float:
        """The used part, 1 for all of it."""
        return self.spent / self.amount if self.amount else 1.0

    @property
    def is_over(self) -> bool:
        """Whether it is used up."""
        return self.share >= 1

    @property
    def is_near(self) -> bool:
        """Whether it is used up, or nearly so."""
        return self.share >= WARN

    @property
    def sentence(self) -> str:
        """How much is used, for people."""
        verb = "is used up" if self.is_over else f"is used to {self.share:.0%}"
        return f"{_SENTENCE}{_OF.get(self.scope, self.scope)} {verb}: {self.figures}"

    @property
    def figures(self) -> str:
        """What is used of what: ``$1.70 of $2.00``."""
        least = "≥" if self.at_least else ""
        if self.unit == "usd":
            return f"{least}${self.spent:.2f} of ${self.amount:.2f}"
        return f"{self.spent:,.0f} of {self.amount:,.0f} tokens"


def caps_of(usual: Mapping[str, str], chosen: Iterable[str]) -> tuple[Cap, ...]:
    """The caps of the settings, as the options change them.

    Raises:
        Refused: one is no amount.
    """
    by_settings = [
        parse_amount(scope, word)
        for scope, words in usual.items()
        for word in words.replace(",", " ").split()
    ]
    return merged(by_settings, map(parse, chosen))


def stopped_it(why: str) -> bool:
    """Whether a budget is the reason for which a program was stopped."""
    return why.startswith(_SENTENCE)


def raised(found: Iterable[Use]) -> str:
    """The budget that is used up, twice as large, as it is written; "" where none is."""
    over = next((use for use in found if use.is_over), None)
    return doubled(over) if over else ""


def doubled(use: Use) -> str:
    """A budget twice as large as it is, or as what is used of it, as it is written."""
    return str(Cap(use.scope, use.unit, 2 * max(use.amount, use.spent)))


def parse(text: str) -> Cap:
    """A cap as a person writes it.

    Raises:
        Refused: it is none; says what one looks like.
    """
    scope, _, amount = text.partition("=")
    return parse_amount(scope.strip(), amount)


def parse_amount(scope: str, text: str) -> Cap:
    """A cap of a scope.

    Raises:
        Refused: the scope is unknown, or the text is no amount above zero.
    """
    if scope not in SCOPES:
        raise Refused(f"budget {scope!r}: must be one of {', '.join(SCOPES)}")
    found = _AMOUNT.fullmatch(text.strip())
    amount = float(found[1]) * _FACTORS[found[2]] if found else 0.0
    if found is None or not amount:
        raise Refused(f"budget {scope}={text}: must be an amount such as 2.50usd or 500ktokens")
    return Cap(scope, "usd" if found[3] == "usd" else "tokens", amount)


def merged(usual: Iterable[Cap], chosen: Iterable[Cap]) -> tuple[Cap, ...]:
    """Caps of which the chosen ones replace the usual ones of the same scope and unit."""
    by_what = {(cap.scope, cap.unit): cap for cap in (*usual, *chosen)}
    return tuple(by_what.values())


def uses(caps: Iterable[Cap], spent: Mapping[str, Spent]) -> tuple[Use, ...]:
    """How much of each cap is used.

    Args:
        caps: the limits.
        spent: what was taken, by scope.
    """
    found = []
    for cap in caps:
        taken = spent[cap.scope]
        amount = taken.usd if cap.unit == "usd" else float(taken.tokens)
        least = cap.unit == "usd" and taken.unknown
        found.append(Use(cap.scope, cap.unit, amount, cap.amount, least))
    return tuple(found)


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
        return merged(_parsed(self.everyone), self.raised(participant))


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
    usual = caps_of(settings.load().budgets, [])

    def read() -> tuple[Cap, ...]:
        caps = merged(usual, _read(_file(folder), run_id).of(participant))
        if any(cap.scope == _DAY for cap in caps):
            known = {(cap.scope, cap.unit) for cap in caps}
            today = _read(_file(), _date(clock())).of("")
            caps = merged(caps, [c for c in today if (c.scope, c.unit) in known])
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
    new = tuple(map(parse, chosen))
    kinds = {(cap.scope, cap.unit) for cap in new}
    kept = _read(_file(folder), run_id)
    own: dict[str, object] = {
        name: [str(cap) for cap in kept.raised(name) if (cap.scope, cap.unit) not in kinds]
        for name in kept.own
    }
    everyone = merged(_parsed(kept.everyone), new)
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
        raised = merged(kept.raised(participant), (cap,))
        kept = replace(kept, own={**kept.own, participant: [str(each) for each in raised]})
    else:
        everyone = merged(_parsed(kept.everyone), (cap,))
        kept = replace(kept, everyone=tuple(map(str, everyone)))
    _write(path, kept)


def _parsed(words: Sequence[str]) -> tuple[Cap, ...]:
    """Caps out of a file; what is none is left out."""
    found = []
    for each in words:
        try:
            found.append(parse(each))
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
    atomic.private_folder(path.parent)
    codec.write(path, kept)


_KEPT_DAYS = 40  # days


def note_run(run: Run, folder: str, participant: str, now: datetime) -> None:
    """Add a run that ended; a full disk loses it."""
    path = _day_file(now)
    facts = {
        "at": now.isoformat(),
        "collaboration": folder,
        "participant": participant,
        "tokens": run.tokens_in + run.tokens_out,
        "cost": run.cost,
        "unpriced": run.unpriced,
    }
    with contextlib.suppress(OSError):
        atomic.private_folder(path.parent)
        if not path.exists():
            _prune_days(path.parent)
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        opened = os.open(path, how, 0o600)
        try:
            os.write(opened, json.dumps(facts).encode() + b"\n")
        finally:
            os.close(opened)


def spent_on(now: datetime) -> Spent:
    """What runs took that ended on the same local day."""
    total = Spent()
    with contextlib.suppress(OSError):
        for line in _day_file(now).read_bytes().splitlines():
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
                facts = json.loads(line)
                cost = float(facts["cost"] or 0.0)
                total += Spent(int(facts["tokens"]), cost, bool(facts["unpriced"]))
    return total


def _day_file(now: datetime) -> Path:
    return paths.state_folder() / "spent" / f"{now.astimezone():%Y-%m-%d}.jsonl"


def _prune_days(folder: Path) -> None:
    for old in sorted(folder.glob("*.jsonl"))[:-_KEPT_DAYS]:
        old.unlink(missing_ok=True)
