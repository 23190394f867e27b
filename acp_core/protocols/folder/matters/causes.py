"""How a folder collaboration gets stuck: causes that stand in its own files.

Each is a small function of what was read and of a `DiagnosisContext`; what lies in participants' loops is
found elsewhere, before, and is in ``case.found``. Source: folder protocol specification,
"Phases", "Review Format", "Readiness Gate", "Final Conclusion" and "Validation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from acp_core.model import Cause
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.matters import gates as matters_gates
from acp_core.protocols.folder.matters import log as matters_log
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema.act_names import REPAIR
from acp_core.protocols.kit.diagnosis import DiagnosisContext

if TYPE_CHECKING:
    from acp_core.protocols.folder.write.repair import Outlook

_LONG = 1_000

_FOLLOWS = "add participants first, then repair the other fields"

_DOUBTFUL = ("A8", "C2")  # what a repair mends only where the other files say enough


def causes(facts: Facts, outlook: Callable[[], Outlook], case: DiagnosisContext) -> Iterator[Cause]:
    """Every cause, group by group.

    Args:
        facts: What the files hold.
        outlook: Gives what a repair would do, kept from one reading to the next; asked only where
            a repair may be a remedy, since most folders need none.
        case: What else is known.
    """
    if facts.unsettled:
        return  # a file is being written just now
    for group in (matters_log.log_causes, matters_log.half_done_causes):
        for cause in group(facts, case):
            doubtful = cause.remedy == REPAIR and (
                cause.code in _DOUBTFUL or not facts.participants
            )
            yield _as_far_as_it_goes(facts, outlook, case, cause) if doubtful else cause
    if facts.lines.broken is None:  # else nothing that a gate asks for leads on
        yield from matters_gates.acceptance_causes(facts, case)
        yield from matters_gates.gate_causes(facts, case)
    yield from matters_log.conflict_causes(facts, case)
    yield from matters_gates.human_causes(facts, case)


def _as_far_as_it_goes(
    facts: Facts, outlook: Callable[[], Outlook], case: DiagnosisContext, cause: Cause
) -> Cause:
    """The cause with a repair as its remedy only where that mends the file.

    That nobody takes part is a cause of its own, which says what mends it.
    """
    from acp_core.protocols.folder.write import repair  # late: most folders need no repair

    now = case.snapshot.as_of
    try:
        if any(fix.name == cause.document for fix in outlook().planned(facts, now)):
            return cause
        plan = repair.diagnose(facts.folder, now)
    except (Refused, OSError) as error:
        return replace(cause, advice=clean_line(str(error), _LONG), remedy=None)
    if not facts.participants and cause.document == schema.PROTOCOL_FILE:
        return replace(cause, advice=_FOLLOWS, remedy=None)
    advice = "; ".join(plan.hopeless) or f"restore {cause.document} from a copy"
    return replace(cause, advice=clean_line(advice, _LONG), remedy=None)
