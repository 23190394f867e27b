"""What a turn's prompt asks for is what the policy for edits allows, in every phase."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.agents.live.policy import Scope, decide
from acp_core.agents.live.requests import parse
from acp_core.loops import launch
from acp_core.loops.live import scope_of
from acp_core.model.turn import Brief
from acp_core.person.permissions import Permissions, Policy, Verdict
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.discovery import identify
from acp_core.protocols.registry import bundled
from tests.agents.live import messages
from tests.protocols.folder.support import make_v1, make_v2

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
EDITS = Permissions(Policy.EDITS)


def opened(folder: Path) -> Collaboration:
    found = identify(folder, bundled())
    assert found is not None
    return found.open()


def told(folder: Path, who: str, drafts: Path) -> tuple[str, Scope, tuple[str, ...]]:
    """A turn's prompt, what the turn is about, and the documents that it changes."""
    collaboration = opened(folder)
    brief = Brief(commands=launch.usable_commands("acp {command}"), drafts=str(drafts))
    turn = collaboration.turn(who, NOW, brief)
    assert turn is not None
    return (
        collaboration.prompt(who, brief),
        scope_of(collaboration, who, turn, brief),
        turn.documents,
    )


@pytest.mark.parametrize(
    ("upto", "who"),
    [
        ("drafting", "server"),
        ("reviewing", "reader"),
        ("revising", "server"),
        ("decision_review", "server"),
        ("classified", "reader"),
        ("readiness_check", "server"),
        ("passed", "server"),
    ],
)
@pytest.mark.parametrize("make", [make_v1, make_v2])
def test_all_that_a_prompt_asks_for_is_allowed(
    make: Callable[[Path, str], Path], upto: str, who: str, tmp_path: Path
) -> None:
    folder = make(tmp_path / "a folder", upto)
    drafts = tmp_path / "drafts"
    drafts.mkdir()
    prompt, scope, documents = told(folder, who, drafts)
    printed = re.findall(r"^    (\S.* --folder .*)$", prompt, re.MULTILINE)
    assert len(printed) >= 2  # an event of the turn, and `blocked`
    for command in printed:
        request = parse(messages.shell("claude", command))
        assert decide(request, scope, EDITS).verdict is Verdict.ALLOW, command
        other = command.replace(f"--participant {who}", "--participant reviewer")
        assert decide(parse(messages.shell("claude", other)), scope, EDITS).verdict is Verdict.ASK
    assert documents
    for path in documents:
        request = parse(messages.edit("claude", path, None, "x"))
        assert decide(request, scope, EDITS).verdict is Verdict.ALLOW, path
    for name in {"proposal.md", "review.md", "events.jsonl", "protocol.json"} - {
        Path(path).name for path in documents
    }:
        request = parse(messages.edit("claude", str(folder / name), None, "x"))
        assert decide(request, scope, EDITS).verdict is Verdict.ASK, name


def test_commands_that_a_person_decides_with_are_nobodys_own(tmp_path: Path) -> None:
    make_v1(tmp_path / "checkout", "drafting")
    own = opened(tmp_path / "checkout").own_commands()
    assert set(own) == {"append", "next", "wait", "validate"}


def test_a_collaboration_that_is_no_folder_has_no_commands_of_its_own() -> None:
    scope = Scope(program=("/opt/acp/bin/acp",))
    request = parse(messages.shell("claude", "/opt/acp/bin/acp append --folder / --participant x"))
    assert decide(request, scope, EDITS).verdict is Verdict.ASK
