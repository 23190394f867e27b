"""What was kept of a long log is believed beside the very same bytes only, and costs nobody anything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import acp_core
from acp_core.files import atomic
from acp_core.files.journal import Lines, blocks
from acp_core.protocols.folder.conduct.waiting import Observation
from acp_core.protocols.folder.read import checkpoint
from acp_core.protocols.folder.read.checkpoint import Checkpoint
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import V1, V2
from acp_core.protocols.folder.write import opened
from acp_core.protocols.folder.write.append import Request, append
from tests.protocols.folder.acting import ROOT
from tests.protocols.folder.checkpoints import PLACE, derived, kept, recalled, seen
from tests.protocols.folder.support import PEOPLE as THREE
from tests.protocols.folder.support import make_v1
from tests.protocols.folder.test_history import PEOPLE, a_log, rounds, told

pytestmark = pytest.mark.usefixtures("own_cache")


# What is never believed


def _forge(path: str, change: Callable[[dict[str, Any]], object], place: tuple[int, int]) -> None:
    """What a file says, changed, with digests that fit."""
    made = Checkpoint(*place, PEOPLE, V1)
    made.recall(lambda size: b"")
    content = json.loads(Path(path).read_bytes().partition(b"\n")[2])
    change(content)
    made._write(made._head(data := json.dumps(content).encode()) + b"\n" + data)


def test_what_is_kept_of_other_bytes_is_not_believed(short: None) -> None:
    log = rounds(50)
    kept(log)
    assert recalled(log) is not None
    assert recalled(log.replace(b"Nr. 9", b"Nr. 8")) is None
    assert recalled(log[:-1]) is None
    assert recalled(b"") is None


@pytest.mark.parametrize(
    "what", ["participants", "dialect", "file", "account", "version", "code", "Python"]
)
def test_what_another_one_kept_is_not_believed(
    what: str, monkeypatch: pytest.MonkeyPatch, short: None
) -> None:
    log = rounds(50)
    before = kept(log)
    device, inode = PLACE
    people, dialect = PEOPLE, V1
    if what == "participants":
        people = (*PEOPLE, "dan")
    elif what == "dialect":
        dialect = V2
    elif what == "file":
        inode += 1
    elif what == "account":
        monkeypatch.setattr(checkpoint, "_is_own", lambda found: True)
        monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    elif what == "version":
        monkeypatch.setattr(acp_core, "__version__", "9.9")
    elif what == "code":
        monkeypatch.setattr(checkpoint, "_code", lambda: ())
    elif what == "Python":
        monkeypatch.setattr(sys, "version", "4.0")
    found = Checkpoint(device, inode, people, dialect)
    assert found.recall(lambda size: log[:size]) is None
    if found.path != before.path:
        shutil.copy(before.path, found.path)  # as if the names were the same by chance
        assert found.recall(lambda size: log[:size]) is None


def test_a_damaged_file_counts_as_none(short: None) -> None:
    log = rounds(50)
    path = Path(kept(log).path)
    whole, chance = path.read_bytes(), Random("damaged")
    for _ in range(200):
        place = chance.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert recalled(log) is None
        path.write_bytes(whole[:place])
        assert recalled(log) is None
    path.write_bytes(whole)
    assert recalled(log) is not None
    for change in (
        lambda told: told.pop("core"), lambda told: told.update(pieces=[[3, "x"]]),
        lambda told: told.update(lines=7), lambda told: told.update(size="1"),
        lambda told: told.update(waits=[]), lambda told: told.update(recent=3),
    ):  # fmt: skip
        _forge(str(path), change, PLACE)
        assert recalled(log) is None
        path.write_bytes(whole)


def test_a_file_that_others_could_have_written_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, short: None
) -> None:
    log = rounds(50)
    path = Path(kept(log).path)
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    for mode in (0o620, 0o602):
        path.chmod(mode)
        assert recalled(log) is None
    path.chmod(0o600)
    assert recalled(log) is not None
    elsewhere = path.with_name("elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert recalled(log) is None
    path.unlink()
    os.mkfifo(path)
    assert recalled(log) is None
    path.unlink()
    elsewhere.rename(path)
    if os.geteuid() == 0:
        os.chown(path, 54_321, -1)
        assert recalled(log) is None
        os.chown(path, 0, -1)
        os.chown(path.parent, 54_321, -1)
        path.unlink()
        kept(log)
        assert not path.exists()  # nothing is put into the folder of another account
        path.parent.rmdir()
        os.chown(path.parent.parent, 54_321, -1)
        kept(log)
        assert not path.parent.exists()  # nor is one made there


def test_of_a_log_about_which_something_is_to_be_said_nothing_is_kept(short: None) -> None:
    for odd in (b"{\n", b"\n", rounds(2).splitlines(keepends=True)[1], b'{"seq":42}\n'):
        log = rounds(40) + odd + b"".join(rounds(45).splitlines(keepends=True)[41:])
        kept(log)
        assert recalled(log) is None
    late = rounds(40).replace(b"2026-02-28T10:00:00Z", b"2026-02-28T10:00:00+00:00")
    kept(late)
    assert recalled(late) is None


def test_validate_derives_everything_from_the_log(
    tmp_path: Path, folder: Path, short: None
) -> None:
    """Also where what was kept lies, with every digest in order."""
    seen(folder, False)
    (path,) = (tmp_path / "cache" / "logs").iterdir()
    head, _, content = path.read_bytes().partition(b"\n")
    lie = content.replace(b'"reviewing"', b'"completed"')
    assert lie != content
    digest = checkpoint._sha256(lie).hexdigest().encode()
    path.write_bytes(head[:65] + digest + b"\n" + lie)
    path.chmod(0o600)
    assert Observation(str(folder), THREE[1]).machine.phase == "completed"  # it would be believed
    assert checks.validate(str(folder)).lines() == ["ACP validation passed"]


def test_every_module_that_decides_what_a_log_leads_to_counts(short: None) -> None:
    """A changed program does not believe what it kept before: told by the files that run."""
    chance, ran = Random("modules"), set()
    known = History(PEOPLE, V2)

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            ran.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        for kind in ("", "line", "form", "at"):
            data = a_log(chance, V2, kind) + rounds(600)
            for block in blocks(data):
                known.read(block)
            for item in records.parse_lines(data):
                known.feed([item])
        kept(rounds(50))
        recalled(rounds(60))
    finally:
        sys.setprofile(None)
    root = Path(acp_core.__file__).parent
    ours = {Path(name).resolve() for name in ran if Path(name).is_relative_to(root)}
    here = Path(checkpoint.__file__).parent
    counted = {(here / name).resolve() for name in checkpoint.DERIVED_BY}
    writers = {root / "files/atomic.py", root / "person/paths.py"}
    assert ours - counted - writers == set()
    assert all(path.is_file() for path in counted)


# Writing it down


def test_what_cannot_be_kept_is_no_error(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, short: None
) -> None:
    monkeypatch.setenv("ACP_CACHE", str(folder / "events.jsonl"))  # no folder can be made there
    request = Request(str(folder), THREE[1], "blocked", "Stop.", reply_to=1)
    asked: list[Checkpoint] = []
    assert append(request).warnings == ()
    assert seen(folder, True) == seen(folder, False)
    monkeypatch.setenv("ACP_CACHE", str(tmp_path / "cache"))
    with monkeypatch.context() as patch:  # an agent that may not write there is not kept waiting
        patch.setattr(os, "access", lambda path, mode: False)
        patch.setattr(Checkpoint, "digest", lambda self: asked.append(self))
        append(request._replace(summary="Stop here."))
    assert asked == [] and not (tmp_path / "cache").exists()
    for error in (OSError(28, "No space left on device"), MemoryError(), ValueError()):

        def fail(*_: object, error: Exception = error, **__: object) -> str:
            raise error

        monkeypatch.setattr(
            checkpoint.atomic,
            "replace",
            lambda *a, **k: fail(*a, **k) if "cache" in str(a[0]) else replace(*a, **k),
        )
        append(request._replace(summary=repr(error)))
    assert [*(tmp_path / "cache" / "logs").iterdir()] == []


replace = atomic.replace


def test_who_is_killed_while_it_is_kept_leaves_nothing_half_written(
    tmp_path: Path, short: None
) -> None:
    log = rounds(50)
    for name in ("write", "replace"):
        pid = os.fork()
        if pid == 0:
            setattr(os, name, lambda *_: os._exit(9))
            kept(log)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
        assert recalled(log) is None
        assert all(
            atomic.is_leftover(each.name) for each in (tmp_path / "cache" / "logs").iterdir()
        )
    kept(log)
    assert recalled(log) is not None


def test_only_so_much_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: None) -> None:
    log, folder = rounds(50), tmp_path / "cache" / "logs"
    for number in range(checkpoint.FILES + 5):
        found = Checkpoint(1, number, PEOPLE, V1)
        found.recall(lambda size: log[:size])
        history = derived(log)
        found.take(Lines(log, 1))
        found.keep(history)
        os.utime(found.path, (number, number))
    left = sorted(int(path.name.split("-")[1], 16) for path in folder.iterdir())
    assert left == list(range(5, checkpoint.FILES + 5))
    monkeypatch.setattr(checkpoint, "LARGEST", 100)
    shutil.rmtree(folder)
    kept(log)
    assert not folder.exists()


# As agents run it


LONG_LOG = 9_000  # events: more than a megabyte
_MODULES = """
import sys
from acp_tui import __main__
code = __main__.main(sys.argv[1:])
print("\\n", code, "acp_core.protocols.folder.read.checkpoint" in sys.modules, "hashlib" in sys.modules)
"""


def _long(folder: Path) -> Path:
    make_v1(folder, "reviewing", participants=PEOPLE)
    (folder / "events.jsonl").write_bytes(rounds(LONG_LOG + 1))
    assert (folder / "events.jsonl").stat().st_size > opened.LONG
    return folder


def _run(*words: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _MODULES, *map(str, words)],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return done.stdout.splitlines()[-1].strip()


def test_only_turns_of_long_logs_need_what_is_kept(tmp_path: Path) -> None:
    long, brief = _long(tmp_path / "long"), make_v1(tmp_path / "brief", "reviewing")
    who, event = (
        ("--participant", "ben"),
        ("--event", "blocked", "--summary", "No", "--reply-to", 1),
    )
    assert _run("append", "--folder", brief, "--participant", THREE[1], *event) == "0 False False"
    assert _run("next", "--folder", brief, "--participant", THREE[1]) == "0 False False"
    assert _run("validate", "--folder", long).split()[1:] == ["False", "False"]
    assert not (tmp_path / "cache").exists()
    assert _run("next", "--folder", long, *who) == "0 True True"
    assert _run("append", "--folder", long, *who, *event) == "0 True True"
    assert len([*(tmp_path / "cache" / "logs").iterdir()]) == 1
    shutil.rmtree(tmp_path / "cache")
    assert _run("wait", "--folder", long, *who) == "0 True True"
    assert len([*(tmp_path / "cache" / "logs").iterdir()]) == 1


def test_two_processes_append_to_a_long_log_at_once(tmp_path: Path) -> None:
    from tests.protocols.folder.test_concurrency import _MANY, seqs

    folder = _long(tmp_path / "run")
    writers = [
        subprocess.Popen([sys.executable, "-c", _MANY, str(folder), name, "40"],
                         stdout=subprocess.DEVNULL, cwd=ROOT)
        for name in ("ana", "ben")
    ]  # fmt: skip
    assert [writer.wait() for writer in writers] == [0, 0]
    assert seqs(folder) == list(range(1, LONG_LOG + 82))
    (kept_file,) = (tmp_path / "cache" / "logs").iterdir()
    assert json.loads(kept_file.read_bytes().partition(b"\n")[2])["lines"] > LONG_LOG + 40
    data = (folder / "events.jsonl").read_bytes()
    found = folder.joinpath("events.jsonl").stat()
    again = Checkpoint(found.st_dev, found.st_ino, PEOPLE, V1)
    history = again.recall(lambda size: data[:size])
    assert history is not None
    for block in blocks(data[again.size :], again.lines + 1):
        history.read(block)
    assert told(history) == told(derived(data))
