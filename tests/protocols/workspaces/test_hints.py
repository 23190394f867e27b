"""Where outputs may contradict each other: the hints that are given, and what gives none."""

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
    outputs = conflict_hints.outputs(found, ["ann", "ben"])
    return conflict_hints.hints(outputs, conflict_hints.built_on(found))


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
        # Under the same heading, and where only one has headings.
        (("output.md", "## Cost\n- Price: 10"), ("output.md", "### *Cost*\n- Price: 12"),
         [("factual", "price")]),
        (("output.md", "## Cost\n- Price: 10"), ("output.md", "- Price: 12"),
         [("factual", "price")]),
        (("output.md", "## Kafka\n- Price: 10\n## Nats\n- Price: 1"),
         ("output.md", "## Kafka\n- Price: 12\n## Nats\n- Price: 1"),
         [("factual", "kafka: price")]),
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
        # Headings are no statements, in whatever language.
        (("output.md", "# Ann\n\n## Kosten\n"), ("output.md", "# Ben\n\n## Kosten\n")),
        # The same value, told in another form.
        (("output.json", {"price": 10}), ("output.md", "- Price: 10")),
        # The same key of other things.
        (("output.md", "## Kafka\n- Price: 10"), ("output.md", "## Nats\n- Price: 12")),
        # A key that one of them has several times says nothing that can be compared.
        (("output.md", "- Price: 10\n- Price: 11"), ("output.md", "- Price: 12")),
        (("table.csv", "a"), ("table.csv", "a")),
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


def items(root: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((root / BASE / ".coord/conflicts.json").read_text())[
        "conflicts"
    ]
    return found


def open_ones(root: Path) -> list[str]:
    return [
        f"{'-'.join(each['agents'])} {each['topic']}"
        for each in items(root)
        if not each.get("sentence") and not each.get("dismissed")
    ]


def prices(root: Path, **said: object) -> None:
    """Agents that succeeded, each with its price."""
    for name, price in said.items():
        agent(root, name)
        text = f"# {name}\n\n## Cost\n\n- Price: {price}\n"
        write(root, f"{BASE}/{name}/output.md", text)


def test_all_who_differ_on_a_topic_are_one_hint_which_is_settled_in_one_go(
    tmp_path: Path,
) -> None:
    prices(tmp_path, ann=10, ben=10, cat=12)
    assert acp("compare", tmp_path).text == ("Compare the outputs: 1 new hint, 1 recorded.\n")
    assert open_ones(tmp_path) == ["ann-ben-cat price"]
    assert items(tmp_path)[0]["why"] == "price: ann “10”, ben “10”, cat “12”"
    resolved = acp("resolve", tmp_path, "c1", "--because", "sourced", "--keep", "cat")
    assert resolved.text == (
        "Conflict between ann, ben and cat on price. "
        "Resolved by the factual rule, the more sourced version, that of cat.\n"
    )
    assert open_ones(tmp_path) == []
    assert acp("compare", tmp_path).text.startswith("Compare the outputs: 0 new hints, 1 recorded")
    codes = {finding.code for finding in read(tmp_path).findings}
    assert not codes & {"B65", "B66"}


def test_a_hint_holds_nothing_up_and_is_told_of_in_the_end(tmp_path: Path) -> None:
    prices(tmp_path, ann=10, ben=12)
    assert acp("compare", tmp_path).code == 0
    assert acp("conflicts", tmp_path).code == 0  # nothing must be decided
    assert "(1 hint unresolved): ready to synthesise" in str(read(tmp_path).needs)
    assert acp("draft", tmp_path).code == 0
    draft = (tmp_path / BASE / ".coord/draft/final-output.md").read_text()
    hint = "ann and ben may contradict each other on price: ann “10”, ben “12”"
    assert f"## Unresolved\n\n- {hint}\n" in draft
    finished = acp("finish", tmp_path)
    assert finished.code == 0
    assert f"unresolved: {hint}" in finished.text
    status = json.loads((tmp_path / "integration/status.json").read_text())
    assert status["not_settled"] == [hint]


def test_a_conflict_that_a_person_records_must_be_resolved(tmp_path: Path) -> None:
    prices(tmp_path, ann=10, ben=12)
    assert acp("compare", tmp_path).code == 0
    words = ("dispute", tmp_path, "price", "--between", "ben,ann", "--category", "factual")
    assert acp(*words).code == 0  # the hint becomes a conflict
    assert "already recorded" in acp(*words).text
    assert [each["hint"] for each in items(tmp_path)] == [False]
    refused = acp("draft", tmp_path)
    assert refused.code == 2
    assert "unresolved conflicts: c1" in refused.text
    assert acp("conflicts", tmp_path).code == 1
    assert acp("resolve", tmp_path, "c1", "--keep", "ann", "--because", "sourced").code == 0
    assert acp("draft", tmp_path).code == 0


def test_a_hint_that_is_no_longer_true_goes(tmp_path: Path) -> None:
    prices(tmp_path, ann=10, ben=12)
    assert acp("compare", tmp_path).code == 0
    prices(tmp_path, ann=10, ben=10)
    assert acp("compare", tmp_path).code == 0
    assert items(tmp_path) == []


def test_nobody_contradicts_what_it_was_told_to_work_on(tmp_path: Path) -> None:
    """Cat writes up ann and ben; dan writes up cat; eve works alone."""
    prices(tmp_path, ann=10, ben=12, cat=12, dan=11, eve=13)
    read_first = {"cat": ["ann", "ben"], "dan": ["cat"]}
    agents = [
        {"agent": name, "task": "x", "task_id": f"{name}-part", "after": read_first.get(name, [])}
        for name in ("ann", "ben", "cat", "dan", "eve")
    ]
    write(tmp_path, f"{BASE}/.coord/manifest.json", {"agents": agents})
    assert acp("compare", tmp_path).code == 0
    assert open_ones(tmp_path) == ["ann-ben-cat-dan-eve price"]  # all of them differ from eve
    prices(tmp_path, eve=12)
    assert acp("compare", tmp_path).code == 0
    (hint,) = items(tmp_path)
    assert "eve" in hint["agents"]
    (tmp_path / BASE / "eve/output.md").write_text("# Nothing\n")
    prices(tmp_path, ben=10)
    assert acp("compare", tmp_path).code == 0
    assert items(tmp_path) == []


def test_inputs_that_only_a_prompt_declares_count(tmp_path: Path) -> None:
    prices(tmp_path, ann=10, ben=12)
    path = tmp_path / "prompts/ben-part.md"
    listed = f"INPUTS:\n- {ORIGIN}/{BASE}/ann/output.md (required)"
    path.write_text(path.read_text().replace("INPUTS:", listed))
    assert acp("compare", tmp_path).code == 0
    assert items(tmp_path) == []


def test_the_hints_that_an_earlier_version_wrote_down_hold_nothing_up(tmp_path: Path) -> None:
    prices(tmp_path, ann=10, ben=10)
    item = {"id": "c1", "agents": ["ann", "ben"], "topic": "Cost", "category": "coverage"}
    value = {"looked_at": "2026-03-01T11:00:00Z", "conflicts": [item | {"found_by": "acp"}]}
    write(tmp_path, f"{BASE}/.coord/conflicts.json", value)
    assert acp("draft", tmp_path).code == 0


def test_a_version_is_kept_only_where_its_agent_has_a_part(tmp_path: Path) -> None:
    prices(tmp_path, ann=1, ben=1, cat=1)
    for pair in ("ann,ben", "ben,cat"):
        words = ("dispute", tmp_path, "Cost", "--between", pair, "--category", "coverage")
        assert acp(*words).code == 0
    assert acp("conflicts", tmp_path, "--resolve", "c1", "--keep", "ann", "--alike").code == 0
    assert open_ones(tmp_path) == ["ben-cat Cost"]
    one = acp("conflicts", tmp_path, "--dismiss", "c2", "--reason", "the same", "--alike")
    assert one.text == "Dismiss c2: the same\n"


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
