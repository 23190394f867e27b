"""What acp writes opens in the existing program, and what would not is found and mended.

That program refuses a configuration in which a role that only reviews is bound to a local program
("invalid review_only + local_cli binding"), and one whose goal is empty ("must be a non-empty
string").
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_core.model.errors import Refused
from tests.protocols.governed import making, multi, playing
from tests.protocols.governed.acting import acted, migrate, refused, seen
from tests.protocols.governed.making import Object
from tests.protocols.governed.test_read import NOW

YES = ("--by", "olga", "--yes")


def config(root: Path) -> Object:
    value: Object = json.loads((root / "agentxchain.json").read_text("utf-8"))
    return value


def refusals(root: Path) -> list[str]:
    """What the existing program says of a configuration, of the two rules."""
    value, said = config(root), []
    for name, role in value["roles"].items():
        runtime = value["runtimes"][role["runtime"]]
        if role["write_authority"] == "review_only" and runtime["type"] == "local_cli":
            said.append(f"{name}: invalid review_only + local_cli binding")
    if "goal" in value["project"] and not value["project"]["goal"].strip():
        said.append("goal must be a non-empty string")
    return said


def complaints(root: Path) -> list[str]:
    findings = seen(root).findings
    return [each.message for each in findings if each.code == "CONFIG"]


@pytest.mark.parametrize("goal", [(), ("--goal", "Light the hall"), ("--goal", "  ")])
def test_a_run_whose_roles_programs_play_opens_there(tmp_path: Path, goal: tuple[str, ...]) -> None:
    root = playing.repository(tmp_path / "lamp")
    agents = [part for role in ("pm", "dev", "qa") for part in ("--agent", f"{role}=true")]
    assert "pm, qa: may change any file" in acted("init", root, *goal, *agents)
    assert refusals(root) == []
    assert ("goal" in config(root)["project"]) == (goal == ("--goal", "Light the hall"))
    assert complaints(root) == []


def test_a_role_that_a_human_plays_still_only_reviews(tmp_path: Path) -> None:
    root = playing.repository(tmp_path / "lamp")
    acted("init", root, "--agent", "dev=true")
    authorities = {name: role["write_authority"] for name, role in config(root)["roles"].items()}
    assert authorities == {"pm": "review_only", "dev": "authoritative", "qa": "review_only"}


def test_the_runs_of_an_initiative_without_a_description_open_there(tmp_path: Path) -> None:
    root = tmp_path / "house"
    multi.repository(root / "web")
    words = ["init", str(root), "--repo", "web=./web", "--barrier", "plan=planning"]
    acted("coordinator", *words, "--agent", "qa=true", *YES)
    assert refusals(root / "web") == []


def test_what_does_not_open_there_is_named_and_migrated(tmp_path: Path) -> None:
    root = making.make_run(tmp_path)
    wrong = making.config(rules={"mandatory_objections": True})
    wrong["project"]["goal"] = ""
    wrong["runtimes"]["manual-qa"] = {"type": "local_cli", "command": "true"}
    making.configure(root, wrong)
    assert complaints(root) == [
        "project.goal must be a non-empty string.",
        'Role "qa": invalid review_only + local_cli binding.',
    ]
    acted("migrate", root, *YES)
    assert complaints(root) == [] and refusals(root) == []
    assert "nothing to migrate" in refused("migrate", root, *YES)


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        (7, "project.goal must be a non-empty string."),
        (" ", "project.goal must be a non-empty string."),
        ("x" * 501, "project.goal must be at most 500 characters."),
    ],
)
def test_a_goal_that_is_none_is_named(tmp_path: Path, goal: object, said: str) -> None:
    root = making.make_run(tmp_path)
    wrong = making.config()
    wrong["project"]["goal"] = goal
    making.configure(root, wrong)
    assert complaints(root) == [said]


def test_what_migrating_does_is_said_word_by_word_and_another_form_is_left_alone(
    tmp_path: Path,
) -> None:
    root = making.make_run(tmp_path)
    config = making.config()
    del config["schema_version"]
    for form in ({"version": 3}, {"agents": {}}):
        making.configure(root, config | form)
        with pytest.raises(Refused, match="this run has the version 3 format: convert it with"):
            migrate(root, "Ann", NOW)
    making.configure(root, config)
    assert migrate(root, "Ann", NOW) == (
        "agentxchain.json: schema_version 1.0",
        "agentxchain.json: every role must raise an objection",
        ".agentxchain/state.json: may be linked to an initiative",
    )
