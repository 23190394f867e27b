"""A fleet in groups and orders of one's own: nothing is lost, parts stay below their wholes."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.fleet import overview
from acp_core.fleet.overview import FleetEntry, Seen, sections
from acp_core.model import Participant, Snapshot, Status, Turn
from acp_core.person.kinds import WrongValue
from acp_core.person.views import COLUMNS, GROUPS, SORTS, View, check, parse
from tests.fleet.test_overview import ago, need, snapshot


def fleet(last: datetime | None = None) -> list[FleetEntry]:
    """Six collaborations in two folders, one archived, one with a part in another folder."""

    def see(one: Snapshot) -> Seen:
        return Seen(one.needs, 0, one.name == "old", last)

    def waiting(minutes: float) -> tuple[Turn, ...]:
        return (Turn("bot", "write", ago(minutes)),)

    given: list[Snapshot] = [
        snapshot("beta", location="/a/beta", turns=waiting(5), changed=ago(5)),
        snapshot("alpha", location="/b/alpha", turns=waiting(50), changed=ago(50)),
        snapshot("stuck", location="/b/stuck", needs=(need("x", 7),), changed=ago(70)),
        snapshot("whole", location="/a/whole", parts=("/runs/part",), changed=ago(9)),
        snapshot("part", location="/c/part", changed=ago(1)),
        snapshot("over", Status.COMPLETED, location="/a/over", changed=ago(20), protocol="wire"),
        snapshot("old", Status.COMPLETED, location="/a/old", changed=ago(2)),
    ]
    return sorted(overview.arrange(given, see), key=lambda entry: entry.archived)


def listed(view: View, last: datetime | None = None) -> dict[str, list[str]]:
    return {each.title: [e.name for e in each.entries] for each in sections(fleet(last), view)}


def test_by_state_is_the_usual_view() -> None:
    assert listed(View()) == {
        "needs you": ["stuck"],
        "live": ["alpha", "beta", "whole", "part"],
        "done": ["over"],
        "archived": ["old"],
    }


def test_by_folder_what_needs_you_comes_first_in_each() -> None:
    assert listed(View(group="folder")) == {
        "/a": ["beta", "whole", "part", "over"],
        "/b": ["stuck", "alpha"],
        "archived": ["old"],
    }


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("name", ["alpha", "beta", "over", "stuck", "whole", "part"]),
        ("waiting", ["alpha", "stuck", "beta", "whole", "part", "over"]),
        ("last", ["beta", "whole", "part", "over", "alpha", "stuck"]),
        ("protocol", ["alpha", "beta", "stuck", "whole", "part", "over"]),
    ],
)
def test_without_groups_in_any_order(sort: str, names: list[str]) -> None:
    assert listed(View(group="none", sort=sort)) == {"": names, "archived": ["old"]}


def test_only_what_changed_since_the_last_visit() -> None:
    view = View(group="none", changed=True)
    assert listed(view, ago(10)) == {"": ["stuck", "beta", "whole", "part"], "archived": ["old"]}
    assert listed(view, ago(0)) == {}
    assert len(listed(view)[""]) == 6, "everything is new to whoever was never here"


@given(st.sampled_from(list(GROUPS)), st.sampled_from(list(SORTS)))
def test_no_view_loses_or_doubles_a_row_or_parts_what_belongs_together(
    group: str, sort: str
) -> None:
    found = [entry for each in sections(fleet(), View(group, sort)) for entry in each.entries]
    assert sorted(entry.key for entry in found) == sorted(entry.key for entry in fleet())
    names = [entry.name for entry in found]
    assert names.index("part") == names.index("whole") + 1
    assert names[-1] == "old", "what is archived comes last"


def test_a_person_s_wait_is_a_group_of_its_own() -> None:
    you = snapshot("you", participants=(Participant("me", "human"),), turns=(Turn("me", "decide"),))
    (section,) = sections(overview.arrange([you], lambda _: Seen((), 0, False)), View())
    assert section.title == "waiting for a person"


def test_saved_views_are_read_and_the_first_one_is_named() -> None:
    views = parse({"view": "x", "views": {"x": {"sort": "name", "columns": ["since"]}, "y": {}}})
    assert views.first == View(sort="name", columns=("since",)) and views.saved["y"] == View()
    assert parse({}).first == View()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"views": []}, ".views: a table of views"),
        ({"view": "x"}, ".view: the name of a saved view (none is saved)"),
        ({"vews": {}}, ".vews: one of view, views"),
        ({"views": {"x": 7}}, ".views.x: a table"),
        ({"views": {"x": {"sort": "age"}}}, f".views.x.sort: one of {', '.join(SORTS)}"),
        ({"views": {"x": {"group": []}}}, f".views.x.group: one of {', '.join(GROUPS)}"),
        ({"views": {"x": {"columns": ["age"]}}}, ".views.x.columns: a list of some of "
         + ", ".join(COLUMNS)),
        ({"views": {"x": {"changed": 1}}}, ".views.x.changed: true or false"),
        ({"views": {"x": {"colour": 1}}},
         ".views.x.colour: one of group, sort, columns, filter, changed"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_view_is_one_clear_line(table: dict[str, object], said: str) -> None:
    with pytest.raises(WrongValue) as error:
        check(table)
    assert str(error.value) == said
