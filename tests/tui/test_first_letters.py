"""Needs, causes and headlines begin alike wherever they are drawn, in every protocol."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from acp_core.cli import matters, show, status
from acp_core.cli.output import Terminal
from acp_core.fleet import Fleet, overview
from acp_core.model import Snapshot
from acp_core.model.clock import utc_now
from acp_core.person import notices
from acp_tui.screens.action import capitalize_sentence
from acp_tui.widgets import fleet_table, next_actions
from acp_tui.widgets.headline import Keys, headlines
from acp_tui.widgets.next_actions import need_item, notice_item
from acp_tui.widgets.pane import PaneData
from tests.golden.states import all_states
from tests.tui.support import KEY, make_snapshot

WIDE = 4_000
"""Cells of a row in which nothing is cut."""
FIRST = {
    "folder/torn-log",
    "folder/blocked",
    "folder/second-round",
    "governed/run-turn-staged",
    "governed/initiative-gate-open",
    "cycle/agent_failed",
    "cycle/completed_unproven",
    "workspaces/partial",
    "workspaces/conflicts_open",
    "wire/store-without-log",
}
"""The states of the default tests: of each protocol some."""
STATES = all_states()
_ROW = re.compile(r"\s*(?:\d+\.|[→!…⚠~?] )\s*(.+)")
_WORD = re.compile(r"[a-z]+(?:[',:;’]s?)?$")


def rows(lines: list[str]) -> Iterator[str]:
    """What stands behind the signs and numbers of rows."""
    for line in lines:
        match = _ROW.match(line)
        if match:
            yield match[1]


def drawn(snapshot: Snapshot, known: list[Snapshot]) -> Iterator[tuple[str, str]]:
    """Where a sentence stands by itself, and the sentence."""
    now, shown_on = utc_now(), Terminal()
    for number, need in enumerate(snapshot.needs):
        data = PaneData(snapshot, snapshot.needs, now, current=number)
        for row in rows([row.plain for row in headlines(data, WIDE, Keys(), str, 20).rows[1:]]):
            yield "headline", row
        yield "next", need_item(need, snapshot, now).pieces[1][0]
        yield "notice on the desktop", notices.message(snapshot, need).text()
    for row in headlines(PaneData(snapshot, (), now), WIDE, Keys(), str, 20).rows[1:]:
        yield from (("headline", each) for each in rows([row.plain]))
    for notice in snapshot.notices:
        yield "next", notice_item(notice, snapshot, now).pieces[1][0]
    names = [each.id for each in snapshot.participants]
    for item in next_actions.cause_items(snapshot.causes, now, True, names=names):
        if item.key.startswith("cause "):
            yield "why on the screen", item.pieces[2][0]
    entries = overview.arrange(known, lambda each: overview.Seen(each.needs, 0, False))
    for entry in entries:
        if entry.snapshot is snapshot and (detail := fleet_table.detail_line(entry)):
            yield "fleet", detail.text
    commands = {
        "acp status": [row for row in status.render(entries, now, shown_on) if "    → " in row],
        "acp why": matters.why_lines(snapshot, now, shown_on),
        "acp show": show._needs(show.View(now, shown_on, snapshot.needs), snapshot)
        + show._notices(snapshot, show.View(now, shown_on)),
    }
    for name, lines in commands.items():
        yield from ((name, each) for each in rows(lines) if not each.startswith("acp "))


def wrong(text: str, names: set[str]) -> bool:
    """Whether a sentence that stands by itself begins in lower case, and not with a name."""
    word = text.split(" ")[0]
    named = any(re.match(rf"{re.escape(name)}(?![\w-])", text) for name in names)
    return bool(_WORD.match(word)) and word not in ("acp", "git", "mkdir") and not named


def begins_again(headline: str, names: set[str]) -> list[str]:
    """What begins with a capital in the middle of a headline."""
    said = re.findall(r"(?: — |What to do: )([A-Z][a-z]+ .{0,40})", headline)
    return [each for each in said if each.split(" ")[0].rstrip(",:;") not in names]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in FIRST else pytest.mark.slow)
        for name in sorted(STATES)
    ],
)
def test_what_stands_by_itself_begins_with_a_capital(name: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    place = STATES[name].build(work)
    known = Fleet([place]).read() or Fleet([place], discover=False).read()
    assert known
    for snapshot in known:
        names = {each.id for one in known for each in one.participants}
        names |= {each.name for each in known}
        said = [*drawn(snapshot, known)]
        assert not [(where, text) for where, text in said if wrong(text, names)]
        assert not begins_again(snapshot.headline, names)


def test_the_states_of_the_default_tests_are_there() -> None:
    assert set(STATES) >= FIRST
    assert {name.partition("/")[0] for name in FIRST} == {name.partition("/")[0] for name in STATES}


REFUSALS = {
    "the collaboration has ended": "The collaboration has ended",
    "could not save the message: disk full": "Could not save the message: disk full",
    "reader has no running loop": "reader has no running loop",  # a participant
    "readers are missing": "Readers are missing",
    "dev has no agent; claude is not installed": "dev has no agent; claude is not installed",
    "claude is not installed": "claude is not installed",  # chosen in the form
    "seq 4: not allowed from phase completed": "seq 4: not allowed from phase completed",
    "config.toml: no such preset": "config.toml: no such preset",
    "checkout: no such folder": "checkout: no such folder",
    "acp needs the lock": "acp needs the lock",
    "“reader” is no participant": "“reader” is no participant",
    "": "",
}
"""Refusals as commands print them after "error: ", and as they stand in a form, on a card and in the corner."""


def test_refusals_begin_with_a_capital_where_they_stand_by_themselves() -> None:
    snapshot = make_snapshot()
    assert any(each.id == "reader" for each in snapshot.participants)
    app: Any = SimpleNamespace(fleet=SimpleNamespace(snapshots={KEY: snapshot}))
    values = {"roles": ["dev=claude"], "why": "the form says so", "jobs": 3}
    for sentence, shown in REFUSALS.items():
        assert capitalize_sentence(app, KEY, sentence, values) == shown
    assert capitalize_sentence(app, None, "the folder exists") == "The folder exists"
    assert capitalize_sentence(app, "/work/gone", "it is gone") == "It is gone"
