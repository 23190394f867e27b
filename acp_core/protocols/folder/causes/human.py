"""Group E: a person is asked for by the collaboration itself."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from acp_core.model import Cause
from acp_core.model.format import dated
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.read.lineage import continued_in
from acp_core.protocols.folder.schema import Entry
from acp_core.protocols.kit.diagnosis import Case

_LONG = 1_000
_SHOWN = 5  # blockers that are quoted


def causes(facts: Facts, case: Case) -> Iterator[Cause]:
    """A participant stopped it with ``blocked``: only a person gets it going again."""
    blockers = facts.history.blockers
    if facts.history.machine.phase != "blocked" or not blockers:
        return
    first, last = blockers[0], blockers[-1]
    after = continued_in(case.snapshot.lineage)
    need = next((each for each in case.snapshot.needs if each.code == "blocked"), None)
    then = "" if facts.participants else ", after you add participants"
    if after:
        place = clean_line(after, _LONG)
        yield Cause(
            "E2",
            f"it was continued in {place}",
            advice=f"see there: `acp why {shlex.quote(place)}`",
            evidence=_quoted(blockers),
            wanted=False,
            key=f"continued:{place}",
            event=clean_line(last.name, 40),
        )
    elif need is not None:
        yield Cause(
            "E1",
            case.snapshot.headline.rstrip("."),
            advice=f"answer the blocker and continue in a new folder{then}",
            evidence=_quoted(blockers),
            remedy="continue" if facts.participants else None,
            participant=clean_name(first.sender, 200),
            since=need.since,
            key=need.key,
            event=clean_line(first.name, 40),
        )


def _quoted(blockers: list[Entry]) -> tuple[str, ...]:
    """Who blocked it, when and why, the first one first."""
    lines = []
    for each in blockers[:_SHOWN]:
        at = dated(schema.parse_time(each.at))
        lines.append(f"seq {clean_line(each.name, 40)} from {clean_name(each.sender, 200)}, {at}")
        lines.append(f"summary: {clean_line(each.summary, _LONG)}")
    more = len(blockers) - _SHOWN
    return (*lines, f"and {more} more") if more > 0 else tuple(lines)
