"""Nothing is written over damage that was seen, but what mends it; everybody tells the same."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from acp_core.diagnosis import actions
from acp_core.model import (
    Action,
    DocumentText,
    Matter,
    Outcome,
    OutcomeState,
    Preview,
    Snapshot,
)
from acp_core.model.action_spec import ActionSpec
from acp_core.model.errors import Refused
from acp_core.model.matter import damage, verdicts
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.binding import Location, bound
from acp_core.protocols.kit.diagnosis import DiagnosisContext
from tests.diagnosis.support import after, case, problems, snapshot

TORN = damage(
    "A2", "line 7 of the log is no JSON", "acp repair .", frozenset({"repair", "block"}), "repair"
)  # fmt: skip


def _act(name: str) -> Action:
    spec = ActionSpec(name, name.capitalize(), f"{name.capitalize()} it.")
    done = Outcome(OutcomeState.DONE, "Done.")
    return bound(spec, Location("/work"), lambda _: Preview(""), lambda _: done)


class Log(Collaboration):
    """A collaboration with two acts; its log is torn, or not."""

    protocol, key, has_turns = "log", "/work/log", False

    def __init__(self, *obstacles: Matter, causes: tuple[Matter, ...] = ()) -> None:
        self.read, self.own = replace(snapshot(), obstacles=obstacles), causes

    def actions(self, now: datetime) -> Sequence[Action]:
        return (_act("append"), _act("repair"))

    def causes(self, case: DiagnosisContext) -> Sequence[Matter]:
        return self.own

    def refresh(self, now: datetime) -> Snapshot:
        return self.read

    def watched(self) -> frozenset[Path]:
        return frozenset()

    def load(self, document: str) -> DocumentText:
        raise KeyError(document)


def test_an_act_that_mends_it_passes_and_any_other_is_refused_in_one_line() -> None:
    guard.check([TORN], "repair")
    with pytest.raises(Refused, match=r"^line 7 of the log is no JSON: acp repair \.$"):
        guard.check([TORN], "append")


def test_all_obstacles_stand_in_the_refusal() -> None:
    second = damage("E20", "the disk is full", "free some space")
    with pytest.raises(Refused, match=r"no JSON: acp repair \.; the disk is full: free some space"):
        guard.check([TORN, second], "append")


def test_only_what_mends_it_is_offered_and_the_cause_says_the_same() -> None:
    torn = Log(TORN)
    assert [each.name for each in actions.actions(torn, torn.read)] == ["repair", "report"]
    with pytest.raises(Refused, match="line 7 of the log is no JSON: acp repair"):
        actions.action(torn, torn.read, "append")
    assert actions.action(torn, torn.read, "repair") is not None
    (cause,) = problems(torn, replace(case(at=after(1)), snapshot=torn.read))
    assert (cause.sentence, cause.instruction, cause.remedy) == (
        TORN.sentence,
        TORN.instruction,
        "repair",
    )


def test_without_an_obstacle_everything_is_offered() -> None:
    whole = Log()
    assert [each.name for each in actions.actions(whole, whole.read)] == [
        "append",
        "repair",
        "report",
    ]


def test_a_cause_that_tells_more_of_an_obstacle_stands_in_its_place() -> None:
    richer = TORN._replace(evidence=("line 7: {",))
    torn = Log(TORN, causes=(richer,))
    assert problems(torn, replace(case(at=after(1)), snapshot=torn.read)) == (richer,)


def test_no_cause_sends_anybody_to_do_what_an_obstacle_refuses() -> None:
    stuck = Matter(
        "D1",
        "nobody appends",
        verdicts=verdicts("append", others=("append", "repair", "nudge")),
    )
    torn = Log(TORN, causes=(stuck,))
    found = problems(torn, replace(case(at=after(1)), snapshot=torn.read))
    (left,) = [each for each in found if each.code == "D1"]
    assert (left.remedy, left.others) == ("", ("repair", "nudge"))


def test_a_folder_that_can_be_written_into_is_no_obstacle(tmp_path: Path) -> None:
    assert guard.disk(tmp_path) is None
    assert guard.disk(tmp_path / "missing") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    found = guard.disk(tmp_path)
    tmp_path.chmod(0o755)
    assert found is not None
    assert "permission denied" in found.sentence


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize(("options", "reason"), [("ro", "read-only"), ("size=4k", "no space left")])
def test_a_read_only_or_full_disk_is_one(tmp_path: Path, options: str, reason: str) -> None:
    mount: list[Any] = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", tmp_path]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        if options != "ro":
            (tmp_path / "file").write_bytes(b"x" * 4096)
        found = guard.disk(tmp_path)
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert found is not None
    assert reason in found.sentence


def test_a_cause_names_no_act_that_an_obstacle_stands_in_the_way_of() -> None:
    blocked = Matter(
        "E9",
        "nobody acts",
        instruction="append",
        verdicts=verdicts("append", others=("repair",)),
    )
    torn = Log(TORN, causes=(blocked,))
    found = problems(torn, replace(case(at=after(1)), snapshot=torn.read))
    told = next(each for each in found if each.code == "E9")
    assert (told.remedy, told.others) == ("", ("repair",))
    assert told.instruction == "first acp repair .; then append"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another account looks")
def test_a_folder_that_this_account_may_not_write_to_says_what_is_lacking() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        assert guard.disk(Path(name)) is None
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setgroups([])
                os.setgid(54001)
                os.setuid(54001)
                found = guard.disk(Path(name))
                code = 0 if found and "give this account write access" in found.instruction else 3
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
