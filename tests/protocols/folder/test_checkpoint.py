"""Where a long log stood is kept between runs: what is known by it is what is derived in full."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core.files.journal import Lines, blocks
from acp_core.files.locked import LogError, locked
from acp_core.model.errors import Refused
from acp_core.protocols.folder.conduct.waiting import Observation
from acp_core.protocols.folder.read import checkpoint
from acp_core.protocols.folder.read.checkpoint import Checkpoint
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import V1, V2
from acp_core.protocols.folder.write.append import Request, append
from acp_core.protocols.folder.write.opened import open_locked
from tests.protocols.folder.checkpoints import PLACE, derived, kept, recalled, seen
from tests.protocols.folder.disorder import HAPPENINGS, Happening
from tests.protocols.folder.support import PEOPLE as THREE
from tests.protocols.folder.support import UPTO, make_v1, make_v2, say
from tests.protocols.folder.test_history import KINDS, PEOPLE, a_log, cut, rounds, told

pytestmark = pytest.mark.usefixtures("own_cache")
NOW = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
_names = itertools.count()


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
    for sender, event in itertools.product(THREE, records.EVENTS_V2):
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
    for line in (records.encode_event(fields), json.dumps(fields).encode() + b"\n"):
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
    event=st.sampled_from(records.EVENTS_V2),
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
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
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
            looks, said = [seen(twin, again) for again in (False, True)], _said(twin, step)
        assert [seen(folder, again) for again in (False, True)] == looks
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
    folder: Path, short: None
) -> None:
    seen(folder, True)
    found = Observation(str(folder), THREE[1])
    append(Request(str(folder), THREE[1], "review_submitted", "Read.", reply_to=2))
    found.refresh()
    assert found.last and found.last.summary == "Read."
    log = folder / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"from":"reader"', b'"from":"server"') + b" \n")
    found.refresh()
    assert found.machine.illegal and found.broken
