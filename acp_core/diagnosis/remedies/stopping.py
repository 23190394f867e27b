"""Actions that end something: a program, a loop, a second process for the same participant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acp_core.agents import registry
from acp_core.agents.state import RunnerState
from acp_core.diagnosis.names import DUPLICATE, STOP_LOOP, STOP_PROGRAM
from acp_core.diagnosis.remedies.ending import end_group, end_stranger
from acp_core.diagnosis.remedies.fields import About, model_of, one_of, refuse, who
from acp_core.files.text import clean_line
from acp_core.loops.stopping import stop_loops
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.protocols.kit.diagnosis import Claim, safe_id


def _ender(
    name: str,
    label: str,
    sentence: str,
    names: list[str],
    preview: Callable[[Any], Preview],
    perform: Callable[[Any], Outcome],
) -> Action:
    inputs = model_of(name, participant=who(names))
    return Action(name, label, sentence, inputs, preview, perform, risky=True)


def stop_program(about: About) -> Action | None:
    names = [name for name, loop in about.loops.items() if loop.program_alive]
    if not names:
        return None

    def preview(answers: Any) -> Preview:
        run = about.loops[answers.participant].run
        pid = run.process.pid if run else 0
        return Preview(
            f"End {answers.participant}'s program (process {pid}) and everything in its group; "
            "its loop stays, and looks whether the turn was taken."
        )

    def perform(answers: Any) -> Outcome:
        run = _now(about.loops[answers.participant]).run
        if run is None or not run.process.alive():
            return Outcome(OutcomeState.DONE, "It has ended already.")
        if end_group(run.process):
            return Outcome(OutcomeState.DONE, f"Ended process {run.process.pid}.")
        return Outcome(OutcomeState.UNKNOWN, f"Not fixed: process {run.process.pid} does not end.")

    sentence = "End the program that a participant's loop runs now."
    return _ender(STOP_PROGRAM, "End its program", sentence, names, preview, perform)


def _now(loop: RunnerState) -> RunnerState:
    return registry.find(loop.folder, loop.participant) or loop


def stop_loop(about: About) -> Action | None:
    names = [name for name, loop in about.loops.items() if loop.alive or loop.program_alive]
    if not names:
        return None

    def preview(answers: Any) -> Preview:
        loop = about.loops[answers.participant]
        return Preview(f"Stop {answers.participant}'s loop (process {loop.pid}) and its program.")

    def perform(answers: Any) -> Outcome:
        loop = about.loops[answers.participant]
        (stopped,) = stop_loops([loop])
        state = OutcomeState.DONE if stopped.done else OutcomeState.UNKNOWN
        return Outcome(state, clean_line(stopped.sentence))

    sentence = "Stop a participant's loop and its program; nobody takes its turns then."
    return _ender(STOP_LOOP, "Stop a loop", sentence, names, preview, perform)


def stop_duplicate(about: About) -> Action | None:
    names = [name for name in about.agents if _twins(about, name)]
    if not names:
        return None
    choices = [choice for name in names for choice in _twins(about, name)]

    def preview(answers: Any) -> Preview:
        chosen = _twins(about, answers.participant).get(answers.process)
        if chosen is None:
            return Preview("", refused=f"{answers.process} does not act for {answers.participant}")
        what = chosen.command if isinstance(chosen, Claim) else "acp's own loop, and its program"
        return Preview(f"End {answers.process}: {what}")

    def perform(answers: Any) -> Outcome:
        chosen = _twins(about, answers.participant).get(answers.process)
        if isinstance(chosen, Claim):
            return end_stranger(chosen)
        if chosen is None:
            return refuse(f"{answers.process} does not act for {answers.participant}")
        (stopped,) = stop_loops([chosen])
        state = OutcomeState.DONE if stopped.done else OutcomeState.UNKNOWN
        return Outcome(state, clean_line(stopped.sentence))

    field = one_of(choices, "Process", "The one that acp did not start comes first.")
    return Action(
        name=DUPLICATE,
        label="End a second process",
        sentence="Two processes act for one participant: end one of them.",
        inputs=model_of(DUPLICATE, participant=who(names), process=field),
        preview=preview,
        perform=perform,
        risky=True,
    )


def _twins(about: About, name: str) -> dict[str, Claim | RunnerState]:
    """The processes that act for a participant, where there are several; strangers first."""
    found: dict[str, Claim | RunnerState] = {
        f"process {claim.pid}": claim
        for claim in about.claims
        if safe_id(claim.participant) == name
    }
    loop = about.loops.get(name)
    if loop is not None and (loop.alive or loop.program_alive):
        found[f"process {loop.pid}"] = loop
    return found if len(found) > 1 else {}
