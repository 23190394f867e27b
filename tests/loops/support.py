"""A collaboration, programs that stand in for agents, and loops over both."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from acp_core.agents import presets, registry
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.presets import Preset
from acp_core.agents.state import Phase, RunnerState
from acp_core.loops import launch
from acp_core.loops.launch import Spec
from acp_core.person import paths
from acp_core.protocols.folder.acts import agents
from tests.agents.live.support import left_of
from tests.agents.support import ROOT, wait_for

PEOPLE = ("server", "reader", "reviewer")
QUICK = {"interval": 0.05, "pause": 0.05}


def make(
    folder: Path, *, v2: bool = False, objective: str = "Choose how the cache is invalidated"
) -> Path:
    """A collaboration as `acp init` makes it."""
    words = ["--folder", str(folder), "--objective", objective]
    for name in PEOPLE:
        words += ["--participant", name]
    words += ["--completion", "The key is agreed"]
    if v2:
        words += ["--primary-deliverable-type", "decision-memo"]
        words += ["--primary-deliverable-file", "decision.md"]
    with contextlib.redirect_stdout(io.StringIO()):
        assert agents.init(words) == 0
    return folder


def stand_in(folder: Path, name: str) -> str:
    """A program called ``name`` in ``folder`` that behaves as `tests.loops.agent` does."""
    path = folder / name
    if not path.exists():  # a loop may be starting it, which fails while it is written
        path.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
            f"from tests.loops.agent import main\nmain({name!r})\n"
        )
        path.chmod(0o755)
    return str(path)


def command(folder: Path, *words: str, name: str = "agent") -> Preset:
    """The stand-in as "any command", with words of its own."""
    return presets.any_command([stand_in(folder, name), *words])


def behave(folder: Path, words: str) -> str:
    """The option that makes the stand-in behave like this, run after run."""
    path = folder / f"behaviour-{len(list(folder.iterdir()))}"
    path.write_text(words)
    return f"--behaviour={path}"


def spec(folder: Path, participant: str, **more: Any) -> Spec:
    """What a loop is asked for, without the pauses that people need."""
    return Spec(folder=str(folder), participant=participant, **{**QUICK, **more})


def start(folder: Path, participant: str, preset: Preset, **more: Any) -> RunnerState:
    """Start a loop in the background."""
    plan = launch.plan(spec(folder, participant, **more), preset, ask_version=False)
    assert not plan.refused, plan.refused
    return launch.start(plan.spec)


def state(folder: Path, participant: str) -> RunnerState:
    """How a participant's loop stands now."""
    found = registry.find(str(folder), participant)
    assert found is not None
    return found


def wait_for_phase(folder: Path, participant: str, phase: Phase) -> RunnerState:
    """Wait until a loop does something; fails where it never does."""
    wait_for(
        lambda: state(folder, participant).phase is phase, f"{participant} to be {phase.value}"
    )
    return state(folder, participant)


def events(folder: Path) -> list[dict[str, Any]]:
    """The events of the log."""
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def turns(folder: Path, participant: str) -> list[dict[str, Any]]:
    """The runs that a participant's loop keeps for good."""
    where = Path(state(folder, participant).place)
    return [json.loads(line) for line in (where / "turns.jsonl").read_text().splitlines()]


def wait_for_turns(folder: Path, participant: str, count: int) -> list[dict[str, Any]]:
    """Wait until a loop has kept so many runs; the first of them."""
    path = Path(state(folder, participant).place) / "turns.jsonl"
    wait_for(lambda: path.exists() and len(turns(folder, participant)) >= count, f"{count} runs")
    return turns(folder, participant)[:count]


def append(folder: Path, participant: str, event: str, reply_to: int) -> None:
    """Append an event as a person would who steps in."""
    words = ["--folder", str(folder), "--participant", participant, "--event", event]
    words += ["--summary", "Stepping in", "--reply-to", str(reply_to)]
    if event == "review_submitted":
        review = folder.parent / "review-by-hand.md"
        review.write_text("Position:\n- Fine.\n")
        words += ["--review-file", str(review)]
    with contextlib.redirect_stdout(io.StringIO()):
        assert agents.append(words) == 0


def prompt(folder: Path, participant: str, number: int) -> str:
    """What a run was told."""
    return (Path(state(folder, participant).place) / "runs" / f"{number:05}.prompt").read_text()


def log(folder: Path, participant: str) -> str:
    """A loop's log."""
    return Path(state(folder, participant).log).read_text()


def is_valid(folder: Path) -> bool:
    """What `acp validate` says."""
    with contextlib.redirect_stdout(io.StringIO()):
        return agents.validate(["--folder", str(folder)]) == 0


def stop_all() -> None:
    """Stop whatever a test started."""
    for each in registry.runners():
        if each.pid != os.getpid():
            registry.stop(each.folder, each.participant, grace=0.5)


def restart_machine(folder: Path) -> None:
    """End all loops and agents at once, as a power failure does; what was noted is of an earlier start."""
    for loop in registry.runners():
        run = loop.run
        for each in (loop.shown.process, run.process if run and run.ended is None else None):
            if each is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each.pid, signal.SIGKILL)
        for pid in left_of(LoopDirectory(Path(loop.place))):  # of its live session
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    wait_for(
        lambda: not any(each.alive or each.program_alive for each in registry.runners()),
        "all to be dead",
    )
    own = (*paths.state_folder().rglob("loop.json"), *paths.state_folder().rglob("session.json"))
    noted = [*own, *(folder / ".acp" / "run").rglob("*.json")]
    for path in noted:
        path.write_text(re.sub(r'("boot": ?")[^"]*"', r'\1another-start"', path.read_text()))


def as_command(preset: Preset, program: str) -> Preset:
    """A known preset that runs another program."""
    return replace(preset, program=program, live=())  # whatever is installed on this machine
