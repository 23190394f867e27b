"""Starting a collaboration in a folder.

Source: folder protocol specification, "Required Inputs" and "Initialization". Every file
appears whole, no text of somebody else's is ever overwritten, and protocol.json comes last:
what a killed run leaves behind is finished by running it again. Standard library only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from acp_core.files import atomic
from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.files.locked import LogError, locked_folder
from acp_core.model.errors import Refused
from acp_core.protocols.folder.schema import deliverables, records
from acp_core.protocols.folder.schema.deliverables import (
    CUSTOM,
    DEFAULT_DIR,
    EXTERNAL,
    INTERNAL,
    TYPES,
    Declaration,
    Deliverable,
    is_inside,
)
from acp_core.protocols.folder.schema.records import list_in, path_of, text_in
from acp_core.protocols.folder.write import edits
from acp_core.protocols.folder.write.opened import refuse_lockless, take, with_state

EXISTS = "collaboration folder already contains protocol.json; use --resume to acknowledge it"

_SUMMARIES = {
    records.V1: "Collaboration workspace initialized",
    records.V2: "Initialized ACP schema v2 collaboration workspace.",
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
    return records.encode_event(
        {
            "seq": 1,
            "from": charter.owner,
            "event": "initialized",
            "at": at,
            "summary": summary or _SUMMARIES[charter.dialect],
            "doc": records.PROTOCOL_FILE,
        }
    )


def protocol_after(protocol: dict[str, Any], log: bytes, folder: str) -> bytes:
    """protocol.json as it stands after the log."""
    return records.encode_protocol(with_state(take(folder, protocol, log)))


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
    texts = documents(charter) | dict(extras.texts)
    try:
        log = first_event(charter, records.format_time(now), extras.summary)
        made = [File(name, path_of(folder, name), text.encode()) for name, text in texts.items()]
        made.extend(extras.files)
        primary = charter.deliverable()
        if primary and all(file.name != primary.reference for file in made):
            path = charter.deliverable_path(folder)
            made.append(File(primary.reference, path, primary_template(charter).encode()))
        protocol = protocol_after(extras.protocol or charter.protocol(), log, folder)
    except UnicodeEncodeError as error:
        raise Refused(f"a text cannot be written as UTF-8: {error.reason}") from None
    made.append(File(records.LOG_FILE, path_of(folder, records.LOG_FILE), log))
    made.append(File(records.PROTOCOL_FILE, path_of(folder, records.PROTOCOL_FILE), protocol))
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
    if os.path.lexists(path_of(folder, records.PROTOCOL_FILE)):
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
    atomic.shared_folder(folder)
    try:
        with locked_folder(folder):
            _refuse_other(folder, charter, resume)
            return _write_files(folder, charter, wanted)
    except LogError as error:
        raise Refused(str(error)) from None


def _refuse_other(folder: str, charter: Charter, resume: bool) -> None:
    """Refuse a folder that holds the log or the protocol.json of another collaboration."""
    if os.path.lexists(path_of(folder, records.PROTOCOL_FILE)) and (
        not resume or _readable_protocol(folder) is not None
    ):
        raise Refused(EXISTS)
    log = _content(path_of(folder, records.LOG_FILE))
    if not log:
        return
    entries = [parsed for parsed in records.parse_lines(log) if parsed is not None]
    ours = (
        len(entries) == 1
        and isinstance(entries[0], records.Entry)
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
        atomic.shared_folder(os.path.dirname(file.path) or ".")
        data = file.data
        if file.name == records.PROTOCOL_FILE:  # the log may be one that a killed run wrote
            log = _content(path_of(folder, records.LOG_FILE))
            fields = records.decode_protocol(data)
            del fields["createdAt"]
            data = protocol_after(fields, log, folder)
        (created if _put(file.path, data) else kept).append(file.name)
    protocol = records.decode_protocol(_content(path_of(folder, records.PROTOCOL_FILE)))
    edits.keep_charter(folder, protocol)
    return Started(folder, charter.dialect, False, tuple(created), tuple(kept))


def _put(path: str, data: bytes) -> bool:
    """Make a file, or fill an empty one; False where somebody's content stands there."""
    try:
        atomic.create(path, data)
    except FileExistsError:
        if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path):
            if os.path.basename(path) == records.PROTOCOL_FILE and _decoded(path) is None:
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
                atomic.shared_folder(os.path.dirname(file.path) or ".")
                _put(file.path, file.data)
    except LogError as error:
        raise Refused(str(error)) from None
    return Started(folder, records.dialect_of(protocol), True, tuple(file.name for file in missing))


def missing_files(folder: str, protocol: dict[str, Any], now: datetime) -> list[File]:
    """The files that an interrupted start left unwritten, as protocol.json asks for them.

    The log is among them only where protocol.json says that nothing has happened yet.

    Raises:
        Refused: something is missing, and protocol.json does not say enough to make it.
    """
    lacking = [
        name
        for name in (README, *records.REQUIRED_FILES)
        if not os.path.lexists(path_of(folder, name)) and name != records.PROTOCOL_FILE
    ]
    log_path = path_of(folder, records.LOG_FILE)
    if os.path.isfile(log_path) and not os.path.getsize(log_path):
        lacking.append(records.LOG_FILE)
    if lacking == [README]:
        return []  # other tools may write none
    if not lacking:
        return []
    charter = charter_of(protocol)
    begun = protocol.get("currentPhase") not in (None, "drafting")
    if records.LOG_FILE in lacking and begun:
        raise Refused(
            f"the log of {folder} is lost: protocol.json says {protocol['currentPhase']!r}; "
            "bring back events.jsonl, or start again with `acp init` in a new folder"
        )
    at = records.parse_time(str(protocol.get("createdAt"))) or now
    return [file for file in files(charter, folder, at) if file.name in lacking]


def _readable_protocol(folder: str) -> dict[str, Any] | None:
    return _decoded(path_of(folder, records.PROTOCOL_FILE))


def _decoded(path: str) -> dict[str, Any] | None:
    try:
        return records.decode_protocol(read_bounded(path, records.MAX_PROTOCOL))
    except (Unreadable, ValueError):
        return None


def _content(path: str) -> bytes:
    try:
        return read_bounded(path, records.MAX_LOG)
    except Unreadable as error:
        if error.missing:
            return b""
        raise Refused(f"{path}: {error}") from None


class Primary(NamedTuple):
    """The primary deliverable of a v2 collaboration, as protocol.json declares it."""

    type: str
    file: str
    checklist: tuple[str, ...] = ()
    mode: str = deliverables.INTERNAL
    folder: str = deliverables.DEFAULT_DIR
    repo_root: str | None = None


class Charter(NamedTuple):
    """Objective, participants and gates; the first participant owns the proposal."""

    objective: str
    participants: tuple[str, ...]
    gates: tuple[str, ...]
    primary: Primary | None = None

    @property
    def dialect(self) -> str:
        """v2 with a deliverable, v1 without."""
        return records.V2 if self.primary else records.V1

    @property
    def owner(self) -> str:
        """The participant who owns the proposal."""
        return self.participants[0]

    def declaration(self) -> Declaration:
        """The deliverables, as readers understand the declaration."""
        return deliverables.declare(self._declared())

    def deliverable(self) -> Deliverable | None:
        """The primary deliverable, with its reference and the sections of its type."""
        return self.declaration().primary

    def deliverable_path(self, folder: str) -> str:
        """Where the primary deliverable lies.

        Raises:
            Refused: that is no place below the folder that it must lie in.
        """
        declaration = self.declaration()
        root = deliverables.root_of(declaration, folder)
        primary = declaration.primary
        path = deliverables.path_of(declaration, primary, root) if primary else None
        if path is None:
            raise Refused(root.problem or "the primary deliverable is outside its folder")
        return path

    def generated_gates(self) -> tuple[str, ...]:
        """The gates that v2 adds to those of the objective."""
        primary = self.deliverable()
        if primary is None:
            return ()
        return (
            f"Primary deliverable exists: `{primary.reference}`",
            f"Primary deliverable has required `{primary.type}` sections",
            "Every accepted decision has `Reflected in`",
            "Every accepted decision is reflected in the primary deliverable",
            "Primary deliverable status is `Frozen`",
            "Primary deliverable SHA-256 snapshot recorded",
        )

    def protocol(self) -> dict[str, Any]:
        """protocol.json without what follows from the log (phase, owner, waiting, times)."""
        fields: dict[str, Any] = {
            "objective": self.objective,
            "participants": [{"id": name} for name in self.participants],
            "completionGates": list(self.gates),
        }
        if self.primary is None:
            return fields
        objective = [{"source": "objective", "text": gate} for gate in self.gates]
        generated = [{"source": "generated", "text": gate} for gate in self.generated_gates()]
        return fields | self._declared() | {"completionGates": objective + generated}

    def _declared(self) -> dict[str, Any]:
        primary = self.primary
        if primary is None:
            return {}
        declared: dict[str, Any] = {
            "protocol": "acp",
            "schemaVersion": 2,
            "objectiveGates": list(self.gates),
            "deliverables": {
                "mode": primary.mode,
                "dir": primary.folder,
                "owner": self.owner,
                "coAuthors": [],
                "primary": {
                    "type": primary.type,
                    "file": primary.file,
                    "checklist": list(primary.checklist),
                },
                "supporting": [],
                "attachments": [],
            },
        }
        if primary.repo_root is not None:
            declared["repoRoot"] = primary.repo_root
        return declared


def charter_of(protocol: dict[str, Any]) -> Charter:
    """The charter that a protocol.json stands for.

    Raises:
        Refused: it names no objective, no participant or no gate, or no usable deliverable.
    """
    dialect = records.dialect_of(protocol)
    if dialect == records.UNKNOWN_DIALECT:
        raise Refused(f"unknown schemaVersion {protocol['schemaVersion']!r}")
    objective = text_in(protocol, "objective")
    participants = tuple(records.participant_ids(protocol))
    gates = _objective_gates(protocol)
    if not objective.strip():
        raise Refused("protocol.json objective must not be blank")
    if not participants:
        raise Refused("protocol.json participants must not be empty")
    if not gates:
        raise Refused("protocol.json completionGates must not be empty")
    primary = None
    if dialect == records.V2:
        declared = deliverables.declare(protocol)
        if declared.primary is None or not declared.primary.reference:
            raise Refused("protocol.json deliverables.primary is required")
        item = declared.primary
        checklist = item.sections if item.type == deliverables.CUSTOM else ()
        primary = Primary(
            item.type, item.file, checklist, declared.mode, declared.dir, declared.repo_root
        )
    return Charter(objective, participants, gates, primary)


def _objective_gates(protocol: dict[str, Any]) -> tuple[str, ...]:
    """The gates that people set: in v2 without the generated ones."""
    named = [gate for gate in list_in(protocol, "objectiveGates") if isinstance(gate, str)]
    if named:
        return tuple(named)
    own = [
        gate
        for gate in list_in(protocol, "completionGates")
        if not (isinstance(gate, dict) and gate.get("source") == "generated")
    ]
    return tuple(records.gate_texts({"completionGates": own}))


_LINE_BREAK = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


class Wish(NamedTuple):
    """What somebody asks for; ``type`` None (and nothing else of a deliverable) means v1."""

    objective: str
    participants: Sequence[str]
    gates: Sequence[str]
    type: str | None = None
    file: str | None = None
    checklist: Sequence[str] = ()
    mode: str | None = None
    folder: str | None = None
    repo_root: str | None = None

    @property
    def wants_deliverable(self) -> bool:
        """Whether any of the deliverable's fields is given."""
        given = (self.type, self.file, self.mode, self.folder, self.repo_root)
        return any(value is not None for value in given) or bool(self.checklist)


def charter_for(wish: Wish, folder: str) -> tuple[Charter, tuple[str, ...]]:
    """The charter that a wish leads to in ``folder``, and warnings about it.

    Raises:
        Refused: something is missing or not allowed.
    """
    objective = wish.objective.strip()
    if not objective:
        raise Refused("--objective must not be blank")
    participants = _participants(wish)
    gates = _gates(wish)
    primary = _primary(wish) if wish.wants_deliverable else None
    charter = Charter(objective, participants, gates, primary)
    if primary:
        charter.deliverable_path(folder)  # refused where it would lie outside
    warnings = []
    if len(participants) < len(_given(wish.participants)):
        warnings.append("a --participant that was given twice takes part once")
    if len(participants) == 1:
        warnings.append("with only one participant, no proposal can be reviewed")
    return charter, tuple(warnings)


def _given(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(stripped for value in values if (stripped := value.strip()))


def _participants(wish: Wish) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_given(wish.participants)))
    if wish.wants_deliverable and len(names) < 2:
        raise Refused("at least two non-blank --participant values are required")
    if not names:
        raise Refused("at least one non-blank --participant is required")
    for name in names:
        if not records.is_participant_id(name):
            raise Refused(
                f"--participant {name!r}: an id has 1 to 64 letters, digits, '.', '_' or '-', "
                "and does not begin with '.' or '-'"
            )
    return names


def _gates(wish: Wish) -> tuple[str, ...]:
    gates = tuple(dict.fromkeys(_given(wish.gates)))
    if not gates:
        raise Refused("at least one non-blank --completion is required")
    for gate in gates:
        if _LINE_BREAK.search(gate):
            raise Refused(f"--completion must be one line: {gate!r}")
        for name in records.OBSOLETE_FILES:
            if name in gate:
                raise Refused(f"completion gate must not reference obsolete file {name}")
    return gates


def _primary(wish: Wish) -> Primary:
    if wish.type is None:
        raise Refused("--primary-deliverable-type is required for a deliverable")
    if wish.type not in TYPES:
        raise Refused(f"--primary-deliverable-type must be one of {', '.join(TYPES)}")
    checklist = _given(wish.checklist)
    file = (wish.file or "").strip()
    if wish.type == CUSTOM:
        if not file:
            raise Refused("custom deliverables require --primary-deliverable-file")
        if not checklist:
            raise Refused("custom deliverables require at least one --primary-deliverable-check")
    file = file or f"{wish.type}.md"
    if not file.endswith(".md"):
        raise Refused("primary deliverable file must end with .md")
    if not is_inside(file):
        raise Refused("primary deliverable file must be relative and must not contain ..")
    folder = (wish.folder or "").strip() or DEFAULT_DIR
    if not is_inside(folder):
        raise Refused("--deliverables-dir must be relative and must not contain ..")
    mode = wish.mode or INTERNAL
    root = (wish.repo_root or "").strip() or None
    if mode == EXTERNAL and root is None:
        raise Refused("--repo-root is required when --deliverables-mode external")
    if mode == EXTERNAL and root and root.startswith(("/", "~")):
        raise Refused("--repo-root must be relative to the collaboration folder")
    if mode != EXTERNAL and root is not None:
        raise Refused("--repo-root is only allowed when --deliverables-mode external")
    return Primary(wish.type, file, checklist, mode, folder, root)


README = "README.md"

REVIEW_BODY = """\
Context:
- Read `proposal.md` after event seq `<seq>`.

Position:
- ...

Concerns:
- ...

Required Changes:
- ...

Questions:
- ...
"""


def documents(charter: Charter) -> dict[str, str]:
    """Every Markdown file of a new collaboration's folder: name -> text."""
    second = charter.primary is not None
    return {
        README: readme(charter),
        "proposal.md": _proposal(charter),
        "review.md": _review(charter),
        "decisions.md": _decisions_v2(charter) if second else _DECISIONS,
        "readiness.md": _readiness_v2(charter) if second else _readiness(charter),
        "conclusion.md": _conclusion_v2(charter) if second else _CONCLUSION,
    }


def document(charter: Charter, name: str) -> str:
    """One file of `documents`."""
    return documents(charter)[name]


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _boxes(items: Iterable[str]) -> str:
    return _bullets(f"[ ] {item}" for item in items)


def readme(charter: Charter) -> str:
    """README.md: the second copy of what protocol.json is founded on, for people and repairs."""
    names = [f"`{name}`" for name in charter.participants]
    names[0] += " (owns the proposal)"
    files = [
        "`protocol.json`: objective, participants, gates, current phase, who is waited for",
        "`events.jsonl`: what happened, one event a line; only ever appended to",
        "`proposal.md`: the current proposal, nothing older",
        "`review.md`: every review, under a heading with the seq of its event",
        "`decisions.md`: what was accepted, nothing else",
        "`readiness.md`: open questions and their classification, blockers, gates",
        "`conclusion.md`: the answer to the objective",
    ]
    if charter.primary:
        files.append(f"`{_deliverable(charter).reference}`: the primary deliverable")
    return f"""\
# Collaboration

Agents and people work here on one objective. They do not message each other: this folder is
all that they share.

## Objective

{charter.objective}

## Participants

{_bullets(names)}

## Completion Gates

{_bullets(charter.gates)}

## Files

{_bullets(files)}

## Rules

- Act when `protocol.json` lists you in `waitingFor`; otherwise wait and edit nothing.
- Events are appended with `acp append` or the bundled script, never by hand, and never changed.
- While a review is awaited, the proposal's owner edits nothing that the reviewers read.
- A mistake is corrected by a new event; what cannot be solved here is a `blocked` event.
- Nothing is complete without `conclusion.md`.
"""


def _proposal(charter: Charter) -> str:
    if charter.primary is None:
        middle = """\
## Message/API Contracts

None yet.

## Operational Concerns

None yet."""
    else:
        middle = f"""\
## Deliverable Draft

The draft is in `{_deliverable(charter).reference}`.

## Review Focus

What the reviewers should look at first."""
    return f"""\
# Proposal

## Purpose

{charter.objective}

## Current Proposal

Not written yet.

{middle}

## Open Questions

None yet.

## Proposed Decisions

None yet.
"""


def _review(charter: Charter) -> str:
    scope = ""
    if charter.primary is not None:
        scope = f"""\
Reviewed primary deliverable: `{_deliverable(charter).reference}`

Review Scope:
- Primary deliverable completeness
- ...

"""
    body = "\n".join(f"    {line}".rstrip() for line in (scope + REVIEW_BODY).splitlines())
    return f"""\
# Reviews

Each review stands under a heading that carries the seq of its own `review_submitted` event,
not of the event that it answers (`acp append --review-file` writes both together):

    ## <ISO-8601 UTC> - <participant_id> - seq <seq of the event>

{body}
"""


_DECISIONS = """\
# Decisions

## Accepted Decisions

None yet. Only what was accepted stands here.
"""


def _decisions_v2(charter: Charter) -> str:
    deliverable = _deliverable(charter)
    return f"""\
# Decisions

## Accepted Decisions

### D1. Initial deliverable declaration

- Decision: the primary deliverable is `{deliverable.reference}`, of the type `{deliverable.type}`.
- Rationale: it was declared when the collaboration was started.
- Reflected in: `{deliverable.reference}`
"""


_CLASSIFICATION = """\
## Open Question Classification

Each open question is one line that begins with its class: `[resolved]`, `[deferred_nonblocking]`
(with `Reason: ...` on the same line), `[blocking]` or `[unresolved]`.

- [unresolved] The open questions have not been listed yet; replace this line."""


def _readiness(charter: Charter) -> str:
    return f"""\
# Readiness

{_CLASSIFICATION}

## Blocking Issues

None known.

## Deferred Follow-ups

None yet.

## Completion Gates

{_boxes(charter.gates)}

## Final Design Document Checklist

- [ ] Accepted Decisions
- [ ] Assumptions
- [ ] Deferred Follow-ups
- [ ] Implementation Blockers
- [ ] Ready to implement
"""


def _readiness_v2(charter: Charter) -> str:
    return f"""\
# Readiness

{_CLASSIFICATION}

## Objective Gates

{_boxes(charter.gates)}

## Generated Deliverable Gates

{_boxes(charter.generated_gates())}

## Deliverable Snapshot

The SHA-256 of the primary deliverable is recorded by the event `deliverable_frozen`.

## Supporting Deliverables

None.

## Attachments

None.

## Deferred Follow-ups

None yet.

## Implementation Blockers

None known.

## Ready to Implement

- [ ] Ready to implement
"""


_CONCLUSION = """\
# Conclusion

## Decision Outcome

- [blocked] TBD

## Rationale

TBD

## Accepted Decisions

TBD

## Implementation Approach

TBD

## Assumptions

TBD

## Deferred Follow-ups

TBD

## Implementation Blockers

TBD

## Next Action

TBD
"""


def _conclusion_v2(charter: Charter) -> str:
    return f"""\
# Conclusion

## Decision Outcome

- [blocked] Collaboration is not complete.

## Rationale

TBD

## Deliverable Receipt

- Primary deliverable: `{_deliverable(charter).reference}`

## Accepted Decisions Summary

TBD

## Readiness Result

TBD

## Assumptions

TBD

## Deferred Follow-ups

TBD

## Implementation Blockers

TBD

## Next Action

TBD
"""


def primary_template(charter: Charter) -> str:
    """The primary deliverable's first text: its status, and every section that its type asks for."""
    deliverable = _deliverable(charter)
    title = deliverable.file.rpartition("/")[2].removesuffix(".md").replace("-", " ").capitalize()
    parts = [f"# {title}", "Status: Draft"]
    parts += [f"## {section}" for section in deliverable.sections if section != "Status"]
    if "Status" in deliverable.sections:
        parts[1] = "## Status\n\nStatus: Draft"
    return "\n\n".join(parts) + "\n"


def _deliverable(charter: Charter) -> Deliverable:
    deliverable = charter.deliverable()
    if deliverable is None:
        raise ValueError("a v1 collaboration has no deliverable")
    return deliverable
