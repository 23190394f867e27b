"""``acp repair``: shows the damage, asks, mends, and validates again. Standard library only."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.folder.rules.checks import validate
from acp_core.protocols.folder.write import repair as mending
from acp_core.protocols.folder.write.repair import Plan, diff
from acp_core.protocols.kit.command_line import say, say_json
from acp_core.protocols.kit.values import Values


def repair(values: Values) -> int:
    """Mend a collaboration's files; the exit code."""
    folder = values.folder
    if values.json and not (values.yes or values.dry_run):
        raise Refused("--json needs --yes or --dry-run")
    plan = mending.diagnose(folder, utc_now())
    mends = bool(plan.fixes) and not values.dry_run
    copies: tuple[str, ...] = ()
    if mends and values.yes:  # before anything is said: whoever listens may go away
        copies = mending.repair(plan, force=values.unlocked).copies
    if not values.json:
        _show(plan)
    if mends and not values.yes:
        if not _confirmed():
            say("not repaired: nothing was changed")
            return 1
        copies = mending.repair(plan, force=values.unlocked).copies
    return _conclude(plan, folder, mends, copies, values.json)


def _show(plan: Plan) -> None:
    for number, fix in enumerate(plan.fixes, 1):
        say(f"{number}. {fix.sentence}")
        for line in diff(fix).split("\n"):
            say(f"   {line}")
    for reason in plan.hopeless:
        say(f"cannot be repaired: {reason}")
    if not plan.fixes and not plan.hopeless:
        say("nothing to repair")


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        raise Refused("no terminal to ask for confirmation: use --yes")
    sys.stdout.write("Repair it? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _conclude(plan: Plan, folder: str, mended: bool, copies: Sequence[str], as_json: bool) -> int:
    """Validate again and say how it stands; the exit code follows."""
    report = validate(folder)
    valid = report.exit_code() < 2
    pending = bool(plan.fixes) and not mended
    if as_json:
        say_json(
            {
                "schema": "acp.repair/1",
                "folder": folder,
                "mended": mended,
                "valid": valid,
                "fixes": [
                    {"file": fix.name, "text": fix.sentence, "diff": diff(fix)}
                    for fix in plan.fixes
                ],
                "hopeless": list(plan.hopeless),
                "copies": list(copies),
            }
        )
        return 0 if valid and not pending else 2
    for path in copies:
        say(f"kept a copy: {path}")
    if mended or not plan.fixes:
        word = "fixed" if valid else "not repaired"
        say(f"{word}: {report.lines()[0]}" if mended else report.lines()[0])
        for line in report.lines()[1:]:
            say(f"  {line}")
    return 0 if valid and not pending else 2
