"""What a rule says: it becomes a finding and, where it keeps the run from going on, a cause."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from acp_core import model
from acp_core.model.format import sentence_case
from acp_core.model.snapshot import Obstacle
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import ActiveTurn, Pending
from acp_core.protocols.governed.rules.codes import CODES
from acp_core.protocols.governed.schema import Loaded, Log, act_names
from acp_core.protocols.governed.schema.act_names import APPROVE_GATE
from acp_core.protocols.governed.schema.wording import YOU, gate_called


class Trouble(NamedTuple):
    """One thing that is wrong. ``group`` is the letter and number of its cause, "" for none.

    ``action`` names what mends it, ``others`` what else may help, ``evidence`` what was observed;
    ``root`` says that it is the reason for the rest; ``about`` tells it from others of its code
    where its message does not; ``explains`` are the keys of needs that are this very thing;
    ``given`` are inputs of ``action``.
    """

    code: str
    severity: model.Severity
    message: str
    remedy: str = ""
    document: str | None = None
    line: int | None = None
    group: str = ""
    since: datetime | None = None
    participant: str | None = None
    wanted: bool = True
    action: str = ""
    others: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    certain: bool = True
    root: bool = False
    about: str = ""
    explains: tuple[str, ...] = ()
    given: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """Stays the same as long as it is the same trouble, and differs from every other."""
        named = f"{self.group}:{self.code}:{self.about or self.message}"
        return named[:200]

    def finding(self) -> model.Finding:
        """As a finding."""
        explanation, remedy = CODES[self.code]
        return model.Finding(
            self.code, self.severity, self.message, self.document, self.line,
            explanation=explanation, remedy=self.remedy or remedy,
        )  # fmt: skip

    def cause(self) -> model.Cause:
        """As a cause; only where ``group`` is set."""
        return model.Cause(
            self.group,
            self.message.rstrip("."),
            self.remedy.rstrip("."),
            self.evidence,
            self.certain,
            remedy=self.action or None,
            given=self.given,
            others=self.others,
            root=self.root,
            participant=self.participant,
            wanted=self.wanted,
            since=self.since,
            key=self.key,
            explains=self.explains,
            document=self.document,
            line=self.line,
        )


_ELSE = {act_names.BRING_BACK: (act_names.TAKE_FILES,)}

"""What else may mend what an act mends."""


def of_obstacles(obstacles: Iterable[Obstacle]) -> list[Trouble]:
    """What stands in the way of writes, as errors in the files; what is around them is none."""
    return [
        Trouble(
            each.key.split(":")[1],
            model.Severity.ERROR,
            f"{sentence_case(each.sentence)}.",
            each.cure,
            each.document,
            each.line,
            each.code,
            participant=each.participant,
            action=each.remedy,
            others=_ELSE.get(each.remedy, ()),
            given=each.given,
            evidence=each.evidence,
            root=True,
            about=each.key.split(":", 2)[2],
        )
        for each in obstacles
        if not each.key.startswith("obstacle:")
    ]


def file_troubles(document: str, loaded: Loaded, needed: bool = True) -> list[Trouble]:
    """What is wrong with a file that should hold one JSON object."""
    if not loaded.reason or (loaded.missing and not needed):
        return []
    return [
        Trouble(
            "FILE_UNREADABLE",
            model.Severity.ERROR,
            f"{document} cannot be read: {schema.why(loaded.reason)}",
            "Correct the file, or restore it from version control.",
            document,
            group="A1",
            about=document,
        )
    ]


def log_troubles(document: str, log: Log) -> list[Trouble]:
    """What is wrong with the lines of a log."""
    return [
        Trouble(
            "LOG_LINE",
            model.Severity.ERROR,
            f"{document}: {'line ' + str(line) + ' ' if line else 'the file '}{reason}",
            "Correct the line; acp never rewrites an append-only log.",
            document,
            line or None,
        )
        for line, reason in log.problems
    ]


def gate_need(pending: Pending) -> model.Need:
    """The need that a gate is."""
    text = f"The gate {gate_called(pending.gate)} needs your approval"
    key = f"gate:{pending.gate}:{pending.turn}:{pending.since}"
    return model.Need(key, "GATE", text, YOU, pending.since, APPROVE_GATE)


def staged_key(turn: ActiveTurn) -> str:
    """The key of the need that a staged result is."""
    return f"staged:{turn.id}:{turn.attempt}"
