"""How this host calls itself to the others, who acts where, and opening the store that they share.

The engine of a store, its list and its news are each imported when needed. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from acp_core.files import atomic, claims
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person import settings
from acp_core.person.paths import cache_folder
from acp_core.stores.address import GIT, Address
from acp_core.stores.engine import ELSEWHERE, Engine, Heard, Lease, Listing, Standing, StoreNews


def open_engine(address: Address) -> Engine:
    """The engine for an address. No connection is made yet."""
    if address.engine == GIT:
        from acp_core.stores.git import GitEngine

        return GitEngine(address)
    # By its name: rooms that agents run under a bare Python come here, and never need psycopg.
    made: Engine = import_module("acp_core.stores.postgres.engine").PostgresEngine(address)
    return made


def open_listing(address: Address, standing: Standing) -> Listing:
    """The list of a store. No connection is made yet.

    Args:
        address: of the store.
        standing: reads a collaboration of which the store does not tell by itself.
    """
    if address.engine == GIT:
        from acp_core.stores.git import GitListing

        return GitListing(address, standing)
    # By its name, as above.
    made: Listing = import_module("acp_core.stores.postgres.hosts").Overview(address.url, standing)
    return made


def open_news(address: Address, host: str) -> StoreNews:
    """The news of a store. No connection is made yet.

    Args:
        address: of the store.
        host: this host's name: what it is asked for is news, too.
    """
    if address.engine == GIT:
        from acp_core.stores.git import GitNews

        return GitNews(address, host)
    # By its name, as above.
    made: StoreNews = import_module("acp_core.stores.postgres.engine").PostgresNews(
        address.url, host
    )
    return made


class LeaseElsewhere(Refused):
    """Another host acts for the participant. Nothing was changed."""

    def __init__(self, message: str, host: str = "", code: int = ELSEWHERE) -> None:
        super().__init__(message, code)
        self.host = host


def this_host() -> str:
    """This host's name: ``[share] host`` of the settings, else that of the machine."""
    text = str(_set().get("host", "")) or claims.host().partition(".")[0]
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
    return claims.account(claims.uid())


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
    return Lease(participant, host, claims.boot(), me, epoch, now, by)


SIGN_OF_LIFE = 600.0  # seconds between two of a host on which loops run, over git

BEAT = 15.0  # the same over PostgreSQL

_PERIODS = 3

_AGAIN = 60.0  # seconds between two looks at what hosts say

_LIMIT = 1 << 20


class Silence:
    """For how long nothing was heard of the hosts of a collaboration.

    Args:
        address: of the collaboration.
    """

    def __init__(self, address: Address) -> None:
        name = hashlib.sha256(address.text.encode()).hexdigest()[:32]
        self._path = cache_folder() / "heard" / f"{name}.json"

    def looked(self) -> float:
        """How many seconds ago somebody here looked at what the hosts say; infinite for never."""
        at = self._read().get("looked")
        return time.monotonic() - at if isinstance(at, int | float) else float("inf")

    def note(self, heard: Sequence[Heard]) -> None:
        """Note what the hosts say now; without a cache folder nothing is noted."""
        now = time.monotonic()
        before = self._hosts()
        hosts = {}
        for each in heard:
            said = hashlib.sha256(repr(each.state).encode()).hexdigest()
            known, since, _ = before.get(each.state.host, ("", now, 0.0))
            if each.age is not None:
                since = now - each.age
            elif known != said:
                since = now
            period = SIGN_OF_LIFE if each.age is None else BEAT
            hosts[each.state.host] = [said, since, period]
        value = {"boot": claims.boot(), "looked": now, "hosts": hosts}
        with contextlib.suppress(OSError):
            atomic.private_folder(self._path.parent)
            atomic.replace(self._path, json.dumps(value).encode(), sync=False, private=True)

    def silent(self, host: str) -> float:
        """For how many seconds nothing was heard of a host; 0 while that is not long, or not known."""
        _, since, period = self._hosts().get(host, ("", float("inf"), 0.0))
        silent = time.monotonic() - since
        return silent if silent > _PERIODS * period else 0.0

    def advice(self, host: str) -> str:
        """What is said of a host of which nothing was heard for long; "" of any other."""
        silent = self.silent(host)
        if not silent:
            return ""
        return (
            f"{clean_line(host, 80)} was not heard of for {_long(silent)}: taking over is advised"
        )

    def _hosts(self) -> dict[str, tuple[str, float, float]]:
        """What each host said, since when it says that, and how often it is to be heard of."""
        try:
            return {
                str(name): (str(said), float(since), float(period))
                for name, (said, since, period) in self._read()["hosts"].items()
            }
        except (ValueError, TypeError, KeyError, AttributeError):
            return {}

    def _read(self) -> dict[str, Any]:
        """What was noted since this machine was started: its clock counts from then."""
        try:
            value = json.loads(read_bounded(self._path, _LIMIT))
            return value if value["boot"] == claims.boot() else {}
        except (Unreadable, ValueError, TypeError, KeyError, RecursionError):
            return {}


def listen(address: Address, engine: Engine) -> None:
    """Note what the hosts of a collaboration say, where nobody here did so lately.

    Raises:
        Refused: the store cannot be read.
    """
    silence = Silence(address)
    if silence.looked() > _AGAIN:
        silence.note(engine.hosts())


def advised(
    error: LeaseElsewhere, address: Address, engine: Engine | None = None
) -> LeaseElsewhere:
    """The refusal of a participant that acts elsewhere, with the advice to take over where that holds.

    Args:
        error: the refusal.
        address: of the collaboration.
        engine: its store, where it is open.
    """
    silence = Silence(address)
    if silence.looked() > _AGAIN:
        try:
            if engine is not None:
                silence.note(engine.hosts())
            else:
                with open_engine(address) as opened:
                    silence.note(opened.hosts())
        except (Refused, OSError):
            return error  # then it is the store that is not heard of
    advice = silence.advice(error.host)
    return LeaseElsewhere(f"{error}; {advice}", error.host) if advice else error


def _long(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
