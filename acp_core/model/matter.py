"""What is not as it should be, or waits for somebody: the one type from which every surface tells it.

A collaboration's matters in their order are its standing: what stands, and whose move it is. A
matter is plain data. Every text in it is safe to show (see `acp_core.model.text`). Standard library
only: what agents run at every turn imports this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum

from acp_core.model.light import NamedTuple


class Kind(str, Enum):
    """What kind of matter it is."""

    DAMAGE = "damage"
    DECISION = "decision"
    QUESTION = "question"
    PERMISSION = "permission"
    TURN = "turn"
    STALLED = "stalled"
    FAILING = "failing"
    PAUSE = "pause"
    CONFLICT = "conflict"
    REMARK = "remark"


class Mover(str, Enum):
    """Who can end a matter. ``OWNER``: who runs the collaboration here, a person."""

    OWNER = "owner"
    PARTICIPANT = "participant"
    HOST = "host"
    ACCOUNT = "account"
    TIME = "time"
    NOBODY = "nobody"


class Move(NamedTuple):
    """Whose move it is: who, and the name where there are several of them."""

    who: Mover
    name: str = ""


OWNER = Move(Mover.OWNER)
TIME = Move(Mover.TIME)
NOBODY = Move(Mover.NOBODY)


class Until(NamedTuple):
    """When a matter ends by itself.

    Attributes:
        at: the moment (aware, UTC).
        precision: how exact that is, in seconds: what was printed in minutes is exact to 60.
        source: where it is known from: ``field``, ``text`` or ``guess``.
    """

    at: datetime
    precision: float = 0.0
    source: str = "field"


class About(NamedTuple):
    """What a matter is about, as far as it is about one thing."""

    participant: str | None = None
    document: str | None = None
    line: int | None = None
    event: str | None = None


class Verdict(NamedTuple):
    """One way to end a matter, or to help: an act with values of its fields, by name.

    ``ends`` says that the matter is over where the act was done.
    """

    act: str
    given: tuple[tuple[str, str], ...] = ()
    ends: bool = True


class Matter(NamedTuple):
    """Something that is not as it should be, or that waits for somebody.

    Attributes:
        code: which problem it is, for good: a letter for its group (A: damage, B: a participant's
            program, C: a half-done turn, D: a gate, E: a person or something outside) and a number.
        sentence: what stands, to whoever watches: one plain line without its full stop and ages.
        instruction: what to do about it, to the one whose move it is.
        move: whose move it is.
        kind: what kind of matter it is.
        evidence: what was observed, a line each.
        certain: whether it was observed as such, or inferred from what was.
        verdicts: how it can be ended, the first one first; then what else may help.
        about: what it is about.
        since: since when it has been so, as far as known.
        until: when it ends by itself.
        key: the same as long as it is the same matter; acknowledgements hold for it.
        refuses: the names of the acts that stay allowed, where it refuses all other writes until
            it is over; None where it refuses none.
        because: the key of the matter that it follows from; "" for a root.
        explains: keys of needs that are this very thing, until needs are matters.
        root: it is the reason for what else is said of its participant (of anybody, where it names
            none), and goes before it; until that is derived.
    """

    code: str
    sentence: str
    instruction: str = ""
    move: Move = OWNER
    kind: Kind = Kind.STALLED
    evidence: tuple[str, ...] = ()
    certain: bool = True
    verdicts: tuple[Verdict, ...] = ()
    about: About = About()
    since: datetime | None = None
    until: Until | None = None
    key: str = ""
    refuses: frozenset[str] | None = None
    because: str = ""
    explains: tuple[str, ...] = ()
    root: bool = False

    @property
    def wanted(self) -> bool:
        """Whether who runs the collaboration is wanted; else it is somebody else's, or passes."""
        return self.move.who is Mover.OWNER

    @property
    def remedy(self) -> str:
        """The act that ends it; "" where acp has none."""
        return self.verdicts[0].act if self.verdicts and self.verdicts[0].ends else ""

    @property
    def given(self) -> tuple[tuple[str, str], ...]:
        """The values of the first verdict."""
        return self.verdicts[0].given if self.verdicts else ()

    @property
    def others(self) -> tuple[str, ...]:
        """The names of acts that may help."""
        return tuple(each.act for each in self.verdicts if not each.ends)


def verdicts(
    act: str | None, given: Iterable[tuple[str, str]] = (), others: Iterable[str] = ()
) -> tuple[Verdict, ...]:
    """The act that ends a matter, where there is one, and the names of others that may help.

    All of them get the values, as far as they have such fields.
    """
    values = tuple(given)
    first = (Verdict(act, values),) if act else ()
    return (*first, *(Verdict(name, values, ends=False) for name in others))


def damage(
    code: str,
    sentence: str,
    cure: str,
    allowed: frozenset[str] = frozenset(),
    remedy: str = "",
    given: Iterable[tuple[str, str]] = (),
    *,
    evidence: tuple[str, ...] = (),
    participant: str | None = None,
    document: str | None = None,
    line: int | None = None,
    key: str = "",
    move: Move = OWNER,
) -> Matter:
    """Damage that was seen, or somebody else's claim: until it is over, writes are refused.

    Args:
        code, sentence, evidence, key, move: as those of a `Matter`.
        cure: its instruction: a command that is complete as it stands, or what has to be chosen.
        allowed: the acts that are not refused: those that mend it, or that end it all.
        remedy, given: the act that mends it, with values; "" where none of acp's does.
        participant, document, line: what it is about.
    """
    return Matter(
        code,
        sentence,
        cure,
        move,
        Kind.DAMAGE,
        evidence,
        verdicts=verdicts(remedy, given),
        about=About(participant, document, line),
        key=key or f"obstacle:{code}:{participant or ''}",
        refuses=allowed,
        root=move == OWNER,
    )


def decision(
    key: str,
    code: str,
    sentence: str,
    participant: str | None = None,
    since: datetime | None = None,
    act: str | None = None,
    given: Iterable[tuple[str, str]] = (),
) -> Matter:
    """What a person has to decide or to do.

    Args:
        key, code, sentence, since: as those of a `Matter`.
        participant: whom it is about.
        act, given: the act that ends it, with values; None where acp has none.
    """
    return Matter(
        code,
        sentence,
        kind=Kind.DECISION,
        verdicts=verdicts(act, given),
        about=About(participant),
        since=since,
        key=key,
    )


def question(
    key: str,
    code: str,
    sentence: str,
    participant: str | None = None,
    since: datetime | None = None,
    document: str | None = None,
    line: int | None = None,
    event: str | None = None,
    act: str | None = None,
    given: Iterable[tuple[str, str]] = (),
    move: Move = OWNER,
) -> Matter:
    """An open question, or an item that blocks: for the inbox.

    Args:
        key, sentence, since: as those of a `Matter`.
        code: ``question`` (somebody asks), ``unresolved`` or ``blocking``.
        participant: who asks, where known.
        document, line, event: where it stands.
        act, given: the act that answers it, where there is one now, with values.
        move: who is to answer it; a person may do it instead.
    """
    return Matter(
        code,
        sentence,
        move=move,
        kind=Kind.QUESTION,
        verdicts=verdicts(act, given),
        about=About(participant, document, line, event),
        since=since,
        key=key,
    )


def remark(
    code: str, sentence: str, document: str | None = None, since: datetime | None = None
) -> Matter:
    """What is worth a line of its own and nobody's move, such as a late change of a document."""
    key = f"{code}:{document or ''}"
    about = About(document=document)
    return Matter(code, sentence, "", NOBODY, Kind.REMARK, about=about, since=since, key=key)
