"""A turn of a live session as it is to be seen: its text, calls and notes in their order, as they come.

Reads the turn's journal, the running one's or a finished one's. Reading may be slow; it belongs
into a worker. Every text is made safe to show here, and secrets were masked when it was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from acp_core.agents.live.updates import SessionState, Step, ToolCall, apply
from acp_core.agents.output import Tail
from acp_core.agents.progress import string, table, text_in
from acp_core.agents.state import ToolUse
from acp_core.agents.streams import use_of
from acp_core.files.secrets import mask
from acp_core.model.text import clean, clean_line

TEXT, CALL, NOTE, PERSON = "text", "call", "note", "person"
MOST = 400
"""Entries that are remembered, the newest."""
_USES = 40  # of tools that are noted for good
_SHORT = 160  # characters of one of them
_LONGEST = 20_000  # characters of one entry
_LINES = 12  # last lines of what a call printed
_LINE = 1_000  # characters of a line


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened in a turn; all texts of those that `Feed` gives are safe to show.

    Attributes:
        number: counts the entries of the turn.
        at: when it began, in seconds since 1970.
        kind: `TEXT` of the agent, a `CALL` of a tool, a `NOTE` of acp, or the words of a `PERSON`.
        text: what was said; of a call the tool and what it is used on.
        status: of a call: pending, in_progress, completed or failed.
        output: of a call: the last lines that it printed.
    """

    number: int
    at: float
    kind: str
    text: str
    status: str = ""
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """How a turn stands.

    Attributes:
        state: of its session; its texts are as they came.
        entries: what changed since the last picture, each whole, in order.
        plan: the plan, safe to show.
    """

    state: SessionState
    entries: tuple[Entry, ...] = ()
    plan: tuple[Step, ...] = ()


class Feed:
    """Follows the journal of one turn.

    Args:
        journal: the file.
    """

    def __init__(self, journal: Path) -> None:
        self._tail = Tail(journal)
        self._state = SessionState()
        self._entries: dict[int, Entry] = {}
        self._of_call: dict[str, int] = {}
        self._count = 0

    def read(self) -> Picture | None:
        """What is new since the last call; None where nothing is."""
        changed: dict[int, None] = {}
        before = self._state
        for line in self._tail.lines():
            for number in self._take(line):
                changed[number] = None
        state = self._state
        if not changed and state is before:
            return None
        found = (self._entries[each] for each in sorted(changed) if each in self._entries)
        entries = tuple(replace(each, text=_safe(each.text)) for each in found)
        return Picture(state, entries, _plan(state.plan))

    def _take(self, line: bytes) -> Iterable[int]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(record, dict):
            return
        message, at = table(record.get("message")), record.get("at")
        before, state = self._state, apply(self._state, string(record.get("direction")), message)
        self._state = state
        now = float(at) if isinstance(at, int | float) else 0.0
        if text := _chunk(message):
            yield self._text(text, state.last == before.last, now)
        for name, call in state.calls.items():
            if before.calls.get(name) is not call:
                yield self._call(name, call, now)
        for kind, name in ((NOTE, "note"), (NOTE, "failed"), (PERSON, "message")):
            if text := string(message.get(name)):
                yield self._add(Entry(0, now, kind, text))
        if refused := string(message.get("refused")):
            yield self._add(Entry(0, now, NOTE, f"not allowed: {refused}"))

    def _text(self, text: str, goes_on: bool, now: float) -> int:
        """What the agent says: more of the same message, or another one."""
        newest = self._entries.get(self._count)
        if not goes_on or newest is None or newest.kind != TEXT:
            return self._add(Entry(0, now, TEXT, text))
        more = replace(newest, text=(newest.text + text)[-_LONGEST:])
        self._entries[newest.number] = more
        return newest.number

    def _call(self, name: str, call: ToolCall, now: float) -> int:
        lines = tuple(_safe_line(each) for each in call.output.splitlines()[-_LINES:])
        entry = Entry(0, now, CALL, use_of(call), _safe_line(call.status), lines)
        number = self._of_call.get(name)
        if number is None or number not in self._entries:
            number = self._of_call[name] = self._add(entry)
        else:
            self._entries[number] = replace(entry, number=number, at=self._entries[number].at)
        return number

    def _add(self, entry: Entry) -> int:
        self._count += 1
        self._entries[self._count] = replace(entry, number=self._count)
        self._entries.pop(self._count - MOST, None)
        return self._count


def entries(journal: Path) -> tuple[Entry, ...]:
    """What happened in a turn that has ended, the newest of it; nothing where its file is gone."""
    feed = Feed(journal)
    found: dict[int, Entry] = {}
    while picture := feed.read():
        found |= {each.number: each for each in picture.entries}
    return tuple(found[number] for number in sorted(found)[-MOST:])


def tool_uses(journal: Path) -> tuple[ToolUse, ...]:
    """The tools that were used in a turn that has ended, the newest, safe to show."""
    calls = [each for each in entries(journal) if each.kind == CALL][-_USES:]
    return tuple(
        ToolUse(each.at, clean_line(each.text, _SHORT), clean_line(each.status, _SHORT))
        for each in calls
    )


def _chunk(message: Mapping[str, Any]) -> str:
    """What the agent says in a message; "" where it says nothing."""
    update = table(table(message.get("params")).get("update"))
    says = update.get("sessionUpdate") == "agent_message_chunk"
    return text_in([table(update.get("content"))]) if says else ""


def _plan(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(
        Step(_safe_line(each.content), _safe_line(each.status), _safe_line(each.priority))
        for each in steps
    )


def _safe(text: str) -> str:
    return clean(mask(text[-_LONGEST:]))


def _safe_line(text: str) -> str:
    return clean_line(mask(text[: 4 * _LINE]), _LINE)
