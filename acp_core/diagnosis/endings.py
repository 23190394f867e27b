"""How a program's last run ended without its event: what that means, and what helps.

One run has one cause: the most telling one. An exit code proves nothing about a turn.
"""

from __future__ import annotations

from typing import NamedTuple

from acp_core.agents import presets
from acp_core.agents.state import Run, RunnerState
from acp_core.diagnosis import patterns
from acp_core.loops.acts.names import HAND_OVER, LOGIN, NUDGE

_TRIES = 3  # refused tries of one turn from which on a program counts as going round in circles
_MISSED = (
    "Your last try ended, but no event of yours was recorded. Do the step and append its event."
)


class Ending(NamedTuple):
    """What became of a run.

    Attributes:
        code: of the cause.
        words: what happened, as the end of "reader's program ...".
        advice: what to do.
        remedy: the action for it.
        certain: whether that was seen, or inferred from what the program printed.
        evidence: further lines.
        message: what a nudge should say.
    """

    code: str
    words: str
    advice: str
    remedy: str
    certain: bool = True
    evidence: tuple[str, ...] = ()
    message: str = ""


def ending(loop: RunnerState, run: Run) -> Ending:
    """What the end of a run means: the cause that it makes, and what helps.

    Args:
        loop: the loop that ran it; what it notes counts, too.
        run: the run, which has ended without its event.
    """
    said = (run.error, *reversed(run.lines))
    if run.stopped.startswith("the turn's deadline"):
        return Ending(
            "E8",
            "was stopped: the turn took longer than it may",
            "give it another try, or hand the role to another program",
            NUDGE,
            message="Your last try took longer than a turn may take. Do only what the turn needs.",
        )
    known = _without_service(loop, run, said)
    if known:
        return known
    if run.refused:
        tools = ", ".join(run.refused[-3:])
        return Ending(
            "B3",
            f"was refused a tool that it needs ({tools})",
            "hand the role to a program that may run commands",
            HAND_OVER,
            evidence=tuple(f"refused: {tool}" for tool in run.refused[-3:]),
        )
    if run.refusals:
        return _refused(loop, run)
    waiter = patterns.first_match(patterns.WAITER, run.lines) if loop.shown.mode == "alone" else ""
    if waiter:
        return Ending(
            "B8",
            "stopped waiting for its turn",
            "start it again: it only read",
            NUDGE,
            certain=False,
            evidence=(f"it said: {waiter}",),
        )
    if run.exit_code == 0 and not run.is_error:
        return Ending(
            "B3",
            "ended well, but without an event",
            "give it another try, saying what is missing",
            NUDGE,
            evidence=("exit code 0 proves nothing: the log has no event of this turn",),
            message=_MISSED,
        )
    how = "died unseen" if run.exit_code is None and run.signal is None else _how(loop, run)
    return Ending("B2", how, "start it again", NUDGE, message=_MISSED)


def _how(loop: RunnerState, run: Run) -> str:
    """How a run ended, with what its exit code means to this program."""
    if run.signal is not None:
        return f"was {run.exit}"
    known = presets.bundled().get(loop.shown.program)
    meaning = known.exits.get(run.exit_code or 0, "") if known else ""
    detail = run.error if run.is_error and run.error else meaning
    return f"failed with {run.exit}" + (f": {detail}" if detail else "")


def _without_service(loop: RunnerState, run: Run, said: tuple[str, ...]) -> Ending | None:
    """It could not reach, or was not let to, the model service."""
    known = presets.bundled().get(loop.shown.program)
    meaning = known.exits.get(run.exit_code or 0, "") if known else ""
    if run.exit_code == 0 and not run.is_error:
        return None
    words = (meaning, *said)
    line = patterns.first_match(patterns.QUOTA, words)
    if line:
        return Ending(
            "B4",
            "may not use its model service any more for now",
            "hand the role to another program, or wait until the limit is reset",
            HAND_OVER,
            certain=False,
            evidence=(f"it said: {line}",),
        )
    line = patterns.first_match(patterns.LOGIN, words)
    if not line:
        return None
    return Ending(
        "B4",
        "is not logged in",
        "log it in with its own command, then start it again",
        LOGIN if known and known.login else HAND_OVER,
        certain=bool(meaning) and line == meaning,
        evidence=(f"it said: {line}",),
    )


def _refused(loop: RunnerState, run: Run) -> Ending:
    """Its event was refused."""
    text = run.refusals[-1].removeprefix("error: ")
    evidence = tuple(f"refused: {refusal}" for refusal in run.refusals[-3:])
    message = f"Your event was refused: {text}\nPut right what this names, then append it again."
    if loop.shown.attempt >= _TRIES:
        return Ending(
            "B11",
            f"tried {loop.shown.attempt} times and was refused each time: {text}",
            "tell it how to put that right",
            NUDGE,
            evidence=evidence,
            message=message,
        )
    return Ending(
        "B3",
        f"did not get its event recorded: {text}",
        "tell it how to put that right",
        NUDGE,
        evidence=evidence,
        message=message,
    )
