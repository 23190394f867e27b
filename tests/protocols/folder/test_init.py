"""Starting a collaboration."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.model.errors import Refused
from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.write import init as start
from acp_core.protocols.folder.write.init import charter_of
from tests.protocols.folder.acting import Ran, acp, files
from tests.protocols.folder.support import change_protocol, make_v2, read_protocol

V1_FILES = {
    "README.md", "protocol.json", "events.jsonl", "proposal.md", "review.md", "decisions.md",
    "readiness.md", "conclusion.md",
}  # fmt: skip


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def init(folder: Path, *more: str, people: tuple[str, ...] = ("server", "reader")) -> Ran:
    who = [word for name in people for word in ("--participant", name)]
    return acp(
        "init", "--folder", folder, *who, "--objective", "Choose a cache", "--completion",
        "The contract is agreed", *more,
    )  # fmt: skip


def protocol(folder: Path) -> dict[str, object]:
    return records.decode_protocol((folder / "protocol.json").read_bytes())


def test_init_makes_a_folder_that_validates(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    ran = init(folder)
    assert ran == Ran(0, f"Initialized ACP collaboration folder: {folder}\nstate seq: 1\n", "")
    assert {path.name for path in folder.iterdir()} == V1_FILES
    assert acp("validate", "--folder", folder) == Ran(0, "ACP validation passed\n", "")
    event = json.loads((folder / "events.jsonl").read_text())
    assert list(event) == ["seq", "from", "event", "at", "summary", "doc"]
    assert (event["seq"], event["from"], event["event"]) == (1, "server", "initialized")
    assert (event["summary"], event["doc"]) == (
        "Collaboration workspace initialized",
        "protocol.json",
    )
    made = protocol(folder)
    assert made == {
        "objective": "Choose a cache",
        "participants": [{"id": "server"}, {"id": "reader"}],
        "completionGates": ["The contract is agreed"],
        "currentPhase": "drafting",
        "proposalOwner": "server",
        "waitingFor": ["server"],
        "createdAt": event["at"],
        "updatedAt": event["at"],
    }
    assert "Choose a cache" in (folder / "README.md").read_text()
    assert "- [ ] The contract is agreed\n" in (folder / "readiness.md").read_text()


def test_a_deliverable_makes_it_the_second_dialect(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    ran = init(folder, "--primary-deliverable-type", "adr")
    assert ran.code == 0
    assert ran.out == f"Initialized ACP schema v2 collaboration folder: {folder}\n"
    assert acp("validate", "--folder", folder).out == "ACP validation passed\n"
    made = protocol(folder)
    assert (made["protocol"], made["schemaVersion"]) == ("acp", 2)
    assert made["objectiveGates"] == ["The contract is agreed"]
    assert made["completionGates"][0] == {  # type: ignore[index]
        "source": "objective",
        "text": "The contract is agreed",
    }
    text = (folder / "deliverables" / "adr.md").read_text()
    assert "\nStatus: Draft\n" in text and "## Alternatives Considered" in text
    assert "### D1. Initial deliverable declaration" in (folder / "decisions.md").read_text()
    assert "`deliverables/adr.md`" in (folder / "proposal.md").read_text()


def test_a_custom_deliverable_can_lie_in_the_repository_around(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    folder = repository / "talks" / "run"
    repository.mkdir()
    ran = init(
        folder, "--primary-deliverable-type", "custom", "--primary-deliverable-file", "plan.md",
        "--primary-deliverable-check", "Steps", "--deliverables-mode", "external",
        "--deliverables-dir", "docs", "--repo-root", "../..",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "## Steps" in (repository / "docs" / "plan.md").read_text()
    assert "`external:plan.md`" in (folder / "README.md").read_text()
    assert acp("validate", "--folder", folder).code == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--objective", " "], "--objective must not be blank"),
        (["--completion", "Finish state.log"], "must not reference obsolete file state.log"),
        (["--completion", "two\nlines"], "--completion must be one line"),
        (["--participant", "../x"], "an id has 1 to 64 letters"),
        (["--participant", "-x"], "error: "),
        (["--participant", "a - seq 9"], "an id has 1 to 64 letters"),
        (["--primary-deliverable-type", "novel"], "must be one of adr, design-spec"),
        (["--primary-deliverable-file", "x.md"], "--primary-deliverable-type is required"),
        (
            ["--primary-deliverable-type", "adr", "--deliverables-mode", "external",
             "--repo-root", "elsewhere"],
            "repoRoot must resolve to an existing directory",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_or_not_allowed_is_said_in_one_line(
    tmp_path: Path, more: list[str], said: str
) -> None:
    ran = init(tmp_path / "run", *more)
    assert ran.code == 2 and ran.out == ""
    assert said in ran.err and ran.err.count("\n") == 1 and ran.err.startswith("error: ")
    assert not (tmp_path / "run").exists()


def test_one_participant_is_warned_that_nobody_can_review(tmp_path: Path) -> None:
    ran = init(tmp_path / "run", people=("alone",))
    assert ran.code == 0 and "with only one participant" in ran.err


def test_ids_of_any_script_are_participants(tmp_path: Path) -> None:
    ran = init(tmp_path / "run", people=("søren", "评审员", "agent-2.b_c"))
    assert ran.code == 0
    assert [p["id"] for p in protocol(tmp_path / "run")["participants"]] == [  # type: ignore[attr-defined]
        "søren", "评审员", "agent-2.b_c",
    ]  # fmt: skip


def test_a_second_init_is_refused_unless_it_only_acknowledges(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    init(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    refused = init(folder)
    text = "collaboration folder already contains protocol.json; use --resume to acknowledge it"
    assert refused == Ran(2, "", f"error: {text}\n")
    resumed = acp("init", "--folder", folder, "--resume")
    assert resumed == Ran(0, f"Collaboration folder already exists: {folder}\n", "")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_somebodys_text_is_never_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "README.md").write_text("My project.\n")
    (folder / "proposal.md").write_text("My draft.\n")
    (folder / "review.md").write_bytes(b"")  # empty: nobody's
    ran = init(folder)
    assert ran.code == 0 and "kept existing files: README.md, proposal.md" in ran.out
    assert (folder / "README.md").read_text() == "My project.\n"
    assert (folder / "proposal.md").read_text() == "My draft.\n"
    assert (folder / "review.md").read_text().startswith("# Reviews\n")
    assert acp("validate", "--folder", folder).code == 0


def test_a_log_without_protocol_json_is_not_started_over(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    init(folder)
    acp(
        "append", "--folder", folder, "--participant", "server", "--event", "blocked",
        "--summary", "No budget.", "--reply-to", "1",
    )  # fmt: skip
    (folder / "protocol.json").unlink()
    log = (folder / "events.jsonl").read_bytes()
    for more in ([], ["--resume"]):
        ran = init(folder, *more)
        assert ran.code == 2 and "acp repair" in ran.err
    assert (folder / "events.jsonl").read_bytes() == log
    assert not (folder / "protocol.json").exists()


def test_what_an_older_init_left_unfinished_is_finished(tmp_path: Path) -> None:
    """Other tools write protocol.json first and the log last."""
    folder = tmp_path / "run"
    init(folder)
    for name in ("events.jsonl", "decisions.md", "conclusion.md"):
        (folder / name).unlink()
    ran = acp("init", "--folder", folder, "--resume")
    assert ran.code == 0 and "decisions.md, conclusion.md, events.jsonl" in ran.out
    assert acp("validate", "--folder", folder).out == "ACP validation passed\n"


def test_a_lost_log_is_not_made_up(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    init(folder)
    acp(
        "append", "--folder", folder, "--participant", "server", "--event", "blocked",
        "--summary", "No budget.", "--reply-to", "1",
    )  # fmt: skip
    (folder / "events.jsonl").unlink()
    ran = acp("init", "--folder", folder, "--resume")
    assert ran.code == 2 and "is lost" in ran.err
    assert not (folder / "events.jsonl").exists()


def test_files_get_the_permissions_of_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        init(tmp_path / "run")
    finally:
        os.umask(before)
    for path in (tmp_path / "run").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o640, path


def test_nothing_but_the_collaboration_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents run in sandboxes: a state folder that cannot be made is no obstacle."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "file" / "state"))
    assert init(tmp_path / "run") == Ran(
        0, f"Initialized ACP collaboration folder: {tmp_path / 'run'}\nstate seq: 1\n", ""
    )


def test_json_tells_what_was_made(tmp_path: Path) -> None:
    told = json.loads(init(tmp_path / "run", "--json").out)
    assert told["schema"] == "acp.init/1" and told["dialect"] == "v1"
    assert set(told["created"]) == V1_FILES


def test_a_participant_that_is_given_twice_takes_part_once(tmp_path: Path) -> None:
    ran = init(tmp_path / "run", "--participant", "server")
    assert ran.code == 0 and "given twice takes part once" in ran.err
    listed = json.loads((tmp_path / "run" / "protocol.json").read_text())["participants"]
    assert [each["id"] for each in listed].count("server") == 1
    assert checks.validate(tmp_path / "run").findings == ()


def test_a_start_of_an_unknown_dialect_is_not_finished(fresh: Path) -> None:
    """What its documents would have to say is not known."""
    change_protocol(fresh, schemaVersion=3)
    (fresh / "conclusion.md").unlink()
    before = files(fresh)
    ran = init(fresh, "--resume")
    assert ran.code == 2 and "unknown schemaVersion 3" in ran.err
    assert files(fresh) == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"participants": []}, "protocol.json participants must not be empty"),
        ({"objective": " "}, "protocol.json objective must not be blank"),
        ({"completionGates": []}, "protocol.json completionGates must not be empty"),
    ],
)
def test_a_start_that_is_founded_on_nothing_is_not_finished(
    fresh: Path, changes: dict[str, object], words: str
) -> None:
    change_protocol(fresh, **changes)
    (fresh / "README.md").unlink(missing_ok=True)
    (fresh / "conclusion.md").unlink()
    before = files(fresh)
    ran = init(fresh, "--resume")
    assert ran.code == 2 and words in ran.err
    assert files(fresh) == before


@pytest.mark.parametrize("primary", [{}, {"primary": {"type": "adr", "file": "../adr.md"}}])
def test_a_start_whose_deliverable_is_not_named_is_not_finished(
    tmp_path: Path, primary: dict[str, object]
) -> None:
    folder = make_v2(tmp_path / "run", "drafting")
    change_protocol(folder, deliverables={"mode": "internal", "dir": "deliverables"} | primary)
    (folder / "conclusion.md").unlink()
    before = files(folder)
    ran = init(folder, "--resume")
    assert ran.code == 2 and "protocol.json deliverables.primary is required" in ran.err
    assert files(folder) == before


def test_a_start_that_another_was_quicker_with_is_refused_under_the_lock(fresh: Path) -> None:
    """Both looked before either wrote; only a protocol.json that nobody can read is made anew."""
    charter = charter_of(read_protocol(fresh))
    wanted = start.files(charter, str(fresh), datetime(2026, 1, 2, tzinfo=UTC))
    before = files(fresh)
    for resume in (False, True):
        with pytest.raises(Refused, match=r"already contains protocol\.json"):
            start.start(str(fresh), charter, wanted, resume=resume)
        assert files(fresh) == before
    (fresh / "protocol.json").write_text("{")
    started = start.start(str(fresh), charter, wanted, resume=True)
    assert started.created == ("protocol.json",)
    assert read_protocol(fresh)["objective"] == charter.objective


def test_a_whole_folder_is_left_as_it_is(fresh: Path) -> None:
    """Other tools may write no README.md, and what is whole need not be founded anew."""
    change_protocol(fresh, objective=" ")
    (fresh / "README.md").write_text("# Ours\n")
    for name in ("", "README.md"):
        if name:
            (fresh / name).unlink()
        before = files(fresh)
        ran = init(fresh, "--resume")
        assert (ran.code, ran.err) == (0, "") and "created" not in ran.out
        assert files(fresh) == before


def test_a_start_is_not_gone_on_with_as_another_collaboration(tmp_path: Path) -> None:
    """protocol.json is there and readable: it says whose the folder is, with a log or without."""
    folder = tmp_path / "run"
    init(folder)
    (folder / "events.jsonl").write_bytes(b"")
    before = (folder / "protocol.json").read_bytes()
    assert init(folder).code == 2
    assert (folder / "protocol.json").read_bytes() == before
