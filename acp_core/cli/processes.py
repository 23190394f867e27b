"""``acp ps``, ``acp logs``, ``acp stop``, ``acp nudge``: the loops that run on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

import click

from acp_core.agents import logs as log_files
from acp_core.agents import registry
from acp_core.agents.state import RunnerState
from acp_core.cli import layout
from acp_core.cli.folders import FOLDER
from acp_core.cli.layout import Cell, Column
from acp_core.cli.loop_fields import facts, sentence, state_word
from acp_core.cli.output import dump, say, terminal
from acp_core.files.secrets import mask
from acp_core.model import OutcomeState, format
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.person import journal

SCHEMA = "acp.ps/1"
_STEP = 0.2  # seconds between two looks of `acp logs -f`


@click.command()
@click.argument("folders", nargs=-1, type=FOLDER, metavar="[FOLDER]...")
@click.option("--all", "everything", is_flag=True, help="Those that ended or were stopped too.")
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object ({SCHEMA}).")
def ps(folders: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """List the loops of this machine, or those of the collaborations in each FOLDER."""
    now = utc_now()
    states = _states(folders)
    shown = [each for each in states if everything or each.alive or each.died or each.program_alive]
    if as_json:
        say(dump({"schema": SCHEMA, "loops": [facts(each) for each in shown]}))
        return 0
    if not shown:
        hidden = f" ({len(states)} ended: --all)" if states else ""
        say(f"No loop runs{hidden}. `acp launch FOLDER` starts some.")
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
    cost = "-" if shown.cost is None else f"{'~' if shown.estimated else ''}${shown.cost:.2f}"
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
    given = list(folders)
    if not given:
        return registry.runners()
    return [each for folder in given for each in registry.runners(folder)]


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until interrupted.")
@click.option("-n", "--lines", type=click.IntRange(0), default=40, help="How many (40).")
@click.option("--raw", is_flag=True, help="What the program printed in its last run, as it was.")
@click.argument("folder", type=FOLDER)
@click.argument("participants", nargs=-1, metavar="[PARTICIPANT]...")
def logs(follow: bool, lines: int, raw: bool, folder: str, participants: tuple[str, ...]) -> int:
    """Show what the loops of the collaboration in FOLDER did, and what their programs printed."""
    states = _chosen(folder, participants)
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
    known = {each.participant: each for each in registry.runners(folder)}
    names = list(participants) or list(known)
    for name in names:
        if name not in known:
            there = f"; there are: {', '.join(known)}" if known else ""
            raise CommandError(f"{name} has no loop in {folder}{there}")
    if not names:
        raise CommandError(f"there is no loop in {folder}; `acp launch {folder}` starts some")
    return [known[name] for name in names]


@click.command()
@click.option("--all", "everywhere", is_flag=True, help="Every loop of this machine.")
@click.argument("folder", required=False, type=FOLDER)
@click.argument("participants", nargs=-1, metavar="[PARTICIPANT]...")
def stop(everywhere: bool, folder: str | None, participants: tuple[str, ...]) -> int:
    """Stop the loops of the collaboration in FOLDER, with the programs that they run.

    They are asked to end first, and ended after ten seconds.
    """
    if everywhere == bool(folder):
        raise CommandError("say which FOLDER, or --all")
    states = registry.runners() if everywhere else _chosen(folder or "", participants)
    wanted = [each for each in states if participants or each.alive or each.program_alive]
    if not wanted:
        say("No loop runs.")
        return 0
    stopped = registry.stop_all(wanted)
    for state, each in zip(wanted, stopped, strict=True):
        say(each.sentence)
        _note(state, "stop", {}, each.sentence, done=each.done)
    return 0 if all(each.done for each in stopped) else 1


def _note(
    state: RunnerState, action: str, inputs: dict[str, str], sentence: str, *, done: bool
) -> None:
    """Write into the person's journal what they did to a loop."""
    given = {"participant": state.participant, **inputs}
    outcome = OutcomeState.DONE if done else OutcomeState.UNKNOWN
    journal.note(state.folder, action, given, outcome.value, sentence, utc_now())


@click.command()
@click.argument("folder", type=FOLDER)
@click.argument("participant")
@click.argument("message", default="")
def nudge(folder: str, participant: str, message: str) -> int:
    """Ask a participant's loop to begin its turn anew, with MESSAGE in the prompt.

    It is done as soon as the program of the present run has ended and it is its turn.
    """
    (state,) = _chosen(folder, [participant])
    if not state.alive:
        raise CommandError(
            f"{participant} has no loop that runs; `acp launch {folder} {participant}`"
        )
    registry.nudge(state.folder, participant, message, utc_now())
    _note(state, "nudge", {"message": message}, "The message is left.", done=True)
    say(f"{participant}: the message is left; the loop takes it with its next turn.")
    return 0
