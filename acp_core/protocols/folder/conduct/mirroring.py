"""Filling a mirror: by the one host that conducts the collaboration, and by no other."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.model import Status
from acp_core.model.clock import utc_now
from acp_core.model.errors import NotStarted, Refused
from acp_core.model.text import clean_line
from acp_core.protocols.folder.conduct import following
from acp_core.protocols.folder.conduct.asked import MirrorRequests
from acp_core.protocols.folder.conduct.syncing import Process, Step
from acp_core.protocols.folder.write import sharing as shares
from acp_core.protocols.folder.write.sharing import bring_mirror, is_reader
from acp_core.protocols.kit.mirroring import Contents, collect, summary
from acp_core.protocols.kit.mirroring import kind_of as kind_of
from acp_core.stores import asking, hosts, mirror, tree
from acp_core.stores import base as manifests
from acp_core.stores.address import Address
from acp_core.stores.engine import Change, Engine, HistoryRewritten, Tip, TipMoved
from acp_core.stores.mirror import File, Manifest
from acp_core.stores.opening import open_engine


class Leaving(NamedTuple):
    """What sharing a collaboration as a mirror gives to a store."""

    address: Address
    contents: Contents


def leaving(folder: str, address: Address) -> Leaving:
    """What would leave if the folder was shared. Writes nothing.

    Raises:
        Refused: it cannot be shared.
    """
    if manifests.is_shared(folder) and not manifests.pinned_mark(folder):
        raise Refused(f"{folder} is shared already; `acp unshare {folder}` ends that")
    return Leaving(address, collect(folder, utc_now()))


def share(folder: str, address: Address) -> Leaving:
    """Begin a mirror of the folder's collaboration in a store.

    Raises:
        Refused: it is not shared.
        OSError: a file could not be read or written.
    """
    plan = leaving(folder, address)
    mark = manifests.pinned_mark(folder) or secrets.token_hex(16)
    with open_engine(address) as engine:
        manifests.pin(folder, address, mark=mark)
        try:
            publisher = Publisher(folder, engine, mark)
            if publisher.begin(plan.contents):
                # Nobody can have asked before: what is asked from now on was not missed.
                asking.Ledger(address, hosts.this_host()).looked(time.time())
            manifests.write_share(folder, address)
        except BaseException:
            if not manifests.is_shared(folder):
                manifests.unpin(folder)
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
    return bool(manifests.pinned_mark(folder)) or is_reader(folder)


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
        following.begin(folder)
    except NotStarted as error:
        return f"{said}. To keep it up to date, run: acp sync {clean_line(folder, 300)} ({error})"
    return f"{said}. acp keeps it up to date in the background until the run has ended."


def sync_once(folder: str) -> tuple[str, ...]:
    """Look at the store once; sentences on that.

    Raises:
        Refused: the store cannot be read, or what it holds is refused.
        OSError: a file could not be written.
    """
    with open_engine(manifests.pinned_address(folder)) as engine:
        if mark := manifests.pinned_mark(folder):
            left = Publisher(folder, engine, mark).publish()
            return ("published what changed" if left else "the mirror is up to date",)
        with manifests.held(folder):
            came = bring_mirror(folder, engine)
    return (
        *([f"from the store: {', '.join(map(clean_line, came))}"] if came else []),
        "up to date",
    )


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
        return Step(came=came)


class PublisherProcess(Process):
    """Brings what the conductor of a collaboration does into its mirror, and takes up requests."""

    requests_of = MirrorRequests
    is_mirror = True

    def __init__(
        self, folder: str, address: Address, engine: Engine, *, as_json: bool, quiet: bool
    ) -> None:
        super().__init__(folder, address, engine, as_json=as_json, quiet=quiet)
        self._publisher = Publisher(folder, engine, manifests.pinned_mark(folder))

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
    if manifests.pinned_mark(folder):
        made = PublisherProcess
    elif is_reader(folder):
        made = ReaderProcess
    return made(folder, address, engine, as_json=as_json, quiet=quiet)
