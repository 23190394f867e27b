"""A program that its model service refuses for now: whoever follows the run, or looks at it, hears why and until when."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from acp_core.agents import registry
from acp_core.agents.state import Phase
from acp_core.protocols.workspaces.schema import ORCHESTRATOR
from tests.agents.live.commands import acp, begin
from tests.agents.support import wait_for
from tests.protocols.workspaces.running import acp as workspaces
from tests.protocols.workspaces.running import entries, prepare, program

LIMITED = "import sys; print('Usage limit reached. Try again in 1 hour.'); sys.exit(1)"


def paused(root: Path, agent: str) -> None:
    def pauses() -> bool:
        loop = registry.find(str(root), agent)
        return loop is not None and loop.phase is Phase.PAUSING

    wait_for(pauses, f"{agent} to be refused")


def line_with(said: list[str], words: str) -> str:
    return next(each for each in said if words in each)


def test_a_usage_limit_is_told_by_dispatch_and_by_everybody_who_looks(tmp_path: Path) -> None:
    root = prepare(tmp_path / "queues", "ann")
    going = begin("workspaces", "dispatch", str(root), "--", sys.executable, "-c", LIMITED)
    paused(root, "ann")
    causes = json.loads(acp("why", root, "--json").stdout)["snapshot"]["causes"]
    first = causes[0]
    assert first["headline"].startswith("ann's agent has reached its usage limit; resumes at ")
    assert (first["participant"], first["wanted"]) == ("ann", False)
    assert first["until"]["source"] == "text" and first["until"]["at"]
    why = acp("why", root)
    assert why.returncode == 0 and "Not stuck" not in why.stdout
    assert "○ paused" in acp("status", root).stdout
    for words in (("status",), ("show",), ("ps",)):
        shown = " ".join(acp(*words, root).stdout.split())
        assert "has reached its usage limit; resumes at" in shown, words
    (loop,) = json.loads(acp("ps", root, "--json").stdout)["loops"]
    assert loop["matter"]["key"] == first["key"]
    assert workspaces("triage", root, "ann", "gap", "--reason", "No time").code == 0
    said = going.communicate(timeout=120)[0].splitlines()
    assert line_with(said, "usage limit") == f"ann: dispatched ({first['headline']})", said


def test_a_usage_limit_is_told_while_the_draft_is_written(tmp_path: Path) -> None:
    root = prepare(tmp_path / "queues", "ann", "ben")
    words = program(tmp_path / "own", ann="success", ben="success")
    assert workspaces("dispatch", root, "--", *words).code == 0
    assert workspaces("compare", root).code == 0
    assert {each["exit"] for each in entries(root).values()} == {"exit code 0"}
    going = begin("workspaces", "synthesise", str(root), "--", sys.executable, "-c", LIMITED)
    paused(root, ORCHESTRATOR)
    why = acp("why", root).stdout
    sentence = f"{ORCHESTRATOR}'s agent has reached its usage limit; resumes at"
    assert sentence[1:] in " ".join(why.split())
    wait_for(lambda: acp("stop", root).returncode == 0, "its end")
    said = going.communicate(timeout=120)[0]
    assert said.startswith(sentence), said
