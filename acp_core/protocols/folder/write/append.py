"""Appending an event: checked, derived and written under the log's lock.

Source: folder protocol specification, "Events". The log is written first and brought to the
disk; protocol.json follows from it and is replaced whole. Standard library only, and little
of it: agents run this at every turn.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from acp_core.files import atomic
from acp_core.files.locked import Landed, LockedLog, Moved
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.model.light import TYPE_CHECKING, NamedTuple
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import Entry, is_shared, path_of
from acp_core.protocols.folder.write.opened import Opened, lock, open_locked, take, with_state

if TYPE_CHECKING:
    from acp_core.protocols.folder.write.edits import Edit

CONFLICT = 3  # exit code: nothing appended, the log had moved on
RACED = 4  # exit code: appended, but a writer that takes no lock slipped in
_TRIES = 5
_LARGEST_STATE = 8 << 20  # bytes of the state of a loop
_OUT_OF_TURN = frozenset({"ACP401", "ACP402", "ACP403", "ACP404"})


class Request(NamedTuple):
    """An event that somebody wants to append.

    ``key`` makes it safe to ask again; ``expect_seq`` is the last seq that the asker has seen;
    ``review`` is the text of a review that is written into review.md together with the event,
    ``edits`` are other documents that change with it; ``force`` insists on a file system where locks protect nothing;
    ``take`` moves the participant of a shared collaboration to this host.
    """

    folder: str
    participant: str
    event: str
    summary: str
    doc: str | None = None
    reply_to: int | None = None
    role: str | None = None
    sha256: str | None = None
    key: str | None = None
    expect_seq: int | None = None
    review: str | None = None
    edits: tuple[Edit, ...] = ()
    force: bool = False
    take: bool = False


class Prepared(NamedTuple):
    """What appending would write.

    ``existing`` is set instead where the event is in the log already. ``edits`` are the
    documents that change with it.
    """

    entry: Entry
    line: bytes
    protocol: bytes
    after: Opened
    existing: bool = False
    edits: tuple[Edit, ...] = ()
    warnings: tuple[str, ...] = ()


class Appended(NamedTuple):
    """An event that is in the log now; ``existing`` says that it was there before."""

    entry: Entry
    phase: str
    waiting: tuple[str, ...]
    existing: bool = False
    raced: bool = False
    warnings: tuple[str, ...] = ()


def _now() -> datetime:
    return datetime.now(UTC)


def _nothing() -> None:
    pass


def append(
    request: Request,
    *,
    now: Callable[[], datetime] = _now,
    before_write: Callable[[], object] = _nothing,
) -> Appended:
    """Append an event, or report the seq that it has in the log already.

    Args:
        request: the event.
        now: the clock.
        before_write: called once, before the first byte is written: from then on an
            interruption should wait (see `acp_core.files.shield`).

    Raises:
        Refused: the event is not in the log.
        OSError: likewise.
    """
    if is_shared(request.folder):
        return _append_shared(request, now=now, before_write=before_write)
    with lock(request.folder, force=request.force) as held:
        for _ in range(_TRIES):
            opened = open_locked(request.folder, held.log, recall=True)
            prepared = prepare(opened, request, now())
            if held.doubt:
                prepared = prepared._replace(warnings=(*prepared.warnings, held.doubt))
            before_write()
            try:
                appended = _write(held.log, opened, prepared)
            except Moved:
                continue
            break
        else:
            raise Refused(
                "events.jsonl keeps growing while it is locked: another program writes without a lock"
            )
    if opened.checkpoint is not None:
        opened.checkpoint.keep(opened.history)
    return appended


def _append_shared(
    request: Request, *, now: Callable[[], datetime], before_write: Callable[[], object]
) -> Appended:
    """Append where other hosts append, too; imported only for that."""
    from acp_core.protocols.registry import load

    try:
        publish = load("acp_core.protocols.folder.write.shared:append")
    except ModuleNotFoundError as error:  # the skill's own copy of these rooms knows no stores
        if not (error.name or "").startswith("acp_core."):
            raise
        from acp_core.protocols.folder.write import handover

        return handover.hand_over(request, Appended)
    appended: Appended = publish(request, now=now, before_write=before_write)
    return appended


def refuse_another_participant(mark: str, folder: str, participant: str) -> None:
    """Refuse to act as somebody else from inside a live session, while that one's own program works.

    Args:
        mark: by which everything that a session starts is known: the path of its place.
        folder: the collaboration.
        participant: as whom this process wants to act.

    Raises:
        Refused: it is inside another one's session.
    """
    if "://" in folder or _plays(mark, folder, participant):
        return
    from acp_core.files import claims
    from acp_core.model.text import clean_line

    if claims.seen(folder, claims.of_participant(participant)).held:
        raise Refused(f"another program takes the turns of {clean_line(participant)}")


def _plays(mark: str, folder: str, participant: str) -> bool:
    """Whether a session is that of a participant, as the state of its loop says."""
    import json

    try:
        state = json.loads(read_bounded(os.path.join(mark, "loop.json"), _LARGEST_STATE))
        played = (state["folder"], state["participant"])
    except (Unreadable, ValueError, RecursionError, KeyError, TypeError):
        return False
    return played == (os.path.realpath(folder), participant)


def prepare(
    opened: Opened, request: Request, now: datetime, hosts: Mapping[str, str] | None = None
) -> Prepared:
    """What appending would write. Reads documents, writes nothing.

    Args:
        opened: the collaboration.
        request: the event.
        now: the time.
        hosts: where participants act, in a shared collaboration: whose clock is wrong.

    Raises:
        Refused: the event is not allowed.
    """
    _check_words(opened, request)
    existing = existing_event(opened, request)
    if existing:
        return Prepared(existing, b"", b"", opened, existing=True)
    last_seq = opened.last_seq
    if request.expect_seq is not None and request.expect_seq != last_seq:
        text = f"not appended: the log has moved on to seq {last_seq}, not {request.expect_seq}"
        raise Refused(text, CONFLICT)
    at, warnings = _time(opened, now, hosts or {})
    entry = _candidate(opened, request, at)
    _check_order(opened, entry)
    against = _against(opened, entry)
    from acp_core.protocols.folder.write import gates

    edits = request.edits
    if request.review is not None:
        from acp_core.protocols.folder.write import edits as write_edits

        edits = (*edits, write_edits.plan(opened, entry, request.review))
    entry, more = gates.judge(opened, entry, edits)
    line = records.encode_event(entry_fields(entry))
    if len(line) > records.MAX_LINE:
        raise Refused(f"the event is longer than {records.MAX_LINE} bytes")
    after = following(opened, entry, line)
    warnings += _refuse(opened, entry, after, edits, [*against, *more])
    protocol = records.encode_protocol(with_state(after))
    warnings += gates.remarks(opened, entry, edits)
    return Prepared(entry, line, protocol, after, edits=edits, warnings=warnings)


def _check_words(opened: Opened, request: Request) -> None:
    if request.participant not in opened.participants:
        raise Refused(f"participant {request.participant!r} is not listed in protocol.json")
    allowed = records.events_of(opened.dialect)
    if request.event not in allowed:
        raise Refused(f"unknown event {request.event!r} (choose from {', '.join(allowed)})")
    if not request.summary.strip():
        raise Refused("--summary must not be blank")
    for name in ("participant", "summary", "doc", "role", "sha256", "key"):
        value = getattr(request, name)
        if value and any("\ud800" <= character <= "\udfff" for character in value):
            raise Refused(f"--{name} is not UTF-8 text")
    doc = request.doc or ""
    if os.path.isabs(doc) or ".." in doc.replace("\\", "/").split("/") or "\0" in doc:
        raise Refused("--doc must be a path below the collaboration's folder")


def existing_event(opened: Opened, request: Request) -> Entry | None:
    """The event in the log that the request asks for a second time, if any."""
    if request.key is not None:
        wanted = (request.participant, request.key)
        keyed = opened.entries.naming(request.key)
        return next((entry for entry in keyed if (entry.sender, entry.key) == wanted), None)
    last = opened.last
    if last is None:
        return None
    same = (last.sender, last.event, last.reply_to, last.doc, last.summary, last.role) == (
        request.participant,
        request.event,
        request.reply_to,
        request.doc,
        request.summary,
        request.role,
    )
    return last if same and request.sha256 in (None, last.sha256) else None


def _time(opened: Opened, now: datetime, hosts: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The time of the next event: never before the last one. With a warning where that is odd."""
    at = records.format_time(now)
    last = opened.last
    before = records.parse_time(last.at) if last else None
    written = records.parse_time(at)
    if last is None or before is None or written is None or before <= written:
        return at, ()
    try:
        clamped = before.replace(microsecond=0)
        if clamped < before:
            clamped += timedelta(seconds=1)
        at = records.format_time(clamped)
    except OverflowError:
        at = last.at
    if (before - now).total_seconds() < records.CLOCKS_DIFFER:
        return at, ()
    by = f" by host {hosts[last.sender]}" if last.sender in hosts else ""
    return at, (f"the last event is dated {last.at}{by}, ahead of this machine's clock",)


def _candidate(opened: Opened, request: Request, at: str) -> Entry:
    return Entry(
        line=opened.lines + 1,
        seq=opened.next_seq,
        sender=request.participant,
        event=request.event,
        at=at,
        summary=request.summary,
        doc=request.doc,
        reply_to=request.reply_to,
        role=request.role,
        sha256=request.sha256,
        key=request.key,
    )


def _check_order(opened: Opened, entry: Entry) -> None:
    """What the log and the state machine say of the next event."""
    if "completed" in opened.machine.last:
        raise Refused(f"seq {entry.seq}: {entry.event} is not allowed from phase completed")
    _check_sound(opened, entry.event)
    if entry.event == "blocked" and not opened.last_seq:
        return  # no event bears a number that it could reply to
    if entry.reply_to is None and opened.entries:
        raise Refused("reply_to is required after initialized")
    if entry.reply_to is not None and not opened.history.with_seq(entry.reply_to):
        raise Refused("reply_to must point to an existing event")


def _against(opened: Opened, entry: Entry) -> list[str]:
    """What the state machine says against the next event.

    Raises:
        Refused: it is nobody's turn for that: whatever the documents say is of no matter.
    """
    problems = opened.machine.problems(entry)
    texts = [each.text for each in problems]
    if any(each.code in _OUT_OF_TURN for each in problems):
        raise Refused("; ".join(texts))
    return texts


def _refuse(
    opened: Opened, entry: Entry, after: Opened, edits: Sequence[Edit], reasons: Sequence[str]
) -> tuple[str, ...]:
    """Refuse an event with every reason against it, in one line.

    Args:
        opened, after: the collaboration before and after the event.
        entry: the event.
        edits: documents that change together with it.
        reasons: what the state machine and the documents say against it.

    Returns:
        What is wrong with its deliverable or the headings of reviews already, and stays so.

    Raises:
        Refused: there is a reason, or the collaboration would be invalid after the event.
    """
    from acp_core.protocols.folder.write import gates

    warnings: tuple[str, ...] = ()
    if entry.event in gates.JUDGED or (edits and entry.event != "blocked"):
        from acp_core.protocols.folder.write import forecast

        seen = forecast.foresee(opened, entry, after, edits)
        reasons = [*reasons, *forecast.new_reasons(seen, reasons)]
        warnings = seen.warnings
    if reasons:
        name = "" if reasons[0].startswith("seq ") else f"seq {entry.name}: "
        raise Refused(f"{name}{'; '.join(reasons)}")
    return warnings


def _check_sound(opened: Opened, event: str) -> None:
    """Refuse to go on where the log is full, or broken: such a run cannot become valid again."""
    if opened.full or opened.history.broken is not None:
        from acp_core.protocols.folder.rules import unrecoverable_log

        unrecoverable_log.check(opened.folder, opened.history, event, full_log=opened.full)


def entry_fields(entry: Entry) -> dict[str, object]:
    """An event's fields by their names in the log."""
    return dict(zip(records.FIELD_ORDER, entry[1:], strict=False))


def following(opened: Opened, entry: Entry, line: bytes) -> Opened:
    """The collaboration with one more event."""
    history = opened.history.followed_by([entry])
    return opened._replace(history=history, size=opened.size + len(line), lines=opened.lines + 1)


def _write(log: LockedLog, opened: Opened, prepared: Prepared) -> Appended:
    if prepared.existing:
        return _already(opened, prepared)
    done: list[Edit] = []
    try:
        for edit in prepared.edits:
            edit.apply()
            done.append(edit)
        if prepared.entry.doc not in {edit.name for edit in done}:
            _sync_document(opened.folder, prepared.entry.doc)
        landed = log.append(prepared.line, opened.size)
    except BaseException:
        for edit in reversed(done):
            edit.undo()
        raise
    return _landed(log, opened, prepared, landed)


def _sync_document(folder: str, doc: str | None) -> None:
    """Bring the document that an event speaks of to the disk before the event itself."""
    if not doc or doc == records.PROTOCOL_FILE:
        return
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with contextlib.suppress(OSError, ValueError):  # it need not be there
        fd = os.open(path_of(folder, doc), flags)
        try:
            atomic.sync_fd(fd)
        finally:
            os.close(fd)


def _landed(log: LockedLog, opened: Opened, prepared: Prepared, landed: Landed) -> Appended:
    """The event is in the log: from here on, whatever goes wrong is a warning."""
    after, protocol = prepared.after, prepared.protocol
    warnings = [*prepared.warnings, *landed.warnings]
    try:
        if landed.raced:
            after = take(opened.folder, opened.protocol, log.read(records.MAX_LOG))
            protocol = records.encode_protocol(with_state(after))
        warnings += filter(None, [write_protocol(opened.folder, protocol)])
    except Exception as error:
        reason = getattr(error, "strerror", None) or error
        warnings.append(
            f"protocol.json is out of date with the log ({reason}); `acp repair` fixes it"
        )
    machine = after.machine
    return Appended(
        prepared.entry,
        machine.phase,
        tuple(machine.waiting),
        raced=landed.raced,
        warnings=tuple(warnings),
    )


def write_protocol(folder: str, protocol: bytes) -> str:
    """Replace protocol.json, and remove what a crashed replacement left. Under the lock only.

    Returns:
        "", or a sentence that says so where the file's group could not be kept.

    Raises:
        OSError: protocol.json could not be replaced.
    """
    path = path_of(folder, records.PROTOCOL_FILE)
    said = atomic.replace(path, protocol)
    atomic.sweep(path)
    return said


def _already(opened: Opened, prepared: Prepared) -> Appended:
    """The event was there; a run that was killed before protocol.json is finished now."""
    warnings = prepared.warnings
    protocol = with_state(opened)
    if protocol != opened.protocol:
        try:
            write_protocol(opened.folder, records.encode_protocol(protocol))
        except OSError as error:
            lag = f"protocol.json is out of date with the log: {error.strerror or error}"
            warnings = (*warnings, lag)
    machine = opened.machine
    return Appended(
        prepared.entry, machine.phase, tuple(machine.waiting), existing=True, warnings=warnings
    )
