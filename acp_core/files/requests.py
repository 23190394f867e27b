"""What one account asks of a process of another one, which holds a claim: files below ``.acp/run``.

A request is a file of its own, ``requests/ID.json``. Who asks is the owner of the file, not its
text. The holder of the claim takes it up by renaming it, so that it is done at most once, and
answers in ``ID.answer``. Which acts it does is for the holder to decide. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acp_core.files import atomic, claims
from acp_core.files.claims import Seen, prepare, run_folder, seen
from acp_core.files.reading import Unreadable, read_bounded

STOP = "end the process"
"""The act that every holder of a claim does: it ends what it started, and itself."""
FOLDER = "requests"
_NAME = re.compile(r"[0-9a-f]{24}\.json")
_LIMIT = 256 << 10  # bytes of a request
_MOST = 100  # requests that are looked at
_OLD = 7 * 86_400  # seconds after which what nobody took up has expired
_STEP = 0.05


@dataclass(frozen=True, slots=True)
class Request:
    """Something that is asked for.

    Attributes:
        path: its file.
        of: the claim whose holder is asked.
        act: what is asked for.
        values: more about it; a stranger's, to be checked.
        uid, account: who asks.
    """

    path: Path
    of: str
    act: str
    values: dict[str, Any]
    uid: int
    account: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request: ``state`` is done, refused or unknown."""

    state: str
    sentence: str


def ask(project: str | os.PathLike[str], of: str, act: str, values: dict[str, Any]) -> Path:
    """Ask the holder of a claim for something.

    Args:
        project: the folder of the collaboration.
        of: the name of the claim, see `acp_core.files.claims.take`.
        act: `STOP`, or the name of an action that the holder answers requests for.
        values: the inputs of the action; whatever JSON can hold.

    Returns:
        The request's file, by which `wait` and `withdraw` know it.

    Raises:
        ClaimError: something stands in the place of the folder.
        OSError: it cannot be written.
    """
    folder = prepare(project, FOLDER)
    path = folder / f"{secrets.token_hex(12)}.json"
    now = datetime.now(UTC).isoformat(timespec="seconds")
    data = json.dumps({"of": of, "act": act, "values": values, "at": now}).encode()
    atomic.create(path, data, private=not atomic.is_shared(folder.stat()))
    return path


def pending(project: str | os.PathLike[str], of: str) -> list[Request]:
    """What the holder of a claim is asked for and did not take up, oldest first; never raises."""
    folder = run_folder(project) / FOLDER
    try:
        names = [each for each in os.listdir(folder) if _NAME.fullmatch(each)]
    except OSError:
        return []
    found = []
    for name in sorted(names)[:_MOST]:
        with contextlib.suppress(OSError, Unreadable, ValueError, RecursionError):
            age, request = _read(folder / name)
            if age > _OLD:
                request.path.unlink()
            elif request.of == of:
                found.append((-age, request))
    return [request for _, request in sorted(found, key=lambda each: each[0])]


def take(request: Request) -> bool:
    """Take a request up; False where it was withdrawn, or somebody else has."""
    try:
        os.rename(request.path, _taken(request.path))
    except OSError:
        return False
    return True


def answer(request: Request, state: str, sentence: str) -> None:
    """Say what came of a request that was taken up. A full disk loses it.

    Args:
        request: one that `take` returned True for.
        state: ``done``, ``refused`` or ``unknown``.
        sentence: what happened, for whoever asked.
    """
    path = _answer(request.path)
    with contextlib.suppress(OSError):
        private = not atomic.is_shared(path.parent.stat())
        data = json.dumps({"state": state, "sentence": sentence}).encode()
        atomic.create(path, data, private=private)
        _taken(request.path).unlink()


def wait(
    project: str | os.PathLike[str], of: str, path: Path, seconds: float
) -> tuple[Answer | None, Seen]:
    """Wait for the answer to a request that was made, as long as somebody may give it.

    Args:
        project: the folder.
        of: the claim whose holder was asked.
        path: the request.
        seconds: how long at most.

    Returns:
        The answer, None where there is none yet; and who holds the claim.
    """
    until = time.monotonic() + seconds
    while True:
        holder = seen(project, of)
        found = _answered(path)
        if found is not None or not holder.held or time.monotonic() > until:
            return found, holder
        time.sleep(_STEP)


def withdraw(path: Path) -> bool:
    """Take a request back; False where it was taken up already."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _answered(path: Path) -> Answer | None:
    place = _answer(path)
    try:
        value = json.loads(read_bounded(place, _LIMIT))
        found = Answer(str(value["state"]), str(value["sentence"]))
    except (OSError, Unreadable, ValueError, KeyError, TypeError):
        return None
    with contextlib.suppress(OSError):
        place.unlink()
    return found


def _read(path: Path) -> tuple[float, Request]:
    """A request, and how old it is.

    Raises:
        OSError, Unreadable, ValueError: it is none.
    """
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:  # a link would forge who asks
        raise ValueError("no request")
    value = json.loads(read_bounded(path, _LIMIT))
    if not isinstance(value, dict):
        raise ValueError("no request")
    of, act, values = value.get("of"), value.get("act"), value.get("values")
    if not (isinstance(of, str) and isinstance(act, str) and isinstance(values, dict)):
        raise ValueError("no request")
    account = claims.account(found.st_uid)
    return time.time() - found.st_mtime, Request(path, of, act, values, found.st_uid, account)


def _taken(path: Path) -> Path:
    return path.with_suffix(".taken")


def _answer(path: Path) -> Path:
    return path.with_suffix(".answer")
