"""``acp agent``: started in one line, and what cannot be is told in one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire.support import ROOT, Process


def run(*arguments: str, before: str = "") -> tuple[int, str]:
    """Run acp to its end; the exit code and what it wrote to the standard error."""
    code = f"import sys\n{before}\nfrom acp_tui.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return ran.returncode, ran.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--name"),
        (["--name", ""], "--name"),
        (["--name", "a\nb"], "--name"),
        (["--name", "A", "--port", "70000"], "--port"),
        (["--name", "A", "--host", "no host"], "--host"),
        (["--name", "A", "--host", "192.0.2.1", "--port", "0"], "port 0"),
        (["--name", "A", "--port", "0", "--join", "http://x"], "acp://"),
        (["--name", "A", "--port", "0", "--identity", "/dev/null/x"], "/dev/null/x"),
        (["--name", "A", "--config", "/none.toml"], "/none.toml"),
        (["--name", "A", "--port", "0", "--stdio"], "have to be pipes"),
        (["--name", "A", "--port", "0", "--run-peer", "a 'b"], "--run-peer"),
        (["--name", "A", "--tcp-port", "70000"], "--tcp-port"),
    ],
)
def test_what_cannot_be_started_is_told_in_one_line(arguments: list[str], said: str) -> None:
    code, error = run("agent", *arguments)
    assert code == 2
    assert said in error
    assert "Traceback" not in error


def test_without_its_libraries_it_says_what_to_install() -> None:
    before = "import importlib.util as u; f = u.find_spec\nu.find_spec = lambda n, *a: None if n == 'uvicorn' else f(n, *a)"
    for arguments in (("agent", "--name", "A"), ("wire", "card", "A")):
        code, error = run(*arguments, before=before)
        assert (code, error.count("\n")) == (2, 1)
        assert "pip install 'acp-tui[wire]'" in error


def test_its_options_can_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text('name = "FromFile"\nport = 0\nhttp-port = 0\nskills = "cook,bake"\njoin = []\n')
    agent = Process("FromFile", "--config", str(file))
    with agent:
        assert agent.stop() == (0, "")
    for content, said in (
        ("port = 'x'", "port: a whole number"),
        ("bogus = 1", "bogus: no such option"),
        ("= 1", "not TOML"),
        ("join = [1]", "join: a text"),
    ):
        file.write_text(content)
        code, error = run("agent", "--name", "A", "--config", str(file))
        assert (code, said in error) == (2, True), error
