"""The dispatch bundle of a turn: what an agent is given, as files.

Source: governed protocol specification, "Files" (ASSIGNMENT.json, PROMPT.md, CONTEXT.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from acp_core.protocols.governed.prompts.context import context
from acp_core.protocols.governed.prompts.prompt import prompt
from acp_core.protocols.governed.read.bundle import MANIFEST
from acp_core.protocols.governed.read.bundle import folder as folder
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules.results import RESERVED
from acp_core.protocols.governed.schema import Object, objects
from acp_core.protocols.governed.state.turns import allowed_next

STAGING = ".agentxchain/staging"


def staged(turn_id: str) -> str:
    """Where the result of a turn is staged, relative to the repository."""
    return f"{STAGING}/{turn_id}/turn-result.json"


def bundle(
    run: Run, state: Object, turn: Object, at: str, talk: str, more: Mapping[str, bytes]
) -> dict[str, bytes]:
    """The files of a turn's bundle, by their names.

    Args:
        run: the run as it was read.
        state: its state with the turn.
        turn: the turn.
        at: the time.
        talk: what TALK.md holds.
        more: further files, by their names.
    """
    assignment = _assignment(run.config.value, state, turn)
    files = {
        "ASSIGNMENT.json": _json(assignment),
        "PROMPT.md": prompt(run, state, turn, assignment).encode(),
        "CONTEXT.md": context(run, state, turn, talk).encode(errors="replace"),
        **more,
    }
    manifest = {
        "manifest_version": "1.0",
        "run_id": state.get("run_id"),
        "turn_id": turn["turn_id"],
        "role": turn["assigned_role"],
        "finalized_at": at,
        "files": [described(name, data) for name, data in sorted(files.items())],
    }
    return files | {MANIFEST: _json(manifest)}


def described(name: str, data: bytes) -> Object:
    """A file of a bundle as the manifest names it."""
    return {"path": name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def _assignment(config: Object, state: Object, turn: Object) -> Object:
    role, phase = str(turn["assigned_role"]), str(state.get("phase"))
    found: Object = {
        "schema_version": "1.0",
        "run_id": state.get("run_id"),
        "turn_id": turn["turn_id"],
        "phase": phase,
        "role": role,
        "runtime_id": turn["runtime_id"],
        "write_authority": objects(config.get("roles")).get(role, {}).get("write_authority"),
        "accepted_integration_ref": state.get("accepted_integration_ref"),
        "staging_result_path": staged(turn["turn_id"]),
        "reserved_paths": list(RESERVED),
        "allowed_next_roles": allowed_next(config, phase),
        "attempt": turn["attempt"],
        "deadline_at": turn["deadline_at"],
        "assigned_sequence": turn["assigned_sequence"],
        "budget_reservation_usd": 0,
        "active_siblings": [],
    }
    if state.get("super_run_id"):
        found["super_run_id"] = state["super_run_id"]
    return found


def _json(value: Object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode(errors="replace")
