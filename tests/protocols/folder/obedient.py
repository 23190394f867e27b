"""Participants that do what `next` tells them, and nothing else: in memory, or by commands on files.

Whoever obeys writes the smallest document that will do. A world says what is true; `obey` reads a
sentence as an agent reads it, and acts.
"""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from typing import Protocol

from acp_core.protocols.folder.prompts import acceptance, next_actions
from acp_core.protocols.folder.rules.checks import unfinished
from acp_core.protocols.folder.schema import documents, records
from acp_core.protocols.folder.schema.records import V1, V2, Entry
from acp_core.protocols.folder.state import Machine

GATE = "The contract is agreed"
REFERENCE = "deliverables/memo.md"
NAMES = ("ann", "ben", "cat", "dan")
ITEMS = (
    "[blocking] Who pays?",
    "[unresolved] Which store?",
    "[deferred_nonblocking] Metrics",
    "[deferred_nonblocking] Metrics. Reason: later.",
    "[resolved] Who starts? TBD",
    "[resolved] Who starts? The server.",
)
LONG = timedelta(minutes=31)
MOST = 400  # turns that a collaboration takes at most
ENDS = re.compile(r"stop; collaboration is complete|resolve the blocker|.*\ba human\b")
BESIDE = ("deliverable_drafted", "deliverable_revised")  # which the next event does not wait for


class Stuck(AssertionError):
    """Nobody has a move, or all move for ever."""


class World(Protocol):
    """What participants see and do."""

    people: tuple[str, ...]
    objections: int  # that are still to come, from participants who are asked to accept
    rounds: int  # of reviews, likewise

    def told(self, who: str) -> str: ...
    def listed(self, who: str) -> bool: ...
    def over(self) -> bool: ...
    def append(self, who: str, event: str) -> None: ...
    def draft(self, who: str) -> None: ...
    def clear(self) -> bool: ...
    def object(self, who: str) -> None: ...
    def withdraw(self, who: str) -> bool: ...
    def check(self, *, gates: bool) -> bool: ...
    def conclude(self) -> bool: ...
    def mend(self) -> bool: ...
    def resume(self) -> None: ...
    def pass_time(self) -> None: ...


def obey(world: World, who: str, said: str, chance: random.Random) -> bool:
    """Do what a sentence says; whether that changed anything."""
    if "still holds" in said:  # nothing can be accepted yet
        if world.withdraw(who):
            return True
        if "append blocked" not in said:
            return False
        world.append(who, "blocked")
    elif said.startswith("append blocked"):
        world.append(who, "blocked")
    elif "--resume" in said:
        world.resume()
    elif said.startswith(("wait", "stop", "resolve the blocker")):
        return False
    elif said.startswith(("classify every open question", "clear what is open")):
        if said.startswith("clear") or chance.random() < 0.7:  # some only say that they did
            world.clear()
        world.append(who, "question_classified")
    elif said.startswith("classify readiness.md questions"):
        return world.clear()
    elif said.startswith("complete the final design checklist"):
        return world.check(gates=False)
    elif said.startswith("review decisions.md"):
        if world.objections and chance.random() < 0.4:
            world.object(who)
        else:
            world.append(who, "decision_accepted")
    elif said.startswith("write conclusion.md"):
        changed = world.conclude()
        return world.check(gates=True) or changed if "check every" in said else changed
    else:
        if said.startswith("check every completion gate"):
            world.check(gates=True)
        if "draft the primary deliverable" in said:
            world.draft(who)
        if re.search("run .*validate", said) and world.mend():
            return True
        events = [each for each in re.findall(r"[a-z_]+", said) if each in records.EVENTS_V2]
        event = next(each for each in events if each not in BESIDE)
        if event == "proposal_revised" and world.rounds and chance.random() < 0.3:
            world.rounds -= 1
            event = "proposal_submitted"
        world.append(who, event)
    return True


def play(world: World, chance: random.Random, deaf: bool = False) -> None:
    """Let everybody obey until it is over, or until a person is named.

    Args:
        world: the collaboration.
        chance: what decides where there is a choice.
        deaf: the owner, which is the first one, uses the existing script: once it has accepted it waits.

    Raises:
        Stuck: neither comes.
    """
    waited = 0
    said: dict[str, str] = {}
    for _ in range(MOST):
        if world.over():
            return
        moved = False
        for who in chance.sample(world.people, len(world.people)):
            said[who] = world.told(who)
            if deaf and "clear what is open" in said[who] and not world.listed(who):
                continue
            moved = obey(world, who, said[who], chance) or moved
            if world.over():
                return
        if moved:
            waited = 0
        elif all(ENDS.match(each) for each in said.values()):
            return
        elif waited:
            raise Stuck(f"nobody moves: {said}")
        else:
            waited = 1
            world.pass_time()
    raise Stuck(f"no end after {MOST} turns: {said}")


class Memory:
    """A collaboration without files: a state machine, and documents as a few switches."""

    def __init__(self, people: tuple[str, ...], dialect: str) -> None:
        self.people, self.dialect = people, dialect
        self.machine = Machine(people, dialect)
        self.now = datetime(2026, 1, 2, tzinfo=UTC)
        self.last: Entry | None = None
        self.modified = self.now
        self.items: list[tuple[str, str]] = []  # text, and who wrote it
        self.ready = self.gate = False
        self.readable = True
        self.conclusion = ""
        self.objections = self.rounds = 0
        self.trail: list[str] = []

    def listed(self, who: str) -> bool:
        return who in self.machine.waiting

    def readiness(self) -> documents.Readiness | None:
        if not self.readable:
            return None
        boxes = [f"- [{'x' if self.gate else ' '}] {GATE}"]
        boxes.append(f"- [{'x' if self.ready else ' '}] {documents.READY}")
        return documents.scan_readiness("\n".join([f"- {i}" for i, _ in self.items] + boxes))

    def told(self, who: str) -> str:
        return next_actions.advise(
            self.machine,
            who,
            self.readiness(),
            documents.scan_conclusion(self.conclusion, REFERENCE),
            {"completionGates": [GATE]},
            unchanged=acceptance.seconds_unchanged(
                self.last, self.modified.timestamp(), self.now.timestamp()
            ),
        )

    def over(self) -> bool:
        return bool(self.machine.ending)

    def entry(self, who: str, event: str) -> Entry:
        count = self.machine.count
        role = "primary" if event.startswith("deliverable_") else None
        doc = "conclusion.md" if event == "completed" else None
        at = records.format_time(self.now)
        return Entry(
            count + 1, count + 1, who, event, at, "x", doc, count or None, role, None, None
        )

    def refusals(self, who: str, event: str) -> list[str]:
        """Why the event would be refused now."""
        found = [each.text for each in self.machine.problems(self.entry(who, event))]
        readiness = self.readiness()
        if event in ("decision_accepted", "readiness_passed", "completed"):
            if readiness is None:
                return [*found, "missing readiness.md"]
            found += [f"open: {item}" for item in readiness.open]
            if event != "decision_accepted" and readiness.ready is None:
                found.append("not ready")
        if event == "completed":
            scan = documents.scan_conclusion(self.conclusion, REFERENCE)
            found += [each.message for each in unfinished(scan, self.dialect)]
            found += [] if self.gate else ["gate"]
            found += ["reference"] if self.dialect == V2 and not scan.referenced else []
        return found

    def append(self, who: str, event: str) -> None:
        refused = self.refusals(who, event)
        self.trail.append(f"{who}: {event}")
        if refused:
            raise Stuck(f"{who} was told {self.told(who)!r}, but {event} is refused: {refused}")
        self.now += timedelta(minutes=1)
        self.last = self.entry(who, event)
        self.machine.feed(self.last)

    def draft(self, who: str) -> None:
        self.append(who, "deliverable_drafted")

    def touch(self) -> None:
        self.now += timedelta(minutes=1)
        self.modified = self.now

    def clear(self) -> bool:
        changed = not self.readable or any("x" for item in self.readiness().open)  # type: ignore[union-attr]
        self.readable = True
        self.items = [("[resolved] It is settled.", self.people[0])]
        self.touch()
        return changed

    def object(self, who: str) -> None:
        self.objections -= 1
        self.items.append((ITEMS[0], who))
        self.trail.append(f"{who} objects")
        self.touch()

    def withdraw(self, who: str) -> bool:
        """Take back what one wrote, which some never do."""
        if not who.startswith("b"):
            return False
        kept = [each for each in self.items if each[1] != who]
        changed = len(kept) < len(self.items)
        if changed:
            self.items = kept
            self.trail.append(f"{who} withdraws")
            self.touch()
        return changed

    def check(self, *, gates: bool) -> bool:
        before = (self.ready, self.gate)
        self.ready, self.gate = self.ready or not gates, self.gate or gates
        self.touch()
        return before != (self.ready, self.gate)

    def conclude(self) -> bool:
        before, self.conclusion = self.conclusion, conclusion(self.dialect)
        return before != self.conclusion

    def mend(self) -> bool:
        return False

    def resume(self) -> None:
        raise Stuck("a log in memory has its first event")

    def pass_time(self) -> None:
        self.now += LONG


def conclusion(dialect: str, more: str = "") -> str:
    """A finished conclusion, but for what is added."""
    parts = [
        f"## {name}\n\nIt is so: {REFERENCE}.\n" for name in documents.conclusion_sections(dialect)
    ]
    return "\n".join([parts[0], "- [proceed] Because.\n", *parts[1:], more])


def somewhere(chance: random.Random) -> Memory:
    """A collaboration in a random state that legal events, and whatever edits of documents, lead to."""
    people = NAMES[: chance.choice((1, *(2, 3, 4) * 4))]
    world = Memory(people, chance.choice((V1, V1, V2)))
    world.append(people[0], "initialized")
    events = [
        each for each in records.events_of(world.dialect) if each not in ("blocked", "completed")
    ]
    world.clear()
    world.ready = True
    for _ in range(chance.randrange(30)):
        legal = [
            (who, event) for who in people for event in events if not world.refusals(who, event)
        ]
        if not legal:
            break
        world.append(*chance.choice(legal))
    world.items = [
        (chance.choice(ITEMS), chance.choice(people)) for _ in range(chance.choice((0, 0, 1, 2, 4)))
    ]
    world.ready, world.gate = chance.random() < 0.5, chance.random() < 0.5
    world.readable = chance.random() < 0.95
    more = chance.choice(("", "There is nothing unresolved.\n", "- [defer] Or later.\n"))
    texts = (
        "",
        conclusion(world.dialect, more),
        conclusion(world.dialect).replace(REFERENCE, "it"),
    )
    world.conclusion = chance.choice(texts)
    world.objections, world.rounds = chance.randrange(4), chance.randrange(3)
    return world
