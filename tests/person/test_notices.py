"""Being told that something needs a human: what, once, in which hours and in which ways."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import time, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from acp_core.model import Matter, Snapshot, Status
from acp_core.model.matter import Kind, decision
from acp_core.person import notices
from acp_core.person.notices import Message, News, is_quiet
from acp_core.person.settings import SettingsError, load
from tests.tui.support import NOW, make_snapshot

NEED = decision("B7 reader", "B7", "the program ended without a review", "reader", NOW, "relaunch")
STUCK = Message(
    "stuck", "checkout", "/w/checkout", "reader", "-x <b>it</b> ended; $(rm)", "relaunch"
)


def seen(news: News, snapshot: Snapshot, *needs: Matter, seconds: float = 0) -> list[Message]:
    later = NOW + timedelta(seconds=seconds)
    return news.update(later, [(snapshot, needs)], complete=True)


def test_what_is_there_at_the_start_is_no_news_and_each_need_is_told_once() -> None:
    news, snapshot = News(), make_snapshot()
    assert seen(news, snapshot, NEED) == []
    other = NEED._replace(key="E1", sentence="a person is asked")
    (told,) = seen(news, snapshot, NEED, other)
    assert (told.kind, told.reason) == ("need", "a person is asked")
    assert seen(news, snapshot, NEED, other) == []
    assert seen(news, snapshot, NEED) == []
    assert seen(news, snapshot, NEED, other, seconds=5) == []  # it only flickered
    assert seen(news, snapshot, NEED, seconds=6) == []
    assert len(seen(news, snapshot, NEED, other, seconds=120)) == 1


def test_the_kind_says_whether_it_is_stuck_blocked_or_over() -> None:
    news, snapshot = News(), make_snapshot()
    seen(news, snapshot)
    (stuck,) = seen(news, snapshot, NEED._replace(kind=Kind.STALLED))
    assert stuck.kind == "stuck"
    assert stuck.title == "acp: checkout-redesign needs you"
    assert stuck.text("f") == "reader: the program ended without a review (press f: relaunch)"
    asked = NEED._replace(key="block")
    (blocked,) = seen(news, replace(snapshot, status=Status.BLOCKED), asked)
    assert blocked.kind == "blocked"
    over = replace(snapshot, status=Status.COMPLETED, headline="Completed.")
    assert [each.kind for each in seen(news, over)] == ["completed"]
    assert seen(news, over) == []


def test_quiet_hours_may_span_midnight() -> None:
    assert is_quiet("22:00-07:00", time(23, 5)) and is_quiet("22:00-07:00", time(6, 59))
    assert not is_quiet("22:00-07:00", time(7, 0)) and not is_quiet("", time(3))
    assert is_quiet("12:00-13:00", time(12)) and not is_quiet("12:00-13:00", time(13))


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins on the PATH that write their arguments and their input down."""
    programs = tmp_path / "bin"
    programs.mkdir()
    code = (
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"told = {{'argv': sys.argv, 'stdin': sys.stdin.read()}}\n"
        f"open({str(tmp_path)!r} + '/' + os.path.basename(sys.argv[0]), 'w').write(json.dumps(told))\n"
    )
    for name in ("notify-send", "osascript", "mine"):
        (programs / name).write_text(code)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def recorded(folder: Path, name: str) -> tuple[list[str], str]:
    told = json.loads((folder / name).read_text())
    return told["argv"][1:], told["stdin"]


def test_the_desktop_is_told_without_markup_or_options(
    recorder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr(sys, "platform", "linux")
    assert notices.tell(STUCK, notices.Ways(), "f") == []
    words, _ = recorded(recorder, "notify-send")
    text = "reader: -x &lt;b&gt;it&lt;/b&gt; ended; $(rm) (press f: relaunch)"
    assert words == ["--app-name=acp", "--", "acp: checkout needs you", text]

    monkeypatch.setattr(sys, "platform", "darwin")
    assert notices.tell(STUCK, notices.Ways(), "f") == []
    words, _ = recorded(recorder, "osascript")
    assert words[-2:] == ["acp: checkout needs you", STUCK.text("f")]
    assert not any("checkout" in word or "reader" in word for word in words[:-2])


def test_no_desktop_is_told_where_there_is_none(
    recorder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert notices.tell(STUCK, notices.Ways(), "f") == []
    monkeypatch.setenv("DISPLAY", ":99")
    assert notices.tell(STUCK, notices.Ways(desktop=False), "f") == []
    assert notices.tell(STUCK, notices.Ways(), "f", desktop=False) == []
    assert not (recorder / "notify-send").exists()


def test_a_command_of_ones_own_gets_everything_and_no_text_is_an_option(recorder: Path) -> None:
    chosen = ("mine", "--to=me", "{reason}", "{collaboration}: {participant} {key}", "{other}")
    assert notices.tell(STUCK, notices.Ways(desktop=False, command=chosen), "f") == []
    words, told = recorded(recorder, "mine")
    assert words == ["--to=me", f" {STUCK.reason}", "checkout: reader f", "{other}"]
    facts = json.loads(told)
    assert facts["schema"] == "acp.notice/1"
    assert facts["reason"] == STUCK.reason and facts["kind"] == "stuck"


def test_a_command_that_fails_is_said() -> None:
    missing = notices.Ways(desktop=False, command=("no-such-program",))
    assert notices.tell(STUCK, missing, "f") == [
        "notify.command: no-such-program: No such file or directory"
    ]
    failing = notices.Ways(desktop=False, command=(sys.executable, "-c", "exit(3)"))
    (problem,) = notices.tell(STUCK, failing, "f")
    assert problem.endswith("ended with exit code 3")


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A web server of one's own, and what it was told."""
    told: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500 if self.path == "/bad" else 204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", told
    server.shutdown()
    server.server_close()


def test_a_webhook_gets_the_same_as_json(hook: tuple[str, list[dict[str, Any]]]) -> None:
    address, told = hook
    assert notices.tell(STUCK, notices.Ways(desktop=False, webhook=f"{address}/x"), "f") == []
    assert told[0]["collaboration"] == "checkout" and told[0]["participant"] == "reader"
    (problem,) = notices.tell(STUCK, notices.Ways(desktop=False, webhook=f"{address}/bad"), "f")
    assert problem.startswith("notify.webhook: ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('quiet = "late"', "notify.quiet: expected two times with a dash"),
        ("quiet = 3", "notify.quiet: expected two times with a dash"),
        ('terminal = "osc8"', "notify.terminal: expected one of off, osc9, osc777"),
        ('command = "mail me"', "notify.command: expected a list of texts"),
        ('webhook = "file:///etc/passwd"', "notify.webhook: expected an address"),
        ("desktop = 1", "notify.desktop: expected true or false"),
        ("kinds = { stuk = true }", "notify.kinds.stuk: expected one of stuck"),
        ("kinds = { stuck = 3 }", "notify.kinds.stuck: expected true or false"),
        ("loud = true", "notify.loud: expected one of terminal"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(line: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[notify]\n{line}\n")
    with pytest.raises(SettingsError) as error:
        load(file)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_the_settings_say_which_kinds_are_told(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[notify]\nquiet = "22:00-07:00"\ncommand = ["mine", "{text}"]\n'
        "[notify.kinds]\ncompleted = true\nneed = false\n"
    )
    wanted = notices.parse(load(file).notify)
    assert wanted.command == ("mine", "{text}") and wanted.quiet == "22:00-07:00"
    told = {kind: wanted.tells(kind) for kind in ("stuck", "blocked", "need", "completed")}
    assert told == {"stuck": True, "blocked": True, "need": False, "completed": True}


def test_a_notice_is_only_worded_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of needs stand in a large fleet, and are looked at with every change."""
    worded: list[Matter] = []
    word = notices.message

    def noted(snapshot: Snapshot, need: Matter) -> Message:
        worded.append(need)
        return word(snapshot, need)

    monkeypatch.setattr(notices, "message", noted)
    news, old, new = (
        News(),
        decision("old", "turn", "kim must act"),
        decision("new", "turn", "pat must act"),
    )
    one = make_snapshot("one")
    for _ in range(3):
        news.update(NOW, [(one, (old,))], complete=True)
    assert worded == []
    assert [each.reason for each in news.update(NOW, [(one, (old, new))], complete=True)] == [
        new.sentence
    ]
    assert worded == [new]
