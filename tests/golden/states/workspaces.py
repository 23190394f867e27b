"""Runs of sub-agents in every state: prepared, dispatched, returned, decided, integrated, broken."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

from tests.golden.builders.odd_workspaces import (
    contradicting,
    hostile,
    symbolic_links,
    torn_manifest,
    torn_status,
    unreadable_decisions,
    wrong_manifest,
)
from tests.golden.builders.workspaces import (
    BASE,
    COORD,
    clock,
    compared,
    conflict,
    decide,
    draft,
    ended,
    entry,
    integrated,
    manifest,
    prompt,
    put,
    ran,
    resolution,
    result,
    returned,
    sent,
    specification,
    status,
    told,
)
from tests.golden.state import State

UNEDITED = "A draft that nobody edited, with both versions in it, can be finished."
BOTH = "An agent is told of as contradicting itself, and once more as undecided."
UNKNOWN_FOLDER = "`why` says that a folder which is there is not there."
PRICE = "# Report of {0}\n\n## Cost\n\n- Price: %s\n"


def fresh(root: Path) -> Path:
    """Two agents are prepared, one of which works on what the other writes."""
    first = entry(root, "ann", critical=True, role="cost analyst", timeout_s=600.0)
    return manifest(root, first, entry(root, "ben", after=["ann"]))


def input_missing(root: Path) -> Path:
    """A required input of a prepared agent is not there."""
    needed = [{"path": str(root / "prices.csv"), "required": True}]
    return manifest(root, entry(root, "ann", inputs=needed), entry(root, "ben", may_launch=True))


def prefixed(root: Path) -> Path:
    """The other naming, and a final output in JSON."""
    own = root / BASE / "ann"
    names = {"output": str(own / "ann-output.json"), "status_file": str(own / "ann-status.json")}
    made = entry(root, "ann", format="json", **names)
    return manifest(root, made, naming="prefixed", format="json")


def dispatched(root: Path) -> Path:
    """Both were dispatched on another machine, and nothing was written yet."""
    told(root, "ann", "ben")
    return manifest(root, sent(root, "ann"), sent(root, "ben"))


def watcher_gone(root: Path) -> Path:
    """They were dispatched on this machine, and nothing that watched them is alive."""
    told(root, "ann", "ben")
    put(root, f"{BASE}/ann/notes.md", "Thinking.\n", 5)
    here = platform.node() or "?"
    return manifest(root, sent(root, "ann", host=here), sent(root, "ben", host=here))


def half_way(root: Path) -> Path:
    """One is through, one is at work, one waits for the first and may begin."""
    result(root, "ann")
    told(root, "ben")
    waits = entry(root, "cat", after=["ann"])
    return manifest(root, ended(root, "ann"), sent(root, "ben"), waits)


def succeeded(root: Path) -> Path:
    """All are through; nobody looked for conflicts."""
    return ran(root, ann="success", ben="success")


def partial(root: Path) -> Path:
    """One came half way; nobody decided, and the one that works on it waits."""
    result(root, "ann")
    result(root, "ben", "partial")
    waits = entry(root, "cat", after=["ben"])
    return manifest(root, ended(root, "ann"), ended(root, "ben"), waits)


def failed(root: Path) -> Path:
    """One failed; nobody decided."""
    return ran(root, ann="success", ben="failure")


def nothing_returned(root: Path) -> Path:
    """A program ended with an error, without a status file and without a return."""
    result(root, "ann")
    told(root, "ben")
    return manifest(root, ended(root, "ann"), ended(root, "ben", exit="exit code 3"))


def status_without_return(root: Path) -> Path:
    """An agent wrote all of its files, and what it returned is prose."""
    made = ran(root, ann="success", ben="success")
    put(root, f"{COORD}/returns/ben-part.json", "I am through with my part.\n", 11)
    return made


def wrote_outside(root: Path) -> Path:
    """One wrote into the workspace of the other and beside all of them."""
    made = ran(root, ann="success", ben="success")
    outside = [f"{BASE}/ann/output.md", "notes.md"]
    put(root, f"{BASE}/ann/output.md", "# By ben\n", 10.5)
    put(root, "notes.md", "Of ben.\n", 10.5)
    manifest(root, ended(root, "ann"), ended(root, "ben", outside=outside))
    return made


def wrote_integration(root: Path) -> Path:
    """An agent wrote the final output, which is the orchestrator's."""
    made = ran(root, ann="success", ben="success")
    put(root, "integration/final-output.md", "# Of ben alone\n", 10.5)
    outside = ["integration/final-output.md"]
    manifest(root, ended(root, "ann"), ended(root, "ben", outside=outside))
    return made


def decided(root: Path) -> Path:
    """What did not succeed was decided on: one is taken as it is, one is a gap."""
    made = ran(root, ann="success", ben="partial", cat="failure")
    decide(root, ben="accept", cat="gap")
    return made


def to_run_again(root: Path) -> Path:
    """A person decided that one is run once more, and it was not yet."""
    made = ran(root, ann="success", ben="partial")
    decide(root, ben="rerun")
    return made


def ran_again(root: Path) -> Path:
    """The second attempt of one succeeded; what the first one left was put away."""
    result(root, "ann")
    result(root, "ben", "partial")
    history = f"{COORD}/history/ben/1"
    put(root, f"{history}/status.json", status(root, "ben", "partial"), 10)
    put(root, f"{history}/return-ben-part.json", returned(root, "ben", "partial"), 11)
    decide(root, ben="rerun")
    output = root / BASE / "ben/ben-output-20260301-0930.md"
    put(root, f"{BASE}/ben/{output.name}", "# All of ben\n", 35)
    item = {"file": str(output), "size_estimate": "small", "description": "All"}
    put(root, f"{BASE}/ben/status.json", status(root, "ben", outputs=[item]), 36)
    (root / COORD / "returns/ben-part.json").unlink()
    written = [str(output), str(root / BASE / "ben/status.json")]
    back = returned(root, "ben", files_written=written)
    put(root, f"{COORD}/returns/ben-part-20260301-0930.json", back, 37)
    put(root, f"{COORD}/prompts/ben-part-20260301-0930.md", prompt(root, "ben"), 30)
    again = {"attempt": 2, "stamp": "20260301-0930", "output": str(output)}
    return manifest(root, ended(root, "ann"), ended(root, "ben", **again))


def conflicts_possible(root: Path) -> Path:
    """Outputs with the same headings, of which two differ in a fact."""
    for agent, price in (("ann", 10), ("ben", 12), ("cat", 10)):
        result(root, agent, text=PRICE % price)
    return manifest(root, *(ended(root, agent) for agent in ("ann", "ben", "cat")))


def conflicts_open(root: Path) -> Path:
    """A conflict about the ground that both cover and one about a fact; nobody resolved them."""
    made = ran(root, ann="success", ben="success")
    both = conflict(root, "c1", "ann", "ben", topic="Cost", category="coverage")
    compared(root, both, conflict(root, "c2", "ann", "ben"))
    return made


def conflicts_resolved(root: Path) -> Path:
    """One conflict is resolved, one dismissed."""
    made = ran(root, ann="success", ben="success")
    resolved = conflict(root, "c1", "ann", "ben") | resolution("ann", "ben")
    gone = {"dismissed": True, "reason": "The same.", "by": "pat", "resolved_at": clock(22)}
    compared(root, resolved, conflict(root, "c2", "ann", "ben", topic="Cost") | gone)
    return made


def drafted(root: Path) -> Path:
    """The draft is written, and can be finished."""
    made = conflicts_resolved(root)
    draft(root)
    return made


def drafted_too_early(root: Path) -> Path:
    """A draft although a conflict is open and a partial undecided."""
    made = ran(root, ann="success", ben="partial")
    compared(root, conflict(root, "c1", "ann", "ben"))
    draft(root)
    return made


def finished(root: Path) -> Path:
    """All is integrated."""
    made = drafted(root)
    integrated(root, "ann", "ben")
    return made


def finished_with_gaps(root: Path) -> Path:
    """All but one is integrated, with what is missing."""
    made = decided(root)
    compared(root)
    missing = ["ben (ben-part): partial, taken as it is", "cat (cat-part): failure, left out"]
    integrated(root, "ann", "ben", skipped=["cat"], gaps=missing)
    return made


def finished_and_changed(root: Path) -> Path:
    """An output was changed after all was integrated."""
    made = finished(root)
    put(root, f"{BASE}/ann/output.md", "# Another\n", 90)
    return made


def binary_output(root: Path) -> Path:
    """One output is no text."""
    made = ran(root, ann="success", ben="success")
    put(root, f"{BASE}/ann/output.md", bytes(range(256)), 9)
    compared(root)
    return made


def large_output(root: Path) -> Path:
    """One output is longer than what is read."""
    made = ran(root, ann="success", ben="success")
    put(root, f"{BASE}/ben/output.md", "A line of the output.\n" * 200_000, 9)
    compared(root)
    return made


def another_program(root: Path) -> Path:
    """Another orchestrator's layout: other names, no manifest, paths of another machine."""
    base, written = "workspaces", "/elsewhere/project/workspaces"
    put(root, f"{base}/shared/task-spec.json", specification("a comparison of queues"))
    for agent in ("ann", "ben"):
        put(root, f"prompts/{agent}-part.md", prompt(Path("/elsewhere/project"), agent, base), 1)
        put(root, f"{base}/{agent}/{agent}-output.md", f"# {agent}\n", 9)
        item = {"file": f"{written}/{agent}/{agent}-output.md", "size_estimate": "small: 2 kB"}
        value = status(root, agent, "complete", outputs=[item])
        put(root, f"{base}/{agent}/{agent}-status.json", value, 10)
    files = [f"{written}/ann/ann-output.md"]
    back = returned(root, "ann", "complete", files_written=files)
    put(root, "returns/ann-part.json", back, 11)
    return root


def words_of_others(root: Path) -> Path:
    """Only folders: status words of other conventions, relative paths, outputs guessed by name."""
    for agent, word in (("ann", "DONE"), ("ben", "blocked"), ("cat", "fine")):
        put(root, f"{BASE}/{agent}/output.md", f"# {agent}\n", 9)
        item = {"file": "output.md"}
        put(root, f"{BASE}/{agent}/status.json", status(root, agent, word, outputs=[item]), 10)
    put(root, f"{BASE}/dan/part.txt", "Nothing that is known.\n", 9)
    return root


def only_workspaces(root: Path) -> Path:
    """An empty folder of workspaces."""
    (root / BASE).mkdir()
    return root


def state(make: Callable[[Path], Path], *faults: str) -> State:
    """A state that is named as its builder, which is handed the run's folder."""

    def build(folder: Path) -> Path:
        root = folder / "queues"
        root.mkdir()
        return make(root)

    return State(make.__name__, build, faults)


STATES: tuple[State, ...] = (
    state(fresh),
    state(input_missing),
    state(prefixed),
    state(dispatched),
    state(watcher_gone),
    state(half_way),
    state(succeeded),
    state(partial),
    state(failed),
    state(nothing_returned),
    state(status_without_return),
    state(wrote_outside),
    state(wrote_integration),
    state(decided),
    state(to_run_again),
    state(ran_again),
    state(conflicts_possible),
    state(conflicts_open),
    state(conflicts_resolved),
    state(drafted, UNEDITED),
    state(drafted_too_early),
    state(finished),
    state(finished_with_gaps),
    state(finished_and_changed),
    state(binary_output),
    state(large_output),
    state(another_program),
    state(words_of_others, BOTH),
    state(only_workspaces, UNKNOWN_FOLDER),
    state(contradicting, BOTH),
    state(torn_manifest),
    state(wrong_manifest),
    state(torn_status, BOTH),
    state(unreadable_decisions),
    state(symbolic_links),
    state(hostile),
)
