"""A run as a writer holds it: read under its lock, with what a killed command left finished."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.transaction import APPEND, REMOVE, REPLACE, Transaction, Write, writable
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program, own_writes
from acp_core.protocols.governed.read.own_writes import interrupted
from acp_core.protocols.governed.read.run import Run, read_run
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.schema import Object
from acp_core.protocols.governed.state import OPERATION_MARK, Move
from acp_core.protocols.governed.write.checkpoint import checkpoint_writes
from acp_core.protocols.governed.write.journal import Recovered, document, held, line
from acp_core.protocols.kit.guard import check

AT_WORK = 1.0  # seconds for which a journal may be there because a command writes
MOST = 1_000  # files of a folder that is removed


class Opened(NamedTuple):
    """A run as it stands. ``held`` is its lock, None where it is only looked at."""

    root: Path
    run: Run
    raw_state: bytes | None
    held: Transaction | None = None

    @property
    def key(self) -> str:
        """The run's repository: acts are bound to it."""
        return str(self.root)

    @property
    def recovered(self) -> Recovered | None:
        """What became of a command that was killed before, None where none was."""
        return self.held.recovered if self.held else None

    @property
    def config(self) -> Object:
        """The configuration."""
        return self.run.config.value

    @property
    def state(self) -> Object:
        """The state, empty where there is none yet."""
        return self.run.state.value

    @property
    def objections(self) -> dict[str, str]:
        """The status of every objection, by its id."""
        return {each.id: each.status for each in self.run.objections}


def new_id(kind: str) -> str:
    """A fresh id as the files hold it: ``run_`` or ``turn_`` and 16 hex digits."""
    return f"{kind}_{secrets.token_hex(8)}"


def read_unlocked(root: str | Path, act: str = "") -> Opened:
    """The run as it stands, without its lock: for looking only.

    Args:
        root: the repository.
        act: the name of an act that needs no whole run, such as one that mends it.

    Raises:
        Refused: there is no run, a command was interrupted, or its files are such that nothing
            can be decided: what mends them.
    """
    place = _place(root)
    left, until = interrupted(place), time.monotonic() + AT_WORK
    while left is not None and time.monotonic() < until:  # a command may be writing just now
        time.sleep(0.02)
        left = interrupted(place)
    if left is not None:
        raise Refused(f"{left.what} was interrupted; run `acp governed recover` to finish it")
    return _opened(place, None, act)


def seal_lawful(run: Run, state: bytes | None, holder: Transaction) -> None:
    """Seal a run anew where the existing program did in it what acp would have let it do.

    Args:
        run: the run.
        state: what its state file holds.
        holder: holds its lock.
    """
    changed = guard.changed(run)
    if not changed or state is None or guard.recognised(run) is None:
        return
    sealed = own_writes.sound(run.root, changed)
    if sealed is not None:
        holder.commit("seal the changes of the agentxchain program", [sealed])
        own_writes.kept_copy(run.root, state)


def permitted(opened: Opened, act: str, *, role: str = "", excluded: Iterable[str] = ()) -> Opened:
    """The run, where nothing stands in the way of an act. Arguments as those of `locked`.

    Raises:
        Refused: something does; what, and what mends it.
    """
    check(guard.of_run(opened.run, role=role, excluded=excluded), act)
    return opened


@contextlib.contextmanager
def locked(
    root: str | Path, act: str, *, role: str = "", excluded: Iterable[str] = ()
) -> Iterator[Opened]:
    """Hold the run's lock; what a killed command left is finished first.

    Args:
        root: the repository.
        act: the name of the act that is to be done.
        role: who is to take the next turn, where that is what is done.
        excluded: the run's own files that a human takes as they are.

    Raises:
        Refused: there is no run, another command holds the lock, or something stands in the way
            of the act (see `write.guard`).
    """
    place = _place(root)
    home = place / ".agentxchain"
    if home.is_symlink():
        raise Refused(".agentxchain is a symbolic link: acp does not write through links")
    with held(place) as holder:
        opened = _opened(place, holder, act)
        check(guard.of_run(opened.run, role=role, excluded=excluded), act)
        seal_lawful(opened.run, opened.raw_state, holder)
        yield opened


def _place(root: str | Path) -> Path:
    place = Path(os.path.abspath(root))
    if not place.is_dir():
        raise Refused(f"{root} is not a folder")
    if not (place / schema.CONFIG).is_file():
        raise Refused(
            f"no governed run in {root}: {schema.CONFIG} is missing (`acp governed init`)"
        )
    return place


def _opened(place: Path, holder: Transaction | None, act: str = "") -> Opened:
    raw = None
    with contextlib.suppress(Refused):  # of what cannot be read the guard says more
        raw = content(place, schema.STATE)
    run = read_run(place)
    check(guard.unusable(run), act)
    return Opened(place, run, raw, holder)


def commit(opened: Opened, what: str, move: Move, more: Sequence[Write] = ()) -> None:
    """Write what a step makes of the run: logs first, then ``more``, the state last.

    Raises:
        Refused: it cannot be written, another program changed the state since it was read, or
            the existing program left something half written.
    """
    root = opened.root
    refuse_over_unfinished(opened)
    if content(root, schema.STATE) != opened.raw_state:
        raise Refused(f"{schema.STATE} has just changed; try again")
    wanted = [
        Write(root / name, APPEND, b"".join(line(each) for each in lines))
        for name, lines in (
            (schema.HISTORY, move.history),
            (schema.LEDGER, move.ledger),
            (schema.EVENTS, [{"event_id": new_id("evt")} | each for each in move.events]),
        )
        if lines
    ]
    wanted += more
    for path, verb, value in checkpoint_writes(opened.run, move, datetime.now(UTC)):
        wanted.append(Write(path, verb, line(value) if verb == APPEND else document(value)))
    wanted.append(Write(root / schema.STATE, REPLACE, document(move.state)))
    write(opened, what, wanted)


def write(opened: Opened, what: str, wanted: Sequence[Write]) -> None:
    """Write several files as one.

    Raises:
        Refused: one cannot be written; all are as before.
    """
    if opened.held is None:
        raise Refused("the run is opened read-only")
    opened.held.commit(what, wanted)
    for each in wanted:
        if each.verb == REMOVE:
            with contextlib.suppress(OSError):  # not empty, or gone: either way nothing is lost
                os.rmdir(each.path.parent)


def content(root: Path, name: str) -> bytes | None:
    """What a file of the run holds, None where there is none.

    Raises:
        Refused: it cannot be read, or leads out of the repository.
    """
    path = writable(root, name)
    if path is None:
        raise Refused(f"{name} leads out of the repository, or is a symbolic link")
    try:
        return read_bounded(path, schema.LOG_LIMIT)
    except Unreadable as error:
        if error.missing:
            return None
        raise Refused(f"{name}: {error.reason}") from None


def removing(root: Path, name: str) -> list[Write]:
    """The removal of every file in a folder of the run.

    Raises:
        Refused: the folder holds other folders, or leads out of the repository.
    """
    place = writable(root, name)
    if place is None:
        raise Refused(f"{name} leads out of the repository, or is a symbolic link")
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return []
    found = [place / each for each in names[:MOST]]
    odd = next((path for path in found if path.is_symlink() or not path.is_file()), None)
    if odd is not None or len(names) > MOST:
        raise Refused(f"{name} holds more than a turn's files ({odd or len(names)}): clean it up")
    return [Write(path, REMOVE) for path in found]


def refuse_over_unfinished(opened: Opened) -> None:
    """No step is made over what the existing program left half written.

    Raises:
        Refused: it left something; what to do.
    """
    if opened.run.unfinished:
        raise Refused(existing_program.transaction_refusal(opened.run.unfinished))


def refuse_agents() -> None:
    """What only a human may do is refused within an agent's turn.

    Raises:
        Refused: the environment says that an agent's program is at work.
    """
    turn = os.environ.get(OPERATION_MARK)
    if turn:
        raise Refused(f"only a human can decide this, not the program of the turn {turn}")


def who(given: str = "") -> str:
    """Who decides: the name that was given, else the user's.

    Raises:
        Refused: there is none.
    """
    import getpass

    name = " ".join(given.split())
    if not name:
        with contextlib.suppress(Exception):  # no user of that id: getpass says it in many ways
            name = getpass.getuser()
    if not name or len(name) > 120:
        raise Refused("name who decides (--by NAME)")
    return name
