"""The tests' quick way to run `acp` does the same as a fresh interpreter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.protocols.folder.support import make_v1
from tests.support import forked


@pytest.mark.parametrize(
    "words",
    [
        ["status", "--json"],
        ["show", "checkout"],
        ["validate", "nowhere"],
        ["nonsense"],
        ["act", "checkout", "block", "--reason", "No access"],  # asks, and is answered
        ["next", "--folder", "checkout", "--participant", "reader"],
        ["find", "Größe"],
    ],
    ids=" ".join,
)
def test_a_forked_command_is_like_a_fresh_one(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_v1(tmp_path / "checkout", "reviewing")
    acp = Acp(tmp_path)
    assert forked.can(acp.env)
    quick = acp(*words, typed="n\n")
    monkeypatch.setenv(forked.FRESH, "1")
    fresh = acp(*words, typed="n\n")
    assert (quick.returncode, quick.stderr) == (fresh.returncode, fresh.stderr)
    assert _still(quick.stdout) == _still(fresh.stdout)


def _still(text: str) -> str:
    """Without what the clock changes between two runs."""
    return re.sub(r"\d+(?:\.\d+)?", "0", text)
