"""Why a participant that is waited for, and has a loop, does not act: it gets nowhere, ended, or may not spend.

Imported only where there is a loop: what it knows of the agents' programs takes time to import.
Silence alone is no stall: a tool may be at work, and many programs say nothing until they are
through. Chatter alone is no progress: only documents and events are. A budget that is used up keeps
a turn from being taken; one that nearly is will do so soon. A run that ended without its event has
one cause: the most telling one. An exit code proves nothing about a turn. What is found by patterns
over the last lines that a program printed is inferred: no program promises to say it in these words.
Evidence never says how long ago something was: it would be another one every second. Whoever shows
it knows what time it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from acp_core.agents import budgets, pauses, presets
from acp_core.agents.budgets import Use, doubled, raised
from acp_core.agents.failures import FailureClass, Report, classify, failure_of
from acp_core.agents.state import Limit, Phase, Run, RunnerState, Saved
from acp_core.loops import parking
from acp_core.loops.acts.names import (
    HAND_OVER,
    LOGIN,
    NUDGE,
    RAISE,
    RELAUNCH,
    STOP_LOOP,
    STOP_PROGRAM,
)
from acp_core.model import Matter, Status, Turn
from acp_core.model.errors import Refused
from acp_core.model.format import dated
from acp_core.model.matter import OWNER, TIME, About, Kind, Move, Until, verdicts
from acp_core.model.text import clean_line
from acp_core.person.settings import SettingsError
from acp_core.protocols.kit.diagnosis import DiagnosisContext, latest, safe_id

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
        pauses.WORDS[FailureClass.LOGIN],
        "log in with its own command, then restart it",
        HAND_OVER,
    ),
    FailureClass.LIMIT: Ending(
        "B4",
        pauses.WORDS[FailureClass.LIMIT],
        "reassign to another agent, or wait until the limit resets",
        HAND_OVER,
    ),
    FailureClass.CREDIT: Ending(
        "B4",
        pauses.WORDS[FailureClass.CREDIT],
        "add credit to its account, then retry the turn",
        NUDGE,
        evidence=("waiting does not help: the account needs credit",),
    ),
    FailureClass.SERVICE: Ending(
        "B5",
        pauses.WORDS[FailureClass.SERVICE],
        "wait until the service works again, or reassign to another agent",
        HAND_OVER,
        evidence=("the model service failed, not the agent: no attempt was used",),
    ),
    FailureClass.MODEL: Ending(
        "B15",
        pauses.WORDS[FailureClass.MODEL],
        "restart it with another model",
        RELAUNCH,
        evidence=("retrying does not help: the service does not know this model",),
    ),
    FailureClass.CONTEXT: Ending(
        "B16",
        pauses.WORDS[FailureClass.CONTEXT],
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


_LINGER = 90.0  # seconds after a program's last record in which its loop ends it

_ASKED = 30.0  # seconds of silence after which a question counts as one that waits for an answer


def running(case: DiagnosisContext, turn: Turn, loop: RunnerState, run: Run) -> Iterator[Matter]:
    """Why the program of a participant who is waited for gets nowhere; nothing where it does."""
    for test in (_lingers, _asks, _reads, _retries, _starts, _is_silent, _chatters):
        cause = test(case, turn, loop, run)
        if cause:
            yield cause
            return


def lingering(case: DiagnosisContext, loop: RunnerState) -> Matter | None:
    """A program that has said its last word and stays, whoever's turn it is."""
    run = loop.run
    if run is None or not loop.program_alive or not loop.alive:
        return None
    return _lingers(case, None, loop, run)


def _cause(
    code: str,
    turn: Turn | None,
    loop: RunnerState,
    run: Run,
    sentence: str,
    *,
    instruction: str,
    remedy: str,
    others: tuple[str, ...] = (),
    evidence: tuple[str, ...] = (),
    certain: bool = False,
    move: Move = OWNER,
    until: Until | None = None,
) -> Matter:
    name = loop.shown.participant
    known = (
        f"{program_label(loop)}, process {run.process.pid}, running since {dated(run.started)}",
        f"last output: {dated(run.last_output)}" if run.last_output else "no output so far",
    )
    return Matter(
        code,
        sentence,
        instruction,
        move,
        Kind.STALLED if move == OWNER else Kind.PAUSE,
        evidence=(*evidence, *known, *last_lines(run), log_place(loop)),
        certain=certain,
        verdicts=verdicts(remedy, (("participant", name),), others),
        about=About(participant=name),
        since=turn.since if turn else run.started,
        until=until,
        key=f"{code}:{name}:{turn.since_event if turn else ''}:{run.number}",
    )


def _lingers(
    case: DiagnosisContext, turn: Turn | None, loop: RunnerState, run: Run
) -> Matter | None:
    if run.finished is None or not case.clock.over(run.finished, case.patience.scaled(_LINGER)):
        return None
    return _cause(
        "B12",
        turn,
        loop,
        run,
        f"{loop.shown.participant}'s agent finished its work but did not exit",
        instruction="end the process: nothing is lost",
        remedy=STOP_PROGRAM,
        certain=True,
        evidence=(f"reported completion: {dated(run.finished)}",),
    )


def _asks(case: DiagnosisContext, turn: Turn, loop: RunnerState, run: Run) -> Matter | None:
    line = first_match(PROMPT, run.lines[-2:])
    if not line or not case.clock.over(run.last_output, case.patience.scaled(_ASKED)):
        return None
    return _cause(
        "B6",
        turn,
        loop,
        run,
        f"{turn.participant}'s agent appears to be waiting for interactive input",
        instruction="reassign to an agent that asks nothing, or start it with other flags",
        remedy=HAND_OVER,
        others=(RELAUNCH,),
        evidence=(f"prompt: {line}",),
    )


def _reads(case: DiagnosisContext, turn: Turn, loop: RunnerState, run: Run) -> Matter | None:
    line = first_match(STDIN, run.lines[-1:])
    if not line or not case.clock.over(run.last_output, case.patience.scaled(_ASKED)):
        return None
    return _cause(
        "B7",
        turn,
        loop,
        run,
        f"{turn.participant}'s agent appears to be waiting for standard input",
        instruction="restart it with standard input closed",
        remedy=RELAUNCH,
        evidence=(f"output: {line}",),
    )


def _retries(case: DiagnosisContext, turn: Turn, loop: RunnerState, run: Run) -> Matter | None:
    """It cannot reach its model service and keeps trying."""
    last = first_match(RETRY, run.lines[-1:])
    if run.retrying_until is None and not (run.retry_reason and last):
        return None
    long = _pause(run) > case.quiet(turn.participant)
    wanted = case.stalled(turn.participant, _began(turn, run)) or long
    report = Report(messages=(run.retry_reason,), resets_at=run.retrying_until)
    kind = classify(report, case.clock.now).kind
    code = "B5" if kind in (FailureClass.SERVICE, FailureClass.AGENT) else "B4"
    reason = run.retry_reason or last
    at = run.retrying_until
    ahead = at is not None and not case.clock.over(at, 0.0)
    next_one = f"; next retry at {dated(at)}" if ahead else ""
    return _cause(
        code,
        turn,
        loop,
        run,
        f"{turn.participant}'s agent cannot use its model service and keeps retrying: {reason}",
        instruction="wait, or reassign to another agent",
        remedy=HAND_OVER,
        others=(STOP_PROGRAM,),
        certain=run.retries > 0,
        evidence=(f"retry count: {run.retries}{next_one}",),
        move=OWNER if wanted else TIME,
        until=Until(at) if at is not None and ahead and not wanted else None,
    )


def _pause(run: Run) -> float:
    """Seconds between the last word and the next try."""
    if run.retrying_until is None:
        return 0.0
    return (run.retrying_until - (run.last_output or run.started)).total_seconds()


def _starts(case: DiagnosisContext, turn: Turn, loop: RunnerState, run: Run) -> Matter | None:
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
        instruction="restart it, or reassign to another agent",
        remedy=RELAUNCH,
        others=(HAND_OVER,),
        evidence=("this agent normally prints output as soon as it starts",),
    )


def _is_silent(case: DiagnosisContext, turn: Turn, loop: RunnerState, run: Run) -> Matter | None:
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
        instruction="look at its last output; restart it, or reassign to another agent",
        remedy=RELAUNCH,
        others=(NUDGE, HAND_OVER),
        evidence=(f"no event, document change or output since {dated(quiet_since)}", *doing),
    )


def _chatters(case: DiagnosisContext, turn: Turn, loop: RunnerState, run: Run) -> Matter | None:
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
        instruction="check its last output; restart it with a message",
        remedy=RELAUNCH,
        others=(NUDGE, HAND_OVER),
        evidence=(f"no event or document change since {dated(since)}",),
    )


def _began(turn: Turn, run: Run) -> datetime:
    """Since when this run has been at this turn."""
    return max(filter(None, (turn.since, run.started)))


def _progress(case: DiagnosisContext, turn: Turn, run: Run) -> datetime:
    """The last thing that counts as progress: the turn, the run, or a document that changed."""
    changed = [
        document.changed
        for document in case.snapshot.documents
        if document.group != "state"
        and document.changed
        and document.changed <= case.snapshot.as_of
    ]
    return max([_began(turn, run), *changed])


_MINUTE = 60.0

_TROUBLED = 86_400.0  # seconds of trouble with its model service after which a person should know


def of_turn(case: DiagnosisContext, turn: Turn, loop: RunnerState) -> Iterator[Matter]:
    """Why the loop of a participant that is waited for gets nowhere; nothing where it does."""
    yield from _living(case, turn, loop) if loop.alive else _dead(case, turn, loop)


def of_others(case: DiagnosisContext, waited: set[str]) -> Iterator[Matter]:
    """What is wrong with loops whoever's turn it is: programs that stay, budgets that run out.

    Args:
        case: What is known.
        waited: The participants that are waited for: theirs are told by `of_turn`.
    """
    for loop in case.loops:
        if loop.shown.participant not in waited:
            cause = lingering(case, loop)
            if cause:
                yield cause
    yield from nearly_over(case.loops)


# a loop that lives


def _living(case: DiagnosisContext, turn: Turn, loop: RunnerState) -> Iterator[Matter]:
    run, phase = loop.run, loop.phase
    if phase is Phase.GAVE_UP and loop.shown.capped:
        yield over_budget(turn, loop)
    elif phase in (Phase.GAVE_UP, Phase.PAUSING):
        yield _missed(case, turn, loop)
    elif phase is Phase.RUNNING and run is not None and run.ended is None:
        belief = _believes_otherwise(case, turn, loop, run)
        if belief:
            yield belief
        else:
            yield from running(case, turn, loop, run)
    elif phase is not Phase.RUNNING and case.clock.over(
        latest(turn.since, loop.started), case.patience.scaled(case.patience.settle)
    ):
        yield _does_not_notice(turn, loop)


def _missed(case: DiagnosisContext, turn: Turn, loop: RunnerState) -> Matter:
    """The program ended without the turn's event; the loop pauses, gave up, or is no more."""
    name, run, shown = turn.participant, loop.run, loop.shown
    found = ending(loop, run) if run else _not_started(loop)
    over = loop.phase is Phase.GAVE_UP or not loop.alive  # nothing happens by itself
    due = not over and case.clock.over(shown.retry_at, 0.0)
    hangs = due and case.stalled(name, shown.retry_at)
    overdue = hangs or (
        not over
        and not shown.limited
        and case.clock.over(_trouble(shown), case.patience.scaled(_TROUBLED))
    )
    headline = f"{name}'s agent {found.words}"
    if not loop.alive:
        headline = f"{headline}; its loop {_how_it_left(loop)}"
    elif due or (found.kind and not (over or overdue)):
        headline += pauses.outlook(shown, case.clock.now)
    if hangs:
        found = found._replace(advice=f"restart its loop, or {found.advice}", remedy=RELAUNCH)
    advice = found.advice if over or overdue else f"wait for the next attempt, or {found.advice}"
    return Matter(
        found.code,
        headline,
        instruction=advice,
        move=OWNER if over or overdue else TIME,
        kind=Kind.FAILING if over or overdue else Kind.PAUSE,
        evidence=tuple(
            dict.fromkeys(
                (
                    _then(loop, due),
                    *run_evidence(run),
                    *found.evidence,
                    *last_lines(run),
                    log_place(loop),
                )
            )
        ),
        certain=found.certain,
        verdicts=verdicts(
            found.remedy,
            _given(name, found),
            tuple(each for each in (NUDGE, RELAUNCH, HAND_OVER) if each != found.remedy),
        ),
        about=About(participant=name),
        since=run.ended if run else shown.since,
        until=None if over or due else pauses.until(shown),
        key=f"{found.code}:{name}:{turn.since_event}:{found.kind or (run.number if run else 0)}",
    )


def _then(loop: RunnerState, due: bool) -> str:
    """What the loop does about it; of one that is no more, until when it lived."""
    shown = loop.shown
    tries = f"attempt {shown.attempt}" + (f" of {shown.attempts}" if shown.attempts else "")
    if not loop.alive:
        limit = ""
        if shown.limited and shown.retry_at:
            reset = _printed(shown.limit) if shown.limit else dated(shown.retry_at)
            limit = f"; the limit resets at {reset}"
        elif shown.limit and shown.refused_after:
            limit = f"; the limit should have been reset at {_printed(shown.limit)}"
        at = f" at {dated(shown.ended)}" if shown.ended else ""
        return f"{tries}{limit}; the loop {_how_it_left(loop)}{at}: nothing is tried again"
    if loop.phase is Phase.GAVE_UP:
        return f"{tries}; the loop gave up at {dated(shown.since)} and needs you"
    if due:
        return f"{tries}; the loop's next attempt was due at {dated(shown.retry_at)}"
    if shown.limited:
        if shown.limit is None:  # as acp 0.2.0 noted it
            return f"the limit resets at {dated(shown.retry_at)}; the loop resumes then"
        resets = f"the limit resets at {_printed(shown.limit)}"
        return f"{resets}; the loop resumes at {dated(shown.retry_at)}"
    if shown.limit and shown.refused_after:
        still = f"the limit should have been reset at {_printed(shown.limit)}"
        return (
            f"{still}, but the service still refuses; the loop retries at {dated(shown.retry_at)}"
        )
    if shown.limit and shown.resets_later:
        still = f"the service still refuses, since {dated(_trouble(shown))}"
        until = f"until the limit resets at {_printed(shown.limit)}"
        return f"{still}; the loop retries every hour {until}, next at {dated(shown.retry_at)}"
    if shown.waits:
        since = f"since {dated(shown.troubled)}"
        return f"the model service fails {since}; the loop retries at {dated(shown.retry_at)}"
    return f"{tries}; the loop retries at {dated(shown.retry_at)}"


def _printed(limit: Limit) -> str:
    """When a limit is reset, no more precise than it was printed."""
    at = dated(limit.at)
    return at.rpartition(":")[0] if limit.width == _MINUTE else at


def _trouble(shown: Saved) -> datetime | None:
    """Since when its model service is in trouble: a limit that was waited for is none."""
    first = shown.limit.first if shown.limit else None
    return first or shown.troubled


def _given(name: str, found: Ending) -> tuple[tuple[str, str], ...]:
    who = (("participant", name),)
    return (*who, ("message", found.message)) if found.message and found.remedy == NUDGE else who


def _not_started(loop: RunnerState) -> Ending:
    return Ending(
        "B2",
        f"could not be started: {loop.shown.note}",
        "fix this, then restart it",
        RELAUNCH,
    )


def _believes_otherwise(
    case: DiagnosisContext, turn: Turn, loop: RunnerState, run: Run
) -> Matter | None:
    """A program that waits by itself still waits for somebody else."""
    if loop.shown.mode != "alone" or not run.lines:
        return None
    said = WAITING.match(run.lines[-1])
    settle = case.patience.scaled(case.patience.settle)
    if said is None or not case.clock.over(latest(turn.since, run.started), settle):
        return None
    awaited = {name.strip() for name in said[1].split(",")}
    if turn.participant in awaited:
        return None
    return Matter(
        "B10",
        f"{turn.participant}'s agent still waits for {said[1]}, although it is "
        f"{turn.participant}'s turn",
        instruction="restart it so that it reads the current state",
        evidence=(
            f"output: {run.lines[-1]}",
            f"log: waiting for {turn.participant} since {dated(turn.since)}",
            f"process {run.process.pid}, running since {dated(run.started)}",
            log_place(loop),
        ),
        certain=False,
        verdicts=verdicts(RELAUNCH, (("participant", turn.participant),), (NUDGE, HAND_OVER)),
        about=About(participant=turn.participant),
        since=turn.since,
        key=f"B10:{turn.participant}:{turn.since_event}:{run.number}",
    )


def _does_not_notice(turn: Turn, loop: RunnerState) -> Matter:
    name = turn.participant
    note = f": {loop.shown.note}" if loop.shown.note else ""
    silent = parking.silent() if loop.phase is Phase.WAITING else None
    parked = f"run {silent.cure} to resume all idle loops, or " if silent else ""
    return Matter(
        "B10",
        f"{name}'s loop has not noticed that it is {name}'s turn",
        instruction=f"{parked}restart the loop",
        evidence=(
            *([silent.sentence] if silent else ()),
            f"loop process {loop.pid} is {loop.phase.value}{note}",
            f"log: waiting for {name} since {dated(turn.since)}",
            log_place(loop),
        ),
        certain=False,
        verdicts=verdicts(RELAUNCH, (("participant", name),), (NUDGE, HAND_OVER)),
        about=About(participant=name),
        since=turn.since,
        key=f"B10:{name}:{turn.since_event}:{loop.pid}",
    )


# a loop that is no more


def _dead(case: DiagnosisContext, turn: Turn, loop: RunnerState) -> Iterator[Matter]:
    shown = loop.shown
    stopped = loop.phase in (Phase.STOPPED, Phase.DONE)
    settle = case.patience.scaled(case.patience.settle)
    if stopped and not case.clock.over(latest(turn.since, shown.since), settle):
        return  # it is being started again, perhaps
    if shown.capped:
        yield _again(over_budget(turn, loop), (HAND_OVER,))
        return
    if loop.phase is Phase.GAVE_UP or _had_failed(turn, loop):
        missed = _missed(case, turn, loop)
        others = tuple(each for each in missed.others if each not in (NUDGE, RELAUNCH))
        yield _again(missed, others)
        return
    headline, code, advice = _how_it_ended(turn.participant, loop)
    yield Matter(
        code,
        headline,
        instruction=advice,
        evidence=(
            f"loop process {loop.pid}: {'was ' if loop.died else ''}{loop.phase.value} since {dated(shown.since)}"
            + (f": {shown.note}" if shown.note else ""),
            *_of_program(loop),
            *last_lines(loop.run),
            log_place(loop),
        ),
        verdicts=verdicts(RELAUNCH, (("participant", turn.participant),), (HAND_OVER,)),
        about=About(participant=turn.participant),
        since=turn.since if loop.died else latest(turn.since, shown.since),
        key=f"{code}:{turn.participant}:{turn.since_event}:loop {loop.pid}",
    )


def _had_failed(turn: Turn, loop: RunnerState) -> bool:
    """Whether the agent had failed at this very turn when its loop was stopped."""
    shown, run = loop.shown, loop.run
    if loop.phase is not Phase.STOPPED or run is None or run.ended is None or run.stopped:
        return False
    return bool(shown.failure) and shown.turn == turn.since_event


def _again(missed: Matter, others: tuple[str, ...]) -> Matter:
    """The same where the loop has left: it must be started, there is nobody to be told."""
    if missed.remedy != NUDGE:
        again = verdicts(missed.remedy, missed.given, (RELAUNCH, *others))
    else:
        again = verdicts(RELAUNCH, missed.given[:1], others)
    return missed._replace(verdicts=again)


def _how_it_left(loop: RunnerState) -> str:
    """How a loop came to its end, as the end of "its loop ..."."""
    if loop.died:
        return "was killed, or the machine was restarted"
    return "gave up and ended" if loop.phase is Phase.GAVE_UP else "was stopped"


def _how_it_ended(name: str, loop: RunnerState) -> tuple[str, str, str]:
    """Headline, code and advice for a loop that has ended."""
    if loop.died and loop.program_alive:
        text = f"{name}'s loop was killed; its agent is still running unsupervised"
        return text, "B2", "restart the loop: it takes over the running agent"
    if loop.died:
        return f"{name}'s loop {_how_it_left(loop)}", "B2", "restart it"
    if loop.shown.deadline and loop.shown.note == "the deadline passed":
        return (
            f"{name}'s loop ended: its deadline passed",
            "E8",
            "restart it with a longer deadline",
        )
    return f"{name}'s loop was stopped, and it is {name}'s turn", "B2", "restart it"


def _of_program(loop: RunnerState) -> tuple[str, ...]:
    run = loop.run
    if run is None:
        return ("the agent was not started yet",)
    if loop.program_alive:
        return (f"{program_label(loop)} runs as process {run.process.pid}",)
    if run.ended is None:
        return (f"{program_label(loop)}, process {run.process.pid}, has ended too",)
    return run_evidence(run)


def of_assignments(case: DiagnosisContext) -> Iterator[Matter]:
    """Budgets and pauses of agents that no loop runs: those of governed runs, cycles and workspaces."""
    if case.snapshot.status is not Status.ACTIVE:
        return
    for runner in case.loops:
        held = runner.shown.capped and runner.phase is Phase.GAVE_UP
        waits = runner.alive and runner.shown.ended is None
        if held and (waits or not _is_raised(runner, case.clock.now)):
            yield _without_loop(_over_budget(safe_id(runner.participant), runner, "agent"))
        yield from _paused(case, runner)
    yield from map(_without_loop, nearly_over(case.loops))


def _paused(case: DiagnosisContext, runner: RunnerState) -> Iterator[Matter]:
    """Its model service refuses the program for now: whoever conducts it tries again by itself."""
    shown, run = runner.shown, runner.run
    sentence = pauses.sentence(runner, case.clock.now)
    if not sentence or run is None or shown.capped:
        return
    due = case.clock.over(shown.retry_at, 0.0)
    late = due and case.clock.over(shown.retry_at, case.patience.scaled(case.patience.quiet))
    long = not shown.limited and case.clock.over(_trouble(shown), case.patience.scaled(_TROUBLED))
    found = ending(runner, run)
    if found.kind != shown.failure:  # what its supervisor made of it counts
        found = _FAILURES[FailureClass(shown.failure)]._replace(kind=shown.failure)
    name = safe_id(runner.participant)
    yield Matter(
        found.code,
        sentence,
        instruction="check whether its supervisor hangs"
        if late
        else "check its model service, or stop it"
        if long
        else "wait: it is tried again by itself",
        move=OWNER if late or long else TIME,
        kind=Kind.PAUSE,
        evidence=(_then(runner, due), *run_evidence(run), *found.evidence, log_place(runner)),
        certain=found.certain,
        about=About(participant=name),
        since=shown.troubled or run.ended,
        until=None if due else pauses.until(shown),
        key=f"{found.code}:{name}:{shown.own}:{found.kind or run.number}",
    )


def _without_loop(matter: Matter) -> Matter:
    """The same of an agent that no loop runs: what may help a loop is nothing for it."""
    return matter._replace(verdicts=matter.verdicts[:1])


def _is_raised(runner: RunnerState, now: datetime) -> bool:
    """Whether a person raised the budgets of an agent since nobody conducts it any more."""
    shown = runner.shown
    try:
        found = budgets.in_force(runner.folder, runner.participant, shown.run_id, lambda: now)()
    except (Refused, SettingsError):
        return False
    amounts = {(cap.scope, cap.unit): cap.amount for cap in found}
    over = [use for use in shown.budget if use.is_over]
    return all(amounts.get((use.scope, use.unit), 0.0) > use.spent for use in over)


def over_budget(turn: Turn, loop: RunnerState) -> Matter:
    """A budget is used up: the loop starts nothing until a person raises it."""
    return _over_budget(turn.participant, loop, "loop", turn.since_event)


def _over_budget(name: str, loop: RunnerState, what: str, since: str | None = "") -> Matter:
    shown = loop.shown
    told = tuple(use.sentence for use in shown.budget)
    over = next((use.sentence for use in shown.budget if use.is_over), shown.note)
    note = shown.note if loop.phase is Phase.GAVE_UP else over
    ended = not loop.alive and what == "loop"
    return Matter(
        "E8",
        f"{name}'s {what} {'has ended' if ended else 'holds'}: {note}",
        instruction=f"raise the budget{' and restart it' if ended else ''}, or end the work",
        kind=Kind.DECISION,
        evidence=(*told, *run_evidence(loop.run), log_place(loop)),
        verdicts=verdicts(
            RAISE, (("participant", name), ("budget", raised(shown.budget))), (HAND_OVER, STOP_LOOP)
        ),
        about=About(participant=name),
        since=shown.since,
        key=f"E8:{name}:{since}:{note.partition(':')[0]}",
        root=True,
    )


def nearly_over(loops: Iterable[RunnerState]) -> Iterator[Matter]:
    """Budgets from which little is left: raised in time, nothing needs to stop."""
    warned = set()
    for loop in loops:
        if not loop.alive or loop.shown.capped or loop.shown.ended is not None:
            continue
        for use in loop.shown.budget:
            about = loop.shown.participant if use.scope in ("turn", "participant") else ""
            what = (use.scope, use.unit, about)
            if use.is_near and not use.is_over and what not in warned:
                warned.add(what)
                yield _nearly_over(loop, use, about)


def _nearly_over(loop: RunnerState, use: Use, about: str) -> Matter:
    name = loop.shown.participant
    return Matter(
        "E25",
        f"{about}: {use.sentence}" if about else use.sentence,
        instruction="raise the budget, or let acp stop the agent when the budget is used up",
        evidence=(f"{name} continues until 100 %", log_place(loop)),
        certain=True,
        verdicts=verdicts(RAISE, (("participant", name), ("budget", doubled(use))), (STOP_LOOP,)),
        about=About(participant=name),
        key=f"E25:{about}:{use.scope}:{use.unit}:{use.amount:g}",
    )
