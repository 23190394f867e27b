"""A stand-in for the programs of RA, EP, CD and VAS: it does what its prompt says, without a model.

It is run as a real program, with the prompt as its standard input. What it does at each run is a
word in a file, used up run by run: ``behave.json`` in the project, ``{"cd": ["ask ra", ...]}``;
when none is left it does its work. Each start and each end is a line of ``calls.log``.

CD builds ``product.txt``, in which a line that holds "bug" is one; VAS tests that file.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

TASKS = [
    {"id": "TASK-001", "title": "Rows as text", "effort": "small", "depends_on": [], "files": []},
    {"id": "TASK-002", "title": "Button", "effort": "medium", "depends_on": ["TASK-001"],
     "files": ["product.txt"]},
]  # fmt: skip
APART = [
    {"id": "TASK-001", "title": "Rows", "depends_on": [], "files": ["rows.txt"]},
    {"id": "TASK-002", "title": "Button", "depends_on": [], "files": ["./button.txt"]},
    {"id": "TASK-003", "title": "Both", "depends_on": ["TASK-001", "TASK-002"], "files": ["both.txt"]},
    {"id": "TASK-004", "title": "More rows", "depends_on": [], "files": ["rows.txt"]},
]  # fmt: skip
"""A plan of tasks that can be worked on at the same time, as far as they can."""


BUGS = {
    "buggy": "bug quoting\nbug empty\n",
    "almost": "bug quoting\n",
    "broken": "".join(f"bug {number}\n" for number in range(10)),
}


WRECKS = {
    "wreck": lambda state: state.write_text(state.read_text()[:200]),
    "remove": lambda state: state.unlink(),
    "strange": lambda state: state.write_text('{"agents": {}, "status": "great"}'),
}


def main() -> None:
    prompt = sys.stdin.read()
    agent = re.search(r"^You are (RA|EP|CD|VAS),", prompt)[1].lower()  # type: ignore[index]
    root = Path(re.search(r"^- The project: (.*)$", prompt, re.M)[1])  # type: ignore[index]
    if task := asked_task(prompt):
        result("cd", one_task(root, task, prompt))
        return
    folder = Path(re.search(r"only you write: (.*)$", prompt, re.M)[1])  # type: ignore[index]
    version = re.search(r"get version (\S+):", prompt)[1]  # type: ignore[index]
    number = int(re.search(r"^Iteration (\d+)", prompt, re.M)[1])  # type: ignore[index]
    run = os.environ.get("ACP_CYCLE_RUN", "")
    word = behaviour(root, agent)
    part = re.fullmatch(r"partial(?: (.*))?", word)
    word = "" if part else word
    call(root, "start", agent, "partial" if part else word, run)
    (root / f"prompt-{agent}-{len(calls(root, agent))}.txt").write_text(prompt)
    if word.startswith("sleep"):
        time.sleep(float(word.split()[1]))
    while word == "hold" and not (root / "go").exists():
        time.sleep(0.02)
    if word == "crash":
        call(root, "end", agent, word, run)
        print("not logged in", file=sys.stderr)
        sys.exit(3)
    if word.startswith("find "):
        board = re.search(r"^- The board, .*: (.*)$", prompt, re.M)[1]  # type: ignore[index]
        with Path(board).open("a") as lines:
            lines.write(word.removeprefix("find ") + "\n")
    if word.startswith(("overwrite ", "erase ")):
        other = folder.parent / word.split()[1]
        if word.startswith("erase"):
            other.unlink()
        else:
            other.write_text(other.read_text() + f"\n{agent} says so\n")
    if word in WRECKS:
        (state,) = (root / ".workflow/.cycle").glob("cycle-*.json")
        home = os.open(state.parent, os.O_RDONLY)
        fcntl.flock(home, fcntl.LOCK_EX)  # between two writes of acp: each writes the whole state
        WRECKS[word](state)
        os.close(home)
    said = WORK[agent](root, folder, version, number, word)
    with (folder / "changes.log").open("a") as log:
        log.write(json.dumps({"timestamp": "2026-03-02T10:00:00+08:00", "agent": agent,
                              "version": version, "action": "update", "iteration": number}) + "\n")  # fmt: skip
    if word == "shrink":
        (folder / "changes.log").write_text("")
    if part:  # it does its work, says that it is not finished, and perhaps what is open
        said |= {"status": "partial", "issues": [part[1]] if part[1] else []}
    call(root, "end", agent, word, run)
    print("Working.\n", flush=True)
    if word != "silent":
        result(agent, said)
    if word == "linger":
        sys.stdout.flush()
        time.sleep(60)


def calls(root: Path, agent: str) -> list[str]:
    """The starts of an agent so far."""
    path = root / "calls.log"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if line.startswith(f"start {agent} ")]


def call(root: Path, what: str, agent: str, word: str, run: str) -> None:
    with (root / "calls.log").open("a") as log:
        log.write(f"{what} {agent} {word or 'work'} {run}\n")


def behaviour(root: Path, agent: str) -> str:
    path = root / "behave.json"
    told: dict[str, list[str]] = json.loads(path.read_text()) if path.exists() else {}
    words = told.get(agent, [])
    number = len(calls(root, agent))
    return words[number] if number < len(words) else ""


def document(folder: Path, name: str, title: str, version: str, text: str = "") -> None:
    (folder / name).write_text(f"# {title} - v{version}\n\n{text or 'As agreed.'}\n")


def ra(root: Path, folder: Path, version: str, number: int, word: str) -> dict[str, Any]:
    document(folder, "requirements.md", "Requirements", version, "- FR-001: export as CSV")
    document(folder, "edge-cases.md", "Edge cases", version, "- EC-001: no rows")
    if word == "ask user":
        return {"status": "partial", "summary": "Cannot know", "blockers":
                ["USER: Which delimiter? | Comma | Semicolon"]}  # fmt: skip
    return {"version": version, "summary": "The delimiter is a comma" if number else "",
            "requirements_count": 1}  # fmt: skip


def ep(root: Path, folder: Path, version: str, number: int, word: str) -> dict[str, Any]:
    document(folder, "exploration.md", "Exploration", version)
    document(folder, "architecture.md", "Architecture", version)
    tasks = APART if word == "apart" else TASKS
    plan = {"version": version, "total_tasks": len(tasks), "tasks": tasks,
            "critical_path": ["TASK-001", "TASK-002"]}  # fmt: skip
    (folder / "plan.json").write_text(json.dumps(plan))
    return {"plan_version": version, "task_count": 2, "summary": "Two tasks"}


def asked_task(prompt: str) -> str:
    """The task that a run of CD is only for; "" where it is for all."""
    found = re.search(r"^Do only this task of the plan;.* details: (TASK-\d+):", prompt, re.M)
    return found[1] if found else ""


def one_task(root: Path, id: str, prompt: str) -> dict[str, Any]:
    """A run of CD for one task; ``meet TASK``: it waits until the other one works, too."""
    run = os.environ.get("ACP_CYCLE_RUN", "")
    word = behaviour(root, id)
    call(root, "start", id, word, run)
    (root / f"prompt-{id}.txt").write_text(prompt)
    while word.startswith("meet ") and not calls(root, word.split()[1]):
        time.sleep(0.02)
    while word == "hold" and not (root / "go").exists():
        time.sleep(0.02)
    call(root, "end", id, word, run)
    if word == "fail":
        return {"status": "failed", "summary": "Not built", "issues": ["no such table"]}
    file = f"{id}.txt"
    (root / file).write_text(f"{id}\n")
    return {"summary": f"Built {id}", "tasks_completed": [id], "files_modified": [file]}


def cd(root: Path, folder: Path, version: str, number: int, word: str) -> dict[str, Any]:
    document(folder, "implementation.md", "Implementation", version)
    questions = "## Questions for RA\n- Which delimiter?\n" if word == "question" else ""
    document(folder, "issues.md", "Issues", version, questions)
    product = root / "product.txt"
    if word == "question":
        return {"status": "partial", "summary": "A question", "issues": ["see issues.md"]}
    if word == "ask ra":
        return {"status": "partial", "summary": "Unclear", "blockers": ["RA: Which delimiter?"]}
    if word == "ask ep":
        told = ["EP: the plan has no task for the header row"]
        return {"status": "partial", "summary": "Incomplete", "blockers": told}
    if word == "ask user":
        told = ["USER: Large exports? | Stream | Refuse"]
        return {"status": "partial", "summary": "Undecided", "blockers": told}
    product.write_text("csv\n" + BUGS.get(word, ""))
    plan = folder.parent / "ep/plan.json"
    known = json.loads(plan.read_text())["tasks"] if plan.exists() else TASKS
    done = [each["id"] for each in known][: 1 if word == "half" else None]
    return {"summary": "Built", "tasks_completed": done, "files_modified": ["product.txt"],
            "tests_passing": "3/3"}  # fmt: skip


def vas(root: Path, folder: Path, version: str, number: int, word: str) -> dict[str, Any]:
    product = (root / "product.txt").read_text().splitlines()
    failed = [line.removeprefix("bug ") for line in product if line.startswith("bug")]
    for name in ("validation.md", "coverage.md", "summary.md"):
        document(folder, name, name.removesuffix(".md").capitalize(), version)
    if word == "no tests":
        return {"summary": "Looks good", "test_pass_rate": "100%"}
    covered = {"low coverage": 60, "no coverage": 0}.get(word, 88)
    results = {
        "version": version,
        "iteration": number,
        "summary": {"total": 10, "passed": 10 - len(failed), "failed": len(failed), "skipped": 0},
        "failed_tests": failed,
        "coverage": {"lines": covered},
    }
    (folder / "test-results.json").write_text(json.dumps(results))
    return {
        "status": "failed" if failed else "success",
        "summary": f"{len(failed)} of 10 fail",
        "test_pass_rate": f"{100 - 10 * len(failed)}%",
        "coverage": f"{covered}%",
        "failed_tests": failed,
        "critical_issues": 0,
    }


WORK = {"ra": ra, "ep": ep, "cd": cd, "vas": vas}


def result(agent: str, said: dict[str, Any]) -> None:
    print("PHASE_RESULT:")
    fields = {"phase": agent, "status": "success", "files_written": ["all"], "summary": "Done",
              "issues": []}  # fmt: skip
    for key, value in (fields | said).items():
        if isinstance(value, list) and any(" " in each for each in value):
            print(f"- {key}:")
            for each in value:
                print(f"  - {each}")
        else:
            print(f"- {key}: {'[' + ', '.join(value) + ']' if isinstance(value, list) else value}")


if __name__ == "__main__":
    main()
