"""One act, asked for in three ways: by `acp act`, by its own command and by its form."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import OptionList

from acp_core.agents.loop_directory import place
from acp_core.person import journal
from acp_tui.actions.forms import FieldView
from acp_tui.app import AcpApp
from tests.agents.support import wait_for
from tests.cli.support import Acp
from tests.loops import support
from tests.tui.screen import settle
from tests.tui.stage import opens, until

_TIME = re.compile(rb'"\d{4}-\d\d-\d\dT[^"]*"')


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    yield
    support.stop_all()


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    return Acp(tmp_path)


def timeless(path: Path) -> bytes:
    """A file's bytes without the times in it."""
    return _TIME.sub(b'"TIME"', path.read_bytes())


async def fill(pilot: Any, screen: Any, **values: object) -> None:
    """Put values into a form, and do what it says."""
    await until(pilot, lambda: screen.query(FieldView))
    for view in screen.query(FieldView):
        if view.field.name in values:
            view.value = values[view.field.name]
    await until(pilot, lambda: not screen.query_one("#do").disabled)
    await pilot.press("ctrl+s")


async def by_form(folder: Path, act: str, **values: object) -> None:
    """Do an act with its form, until the form says how it ended."""
    app = AcpApp([str(folder)])
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: str(folder) in app.fleet.snapshots)
        app.perform(str(folder), act)
        screen = await opens(pilot, "ActionScreen")
        await fill(pilot, screen, **values)
        await until(pilot, lambda: app.screen is not screen or screen.has_class("-over"))


async def test_a_nudge_leaves_the_same_bytes_however_it_is_asked_for(
    tmp_path: Path, acp: Acp
) -> None:
    folder = support.make(tmp_path / "cache")
    support.start(folder, "server", support.command(tmp_path, support.behave(tmp_path, "hang")))
    wait_for(lambda: support.state(folder, "server").program_alive, "its program")
    left, noted = place(str(folder), "server").nudge, journal.path(str(folder))
    written = []
    for way in ("act", "command", "form"):
        if way == "act":
            given = ("--participant", "server", "--message", "Hurry.", "--yes")
            ran = acp("act", "cache", "nudge", *given)
            assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
        elif way == "command":
            ran = acp("nudge", "cache", "server", "Hurry.")
            assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
        else:
            await by_form(folder, "nudge", participant="server", message="Hurry.")
        written.append((timeless(left), timeless(noted)))
        left.unlink()
        noted.unlink()
    assert written[0] == written[1] == written[2]
    assert json.loads(written[0][0])["message"] == "Hurry."
    told = json.loads(written[0][1])
    assert (told["action"], told["state"]) == ("nudge", "requested")
    assert told["inputs"] == {"participant": "server", "message": "Hurry."}


async def test_an_acknowledgement_is_the_same_note_and_nothing_in_the_folder(
    tmp_path: Path, acp: Acp
) -> None:
    folder = support.make(tmp_path / "cache")
    (folder / "events.jsonl").write_bytes((folder / "events.jsonl").read_bytes() + b"nonsense\n")
    before = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    needs = json.loads(acp("show", "cache", "--json").stdout)["snapshot"]["needs"]
    key, kept = needs[0]["key"], tmp_path / "state" / "attention.json"
    written = []
    for way in ("act", "command", "form"):
        if way == "act":
            ran = acp("act", "cache", "ack", "--need", key, "--note", "I know.", "--yes")
        elif way == "command":
            ran = acp("ack", "cache", key, "--note", "I know.")
        else:
            await by_form(folder, "ack", need=key, note="I know.")
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
        notes = json.loads(timeless(kept))["collaborations"][str(folder)]["acknowledged"]
        written.append(notes)
        assert acp("unack", "cache", "--all").returncode == 0
        assert json.loads(kept.read_bytes())["collaborations"][str(folder)]["acknowledged"] == {}
    assert written[0] == written[1] == written[2] == {key: {"note": "I know.", "at": "TIME"}}
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before
    assert not journal.read(str(folder))


@pytest.mark.slow
async def test_the_list_on_the_screen_and_that_of_the_command_are_the_same(
    tmp_path: Path, acp: Acp
) -> None:
    folder = support.make(tmp_path / "cache")
    support.start(folder, "server", support.command(tmp_path, support.behave(tmp_path, "hang")))
    wait_for(lambda: support.state(folder, "server").program_alive, "its program")
    listed = json.loads(acp("act", "cache", "--json").stdout)["actions"]
    names = {each["name"] for each in listed}
    assert {"block", "launch", "stop", "nudge", "stop_program", "relaunch"} <= names
    intents = {each["name"]: each["intent"] for each in listed}
    assert (intents["stop"], intents["nudge"], intents["launch"]) == ("stop", "message", "start")
    app = AcpApp([str(folder)])
    async with app.run_test(size=(120, 60)) as pilot:
        await until(pilot, lambda: str(folder) in app.fleet.snapshots)
        app.list_actions(str(folder))
        await settle(pilot)
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count)
        shown = {each.name for each in app.screen._offered}  # type: ignore[attr-defined]
    assert shown == names


def test_completion_names_who_runs_and_what_can_be_launched(tmp_path: Path, acp: Acp) -> None:
    folder = support.make(tmp_path / "cache")
    support.start(folder, "server", support.command(tmp_path))

    def offered(line: str) -> list[str]:
        asked = {"_ACP_COMPLETE": "bash_complete", "COMP_WORDS": line,
                 "COMP_CWORD": str(len(line.split(" ")) - 1)}  # fmt: skip
        return [each.partition(",")[2] for each in acp(env=asked).stdout.split("\n") if each]

    assert offered("acp nudge cache ") == offered("acp stop cache ") == ["server"]
    assert offered("acp act cache nudge --participant ") == ["server"]
    assert offered("acp launch cache re")[:3] == ["reader", "reviewer", "reader=like server"]
    assert "reader=codex" in offered("acp launch cache reader=")


def test_what_ended_is_started_as_before_by_old_and_new_names(tmp_path: Path, acp: Acp) -> None:
    folder = support.make(tmp_path / "cache")
    program = support.stand_in(tmp_path, "agent")
    old = ("--participant", "reader", "--program", "command", "--command", program)
    assert acp("act", "cache", "launch", *old, "--yes").returncode == 0
    first = support.state(folder, "reader")
    assert first.alive and first.shown.command[0] == program
    ran = acp("act", "cache", "stop", "--participant", "reader", "--yes", "--json")
    assert json.loads(ran.stdout)["outcome"]["state"] == "done", ran.stderr
    for words in (("act", "cache", "launch", "--yes"), ("launch", "cache")):
        ran = acp(*words)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        again = support.state(folder, "reader")
        assert again.alive and again.shown.command[0] == program
        assert acp("act", "cache", "stop", "--yes").returncode == 0
        assert not support.state(folder, "reader").alive
    assert {each.action for each in journal.read(str(folder))} == {"launch", "stop"}


def test_every_loop_is_stopped_wherever_it_runs(tmp_path: Path, acp: Acp) -> None:
    folders = [support.make(tmp_path / name) for name in ("one", "two")]
    for folder in folders:
        support.start(folder, "server", support.command(tmp_path))
    shown = acp("stop", "--all", "--dry-run").stdout
    assert shown.count("Stops server (process") == 2
    assert all(support.state(folder, "server").alive for folder in folders)
    ran = acp("stop", "--all", "--json")
    assert ran.returncode == 0, ran.stderr
    ended = {each["collaboration"]: each["done"] for each in json.loads(ran.stdout)["loops"]}
    assert ended == dict.fromkeys(map(str, folders), True)
    assert not any(support.state(folder, "server").alive for folder in folders)
