"""Hooks that vetoed what waits for a human: their audit says so, and the gate stays open to be approved.

Source: governed protocol specification, "Coordinator hooks"; the lines are those of the existing
program's audit, which acp writes, too.
"""

from __future__ import annotations

from acp_core import model
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.actions import names
from acp_core.protocols.governed.conduct.hooks import AUDIT
from acp_core.protocols.governed.read.run import Pending, Run
from acp_core.protocols.governed.rules.finding import Trouble
from acp_core.protocols.governed.schema import Line, Object, text
from acp_core.protocols.governed.view.common import gate_need

_PHASE = "before_gate"


def check_vetoes(run: Run) -> list[Trouble]:
    """The hooks whose latest word on the gate that waits is a veto."""
    pending = run.pending
    if pending is None:
        return []
    latest: dict[str, Line] = {}
    for line in schema.read_log(run.root / AUDIT).lines:
        if _concerns(line.value, run, pending):
            latest[text(line.value, "hook_name", 80)] = line
    return [_veto(pending, line) for line in latest.values() if _is_veto(line.value)]


def _concerns(value: Object, run: Run, pending: Pending) -> bool:
    """Whether a line of the audit is about the gate that waits now."""
    at = schema.moment(value, "timestamp")
    of_gate = value.get("hook_phase") == _PHASE
    of_gate = of_gate and value.get("run_id") == run.state.value.get("run_id")
    return of_gate and (at is None or pending.since is None or at >= pending.since)


def _is_veto(value: Object) -> bool:
    """Whether the hook blocked: a block that was downgraded to a warning is none."""
    action = text(value, "orchestrator_action", 60)
    return action.startswith(("blocked", "aborted")) or (
        value.get("verdict") == "block" and not action
    )


def _veto(pending: Pending, line: Line) -> Trouble:
    name = text(line.value, "hook_name", 80) or "without a name"
    why = text(line.value, "message", 300) or text(line.value, "stderr_excerpt", 300)
    message = f"The hook {name} vetoed the gate {pending.gate}" + (f": {why}" if why else "")
    action = text(line.value, "orchestrator_action", 60) or "block"
    return Trouble(
        "HOOK_VETO", model.Severity.WARNING, message,
        "Send the phase back to work with what the hook objects to; approve only if it is wrong.",
        AUDIT, line.number, "D12", schema.moment(line.value, "timestamp"),
        action=names.REJECT_GATE, others=(names.APPROVE_GATE,),
        evidence=(f"{AUDIT}, line {line.number}: {action}",),
        about=f"{name}:{pending.gate}:{pending.turn}", explains=(gate_need(pending).key,),
    )  # fmt: skip
