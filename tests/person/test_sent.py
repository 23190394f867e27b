"""News that several dashboards notice at once is told by one of them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

from acp_core.person import notices
from acp_core.person.notices import Message
from tests.cli.support import ROOT

NOW = datetime(2026, 5, 4, 14, 3, tzinfo=UTC)
STUCK = Message("stuck", "cache", "/work/cache", "reader", "its program is gone", "relaunch")
DONE = Message("completed", "keys", "/work/keys", "", "completed")

RIVAL = """
import sys
sys.path.insert(0, {root!r})
from datetime import UTC, datetime
from acp_core.person import notices
from acp_core.person.notices import Message
news = [Message("stuck", "c", "/c", "", str(n)) for n in range(20)]
print("ready", flush=True)
sys.stdin.readline()
for message in news:
    for ours in notices.take_unsent([message], datetime(2026, 5, 4, tzinfo=UTC)):
        print(ours.reason, flush=True)
"""


def test_the_first_that_comes_tells_it_and_nobody_else() -> None:
    assert notices.take_unsent([STUCK], NOW) == [STUCK]
    assert notices.take_unsent([STUCK, DONE], NOW + timedelta(seconds=5)) == [DONE]
    assert notices.take_unsent([STUCK, DONE], NOW + timedelta(seconds=20)) == []


def test_it_is_told_again_when_it_happens_again() -> None:
    notices.take_unsent([STUCK], NOW)
    later = NOW + timedelta(minutes=2)
    assert notices.take_unsent([STUCK], later) == [STUCK]
    assert notices.take_unsent([STUCK], NOW) == [STUCK], "a clock that was set back silences nobody"


def test_processes_that_race_tell_each_thing_once() -> None:
    code = RIVAL.format(root=str(ROOT))
    rivals = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for rival in rivals:
        assert rival.stdout is not None and rival.stdout.readline() == "ready\n"
    for rival in rivals:
        assert rival.stdin is not None
        rival.stdin.write("go\n")
        rival.stdin.flush()
    told = [line for rival in rivals for line in rival.communicate()[0].split()]
    assert sorted(told, key=int) == [str(n) for n in range(20)]


def test_half_a_file_that_somebody_left_is_no_obstacle() -> None:
    notices.path().parent.mkdir(parents=True, exist_ok=True)
    for left in (b'{"abc": 1', b"[]", b"\x00\xff", b'{"abc": "x"}'):
        notices.path().write_bytes(left)
        assert notices.take_unsent([STUCK], NOW) == [STUCK]
        assert notices.take_unsent([STUCK], NOW) == []


def test_where_it_cannot_be_kept_everybody_tells() -> None:
    notices.path().mkdir(parents=True)
    assert notices.take_unsent([STUCK], NOW) == [STUCK]
    assert notices.take_unsent([STUCK], NOW) == [STUCK]
