"""``acp agent``: started in one line, and what cannot be is told in one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from acp_core.protocols.wire.network.identity import hmac_of
from tests.protocols.wire.support import OWNER, ROOT, Process, until
from tests.support import forked


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
        (["--name", "A", "--secret", ""], "--secret: it is empty"),
        (["--name", "A", "--secret-file", "/none"], "--secret-file: /none"),
        (["--name", "A", "--secret", "x", "--secret-file", "/none"], "give either"),
        (["--name", "A", "--relay-key-file", "/dev/null"], "--relay-key-file"),
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
        ("port = 'x'", "port: must be a whole number"),
        ("bogus = 1", "bogus: unknown option"),
        ("= 1", "not TOML"),
        ("join = [1]", "join: must be a text"),
    ):
        file.write_text(content)
        code, error = run("agent", "--name", "A", "--config", str(file))
        assert (code, said in error) == (2, True), error


def test_skills_in_a_file_say_more_than_their_ids(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(
        'name = "A"\nport = 0\nhttp-port = 0\nsync = "normal"\n'
        'skills = [{id = "sum-up", description = "Makes long texts short", tags = ["prose"]}, "add"]\n'
    )
    with Process("A", "--config", str(file)) as agent:
        options: Any = {"trust_env": False, "auth": OWNER}
        card = httpx.get(f"{agent.url}/card", **options).json()
        assert card["skills"] == [
            {
                "id": "sum-up",
                "name": "sum-up",
                "description": "Makes long texts short",
                "tags": ["prose"],
            },
            {"id": "add", "name": "add"},
        ]
        for query in ("prose", "long texts"):
            found = httpx.post(f"{agent.url}/skills/query", json={"query": query}, **options).json()
            assert [each["id"] for each in found["skills"]] == ["sum-up"]


@pytest.mark.parametrize(
    ("skills", "said"),
    [
        ("3", "skills: must be a text, or a list of tables"), ("[3]", "skills[0]: must be a text, or a table"),
        ('[{name = "x"}]', "skills[0]: id is missing"), ("[{id = 3}]", "skills[0]: id: must be a text"),
        ('[{id = "x", tags = "y"}]', "skills[0]: tags: must be a list of texts"),
        ('[{id = "x", tag = ["y"]}]', "skills[0]: tag: unknown (known: id, name"),
    ],
)  # fmt: skip
def test_skills_that_cannot_be_read_are_told_in_one_line(
    skills: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(f'name = "A"\nskills = {skills}\n')
    code, told = run("agent", "--config", str(file))
    assert (code, said in told, told.count("\n")) == (2, True, 1), told


@pytest.mark.parametrize("way", ["words", "file", "variable", "config"])
def test_a_shared_secret_can_be_given_so_that_nobody_sees_it(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, config = tmp_path / "secret", tmp_path / "agent.toml"
    file.write_text("Schlüssel 7\n")
    file.chmod(0o600)
    config.write_text("secret = 'Schlüssel 7'\nname = 'A'\n")
    told, program = tmp_path / "told", tmp_path / "program.py"
    program.write_text(f"import os\nopen({str(told)!r}, 'w').write(str(dict(os.environ)))\n")
    show = f"{sys.executable} {program}"
    given = {
        "words": ("--secret", "Schlüssel 7"),
        "file": ("--secret-file", str(file)),
        "variable": (),
        "config": ("--config", str(config)),
    }[way]
    monkeypatch.setenv("ACP_WIRE_SECRET", "Schlüssel 7" if way == "variable" else "another")
    monkeypatch.setenv(forked.FRESH, "1")  # with a command line of its own
    options = ("--port", "0", "--http-port", "0", "--on-message", show, *given)
    with Process("A", *options) as agent:
        sent = {"text": "x", "from": "Other", "message_id": "m1", "ts": "2026-03-21T07:00:00Z"}
        sent["sig"] = hmac_of("Schlüssel 7", sent)
        httpx.post(f"{agent.url}/message:send", json=sent, trust_env=False, auth=OWNER)
        page = httpx.get(f"{agent.url}/messages", trust_env=False, auth=OWNER).json()["messages"]
        assert page[0]["_sig_verified"] is True
        words = Path(f"/proc/{agent.pid}/cmdline").read_bytes() if os.path.exists("/proc") else b""
        assert ("Schlüssel".encode() in words) is (way == "words")
        until(lambda: told.exists() and told.read_text(), "the program's end")
        assert "Schlüssel" not in told.read_text()


def test_a_secret_that_others_can_read_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("x")
    file.chmod(0o644)
    with Process("A", "--port", "0", "--http-port", "0", "--secret-file", str(file)) as agent:
        assert "chmod 600" in agent.stop()[1]
