"""What a store must be able to do, whatever it is: a git remote, or a PostgreSQL database.

A store holds collaborations. Of each it keeps the log, byte for byte, the documents, who acts for
which participant (leases), which hosts take part, and what they ask of each other. All changes of
one collaboration follow one another: each is made under a `Tip`, and refused where the
collaboration has moved on meanwhile. Whatever was read under that tip, a lease for instance, is
therefore still so when the change is in.

All calls block. An engine is used by one thread at a time. Standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from acp_core.model.errors import Refused

UNREACHABLE = 6  # exit codes: the store did not answer

ELSEWHERE = 7  # another host acts for the participant

REFUSED = 8  # the store refused it

REWRITTEN = 9  # the history in the store is another one than the one that was seen here

MAX_FILE = 16 << 20  # bytes of one document

MAX_FILES = 2_000

MAX_BYTES = 256 << 20  # of all documents together

MAX_DEPTH = 16  # folders within folders


class SharingError(Refused):
    """A store was not changed, or not read; the message says why."""


class TipMoved(SharingError):
    """Somebody else's change came first: read, and make the change anew. Nothing was changed."""


class StoreRefused(SharingError):
    """The store, or what guards it, refused the change or the address; its words are in the message."""

    def __init__(self, message: str, code: int = REFUSED) -> None:
        super().__init__(message, code)


class StoreUnreachable(SharingError):
    """The store did not answer, and the change is certainly not in it."""

    def __init__(self, message: str, code: int = UNREACHABLE) -> None:
        super().__init__(message, code)


class InDoubt(SharingError):
    """The connection was lost while the change was made: it is in the store, or it is not.

    Reading tells: an event by its sender and key, documents by their content.
    """

    def __init__(self, message: str, code: int = UNREACHABLE) -> None:
        super().__init__(message, code)


class HistoryRewritten(SharingError):
    """The store does not continue what was seen here: it was put back, or rewritten."""

    def __init__(self, message: str, code: int = REWRITTEN) -> None:
        super().__init__(message, code)


def put_back(seq: int, seen: int) -> HistoryRewritten:
    """What is said where a store holds less than was seen here.

    Args:
        seq: of its last event.
        seen: of the last event that was seen.
    """
    return HistoryRewritten(
        f"the store holds seq {seq}, less than the {seen} that this folder has seen: it was put back; ask the others "
        "who has the most; there, `acp unshare` and `acp share --id NAME` share it again"
    )


def rewritten(seen: int) -> HistoryRewritten:
    """What is said where a store's log is another one than that which was seen here, up to an event."""
    return HistoryRewritten(
        f"the shared history was rewritten: what came up to seq {seen} here is not what the store holds"
    )


class NotInStore(SharingError):
    """The store holds no collaboration of that id."""


class Tip(NamedTuple):
    """Where a collaboration stands in its store.

    ``id`` is the engine's own (a commit, a revision) and changes with every change. ``seq`` is
    that of the last event, ``size`` and ``sha256`` are those of the whole log: they tell whether
    a store continues what was seen of it. All of it survives JSON.
    """

    id: str
    seq: int
    size: int
    sha256: str


class Lease(NamedTuple):
    """Which host acts for a participant.

    ``epoch`` grows by one whenever the participant moves to another host or account. ``since`` is
    a time as in the log, by the clock of the host that took it; ``by`` is the command that did.
    """

    participant: str
    host: str
    boot: str
    account: str
    epoch: int
    since: str
    by: str = ""


class Change(NamedTuple):
    """What becomes of a collaboration in one step: all of it, or nothing.

    Attributes:
        log: the whole log after the change.
        line: the event that the change adds, the last line of ``log`` with its newline; None where
            only documents or leases change.
        seq: that of the last event of ``log``.
        protocol: protocol.json after the change.
        documents: what else changes, by path below the folder ("/" between parts): the new bytes,
            or None for one that is deleted.
        leases: those that are taken, moved or (None) given back, by participant.
        sender, key: who sends the event, and its key: what tells after `InDoubt` (may be "").
        words: a short sentence about the change, for people who look into the store.
        account, host: who makes the change, and where.
        phase, waiting: the state after the change, for lists of many collaborations; without a
            phase, what they tell stays as it is.
        standing: what such lists tell beside these, as JSON holds it.
    """

    log: bytes
    line: bytes | None
    seq: int
    protocol: bytes
    documents: Mapping[str, bytes | None] = {}
    leases: Mapping[str, Lease | None] = {}
    sender: str = ""
    key: str = ""
    words: str = ""
    account: str = ""
    host: str = ""
    phase: str = ""
    waiting: tuple[str, ...] = ()
    standing: Mapping[str, Any] = {}


class Commit(NamedTuple):
    """What has changed in the store between two tips, taken together.

    Attributes:
        tip: where the collaboration stands now.
        added: the bytes that the log has grown by since the earlier tip; the whole log where there
            was none.
        protocol: protocol.json, now.
        documents: those that changed since the earlier tip: their bytes now, or None for those
            that were deleted. Names are a stranger's: whoever writes them judges them.
        leases: all that are held, now, by participant.
        whole: ``documents`` are all that there are, not only those that changed: the engine cannot
            tell what changed (and where there was no earlier tip, everything did).
        remarks: sentences about what is not taken over as the store has it.
    """

    tip: Tip
    added: bytes
    protocol: bytes
    documents: Mapping[str, bytes | None]
    leases: Mapping[str, Lease]
    whole: bool = False
    remarks: tuple[str, ...] = ()


class HostState(NamedTuple):
    """What a host says of itself.

    ``participants`` has, for each that is played there, what there is to know of its loop (phase,
    pid, last turn, since when); whatever JSON can hold, and a stranger's. ``at`` is by the host's
    own clock. ``continued`` names the collaboration in which this one is continued.
    """

    host: str
    account: str
    boot: str
    version: str
    participants: Mapping[str, Mapping[str, Any]] = {}
    at: str = ""
    continued: str = ""


class Heard(NamedTuple):
    """A host's state with how long ago, in seconds by the store's own clock, it was heard of.

    None where the store has no clock: then only a change of ``state`` tells that it lives.
    """

    state: HostState
    age: float | None


class Asked(NamedTuple):
    """Something that one host is asked for by somebody on another one.

    Attributes:
        id: its name, made up by whoever asks (24 hex digits), which grows with time.
        host: who is asked.
        verb: start, stop, nudge or take; decide, allow or reject.
        participant: of whom; of ``decide``, and where a run is mirrored of ``stop``, the act.
        text: at most 2,000 characters; a stranger's.
        by: who says that they ask.
        proven: who asks, where the store can tell (a signature, the account of a session); else "".
        seconds: how long it is of use, from when the asked host first sees it.
        signature: of who asks, over the rest, where the store cannot tell who that is.
        state: "" while it is open; done, refused, expired or unknown.
        sentence: what came of it.
    """

    id: str
    host: str
    verb: str
    participant: str
    text: str = ""
    by: str = ""
    proven: str = ""
    seconds: float = 600.0
    state: str = ""
    sentence: str = ""
    signature: str = ""


class Engine(Protocol):
    """One collaboration in one store. Made by `acp_core.stores.hosts.open_engine`.

    Every call may raise `StoreUnreachable` and `StoreRefused`.
    """

    def read(self, since: Tip | None) -> Commit:
        """What has changed since a tip; everything where that is None.

        Raises:
            NotInStore: there is no such collaboration.
            HistoryRewritten: what the store holds does not begin with what ``since`` stands for.
        """
        ...

    def earlier(self, tip: Tip, path: str) -> bytes | None:
        """A document as it was at a tip that was read before; None where that cannot be told any more."""
        ...

    def publish(self, expected: Tip | None, change: Change) -> Tip:
        """Make a change; the tip after it. None as ``expected`` makes a new collaboration.

        When this returns, the store has the change as safely as it keeps anything.

        Raises:
            TipMoved: the collaboration does not stand at ``expected`` (or exists already).
            InDoubt: it is not known whether the change was made.
        """
        ...

    def wait(self, tip: Tip, seconds: float) -> bool:
        """Wait until the collaboration stands elsewhere than at ``tip``; False where it does not yet."""
        ...

    def hosts(self) -> Sequence[Heard]:
        """The hosts that have said something of themselves."""
        ...

    def tell(self, state: HostState) -> None:
        """Say something of this host, in place of what it said before; also a sign of life."""
        ...

    def ask(self, request: Asked) -> None:
        """Ask a host for something; the same id twice is one request."""
        ...

    def requests(self, host: str = "") -> Sequence[Asked]:
        """What a host was asked for, the oldest first, with what came of it; the last hundred.

        What all hosts were asked for, where none is named.
        """
        ...

    def answer(self, request: Asked, state: str, sentence: str) -> None:
        """Say what came of a request to this host."""
        ...

    def close(self) -> None:
        """End what runs for this engine; it is not used any more."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_LONGEST = 500


def ref_word(text: str) -> str:
    """A name as part of a ref or a file name: as it is where it is plain, else in hex after ``x.``."""
    plain = re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", text)
    return text if plain else f"x.{text.encode('utf-8', 'surrogatepass').hex()}"


def lease_file(participant: str) -> str:
    """The name of the file that says who acts for a participant."""
    return f"{ref_word(participant)}.json"


def encode_lease(lease: Lease) -> bytes:
    """A lease as a file."""
    return json.dumps(lease._asdict(), ensure_ascii=True, sort_keys=True).encode() + b"\n"


def decode_lease(data: bytes) -> Lease | None:
    """A lease that a stranger may have written; None where it is none."""
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    texts = [value.get(name) for name in ("participant", "host", "boot", "account", "since", "by")]
    epoch = value.get("epoch")
    if not all(isinstance(each, str) and len(each) <= _LONGEST for each in texts):
        return None
    if not isinstance(epoch, int) or isinstance(epoch, bool) or not 0 <= epoch < 1 << 53:
        return None
    participant, host, boot, account, since, by = (str(each) for each in texts)
    return Lease(participant, host, boot, account, epoch, since, by)


Standing = Callable[[bytes, bytes], Mapping[str, Any]]
"""From protocol.json and the log to what a list tells (see `acp_core.stores.engine.Change.standing`)."""


class Acting(NamedTuple):
    """On which host a participant acts, and as which account."""

    participant: str
    host: str
    account: str


class Listed(NamedTuple):
    """One collaboration of a store, as the store tells of it.

    Attributes:
        id: its id there.
        revision: changes whenever the collaboration does; in a database, a number that grows.
        seq: of its last event.
        phase: as its protocol calls it; what the host that changed it last said.
        waiting: the participants that are waited for; likewise.
        updated: when it was changed, by the server's clock; None where the store has none.
        last: the last line of its log, with its newline; empty where it is long.
        runners: the hosts that were heard of within a day.
        standing: what else is said of it; a stranger's. Empty where nothing is known.
        acting: who acts where.
    """

    id: str
    revision: int | str
    seq: int = 0
    phase: str = ""
    waiting: tuple[str, ...] = ()
    updated: datetime | None = None
    last: bytes = b""
    runners: tuple[Heard, ...] = ()
    standing: Mapping[str, Any] = {}
    acting: tuple[Acting, ...] = ()


class Listing(Protocol):
    """The collaborations of one store, kept up to date. For one thread at a time."""

    listed: dict[str, Listed]
    """By id."""
    note: str
    """What was left out, and why; "" where nothing was."""

    def refresh(self) -> frozenset[str]:
        """Read what changed, at first everything; the ids that appeared, changed, or are gone.

        Raises:
            StoreUnreachable, StoreRefused: it cannot be read.
        """
        ...

    def wait(self, seconds: float) -> bool:
        """Wait until there may be something new; False where it is only time to look.

        Raises:
            StoreUnreachable: the connection was lost, and none can be made.
        """
        ...

    def close(self) -> None:
        """Let go of the connection, unless others use it."""
        ...


class FaultPoints:
    """Who is called at each step of publishing, and of writing what was read, where a kill makes a difference.

    Nobody is, unless a test says so. The steps are: before the key is kept (``before pending``), before
    and after the store is asked (``publish``), then before each kind of local file (``document``,
    ``log``, ``protocol``, ``base``); an engine may name more, beginning with its own name.
    """

    def __init__(self) -> None:
        self.listener: Callable[[str], object] | None = None

    def __call__(self, name: str) -> None:
        """A step is reached."""
        if self.listener is not None:
            self.listener(name)


fault_point = FaultPoints()
"""``reach("before publish")`` says that this comes next."""


Tips = Callable[[], Mapping[str, str]]
"""Tells where collaborations stand here: the id of the `Tip`, by their own ids."""


class StoreNews(Protocol):
    """News of one store. For one thread at a time, which need not be that of its engines."""

    def wait(self, tips: Tips, seconds: float) -> frozenset[str]:
        """Wait until there may be news, at most so long; the collaborations of which there may be.

        Args:
            tips: tells where each that is asked for stands here.
            seconds: how long.

        Raises:
            SharingError: the store does not answer.
        """
        ...

    def beat(self, host: str, ids: frozenset[str]) -> None:
        """Say that a host lives, where the store keeps a time for that.

        Args:
            host: its name.
            ids: the collaborations in which its loops take part.
        """
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...
