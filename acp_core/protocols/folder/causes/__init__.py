"""How a folder collaboration gets stuck: causes that stand in its own files.

Each is a small function of what was read and of a `Case`; what lies in participants' loops is
found elsewhere, before, and is in ``case.found``. Source: folder protocol specification,
"Phases", "Review Format", "Readiness Gate", "Final Conclusion" and "Validation".
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.model import Cause
from acp_core.protocols.folder.causes import gates, half_done, human, log
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.kit.diagnosis import Case


def causes(facts: Facts, case: Case) -> Iterator[Cause]:
    """Every cause, group by group."""
    if facts.unsettled:
        return  # a file is being written just now
    yield from log.causes(facts, case)
    yield from half_done.causes(facts, case)
    yield from gates.causes(facts, case)
    yield from human.causes(facts, case)
