"""What a person notes for themselves about a collaboration: needs that they know of, and what is put away.

Described once; forms, `acp act` and the commands come from there. These acts are personal: they write
this person's own state (`acp_core.person.attention`), never the collaboration, whose participants and
other people see nothing of them. So nobody else can ask for one, by whatever bridge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from acp_core.diagnosis.personal_table import ACK, ARCHIVE, UNACK, UNARCHIVE
from acp_core.model import (
    Action,
    Matter,
    Outcome,
    OutcomeState,
    Preview,
    Snapshot,
    Status,
)
from acp_core.model.action_spec import ActionSpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.format import continued, names_in, sentence_case
from acp_core.model.text import clean_line
from acp_core.person.attention import Attention
from acp_core.protocols import registry
from acp_core.protocols.discovery import identify
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values

_LONGEST = 120  # characters of a need in the list to choose from


class _Matters(NamedTuple):
    """Needs, which are meant where none is named, and questions, which must be."""

    state: str
    needs: tuple[Matter, ...]
    questions: tuple[Matter, ...]
    names: tuple[str, ...]

    @property
    def texts(self) -> dict[str, str]:
        """What each is about, by its key, as it goes on after other words."""
        needs = {each.key: clean_line(continued(each.sentence, self.names)) for each in self.needs}
        return needs | {each.key: clean_line(each.sentence) for each in self.questions}

    def choices(self) -> Mapping[str, object]:
        """What can be named; a need that is alone is meant."""
        said = self.texts | {e.key: sentence_case(e.sentence, self.names) for e in self.needs}
        labels = {key: clean_line(text, _LONGEST) for key, text in said.items()}
        alone = self.needs[0].key if len(self.needs) == 1 else None
        return {"choices": tuple(labels), "labels": labels, "default": alone}

    def chosen(self, values: Values) -> list[str]:
        """The keys of those that are meant: by key or code, all needs, or the only one.

        Raises:
            Refused: there is none, or it is not clear which.
        """
        texts = self.texts
        if not texts:
            raise Refused(f"no {self.state} attention items")
        if values.all or (not values.need and len(self.needs) == 1):
            return [each.key for each in self.needs]
        named = [each.key for each in self.needs if values.need in (each.key, each.code)]
        if not named and values.need in texts:
            named = [values.need]
        if not named:
            known = "; ".join(f"{key} ({text})" for key, text in texts.items())
            which = (
                f"no {self.state} attention item {values.need!r}"
                if values.need
                else "name one, or use --all"
            )
            raise Refused(f"{which}: {known}")
        return named


class Noted:
    """A collaboration, and what this person noted about it."""

    def __init__(
        self, key: str, snapshot: Snapshot | None = None, attention: Attention | None = None
    ) -> None:
        """Make it.

        Args:
            key: the collaboration's.
            snapshot: what was read of it, with its causes; by default it is read when it is needed.
            attention: where the notes are kept; by default in the person's state folder.
        """
        self.key = key
        self.attention = attention or Attention()
        self._snapshot = snapshot

    @classmethod
    def of(cls, context: Context) -> Noted:
        """What an act is bound to, whoever binds it."""
        return context if isinstance(context, Noted) else cls(context.key)

    @cached_property
    def snapshot(self) -> Snapshot:
        """What was read of the collaboration.

        Raises:
            Refused: there is none.
        """
        return self._snapshot or _read(self.key)

    @property
    def open(self) -> _Matters:
        """The needs and questions that are not acknowledged."""
        needs = self.attention.open_needs(self.snapshot)
        questions = self.attention.open_questions(self.snapshot)
        return _Matters("open", needs, questions, tuple(names_in(self.snapshot)))

    @property
    def acknowledged(self) -> _Matters:
        """Those that are."""
        known, seen = self.attention.acknowledged(self.key), self.snapshot
        needs = tuple(each for each in seen.needs if each.key in known)
        questions = tuple(each for each in seen.questions if each.key in known)
        return _Matters("acknowledged", needs, questions, tuple(names_in(seen)))


def _read(key: str) -> Snapshot:
    from acp_core.diagnosis.observer import Observer  # late: only who completes a command is here

    found = identify(Path(key), registry.installed()) if "://" not in key else None
    if found is None:
        raise Refused(f"{key}: not a collaboration")
    opened, now, observer = found.open(), utc_now(), Observer()
    try:
        read = opened.refresh(now)
        return observer.diagnosed(observer.diagnosis(), opened, read, now)
    finally:
        opened.close()


def bind_ack(context: Context, now: datetime) -> Action:
    """Take needs off the top of the fleet."""
    noted = Noted.of(context)

    def write(key: str, values: Values) -> None:
        noted.attention.acknowledge(noted.key, key, values.note, utc_now())

    what = "Hides this until something new needs attention:"
    return _about_needs(ACK, noted, noted.open, write, what, "Acknowledged")


def bind_unack(context: Context, now: datetime) -> Action:
    """Bring acknowledged needs back to the top."""
    noted = Noted.of(context)

    def write(key: str, values: Values) -> None:
        noted.attention.unacknowledge(noted.key, key)

    return _about_needs(UNACK, noted, noted.acknowledged, write, "Shows this again:", "Back")


def _about_needs(
    spec: ActionSpec,
    noted: Noted,
    matters: _Matters,
    write: Callable[[str, Values], None],
    what: str,
    done: str,
) -> Action:
    """An act that notes something of each need that is meant."""

    def preview(values: Values) -> Preview:
        texts = [matters.texts[key] for key in matters.chosen(values)]
        return Preview(f"{what} {'; '.join(texts)}")

    def perform(values: Values) -> Outcome:
        keys = matters.chosen(values)
        for key in keys:
            write(key, values)
        texts = tuple(matters.texts[key] for key in keys)
        sentence = f"{done}: {'; '.join(texts)}"
        written = Preview(sentence, notes=texts, data={"needs": keys})
        return Outcome(OutcomeState.DONE, sentence, done=written)

    return bound(
        spec,
        noted,
        preview,
        perform,
        narrowed={"need": matters.choices()},
        offered=bool(matters.texts),
    )


def bind_archive(context: Context, now: datetime) -> Action:
    """Leave a collaboration out of the fleet."""
    noted = Noted.of(context)

    def perform(values: Values) -> Outcome:
        noted.attention.archive(noted.key, utc_now())
        return Outcome(OutcomeState.DONE, f"{noted.snapshot.name} is archived.")

    what = f"Hides {noted.snapshot.name} from the fleet. Its files are not changed."
    over = noted.snapshot.status in (Status.COMPLETED, Status.BLOCKED)
    return bound(
        ARCHIVE,
        noted,
        lambda values: Preview(what, command=("acp", "archive", clean_line(noted.key, 4_096))),
        perform,
        offered=over and not noted.attention.is_archived(noted.key),
    )


def bind_unarchive(context: Context, now: datetime) -> Action:
    """Bring a collaboration back into the fleet; it may be gone or unreadable by now."""
    noted = Noted.of(context)
    archived = noted.attention.is_archived(noted.key)

    def perform(values: Values) -> Outcome:
        noted.attention.unarchive(noted.key)
        words = "Shown in the fleet again." if archived else "Not archived."
        return Outcome(OutcomeState.DONE, words, done=Preview(words, data={"was": archived}))

    command = ("acp", "unarchive", clean_line(noted.key, 4_096))
    return bound(
        UNARCHIVE,
        noted,
        lambda values: Preview("Shows the collaboration in the fleet again.", command=command),
        perform,
        offered=archived,
    )
