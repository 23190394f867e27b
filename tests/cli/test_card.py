"""``acp card``: a decision made from a shell, on the matter that was read and on no other."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from tests.cli.support import Acp
from tests.protocols.governed import states


def cards(acp: Acp, root: Path) -> list[dict[str, Any]]:
    """The decisions; what can only be mended has a card of the name of its problem."""
    ran = acp("card", str(root), "--json")
    told = json.loads(ran.stdout)
    assert told["schema"] == "acp.card/1" and ran.returncode == (1 if told["cards"] else 0)
    return [each for each in told["cards"] if each["id"] != each["matter"]]


def test_a_card_says_what_the_decision_depends_on_and_its_commands_decide(
    acp: Acp, tmp_path: Path
) -> None:
    root = states.run_in(tmp_path / "lamp", "at its gate")
    ran = acp("card", str(root))
    assert ran.returncode == 1
    for fact in (
        "pm asks to enter implementation",
        "“Planned the lamp.”",
        "No switch.",
        "✓ .planning/ROADMAP.md",
    ):
        assert fact in ran.stdout
    (card,) = cards(acp, root)
    assert [each["label"] for each in card["verdicts"]][:2] == ["Approve", "Reject, with a reason"]
    assert card["verdicts"][1]["choose"] == ["comment"]
    command = shlex.split(card["verdicts"][0]["command"])
    shown = json.loads(acp(*command[1:], "--dry-run", "--json").stdout)
    assert shown["card"]["digest"] == card["digest"] and shown["outcome"] is None
    done = acp(*command[1:], "--yes")
    assert done.returncode == 0 and states.state(root)["phase"] == "implementation"
    assert cards(acp, root) == []


def test_a_verdict_is_refused_where_the_matter_has_changed(acp: Acp, tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "lamp", "at its gate")
    (card,) = cards(acp, root)
    (root / ".planning/SYSTEM_SPEC.md").write_text("## Purpose\n\nLight.\n")
    refused = acp(*shlex.split(card["verdicts"][0]["command"])[1:], "--yes")
    assert refused.returncode == 2 and "have changed since you saw them" in refused.stderr
    assert states.state(root)["phase"] == "planning"
    (again,) = cards(acp, root)
    assert again["digest"] != card["digest"]
    gate = next(each for each in again["sections"] if each["title"] == "Gate")
    assert [row["checked"] for row in gate["rows"]] == [True, True, False]


def test_what_needs_no_decision_but_can_be_mended_has_a_card_too(acp: Acp, tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "lamp", "given out")
    assert cards(acp, root) == []
    ran, listed = acp("card", str(root)), acp("why", str(root))
    assert ran.returncode == listed.returncode == 1
    for each in json.loads(acp("card", str(root), "--json").stdout)["cards"]:
        command = shlex.split(each["verdicts"][0]["command"])[1:]
        words = [f"{each['title']}." if word == "REASON" else word for word in command]
        assert acp(*words, "--dry-run").returncode == 0
