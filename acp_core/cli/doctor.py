"""``acp doctor``: what acp runs on, whether it is well, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Sequence

from acp_core.cli import layout
from acp_core.cli.checks import (
    Check,
    State,
    extras,
    folders,
    programs,
    terminal_checks,
    versions,
    watching,
)
from acp_core.cli.layout import Cell, Column
from acp_core.cli.output import Terminal, dump, say, terminal
from acp_core.model.spoken import mark
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.doctor/1"
LOOKS = {
    State.OK: ("✓ ok", "good"),
    State.WARN: ("! warn", "warning"),
    State.MISSING: ("✗ missing", "error"),
    State.OPTIONAL: ("○ absent", "dim"),
}


def doctor(given: Values) -> int:
    """Print the checks, or the object."""
    checks = everything(given.paths or (".",))
    if given.json:
        told = [check._asdict() | {"state": check.state.value} for check in checks]
        say(dump({"schema": SCHEMA, "ok": not _missing(checks), "checks": told}))
    else:
        for line in render(checks, terminal()):
            say(line)
    return 1 if _missing(checks) else 0


def _missing(checks: Sequence[Check]) -> bool:
    return any(check.state is State.MISSING for check in checks)


def render(checks: Sequence[Check], shown_on: Terminal) -> list[str]:
    """The lines: a table for each group, what to do under what is not well."""
    columns = (Column("", 2), Column("", 6), Column("", 8), Column("", 12))
    rows = [
        [Cell(""), Cell(*LOOKS[check.state]), Cell(check.name), Cell(check.value)]
        for check in checks
    ]
    lines: list[str] = []
    group = ""
    for check, line in zip(checks, layout.table(columns, rows, shown_on)[1:], strict=True):
        if check.group != group:
            group = check.group
            lines += (
                ["", shown_on.paint(group, "head")] if lines else [shown_on.paint(group, "head")]
            )
        lines.append(line)
        if check.advice:
            lines += layout.wrap(
                check.advice, shown_on, indent="      ", first=f"    {mark('→', 'fix:')} "
            )
    return lines


def everything(paths: Sequence[str]) -> list[Check]:
    """Every check, group after group; ``paths`` are folders that matter, and addresses of stores."""
    from acp_core.cli.checks import agents, sharing, stores
    from acp_core.cli.protocol_checks import protocols
    from acp_core.stores.address import is_address

    folders_given = [path for path in paths if not is_address(path)]
    return [
        *versions(),
        *folders(),
        *terminal_checks(),
        *watching(folders_given),
        *sharing(folders_given),
        *stores(paths),
        *programs(),
        *agents(folders_given),
        *protocols(),
        *extras(),
    ]
