"""The outputs side by side: what each says on the same topic, and two texts line by line.

Shown once nobody works any more: outputs that are being written are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest

from acp_core.files.records import read_text
from acp_core.model import Panel, Row, Tone
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.read import conflict_hints, scan
from acp_core.protocols.workspaces.read.conflict_hints import Output
from acp_core.protocols.workspaces.schema import Run

_COMPARED = 4  # outputs of which the topics are shown
_TOPICS = 60  # topics that are shown
_LINES = 400  # lines of a text that are compared
Lines = list[str]


def panels(run: Run, passed: tuple[bool, ...]) -> tuple[Panel, ...]:
    """Both; none where fewer than two outputs can be compared."""
    if not passed[1]:
        return ()
    found = conflict_hints.outputs(run, [agent.name for agent in run.agents])
    if len(found) < 2:
        return ()
    return (_topics(found[:_COMPARED]), *_texts(run, found))


def _topics(found: list[Output]) -> Panel:
    """What each says to the same key, and which headings it has."""
    titles: dict[str, str] = {}
    for each in found:
        titles |= {key: key for key in each.values}
        titles |= {key: title for key, title in each.headings.items() if key not in titles}
    rows = []
    for key, title in titles.items():
        cells = [
            each.values.get(key) or ("heading" if key in each.headings else "") for each in found
        ]
        values = {each for each in cells if each}
        several = sum(bool(each) for each in cells) > 1
        tone = Tone.BLOCKED if len(values) > 1 else Tone.OTHER
        if several:
            rows.append(Row(tuple(clean_line(c, 200) for c in (title, *cells)), tone=tone))
    rows.sort(key=lambda row: row.tone is not Tone.BLOCKED)
    columns = ("topic", *(clean_name(each.agent, 60) for each in found))
    empty = "The outputs have no common heading or key."
    return Panel("compare", "Side by side", "comparison", columns, tuple(rows[:_TOPICS]), empty)


def _texts(run: Run, found: list[Output]) -> tuple[Panel, ...]:
    """Two outputs in full, line by line: those of the first open conflict, else the first two."""
    first: dict[str, Output] = {}
    for each in found:
        first.setdefault(each.agent, each)
    pairs = [each.agents[:2] for each in state.open_conflicts(run)]
    known = [[first[name] for name in pair if name in first] for pair in pairs]
    pair = next((both for both in known if len(both) == 2), list(first.values())[:2])
    if len(pair) < 2:
        return ()
    rows = tuple(_rows(*(_lines(run, each) for each in pair)))
    columns = ("", *(clean_name(each.agent, 60) for each in pair))
    return (Panel("texts", "Two texts", "comparison", columns, rows, "Both are empty."),)


def _lines(run: Run, output: Output) -> Lines:
    file = next((each for each in run.files if each.path == output.path), None)
    text, problem = read_text(file, scan.LIMIT) if file else ("", "is missing")
    if problem:
        return [f"({output.path.name} {problem})"]
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    more = [f"… {len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
    return [*lines[:_LINES], *more]


def _rows(left: Lines, right: Lines) -> Iterator[Row]:
    """The lines of two texts, equal ones beside each other; a sign stands where they differ."""
    number = 0
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        tone = Tone.OTHER if tag == "equal" else Tone.REVISE
        for here, there in zip_longest(left[a:b], right[c:d], fillvalue=""):
            number += 1
            cells = (str(number), clean_line(here, 200), clean_line(there, 200))
            yield Row(cells, tone=tone)
