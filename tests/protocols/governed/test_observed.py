"""A repository that cannot be looked at for a moment: nothing is concluded from that, nor written."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.protocols.governed.read import repository
from acp_core.protocols.governed.write import turns
from tests.protocols.governed import acting, making, states


def test_a_file_that_cannot_be_read_at_this_moment_fails_no_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = states.run_in(tmp_path / "lamp", "staged")
    notes = root / "notes.md"
    notes.write_text("one\n")
    before = (root / states.STATE).read_bytes()

    def read(path: Path, limit: int) -> bytes:
        if path == notes:
            raise Unreadable("the system call was interrupted", errno.EINTR)
        return read_bounded(path, limit)

    with monkeypatch.context() as patched:
        patched.setattr(repository, "read_bounded", read)
        with pytest.raises(Refused, match=r"notes\.md: the system call was interrupted") as raised:
            acting.accept(root)
        assert not isinstance(raised.value, turns.NotAccepted)
    assert (root / states.STATE).read_bytes() == before
    with pytest.raises(turns.NotAccepted, match=r"observed in actual diff\): notes\.md"):
        acting.accept(root)


def test_without_git_a_turn_is_accepted_and_that_nothing_was_compared_is_said(
    tmp_path: Path,
) -> None:
    for kind, refused in (("none", False), ("git_worktree", True)):
        given = making.turn(baseline={"kind": kind})
        root = making.make_run(
            tmp_path / kind, of_state=making.state(active_turns={making.TURN: given})
        )
        staged = root / f".agentxchain/staging/{making.TURN}/turn-result.json"
        making.write(staged, making.result(phase_transition_request=None))
        if refused:
            with pytest.raises(turns.NotAccepted, match="git does not answer"):
                acting.accept(root)
        else:
            said = acting.accept(root).warnings
            assert any("Changes could not be observed" in each for each in said), said
