"""Hostile files, seen through a real terminal: nothing is obeyed, everything stays visible.

What leaves the program is looked at byte by byte: a title or a clipboard set by a file would
be an escape sequence in there.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.terminal import Terminal
from tests.tui.support import HOSTILE

ROOT = str(Path(__file__).parents[2])
EVIL = " ".join(text.replace("\n", " ") for text in HOSTILE)


def hostile_folder(folder: Path) -> Path:
    """A folder collaboration with hostile text in every field, written as another tool would."""
    folder.mkdir(parents=True)
    people = [{"id": "owner" + text} for text in HOSTILE]
    owner = people[0]["id"]
    (folder / "protocol.json").write_text(
        json.dumps(
            {
                "objective": EVIL,
                "participants": people,
                "completionGates": [EVIL],
                "currentPhase": EVIL,
                "proposalOwner": owner,
                "waitingFor": [owner],
                "createdAt": "2026-05-03T12:00:00Z",
                "updatedAt": EVIL,
            }
        )
    )
    events = [
        {"seq": number, "from": owner, "event": kind, "at": "2026-05-03T12:00:00Z", "summary": EVIL,
         "doc": EVIL, "reply_to": number - 1}
        for number, kind in enumerate(("initialized", "proposal_submitted", EVIL, "blocked"), 1)
    ]  # fmt: skip
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    for name in ("proposal", "review", "decisions", "readiness", "conclusion"):
        (folder / f"{name}.md").write_text(f"# {EVIL}\n\n- [blocking] {EVIL}\n\n```\n{EVIL}\n```\n")
    return folder


def wait_until_gone(terminal: Terminal, text: str) -> None:
    """Wait until ``text`` is no longer on the screen."""
    for _ in range(600):
        if text not in terminal.text:
            return
        terminal.run(0.1)
    raise AssertionError(f"{text!r} stayed:\n{terminal.text}")


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["textual-dark", "ansi-light"])
def test_hostile_files_leave_the_terminal_alone(tmp_path: Path, theme: str) -> None:
    work = tmp_path / "work [@click=app.quit]x"
    hostile_folder(work / "a [@click=app.quit] \x1b]2;evil\x07")
    hostile_folder(work / "b\x1b]52;c;ZXZpbA==\x07[b + x")
    env = {
        "PYTHONPATH": ROOT,
        "ACP_STATE": str(tmp_path / "state"),
        "ACP_CONFIG": str(tmp_path / "config"),
    }
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(f'theme = "{theme}"\n')
    with Terminal([sys.executable, "-m", "acp_tui", str(work)], env=env) as terminal:
        terminal.wait_for("2 need you")
        terminal.wait_for("␛]2;evil␇")
        terminal.send(
            "\x1b[<35;20;3M\x1b[<0;20;5M\x1b[<0;20;5m"
        )  # the mouse over one, on the other
        terminal.run(0.3)
        terminal.send("x")
        terminal.wait_for("Possible actions")
        terminal.send("\r")
        terminal.wait_for("Do it")
        terminal.send("\x1b")
        terminal.wait_for("n New")  # the fleet's keys again
        terminal.send("\x10")  # ctrl+p
        terminal.wait_for("Search for commands")
        terminal.send("open")
        terminal.wait_for("Open a [")
        terminal.send("\x1b")
        wait_until_gone(terminal, "Open a [")
        terminal.send("/")
        terminal.wait_for("name, objective, phase")
        terminal.send("click\r")
        terminal.wait_for("in the documents of 2")
        terminal.send("\x1b")
        wait_until_gone(terminal, "in the documents of 2")
        terminal.send("\r")
        terminal.wait_for("Timeline")
        for key in ("2", "]", "]", "]", "3", "4", "1", "\r", "t", "?"):
            terminal.send(key)
            terminal.run(0.2)
        terminal.send("\x1b")
        terminal.run(0.4)
        assert not terminal.ended, "nothing that a file says ends the dashboard"
        terminal.send("\x11")  # ctrl+q
        assert terminal.wait_for_end() == 0
        written = bytes(terminal.raw).decode("utf-8", "replace")
    assert "\x1b]52" not in written
    titles = re.findall(r"\x1b\][012];([^\x07\x1b]*)", written)
    assert titles, "the dashboard sets its own title"
    assert set(titles) <= {"acp", "1 needs you · acp", "2 need you · acp"}
    assert "\x1bc" not in written
    assert not re.search("[\x80-\x9f\u202a-\u202e\u2066-\u2069\u2028]", written)
    assert "Traceback" not in written
