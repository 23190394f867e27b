"""Telling a participant what to do now, and waiting until it is that one's turn.

Source: folder protocol specification, "Polling And Watchers". The state is derived from the
log, which never lags; protocol.json only says who takes part. Standard library only.
"""

from __future__ import annotations

import contextlib
import sys
import time

from acp_core.files import journal
from acp_core.files.locked import QUIET
from acp_core.files.reading import Stamp, stamp
from acp_core.model.errors import Refused
from acp_core.model.light import TYPE_CHECKING, Any
from acp_core.protocols.folder.read.log import LONG, History, is_full
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import Entry, is_shared, path_of
from acp_core.protocols.folder.write.gates import CONCLUSION, READINESS, document_text
from acp_core.protocols.folder.write.opened import read_protocol
from acp_core.protocols.kit.command_line import is_script, say, say_json, warn

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.checkpoint import Checkpoint
    from acp_core.protocols.folder.schema.documents import Readiness

ENDED = ("completed", "blocked")
V1_TIMEOUT = 1800.0  # seconds; collaborations with deliverables wait for ever
_GRACE = 2.0  # seconds for which a missing or shorter log is taken for one being written


class Observation:
    """What can be seen of a collaboration without taking its lock; cheap to read again.

    Attributes:
        protocol: protocol.json.
        machine: the state after the log.
        last: the last event, or None.
        torn: whether the log ends within a line, and stays so.
    """

    def __init__(self, folder: str, participant: str, *, again: bool = True) -> None:
        """Look for the first time; ``again`` says whether `refresh` will be called later.

        Raises:
            Refused: the collaboration cannot be read, or the participant is not in it.
        """
        self.folder = folder
        self.protocol = read_protocol(folder)
        self.dialect = records.dialect_of(self.protocol)
        self.participants = records.participant_ids(self.protocol)
        if participant not in self.participants:
            raise Refused(f"participant {participant!r} is not listed in protocol.json")
        self._reader = journal.Reader(
            path_of(folder, records.LOG_FILE),
            max_line=records.MAX_LINE,
            max_lines=records.MAX_LINES,
            max_size=records.MAX_LOG,
            grace=_GRACE,
            verify=again,
        )
        self.torn = False
        self._readiness_as_of: Stamp | None = None
        self._place, self._gone = "", False
        self._begin()
        self._recall()
        self.refresh()

    def _begin(self) -> None:
        self._checkpoint: Checkpoint | None = None
        self._lines = History(self.participants, self.dialect)
        self.machine = self._lines.machine
        self.last = self._lines.last

    def _recall(self) -> None:
        """Begin where a long log stood when it was read before."""
        found = stamp(self._reader.path)
        if found is None or found.size < LONG:
            return
        from acp_core.protocols.folder.read import checkpoint

        resumed = checkpoint.resume(self._reader, self.participants, self.dialect)
        if resumed is not None:
            self._checkpoint, history = resumed
            self._lines = history or self._lines

    def keep(self) -> None:
        """Keep where a long log stands, for the next run: once, after the first look."""
        if self._checkpoint is not None:
            self._checkpoint.keep(self._lines)
            self._checkpoint = None

    @property
    def broken(self) -> str:
        """Why the log can never become valid again, "" where it can."""
        broken = self._lines.broken
        return broken.message if broken else ""

    @property
    def takes_no_more(self) -> bool:
        """Whether the log is so large that no event can follow."""
        reader = self._reader
        return reader.full or is_full(reader.lines, reader.offset + len(reader.tail))

    @property
    def bare_returns(self) -> bool:
        """Whether carriage returns alone end the log's lines."""
        return b"\r" in self._reader.tail

    def refresh(self) -> None:
        """Read what is new in the log.

        Raises:
            Refused: it cannot be read.
        """
        now = time.time()
        poll = self._reader.poll(now)
        if poll.change == journal.UNREADABLE:
            raise Refused(f"{path_of(self.folder, records.LOG_FILE)}: {poll.reason}")
        if poll.change == journal.RESTARTED:
            self._begin()
        for block in poll.blocks:
            self._lines.read(block)
            if self._checkpoint is not None:
                self._checkpoint.take(block)
        self.machine = self._lines.machine
        self.last = self._lines.last
        tail = self._reader.tail
        self.torn = bool(tail) and now >= self._reader.since + QUIET
        if self.torn:
            self._take_tail(tail)

    def _take_tail(self, tail: bytes) -> None:
        """A whole event that only lacks its newline, and stays so, counts."""
        item = records.parse_line(tail, self._reader.lines + 1)
        if isinstance(item, Entry):
            self.machine = self._lines.machine.copy()
            self.machine.feed(item)
            self.last = item

    def ready(self, participant: str) -> str:
        """Why the participant need not wait any longer; "" while it must."""
        if self.machine.phase in ENDED:
            return f"phase is {self.machine.phase}"
        if participant in self.machine.waiting:
            return f"{participant} is listed in waitingFor"
        if participant == self.machine.owner and self.machine.accepting:
            place = self._open()
            return f"readiness.md is open: {place}" if place else ""
        return ""

    def _open(self) -> str:
        """What stops acceptance; "" where nothing does, or readiness.md is just being replaced."""
        found = stamp(path_of(self.folder, READINESS))
        if found is None or found != self._readiness_as_of:
            from acp_core.protocols.folder.prompts import acceptance

            readiness = read_readiness(self.folder)
            gone = readiness is None and not self._gone
            self._place = "" if gone else acceptance.what_is_open(readiness)
            self._gone = readiness is None
            self._readiness_as_of = None if self._gone else found
        return self._place

    def waiting_line(self) -> str:
        """Who is waited for, after which event."""
        names = ", ".join(self.machine.waiting) or "nobody"
        return f"waiting for {names} after seq {self.last.name if self.last else 0}"


def tell_next(folder: str, participant: str, as_json: bool) -> int:
    """Print what a participant should do now; returns 1 where the phase is not known.

    Raises:
        Refused: the collaboration cannot be read.
    """
    _bring_news(folder)
    seen = Observation(folder, participant, again=False)
    if as_json:
        say_json({"schema": "acp.next/1", **_facts(seen, participant)})
    else:
        _print_next(seen, participant)
    seen.keep()
    return 0 if seen.machine.phase else 1


def wait_for_turn(
    folder: str, participant: str, *, interval: float, timeout: float | None, as_json: bool
) -> int:
    """Wait until the participant is waited for or the collaboration has ended.

    Args:
        folder: the collaboration.
        participant: who waits.
        interval: seconds between two looks.
        timeout: seconds; 0 waits for ever, None takes the dialect's own limit.
        as_json: print one JSON object at the end, and nothing before.

    Returns:
        0 when ready, 1 after the timeout.

    Raises:
        Refused: the collaboration cannot be read.
    """
    if not 0 < interval < float("inf"):
        raise Refused("--interval must be a number of seconds above 0")
    if timeout is not None and not 0 <= timeout < float("inf"):
        raise Refused("--timeout must be a number of seconds, or 0 to wait without a limit")
    told = _bring_news(folder)
    seen = Observation(folder, participant)
    seen.keep()
    if timeout is None:
        timeout = V1_TIMEOUT if seen.dialect == records.V1 else 0.0
    deadline = time.monotonic() + timeout if timeout else float("inf")
    said = ""
    while not (reason := seen.ready(participant)):
        line = seen.waiting_line()
        if line != said and not as_json:
            say(f"waiting: {line}")
            sys.stdout.flush()
        said = line
        left = deadline - time.monotonic()
        if left <= 0:
            return _timed_out(seen, participant, line, as_json)
        time.sleep(min(interval, left))
        told = _bring_news(folder, told)
        seen.refresh()
    if as_json:
        outcome = {"schema": "acp.wait/1", "outcome": "ready", "reason": reason}
        say_json(outcome | _facts(seen, participant))
    else:
        say(f"ready: {reason}")
        _print_next(seen, participant)
    return 0


def _bring_news(folder: str, told: str = "") -> str:
    """Bring what is new in the store of a shared folder; where that cannot be reached, go on.

    Args:
        folder: the collaboration.
        told: what was said of this before: nothing is said twice.

    Raises:
        Refused: what the store holds cannot be taken.
    """
    if not is_shared(folder):
        return ""
    from acp_core.protocols.registry import load

    try:
        bring = load("acp_core.protocols.folder.conduct.syncing:bring_news")
    except ModuleNotFoundError:  # the skill's own copy: the process of `acp sync` does it
        return ""
    said: str = bring(folder)
    if said and said != told:
        warn(said)
    return said


def _timed_out(seen: Observation, participant: str, line: str, as_json: bool) -> int:
    if as_json:
        outcome = {"schema": "acp.wait/1", "outcome": "timeout", "reason": line}
        say_json(outcome | _facts(seen, participant))
    else:
        say(f"timeout: {line}", sys.stderr)
    return 1


def _print_next(seen: Observation, participant: str) -> None:
    machine, last = seen.machine, seen.last
    say(f"phase: {machine.phase or 'unknown'}")
    say(f"proposal owner: {machine.owner or 'none'}")
    say(f"waiting for: {', '.join(machine.waiting) or 'none'}")
    event = f"seq {last.name} {last.event} from {last.sender}" if last else "none"
    say(f"last event: {event}")
    say(f"next action: {_action(seen, participant)}")
    if machine.illegal:
        warn(f"the state is uncertain: seq {machine.illegal[0]} is illegal")


def _facts(seen: Observation, participant: str) -> dict[str, Any]:
    machine, last = seen.machine, seen.last
    return {
        "participant": participant,
        "phase": machine.phase,
        "proposalOwner": machine.owner,
        "waitingFor": list(machine.waiting),
        "yourTurn": bool(seen.ready(participant)) and machine.phase not in ENDED,
        "lastEvent": last and {"seq": last.seq, "event": last.event, "from": last.sender},
        "uncertain": bool(machine.illegal),
        "nextAction": _action(seen, participant),
    }


def read_readiness(folder: str) -> Readiness | None:
    """readiness.md; None where it cannot be read."""
    from acp_core.protocols.folder.schema import documents

    try:
        return documents.scan_readiness(document_text(folder, READINESS))
    except Refused:
        return None


def _action(seen: Observation, participant: str) -> str:
    """The sentence that says what to do now; documents are read only where it depends on them."""
    from acp_core.protocols.folder.prompts import next_actions

    machine, folder = seen.machine, seen.folder
    refused = next_actions.nothing_goes(
        machine, seen.dialect, folder, returns=seen.bare_returns, full=seen.takes_no_more, torn=seen.torn
    )  # fmt: skip
    if refused:
        return refused
    readiness = conclusion = None
    unchanged = 0.0
    if machine.phase in ("decision_review", "readiness_check"):
        readiness = read_readiness(folder)
    if machine.phase == "decision_review":
        from acp_core.protocols.folder.prompts import acceptance

        found = stamp(path_of(folder, READINESS))
        modified = found.modified / 1e9 if found else None
        unchanged = acceptance.seconds_unchanged(seen.last, modified, time.time())
    if machine.phase == "readiness_check" and machine.passed:
        from acp_core.protocols.folder.schema import documents

        with contextlib.suppress(Refused):
            text = document_text(folder, CONCLUSION)
            conclusion = documents.scan_conclusion(text, _reference(seen))
    commands = next_actions.COMMANDS
    if is_script():
        commands = {"validate": "validate_collaboration.py", "init": "init_collaboration.py"}
    return next_actions.advise(
        machine, participant, readiness, conclusion, seen.protocol, seen.broken, commands, unchanged
    )


def _reference(seen: Observation) -> str:
    """How the primary deliverable is referred to; "" in the dialect without."""
    if seen.dialect != records.V2:
        return ""
    from acp_core.protocols.folder.schema import deliverables

    return deliverables.declare(seen.protocol).reference
