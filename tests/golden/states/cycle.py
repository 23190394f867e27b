"""Development cycles in every state: at each agent, asking a person, ended well or badly, broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.golden.builders.cycle import (
    AGENTS,
    at_work,
    blocker,
    clock,
    coordination,
    cycle,
    decision,
    documents,
    done,
    feedback,
    identity,
    iteration,
    measured,
    plan,
    progress,
    state,
    task,
    team,
)
from tests.golden.builders.odd_cycles import (
    hostile,
    only_package,
    prepared,
    state_is_a_list,
    state_missing,
    state_without_agents,
    symbolic_link,
    torn_state,
    written_by_people,
    wrong_id,
    wrong_package,
    wrong_words,
    wrote_for_another,
)
from tests.golden.state import State


def created(root: Path) -> Path:
    """Nobody has begun."""
    note = "- created cycle\n"
    progress(root, "coordination/timeline.md", f"# Timeline\n\n{note}")
    return cycle(root, state())


def not_begun(root: Path) -> Path:
    """It is created, and nothing runs it."""
    return cycle(root, state(status="created"))


def published_first_step(root: Path) -> Path:
    """What the published skill writes at first: its clock is local time with a Z."""
    idle = {name: {"status": "idle", "output_files": []} for name in AGENTS}
    times = dict.fromkeys(("created_at", "updated_at"), "2026-03-02T18:00:00.123Z")
    more = {"task_history": None, "revision": None, "version": None, "iterations": None}
    value = state(agents=idle, coordination=None, **times, **more)
    for name in (*AGENTS, "coordination"):
        progress(root, f"{name}/.gitkeep", "")
    return cycle(root, value | dict.fromkeys(("requirements", "plan", "test_results")))


def _working(root: Path, name: str, **changed: Any) -> Path:
    """One agent is at work, those before it are through."""
    documents(root, *AGENTS[: AGENTS.index(name)])
    made = {"agents": at_work(name), "current_phase": name, "current_iteration": 1}
    made |= {"completed_phases": AGENTS[: AGENTS.index(name)], "iterations": [iteration()]}
    return cycle(root, state(**(made | changed)))


def requirements(root: Path) -> Path:
    """RA is at work."""
    return _working(root, "ra")


def planning(root: Path) -> Path:
    """EP is at work."""
    return _working(root, "ep")


def coding(root: Path) -> Path:
    """CD is at work, with one of two tasks done."""
    tasks = task("T1"), task("T2", "pending", "T1")
    return _working(root, "cd", plan=plan(*tasks))


def validating(root: Path) -> Path:
    """VAS is at work."""
    return _working(root, "vas", plan=plan())


def feedback_sent(root: Path) -> Path:
    """Tests failed, and CD works on it in the second iteration."""
    log = [feedback(20, sent_at=clock(21), run="2-cd")]
    cd = {"started_at": clock(21), "run": "2-cd", "iterations_completed": 1}
    documents(root, *AGENTS)
    progress(root, "vas/test-results.json", measured(2), 20)
    progress(root, "coordination/messages/2-cd.md", "## FEEDBACK FROM VAS\n\n2 fail\n", 21)
    value = done(
        2,
        status="running",
        completed_at=None,
        current_phase="cd",
        current_iteration=2,
        agents=team("completed", "completed", "running", "idle", cd=cd),
        iterations=[iteration(completed_at=clock(20)), iteration(2, 21)],
        coordination=coordination(feedback_log=log),
    )
    return cycle(root, value)


def question_to_agent(root: Path) -> Path:
    """CD is blocked by something that RA was asked."""
    asked = blocker(routed_to="ra", run="1-cd")
    log = [feedback(18, "cd", "ra", type="clarification", content="Which limit?")]
    held = coordination(blockers=[asked], feedback_log=log)
    agents = team("running", "completed", "waiting", "idle")
    return _working(root, "cd", agents=agents, coordination=held)


def paused(root: Path) -> Path:
    """A person had it wait."""
    documents(root, "ra", "ep")
    agents = team("completed", "completed", "idle", "idle")
    value = state(status="paused", agents=agents, current_phase="cd", current_iteration=1)
    return cycle(root, value | {"iterations": [iteration()]})


def decision_open(root: Path) -> Path:
    """CD cannot go on without a person's decision."""
    held = coordination(pending_decisions=[decision()], blockers=[blocker()])
    agents = team("completed", "completed", "waiting", "idle")
    return _working(root, "cd", status="paused", agents=agents, coordination=held)


def decision_in_words(root: Path) -> Path:
    """A decision without options, and one that was made."""
    made = {"status": "made", "chosen_option": "Comma", "made_by": "pat", "made_at": clock(19)}
    decisions = [decision(**made), decision(id="DEC-002", options=[], description="What limit?")]
    held = coordination(pending_decisions=decisions)
    agents = team("completed", "completed", "waiting", "idle")
    return _working(root, "cd", status="paused", agents=agents, coordination=held)


def blocked(root: Path) -> Path:
    """A blocker is open, and nobody works on it."""
    agents = team("completed", "completed", "waiting", "idle")
    held = coordination(blockers=[blocker(), blocker(id="BLK-002", status="resolved")])
    return _working(root, "cd", status="paused", agents=agents, coordination=held)


def agent_failed(root: Path) -> Path:
    """CD's program ended without a result."""
    cd = {"error": "not logged in", "attempts": 2}
    agents = team("completed", "completed", "failed", "idle", cd=cd)
    progress(root, "coordination/phase-results/1-cd.txt", '{"run": "1-cd"}\nnot logged in\n', 16)
    return _working(root, "cd", agents=agents, phase_errors=[{"phase": "cd"}])


def stopped(root: Path) -> Path:
    """A person ended it as failed."""
    agents = team("completed", "completed", "failed", "idle")
    return _working(root, "cd", status="failed", agents=agents, completed_at=clock(25))


def completed(root: Path) -> Path:
    """All tests pass."""
    documents(root, *AGENTS)
    return cycle(root, done())


def completed_unproven(root: Path) -> Path:
    """It is completed by its own words, and no tests were run."""
    documents(root, "ra", "ep", "cd")
    return cycle(root, done(test_results=None))


def completed_by_claim(root: Path) -> Path:
    """The state claims that all tests pass, and there is no file of their results."""
    documents(root, "ra", "ep", "cd")
    return cycle(root, done())


def completed_with_failures(root: Path) -> Path:
    """It is completed by its own words, and its tests fail."""
    documents(root, *AGENTS)
    progress(root, "vas/test-results.json", measured(3), 20)
    return cycle(root, done(3))


def completed_undecided(root: Path) -> Path:
    """It is completed by its own words, with a decision open and a task not done."""
    tasks = task("T1"), task("T2", "pending", "T1")
    documents(root, *AGENTS)
    held = coordination(pending_decisions=[decision()], blockers=[blocker()])
    return cycle(root, done(plan=plan(*tasks), coordination=held))


def accepted(root: Path) -> Path:
    """A person took it as it is, with failing tests."""
    documents(root, *AGENTS)
    progress(root, "vas/test-results.json", measured(3), 20)
    words = {"kind": "accept", "iteration": 1, "status": "made", "chosen_option": "Accept"}
    made = decision(**words, made_by="pat", made_at=clock(24), rationale="Good enough.")
    return cycle(root, done(3, coordination=coordination(pending_decisions=[made])))


def limit_reached(root: Path) -> Path:
    """The last iteration that is allowed ended with failing tests."""
    documents(root, *AGENTS)
    progress(root, "vas/test-results.json", measured(3), 20)
    running = {"status": "running", "completed_at": None, "current_phase": "vas"}
    return cycle(root, done(3, max_iterations=1, **running))


def limit_asked(root: Path) -> Path:
    """The last iteration that is allowed ended with failing tests, and a person is asked."""
    documents(root, *AGENTS)
    progress(root, "vas/test-results.json", measured(3), 20)
    options = ["Allow 5 more iterations", "Accept it as it is", "Stop"]
    asked = decision(kind="limit", description="3 tests fail", options=options, agent=None)
    held = coordination(pending_decisions=[asked])
    value = done(3, max_iterations=1, status="paused", completed_at=None, coordination=held)
    return cycle(root, value)


def three_iterations(root: Path) -> Path:
    """Three iterations, of which the files keep what each agent did."""
    documents(root, *AGENTS)
    results = {"cd": {"status": "success", "files_modified": ["a.py"]}, "vas": {"status": "failed"}}
    numbers = [
        iteration(
            n, 25 * n - 25, completed_at=clock(25 * n - 5), agent_results=results, resolved=n == 3
        )
        for n in (1, 2, 3)
    ]
    more = {"started_at": clock(60), "completed_at": clock(65), "iterations_completed": 3}
    agents = team(
        *("completed",) * 4,
        cd=more,
        vas=more | {"started_at": clock(66), "completed_at": clock(70)},
    )
    entries = [f"- {clock(25 * n)} iter-{n}: ends" for n in (1, 2)]
    text = "\n".join(["# Timeline", "", f"- {clock(0)} INIT: created cycle", *entries, ""])
    progress(root, "coordination/timeline.md", text, 70)
    times = {"completed_at": clock(70), "updated_at": clock(70), "current_iteration": 3}
    return cycle(root, done(agents=agents, iterations=numbers, **times))


def plan_disagrees(root: Path) -> Path:
    """A task is pending in the state, and completed in the plan's file of the same version."""
    documents(root, *AGENTS)
    tasks = task("T1"), task("T2", "pending", "T1")
    return cycle(root, done(plan=plan(*tasks)))


def several(root: Path) -> Path:
    """Three cycles of one project: one completed, one that waits for a person, one at work."""
    documents(root, *AGENTS)
    cycle(root, done())
    waiting = identity("waiting0")
    held = coordination(pending_decisions=[decision()])
    value = state(waiting, title="Another", status="paused", coordination=held)
    cycle(root, value | {"agents": team("waiting", "idle", "idle", "idle")}, waiting)
    other = identity("atwork00")
    return cycle(root, state(other, title="Third", agents=at_work("ra")), other)


INCOMPLETE = "The command that `why` prints as a cure lacks an input that must be given."
UNOFFERED = "`why` names an action as a cure that is not offered."
SILENT = "`why` says that nothing keeps it from going on, although nobody can go on."
CLAIM = "It counts as good by the state's claim alone, without a file of test results."
DISAGREEMENT = "That the plan's file and the state differ about a task is not said."
ONE_TURN = "Of three iterations of an agent only one turn is counted."
STAGES = "A stage of the cycle stands as the one who acts on the timeline."
LOST_TASK = "The state that is made anew takes its title and its task from a heading."
WRITTEN = "what it writes is kept of the states coding, paused, stopped and completed"
UNKNOWN_FOLDER = "`why` says that a folder which is there is not there."
OVERWRITTEN = "That an agent rewrote another one's document is not seen but by a log that says so."


USUAL = ("extend", "feedback", "limit", "pause", "rerun", "stop")
"""Actions that write the same in many states: what they write is kept of a few."""


def made(build: Callable[[Path], Path], *faults: str, usual: bool = False) -> State:
    """A state that is named as its builder, which is handed the project's folder.

    Args:
        build: makes it.
        faults: of its golden.
        usual: only the preview of the `USUAL` actions is kept.
    """

    def build_below(folder: Path) -> Path:
        root = folder / "report"
        root.mkdir()
        return build(root)

    elsewhere = tuple((name, WRITTEN) for name in USUAL) if usual else ()
    return State(build.__name__, build_below, faults, unperformed=elsewhere)


STATES: tuple[State, ...] = (
    made(created, usual=True),
    made(not_begun, usual=True),
    made(published_first_step, usual=True),
    made(requirements, usual=True),
    made(planning, usual=True),
    made(coding),
    made(validating, usual=True),
    made(feedback_sent, usual=True),
    made(question_to_agent, usual=True),
    made(paused),
    made(decision_open, INCOMPLETE, usual=True),
    made(decision_in_words, INCOMPLETE, usual=True),
    made(blocked, INCOMPLETE, usual=True),
    made(agent_failed, usual=True),
    made(stopped, SILENT),
    made(completed),
    made(completed_unproven, INCOMPLETE, usual=True),
    made(completed_by_claim, CLAIM, usual=True),
    made(completed_with_failures, INCOMPLETE, usual=True),
    made(completed_undecided, INCOMPLETE, usual=True),
    made(accepted, usual=True),
    made(limit_reached, usual=True),
    made(limit_asked, INCOMPLETE, usual=True),
    made(three_iterations, ONE_TURN, STAGES, usual=True),
    made(plan_disagrees, INCOMPLETE, DISAGREEMENT, usual=True),
    made(several, INCOMPLETE, usual=True),
    made(prepared, usual=True),
    made(wrong_package, usual=True),
    made(only_package, UNKNOWN_FOLDER, usual=True),
    made(torn_state, LOST_TASK, usual=True),
    made(state_is_a_list, LOST_TASK, usual=True),
    made(state_without_agents, UNOFFERED, usual=True),
    made(state_missing, SILENT, LOST_TASK, usual=True),
    made(wrong_words, SILENT, usual=True),
    made(wrong_id, usual=True),
    made(written_by_people, usual=True),
    made(wrote_for_another, OVERWRITTEN, usual=True),
    made(symbolic_link, UNKNOWN_FOLDER, usual=True),
    made(hostile, INCOMPLETE, usual=True),
)
