"""What stands is the same on every surface, in every state of every protocol of which there is a golden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from tests.golden.sandbox import Sandbox, fixed_place
from tests.golden.states import all_states
from tests.tui.screen import seen
from tests.tui.stage import until

STATES = all_states()
QUICK = 3
"""So many states of each protocol are looked at by default; the others take long together."""


def _marked() -> list[object]:
    marked: list[object] = []
    for name in STATES:
        protocol = name.partition("/")[0]
        of_protocol = [each for each in STATES if each.startswith(f"{protocol}/")]
        chosen = of_protocol[:: max(1, len(of_protocol) // QUICK)][:QUICK]
        marked.append(name if name in chosen else pytest.param(name, marks=pytest.mark.slow))
    return marked


def _said(text: str) -> str:
    """A text without blanks, frames and signs, in lower case."""
    return "".join(each for each in text.casefold() if each.isalnum())


@pytest.mark.parametrize("name", _marked())
async def test_every_surface_says_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with fixed_place(f"standing {name}") as place:
        sandbox = Sandbox(place / "sandbox")
        folder = STATES[name].build(sandbox.work)
        sandbox.keep()
        whole, code = _asked(sandbox, "show", folder)
        if whole is None or code:
            return  # no collaboration can be read there: every command says so
        snapshot = whole["snapshot"]
        matters = snapshot["matters"]
        keys = [each["key"] for each in matters]
        assert sorted(set(keys)) == sorted(keys)
        wanted = [m for m in matters if m["move"]["who"] == "owner" and not m["because"]]
        assert [each["key"] for each in snapshot["needs"]] == [each["key"] for each in wanted]
        assert all(each["because"] in (None, *keys) for each in matters)

        listed, _ = _asked(sandbox, "status", folder)
        assert listed is not None
        (row,) = (each for each in listed["collaborations"] if each["key"] == snapshot["key"])
        assert row["matters"] == matters
        assert row["depth"] or bool(row["needs"]) == bool(wanted)

        reasons, code = _asked(sandbox, "why", folder)
        assert reasons is not None and reasons["snapshot"]["matters"] == matters
        assert (code, reasons["wanted"]) == (int(bool(wanted)), bool(wanted))

        acts, _ = _asked(sandbox, "act", folder)
        offered = {each["name"] for each in (acts or {}).get("actions", ())}
        possible = [m for m in wanted if {v["action"] for v in m["verdicts"]} & offered]
        shown, code = _asked(sandbox, "card", folder)
        assert shown is not None and code == int(bool(possible))
        verdicts = {each["action"] for card in shown["cards"] for each in card["verdicts"]}
        for each in possible:  # several may be decided on one card
            assert verdicts & {verdict["action"] for verdict in each["verdicts"]}, each["key"]

        for command in ("status", "show", "why"):
            printed = _said(sandbox.acp(command, str(folder)).stdout)
            for each in wanted:
                assert _said(each["sentence"]) in printed, (command, each["sentence"])
        monkeypatch.setattr("os.environ", sandbox.env)
        if not snapshot["parts"]:  # there the needs of the parts show, too
            await _drawn(folder, place, wanted)


def _asked(sandbox: Sandbox, command: str, folder: Path) -> tuple[dict[str, Any] | None, int]:
    ended = sandbox.acp(command, str(folder), "--json")
    if not ended.stdout:
        return None, ended.returncode
    read: dict[str, Any] = json.loads(ended.stdout)
    return read, ended.returncode


async def _drawn(folder: Path, place: Path, wanted: list[dict[str, Any]]) -> None:
    """The screen of the collaboration shows the first need, and how many there are."""
    app = AcpApp(
        [str(folder)],
        settings=Settings(bell=False),
        attention=Attention(place / "attention.json"),
    )
    async with app.run_test(size=(200, 50)) as pilot:
        first = _said(wanted[0]["sentence"])[:40] if wanted else ""
        await until(pilot, lambda: first in _said(seen(pilot)))
        await until(pilot, lambda: pilot.app.screen.query("#show-list"))
        if len(wanted) > 1:
            await until(pilot, lambda: f"1 of {len(wanted)}" in seen(pilot))
        assert len(getattr(pilot.app.screen, "needs", ())) == len(wanted)
