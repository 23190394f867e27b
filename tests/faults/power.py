"""The power goes at any moment of a command that writes, and the disk keeps what was synced.

Afterwards everything can be read, and the same command finishes it; what was acknowledged is there
without anybody doing anything again. The model is `disk`; it notices when any one sync is left out
(`Powerless.bites`), but for those that can be spared (`Powerless.spared`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from acp_core.files import atomic
from tests.faults.campaign import Campaign, Case, mixed
from tests.faults.disk import Disk, Step, Tree
from tests.faults.kills import Bench, benches, differing, shape

MAY_BE_LOST = (
    "/coordination/feedback.md",  # a page that is made anew from the timeline
    "/locks/accept-turn.lock",  # that it was removed: it names a process that is gone
    "/state/governed/states/",  # a copy in the person's own state, known by its digest
    "/state/cycles/",
    "/state/acts/",  # what the person did by acp: the person's own journal
)
"""Parts of paths of what need not survive."""


class Powerless:
    """One command, recorded once; its crashes are acted out in the folder where it ran.

    Attributes:
        steps: the calls of the command.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        bench.fresh()
        self._unchanged = _tree(bench.root.parent)
        ran = bench.run("record")
        assert ran.code == 0, ran
        self.steps = [_step(*each) for each in zip(ran.names, ran.data, strict=True)]
        self._stood: set[bytes] = set()
        bench.fresh()
        disk = Disk(bench.root.parent)
        for step in self.steps:
            disk.take(step)
        self._after = disk.now()

    def crashes(self, without: int = -1) -> Iterator[tuple[int, Tree]]:
        """Each state that the disk may be in, and after how many calls; each state once.

        Args:
            without: a call that is left out.
        """
        self.bench.fresh()
        disk = Disk(self.bench.root.parent)
        seen: set[bytes] = set()
        for done, step in enumerate(self.steps, 1):
            if done - 1 != without:
                disk.take(step)
            for tree in disk.after_power_loss():
                found = _digest(tree, done == len(self.steps))
                if found not in seen:
                    seen.add(found)
                    yield done, tree

    def stands(self, done: int, tree: Tree) -> None:
        """See that acp stands it when the disk is so after ``done`` calls.

        Raises:
            AssertionError: it does not.
        """
        acknowledged = done == len(self.steps)
        found = _digest(tree, acknowledged)
        if found in self._stood:
            return
        if acknowledged:
            lost = [
                path for path, content in self._after.items() if self._is_lost(path, content, tree)
            ]
            assert not lost, ("acknowledged and lost", lost)
        self._act_out(tree)
        if acknowledged:
            self._is_there()
        else:
            self.bench.finish(None)
        self._stood.add(found)

    def _is_lost(self, path: str, content: bytes | None, tree: Tree) -> bool:
        if any(each in path for each in MAY_BE_LOST) or atomic.is_leftover(path.rpartition("/")[2]):
            return False
        return path not in tree or tree[path] != content

    def _is_there(self) -> None:
        bench = self.bench
        left = shape(bench.root, bench.writing)
        if not bench.same(left):
            for words in bench.advised():
                bench.faults.run(*words, env=bench.env)
            left = shape(bench.root, bench.writing)
        assert bench.same(left), ("acknowledged and lost", differing(left, bench.after))

    def _act_out(self, tree: Tree) -> None:
        """Make the files of a state, beginning with those of before the command."""
        self.bench.fresh()
        for path in sorted(self._unchanged.keys() - tree.keys(), reverse=True):
            (Path(path).rmdir if self._unchanged[path] is None else Path(path).unlink)()
        for path, content in tree.items():
            if path in self._unchanged and self._unchanged[path] == content:
                continue
            if content is None:
                Path(path).mkdir(exist_ok=True)
            else:
                Path(path).write_bytes(content)

    def spared(self, number: int) -> str:
        """Why a sync could be left out without harm; "" for one that could not.

        Only names can be spared: of a file that is removed, since nothing reads it again; of a lock
        of who writes now; and those that a later sync of the same folder brings to the disk, too.
        What somebody else wrote before (a document that an event names) is on this disk already.
        """
        step, before = self.steps[number], self.steps[number - 1]
        written = any(step.path in each[1:3] for each in self.steps[:number])
        if self._unchanged.get(step.path) is not None and not written:
            return "written before"
        if before.path == step.path:
            return ""  # a file's content
        if step.path.endswith("/locks"):
            return "a lock"
        if before.word == "unlink" and not atomic.is_leftover(before.path.rpartition("/")[2]):
            return "a file is removed"
        later = self.steps[number + 1 :]
        return "brought later" if ("sync", step.path) in [each[:2] for each in later] else ""

    def bites(self, without: int) -> bool:
        """Whether the model notices that a sync is left out."""
        for done, tree in self.crashes(without):
            try:
                self.stands(done, tree)
            except AssertionError:
                return True
        return False


def _step(call: str, data: str) -> Step:
    word, path, *other = call.split("\0")
    at, _, content = data.partition(" ")
    return Step(word, path, "".join(other), bytes.fromhex(content), int(at or 0))


def _tree(root: Path) -> Tree:
    disk = Disk(root)
    return next(disk.after_power_loss())


def _digest(tree: Tree, acknowledged: bool) -> bytes:
    digest = hashlib.sha256(b"%d" % acknowledged)
    for path, content in sorted(tree.items()):
        digest.update(repr((path, content)).encode())
    return digest.digest()


def losses(place: Path, seed: int) -> Iterator[Case]:
    """Every state after every call of every command."""
    for prepared in benches(place):
        cases = []
        for bench in prepared:
            powerless = Powerless(bench)
            for number, (done, tree) in enumerate(powerless.crashes()):
                label = f"{bench.writing.name}: state {number}, after {powerless.steps[done - 1]}"
                cases.append(Case(label, partial(powerless.stands, done, tree)))
        yield from mixed(cases, seed)


POWER = Campaign("power", "the power goes after any call of every writing command", losses)
