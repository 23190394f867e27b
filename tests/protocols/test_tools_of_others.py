"""The tools of participants of the protocols other than the folder protocol, used as their programs do."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.model.errors import Refused
from acp_core.protocols import registry
from acp_core.protocols.kit import tools
from acp_core.protocols.kit.tools import Seat
from tests.protocols.cycle import making as cycles
from tests.protocols.governed import making as runs
from tests.protocols.governed import playing
from tests.protocols.governed.acting import governed, state
from tests.protocols.wire.support import Process, until
from tests.protocols.workspaces import making as workspaces


def use(protocol: str, seat: Seat, name: str, **given: object) -> str:
    found = next(each for each in registry.bundled() if each.name == protocol)
    spec = next(each for each in tools.tools_of(found) if each.name == name)
    return tools.call(spec, seat, given)


def test_a_sub_agent_reads_its_prompt_and_inputs_and_no_other_workspace(tmp_path: Path) -> None:
    root = workspaces.run(tmp_path)
    agents = sorted(each.name for each in (root / "agent-workspaces").iterdir() if each.is_dir())
    me, other = [each for each in agents if not each.startswith(("_", "."))][:2]
    seat = Seat(str(root), me)
    listed = use("workspaces", seat, "read")
    assert f"/agent-workspaces/{me}/" in listed
    assert f"/agent-workspaces/{other}/" not in listed
    with pytest.raises(Refused, match="there is no document"):
        use("workspaces", seat, "read", document=f"agent-workspaces/{other}/output.md")
    assert "phase: " in use("workspaces", seat, "next")
    assert "verdict: " in use("workspaces", seat, "validate")


def test_a_sub_agent_checks_what_it_returns(tmp_path: Path) -> None:
    seat = Seat(str(workspaces.run(tmp_path)), "researcher")
    bad = use("workspaces", seat, "check_return", text='Done: {"status": "success"}')
    assert "error" in bad.lower()
    with pytest.raises(Refused, match="no object with a status"):
        use("workspaces", seat, "check_return", text="I have done it.")


def test_a_role_checks_its_own_result_and_leaves_a_message(tmp_path: Path) -> None:
    root = playing.repository(tmp_path / "hall")
    assert governed(["init", str(root), "--goal", "Light the hall"]) == 0
    assert governed(["step", str(root)]) in (0, 1)
    [turn] = state(root)["active_turns"].values()
    seat = Seat(str(root), turn["assigned_role"])
    with pytest.raises(Refused, match="Staged turn result not found"):
        use("governed", seat, "check_result")
    result = runs.result(
        run_id=turn["run_id"], turn_id="another", role=turn["assigned_role"],
        runtime_id=turn["runtime_id"],
    )  # fmt: skip
    runs.write(root / f".agentxchain/staging/{turn['turn_id']}/turn-result.json", result)
    before = state(root)
    assert "fails at" in use("governed", seat, "check_result")
    assert state(root) == before
    with pytest.raises(Refused, match="no turn of qa is under way"):
        use("governed", Seat(str(root), "qa"), "check_result")
    assert use("governed", seat, "leave_message", text="Mind the fuse box") == "Added to TALK.md."
    talk = (root / "TALK.md").read_text()
    assert f"## {seat.participant} — " in talk
    assert "Mind the fuse box" in talk
    assert "your turn: " in use("governed", seat, "next")


def test_an_agent_of_a_cycle_checks_its_result(tmp_path: Path) -> None:
    cycles.cycle(tmp_path)
    names = [each.id for each in cycles.read(tmp_path).participants]
    seat = Seat(str(tmp_path), next(each for each in names if each.lower() == "cd"))
    good = (
        "PHASE_RESULT:\n- phase: cd\n- status: success\n- files_written: [a.md]\n- summary: Done\n"
    )
    assert "status: success" in use("cycle", seat, "check_result", text=good)
    wrong = use("cycle", seat, "check_result", text=good.replace("phase: cd", "phase: ra"))
    assert "problem: " in wrong
    assert "no PHASE_RESULT" in use("cycle", seat, "check_result", text="Done.")
    assert "your turn: " in use("cycle", seat, "next")


def test_a_network_agent_sends_to_its_peers_as_itself(tmp_path: Path) -> None:
    options = ("--port", "0", "--http-port", "0", "--sync", "normal")
    with Process("A", *options) as first, Process("B", *options, "--join", first.link):
        seat = Seat(str(until(lambda: home("B"), "the agent")), "B")
        until(lambda: "connected" in use("wire", seat, "peers"), "the connection")
        peer = use("wire", seat, "peers").split()[0]
        sent = use("wire", seat, "send_message", peer=peer, text="Summarize the report")
        assert sent.startswith("Sent: ")
        with pytest.raises(Refused, match="A is a peer: you can only send as B"):
            use("wire", Seat(seat.key, "A"), "send_message", peer=peer, text="x")
        with pytest.raises(Refused, match="peer: must be"):
            use("wire", seat, "send_message", peer="itself", text="x")


def home(name: str) -> Path | None:
    from acp_core.protocols.wire.network import agent_directory

    found = agent_directory.find_running(name)
    return agent_directory.folder_of(name) if found else None
