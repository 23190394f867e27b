"""How this host calls itself to the others. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from acp_core.files import owners
from acp_core.model.errors import Refused
from acp_core.person import settings
from acp_core.stores.engine import ELSEWHERE, Lease


class LeaseElsewhere(Refused):
    """Another host acts for the participant. Nothing was changed."""

    def __init__(self, message: str, host: str = "", code: int = ELSEWHERE) -> None:
        super().__init__(message, code)
        self.host = host


def this_host() -> str:
    """This host's name: ``[share] host`` of the settings, else that of the machine."""
    text = str(_set().get("host", "")) or owners.host().partition(".")[0]
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64].strip("-")
    return plain or "host"


def accepted() -> frozenset[str]:
    """The requests from other hosts that the owner of this one lets it follow; none by default."""
    return frozenset(map(str, _set().get("accept", ())))


def _set() -> Mapping[str, Any]:
    try:
        return settings.load().share
    except settings.SettingsError as error:
        raise Refused(str(error)) from None


def account() -> str:
    """The account that acts here."""
    return owners.account(owners.uid())


def lease_for(
    held: Lease | None, participant: str, by: str, host: str, *, take: bool = False
) -> Lease | None:
    """The lease that this host must write to act for a participant; None where it has it already.

    Args:
        held: the lease in the store.
        participant: who is to act.
        by: the command that acts.
        host: this host's name.
        take: move the participant here from wherever it is.

    Raises:
        LeaseElsewhere: another host, or another account, acts for the participant.
    """
    me = account()
    if held is not None and (held.host, held.account) == (host, me):
        return None
    if held is not None and not take:
        since = held.since[11:16] or held.since
        cure = "`--take`" if by == "append" else f"`acp sync --take {participant}`"
        raise LeaseElsewhere(
            f"{participant} acts on host {held.host} ({held.account}) since {since} UTC; {cure} moves it here",
            held.host,
        )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    epoch = held.epoch + 1 if held else 1
    return Lease(participant, host, owners.boot(), me, epoch, now, by)
