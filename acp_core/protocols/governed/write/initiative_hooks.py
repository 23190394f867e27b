"""The coordinator's four hooks: scripts that are told of what happened to the whole initiative.

A hook gets a payload file and environment variables; it must end with code 0, and is ended at its
timeout. How it ended stands in the ledger, and the initiative goes on either way. A hook whose
process was killed before that was written down is run again by the next command. Source: governed
protocol specification, "Coordinator hooks". Standard library only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.locked import LogError, locked_folder
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.read.initiative import Hook
from acp_core.protocols.governed.rules.initiative_reconcile import stamped, super_run_id
from acp_core.protocols.governed.schema import Line, Object, obj, text
from acp_core.protocols.governed.state import format_time
from acp_core.protocols.governed.write import hook_programs, initiative_trust, journal
from acp_core.protocols.governed.write.initiative_opened import Opened, Writes, open_initiative

FIRES = {
    "barrier_reached": "on_barrier_reached",
    "barrier_approved": "on_barrier_approved",
    "super_run_completed": "on_super_run_completed",
    "workstream_failed": "on_workstream_failed",
}

FOLDER = ".coordinator/hooks"

_OUTPUT = 2_000  # characters of what a hook printed that are kept


class Ended(NamedTuple):
    """How a hook ended: ``ok``, ``failed``, ``timeout`` or ``not run``."""

    outcome: str
    exit_code: int | None = None
    duration_ms: int = 0
    detail: str = ""


def owed(opened: Opened) -> Iterator[tuple[Hook, Line]]:
    """The hooks that have to be run, each with the ledger's line that it is about."""
    by_name = {hook.name: hook for hook in opened.plan.hooks}
    lines = opened.initiative.ledger.lines
    done = {(line.value.get("hook"), line.value.get("line")) for line in lines
            if line.value.get("type") == "hook"}  # fmt: skip
    for line in lines:
        hook = by_name.get(FIRES.get(str(line.value.get("type")), ""))
        if hook and (hook.name, line.number) not in done:
            yield hook, line


def run_owed(root: Path, now: datetime) -> list[str]:
    """Run every hook that is owed, one after the other; returns sentences about what failed.

    Nothing is locked meanwhile but other runs of hooks: a hook may use acp itself.

    Raises:
        Refused: the ledger cannot be written.
    """
    try:
        if next(owed(open_initiative(root)), None) is None:
            return []
        place = schema.inside(root, FOLDER)
        if place is None:
            raise Refused(f"{FOLDER} leads out of {root}")
        place.mkdir(parents=True, exist_ok=True)
        with locked_folder(str(place), timeout=0.0):
            return [content for content in _run_all(root) if content]
    except LogError:
        return []  # another command runs them just now
    except OSError as error:
        raise Refused(f"{error.filename or FOLDER}: {error.strerror or error}") from None


def _run_all(root: Path) -> Iterator[str]:
    for hook, line in list(owed(open_initiative(root))):
        opened = open_initiative(root)
        ended = _run(opened, hook, line)
        content = {"type": "hook", "hook": hook.name, "line": line.number, **ended._asdict()}
        writes = Writes(root)
        run_id = super_run_id(opened.initiative, opened.plan)
        writes.ledger(list(stamped([content], format_time(datetime.now(UTC)), run_id)))
        with journal.held(root, own_writes.COORDINATOR_HOME) as holder:
            holder.commit(f"record how {hook.name} ended", writes.all())
        if ended.outcome != "ok":
            yield f"hook {hook.name}: {ended.outcome}: {ended.detail}".rstrip(": ")


def _run(opened: Opened, hook: Hook, line: Line) -> Ended:
    script = schema.inside(opened.root, hook.path)
    if script is None or not script.is_file():
        return Ended("not run", detail=f"no script {clean_line(hook.path, 200)}")
    if not initiative_trust.is_trusted(opened.root, hook.path):
        return Ended("not run", detail="not allowed yet: acp governed coordinator trust")
    began = time.monotonic()
    try:
        with hook_programs.payload_file(payload(opened, hook.name, line.value)) as path:
            env = environment(opened, hook.name, line.value, path)
            ran = hook_programs.run(
                [str(script)], opened.root, env, hook.timeout_ms / 1000, _OUTPUT
            )
    except OSError as error:
        return Ended("failed", detail=f"cannot be run: {error.strerror or error}")
    took = int((time.monotonic() - began) * 1000)
    if ran.code is None:
        return Ended("timeout", None, took, ran.output)
    return Ended("ok" if ran.code == 0 else "failed", ran.code, took, ran.output)


def environment(opened: Opened, hook: str, line: Object, payload_file: str) -> dict[str, str]:
    """What a hook finds in its environment."""
    content = {
        "AGENTXCHAIN_EVENT": hook,
        "AGENTXCHAIN_RUN_ID": super_run_id(opened.initiative, opened.plan),
        "AGENTXCHAIN_SUPER_RUN_ID": super_run_id(opened.initiative, opened.plan),
        "AGENTXCHAIN_TURN_ID": text(line, "turn_id", 80),
        "AGENTXCHAIN_ROLE": "coordinator",
        "AGENTXCHAIN_PLUGIN_CONFIG": "{}",
        "AGENTXCHAIN_PHASE": text(line, "phase", 80),
        "AGENTXCHAIN_BARRIER": text(line, "barrier", 80),
        "AGENTXCHAIN_WORKSTREAM": text(line, "workstream", 80),
        "AGENTXCHAIN_PROJECT_ROOT": str(opened.root),
        "AGENTXCHAIN_PAYLOAD_FILE": payload_file,
    }
    return {**os.environ, **{name: value for name, value in content.items() if "\0" not in value}}


def payload(opened: Opened, hook: str, line: Object) -> Object:
    """What a hook is told: specification, the table under "Coordinator hooks"."""
    state = opened.initiative.state.value
    content: Object = {
        "schema_version": "1.0",
        "event": hook,
        "super_run_id": super_run_id(opened.initiative, opened.plan),
        "at": line.get("at"),
        "barrier": line.get("barrier"),
        "phase": line.get("phase"),
        "workstreams": obj(state, "workstreams"),
    }
    if hook == "on_barrier_approved":
        content |= {"approved_by": line.get("by"), "comment": line.get("comment")}
    elif hook == "on_workstream_failed":
        content |= {"workstream": line.get("workstream"), "error": line.get("reason")}
    elif hook == "on_super_run_completed":
        content |= {"status": state.get("status"), "barriers": obj(state, "barriers")}
        content |= _everything(opened)
    return content


def _everything(opened: Opened) -> Object:
    """All decisions and all objections of all workstreams."""
    decisions, objections = [], []
    for stream in opened.initiative.workstreams:
        if stream.run is None:
            continue
        for line in stream.run.ledger.lines:
            if "id" in line.value and "statement" in line.value:
                decisions.append({"workstream": stream.name} | line.value)
        for each in stream.run.objections:
            objections.append(
                {"workstream": stream.name, "id": each.id, "severity": each.severity,
                 "status": each.status, "statement": each.statement, "raised_by": each.raised_by}
            )  # fmt: skip
    return {"decisions": decisions, "objections": objections}
