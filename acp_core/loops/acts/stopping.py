"""Acts that end something: a program, loops, a second process for the same participant."""

from __future__ import annotations

from datetime import datetime

from acp_core.agents.ending import Stopped
from acp_core.agents.state import RunnerState
from acp_core.loops import wording
from acp_core.loops.acts.about import About, one_of
from acp_core.loops.acts.ending import end_group, end_stranger
from acp_core.loops.acts.table import DUPLICATE, STOP_LOOP, STOP_PROGRAM
from acp_core.loops.stopping import stop_loops
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.diagnosis import Stranger, safe_id
from acp_core.protocols.kit.values import Values


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
        ended = [_ended(*each) for each in zip(wanted, stopped, strict=True)]
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


def _ended(loop: RunnerState, stopped: Stopped) -> dict[str, object]:
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
            return end_stranger(found)
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
