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
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import Object, items, number, obj, objects, text

_MOST = 200  # rows of one kind
_RICHEST = 1e12  # a sum beyond it is none


def limits(run: Run) -> model.Panel:
    """The panel, a row for each limit and for each thing that waits."""
    config, state = run.config.value, run.state.value
    rows = [
        *_escalations(run.root),
        *_budget(config, state),
        *_rules(config),
        *_policies(config),
        *_parallel(config),
        *_delegations(state),
        *_decisions(run.root),
    ]
    columns = ("What", "Is", "About")
    return model.Panel(
        "limits", "Limits", "table", columns, tuple(rows[: 3 * _MOST]), "No limit is set."
    )


def _budget(config: Object, state: Object) -> Iterator[model.Row]:
    budget, status = obj(config, "budget"), obj(state, "budget_status")
    spent, most = _usd(status.get("spent_usd")), _usd(budget.get("per_run_max_usd"))
    if most or (spent and spent != "0"):
        of = f"{spent or '0'} of {most} USD" if most else f"{spent} USD"
        over = text(budget, "on_exceed", 60).replace("_", " ")
        yield model.Row(("spent", of, f"when used up: {over}" if over else ""))
    if each := _usd(budget.get("per_turn_max_usd")):
        yield model.Row(("of one turn", f"{each} USD", ""))
    for turn, raw in list(objects(state.get("budget_reservations")).items())[:_MOST]:
        reserved = _usd(raw.get("reserved_usd"))
        about = f"{text(raw, 'role_id', 80)} {_line(turn)}".strip()
        yield model.Row(("reserved", f"{reserved or '?'} USD", about))


def _rules(config: Object) -> Iterator[model.Row]:
    rules = obj(config, "rules")
    if (most := number(rules, "max_turn_retries")) is not None:
        yield model.Row(("attempts of a turn", _line(str(most)), "then the run is blocked"))
    if rules.get("mandatory_objections") is True:
        yield model.Row(("objections", "mandatory", "every role raises at least one"))
    for phase, raw in list(objects(config.get("routing")).items())[:_MOST]:
        if (minutes := number(raw, "timeout_minutes")) is not None:
            then = text(raw, "timeout_action", 60)
            yield model.Row(
                ("time of a turn", _line(f"{minutes} min"), _line(f"{phase} {then}".strip()))
            )
    for name, value in list(obj(config, "timeouts").items())[:_MOST]:
        yield model.Row(("time limit", _value(value), _line(name)))


def _policies(config: Object) -> Iterator[model.Row]:
    for raw in items(config, "policies")[:_MOST]:
        named = text(raw, "id", 80) or text(raw, "rule", 80)
        yield model.Row(("policy", text(raw, "action", 60), f"{named}: {_value(raw)}"))
    approval = obj(config, "approval_policy")
    for kind in ("phase_transitions", "run_completion"):
        of = obj(approval, kind)
        told = text(of, "default", 60) or text(of, "action", 60)
        if told:
            yield model.Row(("approval", told.replace("_", " "), kind.replace("_", " ")))
        for rule in items(of, "rules")[:_MOST]:
            moved = f"{text(rule, 'from_phase', 80)} → {text(rule, 'to_phase', 80)}"
            yield model.Row(("approval", text(rule, "action", 60).replace("_", " "), moved))


def _parallel(config: Object) -> Iterator[model.Row]:
    for phase, raw in list(objects(config.get("routing")).items())[:_MOST]:
        if (most := number(raw, "max_concurrent_turns") or 1) > 1:
            yield model.Row(
                ("turns at once", _line(str(most)), f"{_line(phase)}; acp gives out one")
            )


def _delegations(state: Object) -> Iterator[model.Row]:
    for raw in items(state, "delegation_queue")[:_MOST]:
        id = text(raw, "delegation_id", 40) or text(raw, "id", 40)
        who = f"{text(raw, 'parent_role', 80) or '?'} to {text(raw, 'to_role', 80)}"
        about = f"{id} {who}: {text(raw, 'charter', 300)}".strip()
        yield model.Row(("delegation", text(raw, "status", 40) or "queued", about))
    if review := obj(state, "pending_delegation_review"):
        yield model.Row(("delegation", "waits for its review", _value(review)))


def _escalations(root: Path) -> Iterator[model.Row]:
    """Escalations to a human that nobody has resolved."""
    found: dict[str, tuple[int, Object]] = {}
    for line in _log(root, schema.ESCALATIONS).lines:
        id = text(line.value, "escalation_id", 80)
        if line.value.get("kind") == "raised":
            found[id] = (line.number, line.value)
        else:
            found.pop(id, None)
    for id, (at, raw) in list(found.items())[:_MOST]:
        kind = text(raw, "type", 60).replace("_", " ") or "open"
        about = f"{id}: {text(raw, 'detail', 300) or text(raw, 'action', 300)}"
        yield model.Row(
            ("escalation", kind, about),
            tone=model.Tone.BLOCKED,
            target=model.Target(document=schema.ESCALATIONS, line=at),
        )


def _decisions(root: Path) -> Iterator[model.Row]:
    for line in _log(root, schema.REPO_DECISIONS).lines[-_MOST:]:
        raw = line.value
        stands = text(raw, "status", 40) or "holds"
        yield model.Row(
            ("for all runs", stands, f"{text(raw, 'id', 40)}: {text(raw, 'statement')}"),
            tone=model.Tone.DECIDE,
            target=model.Target(document=schema.REPO_DECISIONS, line=line.number),
        )


def _log(root: Path, name: str) -> schema.Log:
    path = schema.inside(root, name)
    return schema.read_log(path) if path else schema.Log(())


def _usd(value: object) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > _RICHEST:
        return ""
    return f"{value:g}"


def _line(told: str) -> str:
    return text({"": told}, "", 200)


def _value(value: object) -> str:
    try:
        return _line(json.dumps(value, ensure_ascii=False))
    except (ValueError, RecursionError):
        return "?"
