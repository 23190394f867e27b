"""What one account asks of another one's process: each once, and by whom says the file's owner."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from acp_core.files import claims, requests
from acp_core.files.claims import CONDUCT
from acp_core.files.requests import Answer


def test_a_request_is_taken_up_once_and_answered(tmp_path: Path) -> None:
    with claims.take(tmp_path, CONDUCT):
        path = requests.ask(tmp_path, CONDUCT, "decide", {"choice": "2"})
        (request,) = requests.pending(tmp_path, CONDUCT)
        assert (request.act, request.values) == ("decide", {"choice": "2"})
        assert (request.uid, request.account) == (os.getuid(), claims.account(os.getuid()))
        assert requests.pending(tmp_path, "loops/alice") == []
        assert requests.take(request) and not requests.take(request)
        assert requests.pending(tmp_path, CONDUCT) == [] and not requests.withdraw(path)
        assert requests.wait(tmp_path, CONDUCT, path, 0)[0] is None
        requests.answer(request, "done", "Decided.")
        assert requests.wait(tmp_path, CONDUCT, path, 60)[0] == Answer("done", "Decided.")
    assert list((tmp_path / ".acp" / "run" / "requests").iterdir()) == []


def test_nobody_is_waited_for_who_is_not_there(tmp_path: Path) -> None:
    path = requests.ask(tmp_path, CONDUCT, requests.STOP, {})
    answer, holder = requests.wait(tmp_path, CONDUCT, path, 3_600)
    assert answer is None and not holder.held
    assert requests.withdraw(path) and requests.pending(tmp_path, CONDUCT) == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"of": "conduct", "act": 7, "values": {}}', "[" * 9999, "\0"]
)
def test_what_is_no_request_is_none(tmp_path: Path, text: str) -> None:
    path = requests.ask(tmp_path, CONDUCT, requests.STOP, {})
    path.write_text(text)
    assert requests.pending(tmp_path, CONDUCT) == []


def test_who_asks_is_the_owner_of_the_file_and_a_link_is_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = requests.ask(tmp_path, CONDUCT, requests.STOP, {})
    path.write_text(json.dumps(json.loads(path.read_text()) | {"by": "anna", "uid": 7}))
    assert requests.pending(tmp_path, CONDUCT)[0].uid == os.getuid()
    found = list(path.stat())
    found[stat.ST_UID] = 12_345  # as if another account had made it
    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", lambda _: os.stat_result(found))
        (asked,) = requests.pending(tmp_path, CONDUCT)
    assert (asked.uid, asked.account) == (12_345, claims.account(12_345))
    os.link(path, tmp_path / "another name")
    assert requests.pending(tmp_path, CONDUCT) == []
    (tmp_path / "another name").unlink()
    target = path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(target)
    assert requests.pending(tmp_path, CONDUCT) == []


def test_what_nobody_took_up_for_long_has_expired(tmp_path: Path) -> None:
    path = requests.ask(tmp_path, CONDUCT, requests.STOP, {})
    os.utime(path, (0, 0))
    assert requests.pending(tmp_path, CONDUCT) == []
    assert not path.exists()
