"""What acp keeps for itself, and what it leaves behind, stays in the test's own folder."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from acp_core.fleet import cached_snapshot
from tests.support import piloted

_COMPILED = Path(__file__).parent.parent / ".pytest_cache" / "compiled"
if sys.dont_write_bytecode and "PYTHONPYCACHEPREFIX" not in os.environ:
    # The tests start many processes, each of which would compile everything anew.
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(_COMPILED)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

# Thousands of small files are made, synced and removed: where there is room, in memory.
_MEMORY, _ROOM = "/dev/shm", 2 * 1024**3


def _in_memory() -> bool:
    """Whether the tests' folders, with the programs in them, can be there."""
    try:
        found = os.statvfs(_MEMORY)
    except OSError:
        return False
    room = found.f_bavail * found.f_frsize >= _ROOM and not found.f_flag & os.ST_NOEXEC
    return room and os.access(_MEMORY, os.W_OK)


if _in_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)  # where pytest makes them

# Whatever started the tests may ignore signals, as a shell does for what it puts into the
# background; what the tests start would ignore them, too, and could not be interrupted.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        )

SLOW = "slow"  # what -m is given where only these are run
_LONGEST_NAME = 200  # characters of a parameter that stand in a test's name

# How long an example takes says nothing on a machine that does other things, too. The examples of the
# default run are the same ones each time; only the slow tests look for new ones, by a seed that is
# printed (`pytest_configure`).
settings.register_profile("same", deadline=None, derandomize=True, database=None)
settings.register_profile("new", deadline=None, database=None)
settings.load_profile("same")
piloted.use()
cached_snapshot.strict = True
gc.disable()  # until all is collected, which makes no garbage


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads its seed; before any test is imported
def pytest_configure(config: pytest.Config) -> None:
    """The slow tests draw new examples, all workers by the same seed."""
    if _is_slow(config):
        settings.load_profile("new")
        if config.option.hypothesis_seed is None:
            config.option.hypothesis_seed = str(secrets.randbelow(1 << 32))


def _is_slow(config: pytest.Config) -> bool:
    """Whether the slow tests run, all or some of them (``-m "slow and hypothesis"``)."""
    return bool(config.option.markexpr.split(" and ")[0] == SLOW)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """``-n auto``: two workers for each processor; a test waits for half of its time.

    The slow tests wait less, and start more: they get three workers for two processors.
    """
    if config.option.numprocesses != "auto":
        return None
    processors = os.cpu_count() or 1
    return (3 * processors + 1) // 2 if _is_slow(config) else 2 * processors


_LONG = (
    "test_every_section_measures",
    "test_the_pictures_of_the_cards_show_what_is_shown_now",
    "test_a_watcher_is_killed_at_every_operation",
    "test_a_governed_run_with_opencode",
    "test_all_of_them_one_after_the_other",
    "test_what_the_old_program_started_is_seen_never_doubled_and_stopped",
)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Each worker imports another part of the tests first: what it compiles, the others read."""
    config = session.config
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None and _is_slow(config):
        print(f"new examples: --hypothesis-seed={config.option.hypothesis_seed}")
    if worker is None or config.args != config.getini("testpaths"):
        return
    modules = sorted(Path(__file__).parent.rglob("test_*.py"))
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in modules[number::count]:
        name = ".".join(path.relative_to(config.rootpath).with_suffix("").parts)
        with contextlib.suppress(Exception, pytest.skip.Exception):  # said when it is collected
            importlib.import_module(name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes a minute and more begins first: else one worker ends long after the others."""
    items.sort(key=lambda item: getattr(item, "originalname", "") not in _LONG)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Neighbours stay with one worker, which begins their servers once; who is done helps the others."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.option.dist == "load" else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Of what was compiled, only what lies in passing folders goes again."""
    if not hasattr(config, "workerinput"):
        for passing in {tempfile.gettempdir(), _MEMORY}:
            shutil.rmtree(_COMPILED / passing.lstrip("/"), ignore_errors=True)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A short name for a long parameter: pytest puts a test's name into the environment.

    No program can be started with a variable of more than 128 kB.
    """
    if isinstance(val, str | bytes) and len(val) > _LONGEST_NAME:
        return f"{argname}-of-{len(val)}"
    return None


def pytest_collection_finish() -> None:
    """What is imported and collected stays: no search for garbage goes through it again.

    Of what the tests make, most is gone soon: Python's own limits would have it searched a
    hundred times as often, a third of the time of the dashboard's tests.
    """
    gc.set_threshold(10_000, 20, 50)
    gc.enable()
    gc.collect()
    gc.freeze()


_numbers = itertools.count()
_used = pytest.StashKey[list[Path]]()
_failed = pytest.StashKey[bool]()


def _folder(request: pytest.FixtureRequest, factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder for one test. pytest looks for a number among those of all earlier tests: thousands."""
    folder = factory.mktemp(f"{name}_{next(_numbers)}", numbered=False)
    request.node.stash.setdefault(_used, []).append(folder)
    return folder


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own."""
    return _folder(request, tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:30])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    item.stash[_failed] = item.stash.get(_failed, False) or report.failed
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """What a test leaves behind is of use only where it failed."""
    result = yield
    if not item.stash.get(_failed, True):
        for folder in item.stash.get(_used, []):
            shutil.rmtree(folder, ignore_errors=True)
    return result


@pytest.fixture(autouse=True)
def own_folders(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    folder = _folder(request, tmp_path_factory, "own")
    monkeypatch.setenv("ACP_STATE", str(folder / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(folder / "config"))
    monkeypatch.setenv("ACP_CACHE", str(folder / "cache"))
    temporary = folder / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))  # of the processes that a test starts
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return folder
