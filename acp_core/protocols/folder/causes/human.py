"""Group E: a person is asked for by the collaboration itself."""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.files.text import clean_line
from acp_core.model import Cause
from acp_core.model.format import dated
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.kit.diagnosis import Case

_LONG = 1_000


def causes(facts: Facts, case: Case) -> Iterator[Cause]:
    """A participant stopped it with ``blocked``: only a person gets it going again."""
    need = next((each for each in case.snapshot.needs if each.code == "blocked"), None)
    if need is None:
        return
    entry = next((e for e in reversed(facts.history.entries) if e.event == "blocked"), None)
    if entry is None:
        return
    who = clean_line(entry.sender, 200)
    yield Cause(
        "E1",
        case.snapshot.headline.rstrip("."),
        advice="answer it, and go on in a new folder: no event leads out of blocked",
        evidence=(
            f"seq {clean_line(entry.name, 40)} of {who}, {dated(need.since)}",
            f"it says: {clean_line(entry.summary, _LONG)}",
        ),
        remedy="continue",
        participant=who,
        since=need.since,
        key=need.key,
        event=clean_line(entry.name, 40),
    )
