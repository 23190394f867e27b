"""Whether a participant of a shared collaboration acts on this host: for its loop."""

from __future__ import annotations

import json
import os

from acp_core.agents import background
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import NotStarted
from acp_core.protocols.folder.write import Refused, handover, shared_leases
from acp_core.protocols.processes import SYNC
from acp_core.stores import base as manifests
from acp_core.stores import hosts
from acp_core.stores.address import Address
from acp_core.stores.opening import open_engine

_LIMIT = 1 << 16


def trouble(folder: str, participant: str, *, take: bool, stays: bool) -> str:
    """Why a participant cannot act here now; "" where it can.

    Args:
        folder: the shared collaboration.
        participant: who would act.
        take: whether its lease is taken where nobody has it.
        stays: whether who asks goes on for long: then a process keeps the folder and its store the
            same, for as long as there are loops.
    """
    try:
        address = manifests.pinned_address(folder)
        if stays and not handover.is_synced(folder):
            background.start(SYNC.module, (folder,))
        lease = manifests.read_leases(folder).get(participant)
        wanted = hosts.lease_for(lease, participant, "launch", hosts.this_host())
        if wanted is not None and take:
            with open_engine(address) as engine:
                shared_leases.take_lease(folder, engine, participant, "launch")
        elif take and _is_away(folder):
            _must_answer(folder, address)
    except hosts.LeaseElsewhere as error:
        return str(hosts.advised(error, address))
    except (Refused, NotStarted) as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _is_away(folder: str) -> bool:
    """Whether the process of ``acp sync`` says that it does not reach the store."""
    try:
        note = json.loads(read_bounded(os.path.join(folder, handover.NOTE), _LIMIT))
    except (Unreadable, ValueError, RecursionError):
        return False
    return isinstance(note, dict) and note.get("reached") is False


def _must_answer(folder: str, address: Address) -> None:
    """Ask the store itself: whoever writes in the folder can write down that it is away.

    Raises:
        Refused: it does not answer: what a program appended now would be refused.
    """
    base = manifests.read_base(folder)
    if base is not None:
        with open_engine(address) as engine:
            engine.wait(base.tip, 0)


def leave(folder: str, participant: str) -> str:
    """Give back the lease of a participant whose loop has ended here; "" or why that failed."""
    try:
        lease = manifests.read_leases(folder).get(participant)
        if lease is None or (lease.host, lease.account) != (hosts.this_host(), hosts.account()):
            return ""
        with open_engine(manifests.pinned_address(folder)) as engine:
            shared_leases.release(folder, engine, (participant,))
    except (Refused, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        return (
            f"the other hosts do not know yet that {participant} can act elsewhere ({reason}); "
            f"`acp sync --release {participant}` tells them"
        )
    return ""
