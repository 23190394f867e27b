"""Starting a collaboration, going on in a new folder where one has ended, and mending its files.

The files of a new one are those of `acp init`; its agents' programs are started by what is handed in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.action_field import Kind
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.folder.acts import previewing
from acp_core.protocols.folder.acts.opened import open_folder, read_collaboration
from acp_core.protocols.folder.acts.previewing import file_change, new_file
from acp_core.protocols.folder.acts.table import CONTINUATION, NEW_SPEC, REPAIRING
from acp_core.protocols.folder.acts.table_agents import DIALECTS, INIT
from acp_core.protocols.folder.rules.checks import validate
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.deliverables import TYPES
from acp_core.protocols.folder.schema.records import path_of
from acp_core.protocols.folder.write import continuation
from acp_core.protocols.folder.write import repair as mending
from acp_core.protocols.folder.write.init import initialise
from acp_core.protocols.folder.write.opened import Opened, open_unlocked
from acp_core.protocols.folder.write.repair import Plan, diff
from acp_core.protocols.kit.binding import Context, Location, Narrowed, bound, command_of
from acp_core.protocols.kit.command_line import say, say_json
from acp_core.protocols.kit.parser import show
from acp_core.protocols.kit.starting import Team, followed, starter, team_of, with_start
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe

_USUAL = "design-spec"

_NARROWED: Narrowed = {
    "participants": {"help": "Agents and people; the first one owns the proposal."},
    "dialect": {"default": DIALECTS[0]},
    "deliverable": {
        "kind": Kind.CHOICE,
        "choices": (_USUAL, *(each for each in TYPES if each != _USUAL)),
        "default": _USUAL,
    },
}
"""What a form asks otherwise than the command: the dialect before the rest."""

_HELP = "The agent that takes a participant's turns; none for people."


def create(folder: Path | str) -> Action:
    """The action that starts a collaboration in ``folder``, which is made if it does not exist."""
    return creation(Location(os.path.abspath(os.path.expanduser(folder))), utc_now())


def creation(context: Context, now: datetime) -> Action:
    """Start a collaboration with its agents; refusals are in the words of the form.

    Raises:
        Refused: the settings that say which programs there are cannot be read.
    """
    folder, begin = context.key, starter()
    agents = {**begin.choices(), "help": _HELP} if begin else {"asked": False}

    def preview(values: Values) -> Preview:
        team, values = _with_team(values)
        with _in_words_of_the_form():
            shown = previewing.preview_init(values, folder)
        shown = replace(shown, command=_command(context, team, values))
        if begin and team.programs:
            shown = with_start(shown, begin.preview(folder, team.programs))
        return shown

    def perform(values: Values) -> Outcome:
        team, values = _with_team(values)
        if begin and team.programs:  # nothing is written where a program is missing
            missing = begin.preview(folder, team.programs).refused
            if missing:
                raise Refused(missing)
        with _in_words_of_the_form():
            started = initialise(folder, previewing.wish(values))
        sentence = safe(
            " ".join([f"Created a collaboration in {started.folder}.", *started.warnings])
        )
        if begin and team.programs:
            return followed(sentence, folder, begin.start(folder, team.programs))
        return Outcome(OutcomeState.DONE, sentence, location=folder)

    return bound(NEW_SPEC, context, preview, perform, narrowed={**_NARROWED, "agent": agents})


def _with_team(values: Values) -> tuple[Team, Values]:
    """Who takes part by which program, and the values with the names alone.

    Raises:
        Refused: a program is given to somebody who does not take part.
    """
    team = team_of(values.participants, values.agent)
    return team, Values(**{**vars(values), "participants": team.names})


def _command(context: Context, team: Team, values: Values) -> tuple[str, ...]:
    """The same as a command: each participant with its program."""
    plain = previewing.plain(values)
    shown = Values(**{**vars(plain), "participants": [], "agent": []})
    words = command_of(NEW_SPEC, context, shown)
    people = [
        f"{each}={team.programs[each]}" if each in team.programs else each for each in team.names
    ]
    at = words.index("new") + 2  # behind the folder
    return (*words[:at], *map(safe, people), *words[at:])


@contextmanager
def _in_words_of_the_form() -> Iterator[None]:
    """Refusals name the command's options: the form's own titles stand in their place."""
    try:
        yield
    except Refused as error:
        said = str(error)
        for field in INIT.fields[:3]:
            said = said.replace(field.option, f"“{field.title}”")
        raise Refused(said, error.code) from None


def continuing(context: Context, now: datetime) -> Action:
    """Go on in a new folder, once the collaboration has ended.

    Raises:
        Refused: the collaboration cannot be read.
        OSError: the same.
    """
    here = open_folder(context, now)
    narrowed = _narrowed(here.opened, here.key)
    return bound(
        CONTINUATION,
        here,
        lambda values: _preview(here.key, values),
        lambda values: _continued(here.key, values),
        narrowed=narrowed,
        offered=narrowed is not None,
    )


def _narrowed(opened: Opened, key: str) -> Narrowed | None:
    """What is asked now; None where it cannot be continued, and the plan says why."""
    phase = continuation.left_in(opened)
    if not phase:
        return None
    try:
        target = continuation.new_folder(opened, None)
    except Refused:
        return None
    about = "Your answer, placed at the top of the new proposal."
    answer = {"needed": phase == "blocked", "help": about}
    return {
        "answer": answer,
        "folder": {"default": target, "help": "Must not exist yet."},
        "start": _same_programs(key),
    }


def _same_programs(source: str) -> dict[str, object]:
    """Whether the programs that ran here are started in the new folder: yes, where any did."""
    begin = starter()
    ran = begin.ran(source) if begin else ()
    if not ran:
        return {"asked": False}
    return {"default": True, "help": f"Starts the agents of {', '.join(ran)} in the new folder."}


def _preview(source: str, values: Values) -> Preview:
    opened = open_unlocked(source, full=True)
    plan = continuation.prepare(
        opened, values.folder or None, values.answer, objective=values.objective, now=utc_now()
    )
    old, before = path_of(source, records.PROTOCOL_FILE), records.encode_protocol(opened.protocol)
    made = Preview(
        sentence=safe(
            f"Start {plan.folder} with the documents and decisions of this collaboration."
        ),
        changes=(
            *(new_file(file.path, file.data) for file in plan.files),
            file_change(old, records.PROTOCOL_FILE, before, plan.old_protocol),
        ),
    )
    begin = starter() if values.start else None
    if begin and begin.ran(source):
        return with_start(made, begin.preview_same(source, plan.folder))
    return made


def _continued(source: str, values: Values) -> Outcome:
    made = continuation.continue_in_new_folder(
        source, values.folder or None, values.answer, objective=values.objective
    )
    return _started(values, source, made)


def _started(values: Values, source: str, made: continuation.Continued) -> Outcome:
    """How it ended, once the programs that ran before are started where that is asked for."""
    words = "Already continued in" if made.existed else "Continued in"
    sentence = safe(f"{words} {made.folder}.")
    begin = starter() if values.start else None
    if begin and begin.ran(source):
        return followed(sentence, made.folder, begin.start_same(source, made.folder))
    return Outcome(OutcomeState.DONE, sentence, location=made.folder)


def continue_in_new_folder(values: Values) -> int:
    """Go on in a new folder, as ``acp continue`` does; the exit code."""
    if values.answer_file:
        values.answer = _text_of(values.answer_file)
    if values.dry_run:
        preview = _preview(values.source, values)
        return show("acp.continue/1", "continue", preview, as_json=values.json)
    made = continuation.continue_in_new_folder(
        values.source,
        values.folder or None,
        values.answer,
        objective=values.objective,
        force=values.unlocked,
    )
    outcome = _started(values, values.source, made)
    if values.json:
        done = outcome.done.data if outcome.done else {}
        say_json({"schema": "acp.continue/1", "from": values.source, **made._asdict(), **done})
    else:
        say(outcome.sentence.removesuffix("."))
    return 1 if outcome.failed else 0


def _text_of(path: str) -> str:
    try:
        return read_bounded(path, records.MAX_DOCUMENT).decode()
    except Unreadable as error:
        raise Refused(f"{path}: {error}") from None
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: not UTF-8 at byte {error.start + 1}") from None


_VERBS = {mending.CREATE: "create", mending.FINISH: "append"}


def repairing(context: Context, now: datetime) -> Action:
    """Mend the files, where something in them can be mended.

    Raises:
        Refused: there is no collaboration, or its log is no readable file.
        OSError: a file cannot be read.
    """
    collaboration = read_collaboration(context, now)
    fixes = collaboration.outlook.planned(collaboration.facts, now)
    folder = collaboration.key
    shown: list[mending.Plan] = []  # what the last preview showed is what is done

    def preview(values: Values) -> Preview:
        plan = mending.diagnose(folder, utc_now())
        shown[:] = [plan]
        if not plan.fixes:
            raise Refused("there is nothing left to repair")
        return _preview_of(plan)

    def perform(values: Values) -> Outcome:
        mending.repair(shown[0] if shown else mending.diagnose(folder, utc_now()))
        return _validated(folder)

    return bound(
        REPAIRING,
        collaboration,
        preview,
        perform,
        sentence="; ".join(fix.sentence for fix in fixes),
        offered=bool(fixes),
    )


def _preview_of(plan: mending.Plan) -> Preview:
    return Preview(
        sentence=safe("; ".join(fix.sentence for fix in plan.fixes)),
        changes=tuple(
            Change(safe(fix.path), _VERBS.get(fix.verb, "replace"), _difference(fix))
            for fix in plan.fixes
        ),
        warnings=tuple(safe(f"cannot be repaired: {reason}") for reason in plan.hopeless),
    )


def _difference(fix: mending.Fix) -> str:
    """What a fix changes, safe to show."""
    if fix.verb == mending.CREATE:
        return new_file(fix.path, fix.after).diff
    return file_change(fix.path, fix.name, fix.before, fix.after).diff


def _validated(folder: str) -> Outcome:
    """How the files are after mending them."""
    from acp_core.protocols.folder.rules import checks

    verdict = checks.validate(folder).lines()
    word = "Fixed" if not verdict[0].endswith("failed") else "Repaired, but problems remain"
    return Outcome(OutcomeState.DONE, safe(f"{word}: {'; '.join(verdict[:2])}"))


def repair(values: Values) -> int:
    """Mend a collaboration's files; the exit code."""
    folder = values.folder
    if values.json and not (values.yes or values.dry_run):
        raise Refused("--json needs --yes or --dry-run")
    plan = mending.diagnose(folder, utc_now())
    mends = bool(plan.fixes) and not values.dry_run
    copies: tuple[str, ...] = ()
    if mends and values.yes:  # before anything is said: whoever listens may go away
        copies = mending.repair(plan, force=values.unlocked).copies
    if not values.json:
        _show(plan)
    if mends and not values.yes:
        if not _confirmed():
            say("not repaired: nothing was changed")
            return 1
        copies = mending.repair(plan, force=values.unlocked).copies
    return _conclude(plan, folder, mends, copies, values.json)


def _show(plan: Plan) -> None:
    for number, fix in enumerate(plan.fixes, 1):
        say(f"{number}. {fix.sentence}")
        for line in diff(fix).split("\n"):
            say(f"   {line}")
    for reason in plan.hopeless:
        say(f"cannot be repaired: {reason}")
    if not plan.fixes and not plan.hopeless:
        say("nothing to repair")


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        raise Refused("no terminal to ask for confirmation: use --yes")
    sys.stdout.write("Repair it? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _conclude(plan: Plan, folder: str, mended: bool, copies: Sequence[str], as_json: bool) -> int:
    """Validate again and say how it stands; the exit code follows."""
    report = validate(folder)
    valid = report.exit_code() < 2
    pending = bool(plan.fixes) and not mended
    if as_json:
        say_json(
            {
                "schema": "acp.repair/1",
                "folder": folder,
                "mended": mended,
                "valid": valid,
                "fixes": [
                    {"file": fix.name, "text": fix.sentence, "diff": diff(fix)}
                    for fix in plan.fixes
                ],
                "hopeless": list(plan.hopeless),
                "copies": list(copies),
            }
        )
        return 0 if valid and not pending else 2
    for path in copies:
        say(f"kept a copy: {path}")
    if mended or not plan.fixes:
        word = "fixed" if valid else "not repaired"
        say(f"{word}: {report.lines()[0]}" if mended else report.lines()[0])
        for line in report.lines()[1:]:
            say(f"  {line}")
    return 0 if valid and not pending else 2
