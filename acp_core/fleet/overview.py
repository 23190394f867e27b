"""The fleet without drawing it: which collaboration stands where, the counts, the short words, the views.

Pure functions over Snapshots, shared by the dashboard and the commands, so that both
say the same and a thousand collaborations can be arranged without a screen. A view says which are
listed, under which headings, in which order: a part stays below its whole, and what is archived
comes last, in every one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from itertools import count, groupby
from typing import Any, NamedTuple

from acp_core.model import Cost, Matter, Runner, Severity, Snapshot, Status, format
from acp_core.model.format import continued, names_in
from acp_core.model.matter import Kind
from acp_core.person.attention import Attention
from acp_core.person.views import View

_serials = count()


class Group(IntEnum):
    """Where an entry stands in the fleet. Each is in one group only, so that counts add up."""

    NEEDS = 0
    PERSON = 1  # it waits for people alone, and needs nothing from you
    LIVE = 2
    UNKNOWN = 3
    BLOCKED = 4
    DONE = 5

    @property
    def title(self) -> str:
        """The heading over the group."""
        return _TITLES[self]

    @property
    def over(self) -> bool:
        """Whether nothing more happens there."""
        return self in (Group.BLOCKED, Group.DONE)


_TITLES = ("needs you", "waiting for a person", "live", "unknown", "blocked", "done")

_GROUPS = {
    Status.ACTIVE: Group.LIVE,
    Status.UNKNOWN: Group.UNKNOWN,
    Status.BLOCKED: Group.BLOCKED,
    Status.COMPLETED: Group.DONE,
}


@dataclass(frozen=True, slots=True, eq=False)
class FleetEntry:
    """A collaboration as the fleet shows it.

    ``needs`` are those not acknowledged, the parts' included; ``unread`` counts events
    since the last visit, ``changed`` says that something is new since then; ``depth`` is above 0 for a part, which stands under its whole.
    ``asker`` is the key of the collaboration that the first need is of: itself, or a part.
    ``name`` is the collaboration's, and where others have the same one, what tells it apart.
    ``serial`` is another one whenever anything in the entry is.
    """

    snapshot: Snapshot
    needs: tuple[Matter, ...] = ()
    unread: int = 0
    changed: bool = False
    archived: bool = False
    depth: int = 0
    group: Group = Group.LIVE
    asker: str = ""
    name: str = ""
    serial: int = field(default_factory=_serials.__next__)

    @property
    def key(self) -> str:
        """The collaboration's identity."""
        return self.snapshot.key

    def same(self, other: FleetEntry) -> bool:
        """Whether the two look the same."""
        return (
            self.snapshot is other.snapshot
            and self.needs == other.needs
            and (self.unread, self.changed, self.archived, self.depth)
            == (other.unread, other.changed, other.archived, other.depth)
            and (self.group, self.asker, self.name) == (other.group, other.asker, other.name)
        )


class Seen(NamedTuple):
    """What this person's attention says about one collaboration.

    ``last`` is when the person last looked at it, or else left the fleet; None for never.
    """

    needs: tuple[Matter, ...]
    unread: int
    archived: bool
    last: datetime | None = None


class Counts(NamedTuple):
    """How many collaborations are in each group, and how many parts stand under them.

    A part counts with its whole: the first six, ``archived`` and ``parts`` add up to all rows.
    """

    need: int
    person: int
    live: int
    unknown: int
    blocked: int
    done: int
    archived: int
    parts: int

    def sentence(self) -> str:
        """``2 need you · 9 live · 31 done``."""
        need, person = self.need, self.person
        parts = (
            (True, format.count(need, "needs you", "need you")),
            (person, format.count(person, "waits for a person", "wait for a person")),
            (True, f"{format.grouped(self.live)} live"),
            (self.unknown, f"{format.grouped(self.unknown)} unknown"),
            (self.blocked, f"{format.grouped(self.blocked)} blocked"),
            (True, f"{format.grouped(self.done)} done"),
            (self.parts, format.count(self.parts, "child run")),
        )
        return " · ".join(words for shown, words in parts if shown)


def cost(entries: Iterable[FleetEntry]) -> Cost | None:
    """What all of them cost together; None where no agent of this account took part."""
    found = {entry.key: entry.snapshot.cost for entry in entries}
    known = [each for each in found.values() if each is not None]
    return sum(known[1:], known[0]) if known else None


def cost_sentence(entries: Iterable[FleetEntry]) -> str:
    """`` · cost $4.10 + ?``, to be put behind the counts; "" where nothing is known of it."""
    found = cost(entries)
    return f" · cost {found.words}" if found else ""


def arrange(
    snapshots: Iterable[Snapshot],
    seen: Callable[[Snapshot], Seen],
    before: Mapping[str, FleetEntry] | None = None,
    *,
    recent: bool = False,
) -> list[FleetEntry]:
    """The entries of the fleet in their order.

    What needs a human is on top (the longest wait first), then what is live (by name, or the
    latest change first where ``recent``), then what is over (the latest first), by `Group`; a
    part stands under its whole. An entry of ``before`` that would look the same is used again.
    """
    known = {snapshot.key: snapshot for snapshot in snapshots}
    looked = {key: seen(snapshot) for key, snapshot in known.items()}
    asked = {key: asking(key, known, lambda one: looked[one.key].needs) for key in known}
    needed = {key: tuple(need for _, need in found) for key, found in asked.items()}
    inner = {part for s in known.values() for part in s.parts if part in known and part != s.key}
    wholes = [key for key in known if key not in inner]
    names = _distinct_names([known[key] for key in wholes])
    entries: list[FleetEntry] = []
    placed: set[str] = set()

    def place(key: str, depth: int, group: Group | None) -> None:
        if key in placed:  # parts that name each other
            return
        placed.add(key)
        snapshot, attention, needs = known[key], looked[key], needed[key]
        group = _group(snapshot, needs) if group is None else group
        asker = asked[key][0][0].key if asked[key] else ""
        name = names.get(key, snapshot.name)
        changed, archived = _changed(snapshot, attention), attention.archived
        entry = FleetEntry(
            snapshot, needs, attention.unread, changed, archived, depth, group, asker, name
        )
        old = before.get(key) if before else None
        entries.append(old if old and old.same(entry) else entry)
        for part in snapshot.parts:
            if part in known:
                place(part, depth + 1, group)

    for key in sorted(wholes, key=lambda key: _rank(known[key], needed[key], recent)):
        place(key, 0, None)
    for key in known:
        place(key, 0, None)
    return entries


def _distinct_names(snapshots: Sequence[Snapshot]) -> dict[str, str]:
    """By key: names with the end of their place, for those that share a name with others."""
    named: dict[str, list[Snapshot]] = {}
    for snapshot in snapshots:
        named.setdefault(snapshot.name.casefold(), []).append(snapshot)
    found: dict[str, str] = {}
    for same in named.values():
        if len(same) > 1:
            places = [_place(snapshot) for snapshot in same]
            for length in range(1, max(map(len, places)) + 1):
                ends = ["/".join(place[-length:]) for place in places]
                if len(set(ends)) == len(ends):
                    break
            for snapshot, end in zip(same, ends, strict=True):
                found[snapshot.key] = f"{snapshot.name} · {end}" if end else snapshot.name
    return found


def _place(snapshot: Snapshot) -> list[str]:
    """The parts of where it is; a folder that has its name says nothing more."""
    parts = snapshot.location.rstrip("/").split("/")
    return parts[:-1] if parts[-1].casefold() == snapshot.name.casefold() else parts


def asking(
    key: str, known: Mapping[str, Snapshot], needs: Callable[[Snapshot], Sequence[Matter]]
) -> list[tuple[Snapshot, Matter]]:
    """The needs of a collaboration and then those of its parts, each with whose it is.

    A part's need names the part. One that a cause of the whole explains is left out: it is said
    already.

    Args:
        key: the collaboration.
        known: every Snapshot, by key.
        needs: the needs of one collaboration.
    """
    if key in known and not known[key].parts:
        return [(known[key], need) for need in needs(known[key])]
    found: list[tuple[Snapshot, Matter]] = []
    visited: set[str] = set()
    explained: set[str] = set()
    waiting = [key]
    while waiting:
        here = waiting.pop(0)
        if here in known and here not in visited:
            visited.add(here)
            one = known[here]
            for need in needs(one):
                if need.key not in explained:
                    if here != key:
                        told = continued(need.sentence, names_in(one))
                        need = need._replace(sentence=f"{one.name}: {told}")
                    found.append((one, need))
            explained.update(key for cause in known[here].causes for key in cause.explains)
            waiting.extend(known[here].parts)
    return found


def _changed(snapshot: Snapshot, attention: Seen) -> bool:
    """Whether there is anything that the person has not seen."""
    last = attention.last
    if last is None or attention.unread:
        return True
    times = (snapshot.changed, *(need.since for need in attention.needs))
    return any(at is not None and at > last for at in times)


def pause(snapshot: Snapshot) -> Matter | None:
    """What keeps it from going on, where that passes by itself: a limit, an outage, a retry."""
    return next((each for each in snapshot.causes if each.kind is Kind.PAUSE), None)


def _group(snapshot: Snapshot, needs: Sequence[Matter]) -> Group:
    if needs:
        return Group.NEEDS
    if snapshot.status is Status.ACTIVE and snapshot.turns:
        waited = {turn.participant for turn in snapshot.turns}
        if waited <= _people(snapshot):
            return Group.PERSON
    return _GROUPS[snapshot.status]


def _people(snapshot: Snapshot) -> set[str]:
    return {each.id for each in snapshot.participants if each.kind == "human"}


def _rank(snapshot: Snapshot, needs: Sequence[Matter], recent: bool) -> tuple[int, float, str, str]:
    group = _group(snapshot, needs)
    latest = -snapshot.changed.timestamp() if snapshot.changed else float("inf")
    if group is Group.NEEDS:
        moments = [need.since.timestamp() for need in needs if need.since]
        when = min(moments, default=float("inf"))
    else:
        when = latest if recent or group.over else 0.0
    return group, when, snapshot.name.casefold(), snapshot.key


def tally(entries: Iterable[FleetEntry]) -> Counts:
    """Count the fleet."""
    groups = dict.fromkeys(Group, 0)
    archived = parts = 0
    for entry in entries:
        if entry.archived:
            archived += 1
        elif entry.depth:
            parts += 1
        else:
            groups[entry.group] += 1
    need, person, live, unknown, blocked, done = groups.values()
    return Counts(need, person, live, unknown, blocked, done, archived, parts)


def haystack(snapshot: Snapshot) -> str:
    """The words by which a collaboration is found, folded."""
    people = " ".join(participant.id for participant in snapshot.participants)
    words = (
        snapshot.name, snapshot.objective, snapshot.phase, snapshot.status.value,
        snapshot.protocol, people, snapshot.location, " ".join(snapshot.hosts),
    )  # fmt: skip
    return "\n".join(words).casefold()


def matches(found_by: str, words: str) -> bool:
    """Whether a collaboration is found by some words.

    Args:
        found_by: the words by which it is found, as `haystack` gives them.
        words: separated by blanks, in any case; each must occur. None find everything.
    """
    return all(word in found_by for word in words.casefold().split())


def phase_of(snapshot: Snapshot) -> str:
    """The phase; with its word where it is an abbreviation ("cd" is "CD code")."""
    name = snapshot.phase
    if snapshot.status is not Status.ACTIVE:
        return name  # its phases may not have been read
    labels = (each.label for each in snapshot.phases if each.id == name)
    return next((each for each in labels if each.casefold().startswith(f"{name} ")), name)


_YOU = "you"


def waiting_for(snapshot: Snapshot) -> str:
    """Who is waited for, a person said to be one, and who runs it: ``reader (run by anna)``.

    ``you`` where it is whoever runs the collaboration here; ``-`` where nobody is waited for, and
    nobody runs it.
    """
    human = _people(snapshot)
    names = dict.fromkeys(turn.participant for turn in snapshot.turns)
    others = dict.fromkeys(_account(runner) for runner in snapshot.runners)
    words = []
    for name in names:
        plays = [each for each in snapshot.runners if each.participant in ("", name)]
        accounts = dict.fromkeys(map(_account, () if name in human else plays))
        note = "" if name == _YOU else "human" if name in human else _run_by(accounts)
        words.append(f"{name} ({note})" if note else name)
        others = {each: None for each in others if each not in accounts}
    if not names and snapshot.needs and snapshot.status is Status.ACTIVE:
        words.append(_YOU)
    return " · ".join(filter(None, (", ".join(words), _run_by(others)))) or "-"


def _account(runner: Runner) -> str:
    account = runner.account or "you"
    return f"{account} on {runner.host}" if runner.host else account


def _run_by(accounts: Iterable[str]) -> str:
    names = ", ".join(accounts)
    return f"run by {names}" if names else ""


def standing_since(entry: FleetEntry) -> datetime | None:
    """Since when it stands as it does: the oldest need, or the oldest turn, or the phase."""
    needs = [need.since for need in entry.needs if need.since]
    turns = [turn.since for turn in entry.snapshot.turns if turn.since]
    return min(needs or turns, default=entry.snapshot.since)


def findings(snapshot: Snapshot, cells: int | None = None) -> tuple[str, Severity | None]:
    """How many findings of the worst severity there are, in a few words, and that severity.

    Args:
        snapshot: the collaboration.
        cells: how wide the words may be on a terminal; the word is shortened where they are
            too few. None for any width.

    Returns:
        ``-`` and None where there are no findings.
    """
    for severity, word, short in (
        (Severity.ERROR, "error", "err"),
        (Severity.WARNING, "warning", "warn"),
    ):
        number = snapshot.count(severity)
        if number:
            full = format.count(number, word)
            fits = cells is None or len(full) <= cells
            return full if fits else f"{number} {short}", severity
    advice = snapshot.count(Severity.ADVICE)
    if advice:
        full = f"{advice} advice"
        fits = cells is None or len(full) <= cells
        return full if fits else f"{advice} adv", Severity.ADVICE
    return "-", None


ARCHIVED = "archived"

_EVER = float("inf")


class Section(NamedTuple):
    """Entries below one heading; "" where there is none."""

    title: str
    entries: tuple[FleetEntry, ...]


def sections(entries: Sequence[FleetEntry], view: View) -> list[Section]:
    """The entries of a view below their headings.

    Args:
        entries: in the order of `overview.arrange`.
        view: how they are listed; its filter is left to the caller.
    """
    blocks = list(_blocks(entries))
    if view.changed:
        blocks = [block for block in blocks if any(entry.changed for entry in block)]
    if view.sort != "attention":
        blocks.sort(key=lambda block: _SORT_KEYS[view.sort](block[0]))
    title = _HEADINGS[view.group]
    titled = [(title(block[0]), block) for block in blocks]
    if view.group == "state":
        titled.sort(key=lambda each: each[1][0].group)
    elif view.group != "none":
        titled.sort(key=lambda each: each[0].casefold())
    titled.sort(key=lambda each: each[1][0].archived)  # sorting keeps the order of equals
    grouped = groupby(titled, key=lambda each: (each[1][0].archived, each[0]))
    return [
        Section(ARCHIVED if archived else name, tuple(e for _, block in found for e in block))
        for (archived, name), found in grouped
    ]


def _blocks(entries: Iterable[FleetEntry]) -> Iterable[list[FleetEntry]]:
    """Each whole with its parts behind it."""
    block: list[FleetEntry] = []
    for entry in entries:
        if block and not entry.depth:
            yield block
            block = []
        block.append(entry)
    if block:
        yield block


def _folder(entry: FleetEntry) -> str:
    """The folder in which a collaboration's own folder is, or the host behind its address."""
    location = entry.snapshot.location
    scheme, mark, rest = location.partition("://")
    return f"{scheme}{mark}{rest.partition('/')[0]}" if mark else os.path.dirname(location) or "/"


_HEADINGS: dict[str, Callable[[FleetEntry], str]] = {
    "state": lambda entry: entry.group.title,
    "folder": _folder,
    "protocol": lambda entry: entry.snapshot.protocol,
    "none": lambda entry: "",
}


def _name(entry: FleetEntry) -> tuple[str, str]:
    return entry.name.casefold(), entry.key


def _waiting(entry: FleetEntry) -> tuple[bool, float, tuple[str, str]]:
    since = None if entry.group.over else standing_since(entry)
    return entry.group.over, since.timestamp() if since else _EVER, _name(entry)


def _last(entry: FleetEntry) -> tuple[float, tuple[str, str]]:
    changed = entry.snapshot.changed
    return -changed.timestamp() if changed else _EVER, _name(entry)


_SORT_KEYS: dict[str, Callable[[FleetEntry], Any]] = {
    "name": _name,
    "waiting": _waiting,
    "last": _last,
    "protocol": lambda entry: (entry.snapshot.protocol, _name(entry)),
}


class Seeing:
    """A person's attention, asked for one Snapshot after the other (see `arrange`); in any thread.

    Attributes:
        left: when the person left the dashboard before this time.
    """

    def __init__(self, attention: Attention) -> None:
        self._attention = attention
        self.left = attention.last_left()

    def __call__(self, snapshot: Snapshot) -> Seen:
        visit = self._attention.last_visit(snapshot.key)
        return Seen(
            self._attention.open_needs(snapshot),
            unread(self._attention, snapshot),
            self._attention.is_archived(snapshot.key),
            visit.at if visit else self.left,
        )


def unread(attention: Attention, snapshot: Snapshot) -> int:
    """How many events came since the person last looked; 0 where they never did."""
    visit = attention.last_visit(snapshot.key)
    return max(0, len(snapshot.events) - visit.event_count) if visit else 0
