"""What a run may spend and do, and what only the existing program carries out.

Budgets, policies, time limits, delegations, parallel turns, decisions for the whole repository and
open escalations are shown; acp itself acts on none of them but the attempts of a turn. Source: the
shapes that the existing program writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from acp_core import model
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import (
    Budget,
    Config,
    Escalation,
    RepoDecision,
    RunState,
    decode,
    plain,
)

_MOST = 200  # rows of one kind


def limits(run: Run) -> model.Panel:
    """The panel, a row for each limit and for each thing that waits."""
    config, state = run.settings, run.record
    rows = [
        *_escalations(run.root),
        *_budget(config.budget, state),
        *_rules(config),
        *_policies(config),
        *_parallel(config),
        *_delegations(state),
        *_decisions(run.root),
    ]
    columns = ("item", "value", "about")
    return model.Panel("limits", "Limits", "table", columns, tuple(rows[: 3 * _MOST]), "No limits.")


def _budget(budget: Budget, state: RunState) -> Iterator[model.Row]:
    spent, most = state.spent, budget.of_run
    if most or (spent and spent != "0"):
        of = f"{spent or '0'} of {most} USD" if most else f"{spent} USD"
        over = budget.on_exceed.replace("_", " ")
        yield model.Row(("spent", of, f"when used up: {over}" if over else ""))
    if budget.of_turn:
        yield model.Row(("of one turn", f"{budget.of_turn} USD", ""))
    for turn, held in list(state.budget_reservations.items())[:_MOST]:
        about = f"{held.role} {_line(turn)}".strip()
        yield model.Row(("reserved", f"{held.reserved or '?'} USD", about))


def _rules(config: Config) -> Iterator[model.Row]:
    if (most := config.max_turn_retries) is not None:
        yield model.Row(("attempts of a turn", _line(str(most)), "then the run is blocked"))
    if config.mandatory_objections:
        yield model.Row(("objections", "mandatory", "every role raises at least one"))
    for phase, route in list(config.routing.items())[:_MOST]:
        if (minutes := route.timeout_minutes) is not None:
            about = _line(f"{phase} {route.timeout_action}".strip())
            yield model.Row(("time of a turn", _line(f"{minutes} min"), about))
    for name, value in list(config.timeouts.items())[:_MOST]:
        yield model.Row(("time limit", _value(value), _line(name)))


def _policies(config: Config) -> Iterator[model.Row]:
    for policy in config.policies[:_MOST]:
        yield model.Row(("policy", policy.action, f"{policy.name}: {_value(policy.raw)}"))
    for kind, approval in (
        ("phase transitions", config.phase_approval),
        ("run completion", config.completion_approval),
    ):
        if usual := approval.default or approval.action:
            yield model.Row(("approval", plain(usual), kind))
        for rule in approval.rules[:_MOST]:
            moved = f"{rule.from_phase} → {rule.to_phase}"
            yield model.Row(("approval", plain(rule.action), moved))


def _parallel(config: Config) -> Iterator[model.Row]:
    for phase, route in list(config.routing.items())[:_MOST]:
        if (most := route.max_concurrent_turns) > 1:
            yield model.Row(
                ("turns at once", _line(str(most)), f"{_line(phase)}; acp gives out one")
            )


def _delegations(state: RunState) -> Iterator[model.Row]:
    for each in state.delegations[:_MOST]:
        about = f"{each.id} {each.parent_role or '?'} to {each.to_role}: {each.charter}".strip()
        yield model.Row(("delegation", each.status or "queued", about))
    if review := state.pending_delegation_review:
        yield model.Row(("delegation", "waits for its review", _value(review)))


def _escalations(root: Path) -> Iterator[model.Row]:
    """Escalations to a human that nobody has resolved."""
    waiting: dict[str, tuple[int, Escalation]] = {}
    for line in _log(root, schema.ESCALATIONS).lines:
        each = decode(Escalation, line.value)
        if line.value.get("kind") == "raised":
            waiting[each.id] = (line.number, each)
        else:
            waiting.pop(each.id, None)
    for at, each in list(waiting.values())[:_MOST]:
        yield model.Row(
            ("escalation", plain(each.type) or "open", f"{each.id}: {each.detail}"),
            tone=model.Tone.BLOCKED,
            target=model.Target(document=schema.ESCALATIONS, line=at),
        )


def _decisions(root: Path) -> Iterator[model.Row]:
    for line in _log(root, schema.REPO_DECISIONS).lines[-_MOST:]:
        decision = decode(RepoDecision, line.value)
        about = f"{decision.id}: {decision.statement}"
        yield model.Row(
            ("for all runs", decision.status or "holds", about),
            tone=model.Tone.DECIDE,
            target=model.Target(document=schema.REPO_DECISIONS, line=line.number),
        )


def _log(root: Path, name: str) -> schema.Log:
    path = schema.inside(root, name)
    return schema.read_log(path) if path else schema.Log(())


def _line(text: str) -> str:
    return clean_line(text, 200)


def _value(value: object) -> str:
    try:
        return _line(json.dumps(value, ensure_ascii=False))
    except (ValueError, RecursionError):
        return "?"
