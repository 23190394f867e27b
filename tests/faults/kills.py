"""A kill, and a failing disk, at every file operation of every command that writes.

Afterwards everything can be read; what was done is done or not; and the same command finishes it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.faults.campaign import Campaign, Case, mixed
from tests.faults.looking import look
from tests.faults.shim import CHANGING, ERRORS, KILLED, READING, Faults, Run
from tests.faults.writing import ALL, Writing

# Named by chance; and made again by whoever writes next, from what the logs and states say.
_NOT_COMPARED = ("turn_", "run_", "/coordination/", "CROSS_REPO_CONTEXT.md")
_SYNCS = {"fsync", "fdatasync", "close"}  # a kill before one leaves what one after it leaves


class Shape(NamedTuple):
    """What must agree in two runs of one command: nothing of it is made by chance or the clock."""

    status: str
    phase: str
    round: int | None
    events: tuple[str, ...]
    turns: tuple[str, ...]
    findings: tuple[str, ...]
    documents: tuple[str, ...]
    needs: tuple[str, ...]
    told: object


def shape(root: Path, writing: Writing) -> Shape | None:
    """The shape of the collaboration in ``root``, or in its folder "run"; None where there is none."""
    at = root / "run" if (root / "run").is_dir() else root
    if not at.is_dir():
        return None
    seen = look(at)
    if seen is None:
        return None
    return Shape(
        seen.status.value,
        seen.phase,
        seen.round,
        tuple(sorted(f"{e.kind} {e.actor}" for e in seen.events if e.kind != "note")),
        tuple(sorted(turn.participant for turn in seen.turns)),
        tuple(sorted(f"{each.code} {each.severity.value}" for each in seen.findings)),
        tuple(
            sorted(d.id for d in seen.documents if not any(part in d.id for part in _NOT_COMPARED))
        ),
        tuple(sorted(need.code for need in seen.needs)),
        writing.told(root),
    )


class Bench:
    """One command, prepared once, run again and again in fresh copies at the same place."""

    def __init__(self, faults: Faults, place: Path, writing: Writing) -> None:
        self.faults, self.writing = faults, writing
        self.root = place / writing.name.replace(" ", "-") / "root"
        self.kept = self.root.parent / "kept"
        self.state = self.root.parent / "state"
        self.env = {"ACP_STATE": str(self.state)}
        self.root.parent.mkdir(parents=True)
        writing.prepare(self.root)
        shutil.copytree(self.root, self.kept, symlinks=True)
        self.words = writing.words(str(self.root))
        self.before = shape(self.root, self.writing)
        whole = self.run("list")
        assert whole.code == 0, (writing.name, whole)
        self.after = shape(self.root, self.writing)
        self.fresh()
        self.changing = self.run("count").names
        self.all = whole.names

    def run(self, kind: str = "none", at: int = 0) -> Run:
        return self.faults.run(*self.words, kind=kind, at=at, env=self.env)

    def fresh(self) -> None:
        for path in self.root.parent.iterdir():
            if path != self.kept:
                shutil.rmtree(path)
        shutil.copytree(self.kept, self.root, symlinks=True)

    def finish(self, run: Run | None) -> None:
        """After a fault: it is done, or the same command does it, once what acp advises is done."""
        for words in self.advised():
            self.faults.run(*words, env=self.env)
        left = shape(self.root, self.writing)
        if self.same(left) and self.after != self.before:
            return
        again = self.run()
        assert again.code in (0, 2), (run, again)
        found = shape(self.root, self.writing)
        assert self.same(found), (run and run.err, again, differing(found, self.after))

    def advised(self) -> Iterator[list[str]]:
        """The commands that acp names for what a fault can leave."""
        root = str(self.root)
        if self.words[0] == "append" and not (self.root / "events.jsonl").read_bytes().endswith(
            b"\n"
        ):
            yield ["repair", root, "--yes"]
        if self.words[:2] == ["governed", "coordinator"] and self.words[2] != "init":
            yield ["governed", "coordinator", "step", root]
            yield ["governed", "coordinator", "resync", root]
        elif self.words[0] == "governed":
            yield ["governed", "recover", root]
        elif self.words[0] == "workspaces":
            yield ["workspaces", "repair", root]

    def killed(self, kind: str, at: int) -> None:
        self.fresh()
        run = self.run(kind, at)
        assert run.code == KILLED, run
        self.finish(run)

    def failed(self, kind: str, at: int) -> None:
        self.fresh()
        run = self.run(kind, at)
        assert "TRACEBACK" not in run.err and run.code in (0, 1, 2, 3), run
        assert run.code == 0 or (run.err + run.out).strip(), ("nothing said", run)
        if run.code == 0:
            found = shape(self.root, self.writing)
            assert self.same(found), ("said to be done", differing(found, self.after))
        self.finish(run)

    def same(self, found: Shape | None) -> bool:
        """Whether it is as without a fault; a coordinator's ledger also tells of the fault itself."""
        if self.words[1] == "coordinator" and found and self.after:
            found = found._replace(events=self.after.events)
        return found == self.after


def differing(found: Shape | None, wanted: Shape | None) -> object:
    if found is None or wanted is None:
        return found, wanted
    pairs = zip(Shape._fields, found, wanted, strict=True)
    return [(name, one, other) for name, one, other in pairs if one != other]


def benches(place: Path) -> Iterator[list[Bench]]:
    kept = os.environ.get("ACP_STATE")
    os.environ["ACP_STATE"] = str(place / "state")  # what `look` finds there is the command's
    faults = Faults()
    try:
        yield [Bench(faults, place, writing) for writing in ALL]
    finally:
        faults.close()
        if kept is not None:
            os.environ["ACP_STATE"] = kept


def kills(place: Path, seed: int) -> Iterator[Case]:
    """Killed before each operation, and in the middle of each write."""
    for prepared in benches(place):
        yield from mixed(
            [
                Case(
                    f"{bench.writing.name}: {kind} at operation {at}, {name}",
                    partial(bench.killed, kind, at),
                )
                for bench in prepared
                for kind in ("kill", "tear")
                for at, name in enumerate(bench.changing, 1)
                if (name == "write" if kind == "tear" else name not in _SYNCS)
            ],
            seed,
        )


def errors(place: Path, seed: int) -> Iterator[Case]:
    """Each operation fails, whether it reads or writes; each write takes only a half."""
    for prepared in benches(place):
        yield from mixed(
            [
                Case(
                    f"{bench.writing.name}: {kind} at operation {at}, {name}",
                    partial(bench.failed, kind, at),
                )
                for bench in prepared
                for kind in (*ERRORS, "short")
                for at, name in enumerate(bench.changing if kind == "short" else bench.all, 1)
                if name in ({"write"} if kind == "short" else {*CHANGING, *READING})
            ],
            seed,
        )


KILLS = Campaign("kills", "kill -9 at every file operation of every writing command", kills)
ERRORS_EVERYWHERE = Campaign(
    "errors", "EIO, ENOSPC, EINTR and short writes at every operation of the same", errors
)
