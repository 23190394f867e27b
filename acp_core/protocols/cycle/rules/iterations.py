"""Rules on iterations and on versions.

Source: development cycle specification, "State Consistency Rules" and "Versioning Strategy".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import Cycle
from acp_core.protocols.cycle.view import documents as papers
from acp_core.protocols.kit.findings import advice, error, warning

Findings = Iterator[Finding]
_MARKER = "--- ITERATION"
_FIRST = (1, 0, 0)


def a40(cycle: Cycle) -> Findings:
    """All parts have the same version; until the end some may be behind."""
    held = {part: schema.written(found) for part, found in state.versions(cycle).items()}
    if len(set(held.values())) > 1:
        message = f"Versions differ: {', '.join(f'{part} {v}' for part, v in held.items())}"
        if cycle.status == "completed":
            yield warning("A40", message, cycle.record.file)
        else:
            yield advice("A40", message, cycle.record.file)


def _numbers(cycle: Cycle) -> list[str]:
    return [each.label for each in cycle.state.iterations]


def a42(cycle: Cycle) -> Findings:
    """Each iteration has its own number."""
    for number, times in Counter(_numbers(cycle)).items():
        if number and times > 1:
            message = f"Iteration {number} is recorded {times} times"
            yield warning("A42", message, cycle.record.file)


def a43(cycle: Cycle) -> Findings:
    """As many iterations are recorded as there were; the one under way may be missing."""
    if "iterations" not in cycle.value:
        if cycle.iteration:
            yield advice("A43", "No iterations are recorded", cycle.record.file)
        return
    numbers = _numbers(cycle)
    recorded = len(set(filter(None, numbers))) + numbers.count("")
    under_way = cycle.status in ("running", "paused") and recorded == cycle.iteration - 1
    if recorded != cycle.iteration and not under_way:
        message = f"current_iteration is {cycle.iteration}, recorded are {recorded}"
        yield warning("A43", message, cycle.record.file)


def a44(cycle: Cycle) -> Findings:
    """A completed phase is named once."""
    twice = [name for name, n in Counter(cycle.state.completed_phases).items() if n > 1]
    if twice:
        message = f"completed_phases contains duplicates: {', '.join(twice)}"
        yield advice("A44", message, cycle.record.file)


def a45(cycle: Cycle) -> Findings:
    """The history of the task has an entry for each extension in the description."""
    history = cycle.value.get("task_history")
    extensions = cycle.state.description.count(_MARKER)
    if isinstance(history, list) and len(history) != 1 + extensions:
        message = (
            f"task_history has {len(history)} entries, the description {extensions} extensions"
        )
        yield advice("A45", message, cycle.record.file)


def a46(cycle: Cycle) -> Findings:
    """A document bears the version that the state tells."""
    versions, documents = state.versions(cycle), state.document_versions(cycle)
    for part, inside in state.DOCUMENTS.items():
        stated, held = versions.get(part), documents.get(inside)
        if stated and held and stated != held:
            sentence = (
                f"{inside} is version {schema.written(held)}, "
                f"but the state says {schema.written(stated)} for {part}"
            )
            yield warning("A46", sentence, cycle.file(inside))


def a47(cycle: Cycle) -> Findings:
    """Of a document that was rewritten an earlier version is kept."""
    missing, copies = [], papers.history(cycle)
    for inside, version in state.document_versions(cycle).items():
        if version > _FIRST and not papers.earlier(cycle, inside, copies):
            missing.append(f"{inside} {schema.written(version)}")
    if missing:
        rest = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        message = f"No earlier version in history/: {', '.join(missing[:5])}{rest}"
        yield warning("A47", message, cycle.record.file)


def a48(cycle: Cycle) -> Findings:
    """No version is older than one that the history holds."""
    copies = papers.history(cycle)
    for inside, version in state.document_versions(cycle).items():
        latest = max((kept for kept, _ in papers.earlier(cycle, inside, copies)), default=version)
        if latest > version:
            message = f"{inside} is version {schema.written(version)}, history/ holds {schema.written(latest)}"
            yield error("A48", message, cycle.file(inside))


RULES = (a40, a42, a43, a44, a45, a46, a47, a48)
