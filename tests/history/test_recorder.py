"""The recorder keeps what is seen: in the background, for a fleet, through kills and disturbances."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.fleet import Fleet
from acp_core.history import store as history_store
from acp_core.history.recorder import Recorder
from acp_core.history.schema import TRIMMED, Bounds
from acp_core.history.store import Store
from tests.agents.support import ROOT, wait_for
from tests.cli.support import Acp
from tests.loops.support import command, make, start, stop_all

DOCUMENTS = ("proposal.md", "review.md", "decisions.md", "readiness.md", "conclusion.md")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "cache")


def recorded(folder: Path) -> Store:
    wait_for(lambda: history_store.open_recording(str(folder)) is not None, "a recording")
    store = history_store.open_recording(str(folder))
    assert store is not None
    return store


def contents(folder: Path, name: str) -> list[bytes | None]:
    store = recorded(folder)
    try:
        return [store.content(v.id) if v.present else None for v in store.versions(name)]
    finally:
        store.close()


async def recording(folder: Path, steps: Callable[[], None], enough: Callable[[], bool]) -> None:
    """Follow ``folder`` with a recorder while ``steps`` change it, until ``enough`` is kept."""
    fleet = Fleet([folder], recorder=Recorder("test"))

    async def follow() -> None:
        async for _ in fleet.changes():
            pass

    following = asyncio.create_task(follow())
    await asyncio.to_thread(wait_for, lambda: contents(folder, "proposal.md"), "a recording")
    await asyncio.to_thread(steps)
    await asyncio.to_thread(wait_for, enough, "what was done to be recorded")
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await fleet.close()


async def test_every_version_of_a_document_is_kept_while_a_fleet_is_followed(folder: Path) -> None:
    proposal = folder / "proposal.md"
    first = proposal.read_bytes()
    texts = [b"# One\n", b"# Two\n", b"# Three\n"]

    def steps() -> None:
        for text in texts:
            proposal.write_bytes(text)
            wait_for(lambda text=text: contents(folder, "proposal.md")[-1] == text, "a version")

    await recording(folder, steps, lambda: True)
    assert contents(folder, "proposal.md") == [first, *texts]
    assert contents(folder, "events.jsonl")[-1] == (folder / "events.jsonl").read_bytes()
    store = recorded(folder)
    assert store.meta()["protocol"] == "folder"
    assert json.loads(store.observations()[0].content)["phase"] == "drafting"
    assert [span.program for span in store.spans()] == ["test"]
    assert not any(name.endswith("recording") for name in os.listdir(folder))


async def test_findings_and_verdicts_are_kept_as_they_were(folder: Path) -> None:
    def steps() -> None:
        with (folder / "events.jsonl").open("ab") as log:
            log.write(b'{"seq": 99, "event": "completed"}\n')

    def invalid() -> bool:
        return json.loads(recorded(folder).observations()[-1].content)["verdict"] == "invalid"

    await recording(folder, steps, invalid)
    first, *_, last = recorded(folder).observations()
    assert json.loads(first.content)["verdict"] != "invalid"
    assert len(json.loads(last.findings)) > len(json.loads(first.findings))


async def test_loops_are_kept_with_their_program(folder: Path, tmp_path: Path) -> None:
    def said() -> list[dict[str, object]]:
        return [json.loads(each.content) for each in recorded(folder).loops()]

    try:
        await recording(
            folder,
            lambda: start(folder, "reader", command(tmp_path)),
            lambda: any(each["phase"] == "waiting" for each in said()),
        )
    finally:
        stop_all()
    assert {each["program"] for each in said()} == {"command"}


@pytest.mark.slow
def test_two_recorders_keep_each_version_once(tmp_path: Path) -> None:
    """Two real processes, beside a run from the beginning to its end."""
    folder = make(tmp_path / "cache")
    acp = Acp(tmp_path)
    acp.env["ACP_STATE"] = os.environ["ACP_STATE"]
    both = [
        subprocess.Popen(
            acp.command("record", str(folder)), env=acp.env, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    try:
        beside_two_recorders(folder, both)
    finally:
        for process in both:
            process.kill()
            process.wait()


def beside_two_recorders(folder: Path, both: list[subprocess.Popen[str]]) -> None:
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("recording cache")
    wait_for(lambda: len(recorded(folder).spans()) == 2, "both to record")
    proposal = folder / "proposal.md"
    expected = [proposal.read_bytes()]
    for number in range(15):
        expected.append(b"# Version %d\n" % number)
        proposal.write_bytes(expected[-1])
        with (folder / "events.jsonl").open("ab") as log:
            log.write(b'{"not": "an event", "number": %d}\n' % number)
        wait_for(lambda: contents(folder, "proposal.md")[-1] == expected[-1], "the version")
    log_now = (folder / "events.jsonl").read_bytes()
    wait_for(lambda: contents(folder, "events.jsonl")[-1] == log_now, "the log")
    for process in both:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    kept = [
        each for each in contents(folder, "proposal.md") if each
    ]  # it is emptied before it is written
    assert kept == expected
    logs = contents(folder, "events.jsonl")
    assert len(set(logs)) == len(logs)
    assert all(log is not None and log_now.startswith(log) for log in logs)


WRITER = """
import sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from acp_core.model.clock import utc_now
from acp_core.protocols.discovery import identify
from acp_core.protocols import registry as protocols
from acp_core.history.recorder import Recorder
folder = Path({folder!r})
opened = identify(folder, protocols.bundled()).open()
recorder = Recorder("victim")
number = 0
while True:
    number += 1
    (folder / "proposal.md").write_bytes(b"# %d\\n" % number * 2000)
    with (folder / "events.jsonl").open("ab") as log:
        log.write(b'{{"number": %d}}\\n' % number)
    recorder.saw(opened.refresh(utc_now()), opened.tracked_files, (), utc_now())
    recorder.flush()
    print(number, flush=True)
"""


@pytest.mark.parametrize("wait", [0.0, 0.003, 0.011, 0.017, 0.029, 0.041])
def test_a_recorder_that_is_killed_leaves_what_it_kept(folder: Path, wait: float) -> None:
    """Killed at whatever moment, everything that was reported as kept can be read."""
    code = WRITER.format(root=str(ROOT), folder=str(folder))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(5):
        reported = int(process.stdout.readline())
    time.sleep(wait)  # a different place in the recorder's work, every time
    process.kill()
    rest = process.stdout.read().split()
    reported = int(rest[-1]) if rest else reported
    process.wait()
    store = recorded(folder)
    texts = [store.content(version.id) for version in store.versions("proposal.md")]
    assert b"# %d\n" % reported * 2000 in texts
    for version in store.versions():
        if version.present:
            assert hashlib.sha256(store.content(version.id)).digest() == version.whole
    store.close()
    recorder = Recorder("next")  # and the next one goes on with it
    fleet = Fleet([folder], recorder=recorder)
    fleet.read()
    recorder.close()
    assert contents(folder, "proposal.md")[-1] == (folder / "proposal.md").read_bytes()
    assert contents(folder, "events.jsonl")[-1] == (folder / "events.jsonl").read_bytes()


def test_a_symbolic_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not for others")
    (folder / "review.md").unlink(missing_ok=True)
    (folder / "review.md").symlink_to(secret)
    recorder = Recorder("test")
    Fleet([folder], recorder=recorder).read()
    recorder.close()
    assert "review.md" not in recorded(folder).files()


def test_a_database_that_is_damaged_ends_nothing(folder: Path) -> None:
    place = history_store.recording_path(str(folder))
    place.parent.mkdir(parents=True)
    place.write_bytes(b"no database" * 1000)
    recorder = Recorder("test")
    snapshots = Fleet([folder], recorder=recorder).read()
    recorder.close()
    assert snapshots[0].phase == "drafting"
    assert str(place) in recorder.problem
    assert place.read_bytes() == b"no database" * 1000


def test_nothing_is_recorded_where_that_is_turned_off(folder: Path) -> None:
    recorder = Recorder("test", Bounds(on=False))
    Fleet([folder], recorder=recorder).read()
    recorder.close()
    assert history_store.open_recording(str(folder)) is None


def test_old_recordings_go_and_the_largest_room_is_kept(tmp_path: Path) -> None:
    now = time.time()
    paths = []
    for number in range(4):
        folder = make(tmp_path / f"c{number}")
        (folder / "proposal.md").write_bytes(os.urandom(300_000))
        recorder = Recorder("test")
        Fleet([folder], recorder=recorder).read()
        recorder.close()
        paths.append(history_store.recording_path(str(folder)))
    for path, age_days in zip(paths, (100, 40, 30, 0), strict=True):
        for file in path.parent.glob(f"{path.name}*"):
            os.utime(file, (now - age_days * 86_400,) * 2)
    assert history_store.prune_recordings(Bounds(days=90), now) == [paths[0]]
    assert history_store.prune_recordings(Bounds(days=90, megabytes=0.8), now) == [paths[1]]
    assert history_store.prune_recordings(Bounds(days=90, megabytes=0.1), now) == [paths[2]], (
        "one is in use"
    )
    assert [each.name for each in history_store.recordings()] == ["c3"]


def test_of_one_large_recording_old_contents_go_and_that_is_said(
    folder: Path, tmp_path: Path
) -> None:
    proposal = folder / "proposal.md"
    texts = [os.urandom(60_000).hex() for _ in range(6)]
    for text in texts:
        proposal.write_text(text)
        recorder = Recorder("test")
        Fleet([folder], recorder=recorder).read()
        recorder.close()
        time.sleep(0.02)
    path = history_store.recording_path(str(folder))
    before = path.stat().st_size
    assert history_store.prune_recordings(Bounds(megabytes=0.2)) == [], "it is in use"
    assert path.stat().st_size < before * 2 / 3
    store = recorded(folder)
    versions = store.versions("proposal.md")
    lost = [version.state for version in versions if not version.present]
    assert set(lost) == {TRIMMED} and 2 < len(lost) < len(versions)
    assert store.content(versions[-1].id).decode() == texts[-1]
    assert recorded(folder).versions("events.jsonl")[0].present
    store.close()
    acp = Acp(tmp_path, {"ACP_STATE": os.environ["ACP_STATE"]})
    listed = acp("diff", str(folder), "proposal.md", "--versions").stdout
    assert listed.count("thrown away") == len(lost)
    first = json.loads(acp("replay", str(folder), "--at", "1", "--json").stdout)
    assert "proposal.md" in first["not_recorded"]
    assert history_store.prune_recordings(Bounds(days=0.0)) == []
    kept = [v for v in recorded(folder).versions("proposal.md") if v.present]
    assert len(kept) == 1


def test_by_command(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    acp = Acp(tmp_path)
    assert "No recordings yet" in acp("recordings").stdout
    first = acp("record", "--once", str(folder))
    assert first.returncode == 0
    assert "recorded cache: " in first.stdout
    listed = json.loads(acp("recordings", "--json").stdout)
    assert [each["name"] for each in listed["recordings"]] == ["cache"]
    assert "cache" in acp("recordings").stdout
    assert acp("recordings", "--forget", str(folder)).returncode == 0
    assert acp("recordings", "--forget", str(folder)).returncode == 2
    assert json.loads(acp("recordings", "--json").stdout)["recordings"] == []
    assert acp("record", "--once", str(tmp_path / "nothing")).returncode == 2
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("[recording]\ndays = -1\n")
    wrong = acp("record", "--once", str(folder))
    assert wrong.returncode == 2
    assert "recording.days" in wrong.stderr
