"""What the validator would say if an event had been appended: asked before it is.

Source: folder protocol specification, "Readiness Gate" (the validator must pass before
readiness_passed and completed). Standard library only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.rules import judge
from acp_core.protocols.folder.schema import Entry
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write.edits import Edit
from acp_core.protocols.folder.write.gates import MUST_BE_VALID
from acp_core.protocols.folder.write.opened import Opened, with_state

_NO_HEADING = "ACP301"  # a review's heading may be written after its event


def check(opened: Opened, entry: Entry, after: Opened, edits: Sequence[Edit]) -> None:
    """Refuse an event after which the collaboration would be invalid.

    ``readiness_passed`` and ``completed`` need a valid collaboration; other events must only
    not break what was in order. What the event itself cures (protocol.json that lags) is no
    obstacle.

    Raises:
        Refused: it would be invalid; the first error is named.
    """
    whole = entry.event in MUST_BE_VALID
    facts = Facts(opened.folder, grace=0.0, verify=False)
    facts.look(time.time())
    before = {finding.message for finding in judge(facts).errors}
    facts.suppose(with_state(after), entry, {edit.path: edit.after for edit in edits})
    errors = [
        finding.message
        for finding in judge(facts).errors
        if (whole or finding.message not in before) and (whole or finding.code != _NO_HEADING)
    ]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        why = "validate must pass first" if whole else "that would make the collaboration invalid"
        raise Refused(f"{errors[0]}{more}: {why}")
