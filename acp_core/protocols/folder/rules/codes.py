"""Why each rule exists and what to do when it speaks, in plain words, by code.

The texts stand in three tables by subject; codes never change their meaning. Loaded only
when somebody asks. Standard library only.
"""

from __future__ import annotations

from typing import NamedTuple

from acp_core.protocols.folder.rules.codes_advice import ADVICE
from acp_core.protocols.folder.rules.codes_deliverables import DELIVERABLES
from acp_core.protocols.folder.rules.codes_protocol import PROTOCOL


class About(NamedTuple):
    """Why a rule exists, and what to do."""

    explanation: str
    remedy: str


CODES: dict[str, About] = {
    code: About(*texts)
    for table in (PROTOCOL, DELIVERABLES, ADVICE)
    for code, texts in table.items()
}


def about(code: str) -> About:
    """The texts of a code.

    Raises:
        KeyError: there is no such code.
    """
    return CODES[code]
