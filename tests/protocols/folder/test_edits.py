"""A document that changes together with an event: taken back with it, and never written over."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.write import append as appending
from tests.protocols.folder.acting import Ran, append, files, log
from tests.protocols.folder.support import extend


def review(folder: Path, body: Path) -> Ran:
    """The reader submits a review, whose text goes into review.md with the event."""
    body.write_text("Position:\n- In favour.\n")
    words = {"doc": "review.md", "review_file": body}
    return append(folder, "reader", "review_submitted", 2, "Reviewed.", **words)


def test_a_document_that_is_changed_meanwhile_is_not_written_over(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody saves it between our look at it and our write: theirs stays, and nothing is said."""
    document, theirs = folder / "review.md", "# Review\n\nMine alone.\n"
    real = appending.prepare

    def prepare(*args: Any) -> Any:
        prepared = real(*args)
        document.write_text(theirs)
        return prepared

    monkeypatch.setattr(appending, "prepare", prepare)
    ran = review(folder, tmp_path / "body.md")
    assert ran.code == 2 and "changed in the meantime" in ran.err
    assert document.read_text() == theirs and len(log(folder)) == 2


def test_a_review_is_not_taken_back_from_under_anothers_words(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its event could not be written, and somebody wrote behind it meanwhile: both stay."""
    real = os.write

    def write(fd: int, data: bytes) -> int:
        if b'"review_submitted"' in bytes(data):
            extend(folder, "\nMine, too.\n", "review.md")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    assert review(folder, tmp_path / "body.md").code == 2
    assert (folder / "review.md").read_text().endswith("In favour.\n\nMine, too.\n")
    assert len(log(folder)) == 2


def test_a_review_that_is_written_by_half_is_taken_back(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(folder)
    real = os.write

    def write(fd: int, data: bytes) -> int:
        if b"In favour" in bytes(data):
            real(fd, bytes(data)[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    assert review(folder, tmp_path / "body.md").code == 2
    assert files(folder) == before


def test_an_event_that_cannot_be_written_takes_its_review_back_with_it(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = tmp_path / "body.md"
    body.write_text("Position:\n- In favour.\n")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    real = os.write

    def write(fd: int, data: bytes) -> int:
        if b'"review_submitted"' in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    words = {"doc": "review.md", "review_file": body}
    ran = append(folder, "reader", "review_submitted", 2, "Reviewed.", **words)
    assert ran.code == 2 and "nothing was appended" in ran.err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    monkeypatch.undo()
    assert append(folder, "reader", "review_submitted", 2, "Reviewed.", **words).code == 0
    assert checks.validate(folder).verdict == 0


def killed_between(folder: Path, seq: int, text: str) -> None:
    """A run wrote its review under a number, and was killed before its event."""
    extend(folder, f"\n## 2026-01-02T04:00:00Z - reader - seq {seq}\n\n{text}", "review.md")


@pytest.mark.parametrize("there", ["Position:\n- In favour.\n", "Position:\n- In fav"])
def test_a_review_that_was_written_before_the_kill_stands_once(
    tmp_path: Path, folder: Path, there: str
) -> None:
    killed_between(folder, 3, there)
    assert review(folder, tmp_path / "body.md").code == 0
    text = (folder / "review.md").read_text()
    assert text.count("- reader - seq 3") == text.count("In favour.") == 1
    assert text.count("In fav") == 1
    assert "## 2026-01-02T04:00:00Z - reader - seq 3" in text, "what was written stays"


def test_a_review_whose_number_went_to_another_event_moves_to_its_own(
    tmp_path: Path, folder: Path
) -> None:
    """The text in the middle of the file goes away, and what others wrote behind it stays."""
    killed_between(folder, 3, "Position:\n- In favour.\n")
    words = {"doc": "review.md"}
    assert append(folder, "reviewer", "review_submitted", 2, "Against.", **words).code == 0
    extend(
        folder,
        "\n## 2026-01-02T04:05:00Z - reviewer - seq 3\n\nPosition:\n- Against.\n",
        "review.md",
    )
    assert review(folder, tmp_path / "body.md").code == 0
    text = (folder / "review.md").read_text()
    assert "- reader - seq 3" not in text
    assert text.index("- Against.") < text.index("- reader - seq 4") < text.index("In favour.")
    assert text.count("In favour.") == text.count("- Against.") == 1


def test_another_text_under_the_number_is_not_written_over(tmp_path: Path, folder: Path) -> None:
    killed_between(folder, 3, "Position:\n- Against.\n")
    before = files(folder)
    ran = review(folder, tmp_path / "body.md")
    assert ran.code == 2 and "already has a heading for seq 3 by reader" in ran.err
    assert files(folder) == before
