"""What a person does to a running attempt: send it a message, or cancel it.

Both are files, like everything between a runner and others. Whoever holds the session takes a
message and says what came of it; a cancelled attempt is named in a file that also those read who
watch it, so that it counts as cancelled whoever is killed meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from acp_core.agents import codec, ending
from acp_core.agents.live.journal import RUNNER
from acp_core.agents.live.state import Files
from acp_core.agents.place import Place
from acp_core.agents.streams.progress import items, string, table
from acp_core.files import modes

_STEP = 0.05  # seconds between two looks for a reply
_PATIENCE = 12.0  # seconds for a program to take a message: the runner gives it ten


@dataclass(frozen=True, slots=True)
class Steering:
    """A message for a turn.

    Attributes:
        number: of its run.
        text: what the agent gets; ``by`` who sends it.
        ids: what it holds: a message whose ids were delivered in this turn is not delivered again.
    """

    number: int
    text: str
    by: str
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a message: whether the agent took it, and why not."""

    delivered: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """An attempt that a person cancelled: its number, and who did."""

    number: int
    by: str


def can_steer(where: Place) -> bool:
    """Whether the session that is held takes messages in the middle of a turn."""
    held = Files(where).load()
    return held is not None and held.steers and held.process.alive()


def steer(where: Place, message: Steering) -> Reply:
    """Send a message to a running turn, and wait for what comes of it.

    Raises:
        OSError: it cannot be written.
    """
    files = Files(where)
    modes.private_folder(files.messages)
    path = files.messages / f"{time.time_ns()}-{secrets.token_hex(4)}.json"
    reply = path.with_suffix(".reply")
    codec.write(path, message)
    _wake(files)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and _is_held(files):
        with contextlib.suppress(codec.CodecError):
            found = codec.read(Reply, reply)
            reply.unlink(missing_ok=True)
            return found
        time.sleep(_STEP)
    path.unlink(missing_ok=True)
    return Reply(False, "the session did not take it in time")


def delivered(journal: Path) -> frozenset[str]:
    """The ids of what was delivered in a turn, as its journal tells."""
    found: set[str] = set()
    with contextlib.suppress(OSError), journal.open("rb") as lines:
        for line in lines:
            if b'"ids"' in line:
                with contextlib.suppress(ValueError, RecursionError):
                    record = table(json.loads(line))
                    if record.get("direction") == RUNNER:
                        found.update(map(string, items(table(record.get("message")).get("ids"))))
    return frozenset(found)


def messages(files: Files) -> Iterator[tuple[Path, Steering]]:
    """The messages that were sent, oldest first; each is taken away and needs a `reply`."""
    try:
        names = sorted(os.listdir(files.messages))
    except OSError:
        return
    for path in (files.messages / name for name in names if name.endswith(".json")):
        with contextlib.suppress(codec.CodecError, OSError):
            message = codec.read(Steering, path)
            path.unlink()
            yield path, message


def reply(path: Path, answer: Reply) -> None:
    """Say what came of a message."""
    with contextlib.suppress(OSError):
        codec.write(path.with_suffix(".reply"), answer)


def sweep(files: Files) -> None:
    """Take away messages and replies that nobody waits for any more."""
    with contextlib.suppress(OSError):
        for path in files.messages.iterdir():
            path.unlink(missing_ok=True)


def cancel(where: Place, number: int, by: str) -> None:
    """Cancel an attempt: note it, and wake who holds its session.

    Raises:
        OSError: it cannot be written.
    """
    codec.write(where.cancelled, Cancelled(number, by))
    _wake(Files(where))


def cancelled_by(where: Place, number: int) -> str:
    """Who cancelled an attempt; "" where nobody did."""
    with contextlib.suppress(codec.CodecError):
        found = codec.read(Cancelled, where.cancelled)
        return found.by if found.number == number else ""
    return ""


def _is_held(files: Files) -> bool:
    held = files.load()
    return held is not None and held.process.alive()


def _wake(files: Files) -> None:
    held = files.load()
    if held is not None:
        ending.send(held.process, signal.SIGUSR1)
