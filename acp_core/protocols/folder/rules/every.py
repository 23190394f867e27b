"""Every rule of the validator, in the order in which they speak.

Source: folder protocol specification, "Validation". Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder.rules import advice, deliverables, documents, log, protocol_file

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.facts import Facts
    from acp_core.protocols.folder.rules.finding import Finding

Rule = Callable[["Facts"], Iterator["Finding"]]

FIRST: tuple[Rule, ...] = (protocol_file.protocol_readable, protocol_file.dialect_known)
"""Where one of these says something, nothing further can be judged."""

RULES: tuple[Rule, ...] = (
    *protocol_file.RULES,
    *log.RULES,
    *protocol_file.AFTER_THE_LOG,
    *documents.RULES,
    *deliverables.RULES,
    *advice.RULES,
)
