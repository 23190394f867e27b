"""Where outputs may contradict each other: the three hints that are given, and what gives none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acp_core.model import Tone
from acp_core.protocols.workspaces.read import conflict_hints, scan
from tests.protocols.workspaces.making import (
    NOW,
    ORIGIN,
    agent,
    read,
    returned,
    run,
    states,
    status,
    write,
)
from tests.protocols.workspaces.running import acp

BASE = "agent-workspaces"


def told(root: Path, first: tuple[str, object], second: tuple[str, object]) -> list[Any]:
    """The hints on an output of ann and one of ben, each a name with its content."""
    run(root)
    for who, (name, content) in (("ann", first), ("ben", second)):
        said = content if isinstance(content, str) else json.dumps(content)
        write(root, f"{BASE}/{who}/{name}", said)
        write(root, f"{BASE}/{who}/status.json", status(who, file=name), 3599)
    found = scan.scan(root, scan.listed(root), NOW)
    return conflict_hints.hints(conflict_hints.outputs(found, ["ann", "ben"]))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # The same key with another value: somebody is wrong.
        (("output.md", "- Price: 10"), ("output.md", "- price: 12."), [("factual", "price")]),
        (("output.md", "1. **Price:** 10"), ("output.md", "**Price**: 12"), [("factual", "price")]),
        (("output.md", "| Price | 10 |\n|---|---|"), ("output.md", "- Price: 12"),
         [("factual", "price")]),
        (("output.json", {"cost": {"price": 10}}), ("output.json", {"cost": {"price": 12}}),
         [("factual", "cost.price")]),
        (("output.json", {"tools": ["a", "b"]}), ("output.json", {"tools": ["a"]}),
         [("factual", "tools")]),
        # The same key with the same value, told in another form.
        (("output.json", {"price": 10}), ("output.md", "- Price: 10"), [("format", "price")]),
        # The same heading: both covered it.
        (("output.md", "# Ann\n\n## Cost of it\n"), ("output.md", "# Ben\n\n### *Cost* of it\n"),
         [("coverage", "*Cost* of it")]),
        # The same file, whether it can be read as text or not.
        (("table.csv", "a"), ("table.csv", "b"), [("coverage", "table.csv")]),
        (("plot.md", "\0\0"), ("plot.md", "\0"), [("coverage", "plot.md")]),
    ],
)  # fmt: skip
def test_what_may_contradict_is_told(
    tmp_path: Path, first: tuple[str, object], second: tuple[str, object], expected: list[Any]
) -> None:
    found = told(tmp_path, first, second)
    assert [(each.category, each.topic) for each in found] == expected
    assert all(each.agents == ("ann", "ben") and each.why for each in found)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("output.md", "- Price: **10**."), ("output.md", "- price: 10")),
        (("output.md", "# Report\n\n## Summary\n"), ("output.md", "# Report\n\n## Summary\n")),
        (("output.md", "Note: one"), ("output.md", "Note: two")),  # prose
        (("output.md", "|---|---|\n| a | b | c |"), ("output.md", "|---|:--|\n| a | c | b |")),
        (("output.json", {"rows": [{"a": 1}]}), ("output.json", {"rows": [{"a": 2}]})),
        (("output.json", "[1, 2"), ("output.json", "{" * 9000)),
        (("a.csv", "1"), ("b.csv", "2")),
    ],
)
def test_what_does_not_is_let_be(
    tmp_path: Path, first: tuple[str, object], second: tuple[str, object]
) -> None:
    assert told(tmp_path, first, second) == []


def deliverables(root: Path) -> list[str]:
    return [each.id for each in read(root).documents if each.group == "deliverable"]


def test_outputs_that_no_status_lists_are_found(tmp_path: Path) -> None:
    """First those that were returned, then those of the usual names; of reruns the newest."""
    run(tmp_path)
    bare = {key: value for key, value in status("ann").items() if key != "outputs"}
    write(tmp_path, f"{BASE}/ann/status.json", bare, 3599)
    write(tmp_path, f"{BASE}/ann/report.md", "# Report\n")
    (tmp_path / BASE / "ann/output.md").unlink()
    files = [f"{ORIGIN}/{BASE}/ann/{name}" for name in ("report.md", "status.json")]
    write(tmp_path, "returns/ann-part.json", returned("ann", files_written=files))
    assert f"{BASE}/ann/report.md" in deliverables(tmp_path)
    (tmp_path / "returns/ann-part.json").unlink()
    assert f"{BASE}/ann/report.md" not in deliverables(tmp_path)
    for name in ("ann-output-20260301-0900.md", "ann-output-20260301-1000.md"):
        write(tmp_path, f"{BASE}/ann/{name}", "# Report\n")
    assert deliverables(tmp_path)[:1] == [f"{BASE}/ann/ann-output-20260301-1000.md"]
    assert acp("conflicts", tmp_path, "--find").code == 0
    assert acp("integrate", tmp_path, "--draft").code == 0
    draft = (tmp_path / BASE / ".coord/draft/final-output.md").read_text()
    assert f"{tmp_path}/{BASE}/ann/ann-output-20260301-1000.md" in draft


def test_what_an_accepted_partial_lacks_holds_nobody_up(tmp_path: Path) -> None:
    run(tmp_path)
    listed = status("ann")["outputs"]
    lacking = [*listed, {**listed[0], "file": f"{ORIGIN}/{BASE}/ann/rest.md"}]
    write(tmp_path, f"{BASE}/ann/status.json", status("ann", "partial", outputs=lacking), 3599)
    write(tmp_path, "returns/ann-part.json", returned("ann", "partial"))
    assert states(tmp_path)["ann"] == "partial"
    assert acp("triage", tmp_path, "ann", "accept", "--reason", "enough").code == 0
    assert acp("conflicts", tmp_path, "--find").code == 0
    assert acp("integrate", tmp_path, "--draft").code == 0


def open_ones(root: Path) -> list[str]:
    items = json.loads((root / BASE / ".coord/conflicts.json").read_text())["conflicts"]
    return [
        f"{'-'.join(each['agents'])} {each['topic']}"
        for each in items
        if not each.get("sentence") and not each.get("dismissed")
    ]


def test_conflicts_on_one_topic_are_settled_in_one_go(tmp_path: Path) -> None:
    for name, price in (("ann", 10), ("ben", 10), ("cat", 12)):
        agent(tmp_path, name)
        write(tmp_path, f"{BASE}/{name}/output.md", f"# {name}\n\n## Cost\n\n- Price: {price}\n")
    assert acp("conflicts", tmp_path, "--find").code == 0
    assert len(open_ones(tmp_path)) == 5
    words = ("conflicts", tmp_path, "--resolve", "c1", "--because", "sourced", "--alike")
    resolved = acp(*words, "--keep", "cat")
    rule = "the factual rule, the more sourced version, that of cat"
    assert resolved.text == (
        f"2 conflicts on price. Resolved by {rule}.\n"
        f"  · Conflict between ann and cat on price. Resolved by {rule}.\n"
        f"  · Conflict between ben and cat on price. Resolved by {rule}.\n"
    )
    assert open_ones(tmp_path) == ["ann-ben Cost", "ann-cat Cost", "ben-cat Cost"]
    one = acp("conflicts", tmp_path, "--dismiss", "c3", "--reason", "the same", "--alike")
    assert one.text == "Dismiss c3, c4, c5: the same\n"
    assert open_ones(tmp_path) == []


def test_a_version_is_kept_only_where_its_agent_has_a_part(tmp_path: Path) -> None:
    for name in ("ann", "ben", "cat"):
        agent(tmp_path, name)
        write(tmp_path, f"{BASE}/{name}/output.md", "# x\n\n## Cost\n")
    assert acp("conflicts", tmp_path, "--find").code == 0
    assert acp("conflicts", tmp_path, "--resolve", "c1", "--keep", "ann", "--alike").code == 0
    assert open_ones(tmp_path) == ["ben-cat Cost"]


def test_two_outputs_stand_side_by_side(tmp_path: Path) -> None:
    for name, text in (
        ("ann", "# Costs\n\nThe queue is cheap.\n\nEnd.\n"),
        ("ben", "# Costs\n\nThe queue is dear.\n\n\x1b[2JEnd.\n"),
        ("cat", "# Else\n"),
    ):
        agent(tmp_path, name)
        write(tmp_path, f"{BASE}/{name}/output.md", text)
    panel = next(each for each in read(tmp_path).panels if each.id == "texts")
    assert panel.columns == ("", "ann", "ben")
    assert [(*row.cells, row.tone is Tone.OTHER) for row in panel.rows] == [
        ("1", "# Costs", "# Costs", True),
        ("2", "The queue is cheap.", "The queue is dear.", False),
        ("3", "End.", "␛[2JEnd.", False),
    ]
    assert (
        acp(
            "conflicts", tmp_path, "--add", "kind", "--between", "ben,cat", "--category", "format"
        ).code
        == 0
    )
    panel = next(each for each in read(tmp_path).panels if each.id == "texts")
    assert panel.columns == ("", "ben", "cat")
