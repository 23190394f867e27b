"""``acp show``: one collaboration as plain text, what the dashboard's screen of it says."""

from __future__ import annotations

import click

from acp_core.cli import fields
from acp_core.cli.folders import FOLDER
from acp_core.cli.opening import open_one
from acp_core.cli.output import dump, say, terminal
from acp_core.cli.page import View, page
from acp_core.cli.start import load_settings
from acp_core.cli.unread import unread
from acp_core.model.clock import utc_now
from acp_core.person.attention import Attention

SCHEMA = "acp.show/1"
LAST = 15  # events that are shown without --all


@click.command()
@click.argument("folder", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (acp.show/1).")
@click.option("--all", "everything", is_flag=True, help=f"Every event, not only the last {LAST}.")
@click.option("--utc", is_flag=True, help="Show times in UTC.")
def show(folder: str, as_json: bool, everything: bool, utc: bool) -> int:
    """Print the collaboration in FOLDER: how it stands, what happened, what is next."""
    _, snapshot = open_one(folder)
    attention = Attention()
    needs = attention.open_needs(snapshot)
    if as_json:
        told = fields.detail(snapshot) | {"needs": fields.needs(snapshot, needs)}
        say(dump({"schema": SCHEMA, "collaboration": told}))
        return 0
    visit = attention.last_visit(snapshot.key)
    view = View(
        utc_now(),
        terminal(),
        needs=needs,
        unread=unread(attention, snapshot),
        seen=visit.versions if visit else None,
        events=None if everything else LAST,
        utc=utc or load_settings().utc,
    )
    for line in page(snapshot, view):
        say(line)
    return 0
