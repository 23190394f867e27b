"""Where the events of a growing log end: as a fresh reading says, and read only once."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core.files.reading import Unreadable
from acp_core.history.past import event_ends
from acp_core.history.store import GrowingLog, LineEnds

_numbers = itertools.count()
CHANGE = st.one_of(
    st.tuples(st.just("append"), st.sampled_from([b"one\n", b"\n", b"  \n", b"two", b"\ntwo\n"])),
    st.tuples(st.just("cut"), st.integers(0, 12)),
    st.tuples(st.just("replace"), st.sampled_from([b"", b"new\n", b"an other log\nof two\n"])),
)


class Numbered(tuple[Any, ...]):
    """Events that know their lines, each of which is one."""

    def line_of(self, index: int) -> int:
        return index + 1


def changed(log: Path, change: tuple[str, Any]) -> None:
    kind, value = change
    before = log.read_bytes()
    if kind == "append":
        log.write_bytes(before + value)
    elif kind == "cut":
        log.write_bytes(before[: max(0, len(before) - value)])
    else:
        other = log.with_name("other")
        other.write_bytes(value)
        other.replace(log)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=st.lists(CHANGE, max_size=10), knows_lines=st.booleans())
def test_a_log_that_was_followed_says_what_a_fresh_reading_says(
    tmp_path: Path, changes: list[tuple[str, Any]], knows_lines: bool
) -> None:
    log = tmp_path / f"log{next(_numbers)}"
    log.write_bytes(b"first\n")
    followed = GrowingLog(log)
    for change in changes:
        changed(log, change)
        followed.read()
        data = log.read_bytes()
        lines = data.splitlines()
        events: Any = Numbered(lines) if knows_lines else [each for each in lines if each.strip()]
        found = [followed.end_of(events, number) for number in range(len(events))]
        assert found == event_ends(events, data)


def test_what_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    add = LineEnds.add

    def counted(self: LineEnds, data: bytes) -> None:
        taken.append(len(data))
        add(self, data)

    monkeypatch.setattr(LineEnds, "add", counted)
    log = tmp_path / "log"
    log.write_bytes(b"a line\n" * 1_000)
    followed = GrowingLog(log)
    followed.read()
    with log.open("ab") as file:
        file.write(b"one more\n")
    followed.read()
    assert taken == [7_000, 9]


def test_a_log_that_is_missing_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        GrowingLog(tmp_path / "none").read()
