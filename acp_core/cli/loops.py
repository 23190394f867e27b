"""Participants' loops: ``acp launch``, ``loop``, ``ps``, ``logs``, ``stop``, ``nudge``, ``cancel``, ``answer``.

``acp launch`` starts them in the background, ``acp loop`` runs one in this terminal; with ``--at-boot``,
interrupted loops go on after the machine was restarted. A loop is told in words and as JSON in one way,
for `acp ps` and whoever else tells of loops.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from acp_core.agents import logs as log_files
from acp_core.agents import loop_directory, presets, registry
from acp_core.agents.processes import Identity
from acp_core.agents.registry import loops_of_others, seen_of_others
from acp_core.agents.state import Limit, Phase, Run, RunnerState, Saved, ToolUse
from acp_core.cli import fields as json_fields
from acp_core.cli import output
from acp_core.cli.output import Cell, Column, Terminal, dump, say, terminal, warn
from acp_core.files.secrets import mask
from acp_core.loops import boot, parking, process
from acp_core.loops import launch as loop_launch
from acp_core.loops.acts.about import About, Chosen, all_presets, spec_of
from acp_core.loops.acts.starting import bind_launch
from acp_core.loops.acts.steering import bind_answer, bind_cancel, bind_nudge, bind_stop
from acp_core.loops.acts.table import ANSWER, CANCEL, LAUNCH, NUDGE, STOP_LOOP
from acp_core.loops.boot import Entry
from acp_core.loops.launch import LaunchError
from acp_core.model import Action, Matter, Outcome, OutcomeState, Preview, format, spoken
from acp_core.model.action_spec import ActionSpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError, Refused
from acp_core.model.matter import Kind as MatterKind
from acp_core.model.text import clean, clean_line
from acp_core.person.paths import key_of
from acp_core.protocols.kit.binding import Context, located
from acp_core.protocols.kit.command import note
from acp_core.protocols.kit.diagnosis import Patience, safe_id
from acp_core.protocols.kit.parser import confirmed, show
from acp_core.protocols.kit.values import Values

BOOT_SCHEMA = "acp.boot/1"


def at_boot(given: Values) -> int:
    """Show what the system would be given to start at boot, and write it or remove it.

    Raises:
        Refused: it cannot be written, or nobody confirmed it.
    """
    found = boot.entry(given.boot_manager or "")
    has_changed = found.is_ours if given.remove else not found.is_written
    if not given.json:
        _show_entry(found, removes=given.remove)
    if given.dry_run or not has_changed:
        return _report_entry(found, "unchanged" if not has_changed else "shown", given)
    verb = "Removes" if given.remove else "Writes"
    preview = Preview(
        f"{verb} this from {found.place}." if given.remove else f"{verb} this to {found.place}."
    )
    if not confirmed(preview, given):
        raise Refused("nothing was changed")
    if given.remove:
        boot.remove(found)
        return _report_entry(found, "removed", given)
    boot.write(found)
    return _report_entry(found, "written", given)


def _show_entry(found: Entry, *, removes: bool) -> None:
    text = found.before if removes else found.text
    say(f"{found.manager}: {clean_line(found.place, 4_096)}")
    for line in clean(text).splitlines():
        say(f"    {line}".rstrip())
    for remark in () if removes else found.notes:
        say(f"note: {remark}")


def _report_entry(found: Entry, state: str, given: Values) -> int:
    if given.json:
        facts = {"manager": found.manager, "place": found.place, "text": found.text}
        say(dump({"schema": BOOT_SCHEMA, "state": state, **facts, "notes": list(found.notes)}))
    else:
        say(_SENTENCES[state, bool(given.remove)])
    return 0


_SENTENCES = {
    ("shown", False): "Nothing was written.",
    ("shown", True): "Nothing was removed.",
    ("unchanged", False): "It is there already.",
    ("unchanged", True): "There is nothing to remove.",
    ("written", False): "Written. Interrupted loops resume when the machine has restarted.",
    ("removed", True): "Removed. Running loops continue.",
}

LAUNCH_SCHEMA = "acp.launch/1"


def launch(given: Values) -> int:
    """Start loops in the background.

    Raises:
        CommandError: it is not clear whose, or with which programs.
    """
    if given.at_boot:
        return at_boot(given)
    if not given.folder:
        raise CommandError("name a FOLDER, or use --at-boot")
    if given.words:
        given.command = shlex.join(given.words)
    about = About(located(LAUNCH, given.folder).key)
    action = bind_launch(about, utc_now())
    _refuse_unnamed_programs(about, given)
    if given.dry_run:
        preview = action.preview(given)
        data, why = preview.data, preview.refused
    else:
        outcome = action.perform(given)
        data, why = outcome.done.data if outcome.done else {}, outcome.sentence
        note(about.key, LAUNCH, given, outcome)
    if "loops" not in data:
        raise CommandError(why)
    loops = cast("list[dict[str, Any]]", data["loops"])
    if given.json:
        say(dump({"schema": LAUNCH_SCHEMA, "collaboration": key_of(given.folder), "loops": loops}))
    elif not loops:
        say("every participant already has a loop (see `acp ps`)")
    else:
        for each in loops:
            _show_loop(each)
    return 2 if any(each["problem"] for each in loops) else 0


def _refuse_unnamed_programs(about: About, given: Values) -> None:
    """A command starts no program that nobody named: here, or when the participant had a loop.

    Raises:
        CommandError: a participant is named whose program is not known.
    """
    if given.command or any("=" not in each for each in given.agent):
        return
    for name in given.participant:
        if "=" not in name and about.programs.before(name) is None:
            raise CommandError(
                f"{name} never had a loop here: give {name}=PRESET, --agent PRESET, or a command "
                "after --"
            )


def _show_loop(loop: dict[str, Any]) -> None:
    if loop["problem"]:
        say(f"{loop['participant']}: not started: {loop['problem']}")
        return
    program = " ".join(filter(None, (loop["preset"], loop["version"], loop["model"])))
    pid = f", process {loop['pid']}" if loop["pid"] else " (not started)"
    say(f"{loop['participant']}: {program}{pid}")
    say(f"    program   {loop['program']}")
    say(f"    runs in   {loop['workdir']}")
    redirected = " < <prompt>" if loop["prompt_on_stdin"] else ""
    say(f"    command   {shlex.join(loop['command'])}{redirected}")
    if loop["live"]:
        say(f"    live      {loop['live']}")
    for warning in loop["warnings"]:
        say(f"    warning   {warning}")


def loop(given: Values) -> int:
    """Take a participant's turns here, until it is over.

    Raises:
        CommandError: it is not clear with which program, or it cannot run.
    """
    chosen, command = Chosen.of(given), given.words
    if bool(given.agent) == bool(command):
        raise CommandError("give either --agent PRESET or a command after --")
    if given.agent:
        chosen_preset = presets.named(given.agent, all_presets())
    else:
        chosen_preset = presets.command_here(command)
    spec, chosen_preset = spec_of(given.folder, given.participant, chosen_preset, chosen)
    plan = loop_launch.plan(spec, chosen_preset)
    if plan.refused:
        raise CommandError(plan.refused)
    for warning in plan.warnings:
        warn(warning)
    try:
        asked = replace(plan.spec, interval=max(0.01, given.interval), leave=given.leave)
        return process.run(asked, echo=lambda text: say(text, now=True))
    except LaunchError as error:
        raise CommandError(str(error)) from None


_WORDS = {
    Phase.STARTING: ("starting", "live"),
    Phase.WAITING: ("idle", "dim"),
    Phase.RUNNING: ("running", "live"),
    Phase.PAUSING: ("pausing", "warning"),
    Phase.GAVE_UP: ("gave up", "need"),
    Phase.DONE: ("done", "good"),
    Phase.STOPPED: ("stopped", "dim"),
}


def state_word(state: RunnerState, matter: Matter | None = None) -> tuple[str, str]:
    """What a loop is doing, in a word, and that word's style.

    Args:
        state: The loop.
        matter: What stands of it.
    """
    if state.account and state.alive:
        return "elsewhere", "dim"
    if matter is not None and matter.kind is MatterKind.PERMISSION:
        return "asks you", "need"
    if state.died:
        return ("orphaned", "need") if state.program_alive else ("died", "need")
    run = state.run
    if state.shown.capped and (state.alive or state.phase is Phase.GAVE_UP):
        return "over budget", "need"
    if state.phase is Phase.RUNNING and run and run.retrying:
        return "retrying", "warning"
    if state.phase is Phase.RUNNING and run and run.finished:
        return "lingering", "warning"
    return _WORDS[state.phase]


def sentence(state: RunnerState, now: datetime, matter: Matter | None = None) -> str:
    """What there is to say of a loop, on one line; first a budget that is nearly used up.

    Args:
        state: The loop.
        now: The time.
        matter: What stands of it, which is told below it.
    """
    near = [use.sentence for use in state.shown.budget if use.is_near and not use.is_over]
    return "; ".join(filter(None, (*near, "" if matter else _activity(state, now))))


def standing(matter: Matter, now: datetime, shown_on: Terminal) -> list[str]:
    """The lines below a loop: what stands of it, in the words in which it is told everywhere."""
    until = matter.until
    left = f" ({_left(until.at, now)})" if until is not None and until.at > now else ""
    mark = spoken.mark("→", "needs you:") if matter.wanted else spoken.mark("…", "waits:")
    return output.wrap(f"{matter.sentence}{left}", shown_on, indent="      ", first=f"    {mark} ")


def _activity(state: RunnerState, now: datetime) -> str:
    run = state.run
    if state.account:
        return state.shown.note
    if state.died and state.program_alive and run:
        return f"the loop died; its agent still runs (process {run.process.pid})"
    if state.died:
        return "the loop died: killed, or the machine was restarted"
    if state.phase is Phase.RUNNING and run and run.ended is None:
        if run.retrying:
            left = _left(run.retrying_until, now)
            return f"{run.retry_reason}; next try {left}" if left else run.retry_reason
        if run.first_output is None:
            return f"nothing printed yet ({format.age(run.started, now)})"
        return run.tool or (run.lines[-1] if run.lines else state.shown.note)
    if state.phase is Phase.PAUSING and state.shown.retry_at:
        if state.shown.limited:
            when = format.moment(state.shown.retry_at, now)
            return f"resumes at {when}, when the limit resets: {state.shown.note}"
        if late := _late(state.shown, now):
            return f"{late}, again {_left(state.shown.retry_at, now)}: {state.shown.note}"
        if state.shown.troubled:
            since = format.moment(state.shown.troubled, now)
            left = _left(state.shown.retry_at, now)
            return f"model service in trouble since {since}, again {left}: {state.shown.note}"
        return f"again {_left(state.shown.retry_at, now)}: {state.shown.note}"
    why = state.shown.live.removeprefix("no: ") if state.shown.live.startswith("no: ") else ""
    return f"{state.shown.note} (no live session: {why})" if why else state.shown.note


def _late(shown: Saved, now: datetime) -> str:
    """What there is to say of a limit that refuses after it should have been reset."""
    if reset := shown.refused_after:
        return f"still refused, although the limit should have been reset at {format.moment(reset, now)}"
    if later := shown.resets_later:
        return (
            f"still refused, tried every hour until the limit resets at {format.moment(later, now)}"
        )
    return ""


def _left(until: datetime | None, now: datetime) -> str:
    return f"in {format.span((until - now).total_seconds())}" if until else ""


def facts(state: RunnerState, matter: Matter | None = None) -> dict[str, object]:
    """A loop as JSON: names are only ever added; ``matter`` is what stands of it."""
    shown = state.shown
    return {
        "collaboration": state.folder,
        "participant": shown.participant,
        "pid": state.pid,
        "alive": state.alive,
        "state": state_word(state, matter)[0],
        "matter": json_fields.cause(matter) if matter is not None else None,
        "phase": state.phase.value,
        "since": _plain(shown.since),
        "started": _plain(shown.started),
        "note": shown.note,
        "preset": shown.program,
        **json_fields.picked(shown, "version model command workdir mode"),
        "live": shown.live or None,
        **json_fields.picked(shown, "turn turns attempt"),
        "attempts": shown.attempts or None,
        **json_fields.picked(shown, "restarts tokens_in tokens_out cost estimated"),
        "cost_partial": shown.figures.is_partial,
        "budget": [
            {"scope": use.scope, "unit": use.unit, "spent": use.spent, "limit": use.amount}
            for use in shown.budget
        ],
        "capped": shown.capped,
        "retry_at": _plain(shown.retry_at) if state.alive else None,
        "limited": shown.limited and state.alive,
        "limit": _limit(shown.limit) if shown.limit else None,
        "failure": shown.failure or None,
        "turn_deadline": _plain(shown.turn_deadline),
        "deadline": _plain(shown.deadline),
        "left_over": [each.pid for each in shown.left_over if each.alive()],
        "run": _run(state.run, state.program_alive) if state.run else None,
        "log": state.log,
        "account": state.account or None,
    }


def _limit(limit: Limit) -> dict[str, object]:
    return {each.name: _plain(getattr(limit, each.name)) for each in fields(limit)}


def _run(run: Run, alive: bool) -> dict[str, object]:
    told: dict[str, object] = {"pid": run.process.pid, "alive": alive}
    for each in fields(run):
        value = getattr(run, each.name)
        if not isinstance(value, Identity):
            told[each.name] = _plain(value)
    return told


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return asdict(value) if isinstance(value, ToolUse) else value


SCHEMA = "acp.ps/1"

_STOP = "acp.stop/1"

_STEP = 0.2  # seconds between two looks of `acp logs -f`


def ps(given: Values) -> int:
    """Print the loops, or the object."""
    now = utc_now()
    states = _states(given.folders)
    shown = [each for each in states if given.all or each.alive or each.died or each.program_alive]
    silent = parking.silent()
    problems = [f"{silent.sentence}. Run `{silent.cure}` to resume them."] if silent else []
    matters = _matters(shown, now)
    if given.json:
        loops = [facts(each, matters.get(_whose(each))) for each in shown]
        say(dump({"schema": SCHEMA, "loops": loops, "problems": problems}))
        return 0
    for problem in problems:
        warn(problem)
    if not shown:
        hidden = f" ({len(states)} ended: --all)" if states else ""
        say(f"No loops are running{hidden}. Start some with `acp launch FOLDER`.")
        return 0
    columns = (
        Column("participant", 6),
        Column("collaboration", 8, drop=2),
        Column("state", 8),
        Column("since", 4, right=True),
        Column("try", 3, drop=4, right=True),
        Column("turns", 3, drop=5, right=True),
        Column("tokens", 5, drop=3, right=True),
        Column("cost", 4, drop=3, right=True),
        Column("", 20, drop=1),
    )
    found = [matters.get(_whose(each)) for each in shown]
    rows = [_row(each, now, matter) for each, matter in zip(shown, found, strict=True)]
    titles, *lines = output.table(columns, rows, terminal())
    say(titles)
    for line, matter in zip(lines, found, strict=True):
        for each in (line, *(standing(matter, now, terminal()) if matter else ())):
            say(each)
    return 0


_Whose = tuple[str, str]


def _whose(state: RunnerState) -> _Whose:
    return state.folder, safe_id(state.participant)


def _matters(states: Iterable[RunnerState], now: datetime) -> dict[_Whose, Matter]:
    """What stands of each loop, by its collaboration and participant, as `acp why` finds it.

    Only collaborations on this machine are read, and only where a loop does not simply go on.
    """
    folders = dict.fromkeys(each.folder for each in states if _is_in_question(each, now))
    folders |= dict.fromkeys(_asking())
    here = [Path(each) for each in folders if "://" not in each and os.path.isdir(each)]
    wanted = {each.folder for each in states}
    here = [each for each in here if str(each) in wanted]
    if not here:
        return {}
    from acp_core.fleet import Fleet  # late: most loops are at work, or wait

    found: dict[_Whose, Matter] = {}
    for snapshot in Fleet(here, discover=False).read():
        for cause in snapshot.causes:
            if cause.about.participant and cause.kind is not MatterKind.DAMAGE:
                found.setdefault((snapshot.key, cause.about.participant), cause)
    return found


def _is_in_question(state: RunnerState, now: datetime) -> bool:
    """Whether a loop does anything else than to wait for a turn, or to work at one."""
    if state.account or state.phase is Phase.DONE:
        return False
    if not state.alive or state.phase in (Phase.PAUSING, Phase.GAVE_UP):
        return True
    run = state.run
    if state.phase is not Phase.RUNNING or run is None:
        return False
    quiet = (now - (run.last_output or run.started)).total_seconds()
    return run.retrying or run.finished is not None or quiet > Patience.of_environment().quiet


def _asking() -> Iterable[str]:
    """The collaborations in which an agent waits for a permission."""
    if not loop_directory.permissions().is_dir():
        return ()
    from acp_core.agents.live.answers import waiting  # late: it knows the sessions

    return [each.folder for each in waiting()]


def _row(state: RunnerState, now: datetime, matter: Matter | None) -> list[Cell]:
    shown = state.shown
    word, style = state_word(state, matter)
    known = bool(shown.tokens_in or shown.tokens_out)
    tokens = f"{'~' if shown.estimated else ''}{_thousands(shown.tokens_in + shown.tokens_out)}"
    sign = "≥" if shown.figures.is_partial else "~" if shown.estimated else ""
    cost = "-" if shown.cost is None else f"{sign}${shown.cost:.2f}"
    limit = f"/{shown.attempts}" if shown.attempts else ""
    return [
        Cell(shown.participant, "head"),
        Cell(os.path.basename(state.folder) or state.folder),
        Cell(word, style),
        Cell(format.age(shown.since, now)),
        Cell(f"{shown.attempt}{limit}" if shown.attempt else "-"),
        Cell(str(shown.turns)),
        Cell(tokens if known else "-"),
        Cell(cost),
        Cell(sentence(state, now, matter), "dim"),
    ]


def _thousands(number: int) -> str:
    return (
        str(number)
        if number < 1000
        else f"{number / 1000:.1f}k"
        if number < 1e6
        else f"{number / 1e6:.1f}M"
    )


def _states(folders: Iterable[str]) -> list[RunnerState]:
    """This account's loops, and after them those of others in the same folders."""
    given = list(folders)
    if given:
        found = [each for folder in given for each in registry.runners(folder)]
    else:
        found = registry.runners()
        given = [*dict.fromkeys(each.folder for each in found), os.getcwd()]
    others = [
        each for folder in dict.fromkeys(map(key_of, given)) for each in seen_of_others(folder)
    ]
    return [*found, *others]


def logs(given: Values) -> int:
    """Print what loops did."""
    follow, lines, raw = given.follow, given.lines, given.raw
    states = [_own(each, "read its log") for each in _chosen(given.folder, given.participant)]
    width = max(len(each.shown.participant) for each in states)
    several = len(states) > 1

    def tell(state: RunnerState, line: str) -> None:
        lead = f"{state.shown.participant:<{width}}  " if several else ""
        say(f"{lead}{mask(line)}", now=follow)

    for state in states:
        last = _raw_lines(state, lines) if raw else log_files.last_lines(Path(state.log), lines)
        for line in last:
            tell(state, line)
    if follow:
        _follow(states, raw, tell)
    return 0


def _raw_lines(state: RunnerState, count: int) -> list[str]:
    if state.run is None:
        return []
    found: list[str] = []
    for path in (state.run.err, state.run.out):
        found += log_files.last_lines(Path(path), count)
    return found[-count:] if count else []


def _follow(states: list[RunnerState], raw: bool, tell: Callable[[RunnerState, str], None]) -> None:
    followers: list[tuple[RunnerState, log_files.Follower]] = []
    for state in states:
        paths = [state.run.err, state.run.out] if raw and state.run else [] if raw else [state.log]
        for path in paths:
            follower = log_files.Follower(Path(path))
            follower.start_at_end()
            followers.append((state, follower))
    while True:
        for state, follower in followers:
            for line in follower.lines():
                tell(state, line)
        time.sleep(_STEP)


def _chosen(folder: str, participants: Iterable[str]) -> list[RunnerState]:
    """The loops that are meant.

    Raises:
        CommandError: there is none of that name, or none at all.
    """
    loops = (*registry.runners(folder), *loops_of_others(folder))
    known = {each.participant: each for each in loops}
    names = list(participants) or list(known)
    for name in names:
        if name not in known:
            there = f"; loops: {', '.join(known)}" if known else ""
            raise CommandError(f"{name} has no loop in {folder}{there}")
    if not names:
        raise CommandError(f"{folder} has no loops; start some with `acp launch {folder}`")
    return [known[name] for name in names]


def _own(state: RunnerState, what: str) -> RunnerState:
    """A loop of this account.

    Raises:
        CommandError: it is another's, who alone can do this.
    """
    if state.account:
        raise CommandError(f"{state.shown.note}; only {state.account} can {what}")
    return state


def stop(given: Values) -> int | None:
    """Stop loops.

    Raises:
        CommandError: it is not clear which, or there is none.
    """
    if given.all == bool(given.folder):
        raise CommandError("name a FOLDER, or use --all")
    if given.dry_run and given.folder:
        return None
    folders = [given.folder] if given.folder else _running_folders()
    bound = [bind_stop(located(STOP_LOOP, folder), utc_now()) for folder in folders]
    if given.dry_run:
        what = " ".join(each.preview(given).sentence for each in bound)
        return show(_STOP, "stop", Preview(what or "No loops are running."), as_json=given.json)
    loops: list[dict[str, Any]] = []
    with ThreadPoolExecutor(max_workers=32) as pool:  # each may wait for its loops to end
        outcomes = list(pool.map(lambda each: each.perform(given), bound))
    for folder, outcome in zip(folders, outcomes, strict=True):
        if outcome.done is None:
            raise CommandError(outcome.sentence)
        loops += cast("list[dict[str, Any]]", outcome.done.data["loops"])
        note(located(STOP_LOOP, folder).key, STOP_LOOP, given, outcome)
    if given.json:
        say(dump({"schema": _STOP, "loops": loops}))
    else:
        say("\n".join(each["sentence"] for each in loops) or "No loops are running.")
    return 0 if all(each["done"] for each in loops) else 1


def _running_folders() -> list[str]:
    """Where loops of this account run."""
    running = (each for each in registry.runners() if each.alive or each.program_alive)
    return list(dict.fromkeys(each.folder for each in running))


def nudge(given: Values) -> int | None:
    """Leave a message for a loop.

    Raises:
        CommandError: the participant has no loop that runs.
    """
    if given.dry_run:
        return None
    given.said |= {"message"}  # an empty one, too: as a form has it
    key, outcome = _performed(NUDGE, bind_nudge, given)
    _report("acp.nudge/1", key, outcome, given, {"participant": given.participant, "done": True})
    return 0


def cancel(given: Values) -> int | None:
    """Cancel what a participant's agent is doing.

    Raises:
        CommandError: it does nothing, or this is a program's own session.
    """
    if given.dry_run:
        return None
    key, outcome = _performed(CANCEL, bind_cancel, given)
    done = outcome.state is OutcomeState.DONE
    _report("acp.cancel/1", key, outcome, given, {"participant": given.participant, "done": done})
    return 0 if done else 1


def answer(given: Values) -> int | None:
    """Answer a program's request for permission.

    Raises:
        CommandError: it is not open any more, or this is a program's own session.
    """
    if given.dry_run:
        return None
    key, outcome = _performed(ANSWER, bind_answer, given)
    _report(
        "acp.answer/1", key, outcome, given, {"request": given.request, "verdict": given.verdict}
    )
    return 0


def _performed(
    spec: ActionSpec, bind: Callable[[Context, datetime], Action], given: Values
) -> tuple[str, Outcome]:
    """Do an act in the folder that is named, and note it; the collaboration's key, and what came of it.

    Raises:
        CommandError: it was refused.
    """
    where = located(spec, given.folder)
    outcome = bind(where, utc_now()).perform(given)
    if outcome.state is OutcomeState.REFUSED:
        raise CommandError(outcome.sentence)
    note(where.key, spec, given, outcome)
    return where.key, outcome


def _report(schema: str, key: str, outcome: Outcome, given: Values, facts: dict[str, Any]) -> None:
    """Print what came of an act."""
    if given.json:
        whole = {"schema": schema, "collaboration": key_of(key), **facts}
        say(dump({**whole, "sentence": outcome.sentence}))
    else:
        say(outcome.sentence)
