"""Whatever happens to the files: what was kept and extended says what a fresh reading says."""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core.model import Snapshot
from acp_core.model.errors import Refused
from acp_core.model.past import summed
from acp_core.protocols.folder.write import repair
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.diagnosis.support import problems
from tests.protocols.folder.acting import FolderCollaboration, open_folder
from tests.protocols.folder.support import extend, line_of, make_v1, make_v2

LOG, REVIEW, PROTOCOL = "events.jsonl", "review.md", "protocol.json"
NOT_OF_THE_FILES = ("as_of", "recheck_at", "notices", "needs")  # since when, and since when seen
EVENTS = ("proposal_submitted", "review_submitted", "proposal_revised", "question_classified",
          "decision_accepted", "blocked")  # fmt: skip
PEOPLE = ("server", "reader", "reviewer")
_names = itertools.count()


def said(snapshot: Snapshot) -> dict[str, Any]:
    found = {f.name: getattr(snapshot, f.name) for f in fields(Snapshot)}
    found["events"] = list(found["events"])
    found["findings"] = [each for each in found["findings"] if each.code != "ACP921"]
    found["needed"] = [(n.code, n.sentence, n.about, n.verdicts) for n in found["needs"]]
    return {name: value for name, value in found.items() if name not in NOT_OF_THE_FILES}


def look(collaboration: FolderCollaboration, now: datetime) -> dict[str, Any]:
    """The Snapshot, the acts and the causes, once all has come to rest."""
    collaboration.refresh(now)
    snapshot = collaboration.refresh(now + timedelta(seconds=10))
    acts = collaboration.actions(now + timedelta(seconds=20))
    snapshot = collaboration.refresh(now + timedelta(seconds=20))
    clock = Clock(now + timedelta(seconds=20))
    causes = problems(
        collaboration, DiagnosisContext(snapshot, clock, durations=collaboration.durations)
    )
    offered = [(act.name, act.label, act.sentence, act.inputs.model_json_schema()) for act in acts]
    assert list(collaboration.totals().items()) == list(
        summed(collaboration.story().counts).items()
    )
    return said(snapshot) | {
        "acts": offered,
        "causes": [(cause.code, cause.sentence, cause.evidence) for cause in causes],
    }


def planned(folder: Path, now: datetime) -> tuple[str, ...]:
    try:
        return tuple(fix.sentence for fix in repair.diagnose(str(folder), now).fixes)
    except Refused:
        return ()


def outlook(collaboration: FolderCollaboration, now: datetime) -> tuple[str, ...]:
    try:
        fixes = collaboration.outlook.planned(collaboration.facts, now)
        return tuple(fix.sentence for fix in fixes)
    except Refused:
        return ()


def append(folder: Path, event: str, sender: str, skip: int = 0, cut: int = 0) -> None:
    """Append an event to the log only, legal or not."""
    data = (folder / LOG).read_bytes() if (folder / LOG).exists() else b""
    seq = data.count(b"\n") + 1 + skip
    line = line_of({"seq": seq, "from": sender, "event": event, "at": "2026-03-02T10:00:00Z",
                    "summary": "Said.", "reply_to": max(1, seq - 1)})  # fmt: skip
    extend(folder, line[: len(line) - cut], LOG)


def change(folder: Path, step: tuple[Any, ...]) -> None:
    """Do to the files what a step says."""
    what, *how = step
    path = folder / (how[0] if how and how[0] in (LOG, REVIEW, PROTOCOL, "README.md") else LOG)
    there = path.read_bytes() if path.exists() else b""
    if what == "append":
        append(folder, *how)
    elif what == "garbage":
        path.write_bytes(there + how[1])
    elif what == "truncate":
        path.write_bytes(there[: int(len(there) * how[1])])
    elif what == "rewrite":
        path.write_bytes(there.replace(b"Said.", b"Told.").replace(b"reader", b"writer", how[1]))
    elif what == "heading":
        seq = (folder / LOG).read_bytes().count(b"\n") + how[1] if (folder / LOG).exists() else 1
        path = folder / REVIEW
        before = path.read_bytes() if path.exists() else b""
        path.write_bytes(before + f"\n## t - {how[0]} - seq {seq}\n\nQuestions:\n- Why?\n".encode())
    elif what == "people" and (folder / PROTOCOL).exists():
        try:
            protocol = json.loads((folder / PROTOCOL).read_bytes())
        except ValueError:
            return
        protocol["participants"] = list(how[0])
        (folder / PROTOCOL).write_text(json.dumps(protocol))
    elif what == "remove":
        path.unlink(missing_ok=True)


FILES = st.sampled_from([LOG, REVIEW, PROTOCOL])
GARBAGE = st.sampled_from([b"\n", b"{", b"\xff\n", b'{"seq":1}\n', b"\r\n", b"## t - x - seq 3\n"])
STEP = st.one_of(
    *[st.tuples(st.just("append"), st.sampled_from(EVENTS), st.sampled_from(PEOPLE),
                st.sampled_from([0, 0, 0, 0, 1]), st.sampled_from([0, 0, 0, 0, 1, 20]))] * 4,
    *[st.tuples(st.just("heading"), st.sampled_from(PEOPLE), st.integers(-1, 1))] * 2,
    st.tuples(st.just("garbage"), FILES, GARBAGE),
    st.tuples(st.just("truncate"), FILES, st.sampled_from([0.0, 0.5, 0.9])),
    st.tuples(st.just("rewrite"), FILES, st.integers(0, 3)),
    st.tuples(st.just("people"), st.sampled_from([PEOPLE, PEOPLE[:2], (*PEOPLE, "new")])),
    st.tuples(st.just("remove"), st.sampled_from([LOG, REVIEW, PROTOCOL, "README.md"])),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("make", [make_v1, make_v2])
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEP, max_size=6))
def test_what_was_kept_says_what_a_fresh_reading_says(
    tmp_path: Path, make: Any, steps: list[tuple[Any, ...]]
) -> None:
    folder = make(tmp_path / f"c{next(_names)}", "reviewing")
    kept = open_folder(folder, frozenset({"reader"}))
    now = datetime.now(UTC)
    kept.refresh(now)
    for step in steps:
        change(folder, step)
        now += timedelta(minutes=1)
        after = look(kept, now)
        facts = kept.facts
        if not facts.protocol_problem and not facts.log_problem:  # else what was there stays
            assert after == look(open_folder(folder, frozenset({"reader"})), now), step
        assert outlook(kept, now) == planned(folder, now), step
    shutil.rmtree(folder)


def test_an_event_costs_no_more_than_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offers, repairs and causes after one more event read that event and nothing before it."""
    kept = open_folder(folder, frozenset({"reader"}))
    now = datetime.now(UTC)
    look(kept, now)
    append(folder, "review_submitted", "reader")
    look(kept, now)
    append(folder, "review_submitted", "reviewer")

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("the whole log is read again")

    module = "acp_core.protocols.folder"
    monkeypatch.setattr(f"{module}.write.opened.take", forbidden)
    monkeypatch.setattr(f"{module}.schema.records.parse_lines", forbidden)
    monkeypatch.setattr(f"{module}.read.log.History.again", forbidden)
    monkeypatch.setattr(f"{module}.write.repair.headings", forbidden)
    acts = {act.name: act for act in kept.actions(now + timedelta(seconds=30))}
    assert "review.md has no heading for seq 3, 4" in acts["repair"].sentence
    assert "proposal_revised" in acts
    snapshot = kept.refresh(now + timedelta(seconds=30))
    causes = problems(kept, DiagnosisContext(snapshot, Clock(now + timedelta(seconds=30))))
    assert ("C2", "repair") in [(cause.code, cause.remedy) for cause in causes]


def test_protocol_json_that_says_what_never_was_wants_a_human_at_once_when_opened(
    folder: Path,
) -> None:
    protocol = json.loads((folder / PROTOCOL).read_bytes())
    (folder / PROTOCOL).write_text(json.dumps(protocol | {"waitingFor": ["server", "reader"]}))
    opened = open_folder(folder)
    snapshot = opened.refresh(datetime.now(UTC) + timedelta(seconds=30))
    assert [(need.code, need.remedy) for need in snapshot.needs] == [("invalid", "repair")]
