"""The conditions that must be met to move on, as a check list."""

from __future__ import annotations

from collections.abc import Sequence

from acp_core.model import Gate, Target
from acp_tui.widgets.row_list import Item

SIGNS = {True: ("[x]", "success"), False: ("[ ]", ""), None: ("[?]", "muted")}
EMPTY = "No completion gates: only the phases decide when this collaboration ends."


def tally(gates: Sequence[Gate]) -> str:
    """How many are met: ``2/3``; nothing where there are none."""
    return f"{sum(gate.met is True for gate in gates)}/{len(gates)}" if gates else ""


def items(gates: Sequence[Gate]) -> list[Item]:
    """A line per gate, with its evidence while it is selected."""
    rows = []
    for number, gate in enumerate(gates):
        sign, style = SIGNS[gate.met]
        words = {True: "met", False: "not met", None: "unknown"}[gate.met]
        details = [(f"{words}{': ' if gate.evidence else ''}{gate.evidence}", "muted")]
        if gate.document:
            line = f":{gate.line}" if gate.line else ""
            details.append((f"→ {gate.document}{line}", "primary"))
        rows.append(
            Item(
                ((f"{sign} ", style), (gate.label, "")),
                tuple(details),
                Target(document=gate.document, line=gate.line),
                indent=4,
                key=f"{number} {gate.label}",
            )
        )
    return rows
