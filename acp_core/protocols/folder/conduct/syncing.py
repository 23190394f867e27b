"""The process that keeps a shared folder and its store the same, and publishes for who cannot.

It looks at the store, brings what is new, publishes documents that have been quiet for a moment,
and takes up what others in this folder hand over in ``.acp/run/out``: agents in a sandbox, and the
skill's scripts. Who handed something over is the owner of its file. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from acp_core import __version__
from acp_core.files import atomic, claims
from acp_core.files.locked import LogError, locked
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.conduct.asked import Requests
from acp_core.protocols.folder.write import handover, shared
from acp_core.protocols.folder.write.append import Appended, Request
from acp_core.protocols.folder.write.opened import is_shared
from acp_core.protocols.kit.command_line import say, say_json, warn
from acp_core.stores import base as manifests
from acp_core.stores import hosts
from acp_core.stores.address import Address
from acp_core.stores.engine import Engine, HostState, StoreUnreachable
from acp_core.stores.hosts import SIGN_OF_LIFE
from acp_core.stores.opening import open_engine

_STEP = 0.05  # seconds between two looks into the folder
_LOOK = 1.0  # seconds between two looks at the store
_LONGEST_PAUSE = 60.0
_MAKING = 0.5  # seconds for which a file that is being made may have another name
_TELL = 10.0  # seconds at least between two signs of this host
_QUIET = 2.0  # seconds for which a document must not have changed before it leaves
_NAME = re.compile(r"[0-9a-f]{24}\.json")
_TEXTS = ("participant", "event", "summary", "doc", "role", "sha256", "key", "review")


def _nothing() -> None:
    pass


def _always() -> bool:
    return True


def run(
    folder: str,
    *,
    as_json: bool = False,
    quiet: bool = False,
    ready: Callable[[], object] = _nothing,
    goes_on: Callable[[], bool] = _always,
    make: Callable[..., Process] | None = None,
) -> int:
    """Keep a folder and its store the same until interrupted; the exit code.

    Args:
        folder: the shared folder.
        as_json: tell what happens as JSON, an object a line.
        quiet: tell nothing.
        ready: called once others can hand over.
        goes_on: asked now and then.
        make: makes what does it; `Process` by default.

    Raises:
        Refused: the folder is not shared, another process does it, or the store refuses what is here.
    """
    if not is_shared(folder):
        raise Refused(f"{folder} is not shared; `acp share {folder} URL` shares it")
    address = manifests.pinned_address(folder)
    with alone(folder), open_engine(address) as engine:
        process = (make or Process)(folder, address, engine, as_json=as_json, quiet=quiet)
        process.say(f"synchronizing {folder} with {address.text}")
        ready()
        try:
            while manifests.is_shared(folder) and goes_on():
                process.step()
                time.sleep(_STEP)
        except KeyboardInterrupt:
            return 130
        finally:
            process.close()
    return 0


@contextlib.contextmanager
def alone(folder: str) -> Iterator[None]:
    """Hold the lock by which others know that this process publishes for the folder."""
    try:
        claims.prepare(folder, "out")
    except claims.ClaimError as error:
        raise Refused(str(error)) from None
    path = os.path.join(folder, handover.LOCK)
    with contextlib.suppress(FileExistsError):
        atomic.create(path, b"")
    try:
        with locked(path, timeout=0.2):
            yield
    except LogError:
        raise Refused(f"another process synchronizes {folder} already") from None


class Step(NamedTuple):
    """What one look at the store did: what came, what left, what is to be said; the seq."""

    came: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seq: int | None = None


class Process:
    """One folder and its store."""

    requests_of: type[Requests] | None = Requests
    """Takes up what other hosts ask for; None where nobody can be asked."""
    is_mirror = False

    def __init__(
        self, folder: str, address: Address, engine: Engine, *, as_json: bool, quiet: bool
    ) -> None:
        """Make it; nothing is read yet."""
        self.folder, self.address, self.engine = folder, address, engine
        self._as_json, self._quiet = as_json, quiet
        self._reached: bool | None = None
        self._told: HostState | None = None
        self._told_at = float("-inf")
        self._next = 0.0
        self._pause = _LOOK
        self._said = ""
        self._changed: tuple[tuple[str, int, int], ...] = ()
        self._quiet_since = time.monotonic()
        made = self.requests_of
        self._requests = None if made is None else made(folder, address, engine, self.say)

    @property
    def tip(self) -> str:
        """Where the folder stands, as the store calls it; "" where that is not known."""
        base = manifests.read_base(self.folder)
        return base.tip.id if base else ""

    @property
    def next_look(self) -> float:
        """When it is time to look at the store again, by the clock that only goes forward."""
        return self._next

    @property
    def failed(self) -> bool:
        """Whether the last look came to nothing."""
        return self._pause > _LOOK

    def look_soon(self) -> None:
        """Have the next step look at the store, unless looking fails."""
        if not self.failed:
            self._next = min(self._next, time.monotonic())

    def tell(self) -> None:
        """Tell the other hosts who acts here, where that is due; the first step tells it first."""
        if self._told is not None and not self.failed:
            self._tell()

    @property
    def plays(self) -> bool:
        """Whether loops take part here, as far as the other hosts were told."""
        return self._told is not None and bool(self._told.participants)

    def is_quiet(self) -> bool:
        """Whether no document has changed for a moment: else none is published."""
        return self._is_quiet(time.monotonic())

    def serve(self) -> bool:
        """Publish what was handed over, one after the other; whether there was anything."""
        out = os.path.join(self.folder, handover.OUT)
        names: list[str] = []
        with contextlib.suppress(OSError):
            names = sorted(each for each in os.listdir(out) if _NAME.fullmatch(each))
        for name in names:
            self._publish(out, name)
        return bool(names)

    def step(self) -> None:
        """Take up what was handed over, and look at the store where it is time."""
        self.serve()
        now = time.monotonic()
        quiet = self._is_quiet(now)
        try:
            ended = self._requests is not None and self._requests.finish()
            if not ended and now < self._next:
                return
            synced = self.sync(quiet)
            if self._requests is not None:
                # Before other hosts hear of this one: what they ask then was not missed.
                self._requests.check()
            self._tell()
        except StoreUnreachable as error:
            self._note(str(error))
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
            self._warn(f"{error}; the next attempt is in {self._pause:.0f} s")
        except (Refused, OSError) as error:
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
            self._warn(str(error))
        else:
            self._note("")
            self._pause, self._said = _LOOK, ""
            for note in synced.notes:
                self._warn(note)
            if synced.came or synced.left or not self._next:
                told = "up to date" if synced.seq is None else f"seq {synced.seq}"
                self.say(told, came=synced.came, left=synced.left)
        self._next = time.monotonic() + self._pause

    def sync(self, quiet: bool) -> Step:
        """Look at the store once; documents leave where nobody writes them just now.

        Raises:
            Refused: the store cannot be read, or what it holds is refused.
            OSError: a file could not be written.
        """
        done = shared.sync(self.folder, self.engine, publish=quiet)
        return Step(done.came, done.left, done.notes, done.done.base.tip.seq)

    def close(self) -> None:
        """Nothing more is done by it."""
        if self._requests is not None:
            self._requests.close()

    @property
    def conducts(self) -> bool:
        """Whether a run that this host conducts must be kept in its mirror."""
        return False

    def watched(self) -> Iterator[Path]:
        """The folders in which a change matters."""
        yield Path(self.folder)

    def _note(self, reason: str) -> None:
        """Say in the folder whether the store is reached: loops look again when that changes."""
        if self._reached is (not reason):
            return
        self._reached = not reason
        with contextlib.suppress(OSError):
            value = {"schema": "acp.sync/1", "reached": not reason, "reason": reason, "at": _time()}
            path = os.path.join(self.folder, handover.NOTE)
            atomic.replace(path, json.dumps(value).encode() + b"\n")

    def _tell(self) -> None:
        """Tell the other hosts who acts here: when that changes, and now and then as a sign of life."""
        now = time.monotonic()
        if now < self._told_at + _TELL:
            return
        state = host_state(self.folder)
        same = self._told is not None and self._told._replace(at=state.at) == state
        if same and (not state.participants or now < self._told_at + SIGN_OF_LIFE):
            return
        self.engine.tell(state)
        self._told, self._told_at = state, now

    def say(self, text: str, **facts: Any) -> None:
        """Tell whoever runs this process."""
        if self._quiet:
            return
        if self._as_json:
            say_json({"schema": "acp.sync/1", "text": text, **facts})
        else:
            words = [
                f"{name}: {', '.join(map(clean_line, each))}"
                for name, each in facts.items()
                if each
            ]
            say(" · ".join([clean_line(text), *words]))
        sys.stdout.flush()

    def _warn(self, text: str) -> None:
        if text != self._said and not self._quiet:
            warn(text)
            self._said = text

    def _is_quiet(self, now: float) -> bool:
        """Whether no document has changed for a moment: else somebody is writing it."""
        found = []
        for path in (*schema.DOCUMENTS, shared.README):
            with contextlib.suppress(OSError):
                seen = os.stat(os.path.join(self.folder, path))
                found.append((path, seen.st_mtime_ns, seen.st_size))
        if tuple(found) != self._changed:
            self._changed, self._quiet_since = tuple(found), now
        return now - self._quiet_since >= _QUIET

    def _publish(self, out: str, name: str) -> None:
        asked = os.path.join(out, name)
        taken = f"{asked.removesuffix('.json')}.taken"
        try:
            found = _whole(asked)
            os.rename(asked, taken)
        except OSError:
            return
        answer: dict[str, Any]
        try:
            mine = (
                stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.geteuid()
            )
            if not mine:
                raise Refused("not appended: another account asks; it must run `acp sync` itself")
            request = _request(self.folder, json.loads(read_bounded(taken, handover.LIMIT)))
            answer = _answer(
                shared.publish(
                    request,
                    self.address,
                    self.engine,
                    now=lambda: datetime.now(UTC),
                    before_write=_nothing,
                )
            )
        except Refused as error:
            answer = {"error": str(error), "code": error.code}
        except (Unreadable, ValueError, TypeError, RecursionError) as error:
            answer = {"error": f"not appended: the request cannot be read ({error})"}
        except OSError as error:
            answer = {"error": f"not appended: {error.strerror or error}"}
        with contextlib.suppress(OSError):
            done = f"{asked.removesuffix('.json')}.done"
            data = json.dumps(answer).encode()
            handover.note(self.folder, name.removesuffix(".json"), data)
            atomic.create(done, data, sync=False)  # for who waits just now
            os.unlink(taken)


def _whole(path: str) -> os.stat_result:
    """What stands at a path; whoever makes a file there has it under two names for a moment.

    Raises:
        OSError: nothing does.
    """
    until = time.monotonic() + _MAKING
    while (found := os.lstat(path)).st_nlink > 1 and time.monotonic() < until:
        time.sleep(0.001)
    return found


def host_state(folder: str) -> HostState:
    """What this host says of itself: whose loops run here."""
    # By its name: rooms that agents run under a bare Python come here, and never need it.
    permits = import_module("acp_core.protocols.folder.conduct.permits")
    people: dict[str, dict[str, Any]] = {}
    for each in claims.listed(folder, "loops"):
        name = unquote(each.name.removeprefix("loops/"))
        if each.held and each.owner is not None:
            people[name] = {
                "pid": each.owner.process.pid,
                "since": each.owner.since,
                "account": each.owner.account,
            }
    for name, waiting in permits.waiting_agents(folder).items():
        people.setdefault(name, {})[permits.KEY] = waiting
    return HostState(
        hosts.this_host(), hosts.account(), claims.boot(), __version__, people, _time()
    )


def _time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _request(folder: str, value: Any) -> Request:
    """An event that was handed over: a program's word, checked as any.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, dict):
        raise ValueError("no object")
    texts = {name: value.get(name) for name in _TEXTS}
    if not all(each is None or isinstance(each, str) for each in texts.values()):
        raise ValueError("a field is not text")
    numbers = {name: value.get(name) for name in ("reply_to", "expect_seq")}
    if not all(each is None or type(each) is int for each in numbers.values()):
        raise ValueError("a field is not a number")
    if None in (texts["participant"], texts["event"], texts["summary"]):
        raise ValueError("a field is missing")
    fields: dict[str, Any] = {**texts, **numbers}
    return Request(folder, take=value.get("take") is True, **fields)


def _answer(appended: Appended) -> dict[str, Any]:
    entry = appended.entry._asdict()
    entry.pop("faults")
    return {
        "entry": entry,
        "phase": appended.phase,
        "waiting": list(appended.waiting),
        "existing": appended.existing,
        "warnings": list(appended.warnings),
    }
