"""What a bridge says, taken over as data: whatever it is, it harms nobody."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.model import Event, Snapshot
from acp_core.protocols.folder.collaboration import open_folder
from acp_core.protocols.wire.read import elsewhere
from acp_core.protocols.wire.read.elsewhere import HELD_EVENTS, Mirror, Unfit
from tests.loops.support import make

KEY = "acp://far.example:7801/tok"


def told(tmp_path: Path) -> tuple[Snapshot, dict[str, Any]]:
    """A Snapshot of a new folder, and what a bridge says of it."""
    shown = open_folder(str(make(tmp_path / "run"))).refresh(datetime.now(UTC))
    return shown, elsewhere.snapshot_json(shown)


def test_what_a_bridge_tells_is_shown_as_the_folder_is(tmp_path: Path) -> None:
    shown, said = told(tmp_path)
    there = Mirror(KEY).take(said, {"append"})
    assert there.key == there.location == KEY
    for name in ("name", "phase", "turns", "participants", "headline", "gates", "status"):
        assert getattr(there, name) == getattr(shown, name), name
    stays = [replace(each, visits=tuple(each.visits)) for each in shown.phases]
    assert [replace(each, visits=tuple(each.visits)) for each in there.phases] == stays
    assert tuple(there.events) == tuple(shown.events)
    assert [each.id for each in there.documents] == [each.id for each in shown.documents]
    assert all(each.path is None for each in there.documents)


def test_events_come_once_and_begin_anew_where_the_log_is_another(tmp_path: Path) -> None:
    shown, said = told(tmp_path)
    mirror = Mirror(KEY)
    mirror.take(said)
    assert mirror.query == {"have": said["total"], "digest": said["digest"]}
    more = [*shown.events, Event(**{**shown.events[0]._asdict(), "id": "new"})]
    later = elsewhere.snapshot_json(replace(shown, events=more), **mirror.query)
    assert [each["id"] for each in later["events"]] == ["new"]
    assert [each.id for each in mirror.take(later).events] == [each.id for each in more]
    anew = elsewhere.snapshot_json(replace(shown, events=more[1:]), **mirror.query)
    assert [each.id for each in mirror.take(anew).events] == [each.id for each in more[1:]]


def test_hostile_words_paths_and_actions_are_made_harmless(tmp_path: Path) -> None:
    _, said = told(tmp_path)
    snapshot = said["snapshot"]
    snapshot["name"] = "\x1b[2J[red]evil\u202e" + "x" * 5000
    snapshot["headline"] = "two\nlines"
    snapshot["key"] = snapshot["location"] = "/etc"
    snapshot["parts"] = ["/etc", "/home"]
    snapshot["documents"][0]["path"] = "/etc/passwd"
    snapshot["lineage"] = [{"relation": "continues", "location": "/x", "name": "n", "found": True}]
    snapshot["needs"] = [
        {"key": "k", "code": "c", "text": "t", "action": "delete-everything"},
        {"key": "k", "code": "c", "text": "t", "action": "append"},
    ]
    snapshot["bogus"] = {"a": 1}
    said["events"][0]["summary"] = "\x9b31m\x07"
    said["events"][0]["bogus"] = 1
    there = Mirror(KEY).take(said, {"append"})
    assert "\x1b" not in there.name
    assert len(there.name) <= 1000
    assert "\n" not in there.headline
    assert (there.key, there.parts) == (KEY, ())
    assert there.documents[0].path is None
    assert not there.lineage[0].found
    assert [need.remedy for need in there.needs] == ["", "append"]
    assert "\x9b" not in there.events[0].summary


def paths_in(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:3])
    found = [here]
    for name, each in items:
        found += paths_in(each, (*here, name)) if isinstance(each, dict | list) else [(*here, name)]
    return found


junk = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just("\x1b]0;x\x07"),
    st.just([]), st.just({}), st.just([[[[]]]]), st.just({"a": {"b": [1]}}), st.just(10**400),
)  # fmt: skip


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return told(tmp_path_factory.mktemp("said"))[1]


@given(st.data())
def test_whatever_is_changed_in_it_it_is_taken_or_refused(
    said: dict[str, Any], data: st.DataObject
) -> None:
    answer = copy.deepcopy(said)
    for _ in range(data.draw(st.integers(1, 4))):
        *way, last = data.draw(st.sampled_from([p for p in paths_in(answer) if p]))
        place = answer
        for step in way:
            place = place[step]
        place[last] = copy.deepcopy(data.draw(junk))  # it may be changed itself next
    mirror = Mirror(KEY)
    try:
        there = mirror.take(answer)
    except Unfit as error:
        assert "\n" not in str(error)
        assert mirror.snapshot is None
    else:
        assert "\x1b" not in repr(there)
        assert there.key == KEY


def test_what_is_too_much_is_cut_or_refused(tmp_path: Path) -> None:
    _, said = told(tmp_path)
    mirror = Mirror(KEY)
    one = said["events"][0]
    said["events"] = [{**one, "id": str(n)} for n in range(HELD_EVENTS + 100)]
    said["total"] = HELD_EVENTS + 100
    assert len(mirror.take(said).events) == HELD_EVENTS
    said["events"] = [one] * (HELD_EVENTS * 2)
    with pytest.raises(Unfit):
        mirror.take(said)
    with pytest.raises(Unfit):
        mirror.text({"id": "a", "version": "1", "text": "x" * 2_000_000})
    assert mirror.text({"id": "a", "version": "1", "text": "a\x1b[2J\r\nb"}).text == "a␛[2J\nb"
