"""What a cycle shows beyond the common words: pipeline, plan, decisions, feedback, tests."""

from __future__ import annotations

from acp_core import format
from acp_core.files.text import clean_line
from acp_core.model import Panel, Row, Target, Tone
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import Cycle, Object, Project

_TONES = {
    "completed": Tone.DONE,
    "running": Tone.START,
    "in_progress": Tone.START,
    "failed": Tone.BLOCKED,
    "blocked": Tone.BLOCKED,
    "waiting": Tone.REVIEW,
}
_ROWS = 1_000


def panels(project: Project, cycle: Cycle) -> tuple[Panel, ...]:
    """Every panel, most wanted first."""
    return (
        _pipeline(cycle),
        _plan(cycle),
        _decisions(cycle, project.gone),
        _blockers(cycle),
        _feedback(cycle),
        _iterations(cycle),
        _tests(cycle),
        _cycles(project, cycle),
    )


def _row(
    cells: tuple[str, ...],
    *,
    depth: int = 0,
    checked: bool | None = None,
    tone: Tone = Tone.OTHER,
    document: str | None = None,
) -> Row:
    target = Target(document=clean_line(document) if document else None)
    return Row(tuple(clean_line(cell) for cell in cells), depth, checked, tone, target)


def _pipeline(cycle: Cycle) -> Panel:
    rows = []
    for name in schema.AGENTS:
        agent, word = cycle.agent(name), state.agent_status(cycle, name)
        start, end = cycle.at(agent.get("started_at")), cycle.at(agent.get("completed_at"))
        took = format.age(start, end) if start and end and end >= start else ""
        held = schema.obj(cycle.value.get(state.HOLDERS[name]))
        version = schema.text(agent.get("version")) or schema.text(held.get("version"))
        message = schema.text(agent.get("error")) or schema.text(agent.get("last_message"))
        cells = (name, word, state.dependency(cycle, name), took, version, message)
        rows.append(_row(cells, tone=_TONES.get(word, Tone.OTHER)))
    columns = ("agent", "status", "dependency", "took", "version", "message")
    return Panel("pipeline", "Pipeline", "table", columns, tuple(rows))


def _plan(cycle: Cycle) -> Panel:
    tasks = state.tasks(cycle)[:_ROWS]
    known = {schema.text(task.get("id")): task for task in tasks}
    critical = set(state.critical_path(cycle))
    depths: dict[str, int] = {}
    rows = []
    for task in tasks:
        id, needs = schema.text(task.get("id")), schema.words(task.get("depends_on"))
        depths[id] = min(1 + max((depths.get(n, -1) for n in needs), default=-1), 12)
        word = state.task_status(task)
        undone = [n for n in needs if n in known and state.task_status(known[n]) != "completed"]
        waits = f"waits for {', '.join(undone)}" if undone and word != "completed" else ""
        what = schema.text(task.get("title")) or schema.text(task.get("description"))
        path = "critical path" if id in critical else ""
        cells = (id, what, word or "not told", schema.text(task.get("effort")), waits, path)
        tone = _TONES.get(word, Tone.OTHER)
        rows.append(_row(cells, depth=depths[id], checked=word == "completed", tone=tone))
    columns = ("task", "what", "status", "effort", "blocked by", "path")
    return Panel("plan", "Plan", "tree", columns, tuple(rows), "No plan yet.")


def options(decision: Object) -> list[str]:
    """The options of a decision, as text."""
    value = decision.get("options")
    found = []
    for each in value if isinstance(value, list) else []:
        held = schema.obj(each)
        found.append(schema.text(each) or schema.text(held.get("label") or held.get("description")))
    return [each for each in found if each]


def _decisions(cycle: Cycle, gone: tuple[Object, ...]) -> Panel:
    rows = []
    waiting = state.decisions(cycle)
    for each in cycle.coordination("pending_decisions")[:_ROWS]:
        chosen = schema.text(each.get("chosen_option"))
        made = each not in waiting
        cells = (
            schema.text(each.get("id")),
            schema.text(each.get("description")),
            schema.text(each.get("status")) or "pending",
            schema.text(each.get("made_by")),
        )
        rows.append(_row(cells, checked=made))
        rows += [
            _row((str(number), option), depth=1, checked=option == chosen)
            for number, option in enumerate(options(each), 1)
        ]
    for each in gone:
        what = schema.text(each.get("description"))
        rows.append(_row((schema.text(each.get("id")), what, "removed from the state", "")))
    columns = ("decision", "what", "status", "made by")
    return Panel("decisions", "Decisions", "checklist", columns, tuple(rows), "Nothing to decide.")


def _blockers(cycle: Cycle) -> Panel:
    waiting = state.blockers(cycle)
    keys = ("id", "description", "reported_by", "status", "resolution")
    rows = tuple(
        _row(tuple(schema.text(each.get(key)) for key in keys), checked=each not in waiting)
        for each in cycle.coordination("blockers")[:_ROWS]
    )
    columns = ("blocker", "what", "reported by", "status", "resolution")
    return Panel("blockers", "Blockers", "checklist", columns, rows, "No blockers are recorded.")


def _feedback(cycle: Cycle) -> Panel:
    keys = ("timestamp", "source", "target", "type", "content")
    rows = tuple(
        _row(tuple(schema.text(each.get(key)) for key in keys))
        for each in cycle.coordination("feedback_log")[:_ROWS]
    )
    columns = ("when", "from", "to", "type", "what")
    return Panel("feedback", "Feedback", "table", columns, rows, "No feedback is recorded.")


def _iterations(cycle: Cycle) -> Panel:
    rows = []
    for each in schema.objects(cycle.value.get("iterations"))[:_ROWS]:
        results = schema.obj(each.get("agent_results"))
        told = ", ".join(
            f"{name} {schema.text(schema.obj(value).get('status'))}"
            for name, value in results.items()
        )
        issues = "; ".join(schema.words(each.get("issues_found"))) or schema.text(each.get("note"))
        end = schema.text(each.get("completed_at"))
        number = schema.text(each.get("number", each.get("iteration")))
        rows.append(_row((number, end or "under way", told, issues), checked=bool(end)))
    columns = ("iteration", "ended", "agents", "issues")
    empty = "No iterations are recorded."
    return Panel("iterations", "Iterations", "checklist", columns, tuple(rows), empty)


def _tests(cycle: Cycle) -> Panel:
    """What the state and VAS's file tell, each with the iteration it names."""
    rows = []
    kept = (cycle.tests_file.value if cycle.tests_file else None) or {}
    sources = (
        ("state", schema.obj(cycle.value.get("test_results")), cycle.record.file.name),
        ("vas/test-results.json", kept, cycle.tests_file.file.name if cycle.tests_file else ""),
    )
    for source, value, name in sources:
        if not value:
            continue
        found = state.Tests(value)
        covered = "not collected" if found.coverage is None else f"{found.coverage:g} %"
        round = schema.text(value.get("iteration")) or schema.text(value.get("version"))
        failed = "; ".join(found.names)
        tone = Tone.BLOCKED if found.failed else Tone.DONE if found.proven else Tone.OTHER
        cells = (source, round, str(found), covered, failed)
        rows.append(_row(cells, tone=tone, document=name))
    columns = ("source", "iteration", "results", "coverage", "failed")
    return Panel("tests", "Tests", "table", columns, tuple(rows), "No test results yet.")


def _cycles(project: Project, shown: Cycle) -> Panel:
    rows = []
    for each in project.cycles:
        mark = "shown" if each.id == shown.id else ""
        word = each.status or ("no state file" if each.lost else "unreadable")
        cells = (each.id, schema.text(each.value.get("title")), word, state.verdict(each), mark)
        document = None if each.lost else each.record.file.name
        rows.append(_row(cells, tone=_TONES.get(word, Tone.OTHER), document=document))
    rows += [_row((name, "", "no state file", "", "")) for name in project.orphans[:_ROWS]]
    columns = ("cycle", "title", "claimed status", "derived", "")
    return Panel("cycles", "Cycles", "table", columns, tuple(rows))
