"""Acts on what runs: a message, a login, an answer, a higher budget, and the end of a program or turn.

What is to end is first asked, then made to end, and never the wrong process. When a turn is
cancelled, its loop then waits for a person.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import psutil

from acp_core.agents import budgets, presets, registry
from acp_core.agents.budgets import Cap, Use
from acp_core.agents.live import answers, turn
from acp_core.agents.live.answers import OpenRequest, refuse_inside_a_session
from acp_core.agents.live.requests import ALLOW_ONCE
from acp_core.agents.live.turn import Steering, has_ended
from acp_core.agents.loop_directory import LoopDirectory, place
from acp_core.agents.presets import Preset
from acp_core.agents.processes import Identity, Stopped
from acp_core.agents.state import Run, RunnerState
from acp_core.files.claims import account
from acp_core.loops import launch, wording
from acp_core.loops.acts.about import About, is_loop, one_of
from acp_core.loops.acts.table import (
    ANSWER,
    CANCEL,
    DUPLICATE,
    LOGIN,
    NUDGE,
    RAISE,
    STOP_LOOP,
    STOP_PROGRAM,
)
from acp_core.loops.launch import stop_loops
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person.permissions import Verdict
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.diagnosis import UnmanagedProcess, safe_id
from acp_core.protocols.kit.values import Values


def bind_nudge(context: Context, now: datetime) -> Action:
    """Have a participant begin its turn anew, with a message."""
    about = About.of(context)
    names = [
        name
        for name, loop in about.loops.items()
        if loop.alive and (is_loop(loop) or _steers(loop))
    ]

    def loop_of(name: str) -> RunnerState:
        loop = about.loop(name)
        if loop.account:
            raise Refused(f"{loop.shown.note}; only {loop.account} can send a message to it")
        if not loop.alive:
            command = shlex.join(("acp", "launch", about.key, name))
            raise Refused(f"{name} has no running loop; `{command}`")
        if not (is_loop(loop) or _steers(loop)):
            raise Refused(f"{name}'s agent takes no messages while it works")
        return loop

    def preview(values: Values) -> Preview:
        loop = loop_of(values.participant)
        message = clean_line(values.message, 300)
        if message and _steers(loop):
            return Preview(
                f"{values.participant}'s agent gets the message “{message}” at once, in its running turn."
            )
        when = "at once"
        if loop.program_alive:
            when = "after the current attempt has ended"
        said = f" with the message “{message}”" if message else ""
        return Preview(f"{values.participant} restarts its turn {when}{said}.")

    def perform(values: Values) -> Outcome:
        name = values.participant
        loop = loop_of(name)
        message = values.message.strip()
        try:
            late = _steered(loop, message)
            if late is None:
                return Outcome(OutcomeState.DONE, f"{name}: the agent got the message.")
            if not is_loop(loop):  # nobody would read it later
                raise Refused(f"{name}'s agent did not get the message{late}")
            registry.nudge(loop.folder, loop.participant, message, utc_now())
        except OSError as error:
            raise Refused(f"could not save the message: {error.strerror or error}") from None
        waits = ENDING_PATIENCE if not loop.program_alive else 0.0
        if within(lambda: not about.loop(name).nudge_waiting, waits):
            return Outcome(OutcomeState.DONE, f"{name}: the loop received the message.")
        return Outcome(
            OutcomeState.REQUESTED,
            f"{name}: message queued; the loop reads it after the current attempt{late}.",
        )

    return bound(
        NUDGE,
        about,
        preview,
        perform,
        narrowed={"participant": one_of(names)},
        offered=bool(names),
    )


def _steers(loop: RunnerState) -> bool:
    """Whether a message reaches the agent in its running turn."""
    run = loop.run
    at_work = run is not None and run.live and run.ended is None and loop.program_alive
    return at_work and turn.can_steer(LoopDirectory(Path(loop.place)))


def _steered(loop: RunnerState, message: str) -> str | None:
    """Send a message into the running turn. None where it arrived, else why not, for a sentence."""
    run = loop.run
    if not message or run is None or not _steers(loop):
        return ""
    sent = Steering(run.number, message, account(os.getuid()))
    reply = turn.steer(LoopDirectory(Path(loop.place)), sent)
    return None if reply.delivered else f" ({clean_line(reply.why, 200)})"


def bind_login(context: Context, now: datetime) -> Action:
    """Show how a participant's program is logged in."""
    about = About.of(context)
    commands = {
        name: preset.login
        for name, loop in about.loops.items()
        if (preset := _preset(loop)) is not None and preset.login
    }

    def preview(values: Values) -> Preview:
        words = tuple(shlex.split(_command(values.participant)))
        return Preview(
            f"Run this in your own terminal, then restart {values.participant}.",
            command=words,
        )

    def perform(values: Values) -> Outcome:
        return Outcome(
            OutcomeState.REQUESTED,
            f"Run `{_command(values.participant)}` in your own terminal, then restart {values.participant}.",
        )

    def _command(name: str) -> str:
        if name not in commands:
            raise Refused(f"no login command is known for {name}'s agent")
        return commands[name]

    narrowed = {"participant": one_of(commands)}
    return bound(LOGIN, about, preview, perform, narrowed=narrowed, offered=bool(commands))


def _preset(loop: RunnerState) -> Preset | None:
    return presets.bundled().get(loop.shown.program)


_PATIENCE = 2.0  # seconds for the session to take the answer


def bind_answer(context: Context, now: datetime) -> Action:
    """Answer a request as it is now: another one in its place is refused."""
    shown = {each.id: each for each in answers.waiting(context.key)}
    labels = {id: f"{safe_id(each.participant)}: {_about(each)}" for id, each in shown.items()}

    def chosen(values: Values) -> OpenRequest:
        opened = shown.get(values.request)
        if opened is None:
            raise Refused("this request is no longer open")
        allows = Verdict(values.verdict) is Verdict.ALLOW
        if allows and (opened.request.questions or opened.request.option(ALLOW_ONCE) is None):
            raise Refused("the agent offers no way to allow this once")
        return opened

    def preview(values: Values) -> Preview:
        opened = chosen(values)
        what = "is allowed, once" if values.verdict == Verdict.ALLOW else "is rejected"
        if opened.request.questions:
            message = clean_line(values.message)
            what = f"is answered with “{message}”" if message else "gets no answer"
        return Preview(f"{safe_id(opened.participant)}'s request {what}: {_about(opened)}")

    def perform(values: Values) -> Outcome:
        refuse_inside_a_session()
        opened, verdict = chosen(values), Verdict(values.verdict)
        answers.answer(opened, verdict, account(os.getuid()), utc_now(), values.message.strip())
        done = "Allowed once." if verdict is Verdict.ALLOW else "Rejected."
        if opened.request.questions:
            done = "Answered." if values.message.strip() else "Not answered."
        if within(lambda: not answers.is_published(opened), _PATIENCE):
            return Outcome(OutcomeState.DONE, done)
        return Outcome(OutcomeState.REQUESTED, f"{done} The agent has not taken the answer yet.")

    return bound(
        ANSWER,
        context,
        preview,
        perform,
        narrowed={
            "request": {
                "choices": tuple(shown),
                "labels": labels,
                "default": next(iter(shown)) if len(shown) == 1 else None,
            }
        },
        offered=bool(shown),
    )


def _about(opened: OpenRequest) -> str:
    request = opened.request
    if request.questions:
        return clean_line(request.questions[0].text, 120)
    paths = ", ".join(request.locations)
    return clean_line(request.command or request.tool or paths or request.title, 120)


def bind_raise(context: Context, now: datetime) -> Action:
    """Raise a budget that a participant's agent has."""
    about = About.of(context)
    having = {name: loop for name, loop in about.loops.items() if loop.shown.budget}
    capped = [name for name, loop in having.items() if loop.shown.capped]

    def wish(values: Values) -> tuple[RunnerState, Use, Cap]:
        cap, loop = budgets.parse(values.budget), about.loop(values.participant)
        if loop.account:
            raise Refused(f"{loop.shown.note}; only {loop.account} can raise its budgets")
        wanted = (cap.scope, cap.unit)
        use = next((u for u in loop.shown.budget if (u.scope, u.unit) == wanted), None)
        if use is None:
            there = ", ".join(f"{u.scope} in {u.unit}" for u in loop.shown.budget) or "none"
            raise Refused(f"{values.participant} has no budget {cap.scope} in {cap.unit} ({there})")
        if cap.amount <= use.spent:
            raise Refused(f"{cap} is not enough: {use.figures} are used")
        return loop, use, cap

    def preview(values: Values) -> Preview:
        _, use, cap = wish(values)
        return Preview(f"Changes the budget {Cap(use.scope, use.unit, use.amount)} to {cap}.")

    def perform(values: Values) -> Outcome:
        loop, _, cap = wish(values)
        changed = [each for each in _sharing(loop, cap) if _raise(each, cap)]
        if not changed:
            raise Refused(f"{values.participant} has no budget {cap.scope} in {cap.unit}")
        told = f"The budget is now {cap}"
        if not loop.alive or loop.shown.ended is not None:
            return Outcome(OutcomeState.DONE, f"{told}; start {values.participant} again.")
        if within(lambda: not about.loop(values.participant).shown.capped, ENDING_PATIENCE):
            return Outcome(OutcomeState.DONE, f"{told}; {values.participant} continues.")
        return Outcome(OutcomeState.REQUESTED, f"{told}; another budget may be used up.")

    return bound(
        RAISE,
        about,
        preview,
        perform,
        narrowed={
            "participant": one_of([*capped, *having]),
            "budget": {
                "default": next(
                    (budgets.raised(having[name].shown.budget) for name in capped), None
                )
            },
        },
        offered=bool(having),
    )


def _sharing(loop: RunnerState, cap: Cap) -> list[RunnerState]:
    """Whoever shares this budget."""
    if cap.scope == "day":
        return registry.runners()
    return registry.runners(loop.folder) if cap.scope == "collaboration" else [loop]


def _raise(loop: RunnerState, cap: Cap) -> bool:
    """Write the cap where it is read again: into a loop's spec, or with those of its run.

    Returns:
        Whether there was such a budget.
    """
    where = place(loop.folder, loop.participant)
    spec = launch.load_spec(where)
    having = loop.shown.budget if spec is None else spec.caps
    if all((each.scope, each.unit) != (cap.scope, cap.unit) for each in having):
        return False
    try:
        if spec is None:
            run_id = loop.shown.run_id
            budgets.raise_to(cap, loop.folder, loop.participant, run_id, utc_now())
        else:
            launch.save_spec(replace(spec, caps=budgets.merged(spec.caps, (cap,))), where)
    except OSError as error:
        raise Refused(f"could not save the budget: {error.strerror or error}") from None
    return True


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


def end_unmanaged(stranger: UnmanagedProcess) -> Outcome:
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

    def chosen(values: Values) -> UnmanagedProcess | RunnerState:
        found = _twins(about, values.participant).get(values.process)
        if found is None:
            raise Refused(f"{values.process} does not act for {values.participant}")
        return found

    def preview(values: Values) -> Preview:
        found = chosen(values)
        what = (
            found.command
            if isinstance(found, UnmanagedProcess)
            else "acp's own loop, and its agent"
        )
        return Preview(f"End {values.process}: {what}")

    def perform(values: Values) -> Outcome:
        found = chosen(values)
        if isinstance(found, UnmanagedProcess):
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


def _twins(about: About, name: str) -> dict[str, UnmanagedProcess | RunnerState]:
    """The processes that act for a participant, where there are several; strangers first."""
    found: dict[str, UnmanagedProcess | RunnerState] = {
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
