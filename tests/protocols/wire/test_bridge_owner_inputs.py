"""Who has a bridge's link asks for acts; programs, folders, permissions and budgets stay the owner's.

The bridge is a real process, reached with what its link gives: a token and HTTP.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from acp_core.fleet.live import watch
from acp_core.protocols.wire.bridge.serving import BridgeSetup
from tests.loops import support as loops
from tests.protocols.wire.support import ROOT, acp, served
from tests.protocols.wire.test_bridge import Bridge, asked, peer
from tests.support.waiting import until

ONLY = "only the owner of this machine"


@contextmanager
def bridged(folder: Path, *allowed: str) -> Iterator[httpx.Client]:
    """A stranger who has the link of a bridge that allows some acts."""
    words = [word for each in allowed for word in ("--allow", each)]
    with Bridge(folder, "--port", "0", *words) as bridge:
        headers = {"authorization": f"Bearer {bridge.link.rsplit('/', 1)[1]}"}
        with httpx.Client(
            base_url=bridge.url, headers=headers, timeout=60, trust_env=False
        ) as remote:
            yield remote


def loops_of(folder: Path) -> list[dict[str, Any]]:
    """The loops of a folder, as `acp ps` lists them."""
    code, told = acp("ps", "--all", "--json")
    assert code in (0, 1), told
    listed: list[dict[str, Any]] = json.loads(told)["loops"]
    return [each for each in listed if each["collaboration"] == str(folder)]


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"participant": ["server=command"], "command": "touch {}", "workdir": "/etc"}, "command"),
    ({"participant": "server", "command": "touch {}"}, "command"),
    ({"participant": ["server"], "agent": ["command"]}, "agent"),
    ({"participant": ["server"], "program": "claude"}, "program"),
    ({"participant": ["server"], "with": ["claude"]}, "with"),
    ({"participant": ["server=claude"]}, "participant"),
    ({"participant": "server=command"}, "participant"),
    ({"participant": ["server"], "workdir": ""}, "workdir"),
    ({"participant": ["server"], "command": ""}, "command"),
    ({"participant": ["server"], "command": ["touch", "{}"]}, "command"),
    ({"participant": ["server"], "Command": "touch {}"}, "Command"),
    ({"participant": ["server"], "--command": "touch {}"}, "--command"),
    ({"participant": ["server"], "permissions": "all"}, "permissions"),
    ({"participant": ["server"], "budget": ["day=500usd"]}, "budget"),
    ({"participant": ["server"], "model": "dearest"}, "model"),
    ({"participant": ["server"], "timeout": 1}, "timeout"),
    ({"participant": ["server"], "turn_limit": "9d"}, "turn_limit"),
    ({"participant": ["server"], "commands": "sh -c {command}"}, "commands"),
    ({"participant": ["server"], "inputs": {"command": "touch {}"}}, "inputs"),
    ({"participant": ["server"], "env": {"PATH": "/tmp"}}, "env"),
]


def test_a_stranger_cannot_name_a_program_or_how_it_runs(tmp_path: Path) -> None:
    folder, mark = loops.make(tmp_path / "run"), tmp_path / "PWNED"
    with bridged(folder, "launch") as remote:
        for given, named in HOSTILE:
            inputs = json.loads(json.dumps(given).replace("{}", str(mark)))
            for error in (
                asked(remote, "launch", **inputs).get("error") or "it was done",
                remote.post("/bridge/preview", json={"action": "launch", "inputs": inputs})
                .json()["preview"]["refused"],
            ):  # fmt: skip
                assert named in error and error.startswith("launch: "), (given, error)
                assert "\n" not in error
        named_beside = {"action": "launch", "inputs": {}, "command": f"touch {mark}"}
        part = {"type": "data", "content": named_beside}
        task = remote.post("/tasks", json={"parts": [part], "role": "user"}).json()
        ended = remote.get(f"/tasks/{task['id']}/wait").json()["task"]
        assert ended["status"] == "failed"
        (offered,) = remote.get("/bridge/actions").json()["actions"]
        assert set(offered["inputs"]["properties"]) == {"participant", "again"}
    assert loops_of(folder) == [] and not mark.exists()


def test_a_launch_starts_what_the_owner_started_for_that_participant_and_nothing_else(
    tmp_path: Path,
) -> None:
    folder = loops.make(tmp_path / "run")
    program = loops.stand_in(tmp_path, "mine")
    hang = loops.behave(tmp_path, "hang")
    try:
        code, told = acp(
            "launch", str(folder), "reader", "--budget", "day=3usd", "--", program, hang
        )
        assert code == 0, told
        assert acp("stop", str(folder))[0] == 0
        with bridged(folder, "launch", "launch_all", "relaunch") as remote:
            refused = asked(remote, "launch", participant=["server"])
            assert refused["status"] == "failed"
            assert "server had no agent before" in refused["error"]
            together = asked(remote, "launch", participant=["reader", "server"])
            assert together["status"] == "failed" and loops_of(folder)[0]["alive"] is False
            everybody = asked(remote, "launch_all")
            assert everybody["status"] == "failed", everybody
            other = asked(remote, "launch_all", program="claude")
            assert "launch_all: " in other["error"] and "program" in other["error"]
            done = asked(remote, "launch", participant=["reader"])
            assert done["status"] == "completed", done
            until(lambda: loops_of(folder)[0]["alive"], "the loop")
            assert loops_of(folder)[0]["command"][0] == program
            model = asked(remote, "relaunch", participant="reader", model="dearest")
            assert "model" in model["error"]
        (loop,) = loops_of(folder)
        assert loop["participant"] == "reader"
    finally:
        acp("stop", str(folder))


@pytest.mark.slow
def test_a_run_of_sub_agents_and_a_cycle_start_no_program_of_anothers_choice(
    tmp_path: Path,
) -> None:
    team, project = tmp_path / "team", tmp_path / "project"
    mark = tmp_path / "PWNED"
    assert acp("workspaces", "init", str(team), "--objective", "X", "-a", "ann=Look")[0] == 0
    project.mkdir()
    code, told = acp("cycle", "start", "Export", "--folder", str(project), "--no-run")
    assert code == 0, told
    for folder, action, inputs, named in (
        (team, "dispatch", {"program": "command", "command": f"touch {mark}"}, "program, command"),
        (team, "dispatch", {"limit": 60}, "limit"),
        (team, "dispatch", {}, "no program was chosen"),
        (team, "synthesise", {"how": "program", "command": f"touch {mark}"}, "command"),
        (project, "run", {"program": "command", "command": f"touch {mark}"}, "program, command"),
        (project, "run", {}, "no program for"),
    ):
        with bridged(folder, action) as remote:
            ended = asked(remote, action, **inputs)
            assert ended["status"] == "failed" and named in ended["error"], ended
    assert not mark.exists()


@pytest.mark.slow
def test_acts_that_are_about_a_program_or_a_budget_are_nobody_elses(tmp_path: Path) -> None:
    folder = loops.make(tmp_path / "run")
    with bridged(folder, "hand_over", "raise_budget", "share", "block") as remote:
        for name, inputs in (
            ("hand_over", {"participant": "server"}),
            ("hand_over", {"participant": "server", "program": "command", "command": "touch x"}),
            ("raise_budget", {"participant": "server", "budget": "turn=500usd"}),
            ("share", {"url": str(tmp_path / "stolen.git")}),
        ):
            ended = asked(remote, name, **inputs)
            assert ended["status"] == "failed"
            assert ended["error"].startswith(f"{name}: {ONLY}"), ended["error"]
            for given in set(inputs) - {"participant"}:
                assert given in ended["error"]
        listed = remote.get("/bridge/actions").json()["actions"]
        assert [each["name"] for each in listed] == ["block"]


def test_continuing_makes_no_folder_of_anothers_choice_and_starts_nothing(tmp_path: Path) -> None:
    folder = loops.make(tmp_path / "run")
    try:
        program = loops.stand_in(tmp_path, "mine")
        assert (
            acp("launch", str(folder), "reader", "--", program, loops.behave(tmp_path, "hang"))[0]
            == 0
        )
        assert acp("stop", str(folder))[0] == 0
        loops.append(folder, "server", "blocked", 1)
        with bridged(folder, "continue") as remote:
            for name, value in (
                ("folder", str(tmp_path / "elsewhere")), ("to", str(tmp_path / "elsewhere")), ("start", True),
                ("answer_file", "/etc/passwd"),
            ):  # fmt: skip
                ended = asked(remote, "continue", answer="Go on", **{name: value})
                assert ended["status"] == "failed" and name in ended["error"], ended
            assert not (tmp_path / "elsewhere").exists()
            done = asked(remote, "continue", answer="Go on")
            assert done["status"] == "completed", done
        assert (tmp_path / "run-2" / "protocol.json").exists()
        assert loops_of(tmp_path / "run-2") == []
    finally:
        acp("stop", str(tmp_path / "run-2"))


@pytest.mark.parametrize("action", ["block"])
def test_what_names_no_program_is_done_as_before(tmp_path: Path, action: str) -> None:
    folder = loops.make(tmp_path / "run")
    setup = BridgeSetup(str(folder), watch, frozenset({action}))
    with served(tmp_path, "B", bridge=setup) as agent, peer(agent) as remote:
        wrong = asked(remote, action, reason="Wait", bogus=1)
        assert wrong["status"] == "failed" and "block: unknown input: bogus" in wrong["error"]
        assert asked(remote, action, reason="Wait")["status"] == "completed"


def started(folder: Path, *options: str) -> str:
    """What a bridge says until it is ready."""
    words = [sys.executable, "-m", "acp_core", "bridge", str(folder), "--port", "0", *options]
    lines: list[str] = []
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
    ) as ran:
        assert ran.stdout
        while not lines or not lines[-1].startswith("token for"):
            lines.append(ran.stdout.readline())
            assert lines[-1], lines
        ran.terminate()
        ran.stdout.read()
    return "".join(lines)


def test_the_start_says_what_others_may_ask_for(tmp_path: Path) -> None:
    folder = loops.make(tmp_path / "run")
    allowed = ("launch", "raise_budget", "continue")
    told = started(folder, *(word for each in allowed for word in ("--allow", each)))
    assert "who has the link can read everything in the folder, and ask for:\n" in told
    assert "  launch: participant, again\n" in told
    assert "  continue: " in told
    assert f"  raise_budget: refused: {ONLY} can do this\n" in told
    told = started(folder, "--name", "Quiet")
    assert "who has the link can read everything in the folder, and ask for nothing\n" in told
