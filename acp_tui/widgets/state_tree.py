"""A JSON document as a tree: what is inside of what, folded and unfolded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from acp_core.model.format import count, grouped
from acp_tui import keys
from acp_tui.text import width
from acp_tui.widgets.lines import Row
from acp_tui.widgets.row_list import Item, RowList

OPEN, FOLDED, LEAF = "▾ ", "▸ ", "  "
CHILDREN = 1_000
"""How many children of one node are shown at most."""
DEEPEST = 200
"""How many levels a document may have to be shown as a tree."""
UNFOLDED = 200
"""A document with at most so many values is shown unfolded."""

Path = tuple[int, ...]
"""Which child of which child ...: places, since the names in an object may repeat."""


class NotJson(ValueError):
    """The text is no JSON, or nested too deep to be read."""


@dataclass(slots=True)
class Node:
    """A value: ``children`` are those of an object or a list, ``size`` counts all below, and itself."""

    name: str
    value: object
    children: list[Node] = field(default_factory=list)
    size: int = 1


class _Pairs(list[tuple[str, object]]):
    """An object as its pairs: a name that stands twice must show twice."""


def read(text: str) -> Node:
    """The tree of a JSON text. Slow for a long one: for a thread.

    Raises:
        NotJson: it is none, or deeper than `DEEPEST`.
    """
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None
    return _node("", value, 0)


def _node(name: str, value: object, depth: int) -> Node:
    if depth > DEEPEST:
        raise NotJson(f"nested deeper than {DEEPEST} levels")
    node = Node(name, value)
    if isinstance(value, _Pairs):
        node.children = [_node(key, child, depth + 1) for key, child in value]
    elif isinstance(value, list):
        node.children = [_node(str(n), child, depth + 1) for n, child in enumerate(value)]
    node.size = 1 + sum(child.size for child in node.children)
    return node


class StateTree(RowList):
    """The tree; enter or a click folds and unfolds what is selected."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.TREE]

    @dataclass
    class CopyWanted(Message):
        """The user wants a value in the clipboard, as JSON."""

        what = "the value as JSON"

        text: str

    root: var[Node | None] = var(None, init=False, always_update=True)
    """The tree of a document; None between one document and another.

    What is unfolded stays so in a newer tree of the same document.
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(empty="The document is empty.", id=id)
        self._unfolded: set[Path] = set()
        self._visible: list[tuple[Path, Node]] = []

    def watch_root(self, before: Node | None, root: Node | None) -> None:
        """Show a document's tree."""
        if root is None:
            return
        if before is None:
            self.select(None)
            self._unfolded = {()}
            if root.size <= UNFOLDED:
                self._unfolded = {path for path, node in _all(root) if node.children}
        self._draw(root)

    def _draw(self, root: Node) -> None:
        self._visible = list(_below_unfolded(root, self._unfolded))
        self.items = tuple(self._item(path, node) for path, node in self._visible)

    def _item(self, path: Path, node: Node) -> Item:
        sign = LEAF if not node.children else OPEN if path in self._unfolded else FOLDED
        indent = "  " * (len(path) - 1)
        pieces: list[tuple[str, str]] = [(indent, ""), (sign, "muted")]
        pieces.append((f"{node.name}  ", "primary"))
        pieces += describe(node)
        text = node.value if isinstance(node.value, str) else ""
        details = ((text, ""),) if width(text) > 40 else ()
        return Item(tuple(pieces), details, indent=len(indent) + 4, key="/".join(map(str, path)))

    def action_choose(self) -> None:
        """Fold or unfold the selected value."""
        self.action_fold()

    def action_fold(self) -> None:
        """Fold or unfold the selected value."""
        if self.cursor is None:
            return
        path, node = self._visible[self.cursor]
        if node.children and self.root is not None:
            self._unfolded ^= {path}
            self._draw(self.root)

    def action_unfold_all(self) -> None:
        """Unfold everything, or fold it again."""
        if self.root is None:
            return
        every = {path for path, node in _all(self.root) if node.children}
        self._unfolded = {()} if every <= self._unfolded else every
        self._draw(self.root)

    def action_copy(self) -> None:
        """Copy the selected value as JSON."""
        if self.cursor is not None:
            value = _plain(self._visible[self.cursor][1])
            self.post_message(self.CopyWanted(json.dumps(value, ensure_ascii=False, indent=2)))


def describe(node: Node) -> Row:
    """A value in a few words and in its style."""
    value = node.value
    if isinstance(value, _Pairs):
        return ((f"{{{count(len(value), 'field')}}}" if value else "{}", "muted"),)
    if isinstance(value, list):
        return ((f"[{count(len(value), 'item')}]" if value else "[]", "muted"),)
    if isinstance(value, str):
        return ((value if value else '""', "" if value else "muted"),)
    return ((json.dumps(value), "accent"),)


def _below_unfolded(root: Node, unfolded: set[Path]) -> Iterator[tuple[Path, Node]]:
    stack = _below((), root)[::-1]
    while stack:
        path, node = stack.pop()
        yield path, node
        if path in unfolded:
            stack += _below(path, node)[::-1]


def _below(path: Path, node: Node) -> list[tuple[Path, Node]]:
    nodes = [((*path, i), child) for i, child in enumerate(node.children[:CHILDREN])]
    if len(node.children) > CHILDREN:
        rest = Node("…", f"{grouped(len(node.children) - CHILDREN)} more, not shown")
        nodes.append(((*path, CHILDREN), rest))
    return nodes


def _all(root: Node) -> Iterator[tuple[Path, Node]]:
    stack: list[tuple[Path, Node]] = [((), root)]
    while stack:
        path, node = stack.pop()
        yield path, node
        stack += [((*path, i), child) for i, child in enumerate(node.children)]


def _plain(node: Node) -> object:
    if isinstance(node.value, _Pairs):
        return {child.name: _plain(child) for child in node.children}
    if isinstance(node.value, list):
        return [_plain(child) for child in node.children]
    return node.value
