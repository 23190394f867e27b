"""``acp find``: the collaboration in which something was said or decided."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from acp_core.cli import fields, output, signs
from acp_core.cli.output import Terminal, complain, dump, say, terminal, typed
from acp_core.cli.start import chosen_paths, load_settings, sort_out
from acp_core.fleet import Fleet
from acp_core.fleet.search import Hit, loader, search
from acp_core.model import Snapshot, format
from acp_core.model.clock import utc_now
from acp_core.model.text import clean
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.find/1"
FOUND, NOTHING, UNREADABLE = 0, 1, 2


def find(given: Values) -> int:
    """Print what was found, or the object."""
    words = given.terms
    good, problems = sort_out(chosen_paths(given.paths, load_settings()))
    for problem in problems:
        complain(problem)
    fleet = Fleet(good)
    snapshots = {snapshot.key: snapshot for snapshot in fleet.read()}
    hits = search(snapshots.values(), " ".join(words), loader(fleet))
    if given.json:
        say(dump(as_fields(words, hits, snapshots, problems)))
    else:
        for line in render(hits, snapshots, terminal()):
            say(line)
        if not hits:
            among = format.count(len(snapshots), "collaboration")
            print(clean(f"nothing found in {among}: {' '.join(words)}"), file=sys.stderr)
    if problems:
        return UNREADABLE
    return FOUND if hits else NOTHING


def as_fields(
    words: Sequence[str],
    hits: Sequence[Hit],
    snapshots: Mapping[str, Snapshot],
    problems: Sequence[str],
) -> fields.Fields:
    """The object that ``--json`` prints, the best hit first."""
    return {
        "schema": SCHEMA,
        "at": fields.time(utc_now()),
        "words": list(words),
        "hits": [
            fields.picked(hit, "document line excerpt score")
            | {"collaboration": hit.key, "snapshot": fields.summary(snapshots[hit.key])}
            for hit in hits
        ],
        "problems": list(problems),
    }


def render(
    hits: Sequence[Hit], snapshots: Mapping[str, Snapshot], shown_on: Terminal
) -> Iterator[str]:
    """Two or more lines for each hit: what it is, and the place that speaks for it."""
    for hit in hits:
        snapshot = snapshots[hit.key]
        state = f"{signs.STATUS[snapshot.status]} {snapshot.status.value}"
        title = f"{hit.name}  {state}  {typed(snapshot)}"
        yield from (shown_on.paint(line, "head") for line in output.wrap(title, shown_on))
        place = f"{hit.document}:{hit.line}  " if hit.document and hit.line else ""
        yield from output.wrap(f"{place}{hit.excerpt}", shown_on, indent="    ")
