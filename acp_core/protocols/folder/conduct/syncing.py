"""The process that keeps a shared folder and its store the same, and publishes for who cannot.

It looks at the store, brings what is new, publishes documents that have been quiet for a moment,
and takes up what others in this folder hand over in ``.acp/run/out``: agents in a sandbox, and the
skill's scripts. Who handed something over is the owner of its file. A mirror is filled by the one
host that conducts the collaboration, and by no other.

One process for each account and store does that for all folders that are wanted, for as long as
somebody looks at them or a loop runs there: one look at the store serves them all. Who wants a folder
holds a lock on a file in the account's state folder, so that the end of whoever looks, however it ends,
is the end of the want. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import secrets
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from acp_core import __version__
from acp_core.agents import background
from acp_core.files import atomic, claims
from acp_core.files.locked import LogError, locked
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model import Status
from acp_core.model.clock import utc_now
from acp_core.model.errors import NotStarted, Refused
from acp_core.model.text import clean_line
from acp_core.person.paths import state_folder
from acp_core.protocols.folder.conduct.asked import MirrorRequests, Requests
from acp_core.protocols.folder.read import following
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import is_shared
from acp_core.protocols.folder.write import handover, shared
from acp_core.protocols.folder.write import sharing as shares
from acp_core.protocols.folder.write.append import Appended, Request
from acp_core.protocols.folder.write.sharing import bring_mirror, is_reader
from acp_core.protocols.kit.command_line import say, say_json, warn
from acp_core.protocols.kit.mirroring import Contents, collect, summary
from acp_core.protocols.kit.mirroring import kind_of as kind_of
from acp_core.protocols.processes import SYNC
from acp_core.stores import address as stores_address
from acp_core.stores import asking, hosts, mirror, tree
from acp_core.stores import base as manifests
from acp_core.stores.address import Address
from acp_core.stores.engine import (
    Change,
    Engine,
    HistoryRewritten,
    HostState,
    StoreUnreachable,
    Tip,
    TipMoved,
)
from acp_core.stores.hosts import SIGN_OF_LIFE, open_engine
from acp_core.stores.mirror import File, Manifest


class Leaving(NamedTuple):
    """What sharing a collaboration as a mirror gives to a store."""

    address: Address
    contents: Contents


def leaving(folder: str, address: Address) -> Leaving:
    """What would leave if the folder was shared. Writes nothing.

    Raises:
        Refused: it cannot be shared.
    """
    if stores_address.is_shared(folder) and not stores_address.pinned_mark(folder):
        raise Refused(f"{folder} is shared already; `acp unshare {folder}` ends that")
    return Leaving(address, collect(folder, utc_now()))


def share(folder: str, address: Address) -> Leaving:
    """Begin a mirror of the folder's collaboration in a store.

    Raises:
        Refused: it is not shared.
        OSError: a file could not be read or written.
    """
    plan = leaving(folder, address)
    mark = stores_address.pinned_mark(folder) or secrets.token_hex(16)
    with open_engine(address) as engine:
        stores_address.pin(folder, address, mark=mark)
        try:
            publisher = Publisher(folder, engine, mark)
            if publisher.begin(plan.contents):
                # Nobody can have asked before: what is asked from now on was not missed.
                asking.Ledger(address, hosts.this_host()).looked(time.time())
            stores_address.write_share(folder, address)
        except BaseException:
            if not stores_address.is_shared(folder):
                stores_address.unpin(folder)
            raise
    return plan


class Publisher:
    """Fills one mirror. For one thread at a time.

    Args:
        folder: the collaboration.
        engine: its store.
        mark: of the mirror, as this account pinned it.
    """

    def __init__(self, folder: str, engine: Engine, mark: str) -> None:
        self._folder, self._engine, self._mark = folder, engine, mark
        self._tip: Tip | None = None
        self._last: Manifest | None = None
        self.contents: Contents | None = None

    @property
    def tip(self) -> str:
        """Where the mirror stands, as the store calls it; "" where that is not known."""
        return self._tip.id if self._tip else ""

    def begin(self, contents: Contents) -> bool:
        """Make the mirror in the store; one that a killed call has made is taken up again.

        Returns:
            Whether it is new.

        Raises:
            Refused: another host has one of that name there.
        """
        made, files = self._manifest(contents, None)
        try:
            self._tip = self._engine.publish(None, self._change(made, files, None))
            self._last, self.contents = made, contents
        except TipMoved:
            self._read()
            return False
        return True

    def publish(self) -> bool:
        """Bring what changed into the mirror; whether there was anything.

        Raises:
            Refused: the mirror is another host's by now, or the store cannot be reached.
            OSError: a file cannot be read.
        """
        if self._tip is None:
            self._read()
        contents = self.contents = collect(self._folder, utc_now())
        made, files = self._manifest(contents, self._last)
        last = self._last
        if last is not None and _same(made, last):
            return False
        try:
            self._tip = self._engine.publish(self._tip, self._change(made, files, last))
        except TipMoved:
            self._tip = None  # whoever did that: it is read anew, and judged
            self._read()
            return self.publish()
        self._last = made
        return True

    def _read(self) -> None:
        """See where the mirror stands, and that it is this folder's."""
        found = self._engine.read(None)
        if not mirror.is_manifest(found.protocol):
            raise Refused("the store has a folder collaboration of that id: use another --id")
        there = mirror.decode(found.protocol)
        if there.mark != self._mark or (there.host, there.account) != me():
            raise Refused(
                f"{clean_line(there.host, 80)} ({clean_line(there.account, 80)}) controls this run and fills its "
                "mirror: use `acp join` to see it, or another --id"
            )
        if self._last is not None and there.number < self._last.number:
            raise HistoryRewritten(
                "the store holds an earlier state of the mirror: it was put back"
            )
        self._tip, self._last = found.tip, there

    def _manifest(
        self, contents: Contents, before: Manifest | None
    ) -> tuple[Manifest, list[tuple[File, bytes]]]:
        known = {each.name: each for each in before.files} if before else {}
        files = [
            (mirror.file_of(e.name, e.written, e.data, known.get(e.name)), e.data)
            for e in contents.files
        ]
        host, account = me()
        name = os.path.basename(os.path.realpath(self._folder))
        made = Manifest(
            self._mark, before.number + 1 if before else 1, contents.protocol,
            "collaboration" if tree.against(name) else name, host, account,
            datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), tuple(file for file, _ in files),
            summary(contents), contents.acts,
        )  # fmt: skip
        tree.check([mirror.place(made, each.name) for each in made.files], mirror.DOTTED)
        return made, files

    def _change(
        self, made: Manifest, files: list[tuple[File, bytes]], before: Manifest | None
    ) -> Change:
        data = mirror.encode(made)
        if len(data) > mirror.LARGEST:
            raise Refused(f"{self._folder} has too many files to be shared")
        told = dict(made.standing)
        waiting = tuple(each[0] for each in told["people"] if len(each) > 2)
        return Change(
            log=mirror.line(self._mark), line=None, seq=1, protocol=data,
            documents=mirror.documents(files, before), words=f"mirror {made.number}",
            account=made.account, host=made.host, phase=str(told["phase"]), waiting=waiting,
            standing=told,
        )  # fmt: skip


def _same(one: Manifest, other: Manifest) -> bool:
    """Whether two states of a mirror differ in nothing but when they were made."""
    return mirror.encode(one) == mirror.encode(other._replace(number=one.number, at=one.at))


def me() -> tuple[str, str]:
    """This host and account."""
    return hosts.this_host(), hosts.account()


def is_mirror(folder: str) -> bool:
    """Whether this account fills or reads a mirror in a folder."""
    return bool(stores_address.pinned_mark(folder)) or is_reader(folder)


def plan(folder: str, url: str, id: str) -> Leaving:
    """What would leave if the folder's collaboration was mirrored.

    Raises:
        Refused: it cannot be shared so.
    """
    return leaving(folder, shares.address_for(folder, url, id))


def begin(folder: str, url: str, id: str) -> str:
    """Begin a mirror, and the process that keeps it; a sentence on that.

    Raises:
        Refused: it is not shared.
        OSError: a file could not be read or written.
    """
    done = share(folder, shares.address_for(folder, url, id))
    said = f"Shared as a mirror. Others join with: acp join {clean_line(done.address.typed, 300)} FOLDER"
    try:
        begin_syncing(folder)
    except NotStarted as error:
        return f"{said}. To keep it up to date, run: acp sync {clean_line(folder, 300)} ({error})"
    return f"{said}. acp keeps it up to date in the background until the run has ended."


def sync_once(folder: str) -> tuple[str, ...]:
    """Look at the store once; sentences on that.

    Raises:
        Refused: the store cannot be read, or what it holds is refused.
        OSError: a file could not be written.
    """
    with open_engine(stores_address.pinned_address(folder)) as engine:
        if mark := stores_address.pinned_mark(folder):
            left = Publisher(folder, engine, mark).publish()
            return ("published what changed" if left else "the mirror is up to date",)
        with manifests.held(folder):
            came = bring_mirror(folder, engine)
    return (
        *([f"from the store: {', '.join(map(clean_line, came))}"] if came else []),
        "up to date",
    )


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
        self._noted: tuple[str, bool] | None = (
            None  # why the store is not read, and if it is refused
        )
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
            self._note(str(error), refused=True)
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
        if self._noted == ("", False):
            following.followed(self.folder)
        if self._requests is not None:
            self._requests.close()

    @property
    def conducts(self) -> bool:
        """Whether a run that this host conducts must be kept in its mirror."""
        return False

    def watched(self) -> Iterator[Path]:
        """The folders in which a change matters."""
        yield Path(self.folder)

    def _note(self, reason: str, *, refused: bool = False) -> None:
        """Say in the folder whether the store is read: loops look again when that changes."""
        if self._noted == (reason, refused):
            return
        if self._noted == ("", False):
            following.followed(self.folder)
        self._noted = reason, refused
        with contextlib.suppress(OSError):
            value = {"schema": "acp.sync/1", "reached": not reason, "reason": reason, "at": _time()}
            if refused:
                value["refused"] = True
            path = os.path.join(self.folder, following.NOTE)
            atomic.replace(path, json.dumps(value).encode() + b"\n")

    def _tell(self) -> None:
        """Tell the other hosts who acts here: when that changes, and now and then as a sign of life."""
        now = time.monotonic()
        if now < self._told_at + _TELL:
            return
        state = host_state(self.folder)
        same = self._told is not None and self._told._replace(at=state.at) == state
        lives = bool(state.participants) or self.conducts
        if same and (not lives or now < self._told_at + SIGN_OF_LIFE):
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
        for path in (*records.DOCUMENTS, shared.README):
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


class ReaderProcess(Process):
    """Brings what the store holds into a reader's folder."""

    requests_of = None
    is_mirror = True

    def serve(self) -> bool:
        """Nothing is handed over in a mirror."""
        return False

    def is_quiet(self) -> bool:
        """Nobody writes in it."""
        return True

    def sync(self, quiet: bool) -> Step:
        """Bring what is new."""
        with manifests.held(self.folder):
            came = bring_mirror(self.folder, self.engine)
        hosts.listen(self.address, self.engine)
        return Step(came=came)


class PublisherProcess(Process):
    """Brings what the conductor of a collaboration does into its mirror, and takes up requests."""

    requests_of = MirrorRequests
    is_mirror = True

    def __init__(
        self, folder: str, address: Address, engine: Engine, *, as_json: bool, quiet: bool
    ) -> None:
        super().__init__(folder, address, engine, as_json=as_json, quiet=quiet)
        self._publisher = Publisher(folder, engine, stores_address.pinned_mark(folder))

    @property
    def tip(self) -> str:
        """Where the mirror stands."""
        return self._publisher.tip

    @property
    def conducts(self) -> bool:
        """Whether what is mirrored goes on, so that it must be kept."""
        contents = self._publisher.contents
        return contents is None or contents.snapshot.status is not Status.COMPLETED

    def serve(self) -> bool:
        """Nothing is handed over: requests come by the store."""
        return False

    def is_quiet(self) -> bool:
        """Files are published as they are: the protocol writes each in one step."""
        return True

    def sync(self, quiet: bool) -> Step:
        """Publish what changed."""
        left = self._publisher.publish()
        contents = self._publisher.contents
        return Step(left=(f"{len(contents.files)} files",) if left and contents else ())

    def watched(self) -> Iterator[Path]:
        """The folders in which a change matters."""
        yield Path(self.folder)
        contents = self._publisher.contents
        yield from contents.watched if contents else ()


def process_for(
    folder: str, address: Address, engine: Engine, *, as_json: bool, quiet: bool
) -> Process:
    """The process of a shared folder, whatever is shared there.

    What this account pinned decides who fills a mirror: agents may write in the folder.
    """
    made: type[Process] = Process
    if stores_address.pinned_mark(folder):
        made = PublisherProcess
    elif is_reader(folder):
        made = ReaderProcess
    return made(folder, address, engine, as_json=as_json, quiet=quiet)


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
    address = stores_address.pinned_address(folder)
    with alone(folder), open_engine(address) as engine:
        process = (make or Process)(folder, address, engine, as_json=as_json, quiet=quiet)
        process.say(f"synchronizing {folder} with {address.text}")
        ready()
        try:
            while stores_address.is_shared(folder) and goes_on():
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
    path = os.path.join(folder, following.LOCK)
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
    permits = import_module("acp_core.protocols.folder.conduct.asked")
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


try:
    import fcntl
except ImportError:  # Windows: nothing can be written there
    fcntl = None  # type: ignore[assignment]

_LONGEST = 8_192  # bytes of a path
_log = logging.getLogger(__name__)
_starting = threading.Lock()


class Wanted:
    """A folder that is wanted synchronized, until `close`.

    Args:
        descriptor: of the file that is held.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        """It is not wanted any more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def place_of(address: Address) -> Path:
    """The folder in which the process of a store, and what is wanted of it, have their files."""
    name = hashlib.sha256(address._replace(id="").link.encode()).hexdigest()[:32]
    return state_folder() / "sync" / name


def want(folder: str) -> Wanted | None:
    """Have a shared folder synchronized from now on; None where it cannot be.

    A process is started where none does it: in a thread, so that nobody waits for it.
    """
    try:
        address = stores_address.pinned_address(folder)
        descriptor = note(folder, address, hold=True)
    except (Refused, OSError):
        return None
    threading.Thread(target=_start, args=(folder,), name="acp-sync", daemon=True).start()
    return Wanted(descriptor) if descriptor >= 0 else None


def note(folder: str, address: Address, *, hold: bool) -> int:
    """Note a folder for the process of its store.

    Args:
        folder: the shared folder.
        address: where this account shares it.
        hold: want it until the descriptor that is returned is closed; else only as long as loops
            run there.

    Returns:
        A descriptor; -1 where nothing is held.

    Raises:
        OSError: the state folder cannot be written.
    """
    place = place_of(address)
    atomic.private_folder(place)
    real = os.path.realpath(folder)
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:32]
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(place / f"{name}.want", flags, 0o600)
    try:
        if os.pread(descriptor, _LONGEST, 0) != os.fsencode(real):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, os.fsencode(real), 0)
        if hold and fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.utime(descriptor)
        os.utime(place)  # it looks at once
    except BaseException:
        os.close(descriptor)
        raise
    if hold and fcntl is not None:
        return descriptor
    os.close(descriptor)
    return -1


def begin_syncing(folder: str) -> None:
    """Have what this host conducts brought into its mirror from now on, in the background.

    Raises:
        Refused: it is not this account's to share.
        NotStarted: the process did not start; the message says why.
        OSError: the state folder cannot be written.
    """
    note(folder, stores_address.pinned_address(folder), hold=False)
    with _starting:
        if not following.is_synced(folder):
            background.start(SYNC.module, (folder,))


def wanted(file: Path) -> tuple[str, bool]:
    """The folder that a file names ("" where it names none), and whether somebody holds it."""
    try:
        folder = os.fsdecode(read_bounded(file, _LONGEST))
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    except (Unreadable, OSError):
        return "", False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return folder, True
    finally:
        os.close(descriptor)
    return folder, False


def _start(folder: str) -> None:
    with _starting, contextlib.suppress(OSError):  # the first of many folders starts it for all
        if following.is_synced(folder):
            return
        try:
            background.start(SYNC.module, (folder,))
        except NotStarted as error:
            _log.info("%s is not synchronized: %s", folder, error)


def bring_news(folder: str) -> str:
    """Bring what is new in the store, unless a process does so anyway; "" or a sentence about it.

    Raises:
        Refused: what the store holds cannot be taken, or its address is not this account's.
        OSError: a file could not be written.
    """
    if following.is_synced(folder):
        return ""
    try:
        address = stores_address.pinned_address(folder)
        with open_engine(address) as engine:
            if is_reader(folder):
                with manifests.held(folder):
                    bring_mirror(folder, engine)
                hosts.listen(address, engine)
                notes = ""
            else:
                notes = "; ".join(shared.sync(folder, engine, publish=False).notes)
        following.followed(folder)
        return notes
    except StoreUnreachable as error:
        return f"as of {_read_at(folder)}; not reached since: {error}"


def _read_at(folder: str) -> str:
    with contextlib.suppress(OSError):
        at = os.stat(os.path.join(folder, manifests.BASE)).st_mtime
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return "an unknown time"
