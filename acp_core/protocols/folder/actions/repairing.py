"""Mending a collaboration's files, as a form does it."""

from __future__ import annotations

from datetime import datetime

from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.folder.actions.common import read_collaboration
from acp_core.protocols.folder.actions.display import file_change, new_file
from acp_core.protocols.folder.actions.table_files import REPAIRING
from acp_core.protocols.folder.write import repair as mending
from acp_core.protocols.kit.binding import Context, bound
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
