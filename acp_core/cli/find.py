"""``acp find``: the collaboration in which something was said or decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from acp_core.cli import fields, layout, signs
from acp_core.cli.folders import FOLDER
from acp_core.cli.opening import sort_out
from acp_core.cli.output import Terminal, dump, say, terminal, typed, warn
from acp_core.cli.start import chosen_paths, load_settings
from acp_core.fleet import Fleet
from acp_core.fleet.search import Hit, loader, search
from acp_core.model import Snapshot, format
from acp_core.model.clock import utc_now

SCHEMA = "acp.find/1"
FOUND, NOTHING, UNREADABLE = 0, 1, 2


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--path",
    "paths",
    type=FOLDER,
    multiple=True,
    metavar="PATH",
    help="Look in and below PATH (may be repeated; default: here, or `paths` in config.toml).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (acp.find/1).")
def find(words: tuple[str, ...], paths: tuple[str, ...], as_json: bool) -> int:
    """Find collaborations that hold all WORDS in their name, objective or documents.

    Upper and lower case and accents do not matter. What was named, decided or concluded
    counts for more than what was said along the way. Archived ones are found too.

    \b
    Exit codes:
      0  found
      1  nothing found
      2  a PATH cannot be read
    """
    good, problems = sort_out(chosen_paths(paths, load_settings()))
    for problem in problems:
        warn(f"acp find: {problem}")
    fleet = Fleet(good)
    snapshots = {snapshot.key: snapshot for snapshot in fleet.read()}
    hits = search(snapshots.values(), " ".join(words), loader(fleet))
    if as_json:
        say(dump(as_fields(words, hits, snapshots, problems)))
    else:
        for line in render(hits, snapshots, terminal()):
            say(line)
        if not hits:
            among = format.count(len(snapshots), "collaboration")
            warn(f"nothing found in {among}: {' '.join(words)}")
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
            {
                "document": hit.document,
                "line": hit.line,
                "excerpt": hit.excerpt,
                "score": hit.score,
                "collaboration": fields.summary(snapshots[hit.key]),
            }
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
        yield from (shown_on.paint(line, "head") for line in layout.wrap(title, shown_on))
        place = f"{hit.document}:{hit.line}  " if hit.document and hit.line else ""
        yield from layout.wrap(f"{place}{hit.excerpt}", shown_on, indent="    ")
