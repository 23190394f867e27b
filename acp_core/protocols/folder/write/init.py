"""Starting a collaboration in a folder.

Source: folder protocol specification, "Required Inputs" and "Initialization". Every file
appears whole, no text of somebody else's is ever overwritten, and protocol.json comes last:
what a killed run leaves behind is finished by running it again. Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from acp_core.files import atomic, modes
from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.files.locked import LogError, locked_folder
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.write import Refused, backups, templates
from acp_core.protocols.folder.write.charter import Charter, charter_of
from acp_core.protocols.folder.write.init_checks import Wish, charter_for
from acp_core.protocols.folder.write.opened import path_of, refuse_lockless, take, with_state

EXISTS = "collaboration folder already contains protocol.json; use --resume to acknowledge it"
_SUMMARIES = {
    schema.V1: "Collaboration workspace initialized",
    schema.V2: "Initialized ACP schema v2 collaboration workspace.",
}


class File(NamedTuple):
    """One file that a new collaboration starts with; ``path`` is where it is written."""

    name: str
    path: str
    data: bytes


class Started(NamedTuple):
    """How a start ended.

    ``existed``: protocol.json was there already. ``created`` and ``kept`` are file names: what
    was written, and what stood there before and was left as it is.
    """

    folder: str
    dialect: str
    existed: bool
    created: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Extras(NamedTuple):
    """What a new collaboration has beyond what its charter says.

    ``protocol`` replaces the charter's protocol.json; ``texts`` replace documents by name;
    ``files`` come before the log; ``summary`` is that of the first event.
    """

    protocol: dict[str, Any] | None = None
    texts: Mapping[str, str] = {}
    files: tuple[File, ...] = ()
    summary: str = ""


def first_event(charter: Charter, at: str, summary: str = "") -> bytes:
    """The line of the event ``initialized``."""
    return schema.encode_event(
        {
            "seq": 1,
            "from": charter.owner,
            "event": "initialized",
            "at": at,
            "summary": summary or _SUMMARIES[charter.dialect],
            "doc": schema.PROTOCOL_FILE,
        }
    )


def protocol_after(protocol: dict[str, Any], log: bytes, folder: str) -> bytes:
    """protocol.json as it stands after the log."""
    return schema.encode_protocol(with_state(take(folder, protocol, log)))


def files(charter: Charter, folder: str, now: datetime, extras: Extras | None = None) -> list[File]:
    """Every file of a new collaboration, in the order in which they are written.

    Args:
        charter: what it is founded on.
        folder: where it is to be.
        now: the time of its first event.
        extras: what is different from a collaboration without a history.

    Raises:
        Refused: a text cannot be written as UTF-8.
    """
    extras = extras or Extras()
    texts = templates.documents(charter) | dict(extras.texts)
    try:
        log = first_event(charter, schema.format_time(now), extras.summary)
        made = [File(name, path_of(folder, name), text.encode()) for name, text in texts.items()]
        made.extend(extras.files)
        primary = charter.deliverable()
        if primary and all(file.name != primary.reference for file in made):
            path = charter.deliverable_path(folder)
            made.append(File(primary.reference, path, templates.primary(charter).encode()))
        protocol = protocol_after(extras.protocol or charter.protocol(), log, folder)
    except UnicodeEncodeError as error:
        raise Refused(f"a text cannot be written as UTF-8: {error.reason}") from None
    made.append(File(schema.LOG_FILE, path_of(folder, schema.LOG_FILE), log))
    made.append(File(schema.PROTOCOL_FILE, path_of(folder, schema.PROTOCOL_FILE), protocol))
    return made


def _now() -> datetime:
    return datetime.now(UTC)


def initialise(
    folder: str,
    wish: Wish,
    *,
    resume: bool = False,
    force: bool = False,
    now: Callable[[], datetime] = _now,
) -> Started:
    """Start a collaboration in ``folder``, which is made if it does not exist.

    Args:
        folder: where.
        wish: what it is to be founded on.
        resume: finish a start that was interrupted, or acknowledge a finished one.
        force: insist on a file system where locks protect nothing.
        now: the clock.

    Raises:
        Refused: something is missing or not allowed, or a collaboration is there already.
        OSError: a file could not be written; what is there can be finished with ``resume``.
    """
    if os.path.lexists(path_of(folder, schema.PROTOCOL_FILE)):
        if not resume:
            raise Refused(EXISTS)
        protocol = _readable_protocol(folder)
        if protocol is not None:
            return finish(folder, protocol, now=now)
    charter, warnings = charter_for(wish, folder)
    doubt = refuse_lockless(folder, force)
    started = start(folder, charter, files(charter, folder, now()), resume=resume)
    return started._replace(warnings=(*warnings, *filter(None, [doubt])))


def start(folder: str, charter: Charter, wanted: list[File], *, resume: bool) -> Started:
    """Write the files of a new collaboration, in their order, each whole or not at all.

    Raises:
        Refused: another collaboration is there already.
        OSError: a file could not be written.
    """
    modes.shared_folder(folder)
    try:
        with locked_folder(folder):
            _refuse_other(folder, charter, resume)
            return _write_files(folder, charter, wanted)
    except LogError as error:
        raise Refused(str(error)) from None


def _refuse_other(folder: str, charter: Charter, resume: bool) -> None:
    """Refuse a folder that holds the log or the protocol.json of another collaboration."""
    if os.path.lexists(path_of(folder, schema.PROTOCOL_FILE)) and (
        not resume or _readable_protocol(folder) is not None
    ):
        raise Refused(EXISTS)
    log = _content(path_of(folder, schema.LOG_FILE))
    if not log:
        return
    entries = [parsed for parsed in schema.parse_lines(log) if parsed is not None]
    ours = (
        len(entries) == 1
        and isinstance(entries[0], schema.Entry)
        and (entries[0].event, entries[0].sender) == ("initialized", charter.owner)
    )
    if not ours:
        raise Refused(f"{folder} holds a log but no protocol.json; run `acp repair`")
    if not resume:
        raise Refused(f"a start of a collaboration in {folder} was interrupted; use --resume")


def _write_files(folder: str, charter: Charter, wanted: list[File]) -> Started:
    created: list[str] = []
    kept: list[str] = []
    for file in wanted:
        modes.shared_folder(os.path.dirname(file.path) or ".")
        data = file.data
        if file.name == schema.PROTOCOL_FILE:  # the log may be one that a killed run wrote
            log = _content(path_of(folder, schema.LOG_FILE))
            fields = schema.decode_protocol(data)
            del fields["createdAt"]
            data = protocol_after(fields, log, folder)
        (created if _put(file.path, data) else kept).append(file.name)
    protocol = schema.decode_protocol(_content(path_of(folder, schema.PROTOCOL_FILE)))
    backups.keep_charter(folder, protocol)
    return Started(folder, charter.dialect, False, tuple(created), tuple(kept))


def _put(path: str, data: bytes) -> bool:
    """Make a file, or fill an empty one; False where somebody's content stands there."""
    try:
        atomic.create(path, data)
    except FileExistsError:
        if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path):
            if os.path.basename(path) == schema.PROTOCOL_FILE and _decoded(path) is None:
                atomic.replace(path, data)
                return True
            return False
        atomic.replace(path, data)
    atomic.sweep(path)
    return True


def finish(folder: str, protocol: dict[str, Any], *, now: Callable[[], datetime] = _now) -> Started:
    """Make the files that a collaboration with a protocol.json still lacks.

    Raises:
        Refused: what is missing cannot be made from protocol.json.
        OSError: a file could not be written.
    """
    try:
        with locked_folder(folder):
            missing = missing_files(folder, protocol, now())
            for file in missing:
                modes.shared_folder(os.path.dirname(file.path) or ".")
                _put(file.path, file.data)
    except LogError as error:
        raise Refused(str(error)) from None
    return Started(folder, schema.dialect_of(protocol), True, tuple(file.name for file in missing))


def missing_files(folder: str, protocol: dict[str, Any], now: datetime) -> list[File]:
    """The files that an interrupted start left unwritten, as protocol.json asks for them.

    The log is among them only where protocol.json says that nothing has happened yet.

    Raises:
        Refused: something is missing, and protocol.json does not say enough to make it.
    """
    lacking = [
        name
        for name in (templates.README, *schema.REQUIRED_FILES)
        if not os.path.lexists(path_of(folder, name)) and name != schema.PROTOCOL_FILE
    ]
    log_path = path_of(folder, schema.LOG_FILE)
    if os.path.isfile(log_path) and not os.path.getsize(log_path):
        lacking.append(schema.LOG_FILE)
    if lacking == [templates.README]:
        return []  # other tools may write none
    if not lacking:
        return []
    charter = charter_of(protocol)
    begun = protocol.get("currentPhase") not in (None, "drafting")
    if schema.LOG_FILE in lacking and begun:
        raise Refused(
            f"the log of {folder} is lost: protocol.json says {protocol['currentPhase']!r}; "
            "bring back events.jsonl, or start again with `acp init` in a new folder"
        )
    at = schema.parse_time(str(protocol.get("createdAt"))) or now
    return [file for file in files(charter, folder, at) if file.name in lacking]


def _readable_protocol(folder: str) -> dict[str, Any] | None:
    return _decoded(path_of(folder, schema.PROTOCOL_FILE))


def _decoded(path: str) -> dict[str, Any] | None:
    try:
        return schema.decode_protocol(read_bounded(path, schema.MAX_PROTOCOL))
    except (Unreadable, ValueError):
        return None


def _content(path: str) -> bytes:
    try:
        return read_bounded(path, schema.MAX_LOG)
    except Unreadable as error:
        if error.missing:
            return b""
        raise Refused(f"{path}: {error}") from None
