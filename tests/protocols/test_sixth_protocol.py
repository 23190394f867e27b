"""A further protocol needs nothing but itself: everything that comes with it is there at once.

The toy protocol of the tests is installed by an entry point, as another distribution would
install its own; the product does not know it.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.fleet import Fleet
from acp_core.model import OutcomeState
from acp_core.protocols import registry
from tests.support import toy

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    own = tmp_path_factory.mktemp("own")
    monkeypatch.setenv("ACP_STATE", str(own / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(own / "config"))
    for name, value in toy.register(monkeypatch, tmp_path_factory.mktemp("site")).items():
        monkeypatch.setenv(name, value)


def acp(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "acp_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_the_product_does_not_know_it() -> None:
    for package in ("acp_core", "acp_tui"):
        for file in (ROOT / package).rglob("*.py"):
            assert not re.search(r"\btoy", file.read_text(encoding="utf-8"), re.I), file
    assert "toy" in {protocol.name for protocol in registry.installed()}
    assert "toy" not in registry.NAMES


def test_it_is_found_read_and_acted_in(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    toy.say(one, "ann", "asked", "red?")
    fleet = Fleet([tmp_path])
    (snapshot,) = fleet.read()
    assert (snapshot.protocol, snapshot.panels[0].title) == ("toy", "Questions")
    now = datetime.now(UTC)
    (action,) = fleet.call_sync(snapshot.key, lambda opened: opened.actions(now))
    inputs = action.inputs.model_validate({"text": "blue"})
    assert action.preview(inputs).changes[0].verb == "append"
    assert action.perform(inputs).state is OutcomeState.DONE
    (after,) = fleet.read()
    assert after.needs == ()
    asyncio.run(fleet.close())


def test_one_is_started_by_its_own_action(tmp_path: Path) -> None:
    (protocol,) = (known for known in registry.installed() if known.name == "toy")
    assert protocol.create is not None
    action = registry.load(protocol.create)(tmp_path / "new")
    inputs = action.inputs.model_validate({"objective": "Choose"})
    assert action.perform(inputs).location == str(tmp_path / "new")
    assert [snapshot.objective for snapshot in Fleet([tmp_path]).read()] == ["Choose"]
    assert action.preview(inputs).refused


def test_the_command_line_shows_it_and_takes_its_commands(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    assert "toy-say" in acp("--help").stdout
    said = acp("toy-say", one, "hello there")
    assert (said.returncode, said.stdout, said.stderr) == (0, "said\n", "")
    status = acp("status", "--json", tmp_path)
    assert status.returncode == 0, status.stderr
    assert '"toy"' in json.dumps(json.loads(status.stdout))
    assert "hello there" in acp("show", one).stdout
