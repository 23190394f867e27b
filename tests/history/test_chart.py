"""Who did what when, as a picture: on the terminal, as SVG, and over a chain of collaborations."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.cli.output import fit
from acp_core.cli.output import width as cells
from acp_core.history import chart
from acp_core.history.chart import (
    NARROWEST,
    Bar,
    Chart,
    Handover,
    Lane,
    Level,
    Share,
    chart_lines,
    svg,
    ticks,
)
from tests.cli.support import Acp
from tests.history.test_metrics import NOW, RUN, folder_of, opened
from tests.loops.support import make

HOSTILE = "\x1b[31m<b>[red]"


def drawn_of(folder: Path) -> Chart:
    collaboration = opened(folder)
    drawn = chart.of_snapshot(collaboration.refresh(NOW), collaboration.story().turns, NOW)
    assert drawn is not None
    return drawn


def text_of(drawn: Chart, width: int) -> list[str]:
    rows = chart_lines(drawn, width, utc=True, fit=fit)
    return ["".join(text for text, _ in row) for row in rows]


def test_the_terminal_shows_phases_turns_and_who_handed_over_to_whom(
    acp: Acp, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, RUN)
    shown = acp("chart", str(folder), "--utc", env={"COLUMNS": "120"})
    assert shown.returncode == 0, shown.stderr
    rows = shown.stdout.splitlines()
    assert "╷12:00" in rows[0] and "╷12:15" in rows[0]
    phases = next(row for row in rows if row.startswith("phases"))
    assert "drafting" in phases and "revising" in phases
    names = [row.split()[0] for row in rows if row.strip()]
    assert names.index("server") < names.index("reader") < names.index("reviewer")
    below = rows[next(n for n, row in enumerate(rows) if row.startswith("server")) + 1]
    assert "▼" in below and "▲" in below  # handed over, and got back
    assert all(cells(row) <= 120 for row in rows)
    assert "\x1b" not in shown.stdout
    empty = make(tmp_path / "fresh")
    (empty / "events.jsonl").write_text("")
    refused = acp("chart", str(empty))
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1


def test_a_turn_that_lasts_points_on(tmp_path: Path) -> None:
    rows = text_of(drawn_of(folder_of(tmp_path, RUN[:3])), 100)
    reviewer = next(row for row in rows if row.startswith("reviewer"))
    assert reviewer.rstrip().endswith("→")
    assert not next(row for row in rows if row.startswith("reader")).rstrip().endswith("→")


def test_a_file_holds_the_same_as_svg(acp: Acp, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, RUN)
    file = tmp_path / "out.svg"
    assert acp("chart", str(folder), "-o", str(file), "--utc").returncode == 0
    root = ElementTree.fromstring(file.read_text())
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"phases", "server", "reader", "reviewer", "drafting", "12:00"} <= set(texts)
    assert any("of the lead time" in (text or "") for text in texts)
    nowhere = acp("chart", str(folder), "-o", str(tmp_path / "no" / "such" / "out.svg"))
    assert nowhere.returncode == 2 and nowhere.stderr.count("\n") == 1


_TIMES = st.integers(0, 10_000).map(lambda n: NOW + timedelta(seconds=n))
_BARS = st.builds(
    lambda start, length, label, kind, lasts: Bar(
        start, None if lasts else start + timedelta(seconds=length), label, kind
    ),
    _TIMES, st.integers(0, 5_000), st.sampled_from(["drafting", "", "審查", HOSTILE, "x" * 80]),
    st.sampled_from(["phase", "turn"]), st.booleans(),
)  # fmt: skip
_LEVELS = st.lists(st.tuples(_TIMES, st.integers(0, 99)), max_size=5).map(
    lambda points: Level("errors", tuple(sorted(points)), bad=True)
)


@given(
    st.lists(st.lists(_BARS, max_size=5), min_size=1, max_size=4),
    st.lists(st.tuples(_TIMES, st.integers(0, 3), st.integers(0, 3)), max_size=6),
    st.lists(_LEVELS, max_size=2),
    st.integers(1, 200),
)
def test_whatever_is_drawn_fits_and_breaks_nothing(
    bars: list[list[Bar]], given_over: list[tuple[datetime, int, int]], levels: list[Level],
    width: int,
) -> None:  # fmt: skip
    lanes = [Lane(f"lane {n}", tuple(each)) for n, each in enumerate(bars)]
    handovers = [Handover(at, a % len(lanes), b % len(lanes)) for at, a, b in given_over]
    made = chart.chart(lanes, handovers, NOW + timedelta(seconds=9_000))
    if made is None:
        assert not any(bars)
        return
    whole = Chart(made.start, made.end, made.lanes, made.handovers, 0, tuple(levels),
                  (Share("anybody", 0.5, "half"),))  # fmt: skip
    assert all(cells(row.rstrip()) <= max(NARROWEST, width) for row in text_of(whole, width))
    ElementTree.fromstring(svg(whole).replace("\x1b", ""))
    assert len(ticks(whole)) <= 8


def test_what_was_not_recorded_is_not_drawn() -> None:
    half = NOW + timedelta(hours=1)
    bar = Bar(NOW, NOW + timedelta(hours=2), "drafting", "phase")
    level = Level("errors", ((half, 2), (half + timedelta(minutes=30), 0)), bad=True)
    whole = Chart(bar.start, NOW + timedelta(hours=2), (Lane("phases", (bar,)),), levels=(level,))
    row = text_of(whole, 100)[-1]
    assert row.startswith("errors") and row.count("·") > 30 and "█" in row and row.endswith("0")
    assert level.at(NOW) is None and level.at(half) == 2


@pytest.fixture
def chain(tmp_path: Path, acp: Acp) -> tuple[Path, Path]:
    """A finished collaboration, and one that continues it."""
    first, second = folder_of(tmp_path / "first", RUN), tmp_path / "second"
    made = acp("continue", str(first), "--to", str(second))
    assert made.returncode == 0, made.stderr
    return first, second


def test_a_chain_is_one_story(acp: Acp, chain: tuple[Path, Path]) -> None:
    first, second = chain
    for named in (first, second):  # from whichever end one comes
        told = json.loads(acp("stats", str(named), "--chain", "--json").stdout)
        assert [each["name"] for each in told["collaborations"]] == [first.name, second.name]
    rows = acp("chart", str(second), "--chain", env={"COLUMNS": "120"}).stdout.splitlines()
    assert rows[1].startswith("collaboration") and rows[1].count("│") == 2
    story = acp("replay", str(second), "--chain", "--utc").stdout
    assert story.index(str(first.name)) < story.index("● server: completed")
    assert story.index("● server: completed") < story.rindex("● ")


def test_a_link_in_a_circle_ends(acp: Acp, chain: tuple[Path, Path]) -> None:
    first, second = chain
    protocol = json.loads((second / "protocol.json").read_text())
    protocol["continued_by"] = {"path": str(first)}
    (second / "protocol.json").write_text(json.dumps(protocol))
    told = json.loads(acp("stats", str(first), "--chain", "--json").stdout)
    assert len(told["collaborations"]) == 2


def test_counts_over_time_come_from_the_versions_of_documents(acp: Acp, tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    readiness = folder / "readiness.md"
    for words in (("unresolved", "blocking"), ("resolved", "blocking"), ("resolved", "resolved")):
        items = "".join(f"- [{word}] Item {n}.\n" for n, word in enumerate(words))
        readiness.write_text(f"# Readiness\n\n## Open Question Classification\n\n{items}")
        assert acp("record", "--once", str(folder)).returncode == 0
        time.sleep(0.02)
    found = json.loads(acp("stats", str(folder), "--json").stdout)["collaborations"][0]
    told = [(each["what"], each["count"]) for each in found["counts_over_time"]]
    assert [n for what, n in told if what == "readiness: blocking"][-2:] == [1, 0]
    assert [n for what, n in told if what == "readiness: resolved"][-2:] == [1, 2]
    shown = acp("stats", str(folder), "--utc").stdout
    assert "readiness: blocking 1 → 0" in shown


def test_of_very_many_bars_none_is_left_out() -> None:
    """A lane of thousands, beside one of a few: near ones are drawn as one, the axis is whole."""
    many = [Bar(NOW + timedelta(minutes=n), NOW + timedelta(minutes=n, seconds=40), "round")
            for n in range(15_000)]  # fmt: skip
    last = Bar(NOW + timedelta(minutes=14_999), None, "review")
    handovers = [Handover(bar.start, 0, 1) for bar in many]
    end = NOW + timedelta(minutes=15_100)
    drawn = chart.chart([Lane("phases", tuple(many)), Lane("ann", (many[0], last))], handovers, end)
    assert drawn is not None
    assert (drawn.start, drawn.end, drawn.omitted) == (NOW, end, 0)
    assert drawn.merged + sum(len(lane.bars) for lane in drawn.lanes) == 15_002
    assert sum(len(lane.bars) for lane in drawn.lanes) <= 2_100 and len(drawn.handovers) <= 2_100
    assert [bar.label for bar in drawn.lanes[1].bars] == ["round", "review"]
    assert drawn.lanes[1].bars[-1].end is None
    for bar in many:  # whatever happened lies below a bar of its lane
        assert any(
            each.start <= bar.start and (each.end or end) >= (bar.end or end)
            for each in drawn.lanes[0].bars
        )
    assert any("merged with neighbors" in row for row in text_of(drawn, 100))
