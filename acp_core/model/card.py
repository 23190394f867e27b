"""A matter that a human decides: the question with its evidence, and the verdicts side by side.

A protocol makes cards from its Snapshot. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from acp_core.model import Row


class CardVerdict(NamedTuple):
    """One way to decide: an action with preset values.

    Attributes:
        label: what the person reads, such as "Accept".
        action: the action's name.
        given: values of its inputs, by name; what else it needs is asked for.
    """

    label: str
    action: str
    given: tuple[tuple[str, str], ...] = ()


class CardDocument(NamedTuple):
    """A document of the Snapshot that belongs to the matter, in the version that is judged."""

    id: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A matter to be decided. Its texts are safe to show.

    Attributes:
        id: the same from one Snapshot to the next, as long as it is the same matter.
        claim: the protocol's question, or what somebody claims.
        by: who asks, as the Snapshot names participants; "" where nobody does.
        since: since when it waits; None where that is not known.
        evidence, objections, changes: what speaks for it, what against it, and what is otherwise than
            when it was last decided; each row may point to a document, one of its lines, an
            event or a finding.
        verdicts: how it can be decided, in the order of their numbers.
        documents: what is judged.
    """

    id: str
    claim: str
    by: str = ""
    since: datetime | None = None
    evidence: tuple[Row, ...] = ()
    objections: tuple[Row, ...] = ()
    changes: tuple[Row, ...] = ()
    verdicts: tuple[CardVerdict, ...] = ()
    documents: tuple[CardDocument, ...] = ()

    @property
    def digest(self) -> str:
        """The matter in 32 hexadecimal digits: a verdict on another matter is refused.

        All that a person judges by is in it; how long it waits, and how verdicts are worded, is not.
        """
        from hashlib import sha256  # late: agents that import the contract need none

        rows = [
            list(map(_row_contents, part))
            for part in (self.evidence, self.objections, self.changes)
        ]
        ways = sorted((each.action, sorted(each.given)) for each in self.verdicts)
        matter = [self.id, self.claim, self.by, rows, ways, _versions(self.documents)]
        text = json.dumps(matter, ensure_ascii=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:32]


def _row_contents(row: Row) -> list[object]:
    """What a row says and points to; the ages in it go on by themselves."""
    aging = {place for place, _ in row.ages}
    cells = ["" if place in aging else cell for place, cell in enumerate(row.cells)]
    target = row.target
    points = [target.document, target.line, target.event, target.finding, target.action]
    return [cells, row.checked, row.tone.value, points, target.given]


def _versions(documents: Iterable[CardDocument]) -> list[list[str]]:
    return sorted([each.id, each.version] for each in documents)
