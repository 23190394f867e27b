"""What stands of a loop is told in the same words by `ps`, `status`, `why`, `show` and the screen, now and later."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from acp_core.agents import presets
from acp_core.agents.state import Phase
from acp_core.files import atomic
from acp_core.model.clock import utc_now
from tests.agents.live.asking import asking
from tests.agents.support import is_gone, wait_for
from tests.cli.support import Acp
from tests.loops.support import (
    as_command,
    behave,
    command,
    make,
    stand_in,
    start,
    state,
    wait_for_phase,
)
from tests.loops.test_budgets import capped, dear
from tests.tui.cards import dashboard
from tests.tui.screen import seen
from tests.tui.stage import shows

_TIME = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00))"')


def limited(folder: Path, tmp_path: Path) -> None:
    start(folder, "server", command(tmp_path, behave(tmp_path, "limited")))
    wait_for_phase(folder, "server", Phase.PAUSING)


def down(folder: Path, tmp_path: Path) -> None:
    preset = as_command(presets.bundled()["claude"], stand_in(tmp_path, "claude"))
    behaviour = behave(tmp_path, "down down down").partition("=")[2]
    os.environ.update(BEHAVIOUR_claude=behaviour)  # the test takes it back
    start(folder, "server", preset, permissions="edits", pause=900.0)
    wait_for_phase(folder, "server", Phase.PAUSING)


def pausing(folder: Path, tmp_path: Path) -> None:
    crash = command(tmp_path, behave(tmp_path, "crash crash"))
    start(folder, "server", crash, retries=5, pause=900.0)
    wait_for_phase(folder, "server", Phase.PAUSING)


def failing(folder: Path, tmp_path: Path) -> None:
    start(folder, "server", command(tmp_path, behave(tmp_path, "crash crash")), retries=0)
    wait_for_phase(folder, "server", Phase.GAVE_UP)


def spending(folder: Path, tmp_path: Path) -> None:
    capped(folder, "server", dear(tmp_path, 3), "turn=1usd")


def killed(folder: Path, tmp_path: Path) -> None:
    limited(folder, tmp_path)
    pid = state(folder, "server").pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: is_gone(pid), "the loop to be gone")


def stopped(folder: Path, tmp_path: Path) -> None:
    limited(folder, tmp_path)
    assert Acp(tmp_path)("stop", str(folder), "server").returncode == 0


@contextmanager
def asks(folder: Path, tmp_path: Path) -> Iterator[None]:
    start(folder, "server", command(tmp_path, behave(tmp_path, "hang")))
    wait_for_phase(folder, "server", Phase.RUNNING)
    with asking(folder, "touch made.txt", participant="server"):
        yield


def pass_time(folder: Path, seconds: float) -> None:
    """All that a loop noted was so many seconds earlier."""

    def earlier(match: re.Match[str]) -> str:
        at = datetime.fromisoformat(match[1]) - timedelta(seconds=seconds)
        return f'"{at.isoformat().replace("+00:00", "Z" if match[1].endswith("Z") else "+00:00")}"'

    path = Path(state(folder, "server").place) / "loop.json"
    atomic.replace(path, _TIME.sub(earlier, path.read_text()).encode(), private=True)


CASES: dict[str, tuple[Callable[[Path, Path], object], str, str, bool]] = {
    "limited": (limited, "server's agent has reached its usage limit; resumes at ", "paused", False),
    "down": (down, "server's agent cannot use its model service; retries at ", "paused", False),
    "pausing": (pausing, "server's agent failed with exit code 3", "paused", False),
    "failing": (failing, "server's agent failed with exit code 3", "needs you", True),
    "spending": (spending, "server's loop holds: the budget for this turn is used up", "needs you", True),
    "killed": (killed, "server's loop was killed, or the machine was restarted", "needs you", True),
    "stopped": (stopped, "server's agent has reached its usage limit; its loop was stopped", "needs you", True),
    "asks": (asks, "server's agent asks to run: touch made.txt", "needs you", True),
}  # fmt: skip
_QUICK = ("limited", "asks")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in _QUICK else pytest.mark.slow) for n in CASES]
)
async def test_every_surface_tells_one_standing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, words, row, wanted = CASES[name]
    monkeypatch.setenv("BEHAVIOUR_claude", "")
    monkeypatch.setenv("TZ", "UTC")
    folder = make(tmp_path / "c")
    with contextlib.ExitStack() as stack:
        begun = begin(folder, tmp_path)
        if isinstance(begun, contextlib.AbstractContextManager):
            stack.enter_context(begun)
        for later in (0, 60):
            if later:
                pass_time(folder, later)
            sentence = told_alike(Acp(tmp_path), folder, row, wanted)
            assert sentence.startswith(words), sentence
        async with dashboard(folder, tmp_path, (160, 40), needs=wanted) as pilot:
            await shows(pilot, words[1:])
            assert sentence[1:] in " ".join(seen(pilot).split())  # its first letter is a capital


def told_alike(acp: Acp, folder: Path, row: str, wanted: bool) -> str:
    """The sentence that all commands tell."""
    wait_for(
        lambda: acp("why", str(folder)).returncode == int(wanted), f"why to end with {int(wanted)}"
    )
    why = json.loads(acp("why", str(folder), "--json").stdout)["snapshot"]
    first = why["causes"][0]
    (status,) = json.loads(acp("status", str(folder), "--json").stdout)["collaborations"]
    show = json.loads(acp("show", str(folder), "--json").stdout)["snapshot"]
    (loop,) = json.loads(acp("ps", "--all", str(folder), "--json").stdout)["loops"]
    shown = [each["causes"][0] for each in (status, show)] + [loop["matter"]]
    for field in ("key", "headline", "since", "until", "certain", "wanted"):
        assert [each.get(field) for each in shown] == [first.get(field)] * 3, field
    sentence: str = first["headline"]
    texts = {
        name: " ".join(acp(*words, str(folder), env={"COLUMNS": "300"}).stdout.split())
        for name, words in {
            "why": ("why",), "status": ("status",), "show": ("show",), "ps": ("ps", "--all"),
        }.items()
    }  # fmt: skip
    assert [name for name, text in texts.items() if sentence[1:] not in text] == [], texts
    assert row in texts["status"]
    return sentence


@pytest.mark.parametrize(
    "name", [pytest.param("limited"), pytest.param("down", marks=pytest.mark.slow)]
)
def test_what_was_due_is_promised_no_more(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop that hangs lives, and does nothing: no surface says that it resumes."""
    monkeypatch.setenv("BEHAVIOUR_claude", "")
    monkeypatch.setenv("TZ", "UTC")
    folder, acp = make(tmp_path / "c"), Acp(tmp_path)
    CASES[name][0](folder, tmp_path)
    until = state(folder, "server").shown.retry_at
    assert until is not None
    pid = state(folder, "server").pid
    os.kill(pid, signal.SIGSTOP)
    try:
        pass_time(folder, (until - utc_now()).total_seconds() + 30)
        sentence = told_alike(acp, folder, "paused", False)
        assert "; its next attempt was due at " in sentence and "resumes" not in sentence
        pass_time(folder, 600)
        sentence = told_alike(acp, folder, "needs you", True)
        (first, *_) = json.loads(acp("why", str(folder), "--json").stdout)["snapshot"]["causes"]
        assert first["remedy"] == "relaunch" and "until" not in first
    finally:
        os.kill(pid, signal.SIGCONT)
