"""A hostile folder in a real terminal: every field carries markup and escape sequences.

The dashboard must go on, the clipboard and the title must stay as they are, nothing may be
clicked or pressed, and the text must be there to read.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.protocols.folder.support import make_v1, make_v2
from tests.support.terminal import Terminal

pytestmark = pytest.mark.slow

ACP = [sys.executable, "-m", "acp_tui"]
CLICK = "[@click=app.quit]CLICK[/]"
CLOSE = "[/x] [bold [$v"
CLIPBOARD = "\x1b]52;c;cHduZWQ=\x07\x1b]52;c;cHduZWQ=\x1b\\"
TITLE = "\x1b]0;pwned\x07\x1b]2;pwned\x1b\\\x9d2;pwned\x9c"
RESET = "\x1bc\x1b[2J\x1b[?1049l\x9b2J\x07\x08\r"
BIDI = "\u202egnp\u2066\u200f\u061c\u2028\u2029\x85"
HOSTILE = f"{CLICK}{CLOSE}{CLIPBOARD}{TITLE}{RESET}{BIDI}\\"


def poison(folder: Path) -> None:
    """Put hostile text into everything that the folder's files can hold."""
    log = folder / "events.jsonl"
    events = [json.loads(line) for line in log.read_bytes().splitlines()]
    for event in events:
        event["summary"] = f"{HOSTILE} summary {event['seq']}"
        event["doc"] = f"proposal.md{HOSTILE}"
    log.write_bytes(b"".join(json.dumps(event).encode() + b"\n" for event in events))
    protocol = json.loads((folder / "protocol.json").read_bytes())
    protocol["objective"] = f"OBJECTIVE {HOSTILE}"
    protocol["completionGates"] = [
        {**gate, "text": f"GATE {HOSTILE}"} if isinstance(gate, dict) else f"GATE {HOSTILE}"
        for gate in protocol["completionGates"]
    ]
    protocol[f"key {HOSTILE}"] = HOSTILE
    protocol["continues"] = {"path": f"../{HOSTILE}", "phase": HOSTILE, "at": HOSTILE}
    (folder / "protocol.json").write_text(json.dumps(protocol))
    body = (
        f"# {HOSTILE}\n\nVISIBLE {HOSTILE}\n\n- [unresolved] {HOSTILE}\n"
        f"- [x] {HOSTILE}\n\n```\n{HOSTILE}\n```\n\n| a | b |\n|---|---|\n| {HOSTILE} | x |\n\n"
        f"[link](vscode://{HOSTILE}) ![image](http://127.0.0.1:9/x)\n<b>{HOSTILE}</b>\n"
    )
    for name in ("proposal", "review", "decisions", "readiness", "conclusion", "README"):
        (folder / f"{name}.md").write_bytes(body.encode("utf-8", "surrogatepass"))


def assert_harmless(terminal: Terminal) -> None:
    """Nothing of the hostile text reached the terminal as anything but text."""
    raw = bytes(terminal.raw)
    assert not terminal.ended
    assert b"\x1b]52" not in raw
    assert b"\x1bc" not in raw
    for found in re.finditer(rb"\x1b\][^\x07\x1b]*", raw):
        assert b"pwned" not in found.group(), found.group()
    text = raw.decode("utf-8", "replace")
    for bad in ("\x9b", "\x9d", "\u202e", "\u2066", "\u200f", "\u061c", "\u2028", "\x85"):
        assert bad not in text, hex(ord(bad))


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"ACP_STATE": str(tmp_path / "state"), "ACP_CONFIG": str(tmp_path / "config")}


@pytest.mark.parametrize("make", [make_v1, make_v2])
@pytest.mark.parametrize("theme", ["textual-dark", "ansi-dark"])
def test_every_pane_shows_hostile_text_as_text(make, theme, tmp_path: Path, env) -> None:
    folder = make(tmp_path / "hostile[/x]", "revising")
    poison(folder)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(f'theme = "{theme}"\n')
    with Terminal([*ACP, str(folder)], env=env) as terminal:
        terminal.wait_for("Timeline")
        terminal.wait_for("CLICK")
        for keys in ("\t", "\r", "\t", "\r", "]", "]", "]", "]", "r", "z", "z", "\x1b[B", "\r"):
            terminal.send(keys)
            terminal.run(0.2)
        assert_harmless(terminal)
        for keys in ("m", "\x1b", "?", "\x1b", "\x10", "click", "\x1b", "b"):
            terminal.send(keys)
            terminal.run(0.3)
            assert_harmless(terminal)


def test_the_fleet_shows_hostile_names_as_text(tmp_path: Path, env) -> None:
    folder = make_v1(tmp_path / "fleet" / "a[@click=app.quit]b [bold", "reviewing")
    poison(folder)
    make_v1(tmp_path / "fleet" / "\x1b]0;pwned\x07", "completed")
    with Terminal([*ACP, str(tmp_path / "fleet")], env=env, columns=80, rows=24) as terminal:
        terminal.wait_for("a[@click")
        for keys in ("\x1b[B", "\x1b[B", "/", "pwned", "\r", "\x1b", "\x1b"):
            terminal.send(keys)
            terminal.run(0.3)
        assert_harmless(terminal)


@pytest.mark.parametrize("command", [["status"], ["show"], ["validate", "--folder"], ["act"]])
def test_commands_print_hostile_text_as_text(command, tmp_path: Path, env) -> None:
    folder = make_v1(tmp_path / "hostile[/x]", "reviewing")
    poison(folder)
    with Terminal([*ACP, *command, str(folder)], env=env) as terminal:
        terminal.wait_for_end()
        raw = bytes(terminal.raw)
    assert b"Traceback" not in raw
    for bad in (b"\x1b]", b"\x1bc", b"\x07", b"\xc2\x9b", b"\xc2\x9d", "\u202e".encode()):
        assert bad not in raw
