"""Acts that end something: a program, loops, a second process for the same participant, a turn.

A process is first asked, then made to end, and never the wrong one. When a turn is cancelled, its
loop then waits for a person.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import psutil

from acp_core.agents import registry
from acp_core.agents.ending import Stopped
from acp_core.agents.identity import Identity
from acp_core.agents.live import turn
from acp_core.agents.live.inside import refuse_inside_a_session
from acp_core.agents.live.turn import has_ended
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.state import Run, RunnerState
from acp_core.files.claims import account
from acp_core.loops import wording
from acp_core.loops.acts.about import About, is_loop, one_of
from acp_core.loops.acts.table import CANCEL, DUPLICATE, STOP_LOOP, STOP_PROGRAM
from acp_core.loops.recording import stop_loops
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.diagnosis import Stranger, safe_id
from acp_core.protocols.kit.values import Values

ENDING_PATIENCE = 5.0  # seconds between asking and making
_STEP = 0.05
_SAME = 1.0  # seconds that two readings of one birth may differ by


def within(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether something becomes so within some seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_STEP)
    return True


def end_group(leader: Identity) -> bool:
    """End a program and its process group; False where it did not end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if leader.alive():
            with contextlib.suppress(OSError):
                os.killpg(leader.pid, number)
        if within(lambda: not leader.alive(), ENDING_PATIENCE):
            return True
    return False


def end_unmanaged(stranger: Stranger) -> Outcome:
    """End a process that acp did not start, if it still is the one that was looked at."""
    try:
        process = psutil.Process(stranger.pid)
        if abs(process.create_time() - stranger.created) > _SAME:
            return Outcome(OutcomeState.DONE, f"Process {stranger.pid} has already ended.")
        if process.uids().real != os.getuid():
            text = f"process {stranger.pid} belongs to another user of this machine"
            return Outcome(OutcomeState.REFUSED, text)
        process.terminate()
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(ENDING_PATIENCE)
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            process.kill()
            process.wait(ENDING_PATIENCE)
    except psutil.NoSuchProcess:
        pass
    except (psutil.Error, OSError) as error:
        return Outcome(OutcomeState.UNKNOWN, f"Not fixed: process {stranger.pid}: {error}")
    return Outcome(OutcomeState.DONE, f"Ended process {stranger.pid}.")


def bind_stop(context: Context, now: datetime) -> Action:
    """Stop loops and the programs that they run, all of them unless some are named."""
    about = About.of(context)
    running = [name for name, loop in about.all_loops.items() if loop.alive or loop.program_alive]

    def chosen(values: Values) -> list[RunnerState]:
        if "participant" in values.said and not values.participant:
            raise Refused("no loop selected" if running else "no loop is running here")
        if not about.all_loops:
            raise Refused(
                f"no loop is running in {about.key}; start loops with `acp launch {about.key}`"
            )
        return [about.loop(name) for name in values.participant or running]

    def preview(values: Values) -> Preview:
        wanted = chosen(values)
        if not wanted:
            raise Refused("no loop is running")
        names = [safe_id(loop.participant) for loop in wanted]
        who = [f"{name} (process {loop.pid})" for name, loop in zip(names, wanted, strict=True)]
        asked = "Loops are asked to stop first, and killed after ten seconds."
        command = ("acp", "stop", clean_line(about.key, 4_096), *names)
        return Preview(f"Stops {', '.join(who)}. {asked}", command=command)

    def perform(values: Values) -> Outcome:
        wanted = chosen(values)
        stopped = stop_loops(wanted)
        ended = [_stopped_as_data(*each) for each in zip(wanted, stopped, strict=True)]
        words = clean_line("; ".join(each.sentence for each in stopped), 1_000)
        state = OutcomeState.DONE if all(each.done for each in stopped) else OutcomeState.UNKNOWN
        words = f"{words}." if words else "No loop is running."
        return Outcome(state, words, done=Preview(words, data={"loops": ended}))

    labels = {name: f"{name}: {wording.activity(about.all_loops[name])}" for name in running}
    own = tuple(name for name in running if not about.all_loops[name].account)
    return bound(
        STOP_LOOP,
        about,
        preview,
        perform,
        narrowed={"participant": {"choices": tuple(running), "default": own, "labels": labels}},
        offered=bool(running),
    )


def _stopped_as_data(loop: RunnerState, stopped: Stopped) -> dict[str, object]:
    return {
        "collaboration": loop.folder,
        "participant": loop.shown.participant,
        "done": stopped.done,
        "sentence": stopped.sentence,
    }


def bind_stop_program(context: Context, now: datetime) -> Action:
    """End the program that a loop runs now; the loop stays."""
    about = About.of(context)
    names = [name for name, loop in about.loops.items() if loop.program_alive]

    def preview(values: Values) -> Preview:
        run = about.loop(values.participant).run
        return Preview(
            f"End {values.participant}'s agent (process {run.process.pid if run else 0}) and its process group; the loop keeps running and checks whether the turn was taken."
        )

    def perform(values: Values) -> Outcome:
        run = about.loop(values.participant).run
        if run is None or not run.process.alive():
            return Outcome(OutcomeState.DONE, "The process has already ended.")
        if end_group(run.process):
            return Outcome(OutcomeState.DONE, f"Ended process {run.process.pid}.")
        return Outcome(OutcomeState.UNKNOWN, f"Not fixed: process {run.process.pid} did not end.")

    narrowed = {"participant": one_of(names)}
    return bound(STOP_PROGRAM, about, preview, perform, narrowed=narrowed, offered=bool(names))


def bind_stop_duplicate(context: Context, now: datetime) -> Action:
    """End one of two processes that act for one participant."""
    about = About.of(context)
    names = [name for name in about.agents if _twins(about, name)]
    choices = [choice for name in names for choice in _twins(about, name)]

    def chosen(values: Values) -> Stranger | RunnerState:
        found = _twins(about, values.participant).get(values.process)
        if found is None:
            raise Refused(f"{values.process} does not act for {values.participant}")
        return found

    def preview(values: Values) -> Preview:
        found = chosen(values)
        what = found.command if isinstance(found, Stranger) else "acp's own loop, and its agent"
        return Preview(f"End {values.process}: {what}")

    def perform(values: Values) -> Outcome:
        found = chosen(values)
        if isinstance(found, Stranger):
            return end_unmanaged(found)
        (stopped,) = stop_loops([found])
        state = OutcomeState.DONE if stopped.done else OutcomeState.UNKNOWN
        return Outcome(state, clean_line(stopped.sentence))

    return bound(
        DUPLICATE,
        about,
        preview,
        perform,
        narrowed={"participant": one_of(names), "process": one_of(choices)},
        offered=bool(names),
    )


def _twins(about: About, name: str) -> dict[str, Stranger | RunnerState]:
    """The processes that act for a participant, where there are several; strangers first."""
    found: dict[str, Stranger | RunnerState] = {
        f"process {stranger.pid}": stranger
        for stranger in about.strangers
        if safe_id(stranger.participant) == name
    }
    loop = about.loops.get(name)
    if loop is not None and (loop.alive or loop.program_alive):
        found[f"process {loop.pid}"] = loop
    return found if len(found) > 1 else {}


_CANCEL_PATIENCE = 20.0  # seconds for an agent to end its turn, or to be ended with its commands
_NOTICE = 3.0  # seconds for the loop to see that


def bind_cancel(context: Context, now: datetime) -> Action:
    """Cancel the attempt that runs when this is done."""
    about = About.of(context)
    names = [name for name, loop in about.loops.items() if _turn_in_progress(loop)]

    def running(name: str) -> tuple[RunnerState, Run]:
        loop = about.loop(name)
        if loop.account:
            raise Refused(f"{loop.shown.note}; only {loop.account} can cancel its turn")
        run = _turn_in_progress(loop)
        if run is None:
            raise Refused(f"{name}'s agent is not at work")
        return loop, run

    def preview(values: Values) -> Preview:
        loop, run = running(values.participant)
        how = "is asked to end its turn" if run.live else "is ended"
        waits = "acp starts no further attempt until you decide."
        if is_loop(loop):
            how += "; its session stays" if run.live else ""
            waits = "The loop starts no further attempt until you send a message or restart it."
        return Preview(
            f"{values.participant}'s agent {how}. Commands that it left running are ended. {waits}"
        )

    def perform(values: Values) -> Outcome:
        refuse_inside_a_session()
        name = values.participant
        loop, run = running(name)
        try:
            turn.cancel(LoopDirectory(Path(loop.place)), run.number, account(os.getuid()))
        except OSError as error:
            raise Refused(f"could not cancel the turn: {error.strerror or error}") from None
        if not run.live:
            end_group(run.process)
        if not _has_turn_ended(loop, run):
            return Outcome(OutcomeState.UNKNOWN, f"{name}'s agent has not ended its turn yet.")
        after = registry.find(loop.folder, loop.participant) or loop
        waits = "; its loop waits for you" if after.alive and is_loop(after) else ""
        return Outcome(OutcomeState.DONE, f"{name}: the turn is cancelled{waits}.")

    return bound(
        CANCEL,
        about,
        preview,
        perform,
        narrowed={"participant": one_of(names)},
        offered=bool(names),
    )


def _turn_in_progress(loop: RunnerState) -> Run | None:
    run = loop.run
    return run if run is not None and run.ended is None and loop.program_alive else None


def _has_turn_ended(loop: RunnerState, run: Run) -> bool:
    """Whether the attempt ended: its loop says so, or (where that does not live) its session."""
    out = Path(run.out)

    def is_over() -> bool:
        now = registry.find(loop.folder, loop.participant)
        if now is None or now.run is None or now.run.number != run.number:
            return True
        return now.run.ended is not None or not now.program_alive

    if run.live and not loop.alive:
        return within(lambda: has_ended(out), _CANCEL_PATIENCE)
    return within(is_over, _CANCEL_PATIENCE + _NOTICE)
