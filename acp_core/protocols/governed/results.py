"""Checks a turn result in five stages, and changes nothing in it.

Source: governed protocol specification, "Overview" (mandatory objections, structured evidence);
field shapes and messages are those of the existing program. That program repairs much silently
before it checks. Here, whatever it would repair is an error, and the repair is offered as a
`Correction`, which a human may apply.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from acp_core.files.text import clean_line
from acp_core.protocols.governed.result_protocol import check_protocol
from acp_core.protocols.governed.result_schema import check_schema
from acp_core.protocols.governed.schema import Line, Object, obj, objects, strings

RESERVED = tuple(
    f".agentxchain/{name}"
    for name in ("state.json", "history.jsonl", "decision-ledger.jsonl", "lock.json")
)
REVIEWS = (".planning/", ".agentxchain/reviews/")
_TEST = re.compile(r"(?:^|/)(?:tests?|__tests__|spec)/|\.(?:test|spec)\.\w+$|(?:^|/)test_\w+\.py$")
_STATUS_WORDS = {
    "complete": "completed", "success": "completed", "done": "completed",
    "error": "failed", "failure": "failed",
}  # fmt: skip


class Correction(NamedTuple):
    """A repair that is offered: set ``field`` to ``value``, because of ``reason``."""

    field: str
    value: Any
    reason: str


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
    offered = tuple(_corrections(result, state, config))
    warnings: list[str] = []
    stages: tuple[tuple[str, Callable[[], list[str]]], ...] = (
        ("schema", lambda: check_schema(result)),
        ("assignment", lambda: _assignment(result, state)),
        ("artifact", lambda: _artifact(result, state, config, history, warnings)),
        ("verification", lambda: _verification(result, warnings)),
        ("protocol", lambda: check_protocol(result, state, config, warnings)),
    )
    for stage, errors in stages:
        found = [clean_line(error, 500) for error in errors()]
        if found:
            return Verdict(stage, tuple(found), tuple(warnings), offered)
    return Verdict("", (), tuple(warnings), offered)


def _assignment(result: Object, state: Object) -> list[str]:
    turns = objects(state.get("active_turns"))
    given = result["turn_id"]
    turn = turns.get(given) or next(iter(turns.values()), None) or obj(state, "current_turn")
    if not turn:
        return ["No active turn in state.json — cannot validate assignment."]
    told = (
        ("run_id", result["run_id"], state.get("run_id"), "has"),
        ("turn_id", given, turn.get("turn_id"), "has"),
        ("role", result["role"], turn.get("assigned_role"), "assigns"),
        ("runtime_id", result["runtime_id"], turn.get("runtime_id"), "assigns"),
    )
    return [
        f'{name} mismatch: turn result has "{is_}", state {verb} "{wanted}".'
        for name, is_, wanted, verb in told
        if is_ != wanted
    ]


def _artifact(
    result: Object, state: Object, config: Object, history: Sequence[Line], warnings: list[str]
) -> list[str]:
    role = result["role"]
    authority = objects(config.get("roles")).get(role, {}).get("write_authority")
    kind, files = result["artifact"]["type"], strings(result, "files_changed")
    product = [name for name in files if not name.startswith((*REVIEWS, ".agentxchain/"))]
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
    tests_only = bool(product) and all(_TEST.search(name) for name in product)
    if building and result["status"] == "completed" and tests_only:
        warnings.append("Only test files changed, and no source of the product.")
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
    if verification["status"] == "pass":
        if undeclared:
            errors.append(
                f'verification.status is "pass" but {undeclared} command(s) have exit codes'
                " that are not declared as expected."
            )
        if not evidence:
            warnings.append('verification.status is "pass" without machine evidence.')
    return errors


def _integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _corrections(result: Object, state: Object, config: Object) -> list[Correction]:
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
    for name in ("decisions", "objections"):
        if name not in result:
            found.append(Correction(name, [], "none were given"))
    if "artifact" not in result and isinstance(result.get("files_changed"), list):
        kind = "workspace" if result["files_changed"] else "review"
        found.append(Correction("artifact", {"type": kind, "ref": None}, "from the files changed"))
    status = result.get("status")
    if isinstance(status, str) and status.lower() in _STATUS_WORDS:
        word = _STATUS_WORDS[status.lower()]
        found.append(Correction("status", word, f"“{clean_line(status, 40)}” means this"))
    decisions = result.get("decisions")
    for i, decision in enumerate(decisions if isinstance(decisions, list) else ()):
        if not isinstance(decision, dict):
            continue
        statement = decision.get("statement")
        if not decision.get("rationale") and isinstance(statement, str) and statement:
            found.append(
                Correction(f"decisions[{i}].rationale", statement, "the statement once more")
            )
    routing = objects(config.get("routing")).get(str(state.get("phase")), {})
    allowed, proposed = strings(routing, "allowed_next_roles"), result.get("proposed_next_role")
    if allowed and proposed != "human" and proposed not in allowed:
        found.append(Correction("proposed_next_role", "human", "always allowed"))
    return found


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
