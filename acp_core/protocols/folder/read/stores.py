"""The collaborations of a store, also those that no folder here holds: told of in rows, joined when looked at.

A collaboration that somebody looks at is joined in the account's cache folder. From then on it is
read and acted in as any shared folder; what it is called stays the address.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from acp_core.files import git, modes
from acp_core.files.journal import without_collector
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person.paths import cache_folder
from acp_core.protocols.contract import Rows
from acp_core.protocols.folder.read.collaboration import people_of_settings
from acp_core.protocols.folder.read.list_summary import standing_of
from acp_core.protocols.folder.view.listed import listed_snapshot
from acp_core.protocols.folder.write import sharing
from acp_core.stores import base as manifests
from acp_core.stores.address import Address, parse
from acp_core.stores.opening import open_listing

PART = 2_000
"""How many rows are told of at once."""


def listing(key: str) -> StoreListing:
    """The list of a store."""
    return StoreListing(parse(key))


def cached_folder(address: Address) -> str:
    """The folder in the account's cache in which a collaboration is joined when it is looked at."""
    name = hashlib.sha256(address.link.encode()).hexdigest()[:32]
    return str(cache_folder() / "joined" / name / address.id)


def join_in_cache(address: Address) -> str:
    """Join a collaboration in the cache, if that was not done yet; its folder.

    Raises:
        Refused: it cannot be joined; the message says why.
        OSError: the cache cannot be written.
    """
    folder = cached_folder(address)
    if not manifests.is_shared(folder):
        refuse_projects(address)
        modes.private_folder(cache_folder() / "joined")
        modes.private_folder(cache_folder() / "joined" / os.path.basename(os.path.dirname(folder)))
        sharing.join(address.text, folder)
    return folder


def folder_here(address: Address, pins: Mapping[str, Address]) -> str:
    """The folder of a person's own that holds a collaboration; "" where none does."""
    cache = os.path.join(os.path.realpath(cache_folder()), "")
    for folder, pinned in pins.items():
        if pinned == address and not folder.startswith(cache) and manifests.is_shared(folder):
            return folder
    return ""


class StoreListing:
    """The collaborations of one store; see `acp_core.protocols.contract.Listing`.

    Args:
        address: of the store.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._listing = open_listing(address, standing_of)
        self._begun = False
        self._waiting: list[str] = []  # ids that are still to be told of
        self._here: dict[str, str] = {}  # the folder that holds one, by id
        self._pins: tuple[int, dict[str, Address]] = -1, {}  # as of a change of their folder

    def refresh(self, now: datetime) -> Rows:
        """See `Listing.refresh`."""
        with without_collector():
            if self._waiting:
                return self._rows((), (), now)
            if not self._begun:
                refuse_projects(self._address)
            changed = self._listing.refresh()
            self._begun = True
            before, self._here = self._here, self._folders()
            moved = {
                i for i in before.keys() | self._here.keys() if before.get(i) != self._here.get(i)
            }
            listed = self._listing.listed
            tell = (i for i in listed if (i in changed or i in moved) and i not in self._here)
            humans = people_of_settings()
            self._waiting = sorted(tell, key=lambda i: self._is_quiet(i, humans))
            gone = [*(changed - listed.keys()), *(i for i in moved if i in self._here)]
            left = [before[i] for i in moved if i in before and before[i] != self._here.get(i)]
            folders = [self._here[i] for i in moved if i in self._here and i in listed]
            return self._rows(folders, [*left, *(self._link(i) for i in gone)], now)

    def _rows(self, folders: Sequence[str], gone: Sequence[str], now: datetime) -> Rows:
        """The next part of what is to be told."""
        humans = people_of_settings()
        listed = self._listing.listed
        part, self._waiting = self._waiting[:PART], self._waiting[PART:]
        shown = [listed_snapshot(listed[i], self._address.named(i), now, humans) for i in part]
        note = clean_line(self._listing.note, 300)
        return Rows(shown, folders, gone, note, more=bool(self._waiting))

    def _is_quiet(self, id: str, humans: Collection[str]) -> bool:
        """Whether nobody is needed there, as it seems."""
        row = self._listing.listed[id]
        people = row.standing.get("people", ())
        return row.phase != "blocked" and not any(
            len(each) > 2 and (each[1] == "human" or str(each[0]) in humans)
            for each in (people if isinstance(people, list) else ())
            if isinstance(each, list)
        )

    def _link(self, id: str) -> str:
        return self._address.named(id).link

    def wait(self, seconds: float) -> None:
        """See `Listing.wait`."""
        self._listing.wait(seconds)

    def close(self) -> None:
        """See `Listing.close`."""
        self._listing.close()

    def _folders(self) -> dict[str, str]:
        """The collaborations of this store that a folder here holds."""
        changed = manifests.pins_changed()
        if changed != self._pins[0]:
            self._pins = changed, manifests.pinned_folders()
        pins = self._pins[1]
        ours = {pin.id: pin for pin in pins.values() if pin._replace(id="") == self._address}
        found = {id: folder_here(address, pins) for id, address in ours.items()}
        return {id: folder for id, folder in found.items() if folder}


def refuse_projects(address: Address) -> None:
    """Refuse a repository at a path within a project, where agents may write its hooks.

    Raises:
        Refused: it is within one.
    """
    if not address.path:
        return
    above = os.path.dirname(os.path.realpath(address.path))
    while True:
        if git.is_repository(above) or os.path.lexists(os.path.join(above, "protocol.json")):
            raise Refused(
                f"{clean_line(address.text, 300)} is refused: the store is in {clean_line(above, 200)}, where agents "
                "may write, and its hooks would run as you"
            )
        if os.path.dirname(above) == above:
            return
        above = os.path.dirname(above)
