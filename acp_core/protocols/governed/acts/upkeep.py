"""A run founded and looked after, or an initiative's configuration written.

What was left half done or changed by others is finished, brought back or taken; hooks and services
are allowed, and a run of an earlier version is brought to this one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from acp_core.files import git
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.format import sentence_case
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.acts import table
from acp_core.protocols.governed.acts.common import (
    done,
    facts,
    is_possible,
    of_run,
    open_run,
)
from acp_core.protocols.governed.acts.table import SCHEMA
from acp_core.protocols.governed.read import run
from acp_core.protocols.governed.read.own_writes import fault, interrupted
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.schema import MULTI_CONFIG, REVIEW_ONLY, Object
from acp_core.protocols.governed.write import decide, hooks, init, restore
from acp_core.protocols.governed.write import opened as write_opened
from acp_core.protocols.governed.write.init import (
    DEFAULT_BARRIERS,
    MANDATES,
    PHASES,
    Started,
    Wish,
    agents_of,
    contents,
    initialise,
)
from acp_core.protocols.governed.write.opened import (
    Interrupted,
    Opened,
    json_document,
    read_unlocked,
    refuse_agents,
    reserved_changed,
)
from acp_core.protocols.kit.binding import Context, Location, bound
from acp_core.protocols.kit.command import perform as perform_act
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import difference, safe


def trusting(context: Context, now: datetime) -> Action:
    """Allow the hooks and services that the configuration names."""
    opened = open_run(context)
    spec, root = table.TRUSTING, opened.root

    def preview(values: Values) -> Preview:
        refuse_agents()
        asked = run.asked_permissions(read_unlocked(root).config)
        data = facts(spec, opened.key, asked=asked, trusted=run.is_trusted(root), dry_run=True)
        changes = tuple(Change(safe(each), "start") for each in asked)
        return Preview("Allow these in their present form.", changes, data=data)

    def perform(values: Values) -> Outcome:
        refuse_agents()
        asked = hooks.trust_run(root)
        said = "Allowed, until one of them changes."
        return done(spec, opened.key, said, asked=asked, trusted=True)

    return bound(spec, opened, preview, perform, offered=False)


def run_trust(values: Values) -> int:
    """The command: what is to be allowed is shown, and asked where something is."""
    refuse_agents()
    opened = read_unlocked(values.folder)
    asked, trusted = run.asked_permissions(opened.config), run.is_trusted(opened.root)
    if not values.json:
        for each in asked:
            say(each)
    if asked and (values.dry_run or not trusted):
        return perform_act(SCHEMA, "trust", table.TRUSTING, values)
    if values.json:
        outcome = facts(table.TRUSTING, opened.key, asked=asked, trusted=trusted)
        say_object(SCHEMA, "trust", **outcome, dry_run=values.dry_run)
    elif asked:
        say("already allowed")
    else:
        say("the configuration names no hooks or services that need permission")
    return 0


def migration(context: Context, now: datetime) -> Action:
    """Migrate a run of an earlier version to this version."""
    return of_run(
        table.MIGRATION, open_run(context),
        lambda fresh, values: init.migrating(fresh, values.by, utc_now()), offered=False,
    )  # fmt: skip


def recovery(context: Context, now: datetime) -> Action:
    """Finish what a killed command had begun; offered where one was killed."""
    spec, place = table.RECOVERY, context.key

    def preview(values: Values) -> Preview:
        left = interrupted(_folder(place))
        if left is not None:
            if reason := fault(Path(place)):
                raise Refused(f"{left.what} can be neither finished nor undone: {reason}")
            said = f"Finish “{left.what}”: {left.done} of {left.total} files are written."
            data = facts(spec, place, dry_run=True, interrupted=left._asdict(), changed=())
            return Preview(safe(said), data=data)
        opened = read_unlocked(place, spec.name)
        if guard.lost(opened.run):
            return _restoring(spec, opened)
        changed = reserved_changed(opened)
        data = facts(spec, place, dry_run=True, interrupted=None, changed=changed)
        return Preview("Nothing was interrupted.", data=data)

    def perform(values: Values) -> Outcome:
        finished, restored = decide.recover(_folder(place), utc_now())
        said = []
        if finished is not None:
            how = "Finished" if finished.completed else f"Rolled back ({finished.reason})"
            said.append(f"{how}: {finished.what}.")
        if restored is not None:
            said.append(f"Done: {restored.sentence}.")
        about = finished._asdict() if finished else None
        sentence = " ".join(said) or "Nothing was interrupted."
        brought = restored.how if restored else None
        return done(spec, place, sentence, recovered=about, restored=brought)

    return bound(spec, context, preview, perform, offered=_is_needed(place))


def _is_needed(place: str) -> bool:
    """Whether a command was interrupted, or the state is lost and can be brought back here."""
    if interrupted(Path(place)) is not None:
        return not fault(Path(place))
    return is_possible(lambda: restore.restored(read_unlocked(place, schema.RECOVER), utc_now()))


def _restoring(spec: ActionSpec, opened: Opened) -> Preview:
    found = restore.restored(opened, utc_now())
    changes = write_opened.changes_of_writes(opened.root, found.writes)
    data = facts(spec, opened.key, dry_run=True, interrupted=None, restores=found.how)
    return Preview(safe(f"{sentence_case(found.sentence)}."), changes, data=data)


def _folder(place: str) -> Path:
    if not Path(place).is_dir():
        raise Refused(f"{place} is not a folder")
    return Path(place)


def taking_files(context: Context, now: datetime) -> Action:
    """Take the run's own files as they are, although somebody but acp wrote them."""
    spec, place = table.TAKING_FILES, context.key

    def preview(values: Values) -> Preview:
        refuse_agents()
        left = interrupted(_folder(place))
        data = facts(spec, place, dry_run=True, interrupted=left._asdict() if left else None)
        if left is not None:
            return Preview(_leaving(left), data=data)
        names = reserved_changed(read_unlocked(place))
        if not names:
            raise Refused("only acp changed the run's files")
        changes = tuple(
            Change(safe(name), "replace", write_opened.changes_since_sealed(Path(place), name))
            for name in names
        )
        sentence = "Accept these files with the changes of others."
        return Preview(sentence, changes, data=data | {"changed": names})

    def perform(values: Values) -> Outcome:
        became = decide.take_files(_folder(place))
        if became is None:
            return done(spec, place, "Nothing was interrupted or changed.", recovered=None)
        said = f"The files are accepted as they are: {became.what}."
        return done(spec, place, said, recovered=became._asdict())

    changed = isinstance(context, Opened) and bool(reserved_changed(context))
    return bound(spec, context, preview, perform, offered=changed or bool(fault(Path(place))))


def _leaving(left: Interrupted) -> str:
    return safe(f"Leave “{left.what}” as it is: {left.done} of {left.total} files are written.")


def bringing_back(context: Context, now: datetime) -> Action:
    """Put the state back as acp wrote it last, where somebody else changed it since."""
    opened = (
        context if isinstance(context, Opened) else read_unlocked(context.key, schema.BRING_BACK)
    )

    return of_run(
        table.BRINGING_BACK, opened, lambda fresh, values: decide.bringing_back(fresh, utc_now()),
        offered=is_possible(lambda: decide.bringing_back(opened, now)),
    )  # fmt: skip


def setting_aside(context: Context, now: datetime) -> Action:
    """Set aside what the existing program left half written."""
    opened = open_run(context)

    return of_run(
        table.SETTING_ASIDE, opened, lambda fresh, values: restore.setting_aside(fresh, utc_now()),
        offered=bool(opened.run.unfinished),
    )  # fmt: skip


def create(folder: Path | str) -> Action:
    """The action that starts a run in ``folder``, which is made if it does not exist."""
    return creation(Location(os.path.abspath(os.path.expanduser(folder))), utc_now())


def creation(context: Context, now: datetime) -> Action:
    """Start a run, or write down an initiative where repositories are named."""
    place = Path(context.key)
    return bound(
        table.CREATION,
        context,
        lambda values: _preview_creation(values, place),
        lambda values: _create(values, place),
    )


def _preview_creation(values: Values, place: Path) -> Preview:
    config = _initiative_configuration(values, place)
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
    changes = tuple(_created_file(place / name, data) for name, data in new.items())
    sentence = safe(f"Start a governed run in {place}.")
    data = _creation_facts(place, dry_run=True, created=list(files))
    return Preview(sentence, changes, warnings=warnings, notes=notes, data=data)


def _written_down(place: Path, config: Object) -> Preview:
    sentence = safe(f"Write the configuration of an initiative in {place}.")
    change = _created_file(place / MULTI_CONFIG, json_document(config))
    return Preview(
        sentence, (change,), data=_creation_facts(place, dry_run=True, configuration=config)
    )


def _create(values: Values, place: Path) -> Outcome:
    config = _initiative_configuration(values, place)
    if config is not None:
        init.write_configuration(place, config)
        sentence = f"Wrote {MULTI_CONFIG} in {place}. Next: start the initiative."
        return _created_outcome(place, sentence, _creation_facts(place, configuration=config))
    wish = _wish(values)
    started = initialise(place, wish, utc_now())
    said = f"Started a governed run in {started.root}."
    if started.finished:
        said = f"Completed the interrupted start of the run in {started.root}."
    notes: tuple[str, ...] = ()
    if started.existing:
        notes = (safe(f"kept existing files: {', '.join(started.existing)}"),)
    return _created_outcome(
        place, said, _creation_facts(place, **_started_facts(started)), notes + _authority(wish)
    )


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


def _created_outcome(
    place: Path, said: str, data: Mapping[str, object], notes: tuple[str, ...] = ()
) -> Outcome:
    return Outcome(
        OutcomeState.DONE, safe(said), str(place), Preview(safe(said), notes=notes, data=data)
    )


def _started_facts(started: Started) -> dict[str, object]:
    return {"created": started.created, "kept": started.existing, "finished": started.finished}


def _creation_facts(place: Path, **more: object) -> dict[str, object]:
    return facts(table.CREATION, str(place), **more)


def _created_file(path: Path, data: bytes) -> Change:
    return Change(safe(str(path)), "create", difference(b"", data))


def _wish(values: Values) -> Wish:
    """What the run is to be, as the engine takes it.

    Raises:
        Refused: a phase or an agent is not written as NAME=VALUE, or two play one role.
    """
    goal = " ".join(values.objective.split())
    phases = tuple(_phase_of(each, "--phase") for each in values.phases) or PHASES
    return Wish(values.name, goal, phases, agents_of(values.agents))


def _phase_of(given: str, flag: str) -> tuple[str, str]:
    name, sign, value = given.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise Refused(f"{flag} {given!r}: must be NAME=VALUE")
    return name.strip(), value.strip()


def _initiative_configuration(values: Values, place: Path) -> Object | None:
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
    wish = init.InitiativeWish(repositories, barriers or DEFAULT_BARRIERS, values.objective)
    return init.planned_initiative(place, wish)[0]
