"""What the agents are told: the prompt of each role, and feedback with its seven sections.

Source: development cycle specification, "Progress Markdown Files", "Feedback Message Format" and
"Phase Result Format". Files are named with their versions and never quoted; what one agent said
reaches another as single lines, so that it cannot add sections.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.read.progress import (
    BOARD,
    DISCOVERIES,
    WRITTEN,
    Discovery,
    describe,
    distinct,
)
from acp_core.protocols.cycle.schema import (
    DOCUMENT_NAMES,
    FIRST_VERSION,
    LOG_NAMES,
    Feedback,
    Object,
    Task,
    agent_in,
    iteration_of,
    one_line,
    parse_part,
)
from acp_core.protocols.cycle.state import describe_goal, phase_of_iteration

ROLES = {
    "ra": "the requirements analyst: say what is wanted, and find the edge cases",
    "ep": "the explorer and planner: explore the code, design, and plan tasks",
    "cd": "the code developer: implement the plan in the project's files",
    "vas": "the validator: run the tests, judge what was built, and sum up",
}
PRIMARY = {"ra": "requirements.md", "ep": "plan.json", "cd": "implementation.md",
           "vas": "test-results.json"}  # fmt: skip
_NEXT = {
    "ra": "Update requirements.md and edge-cases.md.",
    "ep": "Update plan.json, and architecture.md where needed.",
    "cd": "Update the code, then implementation.md.",
    "vas": "Run the tests again, then update validation.md and test-results.json.",
}
_FORMS = {
    "ep": 'plan.json holds {"version", "total_tasks", "tasks": [{"id", "title", "effort", '
    '"depends_on", "files"}], "critical_path"}; effort is small, medium or large.',
    "cd": "In issues.md keep a section `## Questions for RA` with what is unclear.",
    "vas": 'test-results.json holds {"version", "iteration", "summary": {"total", "passed", '
    '"failed", "skipped"}, "failed_tests": [names], "coverage": {"lines"}}, from tests that '
    "really ran.",
}
_TASKS_BEFORE = (
    "Each of these tasks had a run of its own, several at the same time. Look at what they left in "
    "the project, finish what is not done, and write your documents for all tasks. Report all tasks "
    "that are done, and every blocker that is still open."
)
_DISCOVERIES = 40  # that are told, the latest
_EXTRA = {
    "ra": ("version: X.Y.Z", "requirements_count: N"),
    "ep": ("plan_version: X.Y.Z", "task_count: N"),
    "cd": ("tasks_completed: [ids of the plan's tasks]", "files_modified: [list]",
           "tests_passing: X/Y"),
    "vas": ("test_pass_rate: X%", "coverage: Y%", "failed_tests: [names]", "critical_issues: N"),
}  # fmt: skip


def prompt(
    state: Object,
    id: str,
    agent: str,
    root: Path,
    version: str,
    entries: Sequence[Object] = (),
    trouble: str = "",
    found: Sequence[Discovery] = (),
    tasks: Sequence[str] = (),
) -> str:
    """The whole prompt of one run.

    Args:
        state: the cycle's state.
        id: the cycle, as its file is named: what the state says may lead elsewhere.
        agent: whose run it is.
        root: the project's folder.
        version: what the documents of this run name as theirs.
        entries: the feedback that this run is to take up.
        trouble: why the run before this one failed, "" where it did not.
        found: what stands on the shared board.
        tasks: how the runs of single tasks ended that came before this one.
    """
    folder = root.joinpath(*schema.HOME, f"{id}.progress")
    needs = schema.DEPENDS[agent]
    lines = _head(state, id, agent, root)
    upstream = schema.AGENTS[: schema.AGENTS.index(agent)]
    lines += [_reference(state, folder, name) for name in upstream]
    lines += [
        "",
        "# What you write",
        "",
        _iteration(state, version),
        *_wanted(state, agent),
        (
            f"- Documents, to be rewritten: {', '.join(DOCUMENT_NAMES[agent])}. The orchestrator has "
            "copied the old ones to history/."
        ),
        (
            f"- Log, only ever appended to, a JSON object per line: {LOG_NAMES[agent]}, with "
            "timestamp, iteration, version, action and description."
        ),
    ]
    if agent in _FORMS:
        lines.append(f"- {_FORMS[agent]}")
    if agent == "cd":
        lines.append("- The project's own files, as the plan says.")
    lines += ["", "# The shared board", "", *_board(agent, folder / BOARD, found)]
    lines += ["", "# What you do not know", ""]
    if needs:
        lines.append(
            "Do not guess. Name it under `blockers`, begin with who can answer, and report "
            "`partial`: `RA:` where a requirement is unclear, `EP:` where the plan is incomplete, "
            "`USER:` where only a person can decide. Offer a person choices: "
            "`USER: question | choice | choice`."
        )
    else:
        lines.append(
            "Do not guess what only a person can decide. Name it under `blockers` as "
            "`USER: question | choice | choice`, and report `partial`."
        )
    if trouble:
        lines += ["", "# The run before this one failed", "", one_line(trouble)]
    if entries:
        lines += ["", feedback_message(state, agent, entries, folder).rstrip()]
    if tasks:
        lines += ["", "# Tasks that had runs of their own", "", _TASKS_BEFORE, ""]
        lines += [f"- {one_line(each)}" for each in tasks]
    lines += ["", "# At the end", "", "Print this as the last thing:", "", *_result_form(agent)]
    return "\n".join(lines) + "\n"


def task(
    state: Object, id: str, root: Path, version: str, task: Task, others: Sequence[Task]
) -> str:
    """The prompt of a run of CD for one task of the plan, while others are worked on beside it.

    Args:
        state: the cycle's state.
        id: the cycle, as its file is named.
        root: the project's folder.
        version: of the documents of this iteration.
        task: what the run is to do.
        others: the tasks that have runs of their own as well.
    """
    progress = root.joinpath(*schema.HOME, f"{id}.progress")
    lines = _head(state, id, "cd", root)
    lines += [_reference(state, progress, name) for name in ("ra", "ep")]
    lines += [
        "",
        "# Your task",
        "",
        f"Do only this task of the plan; plan.json contains its details: {_task(task)}",
        "",
        _iteration(state, version),
        "- The project's own files, as the task says.",
        (
            f"- Log, only ever appended to, a JSON object per line: {LOG_NAMES['cd']}, with timestamp, "
            "iteration, version, action, task and description."
        ),
        (
            f"- Not {' and '.join(DOCUMENT_NAMES['cd'])}: a later run of CD writes them, once all tasks "
            "have ended."
        ),
        "",
        "# Tasks of other runs",
        "",
        "Other runs do these tasks, some of them at this moment. Do not change their files.",
        "",
        *(f"- {_task(each)}" for each in others),
        "",
        "# At the end",
        "",
        (
            "Do not guess what you do not know: report `partial`, and name it under `blockers`. "
            "Print this as the last thing:"
        ),
        "",
        *_result_form("cd"),
    ]
    return "\n".join(lines) + "\n"


def _task(task: Task) -> str:
    """A task in one line: its id, what it is about, and its files."""
    files = f" (files: {', '.join(task.files)})" if task.files else ""
    return one_line(f"{task.id}: {task.title or task.description}{files}")


def finalize(
    state: Object,
    id: str,
    agent: str,
    root: Path,
    version: str,
    entries: Sequence[Object],
    seconds: float,
) -> str:
    """The shorter prompt of a run that only writes down what the one before it has done.

    Args:
        state: the cycle's state.
        id: the cycle, as its file is named.
        agent: whose run it is.
        root: the project's folder.
        version: what the documents of this run name as theirs.
        entries: the feedback that the run before was to take up.
        seconds: how long it may take.
    """
    lines = [
        *_head(state, id, agent, root),
        "",
        "# Finalize",
        "",
        (
            "Your run before this one took too long and was stopped; what it wrote is there. Begin "
            "nothing new. Look at what is done, write it down, and say what is left. You have "
            f"{seconds / 60:g} minutes."
        ),
        _iteration(state, version),
        f"- Documents: {', '.join(DOCUMENT_NAMES[agent])}. Log, only appended to: {LOG_NAMES[agent]}.",
        *([f"- {_FORMS[agent]}"] if agent in _FORMS else []),
    ]
    if entries:
        asked = (one_line(parse_part(Feedback, each).content) for each in entries)
        lines += ["", "# What you were asked to do", "", *(f"- {each}" for each in asked)]
    lines += [
        "",
        "# At the end",
        "",
        (
            "Report `success` only where everything is done, else `partial`, and name what is left "
            "under `issues`. Print this as the last thing:"
        ),
        "",
        *_result_form(agent),
    ]
    return "\n".join(lines) + "\n"


def _head(state: Object, id: str, agent: str, root: Path) -> list[str]:
    """Who the agent is, what the cycle is about, and where its files are."""
    base = root.joinpath(*schema.HOME)
    return [
        (
            f"You are {agent.upper()}, {ROLES[agent]}. You work in a development cycle of RA, EP, "
            "CD and VAS. An orchestrator starts each of you; you never talk to one another."
        ),
        "",
        "# Task",
        "",
        schema.text(state.get("description")) or schema.text(state.get("title")),
        "",
        "# Files",
        "",
        f"- The project: {root}",
        f"- Your folder, in which only you write: {base / f'{id}.progress' / agent}",
        f"- The cycle's state, which you only read: {base / f'{id}.json'}",
    ]


def _iteration(state: Object, version: str) -> str:
    number, limit = state.get("current_iteration"), state.get("max_iterations")
    return (
        f"Iteration {number} of at most {limit}. Your documents get version {version}: "
        "name it in the first lines of each."
    )


def _wanted(state: Object, agent: str) -> list[str]:
    """When the cycle is done, and on what this agent is to look in the phase that goes on."""
    goal, phase = describe_goal(state), phase_of_iteration(state)
    focus = schema.obj(schema.obj(state.get("agent_focus")).get(phase))
    own = one_line(schema.text(focus.get(agent)))
    lines = [f"The cycle is {goal}."] if goal else []
    return lines + ([f"Your focus in this phase, {phase}: {own}"] if own else [])


def _board(agent: str, path: Path, found: Sequence[Discovery]) -> list[str]:
    """Where the board is, what belongs on it, and what stands there."""
    forms = ", ".join(
        f"{each} ({', '.join(DISCOVERIES[each][1])})" if DISCOVERIES[each][1] else each
        for each in WRITTEN[agent]
    )
    lines = [
        f"- The board, on which all of you write what the others need not find again: {path}",
        (
            '- A JSON object per line, {"ts", "agent", "type", "data"}; lines are only ever '
            f"appended. Your types, and what their data must have: {forms}."
        ),
    ]
    if "blocker" in WRITTEN[agent]:
        lines.append(
            "- A blocker on the board with the severity high is sent to the agent that can answer it, "
            "like those below; medium and low ones only inform the others."
        )
    known = distinct(found)
    shown = known[-_DISCOVERIES:]
    if len(shown) < len(known):
        lines.append(f"- {len(known) - len(shown)} earlier discoveries: read them there.")
    names = {name: name.upper() for name in schema.AGENTS}
    lines += [f"- {names.get(each.agent, 'An agent')} found {describe(each)}" for each in shown]
    return lines if known else [*lines, "- The board is still empty."]


def _reference(state: Object, folder: Path, name: str) -> str:
    version = one_line(agent_in(state, name).version)
    of = f" (v{version})" if version else ""
    return f"- Output of {name.upper()}{of}: {folder / name / PRIMARY[name]} and its neighbours"


def _result_form(agent: str) -> list[str]:
    return [
        "PHASE_RESULT:",
        f"- phase: {agent}",
        "- status: success | failed | partial",
        "- files_written: [list of files]",
        "- summary: one line",
        *(f"- {each}" for each in _EXTRA[agent]),
        "- blockers: [list, as above]",
        "- issues: [list]",
    ]


def feedback_message(state: Object, agent: str, entries: Sequence[Object], folder: Path) -> str:
    """Feedback to an agent in its seven sections; several pieces become one message."""
    feedback = [parse_part(Feedback, each) for each in entries]
    contents = [one_line(each.content) for each in feedback]
    sources = list(dict.fromkeys(each.source.lower() for each in feedback))
    many = f"{len(contents)} pieces of feedback: " if len(contents) > 1 else ""
    named = [each for each in sources if each in schema.AGENTS] or [agent]
    lines = [
        f"## FEEDBACK FROM {', '.join(one_line(each).upper() for each in sources)}",
        "",
        many + "; ".join(contents),
        "",
        "## REFERENCED OUTPUT",
    ]
    for name in named:
        version = one_line(agent_in(state, name).version) or FIRST_VERSION
        lines += [f"File: {folder / name / PRIMARY[name]}", f"Version: {version}"]
    lines += ["", "## REQUIRED ACTION", ""]
    lines += [f"{number}. {_action(each)}" for number, each in enumerate(feedback, 1)]
    lines += ["", "## SUCCESS CRITERIA", ""]
    for each in feedback:
        wanted = [f"- [ ] {one_line(item)}" for item in each.criteria[:100]]
        lines += wanted or [f"- [ ] {_done(each)}"]
    number = iteration_of(state)
    before = min((each.iteration for each in feedback), default=number)
    lines += [
        "",
        "## NEXT STEP",
        _NEXT[agent],
        "Output PHASE_RESULT when complete.",
        "",
        "## CONTEXT",
        "",
        f"Previous iteration: {before}",
        f"Current iteration: {number}",
    ]
    return "\n".join(lines) + "\n"


def _action(feedback: Feedback) -> str:
    begin = {
        "bug_report": "Fix: ",
        "requirement_update": "Take up: ",
        "issue_fix": "Do again: ",
    }.get(feedback.type, "")
    if feedback.type == "clarification":
        begin = "Answer: " if feedback.asks else "Continue with this: "
    return f"{begin}{one_line(feedback.content)}"


def _done(feedback: Feedback) -> str:
    content = one_line(feedback.content)
    return f"answered: {content}" if feedback.asks else f"done: {content}"
