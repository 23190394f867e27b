"""What is wrong in a configuration, and in what the coordinator keeps, is said one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.protocols.governed import making, multi
from tests.protocols.governed.acting import seen
from tests.protocols.governed.making import Object


def said(root: Path, code: str) -> list[str]:
    return [f.message for f in seen(root).findings if f.code == code]


@pytest.mark.parametrize(
    ("part", "value", "told"),
    [
        ("entry_role", "ceo", 'Routing "planning": entry_role "ceo" is not a defined role.'),
        ("allowed_next_roles", ["ceo"],
         'Routing "planning": allowed_next_roles references unknown role "ceo".'),
        ("max_concurrent_turns", 5,
         'Routing "planning": max_concurrent_turns must be an integer between 1 and 4.'),
        ("max_concurrent_turns", True,
         'Routing "planning": max_concurrent_turns must be an integer between 1 and 4.'),
        ("exit_gate", "nowhere", 'Routing references unknown gate: "nowhere".'),
    ],
)  # fmt: skip
def test_of_the_routing(tmp_path: Path, part: str, value: object, told: str) -> None:
    root = making.make_run(tmp_path)
    config = making.config()
    config["routing"]["planning"] |= {part: value}
    making.configure(root, config)
    assert said(root, "CONFIG") == [told]


def test_of_roles_runtimes_and_prompts(tmp_path: Path) -> None:
    root = making.make_run(tmp_path)
    config = making.config(prompts={"pm": "../../secret.md", "qa": ".agentxchain/prompts/qa.md"})
    config["roles"]["pm"] |= {"runtime": "ghost", "write_authority": "all"}
    config["runtimes"]["manual-qa"] = {"type": "pigeon"}
    making.configure(root, config)
    assert said(root, "CONFIG") == [
        'Role "pm" references unknown runtime "ghost".',
        'Role "pm": write_authority must be one of: authoritative, proposed, review_only.',
        (
            'Runtime "manual-qa": type must be one of: manual, local_cli, api_proxy, mcp, '
            "remote_agent."
        ),
        'The prompt of "pm", ../../secret.md, leads out of the repository.',
    ]


def initiative(root: Path, **of_state: Any) -> Path:
    multi.begin(root)
    making.write(root / ".coordinator/state.json", multi.state(root) | of_state)
    return root


def test_a_coordinator_s_state_is_sound_as_acp_writes_it(tmp_path: Path) -> None:
    assert seen(initiative(tmp_path)).findings == ()


@pytest.mark.parametrize(
    ("of_state", "told"),
    [
        ({"status": "paused"}, "Unknown initiative status “paused”."),
        ({"super_run_id": "other"}, "The coordinator's state belongs to “other”, the"),
        ({"workstreams": {}}, "The coordinator's state lacks auth, gateway, web."),
        ({"barriers": {}}, "The coordinator's state lacks the barrier plan-sync."),
        ({"barriers": {"plan-sync": {"status": "open"}}}, "The barrier plan-sync must be one of"),
        ({"barriers": {"plan-sync": {"status": "approved"}}},
         "The approved barrier plan-sync lacks approved_at, approved_by."),
        ({"barriers": {"plan-sync": {"status": "pending", "reached_by": ["moon"]}}},
         "The barrier plan-sync was reached by moon, an unknown workstream."),
    ],
)  # fmt: skip
def test_of_the_coordinator_s_state(tmp_path: Path, of_state: Object, told: str) -> None:
    found = said(initiative(tmp_path, **of_state), "COORDINATOR_STATE")
    assert any(told in message for message in found), found


def test_of_the_coordinator_s_ledger(tmp_path: Path) -> None:
    root = initiative(tmp_path)
    with (root / ".coordinator/ledger.jsonl").open("a") as log:
        log.write(json.dumps({"type": "barrier_approved"}) + "\n")
        log.write(json.dumps({"type": "resync", "at": making.AT, "super_run_id": "other"}) + "\n")
    found = said(root, "RECORD")
    assert [message.partition(": ")[2] for message in found] == [
        "the line lacks at, super_run_id.", "the line belongs to the initiative “other”.",
    ]  # fmt: skip


def test_workstreams_that_wait_for_each_other_in_a_circle_are_found(tmp_path: Path) -> None:
    root = making.make_existing(tmp_path, "all_repos_accepted", web=making.state())
    config = json.loads((root / "agentxchain-multi.json").read_text())
    stream = config["workstreams"]["plan"]
    after = {"a": ["c"], "b": ["a"], "c": ["b"], "d": ["a"], "e": ["e"], "f": ["d", "plan"]}
    config["workstreams"] |= {name: stream | {"depends_on": on} for name, on in after.items()}
    making.write(root / "agentxchain-multi.json", config)
    assert said(root, "MULTI_CONFIG") == [
        "agentxchain-multi.json: workstream a depends on itself, through b, c",
        "agentxchain-multi.json: workstream b depends on itself, through a, c",
        "agentxchain-multi.json: workstream c depends on itself, through a, b",
        "agentxchain-multi.json: workstream e depends on itself, through no other repository",
    ]


def test_a_circle_is_found_in_the_specification_s_layout_too(tmp_path: Path) -> None:
    config = multi.configuration(multi.NAMES)
    config["workstreams"][0]["depends_on"] = ["web"]
    config["workstreams"][2]["depends_on"] = ["auth"]
    making.write(tmp_path / "agentxchain-multi.json", config)
    assert [message.partition(": ")[2] for message in said(tmp_path, "MULTI_CONFIG")] == [
        "workstream auth depends on itself, through web",
        "workstream web depends on itself, through auth",
    ]
