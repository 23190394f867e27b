"""The report in one HTML file: it loads nothing, runs nothing of others, and its replay works."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from acp_core.history import chart
from acp_core.history.chart import WIDTH, across, svg
from acp_core.history.reports.html import phase_by, waited
from tests.cli.support import Acp
from tests.history.browser import Browser
from tests.history.test_metrics import NOW, RUN, folder_of, opened
from tests.loops.support import append, make

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
HOSTILE = (
    "</script></pre><script>alert(1)</script><img src=http://x.example/y onerror=alert(2)>&lt;"
)
RENDERED = HOSTILE.replace("&lt;", "<")  # in a document, which is Markdown
LOADING = ("src", "srcset", "href", "xlink:href", "data", "action", "poster", "background")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Page(HTMLParser):
    """What a browser would make of a page: its elements, and the text of each kind of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.inside: dict[str, str] = {}  # the text in each element that has an id
        self._open: list[str] = []
        self._ids: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br", "hr"):
            self._open.append(tag)
            self._ids.append(str(dict(attrs).get("id") or ""))
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self._ids.pop()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data
        for id in filter(None, self._ids):
            self.inside[id] = self.inside.get(id, "") + data

    def data(self) -> list[dict[str, Any]]:
        """The events of the replay."""
        told: list[dict[str, Any]] = json.loads(self.texts["script"][0])["events"]
        return told

    def documents(self) -> list[dict[str, Any]]:
        """The documents of the replay, with their versions."""
        told: list[dict[str, Any]] = json.loads(self.texts["script"][0])["documents"]
        return told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = folder_of(tmp_path, RUN)
    log = folder / "events.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines[1]["summary"] = HOSTILE
    lines[2]["summary"] = f"Use {SECRET}, or ask reader@example.org"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "proposal.md").write_text(
        f"# Proposal\n\nAuthorization: Bearer abcdefg\n\n{HOSTILE}\n"
    )
    return folder


def written(acp: Acp, folder: Path, *more: str) -> str:
    target = acp.home / "report.html"
    made = acp("report", str(folder), "-o", str(target), "--utc", *more)
    assert made.returncode == 0, made.stderr
    return target.read_text(encoding="utf-8")


def test_what_others_wrote_stays_text(acp: Acp, folder: Path) -> None:
    text = written(acp, folder)
    page = Page(text)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 2 and "img" not in tags
    assert [event["summary"] for event in page.data()][1] == HOSTILE
    assert any(RENDERED in text for text in page.texts["p"])
    assert HOSTILE in page.texts["td"]
    names = {name for _, attributes in page.elements for name in attributes}
    assert not any(name.startswith("on") for name in names)
    assert not names & set(LOADING)


def test_it_loads_nothing_and_runs_one_known_script(acp: Acp, folder: Path) -> None:
    text = written(acp, folder)
    page = Page(text)
    policy = next(
        attributes["content"] or ""
        for _, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    script = page.texts["script"][1]
    seen = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert rules["script-src"] == f"'sha256-{seen}'"
    styles = "".join(page.texts["style"])
    assert "url(" not in styles and "@import" not in styles
    assert not re.search(r"innerHTML|insertAdjacent|document\.write|eval|fetch|XMLHttp", script)
    assert {tag for tag, _ in page.elements}.isdisjoint({"link", "iframe", "object", "a", "base"})


def test_secrets_and_addresses_stay_here_unless_asked_for(acp: Acp, folder: Path) -> None:
    text = written(acp, folder)
    assert SECRET not in text and "abcdefg" not in text and "reader@example.org" not in text
    kept = written(acp, folder, "--no-redact")
    assert SECRET in kept and "reader@example.org" in kept


def test_without_a_script_everything_is_there(acp: Acp, folder: Path) -> None:
    page = Page(written(acp, folder))
    cells = page.texts["td"]
    assert "1 h 30 min" in " ".join(cells) and "2026-05-04 13:30:30 UTC" in cells
    replay = next(
        attributes for tag, attributes in page.elements if attributes.get("id") == "replay"
    )
    assert "hidden" in replay
    rows = [attributes for tag, attributes in page.elements if tag == "tr" and "id" in attributes]
    assert len(rows) == len(RUN)
    assert acp("report", str(folder), "--format", "html", "--utc").stdout.startswith(
        "<!DOCTYPE html>"
    )


def test_the_replay_knows_the_phase_and_who_was_waited_for(acp: Acp, folder: Path) -> None:
    events = Page(written(acp, folder)).data()
    assert events[0]["waited"] == ["server"]
    assert sorted(events[1]["waited"]) == ["reader", "reviewer"]
    assert events[2]["waited"] == ["reviewer"]
    assert events[-1]["waited"] == []
    assert events[1]["phase"] != events[-1]["phase"]
    places = [event["x"] for event in events]
    assert places == sorted(places)


def test_nothing_is_made_up_where_no_time_is_recorded(tmp_path: Path) -> None:
    collaboration = opened(folder_of(tmp_path, RUN))
    snapshot = collaboration.refresh(NOW)
    turns = collaboration.story().turns
    blank = [turn._replace(since=None, since_event=None) for turn in turns]
    assert waited(snapshot.events, blank) == [[] for _ in RUN]
    assert phase_by(snapshot.phases, None) == ""
    drawn = chart.of_snapshot(snapshot, blank, NOW)
    assert drawn is not None and drawn.omitted == len(turns) and drawn.handovers == ()


def test_the_chart_has_a_lane_for_each_and_the_handovers(tmp_path: Path) -> None:
    collaboration = opened(folder_of(tmp_path, RUN))
    snapshot = collaboration.refresh(NOW)
    drawn = chart.of_snapshot(snapshot, collaboration.story().turns, NOW)
    assert drawn is not None
    assert [lane.name for lane in drawn.lanes[:1]] == ["phases"]
    assert {lane.name for lane in drawn.lanes[1:]} == {"server", "reader", "reviewer"}
    assert (drawn.end - drawn.start).total_seconds() == 5_430  # it is over: not until now
    assert all(bar.end is not None for lane in drawn.lanes for bar in lane.bars)
    names = [lane.name for lane in drawn.lanes]
    given = {(names[each.giver], names[each.taker]) for each in drawn.handovers}
    assert ("server", "reader") in given and ("reviewer", "server") in given
    assert across(drawn, drawn.start) < across(drawn, NOW) <= WIDTH
    hostile = chart.chart([chart.Lane("<script>", drawn.lanes[1].bars)], (), NOW)
    assert hostile is not None and "<script" not in svg(hostile)
    assert chart.chart([chart.Lane("nobody", ())], (), NOW) is None


def test_the_replay_knows_what_a_document_held_at_an_event(acp: Acp, tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    proposal = folder / "proposal.md"
    proposal.write_text("# Proposal\n\nKeep it for seven days.\n")
    assert acp("record", "--once", str(folder)).returncode == 0
    append(folder, "server", "proposal_submitted", 1)
    time.sleep(0.02)  # the next version is newer than the event
    proposal.write_text(f"# Proposal\n\nKeep it for thirty days, {SECRET}. {HOSTILE}\n")
    assert acp("record", "--once", str(folder)).returncode == 0
    append(folder, "reader", "review_submitted", 2)
    text = written(acp, folder)
    page = Page(text)
    held = next(each for each in page.documents() if "proposal.md" in each["title"])
    first, *_, last = [each for each in held["versions"] if each["id"]]
    texts = [page.inside[each["id"]] for each in (first, last)]
    assert "seven days" in texts[0] and "recorded" in first["said"]
    assert "thirty days" in texts[1] and RENDERED in texts[1]
    assert "# Proposal" not in texts[1] and "Proposal" in page.texts["h3"]
    assert first["row"] < last["row"] == 2
    assert SECRET not in text and [tag for tag, _ in page.elements].count("script") == 2


def test_what_was_not_recorded_is_said(acp: Acp, folder: Path) -> None:
    written_at = NOW.replace(hour=13, minute=15).timestamp()
    os.utime(folder / "proposal.md", (written_at, written_at))
    page = Page(written(acp, folder))
    proposal = next(each for each in page.documents() if "proposal" in each["title"])
    early = proposal["versions"][0]
    assert (early["row"], early["id"], early["said"]) == (0, "", "not recorded")
    late = proposal["versions"][-1]
    assert late["row"] >= 9 and "by its file time" in late["said"]
    assert RENDERED in page.inside[late["id"]]


def installed() -> str:
    """A browser; without one, the test is skipped."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    return browser


@pytest.mark.slow
def test_on_a_phone_the_replay_goes_by_keys_and_nothing_sticks_out(
    acp: Acp, folder: Path, tmp_path: Path
) -> None:
    program = installed()
    written(acp, folder)
    url = (acp.home / "report.html").as_uri()
    with Browser(program, url, tmp_path / "browser", 390, 844) as page:
        assert page.value("document.documentElement.scrollWidth") == 390
        page.value("document.getElementById('replay-place').focus()")
        count = "document.getElementById('replay-count').textContent"
        page.press("Home")
        assert page.value(count) == f"1 of {len(RUN)}"
        page.press("ArrowRight")
        assert page.value(count) == f"2 of {len(RUN)}"
        assert page.value("document.getElementById('replay-said').textContent") == HOSTILE
        waited_for = page.value("document.getElementById('replay-waited').textContent")
        assert sorted(waited_for.split(", ")) == ["reader", "reviewer"]
        page.value("document.getElementById('replay-after').click()")
        assert page.value(count) == f"3 of {len(RUN)}"
        assert page.value("document.querySelector('tr.current').id") == "event-2"
        assert page.complaints() == []


@pytest.mark.slow
def test_its_script_runs_in_a_browser(acp: Acp, folder: Path, tmp_path: Path) -> None:
    browser = installed()
    written(acp, folder)
    page = acp.home / "report.html"
    ran = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
         f"--user-data-dir={tmp_path / 'browser'}", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    shown = Page(ran.stdout)
    assert shown.elements[0][1]["data-ready"] == "yes"
    by_id = {
        str(attributes["id"]): attributes for _, attributes in shown.elements if "id" in attributes
    }
    assert "hidden" not in by_id["replay"]
    assert f"{len(RUN)} of {len(RUN)}" in shown.texts["span"]
    assert "current" in str(by_id[f"event-{len(RUN) - 1}"]["class"])
    said = [line for line in ran.stderr.splitlines() if ":CONSOLE" in line]
    assert said == []
