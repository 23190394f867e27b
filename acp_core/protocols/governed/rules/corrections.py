"""What could be put right in a turn result, offered one by one, and done on a human's word.

The existing program repairs these things silently. Here each is a `Correction`. Where its repair
would turn a failure into a success, another one is offered: a “pass” with a failing command
becomes a “fail”.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from acp_core.model.text import clean_line
from acp_core.protocols.governed.rules.result_protocol import must_object
from acp_core.protocols.governed.rules.result_schema import ARTIFACTS, CATEGORIES, product_files
from acp_core.protocols.governed.schema import (
    AUTHORITATIVE,
    PROPOSED,
    REVIEW_ONLY,
    Object,
    items,
    obj,
    objects,
    strings,
)

_STATUS_WORDS = {
    "complete": "completed", "success": "completed", "done": "completed",
    "error": "failed", "failure": "failed",
}  # fmt: skip


class Correction(NamedTuple):
    """A repair that is offered: set ``field`` to ``value``, because of ``reason``."""

    field: str
    value: Any
    reason: str


def corrections(result: Object, state: Object, config: Object) -> list[Correction]:
    """What the existing program would put right by itself, each to be decided by a human."""
    found: list[Correction] = []
    turns = objects(state.get("active_turns"))
    given = result.get("turn_id")
    turn = turns.get(given, {}) if isinstance(given, str) else {}
    wanted = state.get("run_id")
    if turn and isinstance(wanted, str) and result.get("run_id") != wanted:
        found.append(Correction("run_id", wanted, "the turn belongs to this run"))
    if turn and "runtime_id" not in result:
        found.append(Correction("runtime_id", turn.get("runtime_id"), "the turn's runtime"))
    if "decisions" not in result:
        found.append(Correction("decisions", [], "none were given"))
    if "objections" not in result and not must_object(config, result.get("role")):
        found.append(Correction("objections", [], "none were given"))
    found += _summary(result)
    authority = objects(config.get("roles")).get(str(result.get("role")), {}).get("write_authority")
    found += _files(result, authority)
    status = result.get("status")
    if isinstance(status, str) and status.lower() in _STATUS_WORDS:
        word = _STATUS_WORDS[status.lower()]
        found.append(Correction("status", word, f"“{clean_line(status, 40)}” means this"))
    found += _decisions(result)
    found += _ids(result, "decisions", "DEC")
    found += _ids(result, "objections", "OBJ")
    found += _verified(result)
    routing = objects(config.get("routing")).get(str(state.get("phase")), {})
    allowed, proposed = strings(routing, "allowed_next_roles"), result.get("proposed_next_role")
    if proposed is None or (allowed and proposed != "human" and proposed not in allowed):
        found.append(Correction("proposed_next_role", "human", "always allowed"))
    return found


def _summary(result: Object) -> list[Correction]:
    """A missing summary: what the result itself says first."""
    if not isinstance(given := result.get("summary", ""), str) or given.strip():
        return []
    said = [result.get("needs_human_reason")]
    said += [each.get("statement") for each in items(result, "decisions")]
    words = next((each.strip() for each in said if isinstance(each, str) and each.strip()), "")
    if words:
        return [Correction("summary", words, "what the result says first")]
    return [Correction("summary", "No summary was given.", "none was given")]


def _files(result: Object, authority: object) -> list[Correction]:
    """Files under another name, or as objects; and the artifact that follows from them."""
    found = []
    files = result.get("files_changed")
    if "files_changed" not in result and isinstance(result.get("files_modified"), list):
        files = result["files_modified"]
        found.append(Correction("files_changed", files, "listed in files_modified"))
    for i, item in enumerate(files if isinstance(files, list) else ()):
        if isinstance(item, dict) and isinstance(item.get("path"), str):
            found.append(Correction(f"files_changed[{i}]", item["path"], "the path alone"))
    if not isinstance(files, list):
        return found
    names = [each.get("path") if isinstance(each, dict) else each for each in files]
    declared = [each for each in names if isinstance(each, str)]
    if "artifact" not in result:
        kind = fitting_artifact(declared, authority)
        found.append(Correction("artifact", {"type": kind, "ref": None}, "from the files changed"))
    return found + artifact_corrections(result, declared, authority)


def fitting_artifact(files: Sequence[str], authority: object) -> str:
    """The type of artifact that these changed files are, of a role with this authority."""
    if not files or authority == REVIEW_ONLY:
        return "review"
    return "patch" if authority == PROPOSED else "workspace"


def artifact_corrections(
    result: Object, files: Sequence[str], authority: object
) -> list[Correction]:
    """A type of artifact that does not agree with the files changed or with the authority.

    Args:
        result: the turn result.
        files: the files that it declares, or is to declare.
        authority: what its role may write.
    """
    kind = obj(result, "artifact").get("type")
    wrong = {
        "workspace": not files or authority in (REVIEW_ONLY, PROPOSED),
        "review": authority == AUTHORITATIVE and bool(product_files(files)),
    }.get(str(kind), authority == REVIEW_ONLY and kind in ARTIFACTS)
    if not wrong:
        return []
    why = "from the files changed" if files else "no file was changed"
    return [Correction("artifact.type", fitting_artifact(files, authority), why)]


def _decisions(result: Object) -> list[Correction]:
    found = []
    decisions = result.get("decisions")
    for i, decision in enumerate(decisions if isinstance(decisions, list) else ()):
        if not isinstance(decision, dict):
            continue
        name, statement = f"decisions[{i}]", decision.get("statement")
        if not decision.get("rationale") and isinstance(statement, str) and statement:
            found.append(Correction(f"{name}.rationale", statement, "repeats the statement"))
        category = decision.get("category")
        if category not in CATEGORIES:
            said = category if isinstance(category, str) else ""
            meant = said.strip().casefold()
            known = meant in CATEGORIES
            why = f"“{clean_line(said, 40)}” means this" if known else "the most general one"
            fitting = meant if known else "implementation"
            found.append(Correction(f"{name}.category", fitting, why))
    return found


def _ids(result: Object, field: str, prefix: str) -> list[Correction]:
    """Ids of another form, and ids of an earlier entry, get the next numbers that are free."""
    form = re.compile(rf"{prefix}-[0-9]+\Z")
    value = result.get(field)
    given = value if isinstance(value, list) else []
    taken = {item.get("id") for item in given if isinstance(item, dict)
             and isinstance(item.get("id"), str)}  # fmt: skip
    found, number = [], 1
    seen: set[str] = set()
    for i, item in enumerate(given):
        if not isinstance(item, dict):
            continue
        id = item.get("id")
        if isinstance(id, str) and form.match(id) and id not in seen:
            seen.add(id)
            continue
        while f"{prefix}-{number:03d}" in taken:
            number += 1
        new = f"{prefix}-{number:03d}"
        taken.add(new)
        twice = isinstance(id, str) and id in seen
        why = "an earlier one has this id" if twice else f"the form is {prefix}-NNN"
        found.append(Correction(f"{field}[{i}].id", new, why))
    return found


def _verified(result: Object) -> list[Correction]:
    """A “pass” although a command failed is a “fail”."""
    verification = obj(result, "verification")
    if verification.get("status") != "pass":
        return []
    for item in items(verification, "machine_evidence"):
        code, expected = item.get("exit_code"), item.get("expected_exit_code", 0)
        if isinstance(code, int) and code != expected:
            return [Correction("verification.status", "fail", f"a command ended with {code}")]
    return []


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def apply(result: Object, corrections: Iterable[Correction]) -> Object:
    """The result with the corrections done; the one that was given is left alone."""
    new: Object = copy.deepcopy(result)
    for each in corrections:
        steps: list[Any] = [
            int(index) if index else name for name, index in _STEP.findall(each.field)
        ]
        holder: Any = new
        for step in steps[:-1]:
            holder = holder[step]
        holder[steps[-1]] = each.value
    return new
