"""Hosts that are silent: when it is advised to take over what acts there.

Taking over is safe at any time, because the store lets one host act for a participant. It is advised
only where nothing was heard of the host for three of its periods. PostgreSQL tells that by the
server's clock. git keeps no time: there it counts from when this machine first saw what the host
said last, on this machine's clock, which only goes forward. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any

from acp_core.files import atomic, modes, owners
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person.paths import cache_folder
from acp_core.stores.address import Address
from acp_core.stores.engine import Engine, Heard
from acp_core.stores.hosts import LeaseElsewhere
from acp_core.stores.opening import open_engine

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
        value = {"boot": owners.boot(), "looked": now, "hosts": hosts}
        with contextlib.suppress(OSError):
            modes.private_folder(self._path.parent)
            atomic.replace(self._path, json.dumps(value).encode(), sync=False, private=True)

    def advice(self, host: str) -> str:
        """What is said of a host of which nothing was heard for long; "" of any other."""
        _, since, period = self._hosts().get(host, ("", float("inf"), 0.0))
        silent = time.monotonic() - since
        if silent <= _PERIODS * period:
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
            return value if value["boot"] == owners.boot() else {}
        except (Unreadable, ValueError, TypeError, KeyError, RecursionError):
            return {}


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
