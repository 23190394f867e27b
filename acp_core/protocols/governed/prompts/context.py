"""What an agent is shown of the run so far: state, decisions, objections, gate, documents."""

from __future__ import annotations

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.prompts.answers import in_context
from acp_core.protocols.governed.read.gates import latest_verification, predicates
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import Object, items, obj, strings, text
from acp_core.protocols.governed.state import exit_gate

_DECISIONS = 100
_DOCUMENT = 20_000  # characters of a document, the latest of the talk
_WHOLE = 200_000


def context(run: Run, state: Object, turn: Object, talk: str) -> str:
    """The text of CONTEXT.md."""
    config, phase = run.config.value, str(state.get("phase"))
    goal = text(obj(config, "project"), "goal", 2_000) or "Not specified."
    parts = [
        "# Execution Context",
        "## Current State\n\n" + _current(run, state, turn),
        f"## Project Goal\n\n{goal}",
        "## Last Accepted Turn\n\n" + _last(run),
        "## Decision History\n\n" + _decisions(run),
        "## Open Objections\n\n" + _objections(run),
    ]
    said = in_context(run)
    if said:
        parts.append("## What The Human Said\n\n" + said)
    rejected = _rejected(run, phase)
    if rejected:
        parts.append("## Gate Rejected By The Human\n\n" + rejected)
    failure = obj(state, "last_gate_failure")
    if failure:
        lines = [f"- {reason}" for reason in strings(failure, "reasons")]
        parts.append("## Blockers\n\nThe gate was requested but is not met:\n" + "\n".join(lines))
    parts.append("## Gate Required Files\n\n" + _files(run, phase))
    parts.append("## Phase Gate Status\n\n" + _status(state))
    if talk.strip():
        latest = talk if len(talk) <= _DOCUMENT else "…" + talk[-_DOCUMENT:]
        parts.append("## Talk\n\n" + latest.strip())
    return "\n\n".join(parts)[:_WHOLE] + "\n"


def _current(run: Run, state: Object, turn: Object) -> str:
    return (
        f"- run: {state.get('run_id')}\n- phase: {state.get('phase')}\n"
        f"- turn: {turn['turn_id']} (attempt {turn['attempt']}) of {turn['assigned_role']}\n"
        f"- accepted so far: {len(run.history.lines)} turns"
    )


def _last(run: Run) -> str:
    if not run.history.lines:
        return "None yet."
    last = run.history.lines[-1].value
    lines = [
        f"{text(last, 'role', 80)} ({text(last, 'phase', 80)}): {text(last, 'summary', 2_000)}"
    ]
    lines += [f"- changed {name}" for name in strings(last, "files_changed")[:100]]
    lines += [
        f"- objects ({text(o, 'severity', 40)}): {text(o, 'id', 40)} {text(o, 'statement', 1_000)}"
        for o in items(last, "objections")
    ]
    return "\n".join(lines)


def _decisions(run: Run) -> str:
    found = [line.value for line in run.ledger.lines if "id" in line.value]
    lines = [
        f"- {text(d, 'id', 40)} [{text(d, 'category', 40)}] {text(d, 'role', 80)}:"
        f" {text(d, 'statement', 1_000)} ({text(d, 'rationale', 1_000)})"
        for d in found[-_DECISIONS:]
    ]
    return "\n".join(lines) or "None yet."


def _objections(run: Run) -> str:
    lines = [
        f"- {o.id} ({o.severity}, {o.status}) {o.raised_by}: {o.statement}"
        for o in run.objections
        if o.open
    ]
    return "\n".join(lines) or "None."


def _rejected(run: Run, phase: str) -> str:
    for line in reversed(run.ledger.lines):
        kind = line.value.get("type")
        if kind == "gate_approved":
            return ""
        if kind == "gate_rejected" and text(line.value, "phase", 200) == phase:
            return text(line.value, "comment", 2_000)
    return ""


def _files(run: Run, phase: str) -> str:
    gate = exit_gate(run.config.value, phase)
    lines = []
    for each in predicates(run.root, run.config.value, gate, latest_verification(run)):
        lines.append(f"### `{each.name}`: {'met' if each.met else each.reason}")
        path = schema.inside(run.root, each.name) if each.kind == "file" else None
        if path is None:
            continue
        try:
            content = read_bounded(path, 1 << 20).decode("utf-8", "replace")
        except Unreadable:
            continue
        lines.append("\n".join(f"> {line}" for line in content[:_DOCUMENT].splitlines()))
    return "\n\n".join(lines) or "None."


def _status(state: Object) -> str:
    found = obj(state, "phase_gate_status")
    return "\n".join(f"- {name}: {value}" for name, value in found.items()) or "None."
