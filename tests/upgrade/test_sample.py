"""What 0.1.0 left when the machine went down is opened by the program of today, and not spoilt."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.upgrade import places
from tests.upgrade.samples import FIRST
from tests.upgrade.scenes import House
from tests.upgrade.support import contents, planted

FOLDERS = ("checkout", "retries", "queues", "lamp", "report")
GONE = {("checkout", "reader"), ("checkout", "owner"), ("queues", "ann"),
        ("report", "orchestrator"), ("report", "ra")}  # fmt: skip


@pytest.fixture
def house(tmp_path: Path) -> House:
    """What 0.1.0 left, at a path of the test's own."""
    return planted(tmp_path)


def test_the_sample_is_small() -> None:
    assert FIRST.archive.stat().st_size < 200_000


def test_all_of_it_is_opened_and_reading_changes_nothing(house: House) -> None:
    before = contents(house)
    loops = house.loops()
    assert {key for key, each in loops.items() if each["state"] == "died"} == GONE
    assert loops["retries", "reader"]["phase"] == "stopped"
    assert loops["retries", "owner"]["phase"] == "done"
    kept = house.json("recordings", "--json")["recordings"]
    assert {each["name"] for each in kept} == {"checkout", "retries"}
    for name in FOLDERS:
        found = house.json("validate", house.work / name, "--json", codes=(0, 1, 2))
        wrong = [each for each in found["findings"] if each["severity"] == "error"]
        # what 0.1.0 allowed the existing program does not open: `acp governed migrate` mends it
        assert [each for each in wrong if "review_only + local_cli" not in each["message"]] == []
    assert "agent: hold" in house.run("logs", house.work / "checkout", "reader")
    assert "stopped by SIGTERM" in house.run("logs", house.work / "retries", "reader")
    past = house.run("replay", house.work / "checkout")
    assert "owner: proposal_submitted" in past
    assert "reader's loop: running" in past
    assert "blocked" in house.run("stats", house.work / "retries")
    shown = house.run("show", house.state / "wire" / "Writer")
    assert "Summarize the report" in shown
    assert contents(house) == before


def test_each_collaboration_says_what_became_of_its_programs(house: House) -> None:
    told = house.json("status", house.work, "--json")["collaborations"]
    causes = {Path(each["key"]).name: each["causes"] for each in told}
    for name, words in {
        "checkout": "reader's loop was killed, or the machine was restarted",
        "queues": "the process supervising ann has exited",
        "lamp": "The program of pm ended without a result",
        "report": "The cycle's orchestrator exited before the cycle ended",
    }.items():
        assert causes[name][0]["headline"] == words


def test_what_was_seen_and_put_away_stays_so(house: House) -> None:
    live = house.json("status", house.work, "--json")
    assert "archived" in live["counts"]
    assert live["counts"]["archived"] == 1
    assert live["counts"]["need"] == 4, "what was acknowledged needs nobody again"
    house.run("unarchive", house.work / "retries")
    again = house.json("status", house.work, "--json")
    assert (again["counts"]["archived"], again["counts"]["need"]) == (0, 4)


@pytest.mark.slow
def test_settings_of_then_are_taken(house: House) -> None:
    told = house.json("launch", house.work / "retries", "owner=local", "--dry-run", "--json",
                      codes=(0, 2))  # fmt: skip
    assert told["loops"][0]["preset"] == "local"
    named = [each["name"] for each in house.json("status", "--json")["collaborations"]]
    assert "192.0.2.7:7901" in named, "agents elsewhere belong to the fleet"


def test_the_seal_of_a_governed_run_holds_and_a_broken_one_is_seen(house: House) -> None:
    lamp = house.work / "lamp"
    sealed = json.loads((lamp / ".agentxchain/acp-seal.json").read_text())["files"]
    assert sealed, "0.1.0 sealed what it wrote"
    for name, known in sealed.items():
        data = (lamp / name).read_bytes()
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        assert known == (digest if data else "empty"), name
    sound = house.json("validate", lamp, "--json", codes=(2,))["findings"]
    aged = {"TURN_OVERDUE"}  # the sample grows older
    assert {each["code"] for each in sound} - aged == {"TURN_LOST", "CONFIG"}
    state = lamp / ".agentxchain/state.json"
    state.write_text(state.read_text().replace('"planning"', '"implementation"', 1))
    broken = house.json("validate", lamp, "--json", codes=(2,))["findings"]
    assert "RESERVED_CHANGED" in {each["code"] for each in broken}


def test_a_run_is_brought_to_what_the_existing_program_opens(house: House) -> None:
    lamp = house.work / "lamp"
    house.run("governed", "migrate", "--folder", lamp, "--by", "Ann", "--yes")
    after = house.json("validate", lamp, "--json", codes=(0, 1, 2))["findings"]
    assert "CONFIG" not in {each["code"] for each in after if each["severity"] == "error"}


def test_a_cycle_is_written_on_from_what_was_remembered(house: House) -> None:
    report = house.work / "report"
    [cycle] = report.glob(".workflow/.cycle/*.json")
    memory = places.memory_of_cycle(house.state, report, cycle.stem)
    known = json.loads(memory.read_text())
    assert hashlib.sha256(cycle.read_bytes()).hexdigest() in (known["digest"], known["before"])
    house.run("cycle", "pause", "--folder", report)
    after = json.loads(memory.read_text())
    assert after.keys() == known.keys()
    assert after["state"]["revision"] == known["state"]["revision"] + 1


def test_recordings_go_on_and_stay_readable_by_the_old_program(house: House) -> None:
    place = places.recording(house.state, house.work / "checkout")

    def version() -> tuple[int, int]:
        with closing(sqlite3.connect(place)) as db:
            [(number,)] = db.execute("PRAGMA user_version").fetchall()
            [(looks,)] = db.execute("SELECT count(*) FROM version").fetchall()
            return number, looks

    settings = house.config / "config.toml"  # the sample grows old: nothing of it is thrown away
    settings.write_text(settings.read_text().replace("days = 90", "days = 90000"))
    number, looks = version()
    (house.work / "checkout/proposal.md").write_text("# Proposal\n\nInvalidate by time.\n")
    house.run("record", "--once", house.work / "checkout")
    assert version() == (number, looks + 1)


@pytest.mark.slow
def test_a_record_of_a_loop_is_written_with_all_that_the_old_program_reads(house: House) -> None:
    place = places.loop(house.state, house.work / "retries", "reader")
    spec, state = ((place / name) for name in ("spec.json", "loop.json"))
    then = [json.loads(path.read_text()) for path in (spec, state)]
    folder = house.work / "checkout"
    house.run("launch", folder, "owner")
    house.run("stop", folder, "owner")
    own = places.loop(house.state, folder, "owner")
    now = [json.loads((own / name).read_text()) for name in ("spec.json", "loop.json")]
    for before, after in zip(then, now, strict=True):
        assert before.keys() <= after.keys()
    assert then[1]["process"].keys() <= now[1]["process"].keys()


@pytest.mark.parametrize(
    ("words", "kind"),
    [(("replay", "work/checkout"), "recording"), (("show", "state/wire/Writer"), "store"),
     (("agent", "--name", "Writer", "--port", "0", "--http-port", "0"), "store")],
    ids=["recording", "store that is read", "store that is used"],
)  # fmt: skip
def test_a_file_of_a_newer_program_is_refused_in_one_line(
    house: House, words: tuple[str, ...], kind: str
) -> None:
    place = house.state / "wire/Writer/wire.sqlite3"
    if kind == "recording":
        place = places.recording(house.state, house.work / "checkout")
    with closing(sqlite3.connect(place)) as db:
        db.execute("PRAGMA user_version = 99")
    before = place.read_bytes()
    paths = [str(house.folder / word) if "/" in word else word for word in words]
    ended = house.result(*paths)
    said = ended.stdout + ended.stderr
    assert "Traceback" not in said
    assert "newer acp" in said or "another version of acp" in said, said
    assert place.read_bytes() == before


def test_what_was_acknowledged_by_a_newer_program_is_not_spoilt(house: House) -> None:
    place = house.state / "attention.json"
    content = place.read_text().replace("acp.attention/1", "acp.attention/2")
    place.write_text(content)
    assert house.result("status", str(house.work)).returncode == 0
    ended = house.result("ack", str(house.work / "checkout"), "--all")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "attention.json: written by a newer acp: use that version" in ended.stderr
    assert place.read_text() == content
