"""What came out of a completed cycle, as a panel."""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.model import Panel, Row, Target, Tone
from acp_core.model.text import clean_line
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import Cycle

ID = "outcome"
NAMES = (ID, "decisions", "tests")
_RESULTS = ("vas/summary.md", "vas/validation.md", "cd/implementation.md")
"""The documents that tell the result, in the order in which a reader wants them."""
_VERDICTS = {
    state.OK: ("done: the tests pass", Tone.DONE),
    state.FAILURES: ("tests or agents failed", Tone.BLOCKED),
}


def panels(cycle: Cycle) -> tuple[Panel, ...]:
    """The outcome of a completed cycle; nothing before."""
    if cycle.status != "completed":
        return ()
    rows = (*_facts(cycle), *_documents(cycle))
    return (Panel(ID, "Outcome", "table", ("item", "outcome"), rows),)


def _facts(cycle: Cycle) -> Iterator[Row]:
    found, limit = state.tests(cycle), cycle.state.max_iterations
    verdict, tone = _VERDICTS.get(state.verdict(cycle), ("not proven", Tone.REVISE))
    if state.verdict(cycle) == state.UNPROVEN:
        verdict = f"not proven: {state.unproven(cycle)}"
    if state.accepted(cycle):
        verdict += "; a person accepted the result"
    yield Row(("result", clean_line(verdict)), tone=tone)
    failed = f": {'; '.join(found.names)}" if found.failed and found.names else ""
    coverage = f", coverage {found.covered}" if found.coverage is not None else ""
    target = (
        Target(document=clean_line(cycle.tests_file.file.name)) if cycle.tests_file else Target()
    )
    bad = Tone.BLOCKED if found.failed else Tone.OTHER
    yield Row(("tests", clean_line(f"{found}{coverage}{failed}")), tone=bad, target=target)
    tasks = state.tasks(cycle)
    if tasks:
        done = len(tasks) - len(state.undone(cycle))
        yield Row(("tasks", f"{done} of {len(tasks)} done"))
    of = f" of at most {limit}" if limit is not None else ""
    yield Row(("iterations", f"{cycle.iteration}{of}"))


def _documents(cycle: Cycle) -> Iterator[Row]:
    """The documents that tell the result, each with its version; a row opens it."""
    names = {file.name for file in cycle.files}
    versions = state.document_versions(cycle)
    for inside in _RESULTS:
        name = f"{cycle.progress}{inside}"
        if name in names:
            version = versions.get(inside)
            said = f"{inside} v{schema.written(version)}" if version else inside
            yield Row(("document", clean_line(said)), target=Target(document=clean_line(name)))
