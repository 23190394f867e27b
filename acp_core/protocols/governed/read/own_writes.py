"""What acp itself wrote into a run: its seal on the files, and a write that was interrupted.

With every writing the digests of the state and the logs go into ``.acp/governed-seal.json``, in the
same step; git does not see that folder, so that the existing program finds nothing changed. A file
that is not as it was sealed was written by somebody else: by an agent in its turn, by another
program, or by a human. It stays marked until a human takes it as it is. Only runs that acp made bear
a seal. Source: governed protocol specification, "Files" (mutable state, append-only logs: the
orchestrator's, and no agent's). Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from acp_core.files import atomic, transaction
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.transaction import (
    APPEND,
    REMOVE,
    REPLACE,
    Step,
    Write,
    WriteError,
)
from acp_core.files.transaction import Failed as Failed
from acp_core.files.transaction import Interrupted as Interrupted
from acp_core.files.transaction import Recovered as Recovered
from acp_core.person.paths import state_folder
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import obj, strings

ACP_HOME = ".acp"
SEAL = f"{ACP_HOME}/governed-seal.json"
FORMER_SEAL = ".agentxchain/acp-seal.json"
"""Where the seal was before; it is taken over with the next writing."""
STATE_COPY = f"{ACP_HOME}/governed-state.json"
"""The state as acp wrote it last, for whoever of those that share the folder needs it."""
SEALED = (schema.STATE, schema.HISTORY, schema.LEDGER, schema.EVENTS)
_TRIES = 3


class Seal(NamedTuple):
    """The digests as they were sealed, and the files that were marked since."""

    files: dict[str, str]
    marked: tuple[str, ...]


def changed_since_sealed(root: Path, journal: Path) -> tuple[str, ...]:
    """The sealed files of a run that somebody else wrote; () where nothing was ever sealed.

    Args:
        root: the run's folder.
        journal: the file that stands while acp writes; until it is gone nothing is said.
    """
    for _ in range(_TRIES):
        before = read_seal(root)
        if before is None:
            return ()
        digests = {name: _digest_of(root / name) for name in before.files}
        if journal.exists():
            return ()
        if read_seal(root) == before:
            others = (n for n, digest in digests.items() if digest and digest != before.files[n])
            return tuple(dict.fromkeys((*before.marked, *others)))
    return ()


def sealing(root: Path, steps: Sequence[Step]) -> list[Step]:
    """The steps that seal what other steps write, one for each run of acp's own.

    Args:
        root: what the steps' paths are relative to.
        steps: the others; each knows what stood there before.

    Raises:
        WriteError: a log cannot be read, so that it cannot be sealed.
    """
    found = []
    for run, own in _by_run(steps).items():
        if not _is_ours(run, own):
            continue
        seal = read_seal(run) or Seal({}, ())
        files, marked = dict(seal.files), list(seal.marked)
        for name, step in own.items():
            before, after = _around(step)
            other = files.get(name, before) not in (before, after)  # after: it is brought back
            if name == schema.STATE and _is_replaced(step):
                marked = [each for each in marked if each != name]
            elif other:
                marked.append(name)
            files[name] = after
        wanted = [*ignoring_own_files(run), _write(run, files, marked)]
        if os.path.lexists(run / FORMER_SEAL):
            wanted.append(Write(run / FORMER_SEAL, REMOVE))
        found += [transaction.prepare(root, each) for each in wanted]
    return found


def ignoring_own_files(run: Path) -> list[Write]:
    """The write that hides acp's own folder from git; none where that was done."""
    path = run / ACP_HOME / ".gitignore"
    return [] if os.path.lexists(path) else [Write(path, REPLACE, b"*\n")]


def sound(root: Path, names: Iterable[str]) -> Write | None:
    """The write with which a human takes sealed files as they are; None where there is no seal.

    Raises:
        Unreadable: one of them is there, and cannot be read.
    """
    seal = read_seal(root)
    if seal is None:
        return None
    taken = set(names)
    files = seal.files | {name: _digest(_content(root / name)) for name in taken}
    return _write(root, files, [name for name in seal.marked if name not in taken])


def keep_copy(root: Path, steps: Sequence[Step]) -> None:
    """Keep what acp wrote as the state of a run of its own, beside the run's files.

    It shows what somebody else changed, and can be brought back. Never raises: without it, only
    that something changed is known.
    """
    for run, own in _by_run(steps).items():
        step = own.get(schema.STATE)
        if step is not None and _is_ours(run, own):
            kept_copy(run, step.data)


def kept_copy(run: Path, state: bytes) -> None:
    """Keep a state as one that acp wrote, or took over. Never raises."""
    with contextlib.suppress(OSError):
        place = transaction.writable(run, STATE_COPY)
        if place is not None:
            atomic.replace(place, state)


def is_sealed(root: Path) -> bool:
    """Whether acp sealed a state of the run."""
    seal = read_seal(root)
    return seal is not None and schema.STATE in seal.files


def last_sealed(root: Path) -> bytes | None:
    """The state of a run as acp wrote and sealed it last; None where that is not known any more."""
    seal = read_seal(root)
    if seal is None or schema.STATE in seal.marked:
        return None
    for place in (root / STATE_COPY, _former(root)):
        with contextlib.suppress(Unreadable):
            data = _content(place)
            if data and _digest(data) == seal.files.get(schema.STATE):
                return data
    return None


def _former(run: Path) -> Path:
    """Where the copy was kept before: in the person's state folder."""
    name = os.path.realpath(run).encode(errors="surrogateescape")
    return state_folder() / "governed/states" / f"{hashlib.sha256(name).hexdigest()[:24]}.json"


def _write(run: Path, files: dict[str, str], marked: Sequence[str]) -> Write:
    value = {"schema_version": "1.0", "files": files, "marked": list(dict.fromkeys(marked))}
    return Write(run / SEAL, REPLACE, (json.dumps(value, indent=1) + "\n").encode())


def read_seal(root: Path) -> Seal | None:
    """The seal of a run; None where there is none that can be read."""
    loaded = schema.read_object(root / SEAL)
    if loaded.missing:
        loaded = schema.read_object(root / FORMER_SEAL)
    if loaded.reason:
        return None
    files = {
        name: value
        for name, value in obj(loaded.value, "files").items()
        if name in SEALED and isinstance(value, str)
    }
    marked = tuple(name for name in strings(loaded.value, "marked") if name in SEALED)
    return Seal(files, marked)


def _by_run(steps: Sequence[Step]) -> dict[Path, dict[str, Step]]:
    """The steps that write sealed files, by the folder of the run and the file's name in it."""
    found: dict[Path, dict[str, Step]] = {}
    for step in steps:
        name = f"{step.path.parent.name}/{step.path.name}"
        if name in SEALED and step.verb != REMOVE:
            found.setdefault(step.path.parent.parent, {})[name] = step
    return found


def _is_ours(run: Path, own: dict[str, Step]) -> bool:
    """Whether acp made the run, as its state will say."""
    step = own.get(schema.STATE)
    written = None if step is None else schema.parsed(step.data)
    state = schema.read_object(run / schema.STATE).value if written is None else written
    return obj(state, "provenance").get("created_by") == "acp"


def _is_replaced(step: Step) -> bool:
    """Whether nothing of the state that stood there goes on: it could not be read, or is made anew."""
    before = schema.parsed(step.before or b"")
    return not before or schema.parsed(step.data).get("rebuilt_at") != before.get("rebuilt_at")


def _around(step: Step) -> tuple[str, str]:
    """The digest of a step's file before it and after it."""
    if step.verb == APPEND:
        try:
            held = (_content(step.path) or b"")[: step.size]
        except Unreadable as error:
            raise WriteError(
                f"{step.path.name} cannot be read: {schema.why(error.reason)}"
            ) from None
        return _digest(held if step.size else None), _digest(held + step.data)
    return _digest(step.before), _digest(step.data)


def _digest_of(path: Path) -> str:
    """The digest of a file as it stands; "" where it cannot be read, which tells of nobody."""
    try:
        return _digest(_content(path))
    except Unreadable:
        return ""


def _content(path: Path) -> bytes | None:
    """What a file holds; None where there is none.

    Raises:
        Unreadable: it is there, and cannot be read.
    """
    try:
        return read_bounded(path, schema.LOG_LIMIT)
    except Unreadable as error:
        if error.missing:
            return None
        raise


def _digest(data: bytes | None) -> str:
    """The digest of a file's content; one that is empty is as one that is not there."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}" if data else "empty"


RUN_HOME, COORDINATOR_HOME = ".agentxchain", ".coordinator"
JOURNAL = transaction.JOURNAL
_ABOVE = 6  # folders above a run in which an initiative is looked for


def interrupted(root: Path, home: str = RUN_HOME) -> Interrupted | None:
    """The writing that was begun here and not finished, or None; never raises."""
    return transaction.interrupted(root, home)


def fault(root: Path, home: str = RUN_HOME) -> str:
    """Why what was interrupted can be neither finished nor undone; "" where it can, or nothing was."""
    return transaction.fault(root, home)


def coordinators_above(root: Path) -> Iterator[Path]:
    """The folders above a run, nearest first, in which a coordinator keeps its files."""
    for place in list(Path(os.path.abspath(root)).parents)[:_ABOVE]:
        if (place / schema.MULTI_CONFIG).is_file() and (place / COORDINATOR_HOME).is_dir():
            yield place
