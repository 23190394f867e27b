"""JSON of strangers becomes dataclasses, whatever stands in it, and what was odd is named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from acp_core.files.decode import Decoder, Odd, Scalar, key, whole

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "tasks", "owner", "name", "sizes", "n"]), inner)
    ),
    max_leaves=20,
)


@dataclass(frozen=True, slots=True)
class Owner:
    name: str = "nobody"
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Task:
    id: str = ""
    number: int | None = key("number", "iteration", default=None)
    needs: tuple[str, ...] = key("depends_on", default=())
    done: bool = False
    effort: float = 1.0
    lines: int = key("summary.lines", default=0)
    answered: bool = key("answered_at", default=False, read=bool)
    raw: dict[str, object] = whole()


@dataclass(frozen=True, slots=True)
class Plan:
    title: str = "untitled"
    owner: Owner = Owner()
    tasks: tuple[Task, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    extra: object = None
    settings: dict[str, Any] = field(default_factory=dict)


def test_what_is_there_has_its_type() -> None:
    odd: list[Odd] = []
    value = {
        "title": "Checkout",
        "owner": {"name": "ann", "since": "2026-03-01T12:00:00+02:00"},
        "tasks": [{"id": "T1", "number": 3, "depends_on": ["T0"], "done": True, "effort": 2}],
        "sizes": {"a": 1, "b": 2},
        "extra": [1, None],
        "settings": {"depth": 2, "on": [True]},
    }
    plan = Decoder().decode(Plan, value, odd)
    assert odd == []
    assert plan.owner == Owner("ann", datetime(2026, 3, 1, 10, tzinfo=UTC))
    (task,) = plan.tasks
    assert (task.id, task.number, task.needs, task.done, task.effort) == ("T1", 3, ("T0",), True, 2)
    assert (plan.sizes, plan.extra) == ({"a": 1, "b": 2}, [1, None])
    assert plan.settings == {"depth": 2, "on": [True]}


def test_what_is_missing_or_null_gets_its_default_and_is_not_odd() -> None:
    odd: list[Odd] = []
    nulls = {"title": None, "owner": None, "tasks": None, "sizes": None}
    assert Decoder().decode(Plan, nulls, odd) == Decoder().decode(Plan, {}, odd) == Plan()
    assert Decoder().decode(Plan, None, odd) == Plan()
    assert odd == []


def test_what_is_of_another_kind_gets_its_default_and_is_named_with_its_place() -> None:
    odd: list[Odd] = []
    value = {
        "title": 7,
        "owner": "ann",
        "tasks": [{"number": True, "done": "yes", "depends_on": ["a", 1]}, "T2"],
        "sizes": {"a": "big", "b": 2},
    }
    plan = Decoder().decode(Plan, value, odd)
    assert (plan.title, plan.owner, plan.sizes) == ("untitled", Owner(), {"b": 2})
    (task,) = plan.tasks
    assert (task.number, task.done, task.needs) == (None, False, ("a",))
    assert odd == [
        Odd("title", "a text", 7),
        Odd("owner", "an object", "ann"),
        Odd("tasks[0].number", "a whole number", True),
        Odd("tasks[0].depends_on[1]", "a text", 1),
        Odd("tasks[0].done", "true or false", "yes"),
        Odd("tasks[1]", "an object", "T2"),
        Odd("sizes.a", "a whole number", "big"),
    ]


def test_a_field_is_read_from_the_first_place_that_has_it() -> None:
    decoder = Decoder()
    assert decoder.decode(Task, {"iteration": 4}).number == 4
    assert decoder.decode(Task, {"number": 2, "iteration": 4}).number == 2
    assert decoder.decode(Task, {"number": "two", "iteration": 4}).number == 4
    assert decoder.decode(Task, {"summary": {"lines": 12}}).lines == 12
    assert decoder.decode(Task, {"summary": [12]}).lines == 0
    assert decoder.decode(Task, {"answered_at": "some day"}).answered is True


def test_what_no_field_names_can_be_written_back() -> None:
    entry = {"id": "T1", "x-note": "mine"}
    task = Decoder().decode(Task, entry)
    assert task.raw is entry


def test_a_protocol_has_scalars_of_its_own() -> None:
    lenient = Decoder({str: Scalar("a text", lambda value: str(value) if value else None)}, most=2)
    assert lenient.decode(Task, {"id": 7, "depends_on": [1, 2, 3]}).needs == ("1", "2")


@given(JSON)
def test_nothing_raises_and_every_value_is_of_its_kind(value: object) -> None:
    odd: list[Odd] = []
    plan = Decoder().decode(Plan, value, odd)
    assert isinstance(plan.title, str) and isinstance(plan.owner.name, str)
    for task in plan.tasks:
        assert isinstance(task.id, str) and type(task.number) in (int, type(None))
        assert isinstance(task.effort, float) and abs(task.effort) < float("inf")
    assert all(type(size) is int for size in plan.sizes.values())
    assert odd or value is None or isinstance(value, dict)


def test_a_number_that_is_too_large_for_one_is_odd() -> None:
    odd: list[Odd] = []
    assert Decoder().decode(Task, {"effort": 10**400}, odd).effort == 1.0
    assert [each.expected for each in odd] == ["a number"]


def test_it_is_light() -> None:
    script = "import sys, acp_core.files.decode; print('pydantic' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "False", done.stderr
