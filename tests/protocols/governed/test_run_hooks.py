"""Hooks are told of what happened in a run, once a human has allowed them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from acp_core.protocols.governed import schema
from acp_core.protocols.governed.write import hooks
from tests.cli.support import Acp
from tests.protocols.governed import making, playing
from tests.protocols.governed.acting import YES, acted, governed, refused, seen, state, told
from tests.protocols.governed.making import Object
from tests.protocols.governed.test_services import Service

HOOK = """
import json, os, sys, time
told = json.load(open(os.environ["AGENTXCHAIN_PAYLOAD_FILE"]))
names = ("EVENT", "RUN_ID", "TURN_ID", "ROLE", "PHASE", "PLUGIN_CONFIG")
told["env"] = {name: os.environ["AGENTXCHAIN_" + name] for name in names}
told["colour"] = os.environ.get("COLOUR")
with open(sys.argv[1], "a") as log:
    log.write(json.dumps(told) + "\\n")
if "slow" in sys.argv:
    time.sleep(60)
sys.exit(3 if "fails" in sys.argv else 0)
"""


def start(root: Path, hooks: Object) -> Path:
    playing.repository(root)
    words = ["init", str(root)]
    for role, line in playing.agents(root.parent / "bin").items():
        words += ["--agent", f"{role}={line}"]
    assert governed(words) == 0
    path = root / "agentxchain.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"hooks": hooks}))
    return root


def process(log: Path, *words: str, **more: Any) -> Object:
    script = log.parent / "hook.py"
    script.write_text(HOOK)
    command = [sys.executable, str(script), str(log), *words]
    return {"name": "note", "type": "process", "command": command} | more


def lines(log: Path) -> list[Object]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_hooks_run_in_their_phases_after_a_human_allowed_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    hook = process(log, env={"COLOUR": "green"}, config={"a": 1})
    root = start(tmp_path / "lamp", {phase: [hook] for phase in schema.HOOK_PHASES})
    assert governed(["step", str(root)]) == 0
    assert lines(log) == []
    assert "not allowed yet" in capsys.readouterr().err
    assert governed(["trust", str(root), *YES]) == 0
    assert governed(["accept-turn", str(root)]) == 0
    assert governed(["reject", str(root), "--comment", "No", *YES]) == 0
    assert governed(["escalate", str(root), "--reason", "Legal", *YES]) == 0
    seen = lines(log)
    assert [each["hook_phase"] for each in seen] == [
        "after_acceptance", "before_gate", "on_escalation",
    ]  # fmt: skip
    first = seen[0]
    assert first["turn"]["summary"] == "pm did its part."
    assert first["env"]["ROLE"] == "pm" and first["env"]["EVENT"] == "after_acceptance"
    assert json.loads(first["env"]["PLUGIN_CONFIG"]) == {"a": 1}
    assert first["colour"] == "green"
    audit = told(root, "hook-audit.jsonl")
    assert [each["orchestrator_action"] for each in audit] == ["skipped"] + ["continued"] * 3


def test_a_hook_runs_once_when_a_result_is_accepted_and_for_nothing_else(
    tmp_path: Path, acp: Acp
) -> None:
    log = tmp_path / "log"
    counted = f"""echo '{{}}' >> {log}; echo '{{"verdict": "allow"}}'"""
    hook = {"name": "count", "command": ["sh", "-c", counted], "mode": "blocking"}
    root = start(tmp_path / "lamp", {"before_acceptance": [hook]})
    assert acp("governed", "trust", str(root), *YES).returncode == 0
    assert acp("governed", "step", str(root)).returncode == 0
    runs = []
    for words, code in (
        (("--dry-run",), 0),
        (("--turn", "turn_of_nobody", "--yes"), 2),
        (("--yes", "--matter", "0" * 32), 2),
        (("--yes",), 0),
    ):
        assert acp("act", str(root), "accept_turn", *words).returncode == code, words
        runs.append(len(lines(log)) - sum(runs))
    assert runs == [0, 0, 0, 1]


def test_a_hook_that_fails_hangs_or_is_not_there_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    given = [
        process(log, "fails"),
        process(log, "slow", timeout_ms=300),
        {"name": "gone", "command": ["./no-such-program"]},
        {"name": "empty"},
    ]
    root = start(tmp_path / "lamp", {"after_dispatch": given})
    assert governed(["trust", str(root), *YES]) == 0
    assert governed(["step", str(root), "--no-run"]) == 0
    assert state(root)["status"] == "active"
    audit = told(root, "hook-audit.jsonl")
    assert [each["orchestrator_action"] for each in audit] == [
        "warned_failure", "warned_timeout", "warned_failure", "skipped",
    ]  # fmt: skip
    assert audit[0]["exit_code"] == 3 and audit[1]["timed_out"]
    assert capsys.readouterr().err.count("warning: hook after_dispatch") == 4


def test_an_address_is_told_too(tmp_path: Path) -> None:
    service = Service()
    service.text = "thanks"
    try:
        hook = {"name": "web", "type": "http", "url": f"{service.url}/told"}
        root = start(tmp_path / "lamp", {"after_dispatch": [hook]})
        acted("trust", root, *YES)
        acted("step", root, "--no-run")
        [(path, _, payload)] = service.asked
        assert (path, payload["role"], payload["status"]) == ("/told", "pm", "active")
        service.status = 302
        hooks.fire(root, "after_dispatch", {})
    finally:
        service.close()
    actions = [each["orchestrator_action"] for each in told(root, "hook-audit.jsonl")]
    assert actions == ["continued", "warned_failure"]


def test_a_script_that_changed_has_to_be_allowed_again(tmp_path: Path) -> None:
    root = start(tmp_path / "lamp", {})
    script = root / "hooks/note.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    path = root / "agentxchain.json"
    given = {"after_dispatch": [{"name": "note", "command": ["hooks/note.sh"]}]}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"hooks": given}))
    acted("trust", root, *YES)
    assert hooks.fire(root, "after_dispatch", {}) == []
    script.write_text("#!/bin/sh\nrm -rf x\n")
    assert "not allowed yet" in hooks.fire(root, "after_dispatch", {})[0]


def test_what_acp_does_not_do_with_hooks_is_said(tmp_path: Path) -> None:
    block = {"name": "x", "command": ["true"], "mode": "blocking"}
    tell = {"name": "x", "command": ["true"], "mode": "advisory"}
    root = start(tmp_path / "lamp", {"after_acceptance": [block], "before_assignment": [tell]})
    found = seen(root).findings
    assert [each.code for each in found] == ["HOOK", "HOOK"]
    for phase, hook in (("before_gate", tell), ("before_assignment", block)):
        sound = start(tmp_path / phase / "lamp", {phase: [hook]})
        assert seen(sound).findings == ()


ASKED = """
import json, os, sys
told = json.load(sys.stdin)
assert told["hook_phase"] == os.environ["AGENTXCHAIN_HOOK_PHASE"]
assert told["run_id"] is None or told["run_id"] == os.environ["AGENTXCHAIN_RUN_ID"]
answer = open(sys.argv[1]).read()
with open(sys.argv[1] + ".log", "a") as log:
    log.write(json.dumps(told) + "\\n")
if answer == "edit":
    path = os.path.join(os.environ["AGENTXCHAIN_PROJECT_ROOT"], ".agentxchain/history.jsonl")
    open(path, "a").write("{}\\n")
print(answer if answer != "edit" else '{"verdict": "allow"}')
sys.exit(3 if answer == "fail" else 0)
"""


def stopping(root: Path, phase: str, answer: str) -> tuple[Path, Path]:
    """A run of which a hook is asked in a phase; returns the run, and where its answer stands."""
    place = root / "answer"
    (root / "ask.py").write_text(ASKED)
    place.write_text(answer)
    command = [sys.executable, str(root / "ask.py"), str(place)]
    hook = {"name": "veto", "type": "process", "command": command, "mode": "blocking"}
    return start(root / "lamp", {phase: [hook]}), place


def acting(root: Path, phase: str) -> int:
    """Do what the hook of a phase stands before."""
    if phase == "before_assignment":
        return governed(["step", str(root)])
    if phase == "before_gate":
        return governed(["approve-gate", str(root), *YES])
    return governed(["accept-turn", str(root)])


@pytest.mark.parametrize("phase", list(schema.ASKED_BEFORE))
@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ('{"verdict": "block", "message": "Not on a Friday"}', "blocked"),
        ("fail", "blocked_failure"),
        ("no verdict", "blocked_invalid_output"),
        ("edit", "aborted_tamper"),
    ],
)
def test_nothing_is_done_past_a_hook_that_stops_it(
    tmp_path: Path, phase: str, answer: str, action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root, place = stopping(tmp_path, phase, '{"verdict": "allow"}')
    if phase == "before_assignment":
        assert governed(["step", str(root)]) == 2
        assert "you have not allowed them: acp governed trust" in capsys.readouterr().err
    assert governed(["trust", str(root), *YES]) == 0
    for before in ("before_assignment", "before_acceptance", "before_gate"):
        if before == phase or (
            before == "before_acceptance" and phase in schema.ASKED_BEFORE and "valid" in phase
        ):
            break
        assert acting(root, before) == 0
    place.write_text(answer)
    was = state(root)
    capsys.readouterr()
    assert acting(root, phase) == 2
    assert "stopped by the hook" in (said := capsys.readouterr().err), said
    assert state(root) == was
    audit = told(root, "hook-audit.jsonl")[-1]
    assert (audit["orchestrator_action"], audit["hook_phase"]) == (action, phase)
    if answer.startswith("{"):
        assert "Not on a Friday" in said and audit["verdict"] == "block"
    if action != "aborted_tamper":
        place.write_text('{"verdict": "warn", "message": "Be quick"}')
        assert acting(root, phase) == 0
        assert told(root, "hook-audit.jsonl")[-1]["hook_phase"] in (phase, "after_dispatch")


def test_a_run_of_the_other_program_is_not_carried_past_its_hooks(tmp_path: Path) -> None:
    hook = {"name": "veto", "command": ["false"], "mode": "blocking"}
    old = {"status": "active", "active_turns": {making.TURN: making.turn()}}
    root = making.make_run(tmp_path, of_state=making.state(**old))
    path = root / "agentxchain.json"
    given = {"before_acceptance": [hook], "before_gate": [hook]}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"hooks": given}))
    making.write(root / f".agentxchain/staging/{making.TURN}/turn-result.json", making.result())
    assert acting(root, "before_acceptance") == 2
    assert state(root)["active_turns"]
    snapshot = seen(root)
    (obstacle,) = snapshot.obstacles
    assert obstacle.instruction == f"acp governed trust {root}" and obstacle.remedy == "trust"
    acted("trust", root, *YES)
    assert seen(root).obstacles == ()
    assert acting(root, "before_acceptance") == 2
    assert told(root, "hook-audit.jsonl")[-1]["orchestrator_action"] == "blocked_failure"


def test_a_hook_that_blocks_where_none_is_asked_keeps_turns_from_being_given_out(
    tmp_path: Path,
) -> None:
    root = start(tmp_path / "lamp", {"after_dispatch": [
        {"name": "x", "command": ["true"], "mode": "blocking"}]})  # fmt: skip
    assert "make it a hook of before_assignment, or advisory" in refused("step", root)


def test_an_agent_allows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = start(tmp_path / "lamp", {"after_dispatch": [{"name": "x", "command": ["true"]}]})
    monkeypatch.setenv("ACP_GOVERNED_TURN", "turn_1")
    refused("trust", root, *YES)


@pytest.mark.parametrize("given", [7, [], {"after_dispatch": 7}, {"after_dispatch": [7, {}]},
                                   {"after_dispatch": [{"command": [1], "timeout_ms": "x"}]}])  # fmt: skip
def test_odd_hooks_stop_nothing(tmp_path: Path, given: Any) -> None:
    root = start(tmp_path / "lamp", given)
    acted("trust", root, *YES)
    acted("step", root, "--no-run")


def test_a_run_of_an_earlier_version_is_migrated_and_goes_on(tmp_path: Path) -> None:
    old = {"status": "active", "active_turns": {making.TURN: making.turn()}}
    root = making.make_run(tmp_path, of_state=making.state(**old))
    for name in ("agentxchain.json", ".agentxchain/state.json"):
        told_ = json.loads((root / name).read_text())
        del told_["schema_version"]
        making.write(root / name, told_)
    history = (root / ".agentxchain/history.jsonl").read_bytes()
    acted("migrate", root, "--dry-run")
    assert "schema_version" not in json.loads((root / "agentxchain.json").read_text())
    acted("migrate", root, *YES)
    config = json.loads((root / "agentxchain.json").read_text())
    assert config["schema_version"] == "1.0"
    assert config["rules"]["mandatory_objections"] is True
    after = state(root)
    assert (after["schema_version"], after["super_run_id"]) == ("1.1", None)
    assert after["active_turns"] == old["active_turns"]
    assert (root / ".agentxchain/history.jsonl").read_bytes() == history
    assert told(root, "decision-ledger.jsonl")[-1]["type"] == "migrated"
    assert "nothing to migrate" in refused("migrate", root, *YES)


def test_a_version_is_never_lowered_and_the_third_form_is_left_alone(tmp_path: Path) -> None:
    root = making.make_run(tmp_path / "new", of_state=making.state(schema_version="9.0"))
    acted("migrate", root, *YES)
    assert state(root)["schema_version"] == "9.0"
    legacy = making.make_run(tmp_path / "old")
    making.configure(legacy, {"version": 3, "project": "lamp", "agents": {}})
    refused("migrate", legacy, *YES)
