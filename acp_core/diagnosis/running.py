"""What keeps a program that runs from taking its participant's turn.

Silence alone is no stall: a tool may be at work, and many programs say nothing until they are
through. Chatter alone is no progress: only documents and events are.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from acp_core.agents import presets
from acp_core.agents.failures import FailureClass, Report, classify
from acp_core.agents.state import Run, RunnerState
from acp_core.diagnosis import patterns
from acp_core.diagnosis.words import last_lines, program, where
from acp_core.loops.acts.names import HAND_OVER, NUDGE, RELAUNCH, STOP_PROGRAM
from acp_core.model import Cause, Turn
from acp_core.model.format import dated
from acp_core.protocols.kit.diagnosis import Case

_LINGER = 90.0  # seconds after a program's last record in which its loop ends it
_ASKED = 30.0  # seconds of silence after which a question counts as one that waits for an answer


def running(case: Case, turn: Turn, loop: RunnerState, run: Run) -> Iterator[Cause]:
    """Why the program of a participant who is waited for gets nowhere; nothing where it does."""
    for test in (_lingers, _asks, _reads, _retries, _starts, _is_silent, _chatters):
        cause = test(case, turn, loop, run)
        if cause:
            yield cause
            return


def lingering(case: Case, loop: RunnerState) -> Cause | None:
    """A program that has said its last word and stays, whoever's turn it is."""
    run = loop.run
    if run is None or not loop.program_alive or not loop.alive:
        return None
    return _lingers(case, None, loop, run)


def _cause(
    code: str, turn: Turn | None, loop: RunnerState, run: Run, headline: str, **more: object
) -> Cause:
    name = loop.shown.participant
    evidence = more.pop("evidence", ())
    assert isinstance(evidence, tuple)
    known = (
        f"{program(loop)}, process {run.process.pid}, running since {dated(run.started)}",
        f"last output: {dated(run.last_output)}" if run.last_output else "no output so far",
    )
    fields: dict[str, object] = {
        "certain": False,
        "participant": name,
        "since": turn.since if turn else run.started,
        "key": f"{code}:{name}:{turn.since_event if turn else ''}:{run.number}",
        "given": (("participant", name),),
        "evidence": (*evidence, *known, *last_lines(run), where(loop)),
    }
    return Cause(code, headline, **(fields | more))  # type: ignore[arg-type]


def _lingers(case: Case, turn: Turn | None, loop: RunnerState, run: Run) -> Cause | None:
    if run.finished is None or not case.clock.over(run.finished, case.patience.scaled(_LINGER)):
        return None
    return _cause(
        "B12",
        turn,
        loop,
        run,
        f"{loop.shown.participant}'s agent finished its work but did not exit",
        advice="end the process: nothing is lost",
        certain=True,
        remedy=STOP_PROGRAM,
        evidence=(f"reported completion: {dated(run.finished)}",),
    )


def _asks(case: Case, turn: Turn, loop: RunnerState, run: Run) -> Cause | None:
    line = patterns.first_match(patterns.PROMPT, run.lines[-2:])
    if not line or not case.clock.over(run.last_output, case.patience.scaled(_ASKED)):
        return None
    return _cause(
        "B6",
        turn,
        loop,
        run,
        f"{turn.participant}'s agent appears to be waiting for interactive input",
        advice="reassign to an agent that asks nothing, or start it with other flags",
        remedy=HAND_OVER,
        others=(RELAUNCH,),
        evidence=(f"prompt: {line}",),
    )


def _reads(case: Case, turn: Turn, loop: RunnerState, run: Run) -> Cause | None:
    line = patterns.first_match(patterns.STDIN, run.lines[-1:])
    if not line or not case.clock.over(run.last_output, case.patience.scaled(_ASKED)):
        return None
    return _cause(
        "B7",
        turn,
        loop,
        run,
        f"{turn.participant}'s agent appears to be waiting for standard input",
        advice="restart it with standard input closed",
        remedy=RELAUNCH,
        evidence=(f"output: {line}",),
    )


def _retries(case: Case, turn: Turn, loop: RunnerState, run: Run) -> Cause | None:
    """It cannot reach its model service and keeps trying."""
    last = patterns.first_match(patterns.RETRY, run.lines[-1:])
    if run.retrying_until is None and not (run.retry_reason and last):
        return None
    long = _pause(run) > case.quiet(turn.participant)
    wanted = case.stalled(turn.participant, _began(turn, run)) or long
    report = Report(messages=(run.retry_reason,), resets_at=run.retrying_until)
    kind = classify(report, case.clock.now).kind
    code = "B5" if kind in (FailureClass.SERVICE, FailureClass.AGENT) else "B4"
    reason = run.retry_reason or last
    until = f"; next retry at {dated(run.retrying_until)}" if run.retrying_until else ""
    return _cause(
        code,
        turn,
        loop,
        run,
        f"{turn.participant}'s agent cannot use its model service and keeps retrying: {reason}",
        advice="wait, or reassign to another agent",
        certain=run.retries > 0,
        wanted=wanted,
        remedy=HAND_OVER,
        others=(STOP_PROGRAM,),
        evidence=(f"retry count: {run.retries}{until}",),
    )


def _pause(run: Run) -> float:
    """Seconds between the last word and the next try."""
    if run.retrying_until is None:
        return 0.0
    return (run.retrying_until - (run.last_output or run.started)).total_seconds()


def _starts(case: Case, turn: Turn, loop: RunnerState, run: Run) -> Cause | None:
    """It was started and has said nothing at all, although its kind of program does."""
    known = presets.bundled().get(loop.shown.program)
    if run.first_output is not None or known is None or known.stream == "text":
        return None
    if not case.clock.over(run.started, case.patience.scaled(case.patience.first_output)):
        return None
    return _cause(
        "B9",
        turn,
        loop,
        run,
        f"{turn.participant}'s agent has produced no output since it started",
        advice="restart it, or reassign to another agent",
        remedy=RELAUNCH,
        others=(HAND_OVER,),
        evidence=("this agent normally prints output as soon as it starts",),
    )


def _is_silent(case: Case, turn: Turn, loop: RunnerState, run: Run) -> Cause | None:
    """Nothing came from it for long, and no tool is at work."""
    quiet_since = max(filter(None, (_progress(case, turn, run), run.last_output)))
    if not case.stalled(turn.participant, quiet_since):
        return None
    busy = case.busy(loop)
    if busy and not case.stalled(turn.participant, quiet_since, times=case.patience.cap):
        return None
    doing = (f"tool in use since then: {busy}",) if busy else ()
    return _cause(
        "B9",
        turn,
        loop,
        run,
        f"{turn.participant}'s agent is running but produces no output",
        advice="look at its last output; restart it, or reassign to another agent",
        remedy=RELAUNCH,
        others=(NUDGE, HAND_OVER),
        evidence=(f"no event, document change or output since {dated(quiet_since)}", *doing),
    )


def _chatters(case: Case, turn: Turn, loop: RunnerState, run: Run) -> Cause | None:
    """It keeps talking, and nothing comes of it."""
    since = _progress(case, turn, run)
    if not case.stalled(turn.participant, since, times=case.patience.cap):
        return None
    return _cause(
        "B11",
        turn,
        loop,
        run,
        f"{turn.participant}'s agent is producing output but no event or document",
        advice="check its last output; restart it with a message",
        remedy=RELAUNCH,
        others=(NUDGE, HAND_OVER),
        evidence=(f"no event or document change since {dated(since)}",),
    )


def _began(turn: Turn, run: Run) -> datetime:
    """Since when this run has been at this turn."""
    return max(filter(None, (turn.since, run.started)))


def _progress(case: Case, turn: Turn, run: Run) -> datetime:
    """The last thing that counts as progress: the turn, the run, or a document that changed."""
    changed = [
        document.changed
        for document in case.snapshot.documents
        if document.group != "state"
        and document.changed
        and document.changed <= case.snapshot.as_of
    ]
    return max([_began(turn, run), *changed])
