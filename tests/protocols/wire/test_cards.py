"""A task that waits for its owner, on a card: the question in full, its options, and who asks."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_core.protocols.wire.network.agent_directory import folder_of
from tests.protocols.wire.support import Process, acp, post, until
from tests.protocols.wire.test_remote import OPTIONS
from tests.tui import stage
from tests.tui.cards import dashboard, open_card
from tests.tui.screen import seen
from tests.tui.stage import is_open

WORDS = "I can keep the index in either store.\nWhich one is it to be?"
STORES = ("Postgres, in one table with an index on the time of expiry", "SQLite")


def get(agent: Process, path: str) -> Any:
    import httpx

    from tests.protocols.wire.support import OWNER

    answer = httpx.get(f"{agent.url}{path}", trust_env=False, auth=OWNER)
    return answer.json() if answer.is_success else {}


def ask(a: Process, b: Process, *parts: dict[str, Any]) -> str:
    """B gets a task of A's, and asks something before it goes on; the task's id."""
    if not get(a, "/peers"):
        post(a, "/peers/connect", {"link": b.link})
        until(lambda: get(a, "/peers")[0]["connected"], "the connection")
    task = str(post(a, "/tasks", {"text": "Build the index", "delegate": True})["id"])
    until(lambda: get(b, f"/tasks/{task}"), "the task's arrival")
    post(b, "/message:send", {"parts": list(parts), "task_id": task, "role": "agent"})
    post(b, f"/tasks/{task}:update", {"status": "input_required"})
    until(lambda: get(a, f"/tasks/{task}")["status"] == "input_required", "the question")
    return task


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "content": words}


def shows(pilot: Pilot[Any], *facts: str) -> None:
    shown = " ".join(seen(pilot).replace("│", " ").split())
    for fact in facts:
        assert fact in shown, f"{fact!r} is not on the card:\n{seen(pilot)}"


async def test_a_listed_option_is_chosen_with_two_keys(tmp_path: Path) -> None:
    with Process("A", *OPTIONS) as a, Process("B", *OPTIONS) as b:
        listed = "\n".join(f"{n}. {each}" for n, each in enumerate(STORES, 1))
        image = {"type": "file", "url": "http://192.0.2.7/sketch.png", "filename": "sketch.png"}
        task = await asyncio.to_thread(ask, a, b, text(f"{WORDS}\n{listed}"), image)
        async with dashboard(folder_of("A"), tmp_path) as pilot:
            asked = "either store. Which one is it to be? 1. "
            await stage.until(pilot, lambda: asked in " ".join(seen(pilot).split()))
            await open_card(pilot)
            shows(
                pilot, "B asks a question", f"“{WORDS}”".replace("\n", " "), f"1. {STORES[0]}",
                "Task Build the index", "sketch.png", "http://192.0.2.7/sketch.png",
                "B (peer_001) connected", "2 SQLite", "3 Another answer", "4 Cancel the task",
            )  # fmt: skip
            await pilot.press("1")
            await stage.until(pilot, lambda: get(a, f"/tasks/{task}")["status"] == "working")
            await stage.until(pilot, lambda: not is_open(pilot.app, "CardScreen"))
        until(lambda: STORES[0] in json.dumps(get(b, "/messages")), "the answer's arrival")


@pytest.mark.slow
async def test_an_answer_of_ones_own_is_written_on_the_card(tmp_path: Path) -> None:
    with Process("A", *OPTIONS) as a, Process("B", *OPTIONS) as b:
        options = {"type": "data", "content": {"options": ["Yes", {"label": "No"}]}}
        task = await asyncio.to_thread(ask, a, b, text("Drop the old one?\x1b[31m"), options)
        async with dashboard(folder_of("A"), tmp_path, (80, 24)) as pilot:
            await open_card(pilot)
            shows(pilot, "“Drop the old one?␛[31m”", "1 Yes", "2 No", "3 Another answer")
            (need,) = pilot.app.fleet.snapshots[str(folder_of("A"))].needs
            assert need.sentence == "B needs input: Drop the old one?␛[31m (Build the index)"
            await pilot.press("3")
            await stage.until(pilot, lambda: "Answer (required)" in seen(pilot))
            await pilot.press(*"Next week", "ctrl+s")
            await stage.until(pilot, lambda: get(a, f"/tasks/{task}")["status"] == "working")


async def test_what_was_asked_of_a_stopped_agent_stays_and_no_key_offers_to_answer(
    tmp_path: Path,
) -> None:
    with Process("A", *OPTIONS) as a, Process("B", *OPTIONS) as b:
        await asyncio.to_thread(ask, a, b, text("Drop the old one?"))
    async with dashboard(folder_of("A"), tmp_path, needs=False) as pilot:
        await stage.until(pilot, lambda: "Drop the old one?" in " ".join(seen(pilot).split()))
        snapshot = pilot.app.fleet.snapshots[str(folder_of("A"))]
        (need,) = (each for each in snapshot.needs if each.code == "input_required")
        assert need.remedy == ""
        assert "f: answer" not in seen(pilot).lower()
        (panel,) = (each for each in snapshot.panels if each.id == "tasks")
        assert [row.target.action for row in panel.rows] == [None]


@pytest.mark.slow
async def test_a_task_is_canceled_only_at_the_second_time(tmp_path: Path) -> None:
    with Process("A", *OPTIONS) as a, Process("B", *OPTIONS) as b:
        task = await asyncio.to_thread(ask, a, b, text("Send me the figures."))
        async with dashboard(folder_of("A"), tmp_path) as pilot:
            screen = await open_card(pilot)
            shows(pilot, "B needs input", "“Send me the figures.”", "1 Answer")
            await pilot.press("2")
            await stage.until(pilot, lambda: "cannot be undone" in seen(pilot))
            assert get(a, f"/tasks/{task}")["status"] == "input_required"
            await stage.until(pilot, lambda: screen._drawn_at < time.monotonic())
            await pilot.press("2")
            await stage.until(pilot, lambda: get(a, f"/tasks/{task}")["status"] == "canceled")


def test_commands_answer_the_question_that_was_read_and_no_other() -> None:
    with Process("A", *OPTIONS) as a, Process("B", *OPTIONS) as b:
        task = ask(a, b, text("Which size?\na) small\nb) large"))
        folder = str(folder_of("A"))
        code, told = acp("card", folder, "--json")
        (card,) = json.loads(told)["cards"]
        assert code == 1 and card["claim"] == "Which size?" and card["by"] == "B"
        small, large, own, _ = card["verdicts"]
        assert (small["label"], own["choose"]) == ("small", ["text"])
        post(b, "/message:send", {"text": "Wait: is red fine?", "task_id": task})
        until(lambda: "red" in acp("card", folder)[1], "the other question")
        code, said = acp(*shlex.split(large["command"])[1:], "--yes")
        assert code == 2 and "have changed since you saw them" in said
        (again,) = json.loads(acp("card", folder, "--json")[1])["cards"]
        command = shlex.split(again["verdicts"][0]["command"])[1:]
        words = ["Red is fine" if each == "TEXT" else each for each in command]
        code, said = acp(*words, "--yes")
        assert code == 0, said
        assert get(a, f"/tasks/{task}")["status"] == "working"
        assert json.loads(acp("card", folder, "--json")[1])["cards"] == []
