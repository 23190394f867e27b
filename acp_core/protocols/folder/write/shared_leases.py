"""Leases: on which host a participant of a shared collaboration acts. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write import shared_documents as documents
from acp_core.stores import base as manifests
from acp_core.stores import hosts
from acp_core.stores.base import Base
from acp_core.stores.engine import Change, Engine, Lease, TipMoved
from acp_core.stores.materialise import bring

_TRIES = 5


def release(folder: str, engine: Engine, participants: Sequence[str] = ()) -> tuple[str, ...]:
    """Give back the leases that this account has on this host; those of all where none is named.

    Raises:
        Refused: the store cannot be reached, or refuses it.
    """
    host, account = hosts.this_host(), hosts.account()

    def given_back(held: Mapping[str, Lease]) -> dict[str, Lease | None]:
        mine = (who for who, each in held.items() if (each.host, each.account) == (host, account))
        return {who: None for who in mine if not participants or who in participants}

    return tuple(_lease(folder, engine, given_back, "given back"))


def take_lease(
    folder: str, engine: Engine, participant: str, by: str, *, take: bool = False
) -> None:
    """Have a participant act on this host, unless it acts on another one.

    Args:
        folder: the shared folder.
        engine: its store.
        participant: who is to act.
        by: the command that takes it.
        take: move it here from wherever it acts.

    Raises:
        LeaseElsewhere: it acts on another host, and is not to be moved.
        Refused: the store cannot be reached, or refuses it.
    """

    def taken(held: Mapping[str, Lease]) -> dict[str, Lease | None]:
        lease = hosts.lease_for(
            held.get(participant), participant, by, hosts.this_host(), take=take
        )
        return {participant: lease} if lease else {}

    _lease(folder, engine, taken, "acts here")


def _lease(
    folder: str,
    engine: Engine,
    wanted: Callable[[Mapping[str, Lease]], dict[str, Lease | None]],
    words: str,
) -> dict[str, Lease | None]:
    """Change leases as the store's own demand; what was changed."""
    host = hosts.this_host()
    with manifests.held(folder):
        for _ in range(_TRIES):
            base = manifests.read_base(folder)
            done = bring(folder, engine, base, host, documents.is_shared_name)
            leases = wanted(done.commit.leases)
            if not leases:
                return {}
            change = Change(
                log=done.log, line=None, seq=done.base.tip.seq, protocol=done.commit.protocol, leases=leases,
                words=f"{words}: {', '.join(leases)}", account=hosts.account(), host=host,
            )  # fmt: skip
            try:
                tip = engine.publish(done.base.tip, change)
            except TipMoved:
                continue
            after = {**done.commit.leases, **leases}
            manifests.write_leases(folder, {k: v for k, v in after.items() if v is not None})
            manifests.write_base(folder, Base(tip, done.base.files))
            return leases
    raise Refused("the store keeps moving on: try again")
