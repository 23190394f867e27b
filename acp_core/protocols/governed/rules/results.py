"""Checks a turn result in five stages, and changes nothing in it.

Source: governed protocol specification, "Overview" (mandatory objections, structured evidence) and
"Phase model"; field shapes and messages are those of the existing program. That program repairs
much silently before it checks. Here, whatever it would repair is an error, and the repair is
offered as a `Correction`, one by one, which a human may apply. Where its repair would turn a failure
into a success, another one is offered: a “pass” with a failing command becomes a “fail”. Delegations
are checked; runs that delegate are carried on by the existing program.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from acp_core.model.text import clean_line
from acp_core.protocols.governed.schema import (
    AUTHORITATIVE,
    PROPOSED,
    REVIEW_ONLY,
    Line,
    Object,
    items,
    obj,
    objects,
    strings,
)

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
        result = apply_corrections(result, verdict.corrections)
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
    errors: list[str] = []
    for name, change in _each_object(errors, "proposed_changes", given):
        path, action = change.get("path"), change.get("action")
        if not _is_filled(path):
            errors.append(f"{name}.path must be a non-empty string.")
        if action not in ("create", "modify", "delete"):
            errors.append(f"{name}.action must be one of: create, modify, delete.")
        elif action != "delete" and not isinstance(change.get("content"), str):
            errors.append(f'{name}.content is required for action "{action}".')
    return errors


def _verification(result: Object, warnings: list[str]) -> list[str]:
    verification, undeclared = result["verification"], 0
    errors: list[str] = []
    commands = verification.get("commands")
    errors += [
        f"verification.commands[{i}] must be a non-empty string."
        for i, command in enumerate(commands if isinstance(commands, list) else ())
        if not _is_filled(command)
    ]
    evidence = verification.get("machine_evidence")
    evidence = evidence if isinstance(evidence, list) else []
    for name, item in _each_object(errors, "verification.machine_evidence", evidence):
        code, expected = item.get("exit_code"), item.get("expected_exit_code")
        if not _is_filled(item.get("command")):
            errors.append(f"{name}.command must be a non-empty string.")
        if not _integer(code):
            errors.append(f"{name}.exit_code must be an integer.")
        if expected is not None and not _integer(expected):
            errors.append(f"{name}.expected_exit_code must be an integer when provided.")
        undeclared += code != (expected if _integer(expected) else 0)
    errors += _produced(verification, strings(result, "files_changed"))
    if verification["status"] == "pass":
        if undeclared:
            failed = (
                "1 command failed: its exit code is" if undeclared == 1
                else f"{undeclared} commands failed: their exit codes are"
            )  # fmt: skip
            errors.append(f'verification.status is "pass", but {failed} not declared as expected.')
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
    errors: list[str] = []
    seen = set()
    for name, item in _each_object(errors, "verification.produced_files", given):
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


MOST_DELEGATIONS = 5
_DELEGATION = re.compile(r"del-\d{3}\Z")
_ROLE = re.compile(r"[a-z0-9_-]+\Z")
_DEC = re.compile(r"DEC-[0-9]+\Z")


def check_delegation_form(result: Object) -> list[str]:
    """What is wrong with the fields of the delegations."""
    given = result.get("delegations")
    if not isinstance(given, list):
        return []
    errors: list[str] = []
    for name, item in _each_object(errors, "delegations", given):
        if not _matches(_DELEGATION, item.get("id")):
            errors.append(f"{name}.id must match pattern del-NNN.")
        if not _matches(_ROLE, item.get("to_role")):
            errors.append(f"{name}.to_role must match pattern ^[a-z0-9_-]+$.")
        if not _is_filled(item.get("charter")):
            errors.append(f"{name}.charter must be a non-empty string.")
        contract = item.get("acceptance_contract")
        if not isinstance(contract, list) or not contract or not all(map(_is_filled, contract)):
            errors.append(
                f"{name}.acceptance_contract must be a non-empty array of non-empty strings."
            )
        if "required_decision_ids" in item:
            errors += _required_decisions(name, item["required_decision_ids"])
    return errors


def _required_decisions(name: str, value: object) -> list[str]:
    where = f"{name}.required_decision_ids"
    if not isinstance(value, list) or not value:
        return [f"{where} must be a non-empty array."]
    errors = [
        f"{where}[{i}] must match pattern DEC-NNN."
        for i, id in enumerate(value)
        if not _matches(_DEC, id)
    ]
    known = [id for id in value if isinstance(id, str)]
    if len(set(known)) != len(known):
        errors.append(f"{where} names a decision twice.")
    return errors


def check_delegations(result: Object, state: Object, config: Object) -> list[str]:
    """What well-formed delegations do against the rules of the run."""
    given = items(result, "delegations")
    if not given:
        return []
    errors: list[str] = []
    if len(given) > MOST_DELEGATIONS:
        errors.append(
            f"delegations names {len(given)} delegations; at most {MOST_DELEGATIONS} are allowed."
        )
    if result.get("run_completion_request") is True:
        errors.append("delegations and run_completion_request are mutually exclusive.")
    if obj(state, "pending_delegation_review"):
        errors.append("A turn that reviews delegations cannot delegate.")
    ids = [item["id"] for item in given]
    errors += [f'delegation id "{id}" is used twice.' for id in dict.fromkeys(ids)
               if ids.count(id) > 1]  # fmt: skip
    roles = objects(config.get("roles"))
    routing = objects(config.get("routing")).get(str(state.get("phase")), {})
    allowed = strings(routing, "allowed_next_roles")
    for item in given:
        to = item["to_role"]
        if to == result["role"]:
            errors.append(f'delegation "{item["id"]}" goes to the delegating role "{to}" itself.')
        elif to not in roles:
            errors.append(f'delegation "{item["id"]}" goes to "{to}", which is not a defined role.')
        elif allowed and to not in allowed:
            errors.append(
                f'delegation "{item["id"]}" goes to "{to}", which is not in the'
                f' allowed_next_roles for phase "{state.get("phase")}".'
            )
    return errors


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and bool(pattern.match(value))


def _is_filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def check_protocol(result: Object, state: Object, config: Object, warnings: list[str]) -> list[str]:
    """What a well-formed turn result does against the rules of the run."""
    errors: list[str] = []
    role = result["role"]
    if not result["objections"] and must_object(config, role):
        if obj(config, "rules").get("mandatory_objections") is True:
            errors.append(f'Protocol violation: role "{role}" must raise at least one objection.')
        else:
            errors.append(
                f'Protocol violation: role "{role}" has review_only authority and must raise at'
                " least one objection (challenge requirement)."
            )
    routing, phase = objects(config.get("routing")), str(state.get("phase"))
    allowed = strings(routing.get(phase, {}), "allowed_next_roles")
    proposed = result["proposed_next_role"]
    if allowed and proposed != "human" and proposed not in allowed:
        errors.append(
            f'proposed_next_role "{proposed}" is not in the allowed_next_roles for phase "{phase}".'
        )
    errors += _transition(result, tuple(routing), phase)
    if result["status"] == "needs_human" and not result.get("needs_human_reason"):
        warnings.append('status is "needs_human" but needs_human_reason is empty.')
    return errors


def must_object(config: Object, role: object) -> bool:
    """Whether a role must raise at least one objection: all, or those that only review."""
    rules = obj(config, "rules")
    authority = objects(config.get("roles")).get(str(role), {}).get("write_authority")
    reviews = authority == REVIEW_ONLY and rules.get("challenge_required") is not False
    return rules.get("mandatory_objections") is True or reviews


def _transition(result: Object, phases: tuple[str, ...], phase: str) -> list[str]:
    asked = result.get("phase_transition_request")
    errors: list[str] = []
    if asked is not None and phases:
        named = f'phase_transition_request "{asked}"'
        place = phases.index(phase) if phase in phases else -1
        if asked not in phases:
            errors.append(f"{named} is not a defined phase in routing.")
        elif place == len(phases) - 1:
            errors.append(
                f'{named} is invalid in final phase "{phase}"; use run_completion_request instead.'
            )
        elif asked != phases[place + 1]:
            errors.append(
                f'{named} is invalid from phase "{phase}"; next phase is "{phases[place + 1]}".'
            )
    if asked is not None and result.get("run_completion_request") is True:
        errors.append(
            "run_completion_request and phase_transition_request are mutually exclusive — set"
            " one or neither, not both."
        )
    return errors


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
_OBJ = re.compile(r"OBJ-[0-9]+\Z")
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
        _check_filled(errors, name, result[name])
    if not _matches(_ROLE, result["role"]):
        errors.append("role must match pattern ^[a-z0-9_-]+$.")
    _check_word(errors, "status", result["status"], STATUSES)
    if not _matches(_ROLE, result["proposed_next_role"]):
        errors.append('proposed_next_role must match ^[a-z0-9_-]+$ or be "human".')
    _check_decisions(errors, result["decisions"])
    _check_objections(errors, result["objections"])
    for name in ("files_changed", "artifacts_created"):
        value = result.get(name, [])
        if not isinstance(value, list):
            errors.append(f"{name} must be an array.")
            continue
        errors += [
            f"{name}[{i}] must be a string." for i, v in enumerate(value) if not isinstance(v, str)
        ]
    _check_typed(errors, "verification", "status", result["verification"], VERIFICATIONS)
    _check_typed(errors, "artifact", "type", result["artifact"], ARTIFACTS)
    for name in ("phase_transition_request", "needs_human_reason"):
        value = result.get(name)
        if not isinstance(value, str | None):
            errors.append(f"{name} must be a string or null.")
        elif value and _PLACEHOLDER.match(value):
            _check_filled(errors, name, value)
    if not isinstance(result.get("run_completion_request"), bool | None):
        errors.append("run_completion_request must be a boolean or null.")
    if not isinstance(result.get("cost", {}), dict):
        errors.append("cost must be an object.")
    if not isinstance(result.get("delegations", []), list):
        errors.append("delegations must be an array.")
    return errors + check_delegation_form(result)


def _check_decisions(errors: list[str], value: object) -> None:
    if not isinstance(value, list):
        errors.append("decisions must be an array.")
        return
    errors += _check_twice("decisions", value)
    for name, decision in _each_object(errors, "decisions", value):
        if not _matches(_DEC, decision.get("id")):
            errors.append(f"{name}.id must match pattern DEC-NNN.")
        _check_word(errors, f"{name}.category", decision.get("category"), CATEGORIES)
        for field in ("statement", "rationale"):
            _check_filled(errors, f"{name}.{field}", decision.get(field))
        if decision.get("durability") is not None:
            _check_word(errors, f"{name}.durability", decision["durability"], ("run", "repo"))
        overrides = decision.get("overrides")
        if overrides is not None and not _matches(_DEC, overrides):
            errors.append(f"{name}.overrides must match pattern DEC-NNN.")
        elif overrides is not None and overrides == decision.get("id"):
            errors.append(f"{name}.overrides cannot reference itself.")


def _check_objections(errors: list[str], value: object) -> None:
    if not isinstance(value, list):
        errors.append("objections must be an array.")
        return
    errors += _check_twice("objections", value)
    for name, objection in _each_object(errors, "objections", value):
        if not _matches(_OBJ, objection.get("id")):
            errors.append(f"{name}.id must match pattern OBJ-NNN.")
        _check_word(errors, f"{name}.severity", objection.get("severity"), SEVERITIES)
        _check_filled(errors, f"{name}.statement", objection.get("statement"))
        _check_word(errors, f"{name}.status", objection.get("status"), OBJECTION_STATUSES)


def _each_object(
    errors: list[str], name: str, given: Iterable[object]
) -> Iterator[tuple[str, Object]]:
    """The entries of a list with their names; what is no object is an error."""
    for i, item in enumerate(given):
        if isinstance(item, dict):
            yield f"{name}[{i}]", item
        else:
            errors.append(f"{name}[{i}] must be an object.")


def _check_twice(field: str, value: list[object]) -> list[str]:
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


def _check_typed(
    errors: list[str], name: str, field: str, value: object, words: tuple[str, ...]
) -> None:
    if not isinstance(value, dict):
        errors.append(f"{name} must be an object.")
    elif field not in value:
        errors.append(f"{name}.{field} is required.")
    else:
        _check_word(errors, f"{name}.{field}", value[field], words)


def _check_word(errors: list[str], name: str, value: object, words: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in words:
        errors.append(f"{name} must be one of: {', '.join(words)}.")


def _check_filled(errors: list[str], name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        errors.append(f"{name} must be a non-empty string.")
    elif _PLACEHOLDER.match(value):
        errors.append(f'{name} contains an unfilled template placeholder: "{value.strip()}".')


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
    found += _summary_corrections(result)
    authority = objects(config.get("roles")).get(str(result.get("role")), {}).get("write_authority")
    found += _file_corrections(result, authority)
    status = result.get("status")
    if isinstance(status, str) and status.lower() in _STATUS_WORDS:
        word = _STATUS_WORDS[status.lower()]
        found.append(Correction("status", word, f"“{clean_line(status, 40)}” means this"))
    found += _decision_corrections(result)
    found += _id_corrections(result, "decisions", "DEC")
    found += _id_corrections(result, "objections", "OBJ")
    found += _verification_corrections(result)
    routing = objects(config.get("routing")).get(str(state.get("phase")), {})
    allowed, proposed = strings(routing, "allowed_next_roles"), result.get("proposed_next_role")
    if proposed is None or (allowed and proposed != "human" and proposed not in allowed):
        found.append(Correction("proposed_next_role", "human", "always allowed"))
    return found


def _summary_corrections(result: Object) -> list[Correction]:
    """A missing summary: what the result itself says first."""
    if not isinstance(given := result.get("summary", ""), str) or given.strip():
        return []
    said = [result.get("needs_human_reason")]
    said += [each.get("statement") for each in items(result, "decisions")]
    words = next((each.strip() for each in said if isinstance(each, str) and each.strip()), "")
    if words:
        return [Correction("summary", words, "what the result says first")]
    return [Correction("summary", "No summary was given.", "none was given")]


def _file_corrections(result: Object, authority: object) -> list[Correction]:
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


def _decision_corrections(result: Object) -> list[Correction]:
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


def _id_corrections(result: Object, field: str, prefix: str) -> list[Correction]:
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


def _verification_corrections(result: Object) -> list[Correction]:
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


def apply_corrections(result: Object, corrections: Iterable[Correction]) -> Object:
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
