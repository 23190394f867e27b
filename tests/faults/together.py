"""Several writers at once: some are killed without warning, some take no lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

from acp_core.model import Severity
from tests.faults import places
from tests.faults.campaign import Campaign, Case
from tests.faults.looking import acp, look
from tests.protocols.cycle.making import STATE, cycle
from tests.protocols.folder.support import make_v1

_ROOT = Path(__file__).resolve().parents[2]
_NAMES = ("ann", "ben", "cat", "dan")
_EACH = 25  # writes of a writer, if it lives


class Writer:
    """A process that writes; what it acknowledged is known even when it is killed."""

    def __init__(
        self, kind: str, folder: Path, name: str, start: int = 0, most: int = _EACH
    ) -> None:
        self.name = name
        words = ["-m", "tests.faults.writer", kind, str(folder), name, str(start), str(most)]
        self._child = subprocess.Popen(
            [sys.executable, *words], cwd=_ROOT, text=True, env={**os.environ},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def kill(self) -> None:
        """End it at once."""
        self._child.kill()

    def acknowledged(self) -> list[str]:
        """What it said was written, once it has ended."""
        out, err = self._child.communicate(timeout=120)
        assert "Traceback" not in err and "this should not happen" not in err, err
        lines = out.split("\n")[:-1]  # the last line may be half said
        return [line.partition(" ")[2] for line in lines]


def random_kills(place: Path, seed: int) -> Iterator[Case]:
    """Rounds without an end: four writers at one place, killed at moments of chance."""
    kinds = ("folder", "governed", "cycle")
    for number in count():
        kind = kinds[number % len(kinds)]
        yield Case(
            f"{kind}: round {number} of seed {seed}",
            partial(_round, kind, place / f"round-{number}", Random(f"{seed}-{number}")),
        )


def _make(kind: str, root: Path, place: Path) -> None:
    if kind == "folder":
        make_v1(root, "drafting", participants=_NAMES)
    elif kind == "governed":
        places.copied("governed", place, root)
    else:
        cycle(root)


def _round(kind: str, root: Path, chance: Random) -> None:
    _make(kind, root, root.parent)
    acknowledged: list[str] = []
    begun = dict.fromkeys(_NAMES, 0)
    writers: list[Writer] = []
    for _ in range(3):
        for name in _NAMES:
            if not any(each.alive for each in writers if each.name == name):
                writers.append(Writer(kind, root, name, begun[name]))
                begun[name] += _EACH
        time.sleep(chance.uniform(0.15, 0.6))
        for writer in writers:
            if writer.alive and chance.random() < 0.5:
                writer.kill()
    for writer in writers:
        acknowledged += writer.acknowledged()
    if kind == "folder" and not (root / "events.jsonl").read_bytes().endswith(b"\n"):
        acp("repair", str(root), "--yes")
    # the next command brings to an end what a killed one had begun
    last = Writer(kind, root, "ann", 10_000, 1)
    acknowledged += last.acknowledged()
    assert "ann says 10000 aloud" in acknowledged, "nobody can write any more"
    held = _held(kind, root)
    counted = Counter(held)
    lost = [each for each in acknowledged if counted[each] == 0]
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged writes are lost: {lost[:3]}"
    assert max(counted.values()) == 1, [each for each in counted if counted[each] > 1][:3]
    snapshot = look(root)
    assert snapshot is not None
    assert not [each.message for each in snapshot.findings if each.severity is Severity.ERROR]
    assert not list(root.rglob("*.acp-tmp")) or kind != "folder"


def _held(kind: str, root: Path) -> list[str]:
    if kind == "folder":
        data = (root / "events.jsonl").read_bytes()
        seqs = [json.loads(line)["seq"] for line in data.splitlines()]
        assert seqs == list(range(1, len(seqs) + 1))
        return said_aloud(data)
    if kind == "governed":
        text = (root / "TALK.md").read_text()
        return [line.strip() for line in text.splitlines() if line.endswith("aloud")]
    log = json.loads((root / STATE).read_text())["coordination"]["feedback_log"]
    return [entry["content"] for entry in log]


def said_aloud(log: bytes) -> list[str]:
    """What writers said, of a log of folders."""
    told = [json.loads(line)["summary"] for line in log.splitlines()]
    return [each for each in told if each.endswith("aloud")]


def mixed(place: Path, seed: int) -> Iterator[Case]:
    """Rounds without an end: tools that take no lock beside those that do."""
    yield Case("a tool without a lock slips in while acp writes", partial(_slips_in, place / "in"))
    for number in count():
        chance = Random(f"{seed}-{number}")
        without = chance.randint(1, 3)
        yield Case(
            f"{without} of 4 writers take no lock, round {number} of seed {seed}",
            partial(_fleet, place / f"fleet-{number}", without),
        )


def _fleet(root: Path, without: int) -> None:
    make_v1(root, "drafting", participants=_NAMES)
    kinds = ["unlocked"] * without + ["folder"] * (len(_NAMES) - without)
    writers = [Writer(kind, root, name) for kind, name in zip(kinds, _NAMES, strict=True)]
    told = {writer.name: writer.acknowledged() for writer in writers}
    data = (root / "events.jsonl").read_bytes()
    assert data.endswith(b"\n"), "a line is torn"
    events = [json.loads(line) for line in data.splitlines()]  # none is glued to another
    held = {event["summary"] for event in events}
    for name, said in told.items():
        assert held.issuperset(said), f"what {name} wrote is lost"
    seqs = [event["seq"] for event in events]
    snapshot = look(root)
    assert snapshot is not None
    codes = {finding.code for finding in snapshot.findings}
    if seqs != list(range(1, len(seqs) + 1)):
        assert codes & {"ACP213", "ACP214", "ACP212", "ACP215"}, f"not said: {codes}"
        assert acp("validate", str(root)).code == 2
        assert acp("why", str(root)).code == 1
    else:
        assert acp("validate", str(root)).code in (0, 2)


def _slips_in(root: Path) -> None:
    """Between acp's last look at the log and its write: that is noticed, and said."""
    make_v1(root, "drafting", participants=_NAMES)
    real: Callable[..., int] = os.write

    def write(fd: int, data: bytes) -> int:
        if b"Said by acp" in bytes(data):
            os.write = real
            from tests.faults.writer import unlocked

            assert unlocked(root, "ben", "slipped in") == 0
        return real(fd, data)

    os.write = write
    words = ["--folder", str(root), "--participant", "ann", "--event", "blocked", "--reply-to", "1"]
    try:
        ran = acp("append", *words, "--summary", "Said by acp", most=4)
    finally:
        os.write = real
    assert ran.code == 4 and "lock" in ran.err, ran
    assert acp("validate", str(root)).code == 2


RANDOM_KILLS = Campaign(
    "random", "four writers at once, killed with kill -9 at random", random_kills
)
MIXED = Campaign("mixed", "writers that take no lock beside those that do", mixed)
