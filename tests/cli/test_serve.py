"""`acp serve`: the dashboard in a browser, for whoever has its key, and for nobody else."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.agents.support import wait_for
from tests.cli.support import Acp
from tests.support import toy

pytest.importorskip("textual_serve", reason="needs the extra web")
client = pytest.importorskip("websockets.sync.client", reason="needs websockets")

PLENTY = 60.0  # seconds; nothing passes or fails by being quicker
HOSTILE = (
    "a b",
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned #",
    "' ; touch pwned ; '",
    '" ; touch pwned ; "',
    "two\nlines; touch pwned",
    "--host=0.0.0.0",
    "back\\",
    "*",
    "\x1b]2;title\x07",
)


class Served:
    """A server that runs, and what a browser would ask it."""

    def __init__(self, acp: Acp, *arguments: str) -> None:
        self.process = subprocess.Popen(
            acp.command("serve", "--port", "0", *arguments),
            cwd=acp.home,
            env=acp.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        self.address = found.group()
        self.place = urlsplit(self.address)

    def get(self, path: str, **headers: str) -> tuple[int, str, str]:
        """The status, the text and the cookie of an answer; redirections are not followed."""
        asked = urllib.request.Request(
            f"http://{self.place.netloc}{path}",
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )
        opener = urllib.request.build_opener(_Stay())
        try:
            with opener.open(asked, timeout=PLENTY) as answer:
                cookie = str(answer.headers.get("Set-Cookie", "")).partition(";")[0]
                return answer.status, answer.read().decode(), cookie
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), ""

    def cookie(self) -> str:
        """What a browser keeps once it has opened the address."""
        return self.get(f"/?{self.place.query}")[2]

    def visit(self) -> client.ClientConnection:
        """The connection of a page."""
        return client.connect(
            f"ws://{self.place.netloc}/ws?width=200&height=50",
            additional_headers={"Cookie": self.cookie()},
            max_size=None,
        )

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class _Stay(urllib.request.HTTPRedirectHandler):
    """Takes a redirection for an answer."""

    def http_error_302(self, req, fp, code, msg, headers):  # type: ignore[no-untyped-def]
        fp.status = code
        return fp


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    return Acp(tmp_path)


@pytest.fixture
def serve(acp: Acp) -> Iterator[Callable[..., Served]]:
    running: list[Served] = []

    def begin(*arguments: str) -> Served:
        running.append(Served(acp, *arguments))
        return running[-1]

    yield begin
    for each in running:
        each.close()


def shown(page: client.ClientConnection, text: str) -> str:
    """What a page was sent, once it holds ``text``."""
    seen = ""
    while text not in seen:
        data = page.recv(timeout=PLENTY)
        seen += data.decode("utf-8", "replace") if isinstance(data, bytes) else ""
    return seen


def gone(process: psutil.Process) -> bool:
    """Whether it has ended (what nobody has waited for yet counts)."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def dashboards(served: Served) -> list[psutil.Process]:
    return psutil.Process(served.process.pid).children(recursive=True)


@pytest.mark.slow
def test_a_page_gets_a_dashboard_that_ends_with_it(
    acp: Acp, serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert acp("init", "--folder", "checkout", "--participant", "ann", "--participant", "ben",
               "--objective", "Choose", "--completion", "Chosen").returncode == 0  # fmt: skip
    served = serve(".")
    with served.visit() as page:
        shown(page, "checkout")
        page.send(json.dumps(["stdin", "\r"]))
        shown(page, "Timeline")
        [process] = dashboards(served)
    wait_for(lambda: gone(process), "the end of the dashboard", PLENTY)
    with served.visit() as page:  # and the next page gets one of its own
        shown(page, "checkout")
        last = dashboards(served)
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(PLENTY) == 0
    wait_for(lambda: all(map(gone, last)), "the end of the dashboard", PLENTY)


@pytest.mark.slow
def test_a_dashboard_ends_when_the_server_is_killed(serve: Callable[..., Served]) -> None:
    served = serve(".")
    with served.visit() as page:
        shown(page, "need you")
        [process] = dashboards(served)
        os.kill(served.process.pid, signal.SIGKILL)
        wait_for(lambda: gone(process), "the end of the dashboard", PLENTY)


def test_no_path_becomes_a_command(
    acp: Acp, serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    acp.env |= toy.register(monkeypatch, acp.home / "installed")
    for name in HOSTILE:
        toy.make(acp.home / name / "talk")
    served = serve("--", *HOSTILE)
    with served.visit() as page:
        shown(page, f"{len(HOSTILE)} live")
    assert not list(acp.home.rglob("pwned"))


def test_whoever_has_no_key_gets_nothing(serve: Callable[..., Served]) -> None:
    served = serve(".")
    own = served.place.netloc
    assert served.get("/")[0] == 403
    assert served.get("/?key=guessed")[0] == 403
    assert served.get("/static/js/textual.js")[0] == 403
    assert served.get("/ws", Cookie=f"acp_{served.place.port}=guessed")[0] == 403
    status, _, cookie = served.get(f"/?{served.place.query}")
    assert status == 302
    status, page, _ = served.get("/", Cookie=cookie)
    assert status == 200
    assert f'"ws://{own}/ws"' in page
    assert served.get("/", Cookie=cookie, Origin=f"http://{own}")[0] == 200
    for headers in ({"Origin": "http://example.org"}, {"Origin": "null"}, {"Host": "example.org"}):
        assert served.get("/", Cookie=cookie, **headers)[0] == 403, headers
        assert served.get("/ws", Cookie=cookie, **headers)[0] == 403, headers


def test_a_cookie_holds_no_key_and_is_good_for_one_name_and_port(
    serve: Callable[..., Served],
) -> None:
    """Other servers of this machine get it, too: browsers send cookies to every port of a name."""
    served, other = serve("."), serve(".")
    cookie = served.cookie()
    key = served.place.query.removeprefix("key=")
    name, _, value = cookie.partition("=")
    assert key not in cookie
    assert served.get(f"/?key={value}")[0] == 403
    elsewhere = f"acp_{other.place.port}={value}"
    assert other.get("/", Cookie=elsewhere)[0] == 403
    tunnel = "localhost:9000"
    assert served.get("/", Cookie=cookie, Host=tunnel)[0] == 403
    _, _, opened = served.get(f"/?key={key}", Host=tunnel)
    status, page, _ = served.get("/", Cookie=opened, Host=tunnel)
    assert (status, name) == (200, opened.partition("=")[0])
    assert f'"ws://{tunnel}/ws"' in page


def test_it_is_this_machine_s_own_unless_asked_for_more(serve: Callable[..., Served]) -> None:
    assert serve(".").place.hostname == "127.0.0.1"
    other = serve("--host", "0.0.0.0", ".")
    other.process.send_signal(signal.SIGTERM)
    _, warned = other.process.communicate(timeout=PLENTY)
    assert warned.startswith("warning: other machines can reach this address")
    assert warned.count("\n") == 1


def refused(ran: subprocess.CompletedProcess[str], words: str) -> None:
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: ") and ran.stderr.count("\n") == 1
    assert words in ran.stderr


def test_what_cannot_be_served_is_said_in_one_line(acp: Acp) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused(acp("serve", "--port", port, "."), "use --port 0 to pick a free port")
    refused(acp("serve", "--host", "nowhere.invalid", "."), "nowhere.invalid port 8000: ")
    refused(acp("serve", "nothing-here"), "nothing-here: no such folder")


def test_without_the_extra_it_says_what_to_install(acp: Acp) -> None:
    program = (
        "import sys; sys.modules['textual_serve'] = None; "
        "from acp_tui.__main__ import main; sys.exit(main(['serve', '.']))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        cwd=acp.home, env=acp.env,
    )  # fmt: skip
    refused(ran, "pip install 'acp-tui[web]'")
