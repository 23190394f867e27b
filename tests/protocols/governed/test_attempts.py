"""Several attempts at one turn: what the agent changed, and what somebody else did in between."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.model.errors import Refused
from acp_core.protocols.governed.write import turns
from acp_core.protocols.governed.write.opened import read_unlocked
from acp_core.protocols.governed.write.turns import NotAccepted
from tests.protocols.governed import acting, making, playing
from tests.protocols.governed.acting import hand_in, reject_turn

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
WORKSPACE = {"type": "workspace", "ref": None}


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("how", ["rejected", "not accepted", "its program failed"])
def test_what_a_human_changes_between_two_attempts_is_not_the_agent_s(
    tmp_path: Path, how: str, committed: bool
) -> None:
    root = playing.repository(tmp_path / "lamp")
    acting.initialise(root, goal="", phases=(("implementation", "dev"),))
    playing.git(root, "add", "-A")
    playing.git(root, "commit", "-qm", "Scaffold")
    turn = acting.dispatch(root).turn_id
    (root / "lamp.py").write_text("LIGHT = 1\n")
    (root / "half.py").write_text("X = 1\n")
    hand_in(root, artifact=WORKSPACE, files_changed=["lamp.py"])
    if how == "its program failed":
        (root / f".agentxchain/staging/{turn}/turn-result.json").unlink()
        turns.note_failed_start(root, turn, "it ended", NOW)
    else:
        with pytest.raises(
            NotAccepted, match=r"half\.py \(what is not the agent's: .*--exclude PATH"
        ):
            acting.accept(root)
        if how == "rejected":
            reject_turn(root, "Declare half.py")
        else:
            (root / f".agentxchain/staging/{turn}/turn-result.json").unlink()
    (root / "mine.py").write_text("MINE = 1\n")
    (root / "README.md").write_text("# A lamp\n")
    if committed:
        playing.git(root, "add", "-A")
        playing.git(root, "commit", "-qm", "Mine")
    assert acting.dispatch(root).again
    (root / "lamp.py").write_text("LIGHT = 2\n")
    hand_in(root, artifact=WORKSPACE, files_changed=["lamp.py", "half.py"])
    assert turns.judge(read_unlocked(root), None).observed.files == ("half.py", "lamp.py")
    (root / "mine.py").write_text("MINE = 2\n")  # in the agent's turn: that counts
    with pytest.raises(NotAccepted, match=r"not in files_changed\): mine\.py"):
        acting.accept(root)
    (root / "mine.py").write_text("MINE = 1\n")
    assert acting.accept(root).status == "active"


def test_a_turn_whose_program_is_gone_is_given_out_again_and_one_by_hand_is_not(
    tmp_path: Path,
) -> None:
    """As after the command that was to start the program was killed."""
    for kind, again in (("local_cli", True), ("manual", False)):
        root = making.make_run(tmp_path / kind, of_state=making.under_way())
        config = making.config()
        config["runtimes"]["manual-pm"] = {"type": kind, "command": "true"}
        making.configure(root, config)
        if again:
            assert acting.dispatch(root).again
        else:
            with pytest.raises(Refused, match="Turn already assigned"):
                acting.dispatch(root)
