"""Rules about which files there are and about protocol.json.

Source: folder protocol specification, "Required Inputs" and "Files". Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from acp_core.model.light import TYPE_CHECKING, Any
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.rules.finding import Finding
from acp_core.protocols.folder.schema import (
    PROTOCOL_FILE,
    V2,
    deliverables,
    id_in,
    list_in,
    object_in,
    text_in,
)
from acp_core.protocols.folder.schema.deliverables import (
    CUSTOM,
    EXTERNAL,
    INTERNAL,
    TYPES,
    is_inside,
)

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.facts import Facts

MISSING = "missing"


def protocol_readable(facts: Facts) -> Iterator[Finding]:
    """protocol.json is there and can be read: without it nothing else can be judged."""
    if facts.protocol_problem == MISSING:
        yield Finding("ACP111", f"missing protocol.json in {facts.folder}", file=PROTOCOL_FILE)
    elif facts.protocol_problem:
        text = f"invalid protocol.json: {facts.protocol_problem}"
        yield Finding("ACP110", text, file=PROTOCOL_FILE)


def dialect_known(facts: Facts) -> Iterator[Finding]:
    """``schemaVersion`` is one that this program knows."""
    if facts.dialect == schema.UNKNOWN_DIALECT:
        yield _about("ACP131", "protocol.json schemaVersion must be 2")


def files_present(facts: Facts) -> Iterator[Finding]:
    """Every file of the protocol is there."""
    for name in schema.REQUIRED_FILES:
        if name == schema.LOG_FILE:
            missing = facts.log_problem == MISSING
        else:
            missing = name in facts.files and facts.files[name].missing
        if missing:
            yield Finding("ACP101", f"missing {name}", file=name)


def files_readable(facts: Facts) -> Iterator[Finding]:
    """Every document is a regular file, UTF-8, and not too large."""
    for name, file in facts.files.items():
        if file.problem and not file.missing:
            yield Finding("ACP103", f"{name} cannot be read: {file.problem}", file=name)


def obsolete_files(facts: Facts) -> Iterator[Finding]:
    """None of the files of earlier protocols is there."""
    for name in facts.obsolete:
        text = f"{name} is not part of the protocol; remove it and use events.jsonl/readiness.md instead"
        yield Finding("ACP102", text, file=name)


def charter(facts: Facts) -> Iterator[Finding]:
    """Phase, objective, participants and gates are given."""
    protocol = _protocol(facts)
    if text_in(protocol, "currentPhase") not in schema.PHASES:
        yield _about("ACP112", f"currentPhase must be one of {list(schema.PHASES)}")
    if not text_in(protocol, "objective").strip():
        yield _about("ACP113", "protocol.json objective must not be blank")
    listed = list_in(protocol, "participants")
    if not listed:
        yield _about("ACP114", "protocol.json participants must not be empty")
    else:
        for position, item in enumerate(listed):
            name = id_in(item)
            if not isinstance(name, str) or not name.strip():
                yield _about("ACP120", f"protocol.json participants[{position}] has no id")
            elif not schema.is_writable(name):
                text = f"protocol.json participants[{position}] is not text in UTF-8"
                yield _about("ACP120", text)
        if len(listed) > schema.MAX_PARTICIPANTS:
            text = f"protocol.json has more than {schema.MAX_PARTICIPANTS} participants"
            yield _about("ACP121", text)
    gates = protocol.get("completionGates")
    if not isinstance(gates, list | dict) or not gates:  # of an object, the keys count
        yield _about("ACP115", "protocol.json completionGates must not be empty")


def gates_well_formed(facts: Facts) -> Iterator[Finding]:
    """Gates are texts (v2: with their source) and name no obsolete file."""
    gates = _protocol(facts).get("completionGates")
    for position, gate in enumerate(gates if isinstance(gates, list | dict) else []):
        if facts.dialect == V2:
            well_formed = (
                isinstance(gate, dict)
                and isinstance(gate.get("source"), str)
                and isinstance(gate.get("text"), str)
                and bool(gate["text"].strip())
            )
            if not well_formed:
                yield _about("ACP132", f"completionGates[{position}] must include source and text")
        elif not isinstance(gate, str | dict) or not gate:
            yield _about("ACP122", f"completionGates[{position}] must be a text")
    for text in schema.gate_texts(_protocol(facts)):
        for name in schema.OBSOLETE_FILES:
            if name in text:
                yield _about("ACP117", f"completion gate must not reference obsolete file {name}")


def no_version(facts: Facts) -> Iterator[Finding]:
    """Dialect v1 has no version in protocol.json."""
    if facts.dialect == schema.V1 and "version" in _protocol(facts):
        yield _about("ACP116", "protocol.json must not include a protocol version field")


def state_present(facts: Facts) -> Iterator[Finding]:
    """Who is waited for and who owns the proposal is recorded."""
    protocol = _protocol(facts)
    if not isinstance(protocol.get("waitingFor"), list):
        yield _about("ACP118", "protocol.json waitingFor must be present")
    if not text_in(protocol, "proposalOwner"):
        yield _about("ACP119", "protocol.json proposalOwner must be present")


def state_matches(facts: Facts) -> Iterator[Finding]:
    """What protocol.json says of the state is what the log leads to."""
    machine = facts.history.machine
    protocol = _protocol(facts)
    if not machine.count:
        return
    phase = text_in(protocol, "currentPhase")
    if phase in schema.PHASES and phase != machine.phase:
        text = f"protocol.json currentPhase is {phase}, expected {machine.phase or 'none'}"
        yield _about("ACP150", text)
    for name, expected in (("proposalOwner", machine.owner), ("waitingFor", machine.waiting)):
        found = protocol.get(name)
        if name in protocol and found != expected:
            text = f"protocol.json {name} is {found!r}, expected {expected!r}"
            yield _about("ACP151", text)


def is_behind(facts: Facts) -> bool:
    """Whether protocol.json records an earlier state of the log than the last one."""
    protocol, machine = _protocol(facts), facts.history.machine
    phase, owner = protocol.get("currentPhase"), protocol.get("proposalOwner")
    waiting = protocol.get("waitingFor")
    if not isinstance(phase, str) or not isinstance(waiting, list):
        return False
    if (phase, owner, waiting) == (machine.phase, machine.owner, machine.waiting):
        return False
    return facts.history.was_ever((phase, owner, waiting))


def v2_declaration(facts: Facts) -> Iterator[Finding]:
    """Dialect v2: protocol.json names the protocol and declares its deliverables well."""
    if facts.dialect != V2:
        return
    protocol = _protocol(facts)
    if protocol.get("protocol") != "acp":
        yield _about("ACP130", "protocol.json protocol must be 'acp'")
    block = object_in(protocol, "deliverables")
    if "mode" in block and block["mode"] not in (INTERNAL, EXTERNAL):
        yield _about("ACP133", "deliverables.mode must be internal or external")
    yield from _place(facts, protocol, block)
    yield from _primary(block.get("primary"))
    yield from _supporting(block)
    yield from _attachments(block)


def _place(facts: Facts, protocol: dict[str, Any], block: dict[str, Any]) -> Iterator[Finding]:
    root = protocol.get("repoRoot")
    if block.get("mode") == EXTERNAL:
        if not isinstance(root, str) or not root.strip():
            yield _about("ACP134", "repoRoot is required for external deliverables")
        elif os.path.isabs(root) or "\0" in root:
            yield _about("ACP135", "repoRoot must be relative")
        elif facts.root.problem:
            yield _about("ACP136", facts.root.problem)
    elif root is not None:
        yield _about("ACP137", "repoRoot is not allowed for internal deliverables")
    folder = block.get("dir", deliverables.DEFAULT_DIR)
    if not isinstance(folder, str) or not folder.strip():
        yield _about("ACP138", "deliverables.dir is required")
    elif not is_inside(folder):
        yield _about("ACP139", "deliverables.dir must be relative and must not contain ..")


def _primary(primary: object) -> Iterator[Finding]:
    if not isinstance(primary, dict):
        yield _about("ACP140", "protocol.json deliverables.primary is required")
        return
    yield from _declared(primary, "primary deliverable")
    if primary.get("type") == CUSTOM and not list_in(primary, "checklist"):
        yield _about("ACP141", "custom primary deliverable requires checklist")


def _supporting(block: dict[str, Any]) -> Iterator[Finding]:
    listed = list_in(block, "supporting")
    items = [item for item in listed if isinstance(item, dict)]
    for item in items:
        yield from _declared(item, "supporting deliverable")
    files = [item["file"] for item in items if isinstance(item.get("file"), str)]
    if len(set(files)) < len(files):
        yield _about("ACP145", "supporting deliverable files must be unique")
    primary = block.get("primary")
    if isinstance(primary, dict) and primary.get("file") in files:
        yield _about("ACP146", "supporting deliverable must not reuse the primary deliverable file")
    if len(listed) > deliverables.MAX_DELIVERABLES:
        text = f"more than {deliverables.MAX_DELIVERABLES} supporting deliverables"
        yield _about("ACP149", text)


def _declared(item: dict[str, Any], what: str) -> Iterator[Finding]:
    file = text_in(item, "file")
    if item.get("type") not in TYPES:
        yield _about("ACP142", f"{what} type is invalid")
    if not file.endswith(".md"):
        yield _about("ACP143", f"{what} file must be Markdown")
    elif not is_inside(file):
        yield _about("ACP144", f"{what} file must be relative and must not contain ..")


def _attachments(block: dict[str, Any]) -> Iterator[Finding]:
    for item in list_in(block, "attachments"):
        file = text_in(item, "file") if isinstance(item, dict) else None
        if file is None:
            yield _about("ACP147", "attachments must be objects")
        elif not file.strip():
            yield _about("ACP148", "attachment file is required")
        elif not is_inside(file):
            yield _about("ACP144", "attachment file must be relative and must not contain ..")


def _protocol(facts: Facts) -> dict[str, Any]:
    return facts.protocol or {}


def _about(code: str, text: str) -> Finding:
    return Finding(code, text, file=PROTOCOL_FILE)


RULES = (
    files_present,
    files_readable,
    obsolete_files,
    charter,
    no_version,
    gates_well_formed,
    v2_declaration,
    state_present,
)
AFTER_THE_LOG = (state_matches,)
