"""Which events of a timeline are shown, and which of them hold some words. No widgets here."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from acp_core.model import Event

CHUNK = 1_000
"""How many events a background search looks at before it asks whether it is still wanted."""

LOOK_BACK = 2_000
"""How many events `find_event` looks at when the id does not say where the event is."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What an event must be to show: any of ``actors``, any of ``kinds``, all of ``words``.

    ``unread`` and ``problems`` restrict to events that are new since the last visit, and to
    events that break a rule. Names match whole, or by a beginning that ends with ``*``.
    """

    actors: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    problems: bool = False
    unread: bool = False

    def __bool__(self) -> bool:
        return bool(self.actors or self.kinds or self.words or self.problems or self.unread)

    def admits(self, event: Event, unread: bool = False) -> bool:
        """Whether ``event`` shows."""
        if self.problems and not event.problem:
            return False
        if self.unread and not unread:
            return False
        if self.actors and not _any(self.actors, event.actor):
            return False
        if self.kinds and not _any(self.kinds, event.kind):
            return False
        if self.words:
            text = searched(event).lower()
            return all(word in text for word in self.words)
        return True

    def __str__(self) -> str:
        """As `parse` reads it."""
        parts = [f"from:{_quoted(actor)}" for actor in self.actors]
        parts += [f"event:{_quoted(kind)}" for kind in self.kinds]
        parts += ["is:illegal"] * self.problems + ["is:new"] * self.unread
        parts += [_quoted(word) for word in self.words]
        return " ".join(parts)


def parse(typed: str) -> Filter:
    """Read what somebody typed: ``from:NAME``, ``event:KIND``, ``is:illegal``, ``is:new``, words.

    ``by:`` is another word for ``from:``, ``kind:`` for ``event:``. Several of one sort are
    alternatives; ``"two words"`` in quotes stay together. Nothing that is typed is an error.
    """
    actors: list[str] = []
    kinds: list[str] = []
    words: list[str] = []
    problems = unread = False
    for word in _split(typed):
        name, colon, value = word.partition(":")
        match name.lower() if colon and value else "":
            case "from" | "by":
                actors.append(value)
            case "event" | "kind":
                kinds.append(value)
            case "is" if value in ("illegal", "problem"):
                problems = True
            case "is" if value in ("new", "unread"):
                unread = True
            case _:
                words.append(word.lower())
    return Filter(tuple(actors), tuple(kinds), tuple(words), problems, unread)


def searched(event: Event) -> str:
    """The text of an event in which words are looked for."""
    return "\n".join(
        (event.summary, event.kind, event.actor, f"#{event.order}", event.document or "",
         event.problem)
    )  # fmt: skip


def chunks(indices: Iterable[range]) -> Iterator[range]:
    """Ranges cut into pieces of at most `CHUNK`."""
    for whole in indices:
        for start in range(whole.start, whole.stop, CHUNK):
            yield range(start, min(start + CHUNK, whole.stop))


def select(
    events: Sequence[Event],
    span: range,
    chosen: Filter,
    unread_from: int | None,
    wanted: Callable[[], bool] = lambda: True,
) -> array[int] | None:
    """The places of the events in ``span`` that show; None when no longer ``wanted``.

    Slow for many events: for a thread.
    """
    places = array("l")
    for chunk in chunks([span]):
        if not wanted():
            return None
        for index in chunk:
            unread = unread_from is not None and index >= unread_from
            if chosen.admits(events[index], unread):
                places.append(index)
    return places


def find_event(events: Sequence[Event], id: str | None, limit: int = LOOK_BACK) -> int | None:
    """Where the event with this ``id`` is, or None.

    A sequence with a method ``find`` is asked. Else: logs mostly number their events from 1, so that the id says where to look; otherwise the
    last ``limit`` events are looked at (quick enough for the interface's thread).
    """
    if id is None:
        return None
    known = getattr(events, "find", None)  # a protocol's own sequence may know at once
    if callable(known):
        place: int | None = known(id)
        return place
    if id.isdecimal() and len(id) < 10:
        for index in (int(id) - 1, int(id)):
            if index < len(events) and events[index].id == id:
                return index
    for index in range(len(events) - 1, max(-1, len(events) - 1 - limit), -1):
        if events[index].id == id:
            return index
    return None


def _any(names: tuple[str, ...], name: str) -> bool:
    return any(
        name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted for wanted in names
    )


def _split(typed: str) -> Iterator[str]:
    word, quoted = "", False
    for letter in typed:
        if letter == '"':
            quoted = not quoted
        elif letter.isspace() and not quoted:
            if word:
                yield word
            word = ""
        else:
            word += letter
    if word:
        yield word


def _quoted(word: str) -> str:
    return f'"{word}"' if any(letter.isspace() for letter in word) else word
