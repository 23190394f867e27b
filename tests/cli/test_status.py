"""`acp status`: the fleet as a table, what needs a human on top."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.cli import output
from acp_core.cli.output import Terminal
from acp_core.cli.status import as_fields, render
from acp_core.fleet import overview
from acp_core.fleet.overview import FleetEntry, Seen
from acp_core.history.forecast import Forecast
from acp_core.model import Snapshot, Turn
from tests.cli.support import Acp
from tests.support import toy

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def see(snapshot: Snapshot) -> Seen:
    return Seen(snapshot.needs, 0, snapshot.name == "archived")


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[FleetEntry]:
    """Five conversations: one asks, one talks, one is over, one is broken, one archived."""
    monkeypatch.chdir(tmp_path)
    asks = toy.make(tmp_path / "front-door")
    toy.say(asks, "ann", "said", "Let us choose", ago(120))
    toy.say(asks, "ben", "asked", "Blue or green?", ago(19))
    talks = toy.make(tmp_path / "検索-index")
    toy.say(talks, "ann", "said", "Hello", ago(1))
    over = toy.make(tmp_path / "garden")
    toy.say(over, "ann", "done", "A hedge", ago(2000))
    broken = toy.make(tmp_path / "roof")
    toy.say(broken, "ann", "said", "Tiles", ago(3))
    (broken / toy.LOG).open("a").write("nonsense\n")
    toy.make(tmp_path / "archived")
    places = [asks, talks, over, broken, tmp_path / "archived"]
    snapshots = [toy.open_toy(str(place)).refresh(NOW) for place in places]
    return overview.arrange(snapshots, see, recent=True)


def test_the_table_at_100_columns(fleet: list[FleetEntry]) -> None:
    assert render(fleet, NOW, Terminal(width=100)) == [
        "state        collaboration  protocol  phase    progress    waiting for  since  findings",
        "! needs you  front-door     toy       talking  █████░░░░░  ben            19m  -",
        "    → ben asks: Blue or green? (19m): acp act front-door answer",
        "○ live       検索-index     toy       talking  █████░░░░░  -                -  -",
        "○ live       roof           toy       talking  █████░░░░░  -                -  1 error",
        "✓ done       garden         toy       done     ██████████  -                -  -",
        "",
        "1 needs you · 2 live · 1 done",
        "1 archived (use --all to list them)",
    ]


def test_the_table_at_60_columns_leaves_out_what_matters_least(fleet: list[FleetEntry]) -> None:
    lines = render(fleet, NOW, Terminal(width=60))
    titles = lines[0].split()
    assert titles == ["state", "collaboration", "phase", "waiting", "for", "since"]
    assert all(output.width(line) <= 60 for line in lines)


def test_at_80_columns_even_long_words_leave_room_for_findings(fleet: list[FleetEntry]) -> None:
    people = tuple(Turn(f"participant-{i}", "talk") for i in range(9))
    long = [
        replace(entry, snapshot=replace(entry.snapshot, turns=people), name="a-name-" * 9)
        for entry in fleet
    ]
    lines = render(long, NOW, Terminal(width=80))
    titles = "state        collaboration         phase    waiting for"
    assert lines[0].startswith(titles) and lines[0].endswith("since  findings")


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(fleet: list[FleetEntry], width: int) -> None:
    lines = render(fleet, NOW, Terminal(width=width), everything=True)
    assert all(output.width(line) <= width for line in lines)


def test_colour_only_repeats_what_signs_and_words_say(fleet: list[FleetEntry]) -> None:
    plain = render(fleet, NOW, Terminal(width=100))
    coloured = render(fleet, NOW, Terminal(width=100, colour=True))
    assert "\x1b[1;33m! needs you\x1b[0m" in coloured[1]
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in coloured] == plain


def test_a_later_round_is_said(fleet: list[FleetEntry]) -> None:
    entry = fleet[0]
    later = replace(entry, snapshot=replace(entry.snapshot, round=2))
    assert "talking, round 2" in render([later], NOW, Terminal())[1]


def test_json_has_every_collaboration(fleet: list[FleetEntry]) -> None:
    told = json.loads(json.dumps(as_fields(fleet, [], NOW, Forecast())))
    assert told["schema"] == "acp.status/1"
    assert told["at"] == "2026-01-02T12:00:00Z"
    assert told["counts"] == {
        "need": 1, "person": 0, "live": 2, "unknown": 0, "blocked": 0, "done": 1,
        "archived": 1, "parts": 0,
    }  # fmt: skip
    first = told["collaborations"][0]
    assert first["name"] == "front-door"
    assert first["waiting"] == [
        {"participant": "ben", "what": "wait for an answer", "since": "2026-01-02T11:41:00Z"}
    ]
    assert first["forecast"] == {
        "waiting": [{"participant": "ben", "usual": None}], "phase": None, "phase_ends": None,
    }  # fmt: skip
    assert first["needs"] == [
        {
            "key": "question:2",
            "code": "TOY_ASKED",
            "text": "ben asks: Blue or green?",
            "participant": "ben",
            "since": "2026-01-02T11:41:00Z",
            "action": "answer",
            "given": {},
            "acknowledged": False,
        }
    ]
    assert sorted(each["name"] for each in told["collaborations"] if each["archived"]) == [
        "archived"
    ]


# --- as a process --------------------------------------------------------------------------


def test_a_person_sees_what_needs_them(acp: Acp) -> None:
    folder = toy.make(acp.home / "runs" / "front-door")
    toy.say(folder, "ben", "asked", "Blue or green?")
    toy.make(acp.home / "runs" / "garden")
    ran = acp("status", "runs")
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert lines[1].startswith("! needs you  front-door")
    assert "acp act runs/front-door answer" in lines[2]
    assert lines[3] == "      you choose TEXT: add --help to see what is possible"
    assert lines[4].startswith("○ live       garden")
    assert lines[-1] == "1 needs you · 1 live · 0 done"


def test_without_a_path_it_looks_here_or_where_the_settings_say(acp: Acp) -> None:
    toy.make(acp.home / "here")
    assert "here" in acp("status").stdout
    toy.make(acp.home / "elsewhere" / "there")
    (acp.home / "config").mkdir()
    (acp.home / "config" / "config.toml").write_text(f'paths = ["{acp.home}/elsewhere"]\n')
    out = acp("status").stdout
    assert "there" in out and " here" not in out


def test_where_there_is_nothing_it_says_how_to_start(acp: Acp) -> None:
    ran = acp("status")
    assert ran.returncode == 0
    assert ran.stdout == "No collaborations here. To create one, see `acp new --help`.\n"


def test_a_path_that_cannot_be_read_is_exit_code_2_and_the_rest_is_shown(acp: Acp) -> None:
    toy.make(acp.home / "talk")
    ran = acp("status", ".", "nowhere")
    assert ran.returncode == 2
    assert ran.stderr == "error: nowhere: no such folder\n"
    assert "talk" in ran.stdout


def test_json_of_a_process_is_json_whatever_the_names_are(acp: Acp) -> None:
    toy.make(acp.home / "talk", name="a\x1b]52;c;aGk=\x07\u202eb", objective="x\u2028y")
    ran = acp("status", "--json")
    assert not {"\x1b", "\x07", "\u202e", "\u2028"} & set(ran.stdout)
    [only] = json.loads(ran.stdout)["collaborations"]
    assert only["key"] == str(acp.home / "talk")


def test_hostile_names_are_harmless_in_the_table(acp: Acp) -> None:
    toy.make(acp.home / "talk\x1b[2J", name="[@click=app.quit]x\x1b]0;owned\x07")
    ran = acp("status", env={"COLUMNS": "80"})
    assert "\x1b" not in ran.stdout and "\x07" not in ran.stdout
    assert "[@click=app" in ran.stdout and "owned" in ran.stdout


def test_views_are_the_same_as_on_the_screen(acp: Acp) -> None:
    for place in ("team-b/zebra", "team-a/ape", "team-a/bee"):
        toy.make(acp.home / "runs" / place)
    lines = acp("status", "runs", "--group", "folder", "--sort", "name").stdout.splitlines()
    assert lines[1].endswith("/runs/team-a") and lines[4].endswith("/runs/team-b")
    assert ["ape" in lines[2], "bee" in lines[3], "zebra" in lines[5]] == [True] * 3
    config = Path(acp.env["ACP_CONFIG"]) / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text('[fleet.views.mine]\nfilter = "zeb"\n')
    told = json.loads(acp("status", "runs", "--view", "mine", "--json").stdout)
    assert [each["name"] for each in told["collaborations"]] == ["zebra"]
    assert told["counts"]["live"] == 3, "the counts are of the fleet"
    ran = acp("status", "runs", "--view", "other")
    assert (ran.returncode, ran.stderr) == (
        2, "error: no view named 'other' in config.toml (saved: mine)\n"
    )  # fmt: skip
