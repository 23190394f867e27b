"""The dashboard over real files: what agents write shows by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from tests.tui.screen import screen_lines
from tests.tui.stage import opens, until

PEOPLE = ("server", "reader")


def acp(*arguments: str) -> None:
    """Run a command as an agent does."""
    command = [sys.executable, "-m", "acp_tui", *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def start(folder: Path) -> None:
    """A new collaboration of two."""
    who = [word for name in PEOPLE for word in ("--participant", name)]
    acp("init", "--folder", str(folder), *who, "--objective", "Choose a cache",
        "--completion", "A cache is chosen")  # fmt: skip


def append(folder: Path, who: str, event: str, summary: str, reply_to: int) -> None:
    """Append an event as an agent does."""
    acp("append", "--folder", str(folder), "--participant", who, "--event", event,
        "--summary", summary, "--reply-to", str(reply_to))  # fmt: skip


@pytest.mark.parametrize(
    "size", [pytest.param((80, 24), marks=pytest.mark.slow), (120, 36)], ids=["80x24", "120x36"]
)
@pytest.mark.parametrize(
    "theme", ["textual-dark", pytest.param("ansi-dark", marks=pytest.mark.slow)]
)
async def test_events_documents_and_findings_show_by_themselves(
    tmp_path: Path, size: tuple[int, int], theme: str
) -> None:
    folder = tmp_path / "choose-a-cache"
    start(folder)
    app = AcpApp(
        [str(folder)],
        settings=Settings(theme=theme, bell=False),
        attention=Attention(tmp_path / "state" / "attention.json"),
    )

    def spaced() -> str:
        return "\n".join(" ".join(line.split()) for line in screen_lines(app))

    async def shows(text: str) -> None:
        await until(pilot, lambda: text in spaced(), text)

    async with app.run_test(size=size) as pilot:
        await opens(pilot, "CollaborationScreen")
        await shows("initialized")
        await shows("Waiting for server")

        append(folder, "server", "proposal_submitted", "Use the small one", 1)
        await shows("2 ▲ server proposal_submitted")
        await shows("Waiting for reader")
        await shows("reviewing ●")

        await pilot.press("2")
        await shows("Not written yet.")
        proposal = folder / "proposal.md"
        proposal.write_text(proposal.read_text().replace("Not written yet.", "Take the small one."))
        await shows("▌ Take the small one.")
        await shows("+1 -1 since your last visit")
        later = time.time() + 10  # clearly after the review began
        os.utime(proposal, (later, later))
        await shows("during the review")

        await pilot.press("3")
        assert "ACP" not in spaced()
        review = folder / "review.md"
        review.write_text(review.read_text() + "\n## 2026-05-03T12:00:00Z - reader - seq 9\n")
        await shows("review.md heading seq 9")
        await shows("✗ 1 error")

        append(folder, "reader", "blocked", "Nobody can measure", 2)
        await shows("■")
        await shows("1 of 2 · J next")
