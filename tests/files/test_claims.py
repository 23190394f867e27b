"""Claims: one holder at a time, whoever removes, replaces or kills what."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.files import claims, locked
from acp_core.files.claims import CONDUCT, ClaimError, Held, Lost, Owner, Process
from tests.files.descriptors import open_below

ALICE = claims.of_participant("alice")

HOLDER = """
import sys, time
from acp_core.files import claims
with claims.take(sys.argv[1], sys.argv[2], "holder", sys.argv[3]) as claim:
    print("held", flush=True)
    while True:
        time.sleep(0.05)
        claim.check()
"""

COUNTER = """
import os, sys, time
from acp_core.files import claims
project, rounds = sys.argv[1], int(sys.argv[2])
inside, done = os.path.join(project, "inside"), 0
while done < rounds:
    try:
        with claims.take(project, "conduct"):
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails where another is inside
            time.sleep(0.001)
            os.unlink(inside)
            done += 1
    except claims.Held:
        pass
print("through")
"""


@pytest.fixture
def holders() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for each in started:
        each.kill()
        each.wait()


def hold(
    project: Path, holders: list[subprocess.Popen[str]], name: str = CONDUCT, about: str = ""
) -> subprocess.Popen[str]:
    """Another process that holds a claim."""
    words = [sys.executable, "-c", HOLDER, str(project), name, about]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    holders.append(child)
    assert child.stdout is not None and child.stdout.readline() == "held\n"
    return child


def test_a_claim_is_taken_once_and_says_whose_it_is(
    tmp_path: Path, holders: list[subprocess.Popen[str]]
) -> None:
    child = hold(tmp_path, holders, about="cycle-1")
    with pytest.raises(Held) as refused:
        claims.take(tmp_path, CONDUCT)
    account, host = claims.account(os.getuid()), claims.host()
    said = str(refused.value)
    assert said.startswith(f"{account} controls this run (pid {child.pid} on {host} since ")
    seen = claims.seen(tmp_path, CONDUCT)
    assert seen.held and seen.mine and seen.owner is not None
    assert (seen.owner.about, seen.owner.program, seen.owner.epoch) == ("cycle-1", "holder", 1)
    with claims.take(tmp_path, ALICE):  # another claim
        assert claims.seen(tmp_path, ALICE).sentence.startswith(f"{account} plays alice (pid ")


def test_the_claim_of_a_killed_holder_is_taken_over(
    tmp_path: Path, holders: list[subprocess.Popen[str]]
) -> None:
    child = hold(tmp_path, holders)
    child.send_signal(signal.SIGKILL)
    child.wait()
    seen = claims.seen(tmp_path, CONDUCT)
    assert not seen.held and seen.owner is not None and seen.owner.ended == ""
    with claims.take(tmp_path, CONDUCT) as claim:
        assert claim.owner.epoch == 2 and claim.owner.process.pid == os.getpid()


def test_who_lets_go_says_so_and_leaves_the_lock(tmp_path: Path) -> None:
    with claims.take(tmp_path, CONDUCT) as claim:
        inode = claim.path.stat().st_ino
    found = claims.seen(tmp_path, CONDUCT).owner
    assert found is not None and found.ended
    with claims.take(tmp_path, CONDUCT) as claim:
        assert claim.path.stat().st_ino == inode and claim.owner.ended == ""


@pytest.mark.parametrize("how", ["removed", "replaced", "folder", "linked"])
def test_a_holder_whose_lock_is_gone_stops_before_it_writes(tmp_path: Path, how: str) -> None:
    claim = claims.take(tmp_path, CONDUCT)
    claim.check()
    record = claim.path.with_suffix(".json")
    if how == "linked":
        os.link(claim.path, claim.path.with_name("another"))
    elif how == "folder":
        shutil.rmtree(tmp_path / ".acp")
    else:
        claim.path.unlink()
        record.write_text("another's")
        if how == "replaced":
            claim.path.write_text("")
    with pytest.raises(Lost, match=r"removed or replaced .*conduct\.lock\): stopped, nothing"):
        claim.check()
    with pytest.raises(Lost):
        claim.note_child(os.getpid())
    claim.release()
    if how in ("removed", "replaced"):
        assert record.read_text() == "another's"  # nothing was written over it


def test_git_sees_nothing_of_it_at_any_moment(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with claims.take(tmp_path, ALICE):
        status = ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"]
        assert subprocess.run(status, capture_output=True, check=True).stdout == b""
    assert (tmp_path / ".acp" / ".gitignore").read_bytes() == b"*\n"


def test_what_git_must_ignore_is_on_the_disk_before_anything_is_made_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a loss of power leaves claims that the next commit takes along."""
    synced: list[tuple[str, bool]] = []
    real = os.fsync

    def sync(fd: int) -> None:
        synced.append((os.readlink(f"/proc/self/fd/{fd}"), (tmp_path / ".acp/run").exists()))
        real(fd)

    monkeypatch.setattr(os, "fsync", sync)
    claims.take(tmp_path, CONDUCT).release()
    for path in (".acp/.gitignore", ".acp"):
        assert (str(tmp_path / path), False) in synced


def test_an_ignore_file_that_a_crash_left_empty_is_written_and_anothers_is_left(
    tmp_path: Path,
) -> None:
    path = tmp_path / ".acp" / ".gitignore"
    path.parent.mkdir()
    path.write_bytes(b"")
    claims.take(tmp_path, CONDUCT).release()
    assert path.read_bytes() == b"*\n"
    path.write_bytes(b"# mine\n*\n")
    claims.take(tmp_path, CONDUCT).release()
    assert path.read_bytes() == b"# mine\n*\n"


def test_in_a_shared_folder_the_claims_are_the_groups_and_elsewhere_the_owners(
    tmp_path: Path,
) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    for folder, above, below in (("own", 0o755, (0o700, 0o600)), ("ours", 0o2775, (0o2770, 0o660))):
        project = tmp_path / folder
        project.mkdir()
        project.chmod(above)
        with claims.take(project, ALICE) as claim:
            assert mode(project / ".acp") == above
            assert mode(claim.path.parent) == mode(project / ".acp" / "run") == below[0]
            assert mode(claim.path) == mode(claim.path.with_suffix(".json")) == below[1]


def test_symbolic_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in (".acp", ".acp/run"):
        project = tmp_path / name.replace("/", "-").strip(".")
        (project / name).parent.mkdir(parents=True)
        (project / name).symlink_to(elsewhere)
        with pytest.raises(ClaimError, match="symbolic link"):
            claims.take(project, CONDUCT)
    claims.take(tmp_path, CONDUCT).release()
    lock = claims.lock_of(tmp_path, CONDUCT)
    lock.unlink()
    lock.symlink_to(elsewhere / "file")
    with pytest.raises(OSError):
        claims.take(tmp_path, CONDUCT)
    ignore = tmp_path / ".acp" / ".gitignore"
    ignore.unlink()
    ignore.symlink_to(elsewhere / "file")
    with pytest.raises(ClaimError, match=r"\.gitignore is a symbolic link"):
        claims.take(tmp_path, ALICE)
    assert list(elsewhere.iterdir()) == []


def test_what_is_no_file_is_no_lock_and_does_not_stay_open(tmp_path: Path) -> None:
    claims.take(tmp_path, CONDUCT).release()
    lock = claims.lock_of(tmp_path, CONDUCT)
    lock.unlink()
    os.mkfifo(lock)
    with pytest.raises(ClaimError, match="is not a regular file"):
        claims.take(tmp_path, CONDUCT)
    assert open_below(tmp_path) == []


def test_a_file_system_without_locks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locked, "here", lambda: (locked.Mount("/", "cifs"),))
    with pytest.raises(ClaimError, match=r"without locks that all can see \(cifs\)"):
        claims.take(tmp_path, CONDUCT)
    assert not (tmp_path / ".acp").exists()


def test_a_system_without_locks_is_refused_and_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with claims.take(tmp_path, CONDUCT):
        monkeypatch.setattr(claims, "SUPPORTED", False)
        with pytest.raises(ClaimError, match="read-only here: this system does not support flock"):
            claims.take(tmp_path, ALICE)
        assert not claims.seen(tmp_path, CONDUCT).held
    assert not claims.lock_of(tmp_path, ALICE).exists()


@pytest.mark.parametrize(
    ("number", "error", "said"),
    [
        (errno.EACCES, Held, "another process has locked"),  # "held" on some systems
        (errno.ENOLCK, ClaimError, r"conduct\.lock cannot be locked: No locks available"),
    ],
)
def test_a_lock_that_is_held_and_one_that_cannot_be_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception], said: str
) -> None:
    def refuse(fd: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("acp_core.files.claims._PATIENCE", 0.0)
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(error, match=said):
        claims.take(tmp_path, CONDUCT)
    assert open_below(tmp_path) == []  # a loop asks again for weeks


def test_over_a_network_an_unended_holder_of_another_host_is_not_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with claims.take(tmp_path, CONDUCT) as claim:
        there = replace(claim.owner, process=Process("elsewhere", "boot", 7, 7))
    claims.write_record(claim.path, there)
    monkeypatch.setattr(locked, "here", lambda: (locked.Mount("/", "nfs4"),))
    with pytest.raises(Held, match="as far as acp can tell over nfs4"):
        claims.take(tmp_path, CONDUCT)
    claims.write_record(claim.path, replace(there, ended="2026-01-01T00:00:00+00:00"))
    claims.take(tmp_path, CONDUCT).release()


# --- processes that become others, and holders that ended ----------------------------------------


def test_a_claim_is_inherited_by_the_very_process_that_the_record_names(tmp_path: Path) -> None:
    with claims.take(tmp_path, CONDUCT) as claim:
        assert claims.inherit(tmp_path, CONDUCT, claim.fileno()).owner == claim.owner
        other = replace(claim.owner, process=replace(claim.owner.process, pid=1))
        claims.write_record(claim.path, other)
        with pytest.raises(Lost, match="no longer names this process as the holder"):
            claims.inherit(tmp_path, CONDUCT, claim.fileno())
        claim.path.with_suffix(".json").unlink()
        with pytest.raises(Lost, match="no longer names this process as the holder"):
            claims.inherit(tmp_path, CONDUCT, claim.fileno())


def test_what_was_never_claimed_is_neither_closed_nor_noted(tmp_path: Path) -> None:
    """The end of a program may be told late, or twice: no claim comes of it."""
    claims.note(tmp_path, claims.of_turn("turn-1"), None)
    assert list(tmp_path.iterdir()) == []
    claims.take(tmp_path, ALICE).release()
    claims.close_record(tmp_path, CONDUCT, 7)
    assert not claims.lock_of(tmp_path, CONDUCT).exists()


def test_whoever_lets_go_twice_does_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number may be another file's by then; and no lock that was tried stays open."""
    real, replaced = fcntl.flock, []

    def replace_once(fd: int, how: int) -> None:
        real(fd, how)
        if not replaced:
            replaced.append(fd)
            claims.lock_of(tmp_path, CONDUCT).unlink()  # somebody cleans up at this moment

    monkeypatch.setattr(fcntl, "flock", replace_once)
    claim = claims.take(tmp_path, CONDUCT)
    claim.release()
    claim.release()
    assert replaced and open_below(tmp_path) == []


# --- programs that outlive their holder --------------------------------------------------------


def test_nobody_takes_over_while_a_program_of_the_last_holder_runs(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "600"])
    try:
        with claims.take(tmp_path, ALICE) as claim:
            claim.note_child(child.pid)
        with pytest.raises(Held, match=rf"\(process {child.pid}\) is still running"):
            claims.take(tmp_path, ALICE)
    finally:
        child.kill()
        child.wait()
    claims.take(tmp_path, ALICE).release()


def test_a_process_id_that_was_used_again_holds_nobody_up(tmp_path: Path) -> None:
    with claims.take(tmp_path, ALICE) as claim:
        claim.note_child(os.getpid())
        mine = claim.owner.child
    assert mine is not None and mine.alive() is True
    for other in (replace(mine, started=mine.started - 5), replace(mine, boot="before")):
        assert other.alive() is False
        claims.write_record(claim.path, replace(claim.owner, child=other))
        claims.take(tmp_path, ALICE).release()


def test_what_is_hidden_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `hidepid`: the process is there, and nothing can be read of it."""
    mine = claims.this_process(os.getpid())
    monkeypatch.setattr(claims, "_stat", lambda pid: (b"", -1))
    assert mine.alive() is None and mine.may_live()
    assert replace(mine, host="elsewhere").alive() is None
    assert not replace(mine, host="elsewhere").may_live()


# --- records of strangers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"account": 7}',
        '{"process": {"pid": -1}}',
        "[" * 5000,
        '"x"',
        "\0",
        (
            '{"account": "a", "uid": 0, "program": "acp", "since": "x", "epoch": 1, "process": '
            '{"host": 7, "boot": "b", "pid": 1, "started": 1}}'
        ),
    ],
)
def test_a_record_that_makes_no_sense_decides_nothing(tmp_path: Path, text: str) -> None:
    claims.take(tmp_path, CONDUCT).release()
    record = claims.lock_of(tmp_path, CONDUCT).with_suffix(".json")
    record.write_text(text)
    assert claims.seen(tmp_path, CONDUCT).owner is None
    assert "another process has locked" in claims.seen(tmp_path, CONDUCT).sentence
    claims.take(tmp_path, CONDUCT).release()


def test_whose_record_it_is_says_the_file_and_not_its_text(tmp_path: Path) -> None:
    claims.take(tmp_path, CONDUCT).release()
    record = claims.lock_of(tmp_path, CONDUCT).with_suffix(".json")
    forged = json.loads(record.read_text()) | {"account": "anna", "uid": 12345}
    record.write_text(json.dumps(forged))
    found = claims.seen(tmp_path, CONDUCT).owner
    assert found is not None
    assert (found.account, found.uid) == (claims.account(os.getuid()), os.getuid())


def test_a_hostile_record_is_shown_in_one_safe_line(tmp_path: Path) -> None:
    claims.take(tmp_path, CONDUCT).release()
    path = claims.lock_of(tmp_path, CONDUCT)
    process = Process("h\x1b]0;x\x07\nost", "", 7, 7)
    claims.write_record(path, Owner("x", 0, process, since="\x1b[2J"))
    said = claims.seen(tmp_path, CONDUCT).sentence
    assert said.isprintable() and "since ?" in said


@given(st.text(max_size=300))
def test_every_participant_has_a_claim_of_its_own(participant: str) -> None:
    name = claims.of_participant(participant)
    kind, _, file = name.partition("/")
    assert kind == "loops" and "/" not in file and not file.startswith(".")
    assert 0 < len(file) <= 120
    assert (name == claims.of_participant("alice")) == (participant == "alice")


def test_a_participants_claim_is_found_under_the_participants_name() -> None:
    """People look for it there, and other programs that play a participant lock it."""
    assert claims.of_participant("alice") == "loops/alice"
    assert claims.of_participant(" ").startswith("loops/ -")  # no file of a blank alone


# --- races ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_several_processes_one_at_a_time_is_inside(tmp_path: Path) -> None:
    words = [sys.executable, "-c", COUNTER, str(tmp_path), "25"]
    racers = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for racer in racers:
        out, err = racer.communicate(timeout=300)
        assert (racer.returncode, out) == (0, "through\n"), err
    found = claims.seen(tmp_path, CONDUCT).owner
    assert found is not None and found.epoch == 100


def test_a_holder_in_another_process_stops_where_its_lock_is_removed(
    tmp_path: Path, holders: list[subprocess.Popen[str]]
) -> None:
    child = hold(tmp_path, holders)
    claims.lock_of(tmp_path, CONDUCT).unlink()
    with claims.take(tmp_path, CONDUCT) as claim:
        _, err = child.communicate(timeout=60)
        assert "removed or replaced" in err
        found = claims.seen(tmp_path, CONDUCT)
        assert found.owner is not None and found.owner.process.pid == os.getpid()
        claim.check()


@pytest.mark.parametrize("moment", ["mkdir", "open", "flock", "replace"])
def test_a_kill_at_any_moment_of_taking_leaves_a_claim_that_can_be_taken(
    tmp_path: Path, moment: str
) -> None:
    module = "fcntl" if moment == "flock" else "os"
    code = f"""
import os, signal, sys, fcntl
from acp_core.files import claims
real, left = {module}.{moment}, [int(sys.argv[2])]
def dying(*args, **more):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **more)
{module}.{moment} = dying
claims.take(sys.argv[1], "loops/alice").check()
"""
    for number in range(1, 60):
        project = tmp_path / str(number)
        project.mkdir()
        words = [sys.executable, "-c", code, str(project), str(number)]
        ended = subprocess.run(words, capture_output=True, timeout=60, check=False)
        with claims.take(project, ALICE) as claim:
            claim.check()
        assert (project / ".acp" / ".gitignore").read_bytes() == b"*\n"
        if ended.returncode == 0:
            assert number > 1
            return
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    raise AssertionError("it was killed again and again")


class Turns:
    """Takers and a remover, whose steps are made in any order."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.held: list[claims.Claim] = []

    def take(self) -> None:
        try:
            self.held.append(claims.take(self.project, CONDUCT))
        except Held:
            assert self.valid()

    def let_go(self) -> None:
        if self.held:
            self.held.pop(0).release()

    def remove(self) -> None:
        claims.lock_of(self.project, CONDUCT).unlink(missing_ok=True)

    def put_another(self) -> None:
        self.remove()
        if (self.project / ".acp" / "run").is_dir():
            claims.lock_of(self.project, CONDUCT).write_text("")

    def valid(self) -> list[claims.Claim]:
        """Holders that would go on."""
        found = []
        for claim in self.held:
            try:
                claim.check()
                found.append(claim)
            except Lost:
                pass
        return found


LEFT = {
    ".gitignore": (None, "", "*", "*\n"),
    "lock": (None, ""),
    "json": (None, "", "half", "whole"),
}


@pytest.mark.parametrize("folders", [0, 1, 2, 3])
def test_whatever_a_power_loss_leaves_of_it_it_can_be_taken(tmp_path: Path, folders: int) -> None:
    """Each file of a claim may be missing, empty, torn or whole, and each folder may be missing."""
    (tmp_path / "before").mkdir()
    with claims.take(tmp_path / "before", ALICE, "a program") as claim:
        whole = claim.path.with_suffix(".json").read_text()
    for number, left in enumerate(product(*LEFT.values())):
        project = tmp_path / str(number)
        places = [project / ".acp", project / ".acp/run", project / ".acp/run/loops"][:folders]
        lock = claims.lock_of(project, ALICE)
        for folder in (project, *places):
            folder.mkdir()
        paths = (project / ".acp/.gitignore", lock, lock.with_suffix(".json"))
        for path, content in zip(paths, left, strict=True):
            if content is not None and path.parent.is_dir():
                path.write_text(
                    {"half": whole[: len(whole) // 2], "whole": whole}.get(content, content)
                )
        with claims.take(project, ALICE, "another") as claim:
            claim.check()
            assert not list(project.rglob("*.acp-tmp"))
            assert claims.seen(project, ALICE).sentence.startswith(
                f"{claim.owner.account} plays alice"
            )
        assert "*" in (project / ".acp/.gitignore").read_text().split()


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["take", "let_go", "remove", "put_another"]), max_size=12))
def test_whatever_is_removed_at_most_one_holder_goes_on(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "_PATIENCE", 0.0)
        turns = Turns(tmp_path_factory.mktemp("race"))
        try:
            for step in steps:
                getattr(turns, step)()
                assert len(turns.valid()) <= 1
        finally:
            while turns.held:
                turns.let_go()


def test_looking_takes_and_makes_nothing(tmp_path: Path) -> None:
    seen = claims.seen(tmp_path, CONDUCT)
    assert (seen.held, seen.owner, list(tmp_path.iterdir())) == (False, None, [])
    began = time.monotonic()
    assert not claims.seen(tmp_path / "missing", ALICE).held
    assert began <= time.monotonic()
