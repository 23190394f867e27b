"""One document: rendered, as it stands in the file, what changed in it, or its JSON as a tree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import Static
from textual.worker import get_current_worker

from acp_core.model import Document, DocumentText
from acp_core.model.format import age, count, grouped, size
from acp_tui import keys
from acp_tui.text import MUTED, join, line, plain, width
from acp_tui.widgets.document_pages import (
    ChangesPage,
    Edit,
    Marked,
    Page,
    RawPage,
    TextView,
    changed_lines,
    compare,
    lines_of,
    removed_before,
)
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


RENDERED_UP_TO = 400_000
"""Documents with more characters are shown as they stand in the file."""


class Mode(Enum):
    """How a document is shown."""

    RENDERED = "rendered"
    RAW = "raw"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class Laid:
    """A document laid out: made in a thread, shown on the interface's."""

    page: Page | None
    mode: Mode
    edits: tuple[Edit, ...]
    why_raw: str = ""
    tree: Node | None = None


def lay_out(document: Document, text: str, seen: str | None, mode: Mode, width: int) -> Laid:
    """Make the page of a document for a width; slow for a long one: for a thread.

    Args:
        document: What is shown.
        text: Its text.
        seen: The text that was last seen, where it was seen before.
        mode: The mode that is wanted; what a document cannot be shown in falls back to raw.
        width: Of the view.
    """
    new = lines_of(text)
    old = lines_of(seen) if seen is not None and seen != text else []
    edits = compare(old, new) if seen is not None and seen != text else ()
    if mode is Mode.CHANGES and edits:
        return Laid(ChangesPage(old, new, edits, width), Mode.CHANGES, edits)
    why = ""
    if mode is Mode.RENDERED and document.kind == "markdown":
        if len(text) > RENDERED_UP_TO:
            why = "too long to render"
        else:
            from acp_tui.widgets.markdown import (
                MarkdownPage,
                TooDeep,
                parse,  # late: by the thread
            )

            try:
                return Laid(MarkdownPage(parse(text), width), Mode.RENDERED, edits)
            except TooDeep:
                why = "nested too deep to render"
    elif mode is Mode.RENDERED and document.kind == "json":
        try:
            return Laid(None, Mode.RENDERED, edits, tree=read(text))
        except NotJson:
            why = "no JSON"
    return Laid(RawPage(text, width), Mode.RAW, edits, why)


class Reading(NamedTuple):
    """A document as it stands in the last Snapshot, and its text.

    ``text`` is None while it is loaded; ``seen`` is the text when it was last seen, where it was.
    ``since`` says in words what the changes are compared with. ``first_change`` asks to begin at the
    first change.
    """

    document: Document
    text: DocumentText | None = None
    seen: str | None = None
    since: str = "since your last visit"
    first_change: bool = False


class DocumentView(Vertical):
    """A line about the document, and its text."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.DOCUMENT]

    DEFAULT_CSS = """
    DocumentView {
        & #document-line { height: 1; padding: 0 1; }
        & #document-empty { height: 1fr; padding: 1 2; display: none; color: $text-muted; }
        &.-empty #document-empty { display: block; }
        & StateTree { display: none; }
        &.-tree StateTree { display: block; }
        &.-tree TextView { display: none; }
        &.-empty TextView, &.-empty StateTree { display: none; }
    }
    """

    @dataclass
    class Seen(Message):
        """The user has seen the document as it is now."""

        document: Document

    @dataclass
    class OutlineWanted(Message):
        """The user wants to choose a heading."""

        text: DocumentText

    @dataclass
    class EditWanted(Message):
        """The user wants the document in an editor, at a line."""

        document: Document
        line: int

    @dataclass
    class PathWanted(Message):
        """The user wants the document's path in the clipboard."""

        document: Document

    reading: var[Reading | None] = var(None, init=False)
    """What is shown; what differs from the text that was seen is marked."""
    now: var[datetime | None] = var(None, init=False)
    """The time."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view = TextView(id="document-text")
        self.tree_view = StateTree(id="document-tree")
        self.mode = Mode.RENDERED
        self.past = False  # whether it shows as it was: nothing can be edited or marked as seen
        self._empty_because = ""
        self._laid: Laid | None = None
        self._line = Content("")
        self._jump: tuple[int, bool] | None = None
        self._places: dict[str, int] = {}  # the line on top of each document that was left

    def compose(self) -> ComposeResult:
        yield Static(id="document-line", markup=False)
        yield Static(id="document-empty", markup=False)
        yield self.view
        yield self.tree_view

    # --- what is shown ---------------------------------------------------------------------

    @property
    def document(self) -> Document | None:
        """The document that is shown."""
        return self.reading.document if self.reading is not None else None

    @property
    def text(self) -> DocumentText | None:
        """Its text, once it is loaded."""
        return self.reading.text if self.reading is not None else None

    def watch_reading(self, before: Reading | None, reading: Reading | None) -> None:
        """Show a document, another one at the line at which it was left."""
        if reading is None:
            return
        if before is None or before.document.id != reading.document.id:
            self._leave(before)
            self._jump = (self._places.get(reading.document.id, 1), False)
        self._explain_emptiness(reading)
        if before is None or self._laid is None or before[1:] != reading[1:]:
            self._lay_out()
        self._update_line()

    def _leave(self, before: Reading | None) -> None:
        """Another document is going to be shown: remember where this one was left."""
        if before is not None:
            self._places[before.document.id] = self.view.top_line
        self._laid = self.tree_view.root = None
        self.view.clear_target()
        self.view.marked = Marked()
        if self.mode is Mode.CHANGES:
            self.mode = Mode.RENDERED

    def watch_now(self) -> None:
        """The time went on."""
        self._update_line()

    def on_resize(self) -> None:
        """What fits on the line about the document depends on the width."""
        self._update_line()

    def go_to(self, line: int, *, raw: bool = False) -> None:
        """Scroll to a line; in the text as it stands in the file where ``raw``."""
        self._jump = (line, True)
        tree = self.document is not None and self.document.kind == "json"
        if raw or tree:
            self.mode = Mode.RAW
        elif self.mode is Mode.CHANGES:
            self.mode = Mode.RENDERED
        self._lay_out()

    def _explain_emptiness(self, reading: Reading) -> None:
        document, text = reading.document, reading.text
        words = ""
        if document.state != "present":
            words = document.note or f"{document.title} does not exist ({document.state})."
        elif text is None:
            words = ""  # it comes within a moment: a word would only flicker
        elif not text.text.strip():
            words = text.note or (
                f"{document.title} is empty. The text appears here as soon as it is written."
            )
        if words != self._empty_because:
            self._empty_because = words
            self.set_class(bool(words), "-empty")
            self.query_one("#document-empty", Static).update(plain(words), layout=False)

    def _lay_out(self) -> None:
        width = self.view.page_width or self.tree_view.size.width
        reading = self.reading
        if reading is not None and reading.text is not None and width:
            self._make(reading.document, reading.text.text, reading.seen, self.mode, width)

    @work(thread=True, exclusive=True, group="document-page", exit_on_error=False)
    def _make(
        self, document: Document, text: str, seen: str | None, mode: Mode, width: int
    ) -> None:
        worker = get_current_worker()
        laid = lay_out(document, text, seen, mode, width)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._made, document.id, text, laid)

    def _made(self, document: str, text: str, laid: Laid) -> None:
        if self.document is None or self.document.id != document:
            return
        if self.text is None or self.text.text is not text:
            return
        before, self._laid = self._laid, laid
        if before is None or bool(before.edits) != bool(laid.edits):
            self.refresh_bindings()  # whether there are changes to show
        self.set_class(laid.tree is not None, "-tree")
        if laid.tree is not None:
            self.tree_view.root = laid.tree
        else:
            edits = laid.edits
            self.view.marked = Marked(laid.page, changed_lines(edits), removed_before(edits))
        if self._jump is not None:
            line, target = self._jump
            self._jump = None
            self.view.go_to(line, target=target)
        if self.reading is not None and self.reading.first_change and laid.edits:
            self.view.go_to(1, target=False)
            self.view.go_to_change(1)
        self._update_line()

    @on(TextView.Resized)
    def _resized(self, message: TextView.Resized) -> None:
        message.stop()
        self._lay_out()

    @property
    def active_view(self) -> TextView | StateTree:
        """What takes the keys now."""
        return self.tree_view if self.has_class("-tree") else self.view

    # --- the line on top -------------------------------------------------------------------

    def _update_line(self) -> None:
        document, laid, now = self.document, self._laid, self.now
        if document is None or now is None:
            return
        parts: list[Content] = [line(document.id, MUTED)]
        rendered = document.kind in ("markdown", "json")
        if laid is not None and laid.mode is not Mode.RENDERED and rendered:
            parts.append(line(laid.why_raw or laid.mode.value, "$text-accent"))
        if laid is not None and laid.edits:
            since = self.reading.since if self.reading is not None else ""
            parts.append(line(f"{_changes(laid.edits)} {since}", "$text-accent"))
        if self.text is not None and self.text.note:
            parts.append(line(self.text.note, "$text-warning"))
        if document.late:
            parts.append(join(("! ", "$text-warning"), line(document.late, "$text-warning")))
        elif document.note:
            parts.append(line(document.note, MUTED))
        if document.changed is not None:
            parts.append(line(f"changed {age(document.changed, now)} ago", MUTED))
        if document.size is not None:
            parts.append(line(size(document.size), MUTED))
        while (
            len(parts) > 1 and sum(part.cell_length + 3 for part in parts) - 3 > self.size.width - 2
        ):
            parts.pop()  # the last ones matter least
        content = Content(" · ").join(parts)
        if not content.is_same(self._line):
            self._line = content
            self.query_one("#document-line", Static).update(content, layout=False)

    # --- keys ------------------------------------------------------------------------------

    def action_toggle_raw(self) -> None:
        """Show the document as it stands in the file, or rendered again; at the same line."""
        self.mode = Mode.RENDERED if self.mode is Mode.RAW else Mode.RAW
        self._lay_out()

    def action_toggle_changes(self) -> None:
        """Show what changed since it was last seen, or all of it again."""
        if self.mode is Mode.CHANGES:
            self.mode = Mode.RENDERED
        elif self._laid is not None and self._laid.edits:
            self.mode = Mode.CHANGES
        self._lay_out()

    def action_change(self, by: int) -> None:
        """Go to the next, or the previous, change."""
        self.view.go_to_change(by)

    def action_seen(self) -> None:
        """Mark nothing as changed anymore."""
        if self.document is not None:
            if self.mode is Mode.CHANGES:
                self.mode = Mode.RENDERED
            self.post_message(self.Seen(self.document))

    def action_outline(self) -> None:
        """Choose a heading to go to."""
        if self.text is not None and self.text.headings:
            self.post_message(self.OutlineWanted(self.text))

    def action_edit(self) -> None:
        """Open the document in an editor."""
        if self.document is not None:
            self.post_message(self.EditWanted(self.document, self.view.current_line))

    def action_copy_path(self) -> None:
        """Copy the document's path."""
        if self.document is not None:
            self.post_message(self.PathWanted(self.document))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim the keys that mean nothing for this document."""
        changed = self._laid is not None and bool(self._laid.edits)
        if self.past and action in ("seen", "edit"):
            return False
        if action in ("toggle_changes", "change", "seen"):
            return changed or self.mode is Mode.CHANGES or None
        if action == "outline":
            return bool(self.text is not None and self.text.headings) or None
        if action == "toggle_raw":
            kind = self.document.kind if self.document is not None else ""
            return kind in ("markdown", "json") or None
        if action in ("edit", "copy_path"):
            return bool(self.document is not None and self.document.path) or None
        return True


def _changes(edits: tuple[Edit, ...]) -> str:
    added = sum(len(edit.new) for edit in edits)
    removed = sum(len(edit.old) for edit in edits)
    parts = [f"+{added}" if added else "", f"-{removed}" if removed else ""]
    return " ".join(filter(None, parts))
