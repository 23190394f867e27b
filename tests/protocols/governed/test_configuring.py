"""An initiative is written down from repositories and branches, by a command and by a form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_core.model.action import OutcomeState
from acp_core.model.errors import Refused
from acp_core.protocols.governed.acts.upkeep import create
from acp_core.protocols.governed.read.run import detect
from acp_core.protocols.governed.write.init import InitiativeWish, initiative_configuration
from tests.protocols.governed import multi
from tests.protocols.governed.acting import (
    acted,
    initiative_actions,
    refused,
    seen,
)
from tests.protocols.governed.multi import NOW

CONFIG = "agentxchain-multi.json"


def test_names_and_branches_are_taken_from_the_addresses() -> None:
    wish = InitiativeWish(
        ("git@example.org:team/auth.git#q2", "web=./clones/web", "https://example.org/api/")
    )
    streams = initiative_configuration(wish)["workstreams"]
    assert [(s["name"], s["repo"], s["branch"]) for s in streams] == [
        ("auth", "git@example.org:team/auth.git", "q2"),
        ("web", "./clones/web", ""),
        ("api", "https://example.org/api/", ""),
    ]


@pytest.mark.parametrize(
    ("repositories", "barriers", "why"),
    [
        (["web=#q2"], (), "NAME=ADDRESS"),
        (["./web", "b/web"], (), "named twice"),
        (["./web"], ("sync",), "NAME=PHASE"),
        (["./web"], ("a=planning", "b=planning"), "named twice"),
        (["./web#--upload-pack=x"], (), "not a valid branch name"),
        (["../.."], (), "needs a name"),
    ],
)
def test_what_is_not_sound_is_refused(
    repositories: list[str], barriers: tuple[str, ...], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        initiative_configuration(InitiativeWish(repositories, barriers))


def test_an_initiative_is_written_down_and_started_by_one_command(tmp_path: Path) -> None:
    root = tmp_path / "house"
    origin = multi.repository(tmp_path / "origin")
    multi.repository(root / "web")
    words = ["init", str(root), "--repo", "web=./web", "--repo", f"auth={origin}#lamp",
             "--barrier", "plan-sync=planning", "--description", "Light the house"]  # fmt: skip
    shown = acted("coordinator", *words, "--dry-run")
    assert f"create {root / CONFIG}" in shown and "clone" in shown and not (root / CONFIG).exists()
    acted("coordinator", *words, "--as", "Ann", "--yes", "--json")
    config = json.loads((root / CONFIG).read_text())
    assert [each["phase"] for each in config["barriers"]] == ["planning"]
    assert config["super_run_id"] == multi.state(root, "auth")["super_run_id"]
    assert "already exists" in refused("coordinator", *words, "--as", "Ann", "--yes")
    refused("coordinator", "init", root, "--barrier", "a=b")


def test_from_the_dashboard_it_is_written_down_and_then_started(tmp_path: Path) -> None:
    root = tmp_path / "house"
    for name in ("web", "auth"):
        multi.repository(root / name)
    action = create(root)
    given = action.inputs(repositories=["./web#lamp", "./auth"], objective="Light\nthe house")
    (change,) = action.preview(given).changes
    assert (
        change.path == str(root / CONFIG) and '+  "description": "Light the house"' in change.diff
    )
    assert not (root / CONFIG).exists()
    done = action.perform(given)
    assert done.state is OutcomeState.DONE and detect(root)
    snapshot = seen(root, NOW)
    assert [need.code for need in snapshot.needs] == ["START"] and not snapshot.findings
    (start,) = initiative_actions(str(root))
    assert start.perform(start.inputs(by="Ann")).state is OutcomeState.DONE
    assert multi.state(root)["status"] == "active"
    assert "already exists" in action.preview(given).refused


def test_agents_are_named_when_it_is_started(tmp_path: Path) -> None:
    action = create(tmp_path)
    given = action.inputs(repositories=["./web"], agents=["pm=true"])
    assert "when you start it" in action.preview(given).refused
    assert action.perform(given).state is OutcomeState.REFUSED
    assert list(tmp_path.iterdir()) == []


def test_barriers_without_repositories_are_not_passed_over(tmp_path: Path) -> None:
    action = create(tmp_path / "new")
    given = action.inputs(barriers=["plan=planning"])
    assert "name its repositories, too" in (action.preview(given).refused or "")
    assert action.perform(given).state is OutcomeState.REFUSED
    assert not (tmp_path / "new").exists()
