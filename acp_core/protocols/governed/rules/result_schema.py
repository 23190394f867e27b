"""The first stage of checking a turn result: its fields, their types and their words.

Source: governed protocol specification, "Overview"; the messages are the existing program's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from acp_core.protocols.governed.rules.result_delegations import check_form
from acp_core.protocols.governed.schema import Object

REQUIRED = (
    "schema_version", "run_id", "turn_id", "role", "runtime_id", "status", "summary", "decisions",
    "objections", "files_changed", "verification", "artifact", "proposed_next_role",
)  # fmt: skip
STATUSES = ("completed", "blocked", "needs_human", "failed")
CATEGORIES = ("implementation", "architecture", "scope", "process", "quality", "release")
SEVERITIES = ("low", "medium", "high", "blocking")
OBJECTION_STATUSES = (
    "raised", "acknowledged", "resolved", "escalated", "resolved_by_human", "resolved_by_director",
)  # fmt: skip
VERIFICATIONS = ("pass", "fail", "skipped")
ARTIFACTS = ("workspace", "patch", "commit", "review")
REVIEWS = (".planning/", ".agentxchain/reviews/")
"""Where a role may write that only reviews."""
_ROLE = re.compile(r"[a-z0-9_-]+\Z")
_DEC, _OBJ = re.compile(r"DEC-[0-9]+\Z"), re.compile(r"OBJ-[0-9]+\Z")
_PLACEHOLDER = re.compile(r"\s*<[^<>]+>\s*\Z")


def product_files(files: Iterable[str]) -> list[str]:
    """Those of the files that belong to the product, and not to the run or its planning."""
    return [name for name in files if not name.startswith((*REVIEWS, ".agentxchain/"))]


def check_schema(result: Object) -> list[str]:
    """What is wrong with the fields of a turn result; missing ones are told alone."""
    missing = [f"Missing required field: {name}" for name in REQUIRED if name not in result]
    if missing:
        return missing
    errors: list[str] = []
    if result["schema_version"] != "1.0":
        errors.append(f'schema_version must be "1.0", got "{result["schema_version"]}".')
    for name in ("run_id", "turn_id", "runtime_id", "summary"):
        _filled(errors, name, result[name])
    if not _matches(_ROLE, result["role"]):
        errors.append("role must match pattern ^[a-z0-9_-]+$.")
    _one_of(errors, "status", result["status"], STATUSES)
    if not _matches(_ROLE, result["proposed_next_role"]):
        errors.append('proposed_next_role must match ^[a-z0-9_-]+$ or be "human".')
    _decisions(errors, result["decisions"])
    _objections(errors, result["objections"])
    for name in ("files_changed", "artifacts_created"):
        value = result.get(name, [])
        if not isinstance(value, list):
            errors.append(f"{name} must be an array.")
            continue
        errors += [
            f"{name}[{i}] must be a string." for i, v in enumerate(value) if not isinstance(v, str)
        ]
    _typed(errors, "verification", "status", result["verification"], VERIFICATIONS)
    _typed(errors, "artifact", "type", result["artifact"], ARTIFACTS)
    for name in ("phase_transition_request", "needs_human_reason"):
        value = result.get(name)
        if not isinstance(value, str | None):
            errors.append(f"{name} must be a string or null.")
        elif value and _PLACEHOLDER.match(value):
            _filled(errors, name, value)
    if not isinstance(result.get("run_completion_request"), bool | None):
        errors.append("run_completion_request must be a boolean or null.")
    if not isinstance(result.get("cost", {}), dict):
        errors.append("cost must be an object.")
    if not isinstance(result.get("delegations", []), list):
        errors.append("delegations must be an array.")
    return errors + check_form(result)


def _decisions(errors: list[str], value: object) -> None:
    if not isinstance(value, list):
        errors.append("decisions must be an array.")
        return
    errors += _twice("decisions", value)
    for i, decision in enumerate(value):
        name = f"decisions[{i}]"
        if not isinstance(decision, dict):
            errors.append(f"{name} must be an object.")
            continue
        if not _matches(_DEC, decision.get("id")):
            errors.append(f"{name}.id must match pattern DEC-NNN.")
        _one_of(errors, f"{name}.category", decision.get("category"), CATEGORIES)
        for field in ("statement", "rationale"):
            _filled(errors, f"{name}.{field}", decision.get(field))
        if decision.get("durability") is not None:
            _one_of(errors, f"{name}.durability", decision["durability"], ("run", "repo"))
        overrides = decision.get("overrides")
        if overrides is not None and not _matches(_DEC, overrides):
            errors.append(f"{name}.overrides must match pattern DEC-NNN.")
        elif overrides is not None and overrides == decision.get("id"):
            errors.append(f"{name}.overrides cannot reference itself.")


def _objections(errors: list[str], value: object) -> None:
    if not isinstance(value, list):
        errors.append("objections must be an array.")
        return
    errors += _twice("objections", value)
    for i, objection in enumerate(value):
        name = f"objections[{i}]"
        if not isinstance(objection, dict):
            errors.append(f"{name} must be an object.")
            continue
        if not _matches(_OBJ, objection.get("id")):
            errors.append(f"{name}.id must match pattern OBJ-NNN.")
        _one_of(errors, f"{name}.severity", objection.get("severity"), SEVERITIES)
        _filled(errors, f"{name}.statement", objection.get("statement"))
        _one_of(errors, f"{name}.status", objection.get("status"), OBJECTION_STATUSES)


def _twice(field: str, value: list[object]) -> list[str]:
    """Ids that two entries of one list bear: the ledger could not tell them apart."""
    seen: set[str] = set()
    errors = []
    for i, item in enumerate(value):
        id = item.get("id") if isinstance(item, dict) else None
        if isinstance(id, str) and id in seen:
            errors.append(f'{field}[{i}].id "{id}" is the id of an earlier one.')
        elif isinstance(id, str):
            seen.add(id)
    return errors


def _typed(errors: list[str], name: str, field: str, value: object, words: tuple[str, ...]) -> None:
    if not isinstance(value, dict):
        errors.append(f"{name} must be an object.")
    elif field not in value:
        errors.append(f"{name}.{field} is required.")
    else:
        _one_of(errors, f"{name}.{field}", value[field], words)


def _one_of(errors: list[str], name: str, value: object, words: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in words:
        errors.append(f"{name} must be one of: {', '.join(words)}.")


def _filled(errors: list[str], name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        errors.append(f"{name} must be a non-empty string.")
    elif _PLACEHOLDER.match(value):
        errors.append(f'{name} contains an unfilled template placeholder: "{value.strip()}".')


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and bool(pattern.match(value))
