"""Help: what can be done on the screen beneath now, how to move, what the signs mean, all keys."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

from acp_core.cli import signs
from acp_core.model import PhaseState, Severity, Tone, Verdict
from acp_core.person.paths import config_folder
from acp_tui import keys, text
from acp_tui.widgets import fleet_table
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.pane import Typed

if TYPE_CHECKING:
    from acp_tui.app import AcpApp

KEY, ID = 13, 28
"""Cells of the keys before what they do, and of the ids before the keys."""

HARD = "\u00a0"
"""A blank at which no line is cut."""

WIDEST, FRAME = 150, 8
"""Cells of the whole frame, as its style says; of what is around the text in it."""

TWO_COLUMNS = 100
"""From how many columns of the screen on the sections stand in two."""

GAP = 2
"""Cells beside each of two columns."""

MOVING = (
    "list.", "scroll.", "collaboration.left", "collaboration.right", "collaboration.next_",
    "collaboration.previous_", "collaboration.document",
)  # fmt: skip
"""How the ids begin of keys that only go somewhere on the screen."""

EVERYWHERE = "app."

PANES = tuple(f"pane('{name}')" for name in ("timeline", "documents", "findings", "next"))


class Entry(NamedTuple):
    """A line of help: keys, or a sign's place, what they do, and more about it."""

    key: str
    words: str
    about: str = ""

    def holds(self, words: Sequence[str]) -> bool:
        """Whether all these words (in lower case) stand in it."""
        whole = " ".join(self).lower()
        return all(word in whole for word in words)


class Section(NamedTuple):
    """Lines under a title."""

    title: str
    entries: tuple[Entry, ...]


class HelpScreen(ModalScreen[None]):
    """The help for another screen, made from its bindings as they are now."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*keys.HELP, *keys.PICK]
    app: AcpApp

    def __init__(self, beneath: Screen[Any]) -> None:
        super().__init__()
        fix = getattr(beneath, "fix_words", lambda: None)()
        active = list(beneath.active_bindings.values())
        self._sections = sections(active, beneath.app.get_key_display, fix)
        self._words = ""

    def compose(self) -> ComposeResult:
        """The sections, which scroll, below the line in which words are typed."""
        with VerticalScroll(id="frame"):
            yield Typed(placeholder="search: words of a key or of what it does", id="help-words")
            with Horizontal():
                yield Static(id="help-left")
                yield Static(id="help-right")
            yield Static(id="help-ids")
        yield KeyLine()

    def on_mount(self) -> None:
        """Let the arrow keys scroll."""
        self._draw()
        self.query_one("#frame").focus()

    def on_resize(self) -> None:
        """Use the room that there is now."""
        self._draw()

    def _draw(self) -> None:
        columns = self.app.size.width
        left, right, ids = self._sections
        words = self._words.lower().split()
        two = columns >= TWO_COLUMNS
        room = min(WIDEST, columns * 19 // 20) - FRAME
        cells = room // 2 - GAP if two else room
        first, second = _content(left, words, cells, KEY), _content(right, words, cells, KEY)
        both = (
            text.join(first, "\n", second)
            if first.plain and second.plain
            else text.join(first, second)
        )
        self.query_one("#help-left", Static).update(first if two else both)
        self.query_one("#help-right", Static).update(second if two else "")
        self.query_one("#help-right").display = two
        last = _content(ids, words, room, ID)
        if not (words or last.plain) or (words and not (both.plain or last.plain)):
            last = text.line("No help entry contains these words.", text.MUTED)
        self.query_one("#help-ids", Static).update(last)

    # --- searching -------------------------------------------------------------------------

    def action_search(self) -> None:
        """Type words that a line must hold."""
        typed = self.query_one(Typed)
        typed.display = True
        typed.focus()

    @on(Input.Changed)
    def _typed(self, message: Input.Changed) -> None:
        self._words = message.value
        self._draw()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.query_one("#frame").focus()

    @on(Typed.Cancelled)
    def _cancelled(self) -> None:
        typed = self.query_one(Typed)
        typed.value, typed.display = "", False
        self.query_one("#frame").focus()

    def action_close(self) -> None:
        """Leave."""
        self.dismiss()


def sections(
    active: Iterable[ActiveBinding], named: Callable[[Binding], str], fix: tuple[str, str] | None
) -> tuple[list[Section], list[Section], list[Section]]:
    """What stands on the left, on the right, and below both.

    Args:
        active: The bindings of the screen that help is for.
        named: What the key of a binding is called.
        fix: What the key that fixes does now, and why; None where nothing is to be fixed.
    """
    by_id: dict[str, list[Binding]] = {}
    off: set[str] = set()
    for entry in active:
        binding = entry.binding
        if binding.id and binding.description:
            by_id.setdefault(binding.id, []).append(binding)
            if not entry.enabled:
                off.add(binding.id)
    usable = [bindings for id, bindings in by_id.items() if id not in off]
    here, moving, everywhere = list[Entry](), list[Entry](), list[Entry]()
    for bindings in sorted(usable, key=lambda bindings: keys.rank(bindings[0])):
        id, binding = bindings[0].id or "", bindings[0]
        pressed = _pressed(bindings, named)
        if binding.action in PANES or id.startswith("card.verdict_"):
            continue
        made = Entry(pressed, binding.description, binding.tooltip or "")
        if id == "act.remedy":
            if fix is None:
                continue
            made = Entry(pressed, f"{binding.description}: {fix[0]}", fix[1])
        into = (
            moving if id.startswith(MOVING) else everywhere if id.startswith(EVERYWHERE) else here
        )
        _add(into, made)
    everywhere.append(Entry("^p", "Palette", "Find any action, pane or collaboration by name"))
    digits = Entry("1, 2, 3 …", "Go to a pane", "On a card: give the verdict with this number")
    signs = [
        Entry(place, "  ".join(f"{sign} {words}".replace(" ", HARD) for sign, words in each))
        for place, each in LEGEND
    ]
    ids = [
        Entry(id, f"{_pressed(bindings, named)}  {bindings[0].description}")
        for id, bindings in sorted(by_id.items())
    ]
    return (
        [Section("What you can do here now", tuple(here))],
        [
            Section("Move around", (digits, *moving)),
            Section("On every screen", tuple(everywhere)),
            Section("Signs", tuple(signs)),
        ],
        [Section(f"Other keys: write the id in {_config()} and restart acp", (
            Entry("[keys]", '"fleet.open" = "o,enter"'), *ids))],
    )  # fmt: skip


def _config() -> str:
    return text.safe_line(str(config_folder() / "config.toml"))


def _pressed(bindings: Iterable[Binding], named: Callable[[Binding], str]) -> str:
    return ", ".join(dict.fromkeys(named(each) for each in bindings))


def _add(entries: list[Entry], made: Entry) -> None:
    """Add a line; where there is one for other keys that do the same, add the keys to it."""
    for place, entry in enumerate(entries):
        if entry.words == made.words:
            about = entry.about or made.about
            entries[place] = Entry(f"{entry.key}, {made.key}", entry.words, about)
            return
    entries.append(made)


def _content(sections: Iterable[Section], words: Sequence[str], cells: int, indent: int) -> Content:
    parts: list[text.Part] = []
    for title, entries in sections:
        shown = [entry for entry in entries if entry.holds(words)]
        if not shown:
            continue
        parts.append((f"{chr(10) if parts else ''}{title}\n", "bold $text-accent"))
        for entry in shown:
            parts += _lines(entry, cells, indent)
    return text.join(*parts)


def _lines(entry: Entry, cells: int, indent: int) -> list[text.Part]:
    """The keys, then what they do, and in the same lines more about it."""
    key = text.fit(entry.key, indent - 1) + " "
    whole = f"{entry.words}  {entry.about}" if entry.about else entry.words
    first, *rest = textwrap.wrap(whole, max(20, cells - indent)) or [""]
    cut = len(entry.words) if len(first) > len(entry.words) else len(first)
    parts: list[text.Part] = [(key, "$text-accent"), _soft(first[:cut])]
    parts.append((_soft(first[cut:]) + "\n", text.MUTED))
    below = text.MUTED if entry.about else ""
    return [*parts, *((f"{'':{indent}}{_soft(line)}\n", below) for line in rest)]


def _soft(words: str) -> str:
    return words.replace(HARD, " ")


_TONES = {
    Tone.START: "started",
    Tone.SUBMIT: "submitted",
    Tone.REVIEW: "reviewed",
    Tone.REVISE: "revised",
    Tone.DECIDE: "decided, classified",
    Tone.ACCEPT: "accepted",
    Tone.PASS: "passed a check",
    Tone.DONE: "finished",
    Tone.BLOCKED: "blocked",
    Tone.OTHER: "anything else",
}

LEGEND: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("fleet", fleet_table.LEGEND),
    (
        "phases",
        (
            (signs.PHASE[PhaseState.DONE], "done"),
            (signs.PHASE[PhaseState.CURRENT], "current"),
            (signs.PHASE[PhaseState.AHEAD], "ahead"),
            (signs.PHASE[PhaseState.SKIPPED], "skipped"),
        ),
    ),
    (
        "events",
        (
            *((signs.TONE[tone], words) for tone, words in _TONES.items()),
            ("✗", "illegal"),
            ("↳", "replies to"),
            ("•", "new since your last visit"),
        ),
    ),
    (
        "findings",
        tuple((signs.SEVERITY[severity], severity.value) for severity in Severity),
    ),
    (
        "files",
        (
            (signs.VERDICT[Verdict.VALID], "valid"),
            (signs.VERDICT[Verdict.INVALID], "invalid"),
            (signs.VERDICT[Verdict.UNKNOWN], "not validated"),
        ),
    ),
    (
        "participants",
        (("●", "has the turn"), ("○", "waits")),
    ),
    (
        "everywhere",
        ((signs.NEED, "needs a person"), ("❯", "selected"), ("…", "cut: enter shows all")),
    ),
)
"""Where signs stand, and each sign there with its meaning."""
