"""Mending a collaboration's files: as a form, and as ``acp repair`` does it, which asks and validates again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime

from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.folder.acts.opened import read_collaboration
from acp_core.protocols.folder.acts.previewing import file_change, new_file
from acp_core.protocols.folder.acts.table import REPAIRING
from acp_core.protocols.folder.rules.checks import validate
from acp_core.protocols.folder.write import repair as mending
from acp_core.protocols.folder.write.repair import Plan, diff
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.command_line import say, say_json
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe

_VERBS = {mending.CREATE: "create", mending.FINISH: "append"}


def repairing(context: Context, now: datetime) -> Action:
    """Mend the files, where something in them can be mended.

    Raises:
        Refused: there is no collaboration, or its log is no readable file.
        OSError: a file cannot be read.
    """
    collaboration = read_collaboration(context, now)
    fixes = collaboration.outlook.planned(collaboration.facts, now)
    folder = collaboration.key
    shown: list[mending.Plan] = []  # what the last preview showed is what is done

    def preview(values: Values) -> Preview:
        plan = mending.diagnose(folder, utc_now())
        shown[:] = [plan]
        if not plan.fixes:
            raise Refused("there is nothing left to repair")
        return _preview_of(plan)

    def perform(values: Values) -> Outcome:
        mending.repair(shown[0] if shown else mending.diagnose(folder, utc_now()))
        return _validated(folder)

    return bound(
        REPAIRING,
        collaboration,
        preview,
        perform,
        sentence="; ".join(fix.sentence for fix in fixes),
        offered=bool(fixes),
    )


def _preview_of(plan: mending.Plan) -> Preview:
    return Preview(
        sentence=safe("; ".join(fix.sentence for fix in plan.fixes)),
        changes=tuple(
            Change(safe(fix.path), _VERBS.get(fix.verb, "replace"), _difference(fix))
            for fix in plan.fixes
        ),
        warnings=tuple(safe(f"cannot be repaired: {reason}") for reason in plan.hopeless),
    )


def _difference(fix: mending.Fix) -> str:
    """What a fix changes, safe to show."""
    if fix.verb == mending.CREATE:
        return new_file(fix.path, fix.after).diff
    return file_change(fix.path, fix.name, fix.before, fix.after).diff


def _validated(folder: str) -> Outcome:
    """How the files are after mending them."""
    from acp_core.protocols.folder.rules import checks

    verdict = checks.validate(folder).lines()
    word = "Fixed" if not verdict[0].endswith("failed") else "Repaired, but problems remain"
    return Outcome(OutcomeState.DONE, safe(f"{word}: {'; '.join(verdict[:2])}"))


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
