"""``acp ack``, ``acp archive``, ``acp unarchive``: what a person notes for themselves.

It is kept in the user's own state folder and shared with the dashboard; nothing is
written into a collaboration's folder.
"""

from __future__ import annotations

import os

import click

from acp_core.cli.folders import FOLDER
from acp_core.cli.opening import open_one
from acp_core.cli.output import say, typed
from acp_core.files.text import clean_line
from acp_core.model import Need
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.person.attention import Attention


@click.command()
@click.argument("folder", type=FOLDER)
@click.argument("need", required=False)
@click.option("--note", default="", help="Why it needs nothing more now; for yourself.")
@click.option("--all", "everything", is_flag=True, help="Acknowledge all of its needs.")
def ack(folder: str, need: str | None, note: str, everything: bool) -> int:
    """Acknowledge that the collaboration in FOLDER needs you.

    NEED is a need's key or code; it may be left out where there is only one. The need goes
    from the top of the fleet; a new reason shows again.
    """
    _, snapshot = open_one(folder)
    attention = Attention()
    needs = attention.open_needs(snapshot)
    if not needs:
        say(f"{snapshot.name} needs nothing from you.")
        return 0
    for each in needs if everything else _named(needs, need):
        attention.acknowledge(snapshot.key, each.key, note, utc_now())
        say(f"acknowledged: {each.text}")
    return 0


def _named(needs: tuple[Need, ...], name: str | None) -> tuple[Need, ...]:
    """The needs that are meant.

    Raises:
        CommandError: none bears that name, or several are open and none was named.
    """
    if name is None and len(needs) == 1:
        return needs
    named = tuple(each for each in needs if name in (each.key, each.code))
    if not named:
        known = "; ".join(f"{each.key} ({each.text})" for each in needs)
        say_which = "say which, or --all" if name is None else f"no open need {name!r}"
        raise CommandError(f"{say_which}: {known}")
    return named


@click.command()
@click.argument("folders", nargs=-1, required=True, type=FOLDER, metavar="FOLDER...")
def archive(folders: tuple[str, ...]) -> int:
    """Leave the collaboration in each FOLDER out of the fleet; nothing in it is touched.

    ``acp status --all`` and ``acp find`` still know it.
    """
    attention = Attention()
    for folder in folders:
        _, snapshot = open_one(folder)
        attention.archive(snapshot.key, utc_now())
        say(f"archived: {typed(snapshot)}")
    return 0


@click.command()
@click.argument("folders", nargs=-1, required=True, type=FOLDER, metavar="FOLDER...")
def unarchive(folders: tuple[str, ...]) -> int:
    """Bring the collaboration in each FOLDER back into the fleet."""
    attention = Attention()
    for folder in folders:
        key = os.path.abspath(folder)  # it may be gone or unreadable by now
        known = attention.is_archived(key)
        attention.unarchive(key)
        say(f"{'in the fleet again' if known else 'was not archived'}: {clean_line(folder, 4096)}")
    return 0
