"""News of many collaborations of one store at once: for the process that keeps the folders of a host.

It only says of which ones there may be something new; whoever is told reads them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Protocol

from acp_core.stores import git_command
from acp_core.stores.address import GIT, Address
from acp_core.stores.git_objects import ObjectStore

LOOK, SLOW_LOOK = 1.0, 5.0  # seconds between two looks; over ssh that is not kept open
QUIET_LOOK, QUIET = 1.5, 60.0  # the same where nothing has come for so many seconds
_REFS = "refs/heads/acp/"


Tips = Callable[[], Mapping[str, str]]
"""Tells where collaborations stand here: the id of the `acp_core.stores.engine.Tip`, by their own ids."""


class StoreNews(Protocol):
    """News of one store. For one thread at a time, which need not be that of its engines."""

    def wait(self, tips: Tips, seconds: float) -> frozenset[str]:
        """Wait until there may be news, at most so long; the collaborations of which there may be.

        Args:
            tips: tells where each that is asked for stands here.
            seconds: how long.

        Raises:
            SharingError: the store does not answer.
        """
        ...

    def beat(self, host: str, ids: frozenset[str]) -> None:
        """Say that a host lives, where the store keeps a time for that.

        Args:
            host: its name.
            ids: the collaborations in which its loops take part.
        """
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...


def open_news(address: Address, host: str) -> StoreNews:
    """The news of a store. No connection is made yet.

    Args:
        address: of the store.
        host: this host's name: what it is asked for is news, too.
    """
    if address.engine == GIT:
        return GitNews(address, host)
    # By its name, as in `acp_core.stores.opening`.
    made: StoreNews = import_module("acp_core.stores.postgres.engine").PostgresNews(
        address.url, host
    )
    return made


class GitNews:
    """A look at the branches of acp in a repository, in one call, which fetches nothing.

    One look is one run of git, whatever the number of collaborations; a fetch of as many refs takes
    twice the processor time, and holds up who publishes from this machine.

    Args:
        address: of the repository.
        host: this host: what it is asked for is news, too.
    """

    def __init__(self, address: Address, host: str) -> None:
        self._url = address.url
        self._objects = ObjectStore(address.url)
        self._request = f"/ask/{host}"
        self._next = 0.0
        self._changed = time.monotonic()
        self._refs: dict[str, str] = {}  # where each branch stood

    def wait(self, tips: Tips, seconds: float) -> frozenset[str]:
        """See `StoreNews.wait`."""
        now = time.monotonic()
        if self._next > now + seconds:
            time.sleep(seconds)
            return frozenset()
        time.sleep(max(0.0, self._next - now))
        began = time.monotonic()
        self._next = began + SLOW_LOOK  # where it fails
        refs = self._objects.remote_refs(f"{_REFS}*")
        before, self._refs = self._refs, refs
        if refs != before:
            self._changed = began
        if git_command.is_ssh(self._url) and time.monotonic() - began >= 0.1:
            pause = SLOW_LOOK
        else:
            pause = LOOK if began - self._changed < QUIET else QUIET_LOOK
        self._next = began + pause
        return frozenset(
            id
            for id, tip in tips().items()
            if refs.get(f"{_REFS}{id}/log") != tip
            or before.get(asked := f"{_REFS}{id}{self._request}") != refs.get(asked)
        )

    def beat(self, host: str, ids: frozenset[str]) -> None:
        """See `StoreNews.beat`: a repository keeps no time."""

    def close(self) -> None:
        """See `StoreNews.close`."""
