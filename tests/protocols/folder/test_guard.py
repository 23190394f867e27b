"""A log beyond mending: whoever is asked says so, and nothing but the way out is done."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from acp_core.diagnosis import actions
from acp_core.diagnosis.engine import diagnose, with_standing
from acp_core.model import Snapshot
from acp_core.protocols.folder.matters.causes import obstacles
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.rules.checks import validate
from acp_core.protocols.folder.write.init import charter_of, document
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.folder.acting import (
    FolderCollaboration,
    acp,
    append,
    block,
    files,
    log,
    open_folder,
)
from tests.protocols.folder.damage import Damage, both, event, line
from tests.protocols.folder.support import (
    age,
    change_protocol,
    extend,
    line_of,
    make_v1,
    make_v2,
    read_protocol,
)


def torn_apart(folder: Path) -> None:
    """A line in the middle of the log that nobody can read."""
    path = folder / "events.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, b'{"seq":2,\n', *rest[1:]]))
    age(folder)


def by_hand(folder: Path) -> None:
    """An early review as somebody writes it by hand: protocol.json lags behind it."""
    with (folder / "events.jsonl").open("a") as log:
        told = {"seq": 2, "from": "reader", "event": "review_submitted", "reply_to": 1}
        log.write(json.dumps(told | {"at": "2026-01-02T03:14:05Z", "summary": "Early"}) + "\n")
    age(folder)


BROKEN: dict[str, tuple[str, Damage]] = {
    "an early review": ("drafting", event("reader", "review_submitted")),
    "an early review that protocol.json does not know of": ("drafting", by_hand),
    "a proposal of another": ("drafting", event("reader", "proposal_submitted")),
    "an event of a stranger": ("reviewing", event("ghost", "review_submitted")),
    "an unknown event": ("reviewing", event("server", "proposal_withdrawn")),
    "a gap": ("reviewing", line(1, seq=3)),
    "a number that stands twice": ("reviewing", line(1, seq=1)),
    "a line in the middle": ("reviewing", torn_apart),
    "no summary": ("reviewing", line(1, summary=None)),
    "an answer to the future": ("reviewing", line(1, reply_to=7)),
    "an answer to nothing": ("reviewing", line(1, reply_to=None)),
    "a time that goes backward": ("revising", line(2, at="2020-01-01T00:00:00Z")),
    "no time": ("reviewing", line(1, at="yesterday")),
}


def read(folder: Path) -> tuple[FolderCollaboration, Snapshot]:
    """The folder at this very moment, with its causes."""
    now = datetime.now(UTC)
    opened = open_folder(folder)
    seen = opened.refresh(now)
    return opened, with_standing(seen, diagnose(opened, DiagnosisContext(seen, Clock(now))), None)


@pytest.mark.parametrize("name", BROKEN)
def test_everybody_says_that_a_log_is_beyond_mending(tmp_path: Path, name: str) -> None:
    upto, damage = BROKEN[name]
    folder = make_v1(tmp_path / "run", upto)
    damage(folder)
    (first, *_) = [each.message for each in validate(folder).errors]
    opened, seen = read(folder)

    (obstacle,) = seen.obstacles
    assert (
        obstacle.sentence == first
        and "append blocked, then run `acp continue" in obstacle.instruction
    )
    (headline, *_) = seen.causes
    assert headline.key == obstacle.key and headline.wanted and headline.remedy == "block"
    assert headline.instruction == obstacle.instruction and obstacle.instruction in seen.headline
    offered = {each.name for each in actions.actions(opened, seen) if not each.personal}
    assert "block" in offered <= {"block", "repair", "launch", "launch_all"}

    for who in ("server", "reader"):
        ran = acp("next", "--folder", folder, "--participant", who)
        assert ran.out.splitlines()[-1].startswith("next action: append blocked: the log can never")
    assert f"cannot be repaired: {first}" in acp("repair", folder, "--dry-run").out
    said = acp("validate", folder)
    assert said.code == 2 and "events.jsonl can never become valid again" in said.out


@pytest.mark.parametrize("name", BROKEN)
def test_nothing_but_blocked_goes_into_a_log_beyond_mending(tmp_path: Path, name: str) -> None:
    upto, damage = BROKEN[name]
    folder = make_v1(tmp_path / "run", upto)
    damage(folder)
    (first, *_) = [each.message for each in validate(folder).errors]
    before = files(folder)
    for who in ("server", "reader", "reviewer"):
        for said in ("proposal_revised", "review_submitted", "question_classified",
                     "decision_accepted", "proposal_submitted"):  # fmt: skip
            ran = append(folder, who, said, 1)
            assert ran.code == 2 and ran.err.startswith(f"error: {first}: "), ran
            assert "append blocked, then run `acp continue" in ran.err
    assert files(folder) == before

    assert block(folder, "The log is damaged.").code == 0
    to = tmp_path / "next"
    ran = acp("continue", folder, "--to", to, "--answer", "Again, with the scripts.")
    assert ran.code == 0 and validate(to).lines() == ["ACP validation passed"], ran
    _, seen = read(folder)
    assert not any(cause.wanted for cause in seen.causes), seen.causes


def test_an_act_over_a_log_beyond_mending_is_refused_by_its_reason(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "classified")
    event("reader", "review_submitted")(folder)
    opened, seen = read(folder)
    with pytest.raises(Exception, match=r"review_submitted is not allowed.*append blocked"):
        actions.action(opened, seen, "proposal_revised")


@pytest.mark.parametrize("name", ["an early review", "a line in the middle", "a gap"])
def test_a_whole_line_that_is_wrong_needs_no_patience(tmp_path: Path, name: str) -> None:
    upto, damage = BROKEN[name]
    folder = make_v1(tmp_path / "run", upto)
    damage(folder)
    os.utime(folder / "events.jsonl")
    _, seen = read(folder)
    assert [need.code for need in seen.needs][:1] == [seen.causes[0].code]
    assert seen.causes[0].wanted


def test_a_deliverable_event_without_its_document_is_beyond_mending(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "reviewing")
    event("server", "deliverable_drafted", role="primary")(folder)
    assert append(folder, "reader", "review_submitted", 1).code == 2


def test_the_next_number_counts_a_line_that_cannot_be_read(folder: Path) -> None:
    huge = line_of(
        {"seq": 3, "from": "reader", "event": "review_submitted", "at": "2026-01-02T04:00:00Z",
         "summary": "x" * (10 << 20), "reply_to": 2}
    )  # fmt: skip
    extend(folder, huge)
    assert block(folder).out == "appended seq 4: blocked\n"
    assert log(folder)[-1]["seq"] == 4


def test_a_loop_starts_no_program_over_a_log_beyond_mending(folder: Path) -> None:
    event("server", "review_submitted")(folder)
    turn = open_folder(folder).turn("reader", datetime.now(UTC))
    assert not turn.waited and "append blocked" in turn.trouble


def test_a_torn_end_and_a_lost_state_refuse_until_they_are_repaired(tmp_path: Path) -> None:
    torn, lost = make_v1(tmp_path / "torn", "reviewing"), make_v1(tmp_path / "lost", "reviewing")
    (lost / "README.md").write_text(document(charter_of(read_protocol(lost)), "README.md"))
    extend(torn, b'{"seq":3,"fr')
    age(torn)
    (lost / "protocol.json").write_text("{")
    age(lost)
    for folder in (torn, lost):
        opened = open_folder(folder)
        now = datetime.now(UTC)
        opened.refresh(now)
        seen = opened.refresh(now + timedelta(seconds=5))
        (obstacle,) = seen.obstacles
        assert (
            obstacle.remedy == "repair" and f"`acp repair {folder} --yes`" in obstacle.instruction
        )
        assert append(folder, "reader", "review_submitted", 1).code == 2
        assert acp("repair", folder, "--yes").code in (0, 2)
        assert not opened.refresh(now + timedelta(seconds=10)).obstacles


def test_a_dialect_of_tomorrow_is_an_obstacle_that_no_act_passes(folder: Path) -> None:
    change_protocol(folder, schemaVersion=7)
    _, seen = read(folder)
    (obstacle,) = seen.obstacles
    assert "schemaVersion 7" in obstacle.sentence and not obstacle.refuses
    assert block(folder).code == 2


def test_a_blocked_log_beyond_mending_names_what_leads_on(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing", blocked="No budget.")
    both(line(1, seq=7))(folder)
    _, seen = read(folder)
    (obstacle,) = seen.obstacles
    assert obstacle.remedy == "continue" and "append blocked" not in obstacle.instruction
    printed = json.loads(acp("validate", folder, "--json").out)
    assert any("acp continue" in each["message"] for each in printed["findings"])


def test_where_nobody_takes_part_no_event_leads_out(fresh: Path) -> None:
    """A blocked event has no author then: only a new start is left."""
    event("reader", "review_submitted")(fresh)
    change_protocol(fresh, participants=[])
    _, seen = read(fresh)
    (beyond,) = [each for each in seen.obstacles if each.key.startswith("log:")]
    assert (
        beyond.remedy == ""
        and "no event can follow: run `acp init` in a new folder" in beyond.instruction
    )
    assert not {"block", "blocked"} & {cause.remedy for cause in seen.causes}


def test_a_completed_log_beyond_mending_leads_on_without_an_answer(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "completed")
    both(line(1, seq=7))(folder)
    _, seen = read(folder)
    (obstacle,) = seen.obstacles
    assert obstacle.remedy == "continue"
    assert obstacle.instruction == (
        f"history is never rewritten; run `acp continue {folder}` to continue in a new folder"
    )


def test_where_nobody_takes_part_in_what_has_ended_participants_come_first(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "completed")
    both(line(1, seq=7))(folder)
    change_protocol(folder, participants=[])
    _, seen = read(folder)
    (beyond,) = [each for each in seen.obstacles if each.key.startswith("log:")]
    assert (
        beyond.remedy == ""
        and "after you add participants, continue in a new" in beyond.instruction
    )


def _nobody_asks(folder: str, now: datetime) -> NoReturn:
    raise AssertionError("a folder that is gone is diagnosed")


def test_nothing_stands_in_the_way_of_writes_to_a_folder_that_is_gone(folder: Path) -> None:
    """It is said to be gone, and no cure of a damage that nobody can have seen."""
    facts = Facts(folder)
    facts.refresh(time.time())
    shutil.rmtree(folder)
    facts.refresh(time.time() + 60)
    assert facts.protocol_problem and obstacles(facts, _nobody_asks, datetime.now(UTC)) == ()
