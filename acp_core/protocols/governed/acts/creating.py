"""Starting a governed run, or writing down an initiative."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from acp_core.files import git
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.governed.acts import table
from acp_core.protocols.governed.acts.common import facts
from acp_core.protocols.governed.schema import MULTI_CONFIG, REVIEW_ONLY, Object
from acp_core.protocols.governed.write import initiative_init
from acp_core.protocols.governed.write.init import (
    MANDATES,
    PHASES,
    Started,
    Wish,
    agents_of,
    contents,
    initialise,
)
from acp_core.protocols.governed.write.initiative_init import DEFAULT_BARRIERS
from acp_core.protocols.governed.write.opened import json_document
from acp_core.protocols.kit.binding import Context, Location, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import difference, safe


def create(folder: Path | str) -> Action:
    """The action that starts a run in ``folder``, which is made if it does not exist."""
    return creation(Location(os.path.abspath(os.path.expanduser(folder))), utc_now())


def creation(context: Context, now: datetime) -> Action:
    """Start a run, or write down an initiative where repositories are named."""
    place = Path(context.key)
    return bound(
        table.CREATION,
        context,
        lambda values: _preview(values, place),
        lambda values: _perform(values, place),
    )


def _preview(values: Values, place: Path) -> Preview:
    config = _initiative(values, place)
    if config is not None:
        return _written_down(place, config)
    wish = _wish(values)
    files = contents(place, wish, utc_now())
    new = {name: data for name, data in files.items() if not os.path.lexists(place / name)}
    existing = [name for name in files if name not in new]
    notes = _authority(wish)
    if existing:
        notes = (safe(f"kept unchanged: {', '.join(existing)}"), *notes)
    warnings: tuple[str, ...] = ()
    if not git.is_repository(place):
        warnings = ("no git repository here: acp cannot observe what agents change",)
    changes = tuple(_created(place / name, data) for name, data in new.items())
    sentence = safe(f"Start a governed run in {place}.")
    data = _facts(place, dry_run=True, created=list(files))
    return Preview(sentence, changes, warnings=warnings, notes=notes, data=data)


def _written_down(place: Path, config: Object) -> Preview:
    sentence = safe(f"Write the configuration of an initiative in {place}.")
    change = _created(place / MULTI_CONFIG, json_document(config))
    return Preview(sentence, (change,), data=_facts(place, dry_run=True, configuration=config))


def _perform(values: Values, place: Path) -> Outcome:
    config = _initiative(values, place)
    if config is not None:
        initiative_init.write_configuration(place, config)
        sentence = f"Wrote {MULTI_CONFIG} in {place}. Next: start the initiative."
        return _done(place, sentence, _facts(place, configuration=config))
    wish = _wish(values)
    started = initialise(place, wish, utc_now())
    said = f"Started a governed run in {started.root}."
    if started.finished:
        said = f"Completed the interrupted start of the run in {started.root}."
    notes: tuple[str, ...] = ()
    if started.existing:
        notes = (safe(f"kept existing files: {', '.join(started.existing)}"),)
    return _done(place, said, _facts(place, **_of(started)), notes + _authority(wish))


def _authority(wish: Wish) -> tuple[str, ...]:
    """Who may write more than its role's mandate needs, because a program plays it."""
    wider = [role for role in wish.agents if MANDATES.get(role, ("", "", ""))[2] == REVIEW_ONLY]
    if not wider:
        return ()
    return (
        safe(
            f"{', '.join(wider)}: may change any file: the agentxchain program "
            "rejects runs in which a local program has a review-only role"
        ),
    )


def _done(
    place: Path, said: str, data: Mapping[str, object], notes: tuple[str, ...] = ()
) -> Outcome:
    return Outcome(
        OutcomeState.DONE, safe(said), str(place), Preview(safe(said), notes=notes, data=data)
    )


def _of(started: Started) -> dict[str, object]:
    return {"created": started.created, "kept": started.existing, "finished": started.finished}


def _facts(place: Path, **more: object) -> dict[str, object]:
    return facts(table.CREATION, str(place), **more)


def _created(path: Path, data: bytes) -> Change:
    return Change(safe(str(path)), "create", difference(b"", data))


def _wish(values: Values) -> Wish:
    """What the run is to be, as the engine takes it.

    Raises:
        Refused: a phase or an agent is not written as NAME=VALUE, or two play one role.
    """
    goal = " ".join(values.objective.split())
    phases = tuple(_pair(each, "--phase") for each in values.phases) or PHASES
    return Wish(values.name, goal, phases, agents_of(values.agents))


def _pair(given: str, flag: str) -> tuple[str, str]:
    name, sign, value = given.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise Refused(f"{flag} {given!r}: must be NAME=VALUE")
    return name.strip(), value.strip()


def _initiative(values: Values, place: Path) -> Object | None:
    """The configuration of an initiative, None where one run is wanted.

    Raises:
        Refused: it is not sound, there is one, or agents are named: they are at its start.
    """
    repositories = [each for each in values.repositories if each.strip()]
    barriers = [each.strip() for each in values.barriers if each.strip()]
    if not repositories:
        if barriers and barriers != list(DEFAULT_BARRIERS):
            raise Refused("barriers belong to an initiative: name its repositories, too")
        return None
    if values.agents:
        raise Refused("name the agents of an initiative when you start it")
    wish = initiative_init.InitiativeWish(
        repositories, barriers or DEFAULT_BARRIERS, values.objective
    )
    return initiative_init.planned_initiative(place, wish)[0]
