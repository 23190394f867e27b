"""What is concluded from tests that ran with a change: noticed, hung, or survived."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.__main__ import NOTICED, ROOT, copied
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.trials import Trials

TESTS = ["tests/model/test_text.py", "tests/files/test_locked.py"]


def change(path: str, kind: str, was: str) -> Mutant:
    return next(each for each in mutants(ROOT, path) if each.kind == kind and was in each.was)


@pytest.mark.slow
def test_a_change_is_noticed_or_hangs_or_survives_and_is_gone_afterwards(tmp_path: Path) -> None:
    copy = copied(ROOT, tmp_path / "copy")
    trials = Trials(copy, TESTS, tmp_path / "log")
    try:
        tests = sorted(trials.known)
        for path, kind, was, results in (
            ("acp_core/files/locked.py", "compare", "size > 0", NOTICED),
            ("acp_core/files/locked.py", "guard", "QUIET", NOTICED),  # it waits for ever
            ("acp_core/model/text.py", "guard", "text.isascii()", ("survived",)),  # only slower
        ):
            verdict = trials.judge(change(path, kind, was), tests, {})
            assert verdict.result in results, (path, was, verdict)
            assert (copy / path).read_bytes() == (ROOT / path).read_bytes()
    finally:
        trials.close()


def test_what_a_killed_run_left_changed_is_as_it_was(tmp_path: Path) -> None:
    project, copy = tmp_path / "project", tmp_path / "copy"
    (project / "room").mkdir(parents=True)
    (project / "room" / "guard.py").write_text("if held: raise\n")
    (copied(project, copy) / "room" / "guard.py").write_text("if False: raise\n")
    assert (copied(project, copy) / "room" / "guard.py").read_text() == "if held: raise\n"
