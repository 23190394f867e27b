"""Hooks that vetoed what waits for a human: their audit says so, and the gate stays open to be approved.

Source: governed protocol specification, "Coordinator hooks"; the lines are those of the existing
program's audit, which acp writes, too.
"""

from __future__ import annotations

from datetime import datetime

from acp_core import model
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.actions import names
from acp_core.protocols.governed.conduct.hooks import AUDIT
from acp_core.protocols.governed.read.run import Pending, Run
from acp_core.protocols.governed.rules.finding import Trouble
from acp_core.protocols.governed.schema import Object
from acp_core.protocols.governed.schema.fields import decode
from acp_core.protocols.governed.schema.records import HookAudit
from acp_core.protocols.governed.view.common import gate_need

_PHASE = "before_gate"


def check_vetoes(run: Run) -> list[Trouble]:
    """The hooks whose latest word on the gate that waits is a veto."""
    pending = run.pending
    if pending is None:
        return []
    latest: dict[str, tuple[int, HookAudit]] = {}
    for number, value in schema.read_log(run.root / AUDIT).lines:
        audit = decode(HookAudit, value)
        if _concerns(value, audit.at, run, pending):
            latest[audit.hook] = number, audit
    return [_veto(pending, *each) for each in latest.values() if each[1].is_veto]


def _concerns(value: Object, at: datetime | None, run: Run, pending: Pending) -> bool:
    """Whether a line of the audit is about the gate that waits now."""
    of_gate = value.get("hook_phase") == _PHASE
    of_gate = of_gate and value.get("run_id") == run.state.value.get("run_id")
    return of_gate and (at is None or pending.since is None or at >= pending.since)


def _veto(pending: Pending, number: int, audit: HookAudit) -> Trouble:
    name = audit.hook or "without a name"
    why = f": {audit.message}" if audit.message else ""
    return Trouble(
        "HOOK_VETO", model.Severity.WARNING, f"The hook {name} vetoed the gate {pending.gate}{why}",
        "Send the phase back to work with the hook's objection; approve only if the hook is wrong.",
        AUDIT, number, "D12", audit.at,
        action=names.REJECT_GATE, others=(names.APPROVE_GATE,),
        evidence=(f"{AUDIT}, line {number}: {audit.action or 'block'}",),
        about=f"{name}:{pending.gate}:{pending.turn}", explains=(gate_need(pending).key,),
    )  # fmt: skip
