"""Somebody changes files; the watcher says in which folders, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acp_core.files import locked, watch
from acp_core.files.changes import Heard
from acp_core.files.watch import Poller, Report, Watcher

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60  # s until a test gives up; nothing passes or fails by being quicker


class Ear:
    """Keeps what a watcher reported, and waits for more."""

    def __init__(self, poll: bool | None = False) -> None:
        self.reports: list[Report] = []
        self._heard = threading.Condition()
        self.watcher = Watcher(self._hear, poll=poll)

    def _hear(self, report: Report) -> None:
        with self._heard:
            self.reports.append(report)
            self._heard.notify_all()

    def until(self, said: Callable[[list[Report]], object]) -> None:
        with self._heard:
            assert self._heard.wait_for(lambda: said(self.reports), PATIENCE), self.reports

    def arm(self, *folders: Path) -> None:
        """Watch these folders, and forget what was said until they are watched."""
        self.watcher.replace(folders)
        wanted = frozenset(folders)
        self.until(lambda reports: any(r.rearmed and r.changed == wanted for r in reports))
        self.reports.clear()

    @property
    def changed(self) -> set[Path]:
        return {folder for report in self.reports for folder in report.changed}

    @property
    def entries(self) -> set[Path]:
        return {entry for report in self.reports for entry in report.entries}


@pytest.fixture(params=["inotify", "watchfiles", "polling"])
def ear(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ear]:
    if request.param == "watchfiles":  # what other systems than Linux are watched with
        monkeypatch.setattr(watch, "LINUX", False)
    ear = Ear(poll=request.param == "polling")
    yield ear
    ear.watcher.close()


@pytest.fixture
def kernel_ear() -> Iterator[Ear]:
    ear = Ear()
    yield ear
    ear.watcher.close()


def folder(parent: Path, name: str) -> Path:
    made = parent / name
    made.mkdir()
    return made


def test_says_which_folder_a_file_was_changed_in(ear: Ear, tmp_path: Path) -> None:
    one, other = folder(tmp_path, "one"), folder(tmp_path, "other")
    (one / "log").write_text("a\n")
    ear.arm(one, other)
    with (one / "log").open("a") as log:
        log.write("b\n")
    ear.until(lambda _: one in ear.changed)
    assert ear.changed == {one}
    assert ear.entries == set()


def test_says_what_appeared_was_replaced_and_vanished(ear: Ear, tmp_path: Path) -> None:
    one = folder(tmp_path, "one")
    (one / "old").write_text("")
    ear.arm(one)
    (one / "new").write_text("")
    (one / "old").unlink()
    ear.until(lambda _: {one / "new", one / "old"} <= ear.entries)


def test_two_changes_within_one_second_are_two(ear: Ear, tmp_path: Path) -> None:
    one = folder(tmp_path, "one")
    (one / "log").write_text("")
    ear.arm(one)
    for _ in range(2):
        with (one / "log").open("a") as log:
            log.write("x")
        ear.until(lambda _: one in ear.changed)
        ear.reports.clear()


def test_does_not_look_below_a_folder(kernel_ear: Ear, tmp_path: Path) -> None:
    one = folder(tmp_path, "one")
    below = folder(one, "below")
    kernel_ear.arm(one)
    (below / "file").write_text("")
    (one / "file").write_text("")
    kernel_ear.until(lambda _: one / "file" in kernel_ear.entries)
    assert below / "file" not in kernel_ear.entries


def test_reading_is_no_change(kernel_ear: Ear, tmp_path: Path) -> None:
    one = folder(tmp_path, "one")
    (one / "file").write_text("text")
    kernel_ear.arm(one)
    (one / "file").read_text()
    os.listdir(one)
    (one / "sign").write_text("")  # what comes after the reading
    kernel_ear.until(lambda _: one / "sign" in kernel_ear.entries)
    assert kernel_ear.entries == {one / "sign"}


def test_the_list_can_be_replaced_while_it_runs(ear: Ear, tmp_path: Path) -> None:
    one, other = folder(tmp_path, "one"), folder(tmp_path, "other")
    ear.arm(one)
    ear.watcher.replace([other])
    (other / "early").write_text("")  # perhaps before it is watched
    ear.until(lambda reports: any(r.rearmed and other in r.changed for r in reports))
    ear.reports.clear()
    (one / "ignored").write_text("")
    (other / "late").write_text("")
    ear.until(lambda _: other / "late" in ear.entries)
    assert one not in ear.changed


def test_a_folder_that_does_not_exist_is_waited_for(
    ear: Ear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "CHECK", 0.05)
    later = tmp_path / "later"
    ear.arm(later)
    assert ear.watcher.note == ""
    later.mkdir()
    ear.until(lambda reports: any(r.rearmed for r in reports))
    ear.reports.clear()
    (later / "file").write_text("")
    ear.until(lambda _: later / "file" in ear.entries)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_folder_that_is_removed_and_made_again_is_watched_again(
    ear: Ear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    monkeypatch.setattr(watch, "CHECK", 0.05)
    one = folder(tmp_path, "one")
    ear.arm(one)
    shutil.rmtree(one)
    if not at_once:
        ear.until(lambda _: one in ear.changed)
    one.mkdir()
    # From now on it is written to until the watcher says so: it must not stay deaf.
    for number in range(PATIENCE * 10):
        (one / str(number)).write_text("")
        time.sleep(0.1)
        if any(entry.parent == one for entry in ear.entries):
            return
    pytest.fail("deaf")


def test_a_folder_exchanged_by_renaming_its_parent_is_watched_again(
    kernel_ear: Ear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "CHECK", 0.05)
    above = folder(tmp_path, "above")
    one = folder(above, "one")
    kernel_ear.arm(one)
    above.rename(tmp_path / "gone")
    above.mkdir()
    one.mkdir()
    kernel_ear.until(lambda reports: any(r.rearmed for r in reports))
    kernel_ear.reports.clear()
    (one / "file").write_text("")
    kernel_ear.until(lambda _: one / "file" in kernel_ear.entries)


def test_one_folder_under_two_names_is_reported_under_both(kernel_ear: Ear, tmp_path: Path) -> None:
    one, link = folder(tmp_path, "one"), tmp_path / "link"
    link.symlink_to(one)
    kernel_ear.arm(one, link)
    (one / "file").write_text("")
    kernel_ear.until(lambda _: kernel_ear.changed == {one, link})
    assert {one / "file", link / "file"} <= kernel_ear.entries


def test_a_file_name_that_is_no_text_does_not_deafen(kernel_ear: Ear, tmp_path: Path) -> None:
    one = folder(tmp_path, "one")
    kernel_ear.arm(one)
    (one / os.fsdecode(b"\xff")).write_text("")
    kernel_ear.until(lambda _: one in kernel_ear.changed)
    kernel_ear.reports.clear()
    (one / "file").write_text("")
    kernel_ear.until(lambda _: one / "file" in kernel_ear.entries)


def test_a_file_name_that_is_no_text_makes_watchfiles_begin_anew(
    kernel_ear: Ear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LINUX", False)
    one = folder(tmp_path, "one")
    kernel_ear.arm(one)
    (one / os.fsdecode(b"\xff")).write_text("")
    kernel_ear.until(lambda reports: any(r.rearmed for r in reports))
    kernel_ear.reports.clear()
    (one / "file").write_text("")
    kernel_ear.until(lambda _: one in kernel_ear.changed)


@pytest.mark.skipif(not watch.LINUX, reason="only Linux has it")
def test_what_the_kernel_dropped_counts_as_everything(tmp_path: Path) -> None:
    """Nobody reads while more happens than the kernel keeps."""
    from acp_core.files.inotify import Inotify

    one = folder(tmp_path, "one")
    reading, writing = os.pipe()
    watching = Inotify([str(one)], reading)
    try:
        most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        files = [one / "a", one / "b"]  # two: the same thing twice is kept once
        for file in files:
            file.touch()
        assert not watching.hear(1).lost
        for _ in range(most // 2 + 8):
            for file in files:
                os.utime(file)
        lost = False
        heard = watching.hear(1)
        while heard.changes and not lost:
            lost = heard.lost
            heard = watching.hear(0.1)
        assert lost
    finally:
        watching.close()
        os.close(reading)
        os.close(writing)


def test_where_changes_were_dropped_all_is_looked_at_again(
    kernel_ear: Ear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forgetful:
        def __init__(self, *_: object) -> None:
            self.first = True

        def hear(self, timeout: float) -> Heard:
            lost, self.first = self.first, False
            time.sleep(0.01)
            return Heard(set(), lost)

        def close(self) -> None:
            pass

    monkeypatch.setattr(watch, "ask", Forgetful)
    one = folder(tmp_path, "one")
    kernel_ear.arm(one)
    kernel_ear.until(lambda reports: any(r.rearmed and r.changed == {one} for r in reports))


def test_a_folder_name_that_is_no_text_is_polled_and_that_is_said(
    kernel_ear: Ear, tmp_path: Path
) -> None:
    one = folder(tmp_path, os.fsdecode(b"\xff"))
    kernel_ear.arm(one)
    assert kernel_ear.watcher.note.startswith("polling 1 folder:")
    (one / "file").write_text("")
    kernel_ear.until(lambda _: one / "file" in kernel_ear.entries)


def test_where_the_system_refuses_to_watch_it_polls_and_says_so(
    kernel_ear: Ear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError('OS file watch limit reached. about ["x"]')

    monkeypatch.setattr(watch, "ask", refuse)
    one = folder(tmp_path, "one")
    kernel_ear.arm(one)
    assert kernel_ear.watcher.note == "polling 1 folder: the system's limit is reached, every 0.3 s"
    (one / "file").write_text("")
    kernel_ear.until(lambda _: one / "file" in kernel_ear.entries)


LIMITED = """
import sys, time
from pathlib import Path
from acp_core.files.watch import Watcher
folders = [Path(sys.argv[1], str(number)) for number in range(9)]
for folder in folders:
    folder.mkdir()
seen = set()
watcher = Watcher(lambda report: seen.update(report.entries), poll=False)
watcher.replace(folders)
while not watcher.note:
    time.sleep(0.01)
for folder in folders:
    (folder / "file").write_text("")
while len(seen) < len(folders):
    time.sleep(0.01)
print(watcher.note)
"""


def test_more_folders_than_the_system_lets_one_watch_are_all_noticed(tmp_path: Path) -> None:
    """In a user namespace of its own, where the limit can be set."""
    limit = 'echo 4 > /proc/sys/user/max_inotify_watches && exec "$@"'
    alone = ["unshare", "--user", "--map-root-user", "sh", "-c", limit, "sh"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], check=False).returncode:
        pytest.skip("this system gives no namespace in which the limit can be set")
    command = [*alone, sys.executable, "-c", LIMITED, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=ROOT
    )
    assert done.stdout == "polling 9 folders: the system's limit is reached, every 0.3 s\n"


def test_a_shared_file_system_is_polled_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = folder(tmp_path, "one")
    mount = locked.Mount(str(tmp_path), "nfs4")
    monkeypatch.setattr(locked, "here", lambda: (locked.Mount("/", "ext4"), mount))
    ear = Ear(poll=None)
    try:
        ear.arm(one)
        assert ear.watcher.note == "polling 1 folder: shared file system (nfs4), every 0.3 s"
        (one / "file").write_text("")
        ear.until(lambda _: one / "file" in ear.entries)
    finally:
        ear.watcher.close()


def test_an_inner_failure_is_said_and_tried_again(
    kernel_ear: Ear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = folder(tmp_path, "one")
    real, failed = watch._identity, threading.Event()

    def fail_once(path: Path) -> watch.Identity | None:
        if not failed.is_set():
            failed.set()
            raise ZeroDivisionError("no\x1bsense")
        return real(path)

    monkeypatch.setattr(watch, "_identity", fail_once)
    kernel_ear.arm(one)
    assert failed.is_set()
    (one / "file").write_text("")
    kernel_ear.until(lambda _: one / "file" in kernel_ear.entries)


def test_after_closing_nothing_is_said_and_no_thread_is_left(tmp_path: Path) -> None:
    ear = Ear()
    ear.arm(tmp_path)
    ear.watcher.close()
    (tmp_path / "file").write_text("")
    assert not [thread for thread in threading.enumerate() if thread.name == "acp-watch"]
    assert ear.reports == []
    Ear().watcher.close()  # one that never ran


# --- what is behind it ---------------------------------------------------------------------

MOUNTINFO = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:44 / /mnt/my\\040share rw - nfs4 server:/x rw
31 22 0:45 /sub /mnt/usb rw shared:7 master:2 - vfat /dev/sdb1 rw
32 30 0:46 / /mnt/my\\040share/deep rw - tmpfs tmpfs rw
33 22 0:47 / /home/x/remote rw - fuse.sshfs x@y:/ rw
34 22 8:2 / /mnt/usb rw - 9p host rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "kind", "shared"),
    [
        ("/home/x", "ext4", False),
        ("/", "ext4", False),
        ("/mnt/my share", "nfs4", True),
        ("/mnt/my share/a/b", "nfs4", True),
        ("/mnt/my sharepoint", "ext4", False),
        ("/mnt/my share/deep/a", "tmpfs", False),
        ("/home/x/remote/a", "fuse.sshfs", True),
        ("/mnt/usb/a", "9p", True),
    ],
)
def test_the_kind_of_a_file_system_is_that_of_the_innermost_mount(
    path: str, kind: str, shared: bool
) -> None:
    found = locked.kind(path, locked.parse(MOUNTINFO))
    assert (found, locked.is_shared(found)) == (kind, shared)


def test_programs_that_show_a_local_file_system_are_not_shared() -> None:
    assert not locked.is_shared("fuse.fuse-overlayfs")
    assert locked.is_shared("fuse.rclone")
    assert not locked.is_shared("")


def test_the_poller_notices_every_kind_of_change(tmp_path: Path) -> None:
    one, gone = folder(tmp_path, "one"), folder(tmp_path, "gone")
    (one / "kept").write_text("")
    (one / "dangling").symlink_to("nowhere")
    poller = Poller()
    assert not poller
    poller.replace([one, gone, tmp_path / "not yet"])
    assert poller
    assert poller.changes() == (set(), set())
    gone.rmdir()
    (one / "kept").rename(one / "renamed")
    folder(tmp_path, "not yet")
    changed, entries = poller.changes()
    assert changed == {one, gone, tmp_path / "not yet"}
    assert entries == {gone, one / "kept", one / "renamed", tmp_path / "not yet"}
    assert poller.changes() == (set(), set())
