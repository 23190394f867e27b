"""What an agent writes into a request for permission is text at every place where it can be answered.

A title, a command, a path, a difference and a question each carry markup, escape sequences, and signs that
hide or reorder text. Each place is looked at as a person's terminal, browser or peer gets it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents.live import answers
from tests.agents.live.asking import Asking, asking
from tests.agents.support import ROOT
from tests.loops.support import make
from tests.support.terminal import Terminal

BAD = "\x1b\x07\x08\x9b\x9d\x85\u202e\u2066\u200f\u061c\u2028\u2029\U000e0041"
EVIL = (
    "[@click=app.quit]CLICK[/] [/x][bold [$v"
    "\x1b]52;c;cHduZWQ=\x07\x1b]0;pwned\x07\x9d2;pwned\x9c\x1bc\x1b[2J\x9b2J\x08"
    "\u202egnp\u2066\u200f\u061c\u2028\u2029\x85\U000e0041\\"
)
MARKS = "[@click=app.quit]CLICK[/] [/x][bold [$v"
"""What must be there to read."""

Asks = Callable[[Path], AbstractContextManager[Asking]]
REQUESTS: dict[str, Asks] = {
    "command": lambda folder: asking(folder, f"echo '{EVIL}'", "unattended"),
    "title": lambda folder: asking(
        folder, f"echo '{EVIL}'", "unattended", participant="reader", program="gemini"
    ),
    "difference": lambda folder: asking(
        folder, f"edit /project/{EVIL}", "unattended", f"new={EVIL}\n{EVIL}", participant="server"
    ),
}
EVERY = {
    **REQUESTS,
    "question": lambda folder: asking(folder, f"question {EVIL}", "unattended", program="qwen"),
}
kinds = pytest.mark.parametrize(
    "kind",
    [
        "difference",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("command", "title", "question")),
    ],
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "all" / "checkout")


@contextmanager
def all_asking(folder: Path) -> Iterator[list[Asking]]:
    """Three participants ask, and wait."""
    with ExitStack() as stack:
        yield [stack.enter_context(ask(folder)) for ask in REQUESTS.values()]


def acp(*words: object) -> subprocess.CompletedProcess[bytes]:
    """A real command, and every byte that it prints."""
    return subprocess.run(
        [sys.executable, "-m", "acp_core", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )


def is_text(printed: str) -> bool:
    """Whether it holds none of the signs that a terminal obeys or hides."""
    return not set(BAD) & set(printed)


def readable(printed: str) -> str:
    """What a person reads, however its lines were broken and its strings are written."""
    return re.sub(r"[\s│|\\]", "", printed)


def shows(printed: str) -> bool:
    return readable(MARKS) in readable(printed)


def assert_harmless(terminal: Terminal) -> None:
    """Nothing of it reached the terminal as anything but text."""
    raw = bytes(terminal.raw)
    assert not terminal.ended, "a click or a key of the request ended the dashboard"
    assert b"\x1b]52" not in raw
    assert b"\x1bc" not in raw
    assert all(b"pwned" not in found for found in re.findall(rb"\x1b\][^\x07\x1b]*", raw))
    text = raw.decode("utf-8", "replace")
    assert not (set(BAD) - {"\x1b", "\x07", "\x08"}) & set(text)


@pytest.mark.slow
def test_on_the_fleet_in_the_inbox_and_on_cards_it_is_text(folder: Path) -> None:
    words = [sys.executable, "-m", "acp_tui", str(folder.parent)]
    with (
        all_asking(folder) as programs,
        Terminal(words, env={"PYTHONPATH": str(ROOT)}, columns=120, rows=36) as terminal,
    ):
        terminal.wait_for("1 needs you")
        terminal.wait_for("agent asks")
        terminal.wait_for("[@click=app.quit]")  # on the fleet
        terminal.send("!")
        terminal.wait_for("Inbox")
        for name in ("server", "reader", "reviewer"):
            terminal.wait_for(f"{name}'s agent asks")
        assert_harmless(terminal)
        for left in (2, 1, 0):
            terminal.send("f")
            terminal.wait_for("1  Allow once")  # the card
            terminal.wait_for("[@click=app.quit]")
            assert_harmless(terminal)
            assert sum(each.process.poll() is None for each in programs) == left + 1
            while sum(each.process.poll() is None for each in programs) > left:
                terminal.send("2")  # a key that comes before the card was drawn decides nothing
                terminal.run(0.3)
            terminal.wait_for(f"Inbox  {left} need" if left else "Inbox")
            assert_harmless(terminal)
        terminal.send("\x11")
        terminal.wait_for_end()
        assert all(each.end().startswith("reject by ") for each in programs)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EVERY)
def test_commands_print_it_as_text(folder: Path, kind: str) -> None:
    with EVERY[kind](folder) as asked:
        id = asked.opened.id
        for words in (("card", folder), ("why", folder), ("status", folder.parent, "--json")):
            ended = acp(*words)
            printed = (ended.stdout + ended.stderr).decode()
            assert is_text(printed), words
            assert shows(printed), (words, printed)
        told = json.loads(acp("card", folder, "--json").stdout)
        assert all(map(is_text, strings(told))) and any(map(shows, strings(told)))
        for words in (
            ("answer", folder, id, "allow", "--dry-run"),
            ("answer", folder, f"{id}{EVIL}", "allow"),
            ("answer", folder, id, "reject", "--message", EVIL),
        ):
            alive = asked.process.poll() is None
            ended = acp(*words)
            assert is_text((ended.stdout + ended.stderr).decode()), words
            assert alive, "looking at it answers nothing"
        assert asked.end().startswith("reject by ")


@pytest.mark.slow
def test_in_the_browser_it_is_text_and_can_be_answered(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("textual_serve", reason="needs the extra web")
    from tests.cli.support import Acp
    from tests.cli.test_serve import Served, shown

    home = Acp(tmp_path, {name: os.environ[name] for name in ("ACP_CONFIG", "ACP_STATE")})
    with all_asking(folder) as asked:
        served = Served(home, str(folder.parent))
        try:
            with served.visit() as page:
                seen = shown(page, "[@click=app.quit]")
                for key, text in (("!", "Inbox"), ("f", "Allow once")):
                    page.send(json.dumps(["stdin", key]))
                    seen += shown(page, text)
                while len(answers.waiting(str(folder))) == len(asked):
                    page.send(
                        json.dumps(["stdin", "2"])
                    )  # before the card was drawn, it decides nothing
                    time.sleep(0.3)
        finally:
            served.close()
    assert "\x1b]52" not in seen and "\x1bc" not in seen and "\x1b]0;pwned" not in seen
    assert not (set(BAD) - {"\x1b", "\x07", "\x08"}) & set(seen)


@kinds
def test_over_a_bridge_it_is_text_and_can_be_answered_where_that_is_allowed(
    tmp_path: Path, kind: str
) -> None:
    from acp_core.fleet.live import watch
    from acp_core.protocols.wire.bridge.serving import BridgeSetup
    from tests.protocols.wire.support import served, until
    from tests.protocols.wire.test_bridge import asked as ask
    from tests.protocols.wire.test_bridge import peer

    folder = make(tmp_path / "run")
    setup = BridgeSetup(str(folder), watch, frozenset({"answer_permission"}))
    with EVERY[kind](folder) as program, served(tmp_path, "B", bridge=setup) as agent:
        with peer(agent) as remote:

            def needs() -> Any:
                return remote.get("/bridge/snapshot").json()["snapshot"]["needs"]

            until(needs, "the need")
            whole, acts = remote.get("/bridge/snapshot"), remote.get("/bridge/actions")
            for told in (whole, acts):
                texts = list(strings(told.json()))
                assert all(map(is_text, texts)), [each for each in texts if not is_text(each)]
            assert any(map(shows, strings(whole.json())))
            assert [each["name"] for each in acts.json()["actions"]] == ["answer_permission"]
            inputs = {"request": program.opened.id, "verdict": "reject"}
            asked_for = {"action": "answer_permission", "inputs": inputs}
            shown = remote.post("/bridge/preview", json=asked_for).json()["preview"]
            assert is_text(shown["sentence"]) and shows(shown["sentence"])
            done = ask(remote, "answer_permission", **inputs)
            assert done["status"] == "completed", done
            assert all(map(is_text, strings(done)))
        assert program.end().startswith("reject by ")


def strings(value: Any) -> Iterator[str]:
    """Every text in JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)
