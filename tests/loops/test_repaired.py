"""A loop that gave up over damaged files goes on once they are repaired, and asks nobody to say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.agents import presets
from tests.agents.support import ROOT, script, wait_for
from tests.loops.support import events, is_valid, log, make, start, turns, wait_for_turns

DAMAGES = """\
import pathlib
folder, marker = pathlib.Path({folder!r}), pathlib.Path({marker!r})
if not marker.exists():
    marker.touch()
    with (folder / "events.jsonl").open("a") as file:
        file.write("this is no event\\n")
    sys.exit("error: line 2 of the log is no event")
sys.path.insert(0, {root!r})
from tests.loops.agent import main
main("agent")
"""


@pytest.mark.slow
def test_a_loop_that_gave_up_over_a_damaged_log_takes_its_turn_once_the_log_is_repaired(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "c")
    body = DAMAGES.format(folder=str(folder), marker=str(tmp_path / "once"), root=str(ROOT))
    agent = presets.any_command([script(tmp_path, body)])
    start(folder, "server", agent, retries=0)
    wait_for(lambda: "giving up" in log(folder, "server"), "the loop to give up", 200)
    events_file = folder / "events.jsonl"  # repaired by hand: no act tells the loop
    events_file.write_text(events_file.read_text().replace("this is no event\n", ""))
    wait_for_turns(folder, "server", 2)
    assert [each["took"] for each in turns(folder, "server")[:2]] == [False, True]
    assert "the files were repaired" in log(folder, "server")
    assert events(folder)[-1]["event"] == "proposal_submitted" and is_valid(folder)
