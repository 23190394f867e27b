"""What differs from run to run, replaced: times, paths, ids, digests, pids, ports, versions."""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.golden.sandbox import Tree

_AROUND = timedelta(days=1)
_LONG = 30 * 86400.0  # longer than anything in a state: it goes on until now
_LONGEST = 3650 * 86400.0
_ISO = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)[T -](\d\d)[:.-]?(\d\d)(?:[:.-]?(\d\d)(?:[.,-]\d+)?)?(Z|[+-]00:?00\b)?"
)
_SAID = re.compile(
    r"\b(\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec))( \d{4})? (\d\d:\d\d(?::\d\d)?)"
)  # the year is said in another year only
_EPOCH = re.compile(r"(?<![\w.])(1[6-9]\d{8})(\d{3}|\d{6}|\d{9})?(\.\d+)?(?![\w.])")
_AGE = re.compile(
    r"\b(\d+(?:\.\d+)?) ?(d|days?|w|weeks?|mo|months?|y|years?|h|hours?)\b(?: \d+ ?(?:h|d|min)\b)?"
)
_UNITS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.0, "y": 365.0}
_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{24}|[0-9a-f]{16})(?![0-9A-Za-z])"
)
_COUNTED = "0" * 8  # begins what a builder counts; by chance, an id is of digits alone, too
_VERSION_OF_FILE = re.compile(r"[0-9a-f]{14,16}(\.[0-9a-f]+){2,3}|\d+/\d+/\d+")
_LASTED = re.compile(r'(_ms": )\d{10,}')  # in a line of a log, longer than anything in a state
_MATTER = re.compile(r"(--matter )[0-9a-f]{32}\b")  # of a card: times of files are in it
_PID = re.compile(r"(\bpids?\b[\s\"':=]*)\d+")
_PORT = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):\d{2,5}")


class Normal:
    """Replaces in texts and in JSON. The same id gets the same number wherever it stands.

    Args:
        roots: paths with what stands for them, the longest first.
        version: the program's own.
        before: the files as they were; ids in them are fixed unless `live`.
    """

    def __init__(
        self, roots: dict[str, str], version: str, before: Tree, *, live: bool = False
    ) -> None:
        self._roots, self._version = roots, version
        self._fixed = "" if live else _texts(before)
        self._files = {
            content.decode(errors="replace"): f"<text of {path}>"
            for path, (_, content) in reversed(before.items())
        }
        self._digests: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._host = re.compile(rf"(?<![\w.]){re.escape(socket.gethostname())}(?![\w.])")
        self._now = datetime.now(UTC)
        self.learn(before)

    def learn(self, tree: Tree) -> None:
        """Call digests of these files by their names."""
        for path in sorted(tree, key=by_place):
            if content := tree[path][1]:
                digest = hashlib.sha256(content).hexdigest()
                self._digests.setdefault(digest, f"<sha256 of {self.text(path)}>")

    def value(self, given: Any, key: str = "") -> Any:
        """A JSON value; a text of several lines becomes the list of them."""
        if isinstance(given, dict):
            return {self.text(name): self.value(each, name) for name, each in given.items()}
        if isinstance(given, list | tuple):
            return [self.value(each, key) for each in given]
        if isinstance(given, str):
            return self._string(given, key) if "\n" not in given else self._split(given)
        if isinstance(given, int | float) and not isinstance(given, bool):
            return self._number(given, key)
        return given

    def text(self, given: str) -> str:
        """A text."""
        for root, name in self._roots.items():
            given = given.replace(root, name)
        for pattern, replace in self._rules():
            given = pattern.sub(replace, given)
        return given

    def _rules(self) -> tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]:
        return (
            (_MATTER, r"\1<digest>"),
            (_ISO, self._time),
            (_SAID, self._said),
            (_EPOCH, self._epoch),
            (_ID, self._id),
            (_AGE, _age),
            (_LASTED, r"\1<age>"),
            (_PID, r"\1<pid>"),
            (_PORT, r"\1:<port>"),
            (self._host, "<host>"),
            (re.compile(rf"(?<![\w.]){re.escape(self._version)}(?![\w.])"), "<acp's version>"),
        )

    def _string(self, given: str, key: str) -> str:
        if key == "digest":
            return "<digest>"
        if key == "version" and _VERSION_OF_FILE.fullmatch(given):
            return "<version>"
        return self.text(given)

    def _split(self, given: str) -> list[str]:
        """A text of several lines as their list, or as the file that holds it."""
        if name := self._files.get(given):
            return [name]
        return self.text(given).split("\n")

    def _number(self, given: int | float, key: str) -> Any:
        if key == "pid" or key.endswith("_pid"):
            return "<pid>"
        if key == "port":
            return "<port>"
        if _epoch_near(float(given), self._now):
            return "<now>"
        if _LONG <= given <= _LONGEST:
            return "<age>"
        return round(given, 2) if isinstance(given, float) else given

    def _time(self, match: re.Match[str]) -> str:
        try:
            at = datetime(*(int(part or 0) for part in match.groups()[:6]), tzinfo=UTC)  # type: ignore[arg-type, misc]
        except ValueError:
            return match[0]
        return "<now>" if abs(at - self._now) < _AROUND else match[0]

    def _said(self, match: re.Match[str]) -> str:
        days = [self._now - _AROUND, self._now, self._now + _AROUND]
        near = {f"{day.day} {day:%b}" for day in days}
        return "<now>" if match[1] in near else f"{match[1]} {match[3]}"

    def _epoch(self, match: re.Match[str]) -> str:
        return "<now>" if _epoch_near(float(match[1]), self._now) else match[0]

    def _id(self, match: re.Match[str]) -> str:
        if match[0] in self._digests:
            return self._digests[match[0]]
        counted = match[0].isdigit() and match[0].startswith(_COUNTED)
        if counted or match[0] in self._fixed:
            return match[0]
        return self._ids.setdefault(match[0], f"<id {len(self._ids) + 1}>")


def by_place(path: str) -> tuple[str, str]:
    """The order of paths in which ids are numbered: that of what stands around the ids."""
    return _ID.sub("<id>", path), path


def _epoch_near(number: float, now: datetime) -> bool:
    """Whether it is about now in seconds, milliseconds, micro- or nanoseconds."""
    return any(
        abs(number / unit - now.timestamp()) < _AROUND.total_seconds()
        for unit in (1, 1e3, 1e6, 1e9)
    )


def _age(match: re.Match[str]) -> str:
    days = float(match[1]) * _UNITS[match[2][0]]
    return "<age>" if _LONG <= days * 86400 <= _LONGEST else match[0]


def _texts(tree: Tree) -> str:
    """Everything that stands in the collaboration's files, and their names."""
    inside = [(path, content) for path, (_, content) in tree.items() if path.startswith("work/")]
    return "\n".join(f"{path}\n{content.decode(errors='replace')}" for path, content in inside)
