"""``acp wire send --wait`` says by its exit code whether what it waited for came about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_core.protocols.wire.acts.table import COMMANDS
from tests.protocols.wire.support import Process

OPTIONS = ("--port", "0", "--http-port", "0", "--sync", "normal")
ANSWER = """#!/bin/sh
read -r said || true
case "$said" in
good) echo well; exit 0;;
ask) echo "which one?"; exit 100;;
*) echo broken >&2; exit 3;;
esac
"""


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [("good", 0, "well"), ("bad", 1, "failed: "), ("ask", 1, "acp wire answer A task_")],
)
def test_a_task_that_failed_or_asks_is_not_done(
    text: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "answer.sh"
    program.write_text(ANSWER)
    program.chmod(0o755)
    with Process("A", *OPTIONS, "--on-message", str(program)):
        words = ("send", "A", text, "--from", "me", "--wait", "30s")
        assert COMMANDS.main((*words, "--new-task")) == code
        assert said in capsys.readouterr().out
        assert COMMANDS.main((*words, "--new-task", "--json")) == code
        task = json.loads(capsys.readouterr().out)["task"]
        assert (
            task["status"] == {"good": "completed", "bad": "failed", "ask": "input_required"}[text]
        )
        assert COMMANDS.main(words) == (1 if text == "bad" else 0)  # a question is a reply, too
        capsys.readouterr()


def test_a_task_that_is_not_over_in_time_is_not_done(capsys: pytest.CaptureFixture[str]) -> None:
    with Process("A", *OPTIONS):
        words = ("send", "A", "x", "--from", "me", "--wait", "1s", "--new-task")
        assert COMMANDS.main(words) == 1
        assert ": submitted" in capsys.readouterr().out
