"""Roles whose agent is named by its preset: turns in live sessions, by the real commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.agents.live.policy import Scope
from acp_core.agents.live.policy import decide as decided
from acp_core.agents.live.requests import parse
from acp_core.agents.loop_directory import place
from acp_core.person.permissions import Permissions, Policy, Verdict
from acp_core.protocols.governed.conduct.programs import RoleTurn, preset_of
from acp_core.protocols.governed.write.turns import task
from tests.agents.live import messages
from tests.agents.live.commands import acp, begin, configure, decide, held, record, request
from tests.agents.live.support import left_of
from tests.agents.support import is_gone, wait_for
from tests.e2e.dashboards import dashboard
from tests.protocols.governed import playing
from tests.protocols.governed.acting import dispatch

DO_IT = "\x13"


def make(tmp_path: Path, *more: str, behaviour: str = "") -> Path:
    """A run whose planner is the stand-in."""
    root = playing.repository(tmp_path / "lamp")
    configure(tmp_path / "agent", playing.agent(tmp_path / "bin"), *more, behaviour=behaviour)
    assert acp("governed", "init", root, "--goal", "Light", "--agent", "pm=mine").returncode == 0
    return root


def end_of(step: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = step.communicate(timeout=120)
    return step.returncode, said


@pytest.mark.slow
def test_a_turn_is_taken_in_a_live_session_with_one_request_allowed_and_one_rejected(
    tmp_path: Path,
) -> None:
    root = make(tmp_path, behaviour="both")
    shown = acp("governed", "step", root, "--dry-run").stdout
    assert "mine, in a live session takes it" in shown
    step = begin("governed", "step", root)
    opened = decide(root, "reject", "touch")
    assert opened.participant == "pm" and opened.turn.startswith("planning: ")
    request(root, "agent.py")
    (loop,) = json.loads(acp("ps", root, "--json").stdout)["loops"]
    assert (loop["participant"], loop["live"]) == ("pm", "yes")
    decide(root, "allow", "agent.py")
    code, said = end_of(step)
    assert code == 0 and "staged:" in said, said
    assert not (tmp_path / "agent" / "asked").exists()
    assert [state for state, _ in record()] == ["reject", "allow"]
    assert left_of(place(str(root), "pm")) == []
    assert acp("governed", "accept-turn", root).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["conductor", "runner", "agent"])
def test_a_turn_goes_on_whoever_is_killed(tmp_path: Path, killed: str) -> None:
    root = make(tmp_path)
    step = begin("governed", "step", root)
    request(root)
    session = held(root, "pm")
    assert session.agent is not None
    pids = {"conductor": step.pid, "runner": session.process.pid, "agent": session.agent.pid}
    os.kill(pids[killed], signal.SIGKILL)
    if killed == "conductor":
        step.wait()
        decide(root, "allow")
    else:
        wait_for(lambda: is_gone(pids["agent"]), "the agent's end")
        wait_for(lambda: held(root, "pm").agent not in (None, session.agent), "its session again")
        decide(root, "allow")
        assert end_of(step)[0] == 0
        assert left_of(place(str(root), "pm")) == []
    wait_for(lambda: acp("governed", "accept-turn", root).returncode == 0, "the result")
    assert [state for state, _ in record()].count("allow") == 1


@pytest.mark.slow
def test_a_message_reaches_a_role_at_work_and_a_cancelled_turn_waits_for_a_person(
    tmp_path: Path,
) -> None:
    root = make(tmp_path, behaviour="hang")
    step = begin("governed", "step", root)
    wait_for(lambda: at_work(root), "the command of the role", 120)
    told = acp("nudge", root, "pm", "Name the owner")
    assert told.stdout == "pm: the agent got the message.\n", told.stderr
    shown = acp("act", root, "cancel", "--participant", "pm", "--dry-run")  # as on the screen
    assert "pm's agent is asked to end its turn. " in shown.stdout, shown.stderr
    assert "acp starts no further attempt until you decide." in shown.stdout
    cancelled = acp("cancel", root, "pm")
    assert (cancelled.returncode, cancelled.stdout) == (0, "pm: the turn is cancelled.\n")
    code, said = end_of(step)
    assert code == 1 and "cancelled by" in said, said
    assert "Name the owner" in logged(root)
    assert left_of(place(str(root), "pm")) == []
    step = begin("governed", "step", root)
    decide(root, "allow", "agent.py")
    assert end_of(step)[0] == 0


@pytest.mark.slow
def test_a_usage_limit_is_waited_for_in_the_same_turn(tmp_path: Path) -> None:
    root = make(tmp_path, behaviour="limit")
    step = begin("governed", "step", root)
    decide(root, "allow", "agent.py")
    code, said = end_of(step)
    assert code == 0 and "pm waits for its model service" in said, said


@pytest.mark.slow
def test_keys_send_a_message_to_a_role_at_work_and_cancel_its_turn(tmp_path: Path) -> None:
    root = make(tmp_path, behaviour="hang")
    step = begin("governed", "step", root)
    wait_for(lambda: at_work(root), "the command of the role", 120)
    with dashboard(root) as terminal:
        terminal.wait_for("planning", 120)
        terminal.send("p")
        terminal.wait_for("Cancel turn", 120)
        terminal.send("m")
        terminal.wait_for("Send a message", 120)
        terminal.send("Name the owner")
        terminal.wait_for("gets the message “Name the owner” at once", 120)
        terminal.send(DO_IT)
        wait_for(lambda: "a person says: Name the owner" in logged(root), "the message", 120)
        terminal.wait_for("Cancel turn", 120)
        terminal.send("E")
        terminal.wait_for("is asked to end its turn", 120)
        terminal.send(DO_IT)
        code, said = end_of(step)
    assert code == 1 and "cancelled by" in said, said


def at_work(root: Path) -> bool:
    loops = json.loads(acp("ps", root, "--json").stdout)["loops"]
    return any((each["run"] or {}).get("tool") for each in loops)


def logged(root: Path) -> str:
    return acp("logs", root, "pm").stdout


@pytest.mark.slow
def test_a_program_that_holds_no_session_is_started_for_the_turn(tmp_path: Path) -> None:
    root = make(tmp_path, "--protocol", "2")
    assert acp("governed", "step", root).returncode == 0
    (loop,) = json.loads(acp("ps", root, "--all", "--json").stdout)["loops"]
    assert loop["live"] == "no: the agent speaks version 2 of the protocol, not 1"


def test_a_role_may_change_what_its_authority_names_and_no_state_of_the_run(tmp_path: Path) -> None:
    root = make(tmp_path)
    given = dispatch(root, now=datetime.now(UTC))
    turn = task(root, given.turn_id)
    named = preset_of(turn.runtime)
    assert named is not None
    allowed = RoleTurn(turn, named).scope()
    scope = Scope(str(root), "pm", allowed.documents, folders=allowed.folders, kept=allowed.kept)

    def verdict(path: Path) -> Verdict:
        asked = parse(messages.edit("claude", str(path), None, "x"))
        return decided(asked, scope, Permissions(Policy.EDITS)).verdict

    for path in (turn.staged, root / "src/lamp.py", root / ".planning/ROADMAP.md"):
        assert verdict(path) is Verdict.ALLOW, path
    (root / "src").mkdir()
    (root / "src/link").symlink_to(root / ".agentxchain/state.json")
    for name in ("agentxchain.json", ".agentxchain/state.json", ".git/config", "src/link", "../x"):
        assert verdict(root / name) is Verdict.ASK, name
