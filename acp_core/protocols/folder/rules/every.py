"""Every rule of the validator, in the order in which they speak.

Source: folder protocol specification, "Validation". Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder.rules.advice import RULES as ADVICE
from acp_core.protocols.folder.rules.deliverables import RULES as DELIVERABLES
from acp_core.protocols.folder.rules.documents import RULES as DOCUMENTS
from acp_core.protocols.folder.rules.log import RULES as LOG
from acp_core.protocols.folder.rules.protocol_file import (
    AFTER_THE_LOG,
    dialect_known,
    protocol_readable,
)
from acp_core.protocols.folder.rules.protocol_file import RULES as PROTOCOL_FILE

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.facts import Facts
    from acp_core.protocols.folder.rules.finding import Finding

Rule = Callable[["Facts"], Iterator["Finding"]]

FIRST: tuple[Rule, ...] = (protocol_readable, dialect_known)
"""Where one of these says something, nothing further can be judged."""

RULES: tuple[Rule, ...] = (
    *PROTOCOL_FILE,
    *LOG,
    *AFTER_THE_LOG,
    *DOCUMENTS,
    *DELIVERABLES,
    *ADVICE,
)
