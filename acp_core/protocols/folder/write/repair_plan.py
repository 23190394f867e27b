"""What a repair would do, kept up to date: each look costs what is new, not the whole log.

It says what `damage` says; where something else than headings or the recorded state may be
wrong, it is asked. Standard library only.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.write import Refused, damage, init, review
from acp_core.protocols.folder.write.opened import Opened, with_state


def opened(facts: Facts) -> Opened | None:
    """What a writer would find, without reading it again; None where that must be looked at."""
    doubt = facts.unsettled or facts.protocol_problem or facts.log_problem or facts.tail
    if doubt or facts.log_full or facts.protocol is None:
        return None
    if facts.dialect == schema.UNKNOWN_DIALECT:
        return None
    return Opened(facts.folder, facts.protocol, facts.history, facts.log_size, facts.log_lines)


class Planned(NamedTuple):
    """A fix that a repair would make: the file's name, and the sentence that says what is done."""

    name: str
    sentence: str


class Outlook:
    """The fixes that `damage.diagnose` would plan for one collaboration."""

    def __init__(self) -> None:
        self._history: History | None = None
        self._taken = 0  # reviews that were looked at
        self._version = ""  # of review.md
        self._there: dict[int, str] = {}
        self._lacking: list[int] = []

    def planned(self, facts: Facts, now: datetime) -> tuple[Planned, ...]:
        """What a repair would do after the last look of ``facts``.

        Raises:
            Refused: there is no collaboration, or its log is no readable file.
        """
        here = opened(facts)
        if here is None or not facts.log_size or self._lacks_files(here, now):
            return self._asked(facts, now)
        lacking = self._without_heading(facts)
        if lacking is None:
            return self._asked(facts, now)
        fixes = [Planned(review.REVIEW, damage.lacking_headings(lacking))] if lacking else []
        if here.participants:  # else no state follows from the log
            sentence = damage.lag(here.protocol, with_state(here))
            fixes += [Planned(schema.PROTOCOL_FILE, sentence)] if sentence else []
        return tuple(fixes)

    def _asked(self, facts: Facts, now: datetime) -> tuple[Planned, ...]:
        fixes = damage.diagnose(facts.folder, now).fixes
        return tuple(Planned(fix.name, fix.sentence) for fix in fixes)

    def _lacks_files(self, here: Opened, now: datetime) -> bool:
        try:
            return bool(init.missing_files(here.folder, here.protocol, now))
        except Refused:
            return True

    def _without_heading(self, facts: Facts) -> list[int] | None:
        """The seqs of reviews without a heading; None where review.md cannot be read."""
        file, history = facts.files[review.REVIEW], facts.history
        if file.problem or file.path is None:
            return None
        if file.version != self._version:
            try:
                text = read_bounded(file.path, schema.MAX_DOCUMENT)
            except Unreadable:
                return None
            self._there, self._version, self._history = damage.headings(text), file.version, None
        if history is not self._history or not history.check.regular:
            reviews = history.machine.reviews
            self._lacking = [seq for seq in reviews if seq not in self._there]
        else:
            for index in history.review_at[self._taken :]:
                if index + 1 not in self._there:
                    self._lacking.append(index + 1)
        self._history, self._taken = history, len(history.review_at)
        return self._lacking
