"""Acts on a loop that runs: a message, a login, an answer to a request for permission, a higher budget."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from acp_core.agents import budgets, presets, registry
from acp_core.agents.budgets import Cap, Use
from acp_core.agents.live import answers, turn
from acp_core.agents.live.answers import OpenRequest
from acp_core.agents.live.inside import refuse_inside_a_session
from acp_core.agents.live.requests import ALLOW_ONCE
from acp_core.agents.live.turn import Steering
from acp_core.agents.loop_directory import LoopDirectory, place
from acp_core.agents.presets import Preset
from acp_core.agents.state import RunnerState
from acp_core.files.claims import account
from acp_core.loops import spec as specs
from acp_core.loops.acts.about import About, is_loop, one_of
from acp_core.loops.acts.stopping import ENDING_PATIENCE, within
from acp_core.loops.acts.table import ANSWER, LOGIN, NUDGE, RAISE
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person.permissions import Verdict
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.diagnosis import safe_id
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
    spec = specs.load(where)
    having = loop.shown.budget if spec is None else spec.caps
    if all((each.scope, each.unit) != (cap.scope, cap.unit) for each in having):
        return False
    try:
        if spec is None:
            run_id = loop.shown.run_id
            budgets.raise_to(cap, loop.folder, loop.participant, run_id, utc_now())
        else:
            specs.save(replace(spec, caps=budgets.merged(spec.caps, (cap,))), where)
    except OSError as error:
        raise Refused(f"could not save the budget: {error.strerror or error}") from None
    return True
