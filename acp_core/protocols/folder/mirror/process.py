"""Keeping a mirror: the process of ``acp sync``, of who conducts a collaboration and of who reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from acp_core.model import Status
from acp_core.protocols.folder.conduct.syncing import Process, Step
from acp_core.protocols.folder.mirror.asked import MirrorRequests
from acp_core.protocols.folder.mirror.joining import bring, is_reader
from acp_core.protocols.folder.mirror.publishing import Publisher
from acp_core.stores import base as manifests
from acp_core.stores.address import Address
from acp_core.stores.engine import Engine


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
            came = bring(self.folder, self.engine)
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
