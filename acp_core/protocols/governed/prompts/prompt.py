"""What an agent is told for its turn: its role, the rules, the gate, and the form of its result."""

from __future__ import annotations

import json
from pathlib import Path

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.prompts.answers import in_prompt
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules.result_schema import (
    ARTIFACTS,
    CATEGORIES,
    OBJECTION_STATUSES,
    SEVERITIES,
    STATUSES,
    VERIFICATIONS,
)
from acp_core.protocols.governed.schema import Object, obj, objects, strings, text
from acp_core.protocols.governed.state import exit_gate, phases

_LARGEST = 256 << 10

_AUTHORITY = {
    "review_only": "You may change files below `.planning/` and `.agentxchain/reviews/` only."
    ' The type of your artifact is "review".',
    "proposed": "You propose changes; a human applies them. Your artifact is a patch or a review.",
    "authoritative": "You may change the product's files, and you name every one of them in"
    " `files_changed`. If you changed any, the type of your artifact is"
    ' "workspace" (or "commit" if you committed).',
}


def prompt(run: Run, state: Object, turn: Object, assignment: Object) -> str:
    """The text of PROMPT.md."""
    config = run.config.value
    role_id, phase = str(turn["assigned_role"]), str(state.get("phase"))
    role = objects(config.get("roles")).get(role_id, {})
    authority = text(role, "write_authority", 40)
    parts = [
        f"# Turn Assignment: {text(role, 'title', 120) or role_id} ({role_id})",
        f"Phase {phase}, turn {turn['turn_id']}, attempt {turn['attempt']}.",
        "## Your Mandate\n\n" + (text(role, "mandate", 2_000) or "Not specified."),
        "## Protocol Rules\n\n" + _rules(config),
        f"## Write Authority: {authority}\n\n" + _AUTHORITY.get(authority, "Not named."),
        "## Phase Exit Gate\n\n" + _gate(config, phase),
    ]
    answered = in_prompt(run)
    if answered:
        parts.append("## The Human's Answer\n\n" + answered)
    rejection = obj(turn, "last_rejection")
    if rejection:
        parts.append("## Previous Attempt Failed\n\n" + _rejection(rejection))
    own = _own(config, role_id, run.root)
    if own:
        parts.append("## Role-Specific Instructions\n\n" + own)
    parts.append("## Required Output\n\n" + _output(config, state, turn, assignment))
    parts.append("## Field Rules\n\n" + _fields(config, phase))
    return "\n\n".join(parts) + "\n"


def _rules(config: Object) -> str:
    lines = [
        "- You take one turn. acp only knows the result that you stage.",
        "- Never write the run's own files: state, history, ledger, lock.",
        "- Phases change, and the run completes, only when a human approves the gate.",
    ]
    if obj(config, "rules").get("mandatory_objections") is True:
        lines.append("- Raise at least one objection: what is weak, risky or unproven.")
    elif obj(config, "rules").get("challenge_required") is not False:
        lines.append("- A role that only reviews raises at least one objection.")
    return "\n".join(lines)


def _gate(config: Object, phase: str) -> str:
    name, order = exit_gate(config, phase), phases(config)
    rule = objects(config.get("gates")).get(name, {})
    lines = [f"The phase ends through the gate `{name}`. Its conditions:"]
    lines += [f"- the file `{file}`, filled in" for file in strings(rule, "requires_files")]
    if rule.get("requires_verification_pass") is True:
        lines.append("- a verification that passed")
    lines.append("- the approval of a human")
    place = order.index(phase) if phase in order else -1
    if 0 <= place < len(order) - 1:
        lines.append(
            f'\nWhen all is there, set `phase_transition_request` to "{order[place + 1]}".'
        )
    else:
        lines.append("\nWhen all is there, set `run_completion_request` to true.")
    return "\n".join(lines)


def _rejection(rejection: Object) -> str:
    lines = [f"Attempt {rejection.get('attempt')} was rejected: {text(rejection, 'reason', 2_000)}"]
    lines += [f"- {error}" for error in strings(rejection, "validation_errors")]
    return "\n".join(lines)


def _own(config: Object, role: str, root: Path) -> str:
    name = obj(config, "prompts").get(role)
    path = schema.inside(root, name) if isinstance(name, str) else None
    if path is None:
        return ""
    try:
        return read_bounded(path, _LARGEST).decode("utf-8", "replace").strip()
    except Unreadable:
        return ""


def _output(config: Object, state: Object, turn: Object, assignment: Object) -> str:
    authority = assignment["write_authority"]
    example = {
        "schema_version": "1.0",
        "run_id": state.get("run_id"),
        "turn_id": turn["turn_id"],
        "role": turn["assigned_role"],
        "runtime_id": turn["runtime_id"],
        "status": "completed",
        "summary": "<what you did, in a sentence or two>",
        "decisions": [
            {
                "id": "DEC-001",
                "category": "scope",
                "statement": "<what was decided>",
                "rationale": "<why>",
            }
        ],
        "objections": [
            {
                "id": "OBJ-001",
                "severity": "medium",
                "statement": "<what speaks against it>",
                "status": "raised",
            }
        ],
        "files_changed": [],
        "artifacts_created": [],
        "verification": {
            "status": "skipped",
            "commands": [],
            "evidence_summary": "<what was run>",
            "machine_evidence": [],
        },
        "artifact": {
            "type": "workspace" if authority == "authoritative" else "review",
            "ref": None,
        },
        "proposed_next_role": "human",
        "phase_transition_request": None,
        "run_completion_request": None,
        "needs_human_reason": None,
    }
    text = json.dumps(example, indent=2, ensure_ascii=False)
    path = assignment["staging_result_path"]
    return f"Write one JSON object to `{path}`, in one step, as the last thing:\n\n```json\n{text}\n```"


def _fields(config: Object, phase: str) -> str:
    allowed = strings(objects(config.get("routing")).get(phase, {}), "allowed_next_roles")
    words = (
        ("status", STATUSES),
        ("decisions[].category", CATEGORIES),
        ("objections[].severity", SEVERITIES),
        ("objections[].status", OBJECTION_STATUSES),
        ("verification.status", VERIFICATIONS),
        ("artifact.type", ARTIFACTS),
        ("proposed_next_role", tuple(allowed) or ("any role", "human")),
    )
    lines = [f"- `{name}`: {', '.join(values)}" for name, values in words]
    return "\n".join((*lines, _IDS, _EVIDENCE, _NOTHING_LEFT))


_IDS = (
    "- Ids of decisions are DEC- and digits, of objections OBJ- and digits; take numbers that"
    " CONTEXT.md does not show yet, or the id of the objection that you speak of again."
)
_EVIDENCE = (
    "- `verification.machine_evidence[]` is `{command, exit_code}`; a code that is not 0 and was"
    " to be expected has `expected_exit_code` beside it."
)
_NOTHING_LEFT = "- No text in angle brackets of the example may stay."
