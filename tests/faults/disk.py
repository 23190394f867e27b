"""What a disk may hold after a loss of power: the strictest that POSIX allows.

A file's content is on the disk after a sync of the file, a name after a sync of its folder. What was
not synced is there or not, each part by itself and in any order, and a write may be torn. A rename
within one folder is whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

Tree = dict[str, bytes | None]
"""The files of a disk by their path, with their content; None for a folder."""


class Step(NamedTuple):
    """One call: ``word`` as `recorder` has it; ``data`` goes to byte ``at``, or is cut off there."""

    word: str
    path: str
    other: str = ""
    data: bytes = b""
    at: int = 0

    def __str__(self) -> str:
        return " ".join(filter(None, (self.word, self.path, self.other)))


class _Change(NamedTuple):
    """What is not on the disk yet: names of a folder, or bytes of a file (None: cut there)."""

    number: int
    names: tuple[tuple[str, int | None], ...] = ()
    at: int = 0
    data: bytes | None = None


@dataclass
class _Node:
    """A file (with ``content``) or a folder (with ``names``), and what is not synced of it."""

    content: bytes | None = None
    names: dict[str, int] = field(default_factory=dict)
    pending: list[_Change] = field(default_factory=list)

    def as_of(self, kept: frozenset[int], torn: int = -1) -> _Node:
        """What it is with these changes only; of ``torn`` with its first half."""
        content, names = self.content, dict(self.names)
        for change in self.pending:
            if change.number not in kept:
                continue
            for name, number in change.names:
                names.pop(name, None)
                if number is not None:
                    names[name] = number
            if content is not None and not change.names:
                content = _written(content, change, change.number == torn)
        return _Node(content, names)


def _written(content: bytes, change: _Change, torn: bool) -> bytes:
    if change.data is None:
        return content[: change.at].ljust(change.at, b"\0")
    data = change.data[: len(change.data) // 2] if torn else change.data
    return content[: change.at].ljust(change.at, b"\0") + data + content[change.at + len(data) :]


class Disk:
    """A disk with a folder on it of which everything was synced."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._nodes: dict[int, _Node] = {}
        self._changes = 0
        self._top = self._scan(root)

    def _scan(self, path: Path) -> int:
        if path.is_dir():
            names = {
                each.name: self._scan(each) for each in path.iterdir() if not each.is_symlink()
            }
            return self._add(_Node(names=names))
        return self._add(_Node(path.read_bytes()))

    def _add(self, node: _Node) -> int:
        self._nodes[len(self._nodes)] = node
        return len(self._nodes) - 1

    def take(self, step: Step) -> None:
        """Carry out one call; what happens elsewhere is left out."""
        if step.path != self._root and not step.path.startswith(f"{self._root}/"):
            return
        getattr(self, f"_{step.word}")(step)

    def _find(self, path: str) -> int | None:
        number: int | None = self._top
        for name in path[len(self._root) :].split("/")[1:]:
            node = self._nodes[number] if number is not None else None
            number = self._now(node).names.get(name) if node else None
        return number

    def _now(self, node: _Node) -> _Node:
        return node.as_of(frozenset(each.number for each in node.pending))

    def _name(self, *names: tuple[str, int | None]) -> None:
        """Give or take names, all in one folder, in one change."""
        folder = self._find(names[0][0].rpartition("/")[0])
        assert folder is not None, names
        self._changes += 1
        last = tuple((path.rpartition("/")[2], number) for path, number in names)
        self._nodes[folder].pending.append(_Change(self._changes, last))

    def _create(self, step: Step) -> None:
        self._name((step.path, self._add(_Node(b""))))

    def _mkdir(self, step: Step) -> None:
        self._name((step.path, self._add(_Node())))

    def _write(self, step: Step) -> None:
        if self._find(step.path) is None:
            self._create(step)
        self._content(step, step.data)

    def _cut(self, step: Step) -> None:
        self._content(step, None)

    def _content(self, step: Step, data: bytes | None) -> None:
        number = self._find(step.path)
        assert number is not None, step
        self._changes += 1
        self._nodes[number].pending.append(_Change(self._changes, at=step.at, data=data))

    def _rename(self, step: Step) -> None:
        moved = (step.other, self._find(step.path)), (step.path, None)
        if step.path.rpartition("/")[0] == step.other.rpartition("/")[0]:
            self._name(*moved)
        else:
            for each in moved:
                self._name(each)

    def _link(self, step: Step) -> None:
        self._name((step.other, self._find(step.path)))

    def _unlink(self, step: Step) -> None:
        self._name((step.path, None))

    def _sync(self, step: Step) -> None:
        number = self._find(step.path)
        if number is not None:
            self._nodes[number] = self._now(self._nodes[number])

    def now(self) -> Tree:
        """What programs see."""
        pending = [each for node in self._nodes.values() for each in node.pending]
        return self._tree(frozenset(each.number for each in pending))

    def after_power_loss(self) -> Iterator[Tree]:
        """Every state worth looking at: of what is not synced nothing, all, one kind, one by one."""
        pending = [each for node in self._nodes.values() for each in node.pending]
        everything = frozenset(each.number for each in pending)
        names = frozenset(each.number for each in pending if each.names)
        writes = [each.number for each in pending if each.data]
        kept = [frozenset(), everything, names, everything - names]
        for number in everything:
            kept += [everything - {number}, frozenset({number})]
        yield from map(self._tree, kept)
        for number in writes:
            yield self._tree(everything, number)

    def _tree(self, kept: frozenset[int], torn: int = -1) -> Tree:
        return dict(self._walk(self._top, self._root, kept, torn))

    def _walk(
        self, number: int, path: str, kept: frozenset[int], torn: int
    ) -> Iterable[tuple[str, bytes | None]]:
        node = self._nodes[number].as_of(kept, torn)
        yield path, node.content
        for name, below in node.names.items():
            yield from self._walk(below, f"{path}/{name}", kept, torn)
