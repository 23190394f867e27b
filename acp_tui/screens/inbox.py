"""The inbox: what needs the person, and what is asked and unsettled, in all collaborations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import ActiveBinding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from acp_core.cli.signs import NEED
from acp_core.diagnosis.personal_table import ACK
from acp_core.fleet.overview import FleetEntry
from acp_core.fleet.search import fold
from acp_core.model import Matter, Outcome, OutcomeState, Snapshot, Target
from acp_core.model.format import age, count, need_case
from acp_core.model.matter import Kind
from acp_core.model.text import clean_line
from acp_tui import keys
from acp_tui.actions.availability import Labels
from acp_tui.actions.collaboration_actions import LABEL, NO_ACTION
from acp_tui.screens.fleet import Arranging
from acp_tui.text import MUTED, Part, join
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.panel_view import Count, PanelFilter
from acp_tui.widgets.row_list import Item, RowList

if TYPE_CHECKING:
    from acp_core.fleet import Batch
    from acp_tui.app import AcpApp

_SIGNS = {
    "need": (NEED, "error"),
    "blocking": ("■", "error"),
    "unresolved": ("?", "warning"),
    "question": ("?", "accent"),
}
EMPTY = "Nothing needs you, and no questions are open. New items appear here automatically."

NO_MATCH = "No item contains these words; esc shows all."


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in the inbox: a need or a question, and the collaboration that it is of.

    ``name`` is what the fleet calls that collaboration.
    """

    snapshot: Snapshot
    name: str
    what: Matter

    @property
    def key(self) -> str:
        """What finds it again in a newer list."""
        return f"{self.snapshot.key}\0{self.what.key}"

    @property
    def kind(self) -> str:
        """``need``, or the question's kind."""
        return self.what.code if self.what.kind is Kind.QUESTION else "need"

    def contains(self, words: str) -> bool:
        """Whether every word stands in it, or in the name of its collaboration, in whatever case."""
        text = fold(
            f"{self.name} {self.kind} {self.what.about.participant or ''} {self.what.sentence}"
        )
        return all(word in text for word in fold(words).split())

    @property
    def target(self) -> Target:
        """Where to look."""
        if self.what.kind is Kind.QUESTION:
            return Target(document=self.what.about.document, line=self.what.about.line)
        key = self.what.key
        cause = next((cause for cause in self.snapshot.causes if cause.key == key), None)
        if cause is not None and cause.about.document is not None:
            return Target(document=cause.about.document, line=cause.about.line)
        return Target()


class InboxScreen(Screen[None]):
    """A list over everything; what is selected can be answered, acknowledged or put off."""

    CSS_PATH = "inbox.tcss"
    AUTO_FOCUS = "RowList"
    BINDINGS: ClassVar[list[BindingType]] = [*keys.INBOX]
    app: AcpApp

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, Entry] = {}
        self._fleet: list[FleetEntry] = []  # in its order
        self._arranging = Arranging(self, self._arranged)
        self._words = ""  # of the filter
        self._first = ""  # selected by itself, as the person selected nothing yet

    def compose(self) -> ComposeResult:
        """A line on top, the list, the keys."""
        self._labels = Labels(self.app, self._draw)
        yield Static(id="counts")
        yield RowList(wrapped=True, empty=EMPTY, id="list")
        yield PanelFilter(id="inbox-filter")
        yield KeyLine()

    def on_mount(self) -> None:
        """Listen to the fleet."""
        self.list = self.query_one(RowList)
        self.filter = self.query_one(PanelFilter)
        self.app.snapshots_changed.subscribe(self, self._changed)
        self.set_interval(30.0, self._arrange)
        self._arrange()

    # --- what is shown ---------------------------------------------------------------------

    def _changed(self, batch: Batch) -> None:
        if self.is_current:  # else when one comes back
            self._arrange()

    def on_screen_resume(self) -> None:
        """Show what came meanwhile."""
        self._arrange()

    def _arrange(self) -> None:
        """Show what there is now, as soon as it is in order."""
        self._arranging.begin({entry.key: entry for entry in self._fleet})

    def _arranged(self, ordered: list[FleetEntry]) -> None:
        self._fleet = ordered
        self._draw()

    def _draw(self) -> None:
        every = [*self._collect()]
        entries = [entry for entry in every if entry.contains(self._words)]
        self.filter.count = Count(self._words, len(entries), len(every))
        self.list.empty = NO_MATCH if every else EMPTY
        self._entries = {entry.key: entry for entry in entries}
        items: list[Item] = []
        last = ""
        now, answer = self.app.now(), keys.called(self.app, "act.remedy")
        for entry in entries:
            if entry.snapshot.key != last:
                last = entry.snapshot.key
                items.append(_heading(entry))
            items.append(_item(entry, now, answer, self._labels))
        selected, place = self.list.selected, self.list.cursor
        is_chosen = selected is not None and selected.key != self._first
        if is_chosen:
            self._first = ""
        self.list.items = tuple(items)
        acts = ((entry.snapshot, entry.what.remedy) for entry in entries)
        self._labels.want((snapshot, action) for snapshot, action in acts if action)
        if items and not is_chosen:
            self.list.action_first()
            self._first = self.list.selected.key if self.list.selected else ""
        elif items and self.list.cursor != place:
            self.list.select(self.list.cursor)  # others came above it: it stays in sight
        self.query_one("#counts", Static).update(_counts(entries, len(every)))
        self.refresh_bindings()

    def _collect(self) -> Iterable[Entry]:
        """Needs and questions, by the order of the fleet; a part's needs stand with its whole."""
        attention = self.app.attention
        for each in self._fleet:
            if each.archived:
                continue
            for need in attention.open_needs(each.snapshot):
                yield Entry(each.snapshot, each.name, need)
            for question in attention.open_questions(each.snapshot):
                yield Entry(each.snapshot, each.name, question)

    @property
    def entry(self) -> Entry | None:
        """What is selected."""
        item = self.list.selected if self.is_mounted else None  # asked of its keys before that
        return None if item is None else self._entries.get(item.key)

    # --- keys ------------------------------------------------------------------------------

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """The keys that work now; the one that settles an item is called what the item calls it."""
        active, entry = super().active_bindings, self.entry
        for key, each in active.items():
            if each.binding.action == "answer":
                acts = entry is not None and bool(entry.what.remedy)
                words = _called(entry, self._labels) if entry and acts else each.binding.description
                binding = replace(each.binding, description=clean_line(words, LABEL), show=acts)
                active[key] = each._replace(binding=binding)
        return active

    @on(RowList.Selected)
    def _selected(self, message: RowList.Selected) -> None:
        """Another act settles this item."""
        message.stop()
        self.refresh_bindings()

    @on(RowList.Chosen)
    def _chosen(self, message: RowList.Chosen) -> None:
        """Go to where it stands."""
        message.stop()
        entry = self._entries.get(message.item.key)
        if entry is not None:
            target = entry.target
            self.app.open_collaboration(entry.snapshot.key, target if target != Target() else None)

    def action_filter(self) -> None:
        """Begin to filter, or go on with it."""
        self.filter.begin(None, self._words)

    @on(PanelFilter.Changed)
    def _filtered(self, message: PanelFilter.Changed) -> None:
        message.stop()
        self._words = message.words
        self._draw()

    @on(PanelFilter.Left)
    def _filter_left(self, message: PanelFilter.Left) -> None:
        message.stop()
        self.filter.end()
        self.list.focus()

    def action_answer(self) -> None:
        """Do what settles it, in a form."""
        entry = self.entry
        if entry is None:
            return
        if entry.what.remedy:
            self.app.perform(entry.snapshot.key, entry.what.remedy, given=dict(entry.what.given))
        else:
            self.app.tell(f"{NO_ACTION}: press {keys.called(self.app, 'list.choose')} to open it.")

    def action_acknowledge(self) -> None:
        """Take it off the list, with a note."""
        entry = self.entry
        if entry is None:
            return
        self.app.perform(entry.snapshot.key, ACK.name, given={"need": entry.what.key})

    def action_snooze(self) -> None:
        """Put it off until something happens in its collaboration."""
        if self.entry is not None:
            self._snooze(self.entry)

    @work(group="snooze", exit_on_error=False)
    async def _snooze(self, entry: Entry) -> None:
        attention = self.app.attention
        try:
            await asyncio.to_thread(
                attention.snooze, entry.snapshot, entry.what.key, self.app.now()
            )
        except OSError as error:
            said = f"Could not save it: {error.strerror or error}"
            self.app.outcomes.tell(Outcome(OutcomeState.REFUSED, said))
            return
        said = f"Snoozed until something happens in {entry.snapshot.name}."
        self.app.outcomes.tell(Outcome(OutcomeState.DONE, said))
        self.app.attention_changed()

    def action_copy(self) -> None:
        """Copy its text."""
        if self.entry is not None:
            self.app.copy(self.entry.what.sentence)

    def action_back(self) -> None:
        """Show everything again where a filter holds; else go back to where one came from."""
        if self._words:
            self._words = ""
            self._draw()
        else:
            self.dismiss()


def _heading(entry: Entry) -> Item:
    snapshot = entry.snapshot
    phase = f"  {snapshot.phase.replace('_', ' ')}" if snapshot.phase else ""
    return Item(((entry.name, "heading"), (phase, "muted")), heading=True)


def _item(entry: Entry, now: datetime, answer: str, labels: Labels) -> Item:
    sign, colour = _SIGNS.get(entry.kind, ("?", "accent"))
    what = entry.what
    since = f"  {age(what.since, now)}" if what.since else ""
    who = (
        f"{what.about.participant} asks: "
        if entry.kind == "question" and what.about.participant
        else ""
    )
    word = f"[{entry.kind}] " if entry.kind in ("blocking", "unresolved") else ""
    details = []
    if what.kind is Kind.QUESTION and what.about.document:
        place = (
            f"{what.about.document}:{what.about.line}" if what.about.line else what.about.document
        )
        details.append((f"enter: {place}", "primary"))
    if what.remedy:
        details.append((f"{answer}: {_called(entry, labels)}", "accent"))
    return Item(
        (
            (f"{sign} ", colour),
            (word, colour),
            (who, "accent"),
            (_text(entry), "strong" if entry.kind == "need" else ""),
            (since, "muted"),
        ),
        tuple(details),
        entry.target,
        indent=4,
        key=entry.key,
    )


def _text(entry: Entry) -> str:
    """What is needed, as a sentence; a question stands as it was asked."""
    what = entry.what
    return what.sentence if what.kind is Kind.QUESTION else need_case(what, entry.snapshot)


def _called(entry: Entry, labels: Labels) -> str:
    """What the act is called that settles it."""
    return labels.of(entry.snapshot.key, entry.what.remedy or "")


def _counts(entries: list[Entry], total: int) -> Content:
    """What is shown, by kind; where a filter hides some, also how many of how many."""
    kinds = [entry.kind for entry in entries]
    parts: list[Part] = [("Inbox  ", "bold $text-accent")]
    words = [
        count(kinds.count("need"), "need") if "need" in kinds else "",
        f"{kinds.count('blocking')} blocking" if "blocking" in kinds else "",
        f"{kinds.count('unresolved')} unresolved" if "unresolved" in kinds else "",
        count(kinds.count("question"), "question") if "question" in kinds else "",
        f"{len(entries)} of {count(total, 'item')} shown" if len(entries) < total else "",
    ]
    parts.append((" · ".join(filter(None, words)) or "empty", "" if entries else MUTED))
    return join(*parts)
