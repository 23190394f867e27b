"""``acp show``: one collaboration as plain text, what the dashboard's screen of it says."""

from __future__ import annotations

from acp_core.cli import fields
from acp_core.cli.opening import open_one
from acp_core.cli.output import dump, say, terminal
from acp_core.cli.page import View, page
from acp_core.cli.start import load_settings
from acp_core.cli.unread import unread
from acp_core.model.clock import utc_now
from acp_core.person.attention import Attention
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.show/1"
LAST = 15  # events that are shown without --all


def show(given: Values) -> int:
    """Print the page, or the object."""
    fleet, snapshot = open_one(given.folder)
    now = utc_now()
    outlook = fleet.learn().outlook(snapshot, now)
    attention = Attention()
    needs = attention.open_needs(snapshot)
    if given.json:
        told = fields.detail(snapshot) | {
            "needs": fields.needs(snapshot, needs),
            "forecast": fields.outlook(outlook, snapshot),
        }
        say(dump({"schema": SCHEMA, "collaboration": snapshot.key, "snapshot": told}))
        return 0
    visit = attention.last_visit(snapshot.key)
    view = View(
        now,
        terminal(),
        needs=needs,
        unread=unread(attention, snapshot),
        seen=visit.versions if visit else None,
        events=None if given.all else LAST,
        utc=given.utc or load_settings().utc,
        outlook=outlook,
    )
    for line in page(snapshot, view):
        say(line)
    return 0
