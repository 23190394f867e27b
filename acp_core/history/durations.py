"""What this person's acp has learned of how long things take, kept between its runs.

One file in the user's state folder, with the cases (see `acp_core.history.forecast`) of each
collaboration that was read or recorded. Everything in it can be worked out again, so a file
that is damaged counts as none, and the last writer wins.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from acp_core.files import atomic
from acp_core.files.read_only import is_newer
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.history import forecast
from acp_core.history.forecast import Case, Forecast
from acp_core.history.store import SUFFIX, BadRecording, Store, recording_files, recording_path
from acp_core.model import Snapshot
from acp_core.person import paths
from acp_core.person.paths import key_of

SCHEMA = "acp.durations/1"
LARGEST = 64 << 20  # bytes of the file
MOST = 5_000  # collaborations, the latest
CASES = 500  # of one collaboration, the latest
EVENTS = 10_000  # a longer log costs more than it teaches
# One JSON object, with a line for each collaboration: the whole at one go takes tens of megabytes.
_FIRST_LINE = f'{{"schema":"{SCHEMA}","collaborations":{{'
_BETWEEN, _LAST_LINE = ",\n", "}}"
_DEMO = "/acp-demo-"  # folders of `acp demo`: played, not worked


class Cases:
    """The cases of one collaboration, kept small: thousands went through the same turns and phases.

    Args:
        cases: Any.
    """

    __slots__ = ("_names", "_seconds")
    _known: ClassVar[dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]] = {}

    def __init__(self, cases: Iterable[Case]) -> None:
        given = tuple(cases)
        names = tuple((kind, phase) for kind, phase, _ in given)
        self._names = self._known.setdefault(names, names)
        self._seconds = array("d", (case.seconds for case in given))

    def __iter__(self) -> Iterator[Case]:
        for (kind, phase), seconds in zip(self._names, self._seconds, strict=True):
            yield Case(kind, phase, seconds)


class Learned(NamedTuple):
    """What one collaboration taught: ``stamp`` changes with what it was learned from."""

    protocol: str
    stamp: str
    at: float
    cases: Cases


class Durations:
    """All cases that are known. May be used from several threads, but not on a screen's.

    Args:
        path: The file; by default ``durations.json`` in the user's state folder.
        keep: Whether anything is written to it.
    """

    def __init__(self, path: Path | None = None, *, keep: bool = True) -> None:
        self.path = path or paths.state_folder() / "durations.json"
        self._keep = keep
        self._newer = False  # a later acp keeps the file: this one leaves it alone
        self._lock = threading.RLock()
        self._learned: dict[str, Learned] | None = None
        self._new: set[str] = set()

    def wants(self, snapshot: Snapshot) -> bool:
        """Whether there is something in a collaboration that is not learned yet."""
        if len(snapshot.events) > EVENTS or _DEMO in snapshot.key:
            return False
        with self._lock:
            known = self._known().get(key_of(snapshot.key))
        return known is None or known.stamp != _stamp(snapshot)

    def learn(self, snapshot: Snapshot, cases: Iterable[Case]) -> None:
        """Take in the cases of a collaboration, in place of those that it had."""
        key = key_of(snapshot.key)
        at = snapshot.changed.timestamp() if snapshot.changed else time.time()
        last = Cases(tuple(cases)[-CASES:])
        with self._lock:
            self._known()[key] = Learned(snapshot.protocol, _stamp(snapshot), at, last)
            self._new.add(key)

    def read_recordings(self) -> None:
        """Take in the recordings of collaborations that were never read here."""
        with self._lock:
            keys = [key for key in self._known() if not key.endswith(SUFFIX)]
        read = {recording_path(key).name for key in keys}
        for place in recording_files():
            if place.name not in read:
                with contextlib.suppress(BadRecording, OSError, ValueError):
                    self._read_recording(place)

    def _read_recording(self, place: Path) -> None:
        stat = place.stat()
        stamp = f"{stat.st_mtime_ns} {stat.st_size}"
        with self._lock:
            known = self._known().get(place.name)
        if known is not None and known.stamp == stamp:
            return
        store = Store(place, read_only=True)
        try:
            meta = store.meta()
            demo = _DEMO in meta.get("key", "")
            cases = () if demo else forecast.cases_of_recording(store.observations(), store.spans())
        finally:
            store.close()
        learned = Learned(meta.get("protocol", ""), stamp, stat.st_mtime, Cases(cases[-CASES:]))
        with self._lock:
            self._known()[place.name] = learned
            self._new.add(place.name)

    def forecast(self) -> Forecast:
        """What all of them say together."""
        with self._lock:
            known = dict(self._known())
        read = {recording_path(key).name for key in known if not key.endswith(SUFFIX)}
        return Forecast(
            (each.protocol, each.cases) for key, each in known.items() if key not in read
        )

    def forget(self, key: str) -> None:
        """Forget what was learned of a collaboration and from its recording."""
        with self._lock:
            for name in (key_of(key), recording_path(key).name):
                self._known().pop(name, None)
            self._write(self._known())

    def save(self) -> bool:
        """Keep what was learned, where that is possible: it can be learned again.

        Returns:
            Whether anything was learned since the last time.
        """
        with self._lock:
            if not self._new:
                return False
            kept = self._read()
            kept |= {key: self._known()[key] for key in self._new if key in self._known()}
            self._new.clear()
            self._learned = self._known() | kept
            self._write(kept)
            return True

    def _write(self, known: dict[str, Learned]) -> None:
        if not self._keep or self._newer:
            return
        latest = sorted(known.items(), key=lambda item: -item[1].at)[:MOST]
        entries = (f"{json.dumps(key)}:{_text(_plain(each))}" for key, each in latest)
        data = f"{_FIRST_LINE}\n{_BETWEEN.join(entries)}\n{_LAST_LINE}".encode()
        with contextlib.suppress(OSError):
            atomic.private_folder(self.path.parent)
            atomic.replace(self.path, data, private=True)

    def _known(self) -> dict[str, Learned]:
        if self._learned is None:
            self._learned = self._read()
        return self._learned

    def _read(self) -> dict[str, Learned]:
        try:
            text = read_bounded(self.path, LARGEST).decode()
            lines = text.split("\n")
            parts: Iterable[dict[str, list[object]]]
            if (lines[0], lines[-1]) == (_FIRST_LINE, _LAST_LINE):
                parts = (json.loads(f"{{{line.removesuffix(',')}}}") for line in lines[1:-1])
            else:  # written by an earlier acp, or by a later one
                content = json.loads(text)
                self._newer = is_newer(content["schema"], SCHEMA)
                parts = [content["collaborations"]] if content["schema"] == SCHEMA else []
            return {key: _learned(each) for part in parts for key, each in part.items()}
        except (Unreadable, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}


def _stamp(snapshot: Snapshot) -> str:
    events = snapshot.events
    changed = snapshot.changed.isoformat() if snapshot.changed else ""
    last = events[-1].id if events else ""
    return f"{len(events)} {last} {snapshot.status.value} {snapshot.phase} {changed}"


def _text(plain: list[object]) -> str:
    return json.dumps(plain, separators=(",", ":"))


def _plain(each: Learned) -> list[object]:
    cases = [[case.kind, case.phase, round(case.seconds, 3)] for case in each.cases]
    return [each.protocol, each.stamp, each.at, cases]


def _learned(plain: list[object]) -> Learned:
    """An entry of the file.

    Raises:
        ValueError, TypeError: it is none.
    """
    protocol, stamp, at, cases = plain
    if not isinstance(cases, list) or not isinstance(at, int | float):
        raise ValueError("not an entry")
    found = [Case(str(kind), str(phase), float(took)) for kind, phase, took in cases]
    if not all(math.isfinite(case.seconds) for case in found):
        raise ValueError("not a duration")
    return Learned(str(protocol), str(stamp), float(at), Cases(found))
