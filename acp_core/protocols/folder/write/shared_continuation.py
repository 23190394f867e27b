"""Going on elsewhere where others take part: the new collaboration is shared, too, and they are told."""

from __future__ import annotations

import os

from acp_core import __version__
from acp_core.files import owners
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.list_summary import list_state
from acp_core.protocols.folder.write import Refused, sharing, synchronizing
from acp_core.protocols.folder.write.opened import lock, open_locked
from acp_core.stores import base as manifests
from acp_core.stores import hosts
from acp_core.stores.address import Address
from acp_core.stores.base import Base, Entry, digest
from acp_core.stores.engine import Change, Engine, HostState, Lease, SharingError
from acp_core.stores.opening import open_engine
from acp_core.stores.tree import Tree

_MOST = 20  # names that are tried in the store


def before(old: str) -> None:
    """Bring the old folder to what its store holds: what is continued is what all have.

    Raises:
        Refused: the store cannot be read.
    """
    with open_engine(manifests.pinned_address(old)) as engine:
        synchronizing.sync(old, engine)


def after(old: str, new: str) -> None:
    """Share the new folder in the same store, and tell the others.

    Raises:
        Refused: that did not work; the new folder is there, and the same command goes on from there.
    """
    address = manifests.pinned_address(old)
    try:
        with open_engine(address) as engine:
            leases = _publish_protocol(old, engine)
            there = (
                manifests.pinned_address(new)
                if manifests.is_shared(new)
                else _share(new, address, leases)
            )
            engine.tell(
                HostState(
                    hosts.this_host(),
                    hosts.account(),
                    owners.boot(),
                    __version__,
                    continued=there.text,
                )
            )
    except SharingError as error:
        raise Refused(
            f"continued in {new}, but the others do not know: {error}; run the same command again",
            error.code,
        ) from None


def _publish_protocol(old: str, engine: Engine) -> dict[str, Lease]:
    """Publish that the old collaboration goes on elsewhere; the leases that it has."""
    host = hosts.this_host()
    with manifests.held(old):
        base = manifests.read_base(old)
        named = Tree(old).read(schema.PROTOCOL_FILE) or b""
        commit = engine.read(base.tip if base else None)
        if base is None or commit.tip != base.tip:
            raise SharingError("another host changed it at the same moment")
        if named != commit.protocol:
            with lock(old) as held:
                opened = open_locked(old, held.log)
                log = held.log.read(schema.MAX_LOG)
            machine = opened.machine
            change = Change(
                log=log, line=None, seq=opened.last_seq, protocol=named, words="continued elsewhere",
                account=hosts.account(), host=host, phase=machine.phase, waiting=tuple(machine.waiting),
                standing=list_state(opened.protocol, opened.history),
            )  # fmt: skip
            tip = engine.publish(base.tip, change)
            entry = {schema.PROTOCOL_FILE: Entry(digest(named), len(named))}
            manifests.write_base(old, Base(tip, {**base.files, **entry}))
        return dict(commit.leases)


def _share(new: str, address: Address, leases: dict[str, Lease]) -> Address:
    """Share the new folder under its own name, or the next one that is free in the store."""
    name = sharing.plain_id(os.path.basename(os.path.realpath(new)))
    for number in range(1, _MOST):
        id = name if number == 1 else f"{name[:60]}-{number}"
        try:
            return sharing.share(new, address._replace(id="").text, id, leases).address
        except sharing.AlreadyThere:
            continue
    raise SharingError(f"the store has many collaborations named {name}")
