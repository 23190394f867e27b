"""States of governed runs: how far one is, and what is broken in it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.golden.builders import governed_files as files
from tests.golden.builders.governed import (
    HISTORY,
    LEDGER,
    PASSED,
    PLANNED,
    SAID,
    STATE,
    Place,
    Run,
)
from tests.golden.state import State

LOST = (
    "The history tells of accepted turns, yet validate passes and step begins another run.",
    "Recover does not offer the copy of the state that acp keeps.",
)


def run(*acts: Callable[[Run], object], words: tuple[str, ...] = ()) -> Callable[[Path], Path]:
    """What builds a run by commands, one after the other."""

    def build(folder: Path) -> Path:
        made = Run(folder, *words)
        for act in acts:
            act(made)
        made.rest()
        return folder

    return build


def acp(*words: str, code: int = 0) -> Callable[[Run], object]:
    """An act: a command."""
    return lambda run: run.acp(*words, code=code)


def write(name: str, value: object) -> Callable[[Run], object]:
    """An act: somebody writes a file by hand."""
    return lambda run: run.write(name, value)


def append(name: str, text: str) -> Callable[[Run], object]:
    """An act: somebody appends to a file by hand."""
    return lambda run: run.append(name, text)


def edit(name: str, **changes: object) -> Callable[[Run], object]:
    """An act: somebody changes members of a JSON file by hand."""
    return lambda run: run.edit(name, **changes)


def remove(name: str) -> Callable[[Run], object]:
    """An act: somebody removes a file."""
    return lambda run: (run.folder / name).unlink()


def asked(run: Run) -> None:
    """The planner asks a human, and its turn is accepted."""
    run.turn(status="needs_human", needs_human_reason="Which lamp?")
    run.acp("accept-turn")


def sloppy(run: Run) -> None:
    """A result with what can be corrected."""
    decision = {"id": "DEC-001", "category": "scope", "statement": "One lamp.", "rationale": ""}
    run.plan(status="done", decisions=[decision])


def unmet(run: Run) -> None:
    """The planner asks to leave a phase whose gate is not met."""
    run.turn({".planning/ROADMAP.md": "# Roadmap\n\nOne lamp.\n"},
             phase_transition_request="implementation")  # fmt: skip
    run.acp("accept-turn")


def rejected(run: Run) -> None:
    """A turn is sent back."""
    run.plan()
    run.acp("reject-turn", ".", "--reason", "No word about the stairs.", *SAID)


def exhausted(run: Run) -> None:
    """A turn is sent back until its attempts are used up."""
    rejected(run)
    run.acp("step")
    run.stage(PLANNED)
    run.acp("reject-turn", ".", "--reason", "Still none.", *SAID)


def completed(run: Run) -> None:
    """All gates are approved."""
    run.to_completion()
    run.acp("approve-completion", *SAID, "--comment", "It lights.")


def undeclared(run: Run) -> None:
    """The planner's turn is staged, with a file that it did not declare."""
    run.plan()
    run.write("src/secret.py", "X = 1\n")


def configured(**changes: Any) -> Callable[[Run], object]:
    """An act: the configuration is changed by hand."""
    return edit("agentxchain.json", **changes)


def unknown_runtime(run: Run) -> None:
    """A role is played by a runtime that is not described."""
    roles = run.read("agentxchain.json")["roles"]
    roles["pm"]["runtime"] = "nobody"
    run.edit("agentxchain.json", roles=roles)


def interrupted(run: Run) -> None:
    """A command was killed when it had written one of two files."""
    run.plan()
    new = run.read(STATE) | {"next_recommended_role": "pm"}
    words = {"type": "note", "timestamp": files.AT, "by": "Ann"}
    steps = [
        step(run, LEDGER, "append", (json.dumps(words) + "\n").encode()),
        step(run, STATE, "replace", (json.dumps(new) + "\n").encode()),
    ]
    journal = {
        "schema_version": "1.0",
        "what": "unblock",
        "at": files.AT,
        "homes": [".agentxchain"],
    }
    run.append(LEDGER, json.dumps(words) + "\n")
    run.write(".agentxchain/acp-journal.json", journal | {"writes": steps})


def step(run: Run, name: str, verb: str, data: bytes) -> dict[str, Any]:
    """A write as a journal keeps it."""
    before = (run.folder / name).read_bytes()
    kept = None if verb == "append" else base64.b64encode(before).decode()
    size = len(before) if verb == "append" else 0
    return {"path": name, "verb": verb, "data": base64.b64encode(data).decode(), "before": kept,
            "size": size}  # fmt: skip


def own(made: Callable[[Place], object]) -> Callable[[Path], Path]:
    """What builds a run of files of its own."""

    def build(folder: Path) -> Path:
        made(Place(folder))
        return folder

    return build


PLAN, ACCEPT = Run.plan, acp("accept-turn")
FORGED = '{"type": "gate_approved", "gate_id": "planning_signoff", "by": "Ann"}\n'

BY_COMMANDS = (
    State("run-new", run()),
    State("run-turn-given-out", run(acp("step"))),
    State("run-turn-staged", run(PLAN)),
    State("run-turn-staged-unsound", run(sloppy)),
    State(
        "run-turn-not-accepted",
        run(lambda run: run.plan(objections=[]), acp("accept-turn", code=2)),
    ),
    State("run-turn-undeclared-file", run(undeclared, acp("accept-turn", code=2))),
    State("run-turn-rejected", run(rejected)),
    State("run-attempts-used-up", run(exhausted)),
    State("run-gate-not-met", run(unmet)),
    State("run-gate-waits", run(PLAN, ACCEPT)),
    State("run-implementation", run(Run.to_implementation)),
    State("run-verification-failed", run(Run.to_implementation, lambda run: run.build(
        verification=PASSED["verification"] | {"machine_evidence": [
            {"command": "true", "exit_code": 1}]}), acp("accept-turn", code=2))),
    State("run-escalated", run(PLAN, acp("escalate", "--reason", "Two roles disagree.", *SAID))),
    State("run-asks-a-human", run(asked)),
    State(
        "run-human-has-answered",
        run(asked, acp("unblock", "--comment", "The LED bulb.", *SAID), acp("step")),
    ),
    State("run-completion-waits", run(Run.to_completion)),
    State("run-completed", run(completed)),
    State("run-state-edited", run(PLAN, edit(STATE, phase="verification"))),
    State("run-ledger-forged", run(PLAN, append(LEDGER, FORGED))),
    State("run-state-missing", run(Run.to_implementation, remove(STATE)), LOST),
    State(
        "run-state-truncated",
        run(Run.to_implementation, lambda run: run.write(STATE, (run.folder / STATE).read_text()[:99])),
        ("The advice is to bring the state back from git, which ignores it.", LOST[1]),
    ),
    State("run-history-torn", run(Run.to_implementation, append(HISTORY, '{"turn_id": "turn_'))),
    State("run-write-interrupted", run(interrupted)),
    State("run-journal-damaged", run(PLAN, write(".agentxchain/acp-journal.json", "{"))),
    State(
        "run-unknown-runtime",
        run(unknown_runtime),
        ("Step assigns the turn before it says that the runtime is not known.",),
    ),
    State(
        "run-reviewer-with-a-program",
        run(words=("--agent", "qa=true {prompt}", "--agent", "pm=true {prompt}")),
        unperformed=(("step", "it starts a program that goes on"),),
    ),
    State(
        "run-blocking-hooks",
        run(configured(hooks={"before_gate": [files.hook(mode="blocking")],
                              "after_dispatch": [files.hook(mode="advisory")]}), PLAN, ACCEPT),
        ("Hooks that block are passed by without a word.",),
    ),
)  # fmt: skip

BY_FILES = (
    State("files-turn-at-work", own(files.at_work)),
    State("files-turn-overdue", own(files.overdue)),
    State("files-turn-failed-to-start", own(files.failed_start)),
    State("files-gate-waits", own(files.gate_waits)),
    State("files-limits", own(files.limits)),
    State("files-left-unfinished", own(files.unfinished)),
    State("files-checkpoint-disagrees", own(files.checkpoint)),
    State(
        "files-earlier-version",
        own(files.earlier),
        ("Step gives out a turn of a run without an id, whose result can never be accepted.",),
    ),
    State("files-third-form", own(files.third_form)),
    State("files-config-unreadable", own(files.config_unreadable)),
    State("files-config-unsound", own(files.config_unsound)),
    State("files-config-only", own(files.config_only)),
    State("files-logs-of-anything", own(files.odd_logs)),
    State("files-hostile-text", own(files.hostile)),
)

STATES = BY_COMMANDS + BY_FILES
