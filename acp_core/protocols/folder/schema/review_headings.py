"""Reviews in the log and their headings in review.md: which have no counterpart.

Source: folder protocol specification, "Review Format". Kept up to date event by event.
Standard library only.
"""

from __future__ import annotations

from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder.schema.documents import Review, ReviewHeading

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.log import History
    from acp_core.protocols.folder.schema import Entry

Mismatch = tuple[ReviewHeading, str, str]
"""A heading, and the event that bears its seq ("" for none) with its author."""


class Pairing:
    """Which reviews lack a heading, and which headings lack their review.

    Attributes:
        without_heading: ``review_submitted`` events that no heading names.
        without_review: headings that name no event, another event or another author's.
    """

    def __init__(self) -> None:
        self.without_heading: list[Entry] = []
        self.without_review: list[Mismatch] = []
        self._history: History | None = None
        self._review: Review | None = None
        self._reviews = 0  # events looked at
        self._entries = 0

    def update(self, history: History, review: Review | None) -> bool:
        """Look at what is new; returns whether anything changed."""
        if history is self._history and review is self._review:
            if len(history.entries) == self._entries:
                return False
            new = history.entries[self._entries].seq
            fresh = review is not None and history.check.regular and new is not None
        else:
            fresh = False
        before = (self.without_heading, self.without_review)
        if fresh and review is not None:
            self._add(history, review)
        else:
            self._restart(history, review)
        self._history, self._review = history, review
        self._entries, self._reviews = len(history.entries), len(history.review_at)
        return before != (self.without_heading, self.without_review)

    def _restart(self, history: History, review: Review | None) -> None:
        headings = review.headings if review else {}
        if history.check.regular:
            reviews = history.machine.reviews  # each event bears the number of its place
            lacking = reviews.keys() - headings.keys() if headings else reviews
            self.without_heading = [history.entries[seq - 1] for seq in sorted(lacking)]
            odd = [h for h in headings.values() if reviews.get(h.seq) != h.participant]
        else:
            self.without_heading = [e for e in history.reviews if e.seq not in headings]
            odd = list(headings.values())
        self.without_review = [
            mismatch for heading in odd if (mismatch := _mismatch(history, heading)) is not None
        ]

    def _add(self, history: History, review: Review) -> None:
        added = [history.entries[index] for index in history.review_at[self._reviews :]]
        new = [entry for entry in added if entry.seq not in review.headings]
        if new:
            self.without_heading = [*self.without_heading, *new]
        first = history.entries[self._entries].seq or 0
        if not any(heading.seq >= first for heading, _, _ in self.without_review):
            return
        self.without_review = [
            mismatch
            for heading, event, author in self.without_review
            if (
                mismatch := (
                    (heading, event, author) if heading.seq < first else _mismatch(history, heading)
                )
            )
            is not None
        ]


def _mismatch(history: History, heading: ReviewHeading) -> Mismatch | None:
    entries = history.with_seq(heading.seq)
    reviews = [entry for entry in entries if entry.event == "review_submitted"]
    if any(entry.sender == heading.participant for entry in reviews):
        return None
    if reviews:
        return heading, reviews[0].event, reviews[0].sender
    if entries:
        return heading, entries[0].event or "unknown", entries[0].sender
    return heading, "", ""
