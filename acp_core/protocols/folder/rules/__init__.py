"""The validator of the folder protocol: small rules over what was read from one folder.

Each rule is a function from `acp_core.protocols.folder.read.facts.Facts` to findings, in the
module of its subject; `codes` says of every code why it exists and what to do about it.
Source: folder protocol specification, "Validation". Standard library only.
"""

from __future__ import annotations

import os

from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder.schema.finding import (
    ADVICE,
    ERROR,
    INVALID,
    VALID,
    WARNING,
    WITH_WARNINGS,
    Finding,
    Report,
)

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.facts import Facts

__all__ = [
    "ADVICE",
    "ERROR",
    "INVALID",
    "VALID",
    "WARNING",
    "WITH_WARNINGS",
    "Finding",
    "Report",
    "judge",
    "validate",
]


def judge(facts: Facts) -> Report:
    """What all rules say of what was read."""
    from acp_core.protocols.folder.rules.checks import (
        PRECONDITIONS,
        RULES,  # who reads lines needs none
    )

    for rule in PRECONDITIONS:
        findings = list(rule(facts))
        if findings:
            return Report(findings)
    return Report(finding for rule in RULES for finding in rule(facts))


def validate(folder: str | os.PathLike[str]) -> Report:
    """Read a collaboration's folder and judge it. Never raises for what the folder holds."""
    from acp_core.protocols.folder.read.facts import gather

    return judge(gather(folder))
