"""What people did in a run is its own, whatever stood in the same folder before."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.protocols.governed import playing
from tests.protocols.governed.making import Object


def stats(root: Path) -> Object:
    acp = Acp(root.parent, {name: os.environ[name] for name in ("ACP_CONFIG", "ACP_STATE")})
    ended = acp("stats", str(root), "--json")
    assert ended.returncode == 0, ended.stderr
    (told,) = json.loads(ended.stdout)["collaborations"]
    return dict(told)


def begun(root: Path) -> None:
    """A run of which one turn was taken and accepted."""
    playing.repository(root)
    program = f"pm={playing.agent(root.parent / 'bin')}"
    for words in (["init", "--agent", program], ["step"], ["accept-turn"]):
        ended = playing.acp(words[0], str(root), *words[1:])
        assert ended.code == 0, ended


@pytest.mark.slow
def test_what_was_done_in_a_deleted_run_is_no_figure_of_the_next_one(tmp_path: Path) -> None:
    root = tmp_path / "hall"
    begun(root)
    acts = stats(root)["human_acts"]
    assert acts > 0
    shutil.rmtree(root)
    begun(root)
    assert stats(root)["human_acts"] == acts
