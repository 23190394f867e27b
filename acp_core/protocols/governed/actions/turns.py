"""Turns: the next one given out, a staged result accepted, corrected or sent back."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from acp_core.agents.identity import identify
from acp_core.files.transaction import REPLACE, Write
from acp_core.model.action import Action
from acp_core.protocols.governed import prompts
from acp_core.protocols.governed.actions.build import BY, acting, comment, named, now
from acp_core.protocols.governed.conduct import adapters
from acp_core.protocols.governed.read.run import ActiveTurn
from acp_core.protocols.governed.schema import objects, text
from acp_core.protocols.governed.state import Move, next_role, roles_of
from acp_core.protocols.governed.view.wording import blocked_by
from acp_core.protocols.governed.write import Refused, accept, decide, dispatch
from acp_core.protocols.governed.write.accept import Judged, NotAccepted
from acp_core.protocols.governed.write.journal import document
from acp_core.protocols.governed.write.opened import Opened


def _staged(opened: Opened) -> ActiveTurn | None:
    """The turn whose result waits, None where there is none."""
    return next((turn for turn in opened.run.turns if turn.staged), None)


def accept_turn(opened: Opened) -> list[Action]:
    """Accept the staged result, and apply what is proposed where something is."""
    turn = _staged(opened)
    if turn is None or opened.state.get("status") != "active":
        return []
    root, id = str(opened.root), str(turn.raw.get("turn_id"))

    def told(fresh: Opened, given: Any) -> tuple[str, tuple[str, ...]]:
        judged = accept.judge(fresh, id, given.exclude)
        said, warnings = _shown(judged)
        return f"Accept the turn of {turn.role}. {said}", warnings

    def plan(fresh: Opened, given: Any) -> tuple[Move, Sequence[Write]]:
        judged = accept.judge(fresh, id, given.exclude)
        if not judged.verdict.ok:
            raise NotAccepted(judged.verdict)
        return accept.prepare(fresh, judged, now())

    def perform(given: Any) -> str:
        done = accept.accept(root, id, now(), given.exclude)
        gate = f"; the gate {done.waiting_gate} waits for you" if done.waiting_gate else ""
        said = " ".join(["", *done.warnings, *(f"Initiative: {each}." for each in done.news)])
        return f"Accepted the turn of {done.role}: {done.phase} is {done.status}{gate}.{said}"

    about = "Changed files that are not the agent's, a path each."
    found = [
        acting(
            opened,
            "accept-turn",
            "accept_turn",
            f"Accept the turn of {turn.role}",
            "Enter the staged result into the history.",
            {"exclude": (list[str], Field([], title="Not the agent's", description=about))},
            plan,
            perform,
            told=told,
            words=lambda _: {"turn": id},
        )
    ]
    try:
        judged = accept.judge(opened, id)
    except (Refused, OSError):
        return found
    if judged.verdict.ok or not judged.verdict.corrections:
        return found
    return [correct(opened, id, turn.role), *found]


def _shown(judged: Judged) -> tuple[str, tuple[str, ...]]:
    result, verdict = judged.result, judged.verdict
    said = ""
    if isinstance(result, dict):
        asks = text(result, "phase_transition_request", 80)
        said = f"“{text(result, 'summary', 400)}” ({text(result, 'status', 40)})"
        if asks:
            said += f", asks to go on to {asks}"
        elif result.get("run_completion_request") is True:
            said += ", asks to complete the run"
        said += "."
    if judged.observed.known:
        names = ", ".join(judged.observed.files[:20]) or "nothing"
        said += f" Changed in the repository: {names}."
    return said, tuple(verdict.warnings)


def correct(opened: Opened, id: str, role: str) -> Action:
    """Apply the corrections that are proposed for the staged result."""
    root = str(opened.root)

    def told(fresh: Opened, given: Any) -> tuple[str, tuple[str, ...]]:
        judged = accept.judge(fresh, id)
        offered = [
            f"{c.field} becomes {json.dumps(c.value, ensure_ascii=False)} ({c.reason})"
            for c in judged.verdict.corrections
        ]
        return f"Correct the result of {role}: {'; '.join(offered)}.", ()

    def plan(fresh: Opened, given: Any) -> tuple[None, Sequence[Write]]:
        new, _ = accept.corrected(accept.judge(fresh, id))
        return None, [Write(fresh.root / prompts.staged(id), REPLACE, document(new))]

    return acting(
        opened,
        "correct",
        "correct_result",
        f"Correct the result of {role}",
        "Apply the corrections that are proposed for the staged result; nothing else changes.",
        {},
        plan,
        lambda given: f"Corrected: {', '.join(accept.correct(root, id))}.",
        told=told,
    )


def reject_turn(opened: Opened) -> Action | None:
    """Send the turn that is under way back, None where none is."""
    if opened.state.get("status") != "active" or not opened.run.turns:
        return None
    turn = _staged(opened) or opened.run.turns[0]
    root, id = str(opened.root), str(turn.raw.get("turn_id"))

    def plan(fresh: Opened, given: Any) -> tuple[Move, Sequence[Write]]:
        return decide.rejecting_turn(fresh, id, given.by, given.reason, now())

    def told(fresh: Opened, given: Any) -> tuple[str, tuple[str, ...]]:
        move, _ = plan(fresh, given)
        if move.state.get("status") == "blocked":
            return f"Reject the turn of {turn.role}: its attempts are used up, the run stops.", ()
        return f"Reject the turn of {turn.role}: it is given out again.", ()

    def perform(given: Any) -> str:
        state = decide.reject_turn(root, id, given.by, given.reason, now())
        if state.get("status") == "blocked":
            return f"Rejected; the run is blocked: {blocked_by(state)}."
        return "Rejected; it waits to be given out again."

    return acting(
        opened,
        "reject-turn",
        "reject_turn",
        f"Reject the turn of {turn.role}",
        "Send the turn back with the reason; after the last attempt the run is blocked.",
        {"reason": comment("What is wrong", "The agent reads it.", needed=True)} | BY,
        plan,
        perform,
        told=told,
        words=lambda given: {"turn": id, "reason": given.reason},
        defaults=named(),
    )


def step(opened: Opened) -> Action | None:
    """Give out the next turn (or the same once more), None where that is not possible now."""
    try:
        planned = dispatch.plan(opened, None, now())
        role = next_role(opened.config, planned.move.state)
    except (Refused, OSError):
        return None
    root, turn = str(opened.root), dispatch.told(opened.config, planned)
    allowed = (
        (turn.role,) if turn.again else roles_of(opened.config, str(planned.move.state["phase"]))
    )
    first = turn.role if turn.again else role

    def plan(fresh: Opened, given: Any) -> tuple[Move, Sequence[Write]]:
        made = dispatch.plan(fresh, given.role, now())
        place = fresh.root / prompts.folder(made.turn["turn_id"])
        return made.move, [Write(place / n, REPLACE, data) for n, data in made.files.items()]

    def told(fresh: Opened, given: Any) -> tuple[str, tuple[str, ...]]:
        made = dispatch.told(fresh.config, dispatch.plan(fresh, given.role, now()))
        again = "once more " if made.again else ""
        if made.adapter == "manual":
            return f"Give the turn {again}to {made.role}, who takes it by hand.", ()
        runtimes = objects(fresh.config.get("runtimes")).get(made.runtime, {})
        line = adapters.described(runtimes)
        return f"Give the turn {again}to {made.role}; {line} takes it.", ()

    def perform(given: Any) -> str:
        made = dispatch.dispatch(root, given.role, now(), identify(os.getpid()))
        said = " ".join(["", *made.warnings])
        if made.adapter == "manual":
            return f"{made.role} takes it by hand: {made.bundle}/PROMPT.md says how.{said}"
        adapters.take_in_background(root, made.turn_id)
        return f"The turn of {made.role} has begun.{said}"

    kind: Any = Literal[allowed]
    return acting(
        opened,
        "step",
        "step",
        f"Give {'the turn again' if turn.again else 'the next turn'} to {first}",
        "Assign a turn, write what its agent is given, and start its program where it has one.",
        {"role": (kind, Field(first, title="Role", description="Who takes the turn."))},
        plan,
        perform,
        told=told,
        words=lambda given: {"role": given.role},
    )


def stop_turn(opened: Opened) -> Action | None:
    """End the program of the turn under way, None where none runs."""
    turn = next((each for each in opened.run.turns if each.running), None)
    if turn is None:
        return None
    root, id = str(opened.root), str(turn.raw.get("turn_id"))

    def plan(fresh: Opened, given: Any) -> tuple[None, Sequence[Write]]:
        if not any(each.running for each in fresh.run.turns if each.raw.get("turn_id") == id):
            raise Refused("it does not run any more")
        return None, ()

    def perform(given: Any) -> str:
        dispatch.stop(root, id, now())
        return f"Stopped the program of {turn.role}; the turn can be given out again."

    return acting(
        opened,
        "stop",
        "stop_turn",
        f"Stop the program of {turn.role}",
        "End the program that takes the turn; what it changed in the repository stays.",
        {},
        plan,
        perform,
        told=lambda fresh, given: (f"End the program of {turn.role} ({id}).", ()),
        risky=True,
    )
