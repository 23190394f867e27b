"""Where a long log stood is kept between runs, and never believed beside other bytes."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import acp_core
from acp_core.files import atomic
from acp_core.files.journal import Lines, blocks
from acp_core.files.locked import LogError, locked
from acp_core.protocols.folder import rules, schema
from acp_core.protocols.folder.conduct import waiting
from acp_core.protocols.folder.conduct.waiting import Observation
from acp_core.protocols.folder.read import checkpoint
from acp_core.protocols.folder.read.checkpoint import Checkpoint
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema import V1, V2
from acp_core.protocols.folder.write import Refused, opened
from acp_core.protocols.folder.write.append import Request, append
from acp_core.protocols.folder.write.opened import open_locked
from tests.protocols.folder.disorder import HAPPENINGS, Happening
from tests.protocols.folder.running import ROOT
from tests.protocols.folder.support import PEOPLE as THREE
from tests.protocols.folder.support import UPTO, make_v1, make_v2, say
from tests.protocols.folder.test_history import KINDS, PEOPLE, a_log, cut, rounds, told

NOW = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
PLACE = (5, 7)  # device and inode of a log that is nowhere
_names = itertools.count()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log counts as long, and every new line as worth keeping."""
    monkeypatch.setattr(opened, "LONG", 1)
    monkeypatch.setattr(waiting, "LONG", 1)
    monkeypatch.setattr(checkpoint, "TAIL", 1)
    monkeypatch.setattr("acp_core.files.locked.QUIET", 0.0)  # here and below: nobody is writing
    monkeypatch.setattr(waiting, "QUIET", 0.0)
    monkeypatch.setattr(opened, "_PAUSE", 0.0)


def derived(data: bytes, dialect: str = V1, people: tuple[str, ...] = PEOPLE) -> History:
    history = History(people, dialect)
    for block in blocks(data):
        history.read(block)
    return history


def kept(data: bytes, dialect: str = V1, people: tuple[str, ...] = PEOPLE) -> Checkpoint:
    """Keep where a log stands, read block by block."""
    made = Checkpoint(*PLACE, people, dialect)
    made.recall(lambda size: data[:size])
    history = History(people, dialect)
    for block in cut(data, [7, 9, 30]):
        history.read(block)
        made.take(block)
    made.keep(history)
    return made


def recalled(data: bytes, dialect: str = V1, people: tuple[str, ...] = PEOPLE) -> History | None:
    """What is known of a log by what was kept, and by what came since."""
    found = Checkpoint(*PLACE, people, dialect)
    history = found.recall(lambda size: memoryview(data)[:size])
    if history is not None:
        for block in blocks(data[found.size :], found.lines + 1):
            history.read(block)
    return history


# What is recalled says what is derived


@pytest.mark.parametrize("kind", ["", *KINDS])
@pytest.mark.parametrize("dialect", [V1, V2])
def test_a_recalled_log_says_what_one_derived_in_full_says(
    dialect: str, kind: str, short: None, tmp_path: Path
) -> None:
    """Whatever came after what was kept; in all that is kept, and all that is derived late."""
    chance, recalls = Random(f"recalled {dialect} {kind}"), 0
    for _ in range(60):
        log = a_log(chance, dialect, kind)
        lines = log.split(b"\n")[:-1]
        first = b"".join(line + b"\n" for line in lines[: chance.randrange(1, len(lines) + 1)])
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        kept(first, dialect)
        history = recalled(log, dialect)
        if history is None:  # of the beginning something is to be said
            full = derived(first, dialect)
            assert full.findings or len(full.entries) < first.count(b"\n")
            continue
        recalls += 1
        copies, full = [history.copy() for _ in range(3)], derived(log, dialect)
        assert copies[0].machine.reviews == full.machine.reviews
        assert copies[1].machine.stays == full.machine.stays
        assert copies[2].review_at == full.review_at
        assert told(history) == told(full), log.decode(errors="replace")
        assert told(copies[0].again(PEOPLE[:2], V1)) == told(full.again(PEOPLE[:2], V1))
    assert recalls >= 5


def test_a_blank_line_or_one_of_another_form_is_told_at_its_place(short: None) -> None:
    log = rounds(40)
    kept(log)
    more = log + b"\n" + rounds(42).splitlines(keepends=True)[41]
    history, full = recalled(more), derived(more)
    assert history is not None and told(history) == told(full)
    assert history.entries[-1].line == 42
    Path(kept(more).path).unlink()
    kept(more)
    assert recalled(more) is None  # with a blank line a place is no number


@pytest.mark.parametrize("make", [make_v1, make_v2])
@pytest.mark.parametrize("upto", UPTO)
@pytest.mark.parametrize("blocked", ["", "No access."])
def test_a_log_that_has_ended_or_not_is_recalled(
    make: Callable[..., Path], upto: str, blocked: str, tmp_path: Path, short: None
) -> None:
    """Also with an event that comes after the end."""
    folder = make(tmp_path / "run", upto, blocked="" if upto == "completed" else blocked)
    dialect, log = V2 if make is make_v2 else V1, (folder / "events.jsonl").read_bytes()
    kept(log, dialect, THREE)
    history = recalled(log, dialect, THREE)
    assert history is not None and told(history) == told(derived(log, dialect, THREE))
    assert history.blockers == derived(log, dialect, THREE).blockers
    for sender, event in itertools.product(THREE, schema.EVENTS_V2):
        shutil.copytree(folder, tmp_path / "more", dirs_exist_ok=True)
        say(tmp_path / "more", sender, event)
        more = (tmp_path / "more" / "events.jsonl").read_bytes()
        history = recalled(more, dialect, THREE)
        assert history is not None and told(history) == told(derived(more, dialect, THREE))


def test_what_is_recalled_is_kept_again_with_what_came_since(short: None) -> None:
    log, lines = rounds(300), rounds(300).splitlines(keepends=True)
    for end in (10, 11, 60, 299, 300):
        data = b"".join(lines[:end])
        found = Checkpoint(*PLACE, PEOPLE, V1)
        history = found.recall(lambda size, data=data: data[:size]) or History(PEOPLE, V1)
        assert (end == 10) == (found.lines == 0)
        for block in blocks(data[found.size :], found.lines + 1):
            history.read(block)
            found.take(block)
        found.keep(history)
    once = Checkpoint(1, 1, PEOPLE, V1)  # all of it kept by one, step by step
    once.recall(lambda size: b"")
    history = History(PEOPLE, V1)
    for block in cut(log, [50, 100, 250]):
        history.read(block)
        once.take(block)
        once.keep(history)
    found = Checkpoint(1, 1, PEOPLE, V1)
    assert found.recall(lambda size: log[:size]) is not None and found.lines == 300
    again = Checkpoint(*PLACE, PEOPLE, V1)
    history = again.recall(lambda size: log[:size]) or History((), V1)
    assert again.lines == 300 and told(history) == told(derived(log))


def test_few_new_lines_are_not_worth_keeping(tmp_path: Path) -> None:
    first = kept(rounds(100))
    before = Path(first.path).read_bytes()
    data = rounds(100 + checkpoint.TAIL - 1)
    found = Checkpoint(*PLACE, PEOPLE, V1)
    history = found.recall(lambda size: data[:size])
    assert history is not None
    rest = Lines(data[found.size :], 101)
    history.read(rest)
    found.take(rest)
    found.keep(history)
    assert Path(first.path).read_bytes() == before


@pytest.mark.parametrize("key", ["k7", 'k"7', "k\\7", "ké7", "\u20287"])
def test_an_event_is_found_by_its_key_however_that_is_written(key: str, short: None) -> None:
    lines = rounds(50).splitlines(keepends=True)
    fields = {**json.loads(lines[20]), "key": key}
    for line in (schema.encode_event(fields), json.dumps(fields).encode() + b"\n"):
        lines[20] = line
        kept(b"".join(lines))
        history = recalled(b"".join(lines))
        assert history is not None
        for _ in range(2):  # the second time, the lines are taken apart
            found = [entry.seq for entry in history.entries.naming(key) if entry.key == key]
            assert found == [21]


def test_what_is_seldom_wanted_is_derived_once_for_all_copies(
    monkeypatch: pytest.MonkeyPatch, short: None
) -> None:
    log = rounds(3_000)
    kept(log)
    history = recalled(log)
    assert history is not None
    read: list[int] = []
    take = History.read
    monkeypatch.setattr(
        History, "read", lambda self, block: (read.append(block.count), take(self, block))[1]
    )
    copy = history.copy()
    assert read == []
    assert (
        len(copy.machine.starts) == len(history.machine.starts) == len(derived(log).machine.starts)
    )
    assert history.was_ever(("drafting", "ana", ["ana"])) and len(copy.review_at) == 1_999
    assert sum(read) == 2 * 3_000  # once for all of them, and once by `derived`


# What is recalled writes what is derived


def _state(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _said(folder: Path, request: Request) -> object:
    try:
        return append(request._replace(folder=str(folder)), now=lambda: NOW)
    except (Refused, OSError) as error:
        return str(error).replace(str(folder), "FOLDER")


def _seen(folder: Path, again: bool) -> object:
    try:
        found = Observation(str(folder), THREE[1], again=again)
    except Refused as error:
        return str(error).replace(str(folder), "FOLDER")
    found.keep()
    facts = waiting._facts(found, THREE[1])
    return facts, found.last, found.broken, found.takes_no_more, found.machine.stays


@contextlib.contextmanager
def _nothing_kept() -> Iterator[None]:
    own = os.environ["ACP_CACHE"]
    os.environ["ACP_CACHE"] = f"{own}-of-nobody"
    shutil.rmtree(os.environ["ACP_CACHE"], ignore_errors=True)
    try:
        yield
    finally:
        os.environ["ACP_CACHE"] = own


def _rewrite(folder: Path, old: bytes, new: bytes, *, other: bool) -> None:
    """Change bytes of the log, with the same size and time: in the same file, or in another one."""
    log = folder / "events.jsonl"
    found, data = log.stat(), log.read_bytes()
    if other:
        log.unlink()
    log.write_bytes(data.replace(old, new))
    os.utime(log, ns=(found.st_atime_ns, found.st_mtime_ns))


SAME_SIZE = [
    Happening(f"{old!r} becomes {new!r}{', in another file' if other else ''}",
              lambda folder, old=old, new=new, other=other: _rewrite(folder, old, new, other=other))
    for old, new in ((b'"from":"reader"', b'"from":"server"'), (b"_submitted", b"_submittex"), (b"x", b"x"))
    for other in (False, True)
]  # fmt: skip
WORDS = st.builds(
    Request,
    folder=st.just(""),
    participant=st.sampled_from(THREE),
    event=st.sampled_from(schema.EVENTS_V2),
    summary=st.just("Said."),
    doc=st.sampled_from([None, "conclusion.md", "review.md"]),
    reply_to=st.sampled_from([None, 1, 2, 3, 99]),
    role=st.sampled_from([None, "primary"]),
    key=st.sampled_from([None, "k1", 'k"2', "ké"]),
    expect_seq=st.sampled_from([None, 3]),
    review=st.sampled_from([None, "Position:\n- Fine.\n"]),
)
STEPS = st.lists(
    st.one_of(WORDS, WORDS, HAPPENINGS, st.sampled_from(SAME_SIZE)), min_size=2, max_size=6
)


@given(
    st.sampled_from((make_v1, make_v2)),
    st.sampled_from(("reviewing", "revising", "passed", "completed")),
    STEPS,
)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_appending_and_looking_by_what_was_kept_does_the_same_as_without(
    in_memory: Path, short: None, make: Callable[..., Path], upto: str, steps: list[Any]
) -> None:
    """The same bytes, the same words, whatever befell the files between two runs."""
    number = next(_names)
    folder, twin = in_memory / f"run{number}", in_memory / f"twin{number}"
    make(folder, upto)
    for step in steps:
        if not isinstance(step, Request):
            for each in step if isinstance(step, list) else [step]:
                with contextlib.suppress(OSError, ValueError, IndexError, KeyError, TypeError):
                    each.do(folder)
            step = Request("", THREE[0], "blocked", "After that.", reply_to=1)
        shutil.rmtree(twin, ignore_errors=True)
        shutil.copytree(folder, twin)
        with _nothing_kept():
            seen, said = [_seen(twin, again) for again in (False, True)], _said(twin, step)
        assert [_seen(folder, again) for again in (False, True)] == seen
        assert _said(folder, step) == said
        assert _state(folder) == _state(twin)


@given(STEPS)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_locked_log_says_what_one_derived_in_full_says(
    in_memory: Path, short: None, steps: list[Any]
) -> None:
    folder = make_v2(in_memory / f"locked{next(_names)}", "revising")
    for step in steps:
        if isinstance(step, Request):
            _said(folder, step)
        for each in step if isinstance(step, list) else [step]:
            if isinstance(each, Happening):
                with contextlib.suppress(OSError, ValueError, IndexError, KeyError, TypeError):
                    each.do(folder)
        with contextlib.suppress(Refused, LogError), locked(str(folder / "events.jsonl")) as log:
            full = open_locked(str(folder), log)
            quick = open_locked(str(folder), log, recall=True)
            assert (quick.lines, quick.size, quick.tail) == (full.lines, full.size, full.tail)
            assert (quick.next_seq, quick.full) == (full.next_seq, full.full)
            assert told(quick.history) == told(full.history)


def test_an_append_and_a_look_derive_only_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: None
) -> None:
    folder = make_v1(tmp_path / "run", "reviewing", rounds=200)
    request = Request(str(folder), THREE[1], "blocked", "Stop.", reply_to=1)
    append(request)
    read: list[int] = []
    take = History.read
    monkeypatch.setattr(
        History, "read", lambda self, block: (read.append(block.count), take(self, block))[1]
    )
    append(request._replace(summary="Stop now."))
    append(request._replace(summary="Stop at once.", key="k1"))
    for again in (False, True):
        found = Observation(str(folder), THREE[1], again=again)
        assert found.machine.phase == "blocked" and found.last and found.last.key == "k1"
    assert sum(read) == 4  # one line for each


def test_who_waits_by_what_was_kept_notices_what_happens_to_the_log(
    tmp_path: Path, short: None
) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
    _seen(folder, True)
    found = Observation(str(folder), THREE[1])
    append(Request(str(folder), THREE[1], "review_submitted", "Read.", reply_to=2))
    found.refresh()
    assert found.last and found.last.summary == "Read."
    log = folder / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"from":"reader"', b'"from":"server"') + b" \n")
    found.refresh()
    assert found.machine.illegal and found.broken


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


def test_validate_derives_everything_from_the_log(tmp_path: Path, short: None) -> None:
    """Also where what was kept lies, with every digest in order."""
    folder = make_v1(tmp_path / "run", "reviewing")
    _seen(folder, False)
    (path,) = (tmp_path / "cache" / "logs").iterdir()
    head, _, content = path.read_bytes().partition(b"\n")
    lie = content.replace(b'"reviewing"', b'"completed"')
    assert lie != content
    digest = checkpoint._sha256(lie).hexdigest().encode()
    path.write_bytes(head[:65] + digest + b"\n" + lie)
    path.chmod(0o600)
    assert Observation(str(folder), THREE[1]).machine.phase == "completed"  # it would be believed
    assert rules.validate(str(folder)).lines() == ["ACP validation passed"]


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
            for item in schema.parse_lines(data):
                known.feed([item])
        kept(rounds(50))
        recalled(rounds(60))
    finally:
        sys.setprofile(None)
    root = Path(acp_core.__file__).parent
    ours = {Path(name).resolve() for name in ran if Path(name).is_relative_to(root)}
    here = Path(checkpoint.__file__).parent
    counted = {(here / name).resolve() for name in checkpoint.DERIVED_BY}
    writers = {root / "files/atomic.py", root / "files/modes.py", root / "files/sync.py",
               root / "person/places.py"}  # fmt: skip
    assert ours - counted - writers == set()
    assert all(path.is_file() for path in counted)


# Writing it down


def test_what_cannot_be_kept_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: None
) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
    monkeypatch.setenv("ACP_CACHE", str(folder / "events.jsonl"))  # no folder can be made there
    request = Request(str(folder), THREE[1], "blocked", "Stop.", reply_to=1)
    assert append(request).warnings == ()
    assert _seen(folder, True) == _seen(folder, False)
    monkeypatch.setenv("ACP_CACHE", str(tmp_path / "cache"))
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
