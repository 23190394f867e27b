"""Hooks that vetoed what waits for a human, a gate or a result: it stays to be decided.

Source: governed protocol specification, "Coordinator hooks"; the lines are those of the existing
program's audit, which acp writes, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from acp_core import model
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import AT_WORK, ActiveTurn, Pending, Run
from acp_core.protocols.governed.rules.finding import Trouble, gate_need, staged_key
from acp_core.protocols.governed.schema import Object, act_names
from acp_core.protocols.governed.schema.fields import decode
from acp_core.protocols.governed.schema.hook_phases import ASKED_BEFORE, HOOK_AUDIT
from acp_core.protocols.governed.schema.records import HookAudit

_OF_RESULTS = tuple(phase for phase, act in ASKED_BEFORE.items() if act == act_names.ACCEPT)
_OF_GATES = tuple(phase for phase, act in ASKED_BEFORE.items() if act == act_names.APPROVE_GATE)
Latest = dict[str, tuple[int, HookAudit]]


def check_vetoes(run: Run) -> list[Trouble]:
    """The hooks whose latest word on the gate or the result that waits is a veto."""
    pending, staged = run.pending, [t for t in run.turns if t.staged and t.status in AT_WORK]
    if pending is None and not staged:
        return []
    lines = [
        (number, value)
        for number, value in schema.read_log(run.root / HOOK_AUDIT).lines
        if value.get("run_id") == run.state.value.get("run_id")
    ]
    found = []
    if pending is not None:
        said = _latest(lines, _OF_GATES, pending.since)
        found += [_of_gate(pending, *each) for each in said.values()]
    for turn in staged:
        own = [each for each in lines if each[1].get("turn_id") == turn.id]
        said = _latest(own, _OF_RESULTS, turn.since)
        found += [_of_result(turn, *each) for each in said.values()]
    return found


def _latest(
    lines: Iterable[tuple[int, Object]], phases: tuple[str, ...], since: datetime | None
) -> Latest:
    """The vetoes since a moment that their hooks have not taken back."""
    said: Latest = {}
    for number, value in lines:
        audit = decode(HookAudit, value)
        late = audit.at is None or since is None or audit.at >= since
        if value.get("hook_phase") in phases and late:
            said[audit.hook] = number, audit
    return {hook: each for hook, each in said.items() if each[1].is_veto}


def _of_gate(pending: Pending, number: int, audit: HookAudit) -> Trouble:
    return _veto(
        audit, number, f"the gate {pending.gate}", f"{pending.gate}:{pending.turn}", gate_need(pending).key,
        "Send the phase back to work with the hook's objection; approve only if the hook is wrong.",
        (act_names.REJECT_GATE, act_names.APPROVE_GATE),
    )  # fmt: skip


def _of_result(turn: ActiveTurn, number: int, audit: HookAudit) -> Trouble:
    return _veto(
        audit, number, f"the result of {turn.role}", f"{turn.id}:{turn.attempt}", staged_key(turn),
        "Reject the result with the hook's objection; accept it only if the hook is wrong.",
        (act_names.REJECT, act_names.ACCEPT),
    )  # fmt: skip


def _veto(
    audit: HookAudit,
    number: int,
    what: str,
    about: str,
    need: str,
    remedy: str,
    acts: tuple[str, str],
) -> Trouble:
    name = audit.hook or "without a name"
    why = f": {audit.message}" if audit.message else ""
    return Trouble(
        "HOOK_VETO", model.Severity.WARNING, f"The hook {name} vetoed {what}{why}",
        remedy, HOOK_AUDIT, number, "D12", audit.at, action=acts[0], others=acts[1:],
        evidence=(f"{HOOK_AUDIT}, line {number}: {audit.action or 'block'}",),
        about=f"{name}:{about}", explains=(need,),
    )  # fmt: skip
