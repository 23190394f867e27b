"""A matter that a human decides: the question with its evidence, and the verdicts side by side.

A protocol makes cards from its Snapshot. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from acp_core.model import Change, Row
    from acp_core.model.matter import Matter

_LEAD = 24  # characters of a first cell that stands in a column of its own


class CardVerdict(NamedTuple):
    """One way to decide: an action with preset values.

    Attributes:
        label: What the person reads, such as "Accept".
        action: The action's name.
        given: Values of its inputs, by name.
        asks: Names of the inputs that the person must fill in, such as a reason.
        blank: Names of those among them that may stay empty: a text that was edited in its file.
    """

    label: str
    action: str
    given: tuple[tuple[str, str], ...] = ()
    asks: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()


class CardDocument(NamedTuple):
    """A document or another file that belongs to the matter, in the version that is judged."""

    id: str
    version: str = ""


class CardSection(NamedTuple):
    """Facts of one kind on a card.

    Attributes:
        title: A word or two, such as "Decisions", "Objections", "Gate" or "Files".
        rows: One fact each, the most important first. A row is checked (met or not) where that can be
            said, and may point to a document, one of its lines, an event or a finding.
        columns: Titles of the rows' cells, where the cells do not speak for themselves: the two
            versions of a conflict.
    """

    title: str
    rows: tuple[Row, ...]
    columns: tuple[str, ...] = ()

    @property
    def leads(self) -> tuple[str, ...]:
        """The first cells of rows with several, where these are short enough to be a column."""
        found = tuple(each.cells[0] for each in self.rows if sum(map(bool, each.cells)) > 1)
        return () if any(len(each) > _LEAD for each in found) else found


@dataclass(frozen=True, slots=True)
class Card:
    """A matter to be decided. Its texts are safe to show.

    Attributes:
        id: The same from one Snapshot to the next, as long as it is the same matter.
        title: Who asks for what, in a line.
        claim: The question, or what is claimed, in the words of whoever asks; "" where the title says all.
        by: Who asks, as the Snapshot names participants; "" where nobody does.
        since: Since when it waits; None where that is not known.
        sections: The facts that the choice depends on, the most important first.
        verdicts: How it can be decided, in the order of their numbers.
        documents: What is judged.
        changes: What was changed, file by file; rows point to these by their paths.
        replaces: Names of actions whose forms the card replaces, also while no verdict does them.
    """

    id: str
    title: str
    claim: str = ""
    by: str = ""
    since: datetime | None = None
    sections: tuple[CardSection, ...] = ()
    verdicts: tuple[CardVerdict, ...] = ()
    documents: tuple[CardDocument, ...] = ()
    changes: tuple[Change, ...] = ()
    replaces: tuple[str, ...] = ()

    def verdict(self, action: str, given: Mapping[str, str] | None = None) -> int | None:
        """Which verdict does an action with these values; None where none does.

        Args:
            action: The action's name.
            given: Values of its inputs. A verdict that presets another value is another decision.
        """
        return next(iter(self.fitting(action, given)), None)

    def fitting(self, action: str, given: Mapping[str, str] | None = None) -> tuple[int, ...]:
        """All verdicts that do an action with these values, as far as they are known; see `verdict`."""
        values = given or {}
        return tuple(
            number
            for number, each in enumerate(self.verdicts)
            if each.action == action and all(values.get(k, v) == v for k, v in each.given)
        )

    def is_about(self, matter: Matter) -> bool:
        """Whether this matter is decided on the card."""
        ending = [each for each in matter.verdicts if each.ends]
        if self.id == matter.key or any(
            self.fitting(each.act, dict(each.given)) for each in ending
        ):
            return True
        same = self.by in ("", matter.about.participant or "")
        return same and any(each.act in self.replaces for each in ending)

    @property
    def digest(self) -> str:
        """The matter in 32 hexadecimal digits: a verdict on another matter is refused.

        All that a person judges by is in it; how long it waits, and how verdicts are worded, is not.
        """
        from hashlib import sha256  # late: agents that import the contract need none

        facts = [
            [each.title, each.columns, list(map(_row_contents, each.rows))]
            for each in self.sections
        ]
        ways = sorted((each.action, sorted(each.given)) for each in self.verdicts)
        changed = [[each.path, each.verb, each.diff] for each in self.changes]
        matter = [
            self.id, self.title, self.claim, self.by, facts, ways, _versions(self.documents),
            changed,
        ]  # fmt: skip
        text = json.dumps(matter, ensure_ascii=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:32]


def _row_contents(row: Row) -> list[object]:
    """What a row says and points to; the ages in it go on by themselves."""
    aging = {place for place, _ in row.ages}
    cells = ["" if place in aging else cell for place, cell in enumerate(row.cells)]
    target = row.target
    points = [
        target.document,
        target.line,
        target.event,
        target.finding,
        target.action,
        target.change,
    ]
    return [cells, row.checked, row.tone.value, points, target.given]


def _versions(documents: Iterable[CardDocument]) -> list[list[str]]:
    return sorted([each.id, each.version] for each in documents)
