"""What acp keeps for itself, and what it leaves behind, stays in the test's own folder."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from acp_core.fleet import cached_snapshot
from tests.support import piloted

if sys.dont_write_bytecode and "PYTHONPYCACHEPREFIX" not in os.environ:
    # The tests start many processes, each of which would compile everything anew.
    _compiled = tempfile.TemporaryDirectory(prefix="acp-compiled-")
    os.environ["PYTHONPYCACHEPREFIX"] = _compiled.name
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Whatever started the tests may ignore signals, as a shell does for what it puts into the
# background; what the tests start would ignore them, too, and could not be interrupted.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        )

_LONGEST_NAME = 200  # characters of a parameter that stand in a test's name

# How long an example takes says nothing on a machine that does other things, too.
settings.register_profile("acp", deadline=None)
settings.load_profile("acp")
piloted.use()
cached_snapshot.strict = True


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """``-n auto``: two workers for each processor; a test waits for half of its time.

    The slow tests do not: they kill and measure, and get a processor each.
    """
    if config.option.numprocesses != "auto" or config.option.markexpr == "slow":
        return None
    return 2 * (os.cpu_count() or 1)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A short name for a long parameter: pytest puts a test's name into the environment.

    No program can be started with a variable of more than 128 kB.
    """
    if isinstance(val, str | bytes) and len(val) > _LONGEST_NAME:
        return f"{argname}-of-{len(val)}"
    return None


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("own")
    monkeypatch.setenv("ACP_STATE", str(folder / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(folder / "config"))
    monkeypatch.setenv("ACP_CACHE", str(folder / "cache"))
    temporary = folder / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))  # of the processes that a test starts
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return folder
