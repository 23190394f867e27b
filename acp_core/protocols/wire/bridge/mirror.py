"""A folder elsewhere, as its bridge tells of it: never trusted, checked, cleaned and bounded.

What a bridge says is data: nothing in it is a path here, an action that nobody may ask for, or
text that has not been made safe.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from acp_core.model import DocumentText, Event, Heading, Snapshot, SourceState
from acp_core.model.errors import InvalidInput
from acp_core.model.sentence import continued, names_in
from acp_core.model.text import clean, clean_line
from acp_core.protocols.wire.bridge import written
from acp_core.protocols.wire.schema import Json

LARGEST = 48 << 20  # bytes of an answer
EVENTS = 20_000  # that are held, the latest
_ITEMS = 5_000  # of a list
_LINE, _TEXT = 1_000, 8_000  # characters of a line, and of what may have several
_DEPTH = 8
_LONG = frozenset({"cells", "evidence"})  # fields that may have several lines
_ACTIONS = frozenset({"action", "remedy"})


class Unfit(InvalidInput):
    """An answer is not what a bridge says; the message is one line."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    form: str
    snapshot: dict[str, Any]
    begin: int = Field(ge=0, le=10**9)
    total: int = Field(ge=0, le=10**9)
    digest: str = Field(max_length=200)
    events: list[dict[str, Any]] = Field(max_length=written.EVENTS + EVENTS)


class _Text(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    version: str = Field(max_length=500)
    text: str = Field(max_length=2 * written.TEXT)
    text_note: str = ""
    headings: list[Heading] = Field(default=[], max_length=_ITEMS)


class Mirror:
    """What is known of the folder behind one bridge.

    Args:
        key: by which the collaboration is known here.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._events: list[Event] = []
        self._digest = ""
        self._told = 0  # how many events the bridge has
        self.snapshot: Snapshot | None = None

    @property
    def query(self) -> dict[str, str | int]:
        """What to say so that the bridge tells the new events alone."""
        return {"have": self._told, "digest": self._digest} if self._told else {}

    def take(self, told: Json, allowed: Collection[str] = ()) -> Snapshot:
        """Take an answer over; gives what is known by then.

        Args:
            allowed: the names of the actions that may be asked for.

        Raises:
            Unfit: it is none; nothing was taken over.
        """
        try:
            answer = _Answer.model_validate(told)
            if answer.form != written.FORM:
                raise Unfit(
                    f"unsupported schema version of the bridge: {clean_line(answer.form, 60)}"
                )
            known = set(Event._fields)
            new = [
                _event().validate_python({n: v for n, v in each.items() if n in known})
                for each in answer.events
            ]
            given = _snapshot().validate_python({**answer.snapshot, "events": ()})
        except ValidationError as error:
            raise Unfit(_words(error)) from None
        except RecursionError:
            raise Unfit("the bridge's answer is nested too deeply") from None
        cleaned = [_cleaned(each, frozenset(allowed), 0) for each in new]
        goes_on = answer.begin == self._told and bool(self._told)
        events = ([*self._events, *cleaned] if goes_on else cleaned)[-EVENTS:]
        shown = _cleaned(given, frozenset(allowed), 0)
        self._events, self._told, self._digest = events, answer.total, answer.digest
        self.snapshot = replace(
            shown,
            key=self._key,
            protocol="wire",
            headline=_plain_headline(shown),
            dialect=clean_line(f"bridge, {shown.protocol} {shown.dialect}".strip(), 60),
            location=clean_line(self._key, 4096),
            events=tuple(events),
            documents=tuple(replace(each, path=None) for each in shown.documents),
            parts=(),
            lineage=tuple(replace(each, found=False) for each in shown.lineage),
            source=_source(shown),
            limits="",
            recheck_at=None,
        )
        return self.snapshot

    def text(self, told: Json) -> DocumentText:
        """The text of a document.

        Raises:
            Unfit: it is none.
        """
        try:
            given = _Text.model_validate(told)
        except ValidationError as error:
            raise Unfit(_words(error)) from None
        return DocumentText(
            id=clean_line(given.id),
            version=clean_line(given.version),
            text=clean(given.text),
            headings=tuple(
                Heading(min(9, max(1, each.level)), clean_line(each.title), max(1, each.line))
                for each in given.headings
            ),
            note=clean_line(given.text_note),
        )


def _plain_headline(shown: Snapshot) -> str:
    """The headline without what is to be done, which is said again of the causes here."""
    advice = continued(shown.causes[0].advice, names_in(shown)) if shown.causes else ""
    return shown.headline.removesuffix(f" What to do: {advice}.") if advice else shown.headline


def _source(shown: Snapshot) -> Any:
    """How the bridge reads its folder: that it is reached is another matter."""
    if shown.source.state is SourceState.LIVE:
        return shown.source
    return replace(shown.source, note=f"at the bridge: {shown.source.note}"[:_LINE])


@cache
def _snapshot() -> TypeAdapter[Snapshot]:
    return TypeAdapter(Snapshot)


@cache
def _event() -> TypeAdapter[Event]:
    return TypeAdapter(Event)


def _cleaned(value: Any, allowed: frozenset[str], depth: int, name: str = "") -> Any:
    """A part of the model with every text in it made safe, and nothing longer than it may be."""
    if isinstance(value, Enum) or value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime):
        return value if value.tzinfo else value.astimezone()
    if isinstance(value, str):
        if name in _ACTIONS:
            return value if value in allowed else None
        return clean(value)[:_TEXT] if name in _LONG else clean_line(value, _LINE)
    if depth > _DEPTH:
        raise Unfit("the bridge's answer is nested too deeply")
    if isinstance(value, Event):
        return Event(*(_cleaned(part, allowed, depth + 1) for part in value))
    if isinstance(value, tuple | list):
        if name == "others":
            return tuple(each for each in value if each in allowed)
        return tuple(_cleaned(each, allowed, depth + 1, name) for each in value[:_ITEMS])
    if is_dataclass(value) and not isinstance(value, type):
        parts = {
            each.name: _cleaned(getattr(value, each.name), allowed, depth + 1, each.name)
            for each in fields(value)
        }
        return replace(value, **parts)
    raise Unfit(f"the bridge's answer holds a {type(value).__name__}")


def _words(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(each) for each in first["loc"][:6])
    return clean_line(f"the bridge's answer is invalid: {where}: {first['msg']}", 300)
