"""What the check of shared stores has found, each as a story of its own."""

from __future__ import annotations

from pathlib import Path

from tests.stores.hosts import shared


def test_a_kill_while_a_review_comes_in_does_not_double_it(tmp_path: Path) -> None:
    _, (a, b, c) = shared(tmp_path, "a", "b", "c", readers=("reader", "critic", "judge"))
    a.write("proposal.md", "# The proposal\n")
    a.appended("writer", "proposal_submitted", "--reply-to", "1", "--doc", "proposal.md")
    a.sync()
    b.appended("reader", "review_submitted", "--reply-to", "2", "--review", "By reader.")
    assert a.at("before log", "sync", str(a.folder), "--once").returncode == -9
    c.appended("critic", "review_submitted", "--reply-to", "2", "--review", "By critic.")
    a.appended("judge", "review_submitted", "--reply-to", "2", "--review", "By judge.")
    text = a.read("review.md")
    assert [text.count(each) for each in (b"By reader.", b"By critic.", b"By judge.")] == [1, 1, 1]
    assert text.index(b"By critic.") < text.index(b"By judge.")
