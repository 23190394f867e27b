"""The dashboard on terminals that can do less: no colour, 16 colours, a small size, a slow line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.protocols.folder.support import make_v1
from tests.support.terminal import Terminal

PLENTY = 60.0  # seconds; nothing passes or fails by being quicker
_STYLE = re.compile(rb"\x1b\[([0-9;:]*)m")


def colours(written: bytes) -> set[int]:
    """The colours that were asked for; 39 and 49 are the terminal's own."""
    codes = {
        int(code)
        for style in _STYLE.findall(written)
        for code in re.split(rb"[;:]", style)
        if code
    }  # fmt: skip
    return {c for c in codes if 30 <= c <= 48 or 90 <= c <= 107} - {39}


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    make_v1(tmp_path / "checkout", "reviewing")
    return Acp(tmp_path)


def look(acp: Acp, **environment: str) -> Iterator[Terminal]:
    """Through the fleet into the collaboration, its help and its actions."""
    with Terminal(
        [sys.executable, "-m", "acp_tui", "."],
        columns=80, rows=24, env=acp.env | environment, cwd=acp.home,
    ) as terminal:  # fmt: skip
        terminal.wait_for("checkout", PLENTY)
        terminal.wait_for("reviewing", PLENTY)
        yield terminal
        terminal.send("\r")
        terminal.wait_for("Timeline", PLENTY)
        yield terminal
        terminal.send("x")
        terminal.wait_for("Possible actions", PLENTY)
        yield terminal
        terminal.send("\x1b")
        terminal.wait_for("esc Back", PLENTY)
        terminal.send("\x11")
        assert terminal.wait_for_end(PLENTY) == 0


@pytest.mark.slow
def test_no_color_draws_without_colours(acp: Acp) -> None:
    for terminal in look(acp, NO_COLOR="1"):
        assert colours(bytes(terminal.raw)) == set()
        assert re.search(rb"\x1b\[(?:[0-9;]*;)?7[;m]", terminal.raw), "what is selected is reversed"


@pytest.mark.slow
def test_a_console_of_16_colours_gets_no_others(acp: Acp) -> None:
    for terminal in look(acp, TERM="linux", COLORTERM=""):
        assert not {38, 48} & colours(bytes(terminal.raw))


@pytest.mark.slow
def test_nothing_is_sent_while_nothing_happens(acp: Acp) -> None:
    """A slow line stays free: ages and the clock are drawn where they change, and nothing else."""
    for terminal in look(acp):
        terminal.run(1.5)
        before = len(terminal.raw)
        terminal.run(2.0)
        assert len(terminal.raw) - before < 4_000  # a whole screen is more


SIGNS = {
    "ascii": ({"LC_ALL": "", "LC_CTYPE": "", "LANG": "C"}, set()),
    "console": ({"LC_ALL": "", "LANG": "C.UTF-8", "TERM": "linux", "COLORTERM": ""},
                set("─│┌┐└┘├┤┬┴┼█▀▄▌▐░▒▓»«·×")),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["ascii", pytest.param("console", marks=pytest.mark.slow)])
def test_a_terminal_with_few_signs_gets_no_others(acp: Acp, kind: str) -> None:
    environment, known = SIGNS[kind]
    frames = 0
    for terminal in look(acp, **environment):
        written = bytes(terminal.raw).decode()
        assert {sign for sign in written if not sign.isascii()} <= known
        frames += 1
    assert frames == 3
    assert "──" in written if known else "--" in written
    with Terminal(
        [sys.executable, "-m", "acp_tui", "show", "checkout"],
        columns=80, rows=24, env=acp.env | environment, cwd=acp.home,
    ) as terminal:  # fmt: skip
        assert terminal.wait_for_end(PLENTY) == 0
        written = bytes(terminal.raw).decode()
    assert "reviewing" in written
    assert {sign for sign in written if not sign.isascii()} <= known
