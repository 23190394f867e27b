"""``acp ack``, ``acp archive``, ``acp unarchive``: what a person notes for themselves.

It is kept in the user's own state folder and shared with the dashboard; nothing is
written into a collaboration's folder.
"""

from __future__ import annotations

from acp_core.cli.opening import open_one
from acp_core.cli.output import dump, say, typed
from acp_core.cli.start import key_of
from acp_core.files.text import clean_line
from acp_core.model import Need
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.person.attention import Attention
from acp_core.protocols.kit.values import Values
from acp_core.protocols.locations import is_link


def ack(given: Values) -> int:
    """Acknowledge needs.

    Raises:
        CommandError: it is not clear which.
    """
    _, snapshot = open_one(given.folder)
    attention = Attention()
    needs = attention.open_needs(snapshot)
    chosen = needs if given.all or not needs else _named(needs, given.need or None)
    for each in chosen:
        attention.acknowledge(snapshot.key, each.key, given.note, utc_now())
    if given.json:
        done = {"collaboration": snapshot.key, "acknowledged": [each.key for each in chosen]}
        say(dump({"schema": "acp.ack/1", **done}))
        return 0
    if not needs:
        say(f"{snapshot.name} needs nothing from you.")
    for each in chosen:
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


def archive(given: Values) -> int:
    """Leave collaborations out of the fleet."""
    attention = Attention()
    done: list[str] = []
    for folder in given.folders:
        _, snapshot = open_one(folder)
        attention.archive(snapshot.key, utc_now())
        done.append(snapshot.key)
        if not given.json:
            say(f"archived: {typed(snapshot)}")
    if given.json:
        say(dump({"schema": "acp.archive/1", "archived": done}))
    return 0


def unarchive(given: Values) -> int:
    """Bring collaborations back into the fleet."""
    attention = Attention()
    done: dict[str, bool] = {}
    for folder in given.folders:
        # It may be gone or unreadable by now.
        key = key_of(folder)
        done[key] = attention.is_archived(key)
        attention.unarchive(key)
        if not given.json:
            what = "in the fleet again" if done[key] else "was not archived"
            say(f"{what}: {clean_line(key if is_link(folder) else folder, 4096)}")
    if given.json:
        back = [key for key, was in done.items() if was]
        say(dump({"schema": "acp.unarchive/1", "unarchived": back}))
    return 0
