"""An initiative as a writer holds it: read under the locks, with everything that is to be written.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.transaction import APPEND, REPLACE, Transaction, Write
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.read.initiative import (
    OWN,
    Initiative,
    Plan,
    Workstream,
    read_initiative,
    read_plan,
)
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.rules.initiative_reconcile import Seen, inspect
from acp_core.protocols.governed.schema import Object
from acp_core.protocols.governed.state import Move
from acp_core.protocols.governed.write import journal
from acp_core.protocols.kit.guard import check

STATE = ".coordinator/state.json"

LEDGER = ".coordinator/ledger.jsonl"


class Opened(NamedTuple):
    """What a writer knows of an initiative."""

    root: Path
    plan: Plan
    initiative: Initiative

    def stream(self, name: str) -> Workstream:
        """The workstream of this name.

        Raises:
            Refused: there is none.
        """
        for stream in self.initiative.workstreams:
            if stream.name == name:
                return stream
        known = ", ".join(stream.name for stream in self.initiative.workstreams)
        raise Refused(f"no workstream {name!r} (workstreams: {known})")


class Prepared(NamedTuple):
    """A step of the coordinator before it is done: all its writes, and what it says.

    ``messages`` say what is so once it is done, ``would`` the same before. ``otherwise`` makes the
    writes that note why not, where these cannot be done.
    """

    what: str
    writes: tuple[Write, ...] = ()
    messages: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    otherwise: Callable[[str], tuple[Write, ...]] | None = None
    would: tuple[str, ...] = ()

    @property
    def preview(self) -> tuple[str, ...]:
        """What would be done, in sentences."""
        return self.would or self.messages or ("nothing new",)


class Writes:
    """The writes of one commit: a file is replaced once, lines of a log come together."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._replaced: dict[Path, bytes] = {}
        self._lines: dict[Path, bytes] = {}

    def run(self, stream: Workstream, change: Move) -> None:
        """A workstream's next state and lines."""
        home = Path(stream.path)
        self._replaced[home / schema.STATE] = journal.document(change.state)
        self.append(home / schema.LEDGER, change.ledger)
        named = [{"event_id": f"evt_{secrets.token_hex(8)}"} | event for event in change.events]
        self.append(home / schema.EVENTS, named)

    def state(self, state: Object) -> None:
        """The coordinator's next state."""
        self._replaced[self._root / STATE] = journal.document(state)

    def append(self, path: Path, lines: Sequence[Object]) -> None:
        """Lines for a log."""
        if lines:
            data = b"".join(journal.line(line) for line in lines)
            self._lines[path] = self._lines.get(path, b"") + data

    def ledger(self, lines: Sequence[Object]) -> None:
        """Lines for the coordinator's ledger."""
        self.append(self._root / LEDGER, lines)

    def all(self) -> tuple[Write, ...]:
        """Those of the workstreams first, the coordinator's own last."""
        own = self._root / ".coordinator"
        made = [Write(path, REPLACE, data) for path, data in self._replaced.items()]
        made += [Write(path, APPEND, data) for path, data in self._lines.items()]
        return tuple(sorted(made, key=lambda write: own in write.path.parents))


def open_initiative(root: Path) -> Opened:
    """Read the initiative in ``root``.

    Raises:
        Refused: its configuration cannot be acted on, or it was not begun.
    """
    plan = read_plan(root)
    initiative = read_initiative(root)
    if initiative.config.reason:  # it was read a moment ago: the disk fails, or somebody writes it
        raise Refused(f"{schema.MULTI_CONFIG}: {initiative.config.reason}")
    if initiative.layout != OWN:
        raise Refused(f"{root} is an initiative of the agentxchain program: acp only reads it")
    if initiative.state.missing and not initiative.ledger.lines:
        raise Refused(f"{root} is not started: run acp governed coordinator init")
    if initiative.state.reason:
        cure = f"acp governed coordinator mend-state {shlex.quote(str(root))}"
        raise Refused(f"{root / STATE} {initiative.state.reason}: {cure}")
    return Opened(root, plan, initiative)


def permitted(root: Path, act: str) -> Opened:
    """The initiative in ``root``, where nothing stands in the way of an act.

    Raises:
        Refused: as `open_initiative`, or something does: what, and what mends it.
    """
    opened = open_initiative(root)
    check(guard.of_initiative(opened.initiative), act)
    return opened


@contextlib.contextmanager
def held(root: Path) -> Iterator[tuple[Transaction, Opened]]:
    """Hold the locks of the coordinator and of its workstreams; read everything under them.

    Raises:
        Refused: as `open_initiative`, or a lock is held by another process.
    """
    before = open_initiative(root)
    with journal.held(root, own_writes.COORDINATOR_HOME, run_homes(before.initiative)) as holder:
        yield holder, open_initiative(root)


def run_homes(initiative: Initiative) -> list[str]:
    """The folders to lock, relative to the initiative: those of the runs that are there."""
    found = []
    for stream in initiative.workstreams:
        home = Path(stream.path) / own_writes.RUN_HOME
        if stream.run is not None and home.is_dir():
            found.append(os.path.relpath(home, initiative.root))
    return found


def observe(opened: Opened, now: datetime) -> tuple[Seen, Writes]:
    """One look, with its writes."""
    seen = inspect(opened.initiative, opened.plan, now)
    writes = Writes(opened.root)
    for stream, change in seen.held:
        writes.run(stream, change)
    if seen.state != opened.initiative.state.value:
        writes.state(seen.state)
    writes.ledger(seen.lines)
    return seen, writes
