"""``acp ps``, ``acp logs``, ``acp stop``, ``acp nudge``, ``acp answer``: the loops that run on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from acp_core.agents import logs as log_files
from acp_core.agents import registry
from acp_core.agents.conductor import loops_of_others, seen_of_others
from acp_core.agents.state import RunnerState
from acp_core.cli import layout
from acp_core.cli.layout import Cell, Column
from acp_core.cli.loop_fields import facts, sentence, state_word
from acp_core.cli.output import dump, say, terminal, warn
from acp_core.files.secrets import mask
from acp_core.loops import parking
from acp_core.loops.acts.steering import bind_answer, bind_cancel, bind_nudge, bind_stop
from acp_core.loops.acts.table import ANSWER, CANCEL, NUDGE, STOP_LOOP
from acp_core.model import Action, Outcome, OutcomeState, Preview, format
from acp_core.model.action_spec import ActionSpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.person.paths import key_of
from acp_core.protocols.kit.binding import Context, located
from acp_core.protocols.kit.command import note
from acp_core.protocols.kit.parser import show
from acp_core.protocols.kit.values import Values

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
    if given.json:
        loops = [facts(each) for each in shown]
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
    rows = [_row(each, now) for each in shown]
    for line in layout.table(columns, rows, terminal()):
        say(line)
    return 0


def _row(state: RunnerState, now: datetime) -> list[Cell]:
    shown = state.shown
    word, style = state_word(state)
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
        Cell(sentence(state, now), "dim"),
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
