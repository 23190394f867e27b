"""Every key has an id, can be changed in config.toml, and stands in help."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

import acp_tui
from acp_core.model.matter import decision
from acp_tui import keys
from tests.tui.stage import StageFleet, dashboard, is_open, needy, screen_text, snapshot


def classes() -> list[type[DOMNode]]:
    """Every screen and widget of the product."""
    found: dict[str, type[DOMNode]] = {}
    for module in pkgutil.walk_packages(acp_tui.__path__, "acp_tui."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, DOMNode):
                found[f"{value.__module__}.{value.__name__}"] = value
    return [each for name, each in found.items() if name.startswith("acp_tui.")]


@pytest.mark.parametrize("owner", classes(), ids=lambda owner: owner.__name__)
def test_every_binding_has_an_id_a_description_and_no_claim_to_come_first(
    owner: type[DOMNode],
) -> None:
    for binding in vars(owner).get("BINDINGS", ()):
        assert isinstance(binding, Binding)
        assert binding.id, binding
        assert binding.description, binding
        assert not binding.priority, "a priority binding takes its letter from forms"


def test_an_id_means_one_thing() -> None:
    ids = [binding.id for binding in keys.TABLE]
    assert len(ids) == len(set(ids))


def test_no_two_acts_of_the_fleet_share_a_key() -> None:
    taken = [
        key for b in (*keys.FLEET, *keys.ACT, *keys.LIST, *keys.APP) for key in b.key.split(",")
    ]
    assert len(taken) == len(set(taken))


async def test_a_key_that_was_changed_works_and_the_old_one_does_not(tmp_path: Path) -> None:
    chosen = {"fleet.filter": "F", "list.down": "s,down"}
    app = dashboard(StageFleet(snapshot("a"), snapshot("b")), tmp_path, settings={"keys": chosen})
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        await pilot.press("slash")
        assert not app.screen.query_one("#filter").display
        await pilot.press("s")
        assert app.screen.query_one("FleetTable").selected == "/work/b"  # type: ignore[attr-defined]
        await pilot.press("F")
        assert app.screen.query_one("#filter").display


async def test_help_lists_the_keys_as_they_are_and_their_ids_at_the_end(tmp_path: Path) -> None:
    app = dashboard(StageFleet(needy("a")), tmp_path, settings={"keys": {"act.copy_path": "Z"}})
    async with app.run_test(size=(120, 130)) as pilot:
        await pilot.pause()
        await pilot.press("question_mark")
        await pilot.pause()
        shown = screen_text(app)
        above, _, ids = shown.partition("Other keys")
        for binding in (*keys.FLEET, *keys.ACT, *keys.LIST, *keys.APP):
            if binding.id == "act.block":  # it has a key while something can be stopped
                continue
            assert binding.id in ids and binding.id not in above
        (line,) = [line for line in shown.splitlines() if "act.copy_path" in line]
        assert line.split()[2:4] == ["Z", "Copy"]
        assert "config.toml" in ids
        await pilot.press("question_mark", "escape")
        await pilot.pause()
        assert not is_open(app, "HelpScreen")


@pytest.mark.parametrize("columns", [80, 120])
async def test_help_begins_with_what_can_be_done_now_and_says_what_the_fix_is(
    columns: int, tmp_path: Path
) -> None:
    need = decision("stuck:1", "STUCK", "no review came", "reader", act="send_again")
    app = dashboard(StageFleet(snapshot("a", needs=(need,)), snapshot("b")), tmp_path)
    async with app.run_test(size=(columns, 60)) as pilot:
        await pilot.pause()
        await pilot.press("question_mark")
        await pilot.pause()
        shown = screen_text(app)
        rows = shown.splitlines()
        first = next(n for n, row in enumerate(rows) if "What you can do here now" in row)
        assert "f            Fix: Do it  No review came" in rows[first + 1]
        assert ("Move around" in rows[first]) is (columns == 120), "beside each other"
        await pilot.press("escape", "down")
        await pilot.pause()
        await pilot.press("question_mark")
        await pilot.pause()
        assert "Fix:" not in screen_text(app), "nothing is to be fixed in the other one"


@pytest.mark.slow
async def test_help_is_searched_by_words(tmp_path: Path) -> None:
    app = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        await pilot.press("question_mark", "slash", *"inbox", "enter")
        await pilot.pause()
        shown = screen_text(app)
        assert "app.inbox" in shown and "Inbox" in shown and "Start loops" not in shown
        await pilot.press("slash", "ctrl+u", *"blocked")
        await pilot.pause()
        assert "■ blocked" in screen_text(app)
        await pilot.press("ctrl+u", *"[/x]")
        await pilot.pause()
        assert "No help entry contains these words." in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "Start loops" in screen_text(app)


async def test_an_id_that_does_not_exist_is_said(tmp_path: Path) -> None:
    app = dashboard(StageFleet(), tmp_path, settings={"keys": {"fleet.[/x]": "o"}})
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await pilot.pause()
        await pilot.pause()
        assert "unknown key id 'fleet.[/x]'" in " ".join(screen_text(app).split())


MEANINGS = {
    "leave": {"back", "close", "cancel", "clear", "screen.clear", "app.quit"},
    "open": {"open", "choose", "select", "fold"},
    "find": {"filter", "search"},
    "fix": {"remedy", "fix", "answer"},
    "start loops": {"launch", "start"},
    "all": {"unfold_all", "toggle_whole"},
    "as written": {"toggle_raw", "toggle_rendered"},
    "compare": {"toggle_changes", "beside"},
    "edit": {"edit", "form"},
    "copy": {"copy", "copy_path"},
    "follow the lineage": {"lineage('continues')", "lineage('continued_by')", "chain"},
    "forward": {"match(1)", "change(1)", "tab(1)", "step(1)", "pick(1)"},
    "back again": {"match(-1)", "change(-1)", "tab(-1)", "step(-1)", "pick(-1)"},
    "down": {"scroll_down", "cursor(1)", "move(1)", "screen.list"},
    "up": {"scroll_up", "cursor(-1)", "move(-1)"},
    "page down": {"page_down", "page(1)", "move(10)"},
    "page up": {"page_up", "page(-1)", "move(-10)"},
    "first": {"first", "scroll_home"},
    "last": {"last", "scroll_end"},
    "the numbered thing on the screen": {f"verdict({n})" for n in range(1, 10)}
    | {f"pane('{name}')" for name in ("timeline", "documents", "findings", "next")},
}
"""What keys mean to a person: the actions of several screens that are the same to them."""
TWO = {"n": {"new", "forward"}, "enter": {"open", "submit"}}
"""Keys with two meanings: where a list of all collaborations shows, nothing is gone through; a line
that is typed is handed on."""


def meaning(action: str) -> str:
    """What an action means to a person."""
    return next((name for name, actions in MEANINGS.items() if action in actions), action)


@pytest.mark.parametrize("key", sorted({key for b in keys.TABLE for key in b.key.split(",")}))
def test_a_key_means_one_thing_on_every_screen(key: str) -> None:
    bound = [binding for binding in keys.TABLE if key in binding.key.split(",")]
    meanings = {meaning(binding.action) for binding in bound}
    assert len(meanings) == 1 or meanings == TWO.get(key), [binding.id for binding in bound]


def test_no_key_of_ours_is_the_palettes() -> None:
    assert all("ctrl+p" not in binding.key.split(",") for binding in keys.TABLE)


def test_digits_are_left_to_verdicts_and_panes() -> None:
    bound = {b.id for b in keys.TABLE for key in b.key.split(",") if key.isdecimal()}
    panes = {f"collaboration.{name}" for name in ("timeline", "documents", "findings", "next")}
    assert bound == panes | {f"card.verdict_{number}" for number in range(1, 10)}
