"""Every command that writes, of each protocol: what it stands on, and its words."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.protocols.cycle.making import (
    ID,
    STATE,
    agent,
    agents,
    blocker,
    coordination,
    cycle,
    decision,
    write,
)
from tests.protocols.folder.support import make_v1
from tests.protocols.governed import making, multi, playing
from tests.protocols.governed.acting import YES, governed, start
from tests.protocols.workspaces import making as made_runs
from tests.protocols.workspaces.running import acp as workspaces
from tests.protocols.workspaces.running import prepare


class Writing(NamedTuple):
    """A command.

    ``prepare`` makes what it is run on, ``words`` are its arguments for a folder; ``told`` is what
    it did where that does not show in a collaboration's events, turns and findings.
    """

    name: str
    prepare: Callable[[Path], object]
    words: Callable[[str], list[str]]
    told: Callable[[Path], object] = lambda root: None


def _nothing(root: Path) -> None:
    root.mkdir(parents=True)


def _quietly(*commands: list[str]) -> None:
    for words in commands:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assert governed(words) == 0, words


def _run(*verbs: list[str]) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            start(root)
        _quietly(*([verb[0], str(root), *verb[1:]] for verb in verbs))

    return make


def _asked(root: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        multi.begin(root, ("auth", "web"))
        multi.all_ask(root, ("auth", "web"))


def _reached(root: Path) -> None:
    _asked(root)
    _quietly(["coordinator", "step", str(root)])


def _repositories(root: Path) -> None:
    for name in ("auth", "web"):
        multi.repository(root / name)
    making.write(root / "agentxchain-multi.json", multi.configuration(("auth", "web")))


def _old_run(root: Path) -> None:
    """A run whose files bear no versions yet."""
    making.make_run(root)
    for name in (".agentxchain/state.json", "agentxchain.json"):
        held = json.loads((root / name).read_text())
        held.pop("schema_version")
        (root / name).write_text(json.dumps(held))


def _through(*commands: list[str]) -> Callable[[Path], None]:
    """Two agents that are through, one of them with a part, and what was decided."""

    def make(root: Path) -> None:
        prepare(root, "ann", "ben")
        made_runs.agent(root, "ann")
        made_runs.agent(root, "ben", "partial")
        for words in commands:
            assert workspaces(words[0], root, *words[1:]).code == 0, words

    return make


def _asking(root: Path) -> None:
    cycle(root, coordination=coordination(pending_decisions=[decision()], blockers=[blocker()]))


def _paused(root: Path) -> None:
    cycle(root, "paused")


def _done(root: Path) -> None:
    cycle(root, "completed")


def _through_with_cd(root: Path) -> None:
    cycle(root, agents=agents(cd=agent("completed", at=15)))


def _damaged(root: Path) -> None:
    cycle(root)
    write(root, f"{STATE.removesuffix('.json')}.progress/ra/requirements.md", "# R (v1.0.0)\n")
    (root / STATE).write_text('{"cycle_id": "cyc')


def _with_a_body(root: Path) -> None:
    make_v1(root, "reviewing")
    (root / "body.md").write_text("Position:\n- In favour.\n")


def _blocked(root: Path) -> None:
    make_v1(root, "revising", blocked="No budget.")


def _torn(root: Path) -> None:
    make_v1(root, "revising")
    text = (root / "protocol.json").read_text()
    (root / "protocol.json").write_text(text.replace('"revising"', '"reviewing"'))
    (root / "decisions.md").unlink()
    with (root / "events.jsonl").open("ab") as log:
        log.write(b'{"seq":5,')


def _governed(verb: str, *more: str) -> Callable[[str], list[str]]:
    return lambda root: ["governed", verb, root, *more]


def _coordinator(verb: str, *more: str) -> Callable[[str], list[str]]:
    return lambda root: ["governed", "coordinator", verb, root, *more]


def _cycle(*words: str) -> Callable[[str], list[str]]:
    return lambda root: ["cycle", *words, "--folder", root]


def _workspaces(verb: str, *more: str) -> Callable[[str], list[str]]:
    return lambda root: ["workspaces", verb, root, *more]


def _append(event: str, *more: str) -> Callable[[str], list[str]]:
    words = [
        "--participant",
        "reader",
        "--event",
        event,
        "--summary",
        "Said so.",
        "--reply-to",
        "2",
    ]
    return lambda root: ["append", "--folder", root, *words, *more]


_INIT = ["--participant", "server", "--participant", "reader", "--objective", "Decide",
         "--completion", "It is decided", "--resume"]  # fmt: skip
_SKIP = ["triage", "ben", "skip", "--reason", "too little"]

ALL: tuple[Writing, ...] = (
    Writing("init", _nothing, lambda root: ["init", "--folder", f"{root}/run", *_INIT]),
    Writing("append", lambda root: make_v1(root, "reviewing"), _append("blocked", "--doc", "proposal.md")),
    Writing("append a review", _with_a_body,
            lambda root: _append("review_submitted", "--doc", "review.md", "--review-file",
                                 f"{root}/body.md")(root)),
    Writing("workspaces init", _nothing,
            _workspaces("init", "--task", "queues", "-a", "ann=Look", "-a", "ben=See")),
    Writing("workspaces triage", _through(), _workspaces("triage", *_SKIP[1:])),
    Writing("workspaces conflicts --find", _through(_SKIP), _workspaces("conflicts", "--find")),
    Writing("workspaces conflicts --add", _through(_SKIP),
            _workspaces("conflicts", "--add", "cost", "--between", "ann,ben", "--category", "factual")),
    Writing("workspaces integrate --draft", _through(_SKIP, ["conflicts", "--find"]),
            _workspaces("integrate", "--draft")),
    Writing("workspaces integrate --finish",
            _through(_SKIP, ["conflicts", "--find"], ["integrate", "--draft"]),
            _workspaces("integrate", "--finish")),
    Writing("governed init", lambda root: playing.repository(root), _governed("init", "--goal", "Light")),
    Writing("governed step", _run(), _governed("step", "--no-run")),
    Writing("governed accept-turn", _run(["step"]), _governed("accept-turn")),
    Writing("governed reject-turn", _run(["step"]),
            _governed("reject-turn", "--reason", "Dull", *YES)),
    Writing("governed approve-transition", _run(["step"], ["accept-turn"]),
            _governed("approve-transition", *YES)),
    Writing("governed reject", _run(["step"], ["accept-turn"]),
            _governed("reject", "--comment", "No switch.", *YES)),
    Writing("governed escalate", _run(["step", "--no-run"]), _governed("escalate", "--reason", "Legal", *YES)),
    Writing("governed unblock", _run(["step", "--no-run"], ["escalate", "--reason", "Legal", *YES]),
            _governed("unblock", "--comment", "Settled.", *YES)),
    Writing("governed objection", _run(["step"], ["accept-turn"]),
            _governed("objection", "--id", "OBJ-001", "--status", "acknowledged", *YES)),
    Writing("governed talk", _run(), _governed("talk", "--text", "Mind the hall.", "--as", "olga"),
            lambda root: (root / "TALK.md").read_text().count("Mind the hall.")),
    Writing("governed migrate", _old_run, _governed("migrate", *YES)),
    Writing("coordinator init", _repositories, _coordinator("init", *YES)),
    Writing("coordinator step", _asked, _coordinator("step")),
    Writing("coordinator approve-barrier", _reached, _coordinator("approve-barrier", *YES)),
    Writing("coordinator reject-barrier", _reached,
            _coordinator("reject-barrier", "--comment", "No.", *YES)),
    Writing("cycle start", _nothing, _cycle("start", "Export", "--cycle", ID, "--no-run")),
    Writing("cycle feedback", _asking, _cycle("feedback", "cd", "Mind the commas")),
    Writing("cycle decide", _asking, _cycle("decide", "DEC-001", "1")),
    Writing("cycle resolve", _asking, _cycle("resolve", "BLK-001", "It is 5")),
    Writing("cycle limit", _asking, _cycle("limit", "9"),
            lambda root: json.loads((root / STATE).read_text())["max_iterations"]),
    Writing("cycle pause", _asking, _cycle("pause")),
    Writing("cycle resume", _paused, _cycle("resume")),
    Writing("cycle stop", _asking, _cycle("stop", "--reason", "Enough")),
    Writing("cycle rerun", _through_with_cd, _cycle("rerun", "cd")),
    Writing("cycle extend", _done, _cycle("extend", "Also as JSON")),
    Writing("cycle rebuild", _damaged, _cycle("rebuild")),
    Writing("continue", _blocked, lambda root: ["continue", root, "--answer", "There is one now."]),
    Writing("repair", _torn, lambda root: ["repair", root, "--yes"]),
)  # fmt: skip
