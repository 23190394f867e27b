"""Shared folders: what sharing adds to an append, when news arrive, what following costs.

The repositories are real ones, at a path and over ssh to this machine; the bare push beside an append moves a
commit of the same size with the same options of git. Folders that are followed are kept by the process that acp
starts for them.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psutil

from acp_core.protocols.folder.conduct import synced, syncing
from acp_core.protocols.folder.read import following
from acp_core.protocols.folder.write import shared, sharing
from acp_core.protocols.folder.write.append import Request, append
from acp_core.stores.address import Address, parse
from acp_core.stores.git_objects import ssh_command
from acp_core.stores.hosts import open_engine
from tests.bench.bench import Bench
from tests.bench.collaborations import OWNER, READER, of_length
from tests.bench.figures import Aim, Figure
from tests.bench.programs import Failed, used
from tests.stores import ssh

SECTION = "share"
PUSH = "a bare push in the same run"
UNSHARED = "an unshared append"
PERCENT = {"git": 2.0, "postgresql": 0.5}
NEWS = {"git": 1_500.0, "postgresql": 150.0}
HANDED_OVER = Aim("15 ms more than an unshared append", 15.0)
REST = 10.0  # seconds of rest that are looked at
_PATIENCE = 120.0
_LONG_PATIENCE = 600.0  # what follows 200 collaborations reads each of them first


def measure_git(bench: Bench) -> Iterator[Figure]:
    """The figures of git: by a path, and over ssh that is kept open."""
    base = bench.path("git")
    quick = bench.changes < 10
    count = 3 if quick else 8 * bench.runs
    bench.say("appending over a path remote")
    yield from _appends(base, "path", f"git+file://{_repository(base / 'path.git')}", {}, count)
    if ssh.MISSING:
        bench.say(f"{SECTION}: ssh left out: {ssh.MISSING}")
    else:
        bench.say("appending over ssh that is kept open")
        with ssh.server(base / "ssh") as server, _environment(GIT_SSH_COMMAND=server.command):
            sockets = base / "s"
            sockets.mkdir(exist_ok=True)
            kept = {"GIT_SSH_COMMAND": ssh_command(server.command, sockets)}
            url = server.url(_repository(base / "ssh.git"))
            yield from _appends(base, "ssh", url, kept, count)
    bench.say("appending to a long log")
    yield from _long(
        base, f"git+file://{_repository(base / 'long.git')}", 200 if quick else 5_000, count
    )
    yield from followed(bench, "git", f"git+file://{_repository(base / 'many.git')}")


def followed(bench: Bench, kind: str, url: str) -> Iterator[Figure]:
    """News in a folder that is followed, and what following many costs.

    Args:
        bench: of the run.
        kind: of the store.
        url: a store that holds nothing.
    """
    quick = bench.changes < 10
    number = 10 if quick else 200
    bench.say(f"following {number} collaborations ({kind})")
    base = bench.path(f"followed-{kind}")
    first = of_length(base / "first", 10)
    folders = []
    for count in range(number):
        address = sharing.share(str(first), url, f"c{count}").address
        if count == 0:
            writing = base / "writing"
            sharing.join(address.text, str(writing))
        folders.append(base / f"c{count}")
        sharing.join(address.text, str(folders[-1]))
        sharing.unshare(str(first))
    held = [syncing.want(str(each)) for each in folders]
    try:
        _wait(
            lambda: all(following.is_synced(str(each)) for each in folders),
            "all folders to be taken up",
        )
        process = _process(folders)
        _settled(process.pid)
        before, began = used(process.pid), time.perf_counter()
        spent = _children(process)
        time.sleep(REST)
        taken = 100 * (used(process.pid).processor + _children(process) - spent - before.processor)
        share = taken / (time.perf_counter() - began)
        aim = Aim(f"below {PERCENT[kind]} % of a processor", PERCENT[kind])
        yield Figure(SECTION, f"{kind}: {number} quiet collaborations followed", "%", share,
                     "nothing", 0.0, aim)  # fmt: skip
        yield Figure(SECTION, f"{kind}: memory of the process that follows them", "MB",
                     before.memory / 1e6, "nothing", 0.0)  # fmt: skip
        yield _news(kind, writing, folders[0], parse(f"{url}#c0"), 3 if quick else 20)
        if kind == "postgresql":
            yield _handed_over(base, folders[1], 3 if quick else 30)
    finally:
        for each in held:
            if each is not None:
                each.close()
        with contextlib.suppress(Failed):
            _process(folders).kill()


def _appends(base: Path, name: str, url: str, kept: dict[str, str], count: int) -> Iterator[Figure]:
    """Appends to a shared folder and to a plain one, and bare pushes, in turn."""
    plain, folder = of_length(base / f"{name}-plain", 10), of_length(base / f"{name}-shared", 10)
    address = sharing.share(str(folder), url, name).address
    ours, unshared, bare = [], [], []
    with open_engine(address) as engine:
        push = _pusher(base / f"{name}-bare.git", parse(url).url, kept, plain)
        push()
        for number in range(count + 1):
            unshared.append(_took(partial(append, _request(plain, 11 + number))))
            ours.append(
                _took(
                    partial(
                        shared.publish,
                        _request(folder, 11 + number),
                        address,
                        engine,
                        now=_now,
                        before_write=_nothing,
                    )
                )
            )
            bare.append(_took(push))
    added = statistics.median(ours[1:]) - statistics.median(unshared[1:])
    beside = statistics.median(bare[1:])
    aim = Aim("1.5 times the bare push", 1.5 * beside)
    yield Figure(
        SECTION, f"git, {name}: what sharing adds to an append", "ms", added, PUSH, beside, aim
    )


def _long(base: Path, url: str, events: int, count: int) -> Iterator[Figure]:
    """Appending to a long log, beside a short one."""
    took = {}
    for length in (10, events):
        folder = of_length(base / f"long-{length}", length)
        address = sharing.share(str(folder), url, f"long-{length}").address
        with open_engine(address) as engine:
            took[length] = statistics.median(
                _took(
                    partial(
                        shared.publish,
                        _request(folder, length + 1 + number),
                        address,
                        engine,
                        now=_now,
                        before_write=_nothing,
                    )
                )
                for number in range(count)
            )
    aim = Aim("twice that of 10 events", 2 * took[10])
    yield Figure(SECTION, f"git, path: append to {events:,} events", "ms", took[events], "to 10 events",
                 took[10], aim)  # fmt: skip


def _news(kind: str, writing: Path, reading: Path, address: Address, count: int) -> Figure:
    """From the start of an append in one folder until the line is in a folder that is followed."""
    came = []
    with open_engine(address) as engine:
        for number in range(count):
            log = reading / "events.jsonl"
            size = log.stat().st_size
            began = time.perf_counter()
            shared.publish(
                _request(writing, 11 + number), address, engine, now=_now, before_write=_nothing
            )
            _wait(partial(_has_grown, log, size), "the event", 0.001)
            came.append((time.perf_counter() - began) * 1e3)
    aim = Aim(f"{NEWS[kind]:.0f} ms", NEWS[kind])
    return Figure(SECTION, f"{kind}: an event in the folder of another host, p50", "ms", statistics.median(came),
                  "nothing", 0.0, aim)  # fmt: skip


def _handed_over(base: Path, folder: Path, count: int) -> Figure:
    """An append by way of the process that follows, in addition to an unshared one."""
    plain = of_length(base / "plain", 10)
    ours, unshared = [], []
    for number in range(count):
        unshared.append(_took(partial(append, _request(plain, 11 + number))))
        ours.append(_took(partial(append, _request(folder, 11 + number))))
    beside = statistics.median(unshared)
    added = statistics.median(ours) - beside
    name = "postgresql, by the process: what sharing adds to an append"
    return Figure(SECTION, name, "ms", added, UNSHARED, beside, HANDED_OVER)


def _pusher(store: Path, url: str, more: dict[str, str], folder: Path) -> Callable[[], None]:
    """Pushes a commit to a branch of a repository: what any client has to do.

    Args:
        store: for its objects.
        url: of the repository.
        more: what is added to its environment.
        folder: each commit adds an event to what this folder holds, and changes as many files as an append.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | more

    def git(*words: str, given: bytes = b"") -> str:
        ran = subprocess.run(["git", *words], input=given, capture_output=True, check=True, env=env)
        return ran.stdout.decode().strip()

    def file(name: str, more: bytes) -> bytes:
        data = (folder / name).read_bytes() + more
        return b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data)

    git("init", "-q", "--bare", str(store))
    wanted, stream, added = 82, b"", b""
    whole = b"".join(file(each.name, b"") for each in sorted(folder.iterdir()) if each.is_file())
    for number in range(wanted):  # made before anything is measured
        added += (
            b'{"seq": %d, "from": "somebody", "event": "review_submitted", "summary": "Entry"}\n'
            % number
        )
        note = b"\nRound %d\n" % number
        stream += (
            b"commit refs/heads/made\nmark :%d\ncommitter a <a@b> %d +0000\ndata 4\nmade\n"
            % (number + 1, number)
        )
        stream += whole if not number else b""
        stream += (
            file("events.jsonl", added) + file("protocol.json", note) + file("review.md", note)
        )
        stream += b"\n"
    asked = b"".join(b"get-mark :%d\n" % (number + 1) for number in range(wanted))
    made = git(f"--git-dir={store}", "fast-import", "--quiet", "--done", "--date-format=raw",
               given=stream + asked + b"done\n").splitlines()  # fmt: skip
    last: list[str] = []

    def push() -> None:
        commit = made[len(last)]
        expected = last[-1] if last else ""
        last.append(commit)
        git(f"--git-dir={store}", "push", "-q", "--porcelain", "--no-verify",
            f"--force-with-lease=refs/heads/bare:{expected}", "--", url, f"{commit}:refs/heads/bare")  # fmt: skip

    return push


def _request(folder: Path, seq: int) -> Request:
    """The next event of rounds without end."""
    proposes = seq % 2 == 0
    event = ("proposal_submitted", "proposal.md") if proposes else ("review_submitted", "review.md")
    if not proposes:
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        with (folder / "review.md").open("a") as file:
            file.write(f"\n## {stamp} - {READER} - seq {seq}\n\nPosition:\n- Fine.\n")
    return Request(
        str(folder), OWNER if proposes else READER, event[0], f"Entry {seq}", event[1], seq - 1
    )


def _took(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def _repository(place: Path) -> Path:
    subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)
    return place


def _process(folders: Sequence[Path]) -> psutil.Process:
    """The process that keeps these folders."""
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = each.cmdline()
            if synced.__name__ in words and words[-1] in map(str, folders):
                return each
    raise Failed("no process follows the folders")


def _children(process: psutil.Process) -> float:
    """The processor time of its children that have ended, such as git."""
    times = process.cpu_times()
    return times.children_user + times.children_system


def _settled(pid: int) -> None:
    """Wait until what the beginning brings with it is done.

    Raises:
        Failed: it does not end: what is measured now would not be rest.
    """
    until = time.monotonic() + _LONG_PATIENCE
    while time.monotonic() < until:
        before = used(pid).processor + _children(psutil.Process(pid))
        time.sleep(3.0)
        if used(pid).processor + _children(psutil.Process(pid)) - before < 0.09:
            return
    raise Failed("the process that follows the folders does not come to rest")


def _wait(holds: Callable[[], bool], what: str, pause: float = 0.05) -> None:
    until = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > until:
            raise Failed(f"waited in vain for {what}")
        time.sleep(pause)


@contextlib.contextmanager
def _environment(**more: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _has_grown(log: Path, size: int) -> bool:
    return log.stat().st_size > size


def _now() -> datetime:
    return datetime.now(UTC)


def _nothing() -> None:
    pass
