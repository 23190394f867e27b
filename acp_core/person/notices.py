"""Tells a person that something needs them: what to say, when, and in which ways.

What is worth telling is told once per transition (pure: the time is given). Several dashboards of one
person notice the same at the same time: what goes beyond their own terminals (the desktop, a command of
theirs, a webhook) is told by the first that comes, and no other. No shell ever sees a text. The ways
outside of the terminal may be slow; they belong into a worker.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

from acp_core.files import atomic
from acp_core.model import Matter, Snapshot, Status
from acp_core.model.format import names_in, need_case, sentence_case
from acp_core.model.matter import Kind
from acp_core.model.text import clean_line
from acp_core.person import paths
from acp_core.person.kinds import IS_SWITCH, check_fields, check_one_of, check_that

KINDS = ("stuck", "blocked", "need", "completed")
"""Stuck: a cause keeps it from going on; blocked: somebody said so; need: anything else that
wants a human: a decision, an answer; completed: it is over."""
AGAIN = timedelta(minutes=1)
"""A need that comes back sooner than that after it went is the same one."""


@dataclass(frozen=True, slots=True)
class Message:
    """Something to tell; every text is one line that is safe to show.

    Attributes:
        kind: one of `KINDS`.
        collaboration: its name; ``location`` where it is.
        participant: whom it is about, "" where nobody.
        reason: why a human is wanted, or what happened.
        action: what mends it, "" where nothing does by itself.
        sentence: the reason as it stands by itself; "" where that is the same.
    """

    kind: str
    collaboration: str
    location: str
    participant: str
    reason: str
    action: str = ""
    sentence: str = ""

    @property
    def title(self) -> str:
        """A few words."""
        word = {"completed": "completed", "blocked": "is blocked"}.get(self.kind, "needs you")
        return f"acp: {self.collaboration} {word}"

    def text(self, key: str = "") -> str:
        """Who and why, and the key of the dashboard that mends it."""
        about = self.participant and self.participant not in self.reason
        words = f"{self.participant}: {self.reason}" if about else self.sentence or self.reason
        if self.action and key:
            words += f" (press {key}: {self.action.replace('_', ' ')})"
        return words


class News:
    """Notices what was not there before. What is found at the start is no news."""

    def __init__(self) -> None:
        self._needs: set[tuple[str, str]] = set()
        self._left: dict[tuple[str, str], datetime] = {}  # when a need went away
        self._over: set[str] = set()
        self._known: set[str] = set()  # collaborations
        self._begun = False

    def update(
        self, now: datetime, fleet: Iterable[tuple[Snapshot, Iterable[Matter]]], *, complete: bool
    ) -> list[Message]:
        """Take in how all stands, and return the notices of what is new.

        Args:
            now: The time.
            fleet: Every collaboration that is not put away, with the needs that count there.
            complete: The first look at everything is over.
        """
        needs: dict[tuple[str, str], tuple[Snapshot, Matter]] = {}
        over: dict[str, Snapshot] = {}
        known: set[str] = set()
        for snapshot, wanted in fleet:
            known.add(snapshot.key)
            if snapshot.status is Status.COMPLETED:
                over[snapshot.key] = snapshot
            for need in wanted:
                needs[snapshot.key, need.key] = snapshot, need
        told: list[Message] = []
        if self._begun:
            told = [message(*needs[each]) for each in needs if self._is_new(each, now)]
            ended = over.keys() & self._known - self._over
            told += [_ended(over[key]) for key in over if key in ended]
        for gone in self._needs - needs.keys():
            self._left[gone] = now
        self._left = {each: at for each, at in self._left.items() if now - at < AGAIN}
        if complete:
            self._begun = True
        self._needs, self._over, self._known = set(needs), set(over), known
        return told

    def _is_new(self, each: tuple[str, str], now: datetime) -> bool:
        left = self._left.get(each)
        return each not in self._needs and (left is None or now - left >= AGAIN)


def message(snapshot: Snapshot, need: Matter) -> Message:
    """What to tell of a need."""
    if snapshot.status is Status.BLOCKED:
        kind = "blocked"
    else:
        kind = "need" if need.kind in (Kind.DECISION, Kind.QUESTION, Kind.PERMISSION) else "stuck"
    return Message(
        kind,
        snapshot.name,
        snapshot.location,
        need.about.participant or "",
        need.sentence,
        need.remedy or "",
        need_case(need, snapshot),
    )


def _ended(snapshot: Snapshot) -> Message:
    said = snapshot.headline
    sentence = sentence_case(said, names_in(snapshot))
    return Message("completed", snapshot.name, snapshot.location, "", said, sentence=sentence)


def is_quiet(hours: str, at: time) -> bool:
    """Whether a time of day lies in ``hours`` (``22:00-07:00``; "" for never).

    Raises:
        ValueError: that are no hours.
    """
    if not hours:
        return False
    begin, dash, end = hours.partition("-")
    if not dash:
        raise ValueError("expected two times with a dash between them, such as 22:00-07:00")
    first, last = time.fromisoformat(begin.strip()), time.fromisoformat(end.strip())
    return first <= at < last if first <= last else at >= first or at < last


try:
    import fcntl
except ImportError:  # Windows: each dashboard tells for itself
    fcntl = None  # type: ignore[assignment]

SUPPORTED = fcntl is not None
LARGEST = 1 << 20  # bytes of the file that are read


def path() -> Path:
    """Where it is kept what was told last; it need not exist."""
    return paths.state_folder() / "notices.json"


def take_unsent(news: Iterable[Message], now: datetime) -> list[Message]:
    """Those of these messages that nobody has told within the last minute; they count as told.

    All of them where that cannot be kept: twice is better than never.
    """
    listed = list(news)
    try:
        atomic.private_folder(path().parent)
        descriptor = os.open(path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return listed
    try:
        if not SUPPORTED:
            return listed
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # held for the blink of an eye
        return _take(descriptor, listed, now.timestamp())
    except OSError:
        return listed
    finally:
        os.close(descriptor)


def _take(descriptor: int, news: list[Message], now: float) -> list[Message]:
    earliest = now - AGAIN.total_seconds()
    told = {name: at for name, at in _read(descriptor).items() if earliest < at <= now}
    ours = [message for message in news if _name(message) not in told]
    if ours:
        told |= dict.fromkeys(map(_name, ours), now)
        data = json.dumps(told).encode()
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, data, 0)
    return ours


def _read(descriptor: int) -> dict[str, float]:
    """What was told, and when; nothing where a killed writer left half of it."""
    with contextlib.suppress(ValueError):
        found = json.loads(os.pread(descriptor, LARGEST, 0) or b"{}")
        if isinstance(found, dict):
            return {name: at for name, at in found.items() if isinstance(at, int | float)}
    return {}


def _name(message: Message) -> str:
    said = "\0".join((message.kind, message.location, message.participant, message.reason))
    return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()[:32]


PATIENCE = 10.0  # seconds that a way may take

TERMINALS = ("off", "osc9", "osc777")

_PLACE = re.compile(r"\{(title|text|kind|collaboration|location|participant|reason|key)\}")


@dataclass(frozen=True, slots=True)
class Ways:
    """In which ways a person wants to be told: the table ``[notify]`` of ``config.toml``.

    Attributes:
        terminal: how the terminal is asked to show a notice: ``off``, ``osc9`` or ``osc777``.
        desktop: by ``notify-send`` or ``osascript``, where there is a desktop.
        command: a program with its arguments; ``{title}``, ``{text}``, ``{kind}``,
            ``{collaboration}``, ``{location}``, ``{participant}``, ``{reason}`` and ``{key}``
            stand for what is told; all of it comes as JSON to its standard input, too.
        webhook: an address that gets the same JSON by POST.
        quiet: hours in local time in which only the window's title tells, as ``22:00-07:00``.
        kinds: which kinds of news are told, where not those of `USUAL`.
    """

    terminal: str = "off"
    desktop: bool = True
    command: tuple[str, ...] = ()
    webhook: str = ""
    quiet: str = ""
    kinds: Mapping[str, bool] | None = None

    def tells(self, kind: str) -> bool:
        """Whether news of this kind are told."""
        return (self.kinds or {}).get(kind, kind in USUAL)


USUAL = ("stuck", "blocked", "need")


def parse(table: Mapping[str, Any]) -> Ways:
    """The ways that a table names, which `CHECK` found right."""
    return Ways(**{**table, "command": tuple(table.get("command", ()))})


def _are_words(value: object) -> bool:
    words = value if isinstance(value, list) else [0]
    return all(isinstance(word, str) and "\0" not in word for word in words)


def _is_address(value: object) -> bool:
    return isinstance(value, str) and (not value or bool(re.match(r"https?://[^/\s]", value)))


def _are_hours(value: object) -> bool:
    try:
        is_quiet(value if isinstance(value, str) else "-", time())
    except ValueError:
        return False
    return True


CHECK = check_fields(
    {
        "terminal": check_one_of(TERMINALS),
        "desktop": IS_SWITCH,
        "command": check_that(_are_words, "a list of texts: a program and its arguments"),
        "webhook": check_that(_is_address, "an address that begins with https:// or http://"),
        "quiet": check_that(_are_hours, 'two times with a dash between them ("22:00-07:00")'),
        "kinds": check_fields(dict.fromkeys(KINDS, IS_SWITCH)),
    }
)
"""Of the table ``[notify]``."""


def desktop_command(title: str, text: str) -> tuple[str, ...]:
    """The command that shows a notice on this machine's desktop; () where there is none."""
    if sys.platform == "darwin":
        program = shutil.which("osascript")
        script = "display notification (item 2 of argv) with title (item 1 of argv)"
        lines = ("-e", "on run argv", "-e", script, "-e", "end run")
        return (program, *lines, title, text) if program else ()
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return ()
    program = shutil.which("notify-send")
    # the text of such a notice is markup
    return (
        (program, "--app-name=acp", "--", title, html.escape(text, quote=False)) if program else ()
    )


def own_command(command: Sequence[str], facts: Mapping[str, str]) -> tuple[str, ...]:
    """A person's command with what is told in its places. No text becomes an option."""

    def filled(word: str) -> str:
        made = _PLACE.sub(lambda found: facts[found[1]], word)
        return made if made == word or not made.startswith("-") or word[0] == "-" else f" {made}"

    return (*command[:1], *(filled(word) for word in command[1:]))


def facts_of(message: Message, key: str) -> dict[str, str]:
    """Everything about a message, by name."""
    return {
        "title": message.title,
        "text": message.text(key),
        "kind": message.kind,
        "collaboration": message.collaboration,
        "location": message.location,
        "participant": message.participant,
        "reason": message.reason,
        "key": key if message.action else "",
    }


def tell(message: Message, ways: Ways, key: str, *, desktop: bool = True) -> list[str]:
    """Tell a person in every way that they want.

    Args:
        message: What to say.
        ways: How.
        key: The key of the dashboard that mends it.
        desktop: Whether there is somebody before a desktop at all.

    Returns:
        What went wrong, a line each.
    """
    facts = facts_of(message, key)
    told = json.dumps({"schema": "acp.notice/1", **facts}, ensure_ascii=False).encode()
    problems: list[str] = []
    if desktop and ways.desktop:
        shown = desktop_command(facts["title"], facts["text"])
        problems += _run(shown, b"", "the desktop") if shown else ()
    if ways.command:
        problems += _run(own_command(ways.command, facts), told, "notify.command")
    if ways.webhook:
        problems += _post(ways.webhook, told)
    return problems


def _run(command: Sequence[str], told: bytes, what: str) -> list[str]:
    try:
        done = subprocess.run(
            command,
            input=told,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return [f"{what}: {clean_line(command[0])} did not finish"]
    except OSError as error:
        return [f"{what}: {clean_line(command[0])}: {error.strerror or error}"]
    if done.returncode:
        return [f"{what}: {clean_line(command[0])} ended with exit code {done.returncode}"]
    return []


def _post(address: str, told: bytes) -> list[str]:
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    request = Request(
        address, told, {"Content-Type": "application/json", "User-Agent": "acp"}, method="POST"
    )
    try:
        with urlopen(request, timeout=PATIENCE):
            return []
    except URLError as error:
        return [f"notify.webhook: {clean_line(str(error.reason), 200)}"]
    except (OSError, ValueError) as error:
        return [f"notify.webhook: {clean_line(str(error), 200)}"]
