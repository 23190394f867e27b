"""Clocks that jump, both ways: what is written stays valid, and whoever looks is not misled."""

from __future__ import annotations

import contextlib
import datetime as times
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from acp_core.model import Severity
from tests.faults.campaign import Campaign, Case, mixed
from tests.faults.looking import acp, look
from tests.faults.writing import ALL, Writing

_HOUR, _YEAR = 3_600.0, 366 * 86_400.0
JUMPS = {
    "back an hour": -_HOUR, "back two years": -2 * _YEAR, "back to 1970": 0.0, "on an hour": _HOUR,
    "on 30 years": 30 * _YEAR, "on to 2099": 73 * _YEAR, "on to 9990": 7_900 * _YEAR,
}  # fmt: skip


class _Meta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


@contextlib.contextmanager
def jumped(seconds: float) -> Iterator[datetime]:
    """The clock of every module of acp stands so many seconds further on; 0: at the epoch."""
    real = time.time
    shift = seconds or 1.0 - real()
    time.time = lambda: real() + shift
    try:
        with _told(lambda now: now + times.timedelta(seconds=shift)):
            yield datetime.now(UTC) + times.timedelta(seconds=shift)
    finally:
        time.time = real


@contextlib.contextmanager
def standing(at: datetime) -> Iterator[None]:
    """The date and time of every module of acp stand still, so that what is written then is the same."""
    with _told(lambda now: at.astimezone(now.tzinfo)):
        yield


@contextlib.contextmanager
def _told(tell: Callable[[datetime], datetime]) -> Iterator[None]:
    class Told(datetime, metaclass=_Meta):
        @classmethod
        def now(cls, tz: times.tzinfo | None = None) -> Any:
            return tell(datetime.now(tz))

    modules = [m for name, m in sys.modules.items() if name.startswith("acp_core")]
    patched = [m for m in modules if getattr(m, "datetime", None) is datetime]
    for module in patched:
        vars(module)["datetime"] = Told
    try:
        yield
    finally:
        for module in patched:
            vars(module)["datetime"] = datetime


def cases(place: Path, seed: int) -> Iterator[Case]:
    """All of them, in an order of chance."""
    yield from mixed(_cases(place), seed)


def _cases(place: Path) -> Iterator[Case]:
    """Each writing command while the clock stands elsewhere, and each thing looked at then."""
    yield Case("folder: forth and back between appends", partial(_to_and_fro, place / "fro"))
    for writing in ALL:
        for told, seconds in JUMPS.items():
            yield Case(
                f"{writing.name}: {told}",
                partial(
                    _written, place / "clock" / writing.name.replace(" ", "-"), writing, seconds
                ),
            )


def _errors(root: Path, now: datetime | None = None) -> set[str]:
    at = root / "run" if (root / "run").is_dir() else root
    seen = look(at, now) if at.is_dir() else None
    return {f.code for f in seen.findings if f.severity is Severity.ERROR} if seen else set()


def _written(place: Path, writing: Writing, seconds: float) -> None:
    shutil.rmtree(place, ignore_errors=True)
    kept, root = place / "kept", place / "root"
    place.mkdir(parents=True)
    writing.prepare(root)
    shutil.copytree(root, kept, symlinks=True)
    words = writing.words(str(root))
    acp(*words)
    usual = _errors(root)
    shutil.rmtree(root)
    shutil.copytree(kept, root, symlinks=True)
    with jumped(seconds) as now:
        ran = acp(*words)
        seen = _errors(root, now)
        acp("status", str(root))
    after = _errors(root)
    for found in (seen, after):
        assert not found - usual, (ran, found - usual)
    shutil.rmtree(place)


def _to_and_fro(root: Path) -> None:
    """Whatever the clock does between two appends, the log stays valid."""
    from tests.protocols.folder.support import make_v1

    make_v1(root, "reviewing")
    words = ["append", "--folder", str(root), "--event", "blocked", "--reply-to", "2"]
    for name, seconds in zip(("reader", "reviewer", "server") * 3, JUMPS.values(), strict=False):
        if seconds > 40 * _YEAR:
            continue  # nobody could append in the past of such an event, and that is said
        with jumped(seconds):
            assert acp(*words, "--participant", name, "--summary", "Stop.").code == 0
        assert acp("validate", str(root)).code == 0
    shutil.rmtree(root)


CLOCKS = Campaign("clocks", "every writing command while the clock jumps back or on", cases)
