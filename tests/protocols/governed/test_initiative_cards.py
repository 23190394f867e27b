"""What a human decides in an initiative, on a card: every workstream's facts, and one digit."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_core.protocols.governed.write import hooks
from acp_tui.screens.card import CardScreen
from acp_tui.screens.reading import ReadingScreen
from tests.cli.support import Acp
from tests.protocols.folder.test_cards import open_of
from tests.protocols.governed import making, multi
from tests.protocols.governed.acting import step
from tests.protocols.governed.multi import NAMES, begin, ledger, state
from tests.protocols.governed.test_coordinator_told import script
from tests.tui.cards import dashboard, open_card
from tests.tui.screen import seen
from tests.tui.stage import until


def at_the_gate(root: Path) -> Path:
    """All workstreams ask to leave planning, one of them without what its gate demands."""
    begin(root)
    config = making.config(gates=multi.gates())
    config["gates"]["planning_done"]["requires_files"] = ["PLAN.md"]
    making.write(root / "web/agentxchain.json", config)
    multi.all_ask(root)
    step(root)
    return root


def phases(root: Path) -> set[object]:
    return {state(root, name)["phase"] for name in NAMES}


def shows(pilot: Pilot[Any], *facts: str) -> None:
    shown = " ".join(seen(pilot).replace("│", " ").split())
    for fact in facts:
        assert fact in shown, f"{fact!r} is not on the card:\n{seen(pilot)}"


async def closed(pilot: Pilot[Any]) -> None:
    await until(pilot, lambda: not isinstance(pilot.app.screen, CardScreen))


async def test_a_cross_repo_gate_is_approved_with_two_keys(tmp_path: Path) -> None:
    root = at_the_gate(tmp_path / "house")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shows(
            pilot, "All 3 workstreams ask to leave planning (plan-sync)", "“All plan first.”",
            "✓ auth planning of auth done", "✗ web PLAN.md no such file or directory",
            "gateway OBJ-001 high No switch.", "auth DEC-001 One lamp. because Hall.",
            "1 Approve", "2 Send all back, with a reason", "5 Send web back",
        )  # fmt: skip
        await pilot.press("1")
        await closed(pilot)
    assert phases(root) == {"implementation"}
    assert [each["barrier"] for each in ledger(root) if each["type"] == "barrier_approved"] == [
        "plan-sync"
    ]


@pytest.mark.slow
async def test_one_workstream_alone_is_sent_back_with_what_is_missing(tmp_path: Path) -> None:
    root = at_the_gate(tmp_path / "house")
    async with dashboard(root, tmp_path, (80, 24)) as pilot:
        await open_card(pilot)
        shows(pilot, "1 Approve", "2 Send all back", "3 Send", "4 Send", "5 Send web back")
        await pilot.press("5")
        await until(pilot, lambda: "What is missing" in seen(pilot))
        await pilot.press(*"Write PLAN.md", "ctrl+s")
        await closed(pilot)
    assert state(root, "web")["status"] == "active"
    assert state(root, "auth")["blocked_on"] == "barrier:plan-sync"
    assert phases(root) == {"planning"}
    assert "Write PLAN.md" in (root / ".coordinator/ledger.jsonl").read_text()


@pytest.mark.slow
async def test_what_keeps_workstreams_from_crossing_is_mended_there(tmp_path: Path) -> None:
    root = begin(tmp_path / "house", ("auth", "web"))
    multi.all_ask(root, ("auth", "web"))
    step(root)
    place = root / "web/.agentxchain/state.json"
    place.write_bytes(place.read_bytes()[:50])
    multi.approve(root)
    async with dashboard(root, tmp_path, needs=False) as pilot:
        await open_of(pilot, root, "mend_workstream")
        shows(
            pilot, "plan-sync is approved, but no workstream crossed it",
            "✗ web its state cannot be read", "auth planning blocked (barrier)",
            "by Ann All agreed.", "1 Repair web", "2 Try again",
        )  # fmt: skip
        await pilot.press("1")
        await closed(pilot)
        await open_of(pilot, root, "resync")
        shows(pilot, "1 Let all cross")
        await pilot.press("1")
        await closed(pilot)
    assert state(root)["status"] == "active" and state(root, "web")["phase"] == "implementation"


def takes_keys(pilot: Pilot[Any]) -> bool:
    """Whether the card is on top, and drawn."""
    screen = pilot.app.screen
    return isinstance(screen, CardScreen) and screen._drawn_at < time.monotonic()


async def test_scripts_are_read_before_they_may_run(tmp_path: Path) -> None:
    told = script(tmp_path / "house", "tell.sh")
    root = begin(tmp_path / "house", ("auth", "web"), hooks={"on_barrier_reached": told})
    script(root, "tell.sh", "echo [red]hello\x1b[31m\n")  # another one than was trusted
    async with dashboard(root, tmp_path, needs=False) as pilot:
        await open_of(pilot, root, "trust_hooks")
        shows(
            pilot,
            "scripts that you have not allowed",
            "./coordinator-hooks/tell.sh sha256",
            "1 Allow these scripts",
            "enter: open",
        )
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReadingScreen))
        await until(pilot, lambda: "+echo [red]hello␛[31m" in seen(pilot))
        script(root, "tell.sh", "rm -rf /\n")  # behind the person's back
        for _ in range(2):
            await pilot.press("escape" if isinstance(pilot.app.screen, ReadingScreen) else "left")
            await until(pilot, lambda: takes_keys(pilot))  # not before it is drawn anew
            await pilot.press("1")
            await until(pilot, lambda: "cannot be undone" in seen(pilot))
            assert not hooks.is_script_trusted(root, told)
            await pilot.press("1")
            await until(pilot, lambda: "cannot be undone" not in seen(pilot))
            await until(pilot, lambda: "Working" not in seen(pilot))
        await closed(pilot)
    assert hooks.is_script_trusted(root, told)


def test_commands_decide_on_the_gate_that_was_read_and_on_no_other(
    acp: Acp, tmp_path: Path
) -> None:
    root = at_the_gate(tmp_path / "house")
    (card,) = json.loads(acp("card", str(root), "--json").stdout)["cards"]
    gate = next(each for each in card["sections"] if each["title"] == "Gate")
    assert [(row["cells"][0], row["checked"]) for row in gate["rows"]] == [("web", False)]
    (root / "web/PLAN.md").write_text("The plan.\n")
    command = shlex.split(card["verdicts"][0]["command"])[1:]
    refused = acp(*command, "--yes")
    assert refused.returncode == 2 and "have changed since you saw them" in refused.stderr
    assert phases(root) == {"planning"}
    (again,) = json.loads(acp("card", str(root), "--json").stdout)["cards"]
    done = acp(*shlex.split(again["verdicts"][0]["command"])[1:], "--yes")
    assert done.returncode == 0 and phases(root) == {"implementation"}
    assert json.loads(acp("card", str(root), "--json").stdout)["cards"] == []
