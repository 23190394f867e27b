"""Checks a turn result in five stages, and changes nothing in it.

Source: governed protocol specification, "Overview" (mandatory objections, structured evidence);
field shapes and messages are those of the existing program. That program repairs much silently
before it checks. Here, whatever it would repair is an error, and the repair is offered as a
`Correction`, which a human may apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from acp_core.model.text import clean_line
from acp_core.protocols.governed.rules.corrections import Correction, apply, corrections
from acp_core.protocols.governed.rules.result_delegations import check_delegations
from acp_core.protocols.governed.rules.result_protocol import check_protocol
from acp_core.protocols.governed.rules.result_schema import REVIEWS as REVIEWS
from acp_core.protocols.governed.rules.result_schema import check_schema, product_files
from acp_core.protocols.governed.schema import Line, Object, obj, objects, strings

RESERVED = tuple(
    f".agentxchain/{name}"
    for name in ("state.json", "history.jsonl", "decision-ledger.jsonl", "lock.json")
)
_STAGES = 5  # each may show what can be corrected only at the next
OBSERVED = "observed"
"""The stage at which a result that is sound in itself is compared with the repository."""
UNDECLARED = "Undeclared file changes detected (observed but not in files_changed)"
UNOBSERVED = "review_only role declared file changes that were not observed in the actual diff"
"""What can be corrected of that: the files that the result declares."""
_TEST = re.compile(r"(?:^|/)(?:tests?|__tests__|spec)/|\.(?:test|spec)\.\w+$|(?:^|/)test_\w+\.py$")


class Verdict(NamedTuple):
    """What the check of a turn result says; ``stage`` is the one that failed, "" where none."""

    stage: str
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    corrections: tuple[Correction, ...]

    @property
    def ok(self) -> bool:
        """Whether the result may be accepted."""
        return not self.errors


def check(result: object, state: Object, config: Object, history: Sequence[Line] = ()) -> Verdict:
    """Check a parsed turn result against the run's state and configuration.

    The first stage that finds an error is the last that is looked at: schema, assignment,
    artifact, verification, protocol.

    Args:
        result: the parsed result.
        state, config: the run's.
        history: the turns that were accepted before.
    """
    if not isinstance(result, dict):
        return Verdict("schema", ("Turn result must be a JSON object.",), (), ())
    offered = tuple(corrections(result, state, config))
    warnings: list[str] = []
    stages: tuple[tuple[str, Callable[[], list[str]]], ...] = (
        ("schema", lambda: check_schema(result)),
        ("assignment", lambda: _assignment(result, state)),
        ("artifact", lambda: _artifact(result, state, config, history, warnings)),
        ("verification", lambda: _verification(result, warnings)),
        ("protocol", lambda: _protocol(result, state, config, warnings)),
    )
    for stage, errors in stages:
        found = [clean_line(error, 500) for error in errors()]
        if found:
            return Verdict(stage, tuple(found), tuple(warnings), offered)
    return Verdict("", (), tuple(warnings), offered)


def is_mended(result: object, state: Object, config: Object, history: Sequence[Line] = ()) -> bool:
    """Whether the corrections that are proposed, applied one after another, make a result sound.

    Args:
        result, state, config, history: as for `check`.
    """
    for _ in range(_STAGES):
        verdict = check(result, state, config, history)
        if verdict.ok or not verdict.corrections or not isinstance(result, dict):
            return verdict.ok
        result = apply(result, verdict.corrections)
    return check(result, state, config, history).ok


def _protocol(result: Object, state: Object, config: Object, warnings: list[str]) -> list[str]:
    found = check_protocol(result, state, config, warnings)
    return found + check_delegations(result, state, config)


def _assignment(result: Object, state: Object) -> list[str]:
    turns = objects(state.get("active_turns"))
    given = result["turn_id"]
    turn = turns.get(given) or next(iter(turns.values()), None) or obj(state, "current_turn")
    if not turn:
        return ["No active turn in state.json — cannot validate assignment."]
    recorded = (
        ("run_id", result["run_id"], state.get("run_id"), "has"),
        ("turn_id", given, turn.get("turn_id"), "has"),
        ("role", result["role"], turn.get("assigned_role"), "assigns"),
        ("runtime_id", result["runtime_id"], turn.get("runtime_id"), "assigns"),
    )
    return [
        f'{name} mismatch: turn result has "{is_}", state {verb} "{wanted}".'
        for name, is_, wanted, verb in recorded
        if is_ != wanted
    ]


def _artifact(
    result: Object, state: Object, config: Object, history: Sequence[Line], warnings: list[str]
) -> list[str]:
    role = result["role"]
    authority = objects(config.get("roles")).get(role, {}).get("write_authority")
    kind, files = result["artifact"]["type"], strings(result, "files_changed")
    product = product_files(files)
    errors = [f"files_changed names the reserved path {f}." for f in files if f in RESERVED]
    for name in files:
        parts = name.replace("\\", "/").split("/")
        if name.startswith(("/", "~")) or ".." in parts or "\0" in name:
            errors.append(f"files_changed names {name}, which leads out of the repository.")
    named = ", ".join(product)
    if authority == "review_only":
        outside = [name for name in files if not name.startswith(REVIEWS)]
        if outside:
            named = ", ".join(outside)
            errors.append(
                f'Role "{role}" has review_only write authority but claims product file'
                f" changes: {named}"
            )
        if kind != "review":
            errors.append(f'Role "{role}" has review_only write authority: its artifact must'
                          f' be a review, not "{kind}".')  # fmt: skip
    if kind == "workspace":
        if authority != "authoritative":
            errors.append('artifact.type "workspace" needs authoritative write authority.')
        if not files:
            errors.append('artifact.type is "workspace" but files_changed is empty.')
    if authority == "authoritative" and product and kind == "review":
        errors.append(
            f'Role "{role}" has authoritative write authority and changed product files ({named}),'
            ' but artifact type is "review". Use "workspace" or "commit" when product files are'
            " modified."
        )
    building = authority == "authoritative" and state.get("phase") == "implementation"
    done = result["status"] == "completed"
    if building and done and not product and not _built_before(state, history):
        errors.append(
            f'Role "{role}" completed a turn of the implementation phase, but files_changed names'
            " no product file, and no earlier turn of it did."
        )
    tests_only = bool(product) and all(_TEST.search(name) for name in product)
    if building and result["status"] == "completed" and tests_only:
        warnings.append("Only test files changed, and no source of the product.")
    runtime = objects(config.get("runtimes")).get(str(result["runtime_id"]), {})
    if authority == "proposed" and runtime.get("type") in ("api_proxy", "remote_agent"):
        errors += _proposed(result)
    return errors


def _built_before(state: Object, history: Sequence[Line]) -> bool:
    """Whether an accepted turn of this run's implementation phase changed the product."""
    for line in history:
        recorded = line.value
        if (
            recorded.get("run_id") != state.get("run_id")
            or recorded.get("phase") != "implementation"
        ):
            continue
        if product_files(strings(recorded, "files_changed")):
            return True
    return False


def _proposed(result: Object) -> list[str]:
    """What a role that only proposes, through a service, must hand in for others to apply."""
    given = result.get("proposed_changes")
    if result["status"] != "completed":
        return []
    if not isinstance(given, list) or not given:
        return ["proposed_changes must be a non-empty array for a role that proposes changes."]
    errors = []
    for i, change in enumerate(given):
        name = f"proposed_changes[{i}]"
        if not isinstance(change, dict):
            errors.append(f"{name} must be an object.")
            continue
        path, action = change.get("path"), change.get("action")
        if not isinstance(path, str) or not path.strip():
            errors.append(f"{name}.path must be a non-empty string.")
        if action not in ("create", "modify", "delete"):
            errors.append(f"{name}.action must be one of: create, modify, delete.")
        elif action != "delete" and not isinstance(change.get("content"), str):
            errors.append(f'{name}.content is required for action "{action}".')
    return errors


def _verification(result: Object, warnings: list[str]) -> list[str]:
    verification, errors, undeclared = result["verification"], [], 0
    commands = verification.get("commands")
    for i, command in enumerate(commands if isinstance(commands, list) else ()):
        if not isinstance(command, str) or not command.strip():
            errors.append(f"verification.commands[{i}] must be a non-empty string.")
    evidence = verification.get("machine_evidence")
    evidence = evidence if isinstance(evidence, list) else []
    for i, item in enumerate(evidence):
        name = f"verification.machine_evidence[{i}]"
        if not isinstance(item, dict):
            errors.append(f"{name} must be an object.")
            continue
        command, code = item.get("command"), item.get("exit_code")
        expected = item.get("expected_exit_code")
        if not isinstance(command, str) or not command.strip():
            errors.append(f"{name}.command must be a non-empty string.")
        if not _integer(code):
            errors.append(f"{name}.exit_code must be an integer.")
        if expected is not None and not _integer(expected):
            errors.append(f"{name}.expected_exit_code must be an integer when provided.")
        undeclared += code != (expected if _integer(expected) else 0)
    errors += _produced(verification, strings(result, "files_changed"))
    if verification["status"] == "pass":
        if undeclared:
            errors.append(
                f'verification.status is "pass" but {undeclared} command(s) have exit codes'
                " that are not declared as expected."
            )
        if not evidence:
            warnings.append('verification.status is "pass" without machine evidence.')
    return errors


def _produced(verification: Object, declared: list[str]) -> list[str]:
    """Files that verifying produced: each is an artifact of the turn, or to be ignored."""
    given = verification.get("produced_files")
    if given is None:
        return []
    if not isinstance(given, list):
        return ["verification.produced_files must be an array."]
    errors, seen = [], set()
    for i, item in enumerate(given):
        name = f"verification.produced_files[{i}]"
        if not isinstance(item, dict):
            errors.append(f"{name} must be an object.")
            continue
        path, what = item.get("path"), item.get("disposition")
        if not isinstance(path, str) or not path.strip():
            errors.append(f"{name}.path must be a non-empty string.")
        elif path in seen:
            errors.append(f'{name}.path "{path}" is named twice.')
        else:
            seen.add(path)
            if what == "ignore" and path in declared:
                errors.append(f'{name}.path "{path}" is to be ignored, but is in files_changed.')
        if what not in ("artifact", "ignore"):
            errors.append(f"{name}.disposition must be one of: artifact, ignore.")
    return errors


def _integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
