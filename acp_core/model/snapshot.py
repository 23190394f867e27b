"""The words of the product, as types.

Everything that a screen, a command or a report shows is one of these. All of
them are immutable, and every string in them is already safe to show (see
`acp_core.model.text`): what came from files, agents or the network was made
safe where the Snapshot was built.

A Snapshot shares the unchanged parts of the one before it (the same objects),
so that ``is`` tells a reader that nothing changed there.

Standard library only: protocols that must start fast import this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from acp_core.model.matter import Matter


class SourceState(str, Enum):
    """How well the thing behind a Snapshot could be read."""

    LIVE = "live"
    STALE = "stale"  # the last good reading is shown; the newest could not be read
    UNREACHABLE = "unreachable"


class Status(str, Enum):
    """Where a collaboration stands as a whole. ``ACTIVE`` is "live" in the fleet's count."""

    ACTIVE = "active"
    COMPLETED = "completed"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


class Verdict(str, Enum):
    """What the validator says of the whole."""

    VALID = "valid"
    WARNINGS = "warnings"
    INVALID = "invalid"
    UNKNOWN = "unknown"


class Severity(str, Enum):
    """How bad a finding is. Advice never changes a verdict unless asked for."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


class Tone(str, Enum):
    """What an event means for the run; the timeline draws a sign and a colour for each."""

    START = "start"
    SUBMIT = "submit"
    REVIEW = "review"
    REVISE = "revise"
    DECIDE = "decide"
    ACCEPT = "accept"
    PASS = "pass"
    DONE = "done"
    BLOCKED = "blocked"
    OTHER = "other"


class PhaseState(str, Enum):
    """Where one phase stands on the rail."""

    AHEAD = "ahead"
    CURRENT = "current"
    DONE = "done"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Source:
    """How the collaboration was read: its state, and why when it is not ``LIVE``."""

    state: SourceState = SourceState.LIVE
    note: str = ""


@dataclass(frozen=True, slots=True)
class Visit:
    """One stay in a phase. ``left`` is None while it lasts; times are None where not recorded."""

    entered: datetime | None
    left: datetime | None
    round: int = 1


@dataclass(frozen=True, slots=True)
class Phase:
    """A stage, with every stay in it (a second review round is a second visit).

    ``spent`` is how many seconds the visits took that ended, where the protocol counted them
    (a long run has 100,000).
    """

    id: str
    label: str
    state: PhaseState
    visits: Sequence[Visit] = ()
    spent: float | None = None


@dataclass(frozen=True, slots=True)
class Participant:
    """Somebody who acts: ``kind`` is ``agent``, ``human`` or ``unknown``."""

    id: str
    kind: str = "unknown"
    role: str = ""
    last_event: str | None = None
    last_seen: datetime | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A participant is waited for to do ``what``, since ``since`` (None: not recorded)."""

    participant: str
    what: str
    since: datetime | None = None
    since_event: str | None = None


class Runner(NamedTuple):
    """A process at work now: it plays ``participant``, or conducts the whole where that is "".

    ``account`` is whose it is; "" for one's own. ``host`` is the machine; "" for this one.
    """

    participant: str
    account: str = ""
    host: str = ""


class Cost(NamedTuple):
    """What agents cost: ``usd`` in US dollars (None: nobody says), ``unknown`` whose is not in it."""

    usd: float | None
    unknown: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """``$1.25``, ``$1.25 + ?`` where a part is not known, ``?`` where nothing is."""
        if self.usd is None:
            return "?"
        return f"${self.usd:.2f}{' + ?' if self.unknown else ''}"

    def __add__(self, other: object) -> Cost:
        """Both together."""
        if not isinstance(other, Cost):
            return NotImplemented
        known = [each.usd for each in (self, other) if each.usd is not None]
        return Cost(sum(known) if known else None, (*self.unknown, *other.unknown))


@dataclass(frozen=True, slots=True)
class NextAction:
    """What a participant should do now; ``waited`` says whether it is that one's turn."""

    participant: str
    text: str
    waited: bool


class Event(NamedTuple):
    """One entry of the timeline.

    ``order`` is its place in its source (for a log with numbers: the number that
    it bears). ``at`` is None where no time is recorded; ``at_source`` says where the
    time comes from (``recorded``, ``file time``, ``inferred``). ``id`` is unique
    inside the collaboration even where ``order`` is not.
    """

    id: str
    order: int
    source: str
    kind: str
    tone: Tone
    actor: str
    at: datetime | None
    at_source: str
    summary: str
    reply_to: str | None = None
    document: str | None = None
    line: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A text that people read, as it stands on disk; its text is loaded when looked at.

    ``version`` changes whenever the content may have changed. ``group`` is
    ``document``, ``deliverable`` or ``state``. ``late`` says, where it holds, that
    the text changed after it was settled ("changed after completed, 3 May 12:01").
    ``path`` is the real path on this machine, unaltered, or None where there is none.
    Where the text must no longer change, ``settled`` says since when ("while it was being
    reviewed"), and ``settled_after`` after how many events.
    """

    id: str
    title: str
    kind: str
    group: str = "document"
    path: str | None = None
    size: int | None = None
    changed: datetime | None = None
    version: str = ""
    state: str = "present"
    note: str = ""
    late: str = ""
    settled: str = ""
    settled_after: int | None = None


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document: level from 1, line from 1."""

    level: int
    title: str
    line: int


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A loaded document. ``text`` is safe to show, line for line as in the file."""

    id: str
    version: str
    text: str
    headings: tuple[Heading, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition that must be met to move on; ``met`` is None where it cannot be known."""

    label: str
    met: bool | None
    document: str | None = None
    line: int | None = None
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a validator says. Lines count from 1; ``event`` is an Event's id.

    ``given`` are inputs of the action that mend this very finding, by name.
    """

    code: str
    severity: Severity
    message: str
    document: str | None = None
    line: int | None = None
    event: str | None = None
    explanation: str = ""
    remedy: str = ""
    action: str | None = None
    given: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """Where a row or a finding points: at most one of these is set, besides ``line`` and ``given``.

    ``given`` are inputs of the action, by name. ``change`` is the path of one of a card's changes.
    """

    document: str | None = None
    line: int | None = None
    event: str | None = None
    finding: int | None = None
    action: str | None = None
    given: tuple[tuple[str, str], ...] = ()
    change: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a Panel. ``depth`` indents it in a tree; ``checked`` is for check lists.

    ``ages`` names cells, by their place, that say how long ago something was, with when that
    was: a screen draws them anew as time goes on. Their text is the age as of the Snapshot.
    """

    cells: tuple[str, ...]
    depth: int = 0
    checked: bool | None = None
    tone: Tone = Tone.OTHER
    target: Target = Target()
    ages: tuple[tuple[int, datetime], ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """What a protocol shows beyond the common words.

    ``shape`` is one of ``table``, ``tree``, ``checklist``, ``board``, ``thread``,
    ``comparison``; ``columns`` names the cells of each row. ``disagreement`` marks the panel of which
    points were raised by whom, and how each was answered: reports contain it. The last ``spare``
    columns are left out first where there is not room for all; a row's details contain them.
    """

    id: str
    title: str
    shape: str
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    empty: str = ""
    disagreement: bool = False
    spare: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """Another collaboration that this one names: ``relation`` is ``continues`` or ``continued_by``."""

    relation: str
    location: str
    name: str
    found: bool = True
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything read from a collaboration at the moment ``as_of``.

    ``key`` identifies the collaboration (an absolute path or a URL, unaltered);
    ``location`` is the same, safe to show. ``limits`` says what whoever looks may
    not do, and who allows it. ``doubt`` says why the derived state is
    not certain, and is empty where it is. ``matters`` are what stands, in order: ``causes`` are
    those without questions and notices, ``needs`` those that the person who runs it must end.
    ``recheck_at`` asks for another reading at
    that time although nothing changed (a verdict that depends on the clock). ``obstacles``
    are what writes are refused for; each is a cause, too. ``run_id`` tells this very run from others
    that stood, or stand, at the same place; "" where the protocol names none. ``runners`` are the
    loops and conductors at work, of every account, as far as this machine can see; ``cost`` what
    this account's loops cost so far, None where it has none. ``headline`` is
    one sentence that says everything; ``summary`` is the part of it that a screen shows which tells
    beside it who is waited for and what needs somebody ("" where that is the whole headline).
    ``outcome`` names the panels and documents that say what came out and what was decided, the most
    important first: a completed collaboration opens on the first one, and its report begins with them.
    ``hosts`` are the machines on which participants act, those of who is waited for first; empty
    where it is not shared.
    """

    key: str
    protocol: str
    dialect: str
    name: str
    objective: str
    location: str
    as_of: datetime
    headline: str
    status: Status
    phase: str
    source: Source = Source()
    verdict: Verdict = Verdict.UNKNOWN
    progress: float | None = None
    round: int | None = None
    doubt: str = ""
    limits: str = ""
    phases: tuple[Phase, ...] = ()
    participants: tuple[Participant, ...] = ()
    turns: tuple[Turn, ...] = ()
    runners: tuple[Runner, ...] = ()
    cost: Cost | None = None
    next_actions: tuple[NextAction, ...] = ()
    events: Sequence[Event] = ()
    documents: tuple[Document, ...] = ()
    gates: tuple[Gate, ...] = ()
    findings: tuple[Finding, ...] = ()
    matters: tuple[Matter, ...] = ()
    needs: tuple[Matter, ...] = ()
    causes: tuple[Matter, ...] = ()
    obstacles: tuple[Matter, ...] = ()
    questions: tuple[Matter, ...] = ()
    notices: tuple[Matter, ...] = ()
    panels: tuple[Panel, ...] = ()
    outcome: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    lineage: tuple[Link, ...] = ()
    since: datetime | None = None
    started: datetime | None = None
    changed: datetime | None = None
    recheck_at: datetime | None = None
    run_id: str = ""
    summary: str = ""
    hosts: tuple[str, ...] = ()

    def count(self, severity: Severity) -> int:
        """How many findings have this severity."""
        return sum(1 for finding in self.findings if finding.severity is severity)

    def panel(self, id: str) -> Panel | None:
        """The panel with this id, or None."""
        return next((p for p in self.panels if p.id == id), None)

    def document(self, id: str | None) -> Document | None:
        """The document with this id, or None."""
        return next((d for d in self.documents if d.id == id), None)
