"""How a program's last run ended without its event: what that means, and what helps.

One run has one cause: the most telling one. An exit code proves nothing about a turn. What is found
by patterns over the last lines that a program printed is inferred: no program promises to say it in
these words. Evidence never says how long ago something was: it would be another one every second.
Whoever shows it knows what time it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from acp_core.agents import presets
from acp_core.agents.failures import FailureClass, failure_of
from acp_core.agents.state import Run, RunnerState
from acp_core.loops.acts.names import HAND_OVER, LOGIN, NUDGE, RELAUNCH
from acp_core.model.format import dated
from acp_core.model.text import clean_line

_LINE = 2_000  # characters of a line that are looked at


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


PROMPT = _any(
    r"\[y/n(?:/[^\]]{0,20})?\]\s*:?\s*$",
    r"\(y(?:es)?/n(?:o)?(?:/[^)]{0,40})?\)\s*:?\s*\??\s*$",
    r"do you want to (?:proceed|continue|allow|trust)",
    r"do you trust",
    r"press (?:enter|any key|return) to",
    r"permission requested",
    r"waiting for (?:your )?(?:approval|permission|confirmation)",
    r"(?:enter|type) (?:your )?(?:password|passphrase)\b[^.]{0,40}:\s*$",
)
STDIN = _any(
    r"reading (?:additional )?(?:input|prompt) from stdin", r"waiting for (?:input on )?stdin"
)
RETRY = _any(r"reconnecting", r"waiting for network", r"\bretry(?:ing)?\b", r"\battempt \d+ failed")
WAITER = _any(r"invalid protocol\.json", r"^timeout: ")
WAITING = re.compile(r"^(?:waiting: )?waiting for (.{1,300}?)(?: after seq (\d{1,15}))?\s*$", re.I)


def first_match(pattern: re.Pattern[str], lines: Iterable[str]) -> str:
    """The first of these lines that a pattern matches; "" where it matches none."""
    return next((line for line in lines if pattern.search(line[:_LINE])), "")


_LAST = 4  # lines of a program's output that are quoted
_LONG = 200


def last_lines(run: Run | None) -> tuple[str, ...]:
    """The last lines that a program printed, as evidence."""
    if run is None:
        return ()
    return tuple(f"output: {clean_line(line, _LONG)}" for line in run.lines[-_LAST:])


def log_place(loop: RunnerState) -> str:
    """Where a loop's log is to be read."""
    return f"log: {clean_line(loop.log, 4_096)}"


def program_label(loop: RunnerState) -> str:
    """The program that takes a participant's turns, with its version and model."""
    shown = loop.shown
    parts = (shown.program, shown.version, shown.model)
    return " ".join(part for part in parts if part) or "its agent"


def run_evidence(run: Run | None) -> tuple[str, ...]:
    """When a run was, and how it ended, as evidence."""
    if run is None:
        return ()
    stopped = f", stopped: {run.stopped}" if run.stopped else ""
    time = f"from {dated(run.started)} to {dated(run.ended)}"
    return (f"process {run.process.pid} ran {time}: {run.exit}{stopped}",)


_TRIES = 3  # refused tries of one turn from which on a program counts as going round in circles
_MISSED = "Your last attempt ended without recording an event. Do the step and append its event."


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
        kind: the class of the failure, where it is not the agent's own.
    """

    code: str
    words: str
    advice: str
    remedy: str
    certain: bool = True
    evidence: tuple[str, ...] = ()
    message: str = ""
    kind: str = ""


def ending(loop: RunnerState, run: Run) -> Ending:
    """What the end of a run means: the cause that it makes, and what helps.

    Args:
        loop: the loop that ran it; what it notes counts, too.
        run: the run, which has ended without its event.
    """
    if run.cancelled:
        return Ending(
            "E8",
            f"was stopped: {run.cancelled} cancelled the turn",
            "send a message that says what to do, or restart it",
            NUDGE,
        )
    if run.stopped.startswith("the turn's deadline") and not run.unanswered:
        return Ending(
            "E8",
            "was stopped: the turn exceeded its time limit",
            "try again with a message, or reassign to another agent",
            NUDGE,
            message="Your last attempt exceeded the time limit. Do only what the turn needs.",
        )
    known = _by_class(loop, run)
    if known:
        return known
    if run.refused:
        tools = ", ".join(run.refused[-3:])
        return Ending(
            "B3",
            f"was denied a tool that it needs ({tools})",
            "reassign to an agent that may run commands",
            HAND_OVER,
            evidence=tuple(f"denied: {tool}" for tool in run.refused[-3:]),
        )
    if run.refusals:
        return _refused(loop, run)
    waiter = first_match(WAITER, run.lines) if loop.shown.mode == "alone" else ""
    if waiter:
        return Ending(
            "B8",
            "stopped waiting for its turn",
            "restart it: it only read files",
            NUDGE,
            certain=False,
            evidence=(f"output: {waiter}",),
        )
    if run.exit_code == 0 and not run.is_error:
        return Ending(
            "B3",
            "ended without an event",
            "try again with a message that names what is missing",
            NUDGE,
            evidence=("exit code 0, but the log has no event for this turn",),
            message=_MISSED,
        )
    how = (
        "ended with an unknown result"
        if run.exit_code is None and run.signal is None
        else _how(loop, run)
    )
    return Ending("B2", how, "restart it", NUDGE, message=_MISSED)


def _how(loop: RunnerState, run: Run) -> str:
    """How a run ended, with what its exit code means to this program."""
    if run.signal is not None:
        return f"was {run.exit}"
    known = presets.bundled().get(loop.shown.program)
    meaning = known.exits.get(run.exit_code or 0, "") if known else ""
    detail = run.error if run.is_error and run.error else meaning
    return f"failed with {run.exit}" + (f": {detail}" if detail else "")


def _by_class(loop: RunnerState, run: Run) -> Ending | None:
    """What failed was not the agent itself: what helps depends on the class of the failure."""
    known = presets.bundled().get(loop.shown.program)
    failure = failure_of(run, known.exits if known else {}, run.ended or run.started)
    found = _FAILURES.get(failure.kind)
    if found is None:
        return None
    login = known.login if known else ""
    if not loop.alive:
        advice, remedy = _WITHOUT_LOOP.get(failure.kind, (found.advice, found.remedy))
        found = found._replace(advice=advice, remedy=remedy)
    if failure.kind is FailureClass.LOGIN and login:
        then = "retry the turn" if loop.alive else "restart it"
        found = found._replace(advice=f"run `{login}`, then {then}", remedy=LOGIN)
    model = loop.shown.model
    if failure.kind is FailureClass.MODEL and model:
        found = found._replace(words=f"asked for a model that is not available: {model}")
    reason = (f"error: {clean_line(failure.reason, _LONG)}",) if failure.reason else ()
    certain = failure.certain and (failure.until is None or failure.is_dated)
    return found._replace(
        certain=certain, evidence=(*reason, *found.evidence), kind=failure.kind.value
    )


_FAILURES = {
    FailureClass.LOGIN: Ending(
        "B4",
        "is not logged in",
        "log in with its own command, then restart it",
        HAND_OVER,
    ),
    FailureClass.LIMIT: Ending(
        "B4",
        "has reached its usage limit",
        "reassign to another agent, or wait until the limit resets",
        HAND_OVER,
    ),
    FailureClass.CREDIT: Ending(
        "B4",
        "has no credit left",
        "add credit to its account, then retry the turn",
        NUDGE,
        evidence=("waiting does not help: the account needs credit",),
    ),
    FailureClass.SERVICE: Ending(
        "B5",
        "cannot use its model service",
        "wait until the service works again, or reassign to another agent",
        HAND_OVER,
        evidence=("the model service failed, not the agent: no attempt was used",),
    ),
    FailureClass.MODEL: Ending(
        "B15",
        "asked for a model that is not available",
        "restart it with another model",
        RELAUNCH,
        evidence=("retrying does not help: the service does not know this model",),
    ),
    FailureClass.CONTEXT: Ending(
        "B16",
        "ran out of context",
        "restart it with a model that has a larger context window, or reassign to another agent",
        RELAUNCH,
        evidence=("new sessions with a summary of the last one ran out of context, too",),
    ),
}
_WITHOUT_LOOP = {
    FailureClass.LIMIT: (
        "restart it: it waits until the limit resets; or reassign to another agent",
        RELAUNCH,
    ),
    FailureClass.CREDIT: ("add credit to its account, then restart it", RELAUNCH),
    FailureClass.SERVICE: (
        "restart it: it retries until the service works again; or reassign to another agent",
        RELAUNCH,
    ),
}
"""What helps where the loop has ended, and nothing is tried again by itself."""


def _refused(loop: RunnerState, run: Run) -> Ending:
    """Its event was refused."""
    text = run.refusals[-1].removeprefix("error: ")
    evidence = tuple(f"refused: {refusal}" for refusal in run.refusals[-3:])
    message = f"Your event was refused: {text}\nFix this, then append the event again."
    if loop.shown.attempt >= _TRIES:
        return Ending(
            "B11",
            f"was refused {loop.shown.attempt} times: {text}",
            "send a message that says how to fix this",
            NUDGE,
            evidence=evidence,
            message=message,
        )
    return Ending(
        "B3",
        f"could not record its event: {text}",
        "send a message that says how to fix this",
        NUDGE,
        evidence=evidence,
        message=message,
    )
