"""``acp ack``, ``acp unack``, ``acp archive``, ``acp unarchive``: what a person notes for themselves.

It is kept in the user's own state folder and shared with the dashboard; nothing is
written into a collaboration's folder.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from acp_core.cli.opening import open_one
from acp_core.cli.output import dump, say, typed
from acp_core.cli.start import key_of
from acp_core.diagnosis.personal import (
    Noted,
    bind_ack,
    bind_archive,
    bind_unack,
    bind_unarchive,
)
from acp_core.model import Action, Outcome, OutcomeState
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.model.text import clean_line
from acp_core.protocols.kit import parser
from acp_core.protocols.kit.values import Values
from acp_core.protocols.locations import is_link


def ack(given: Values) -> int:
    """Acknowledge needs.

    Raises:
        CommandError: it is not clear which.
    """
    noted = _noted(given.folder)
    return _about_needs(
        noted,
        given,
        bind_ack,
        "acknowledged",
        open=bool(noted.open.needs) or given.need in noted.open.texts,
    )


def unack(given: Values) -> int:
    """Bring acknowledged needs back.

    Raises:
        CommandError: it is not clear which.
    """
    noted = _noted(given.folder)
    return _about_needs(noted, given, bind_unack, "back", open=bool(noted.acknowledged.texts))


def _noted(folder: str) -> Noted:
    _, snapshot = open_one(folder)
    return Noted(snapshot.key, snapshot)


def _about_needs(
    noted: Noted,
    given: Values,
    bind: Callable[[Noted, datetime], Action],
    word: str,
    *,
    open: bool,
) -> int:
    """Do what is to be done with needs, and print them."""
    action = bind(noted, utc_now())
    schema = f"acp.{action.name}/1"
    if given.dry_run:
        return parser.show(schema, action.name, action.preview(given), as_json=given.json)
    outcome = _done(action.perform(given)) if open else None
    texts, data = (outcome.done.notes, outcome.done.data) if outcome and outcome.done else ((), {})
    if given.json:
        keys = list(data.get("needs", ()))  # type: ignore[call-overload]
        say(dump({"schema": schema, "collaboration": noted.key, word: keys}))
        return 0
    if not open:
        nothing = (
            "has no attention item"
            if word == "acknowledged"
            else ("has no acknowledged attention item")
        )
        say(f"{noted.snapshot.name} {nothing}.")
    for text in texts:
        say(f"{word}: {text}")
    return 0


def _done(outcome: Outcome) -> Outcome:
    """The outcome of what was done.

    Raises:
        CommandError: it was refused.
    """
    if outcome.state is OutcomeState.REFUSED:
        raise CommandError(outcome.sentence)
    return outcome


def archive(given: Values) -> int:
    """Leave collaborations out of the fleet."""
    done: list[str] = []
    for folder in given.folders:
        noted = _noted(folder)
        action = bind_archive(noted, utc_now())
        if given.dry_run:
            parser.show("acp.archive/1", "archive", action.preview(given), as_json=given.json)
            continue
        _done(action.perform(given))
        done.append(noted.key)
        if not given.json:
            say(f"archived: {typed(noted.snapshot)}")
    if given.json and not given.dry_run:
        say(dump({"schema": "acp.archive/1", "archived": done}))
    return 0


def unarchive(given: Values) -> int:
    """Bring collaborations back into the fleet."""
    done: dict[str, bool] = {}
    for folder in given.folders:
        key = key_of(folder)  # it may be gone or unreadable by now
        noted = Noted(key)
        action = bind_unarchive(noted, utc_now())
        if given.dry_run:
            parser.show("acp.unarchive/1", "unarchive", action.preview(given), as_json=given.json)
            continue
        done[key] = noted.attention.is_archived(key)
        _done(action.perform(given))
        if not given.json:
            what = "unarchived" if done[key] else "not archived"
            say(f"{what}: {clean_line(key if is_link(folder) else folder, 4096)}")
    if given.json and not given.dry_run:
        back = [key for key, was in done.items() if was]
        say(dump({"schema": "acp.unarchive/1", "unarchived": back}))
    return 0
