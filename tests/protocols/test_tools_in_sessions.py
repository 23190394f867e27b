"""Live sessions of agents that no loop runs: they get their participant's tools, and their prompts name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.agents import registry
from tests.agents.live.commands import acp, begin, configure, record
from tests.agents.support import wait_for
from tests.protocols.cycle.conducting import AGENT, ID, WHAT, end_all, state
from tests.protocols.governed import playing
from tests.protocols.workspaces import test_live as workspaces
from tests.protocols.workspaces.running import states

SECTION = "If you have tools of the MCP server `acp` ({}), use them."
COMMON = "`next`, `read`, `validate`, `ask_human`"


def prompt_and_answer(root: Path, name: str) -> tuple[str, str]:
    """What an agent was told first, and what it said."""
    loop = registry.find(str(root), name)
    assert loop is not None and loop.shown.live == "yes"
    return (Path(loop.place) / "runs" / "00001.prompt").read_text(), Path(loop.log).read_text()


@pytest.mark.slow
def test_a_sub_agent_is_told_of_its_tools_and_uses_them(tmp_path: Path) -> None:
    root = workspaces.make(tmp_path, behaviour="use=next")
    going = begin(*workspaces.dispatch(root, "--permissions", "edits"))
    workspaces.decide(root, "allow", "scripted.py")
    said, _ = going.communicate(timeout=120)
    assert going.returncode == 0, said
    assert states(root) == {"ann": "success"}
    prompt, answer = prompt_and_answer(root, "ann")
    assert SECTION.format(f"{COMMON}, `check_return`") in prompt
    assert "next answers: collaboration: " in answer and "you are: ann" in answer
    assert len(record()) == 2, "the policy allows the tool: no person was asked"


@pytest.mark.slow
def test_a_role_is_told_of_its_tools_and_uses_them(tmp_path: Path) -> None:
    root = playing.repository(tmp_path / "lamp")
    configure(tmp_path / "agent", playing.agent(tmp_path / "bin"), behaviour="use=next")
    assert acp("governed", "init", root, "--goal", "Light", "--agent", "pm=mine").returncode == 0
    step = begin("governed", "step", root)
    workspaces.decide(root, "allow", "")
    workspaces.decide(root, "allow", "agent.py")
    said, _ = step.communicate(timeout=120)
    assert step.returncode == 0, said
    prompt, answer = prompt_and_answer(root, "pm")
    assert SECTION.format(f"{COMMON}, `check_result`, `leave_message`") in prompt
    assert "next answers: collaboration: " in answer and "you are: pm" in answer


@pytest.mark.slow
def test_an_agent_of_a_cycle_is_told_of_its_tools_and_uses_them(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    configure(tmp_path / "agent", AGENT, behaviour="use=next")
    words = ("start", WHAT, "--cycle", ID, "--agent", "mine", "--permissions", "all")
    assert acp("cycle", *words, "--folder", root).returncode == 0
    try:
        wait_for(lambda: state(root)["agents"]["ra"]["status"] == "completed", "RA", 120)
        prompt, answer = prompt_and_answer(root, "ra")
    finally:
        end_all()
    assert SECTION.format(f"{COMMON}, `check_result`") in prompt
    assert "next answers: collaboration: " in answer and "you are: ra" in answer.lower()
