"""The fleet: every collaboration under the given paths, what needs a human on top.

A view says which of them are listed, under which headings, in which order and with which columns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from acp_core.model import format
from acp_core.person.views import COLUMNS, GROUPS, SORTS, View, Views, parse
from acp_tui import keys, text
from acp_tui.actions.collaboration_actions import CollaborationActions
from acp_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from textual.command import Provider
    from textual.widgets import Input

    from acp_core.fleet import Batch
    from acp_core.fleet.overview import FleetEntry, Section, Seeing
    from acp_core.model import Outcome, Snapshot
    from acp_tui.notices import Notifier
    from acp_tui.screens.choosing import Offer
    from acp_tui.screens.fleet_search import FleetSearch, Hits
    from acp_tui.screens.inbox import InboxScreen
    from acp_tui.widgets.fleet_table import FleetTable, FleetTitles
    from acp_tui.widgets.pane import FilterInput
    from acp_tui.widgets.row_list import Item

DEFAULT = "default"


def places() -> type[Provider]:
    """What offers the views in the command palette."""
    from acp_tui.screens.choosing import ViewsProvider

    return ViewsProvider


class FleetViews:
    """The view of a fleet's screen, and the ways to another one.

    Args:
        screen: The fleet's.
    """

    def __init__(self, screen: FleetScreen) -> None:
        self._screen = screen
        self.view = View()
        """The one that is used."""

    @cached_property
    def _saved(self) -> Views:
        return parse(self._screen.app.settings.fleet)

    def begin(self) -> None:
        """Use the view that the settings name."""
        self.view = self._saved.first

    def use(self, view: View) -> None:
        """List the fleet by another view."""
        self.view = view
        if self._screen.furnished:
            self.show()
            self._screen.relist()

    def show(self) -> None:
        """Tell the parts of the screen how the fleet is listed."""

        screen, view = self._screen, self.view
        screen.query_one(FleetHeader).view = view.words
        screen.titles.view = view
        screen.table.chosen_columns = view.columns
        if view.filter and not screen.field.value:
            screen.field.value = view.filter
            screen.field.display = True

    def _use_saved(self, view: View) -> None:
        field = self._screen.field
        field.value = view.filter
        field.display = bool(view.filter)
        self.use(view)

    # choosing

    def pick(self) -> None:
        """Choose among saved views, orders, groupings and columns."""
        from acp_tui.screens.choosing import PickScreen

        if self._screen.furnished:
            self._screen.app.push_screen(PickScreen("View", self._items()), self._picked)

    def places(self) -> Iterable[Offer]:
        """The same for the command palette."""
        from acp_tui.screens.choosing import Offer

        if self._screen.furnished:
            for key, label, about in self._choices():
                yield Offer(label, about, partial(self._picked, key))

    def _items(self) -> list[Item]:
        from acp_tui import text
        from acp_tui.widgets.row_list import Item

        choices = list(self._choices())
        widest = max(text.width(label) for _, label, _ in choices)
        return [
            Item(((text.fit(label, widest + 2), ""), (about, "muted")), key=key)
            for key, label, about in choices
        ]

    def _choices(self) -> Iterable[tuple[str, str, str]]:
        """A key, a label, and what it means."""
        for name, view in self._saved.saved.items():
            yield f"view {name}", f"View {name}", _about(view)
        yield (
            DEFAULT,
            "Default view",
            "grouped by state, what needs you first, the columns that fit",
        )
        changed = "everything" if self.view.changed else "only what changed since your last visit"
        yield "changed", "Changes", f"show {changed}"
        for name, about in SORTS.items():
            yield f"sort {name}", f"Sort by {name}", _marked(about, name == self.view.sort)
        for name, about in GROUPS.items():
            yield f"group {name}", f"Group by {name}", _marked(about, name == self.view.group)
        for name in COLUMNS:
            shown = name in self._shown_columns()
            yield f"column {name}", f"Column {name}", "hide" if shown else "show"

    def _shown_columns(self) -> tuple[str, ...]:
        widths = self._screen.titles.columns
        return tuple(name for name in COLUMNS if widths[name])

    def _picked(self, key: str | None) -> None:
        what, _, name = (key or "").partition(" ")
        if what == "view":
            self._use_saved(self._saved.saved[name])
        elif what == DEFAULT:
            self._use_saved(View())
        elif what == "changed":
            self.use(self.view._replace(changed=not self.view.changed))
        elif what == "sort":
            self.use(self.view._replace(sort=name))
        elif what == "group":
            self.use(self.view._replace(group=name))
        elif what == "column":
            self.use(self.view.with_column(name, self._shown_columns()))


def _marked(about: str, used: bool) -> str:
    return f"{about} (used now)" if used else about


def _about(view: View) -> str:
    parts = (view.words, f"filter: {view.filter}" if view.filter else "", ", ".join(view.columns))
    return " · ".join(filter(None, parts))


RELOAD = 5  # seconds between looks at what other dashboards of this person wrote


class FleetScreen(CollaborationActions):
    """Every collaboration, in the order in which they want attention."""

    CSS_PATH = "fleet.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*keys.FLEET, *keys.ACT]
    AUTO_FOCUS = "FleetTable"
    COMMANDS: ClassVar[set[Any]] = {places}

    field: FilterInput
    """The filter; it and what follows are there from `furnish` on."""
    table: FleetTable
    """The list."""
    titles: FleetTitles
    """The titles over its columns."""
    search: FleetSearch
    """What looks inside documents."""

    def __init__(self) -> None:
        super().__init__(classes="-empty")
        self.furnished = False
        self._entries: dict[str, FleetEntry] = {}  # every one, in order
        self._haystacks: dict[str, tuple[Snapshot, str]] = {}
        self._show_archived = False
        self._complete = False  # the first look is over
        self._notifier: Notifier | None = None
        self._wanted: str | None = None  # a collaboration to select when it appears
        self._ticks = 0
        self._some = False  # whether anything is selected
        self._outdated = False  # something came in while another screen covered this one
        self.navigation = self.views = FleetViews(self)
        self._arranging = Arranging(self, self._arranged)

    # building

    def compose(self) -> ComposeResult:
        """Header, what to do where there is nothing, keys; `furnish` adds the list."""
        yield FleetHeader()
        yield Static(self._emptiness(), id="empty")
        yield KeyLine()

    def furnish(self) -> None:
        """Filter, titles and list, below the header."""
        if self.furnished:
            return
        from acp_tui.actions.availability import Labels
        from acp_tui.screens.fleet_search import FleetSearch
        from acp_tui.widgets.fleet_table import FleetTable, FleetTitles
        from acp_tui.widgets.pane import FilterInput

        self.furnished = True
        self.views.begin()
        self._labels = Labels(self.app, self._renamed)
        self.search = FleetSearch(self)
        self.field = FilterInput()
        self.table = FleetTable(
            self.app.now,
            open_key=keys.called(self.app, "fleet.open"),
            remedy_key=keys.called(self.app, "act.remedy"),
            called=self._labels.drawn,
        )
        self.titles = FleetTitles()
        self.mount_all([self.field, self.titles, self.table], before="#empty")
        self.views.show()

    def on_mount(self) -> None:
        """Listen to the fleet, and look at the clock once a second."""
        self.query_one(FleetHeader).where = ", ".join(map(_short, self.app.where))
        self.app.snapshots_changed.subscribe(self, self._changed)
        self.watch(self.app, "utc", self._tell_time)
        self.set_interval(1.0, self._tick)

    # what comes in

    def _changed(self, batch: Batch) -> None:
        self._complete = self._complete or batch.complete
        if batch.snapshots or batch.gone or batch.complete:  # else only the attention changed
            note = batch.note or ("" if self._complete else "looking…")
            self.query_one(FleetHeader).note = note
        self.rearrange()

    def rearrange(self) -> None:
        """Show the fleet as it stands now, as soon as it is in order."""
        self._arranging.begin(self._entries)

    def _arranged(self, ordered: list[FleetEntry]) -> None:
        from acp_core.fleet import overview

        self._entries = {entry.key: entry for entry in ordered}
        counts = overview.tally(ordered)
        header = self.query_one(FleetHeader)
        header.counts = counts.sentence() + overview.cost_sentence(ordered)
        header.urgent = counts.need > 0
        self.app.show_title(
            f"{counts.sentence().partition(' · ')[0]} · acp" if counts.need else "acp"
        )
        self._notice(ordered)
        if self.is_current or self.app.screen.is_modal:  # else it cannot be seen
            self._show()
        else:
            self._outdated = True

    def on_screen_resume(self) -> None:
        """Show what came in while another screen was on top."""
        if self._outdated:
            self._outdated = False
            self._show()

    def _notice(self, entries: Iterable[FleetEntry]) -> None:
        """Tell what was not there before, each need under the whole that it belongs to."""
        if self._notifier is None:
            from acp_tui.notices import Notifier

            self._notifier = Notifier(self.app)
        fleet = [(e.snapshot, e.needs) for e in entries if not e.archived and not e.depth]
        self._notifier.announce(fleet, complete=self._complete)

    def _show(self) -> None:
        if self._entries:
            self.furnish()
        if self.furnished:
            self._list()
        else:
            self._explain_emptiness([])
        if self.furnished or self._complete:
            self.app.opening.listed()

    def _list(self) -> None:
        from acp_core.fleet import overview
        from acp_core.fleet.overview import sections

        words = self.words
        entries = [
            entry
            for entry in self._entries.values()
            if (self._show_archived or not entry.archived)
            and (not words or overview.matches(self._haystack(entry.snapshot), words))
        ]
        listed = sections(entries, self.views.view)
        self.table.hosts = self.titles.hosts = any(each.snapshot.hosts for each in entries)
        self.table.list_sections(listed)
        self.ask_what_it_offers()
        if self._wanted in self._entries:
            self.table.choose(self._wanted)
            self._wanted = None
        self._explain_emptiness(listed)

    def _renamed(self) -> None:
        if self.is_mounted:
            self.table.renamed()

    def _haystack(self, snapshot: Snapshot) -> str:
        known = self._haystacks.get(snapshot.key)
        if known is None or known[0] is not snapshot:
            from acp_core.fleet import overview

            known = self._haystacks[snapshot.key] = snapshot, overview.haystack(snapshot)
        return known[1]

    def _explain_emptiness(self, listed: Sequence[Section]) -> None:
        self.set_class(not listed, "-empty")
        if listed:
            if self.focused is None and self.is_current:
                self.table.focus()
            return
        self.query_one("#empty", Static).update(self._emptiness())

    def _emptiness(self) -> Content:
        where = ", ".join(map(_short, self.app.where))
        words = self.words
        if self._entries and words:
            return text.join(
                (f"No collaboration matches “{words}”.\n\n", "bold"),
                _hint("enter", "searches the documents"),
                _hint("esc", "shows all collaborations"),
            )
        if self._entries and self.views.view.changed:
            left = self._arranging.seeing.left
            since = f" ({format.moment(left, self.app.now(), self.app.utc)})" if left else ""
            key = keys.called(self.app, "fleet.changed")
            return text.join(
                (f"Nothing changed since your last visit{since}.\n\n", "bold"),
                _hint(key, "shows everything again"),
            )
        if self._entries:
            number = format.count(len(self._entries), "collaboration")
            key = keys.called(self.app, "fleet.archived")
            return text.join((f"{number}, all archived.\n\n", "bold"), _hint(key, "shows them"))
        if not self._complete:
            return self.app.opening.looking(where)
        return text.join(
            (f"No collaboration under {where} yet.\n\n", "bold"),
            _hint(keys.called(self.app, "fleet.new"), "starts one here"),
            _hint("acp new", "does the same from a shell: acp new --help"),
            _hint("acp demo", "runs a scripted demo that needs no model"),
            ("\nNew collaborations appear here automatically.", text.MUTED),
        )

    # time

    def _tick(self) -> None:
        self._ticks += 1
        if self._ticks % RELOAD == 0:
            self._reload_attention()
        if self.is_current and self.furnished:
            self.table.forecast = self.app.fleet.forecast
            self.table.tick()
        self._tell_time()

    def _tell_time(self) -> None:
        self.query_one(FleetHeader).clock = format.clock(self.app.now(), self.app.utc)

    @work(thread=True, exclusive=True, group="attention", exit_on_error=False)
    def _reload_attention(self) -> None:
        if self.app.attention.reload():
            self.app.call_from_thread(self.rearrange)

    # what the person does

    def called(self, key: str, action: str) -> str:
        """What an action is called, where it is known; a sign that it is loading until then."""
        return self._labels.of(key, action)

    def in_hand(self) -> Snapshot | None:
        """The selected collaboration."""
        entry = self.table.entry if self.furnished else None
        return entry.snapshot if entry else None

    def on_fleet_table_selected(self, message: FleetTable.Selected) -> None:
        """Another one is in hand, or none."""
        self.ask_what_it_offers()
        some = message.key is not None
        if some != self._some:  # else the same keys are of use as before
            self._some = some
            self.refresh_bindings()

    def on_fleet_table_opened(self, message: FleetTable.Opened) -> None:
        """Show a collaboration."""
        self.app.open_collaboration(message.key)

    def action_open(self) -> None:
        """Open the selected collaboration."""
        if snapshot := self.in_hand():
            self.app.open_collaboration(snapshot.key)

    def next_in_need(self, key: str | None) -> str | None:
        """The key of the collaboration after this one that needs the person; after the last, the first.

        Args:
            key: This one; None, or one that is not listed, stands before the first.

        Returns:
            None where nothing needs the person.
        """
        entries = self.table.entries if self.is_current else tuple(self._entries.values())
        place = next((place for place, each in enumerate(entries) if each.key == key), -1) + 1
        after = (*entries[place:], *entries[:place])
        needing = (e.key for e in after if e.needs and not e.depth and not e.archived)
        return next(needing, None)

    def action_next_need(self) -> None:
        """Select the next collaboration that needs the person."""
        selected = self.in_hand()
        key = self.next_in_need(selected.key) if selected else None
        if key is None:
            self.app.tell("Nothing needs you.")
        else:
            self.table.choose(key)

    def action_replay(self) -> None:
        """Show the selected collaboration's past."""
        if snapshot := self.in_hand():
            self.app.open_replay(snapshot.key)

    def action_times(self) -> None:
        """Show where the time went in the selected collaboration."""
        if snapshot := self.in_hand():
            self.app.open_times(snapshot.key)

    def action_new(self) -> None:
        """Start a collaboration."""
        from acp_tui.screens.action import CreateScreen

        self.app.push_screen(
            CreateScreen(self.app.paths[0] if self.app.paths else Path.cwd()), self.performed
        )

    def performed(self, outcome: Outcome | None) -> None:
        """Select the collaboration that an action made."""
        if outcome is not None and outcome.location:
            self.select(outcome.location)

    def select(self, key: str | None) -> None:
        """Select a collaboration, when it appears if it is not there yet."""
        self._wanted = key
        if key in self._entries:
            self._show()

    def action_toggle_archived(self) -> None:
        """Show the archived too, or hide them again."""
        self._show_archived = not self._show_archived
        number = sum(entry.archived for entry in self._entries.values())
        if not number:
            self.app.tell("Nothing is archived.", timeout=3)
        self._show()

    def action_sort(self) -> None:
        """Sort by something else."""
        self.views.use(self.views.view.next_sort())

    def action_group(self) -> None:
        """Group by something else."""
        self.views.use(self.views.view.next_group())

    def action_changed(self) -> None:
        """Show only what changed since the last visit, or everything again."""
        self.views.use(self.views.view._replace(changed=not self.views.view.changed))

    def action_view(self) -> None:
        """Choose a view, or a part of it."""
        self.views.pick()

    def on_fleet_titles_sorted(self, message: FleetTitles.Sorted) -> None:
        """Sort by a column, or as usual where it is sorted so already."""
        view = self.views.view
        self.views.use(
            view._replace(sort="attention" if view.sort == message.sort else message.sort)
        )

    def relist(self) -> None:
        """List the fleet by the view that is used now, or say what is known until there is one."""
        self._show()

    # the filter, and the search that it begins

    @property
    def words(self) -> str:
        """What is typed in the filter."""
        return self.field.value.strip() if self.furnished else ""

    def action_filter(self) -> None:
        """Begin to filter, or go on with it."""
        self.furnish()
        self.field.display = True
        self.set_focus(self.field)  # at once: the next key may be there already

    async def action_clear(self) -> None:
        """Show everything again."""
        if self.furnished:
            await self.search.clear()
            self.field.value = ""
            self.field.display = False
            self.set_focus(self.table)

    def action_list(self) -> None:
        """Go from the filter to what it left."""
        hits = self.search.hits
        (self.table if self.table.entries or hits is None else hits.list).focus()

    async def on_input_changed(self, message: Input.Changed) -> None:
        """Filter by what is typed now."""
        if message.input is self.field:
            await self.search.clear()
            self._show()

    async def on_input_submitted(self, message: Input.Submitted) -> None:
        """Look into the documents."""
        if message.input is self.field:
            await (self.search.start(self.words) if self.words else self.action_clear())

    def on_hits_opened(self, message: Hits.Opened) -> None:
        """Show the place of a hit."""
        from acp_core.model import Target

        hit = message.hit
        target = Target(document=hit.document, line=hit.line) if hit.document else None
        self.app.open_collaboration(hit.key, target)


def _short(path: str) -> str:
    """A path, or a link, as a person writes it."""
    home = os.path.expanduser("~")
    if path == home or path.startswith(home + os.sep):
        path = "~" + path[len(home) :]
    return text.safe_line(path)


def _hint(key: str, what: str) -> Content:
    return text.join((key.rjust(10), "bold $text-accent"), f"  {what}\n")


MANY = 1_500  # collaborations: to arrange more would hold the interface up


class Arranging:
    """Puts the fleet in order for a screen, which is told when that is done.

    While a large fleet is being arranged, whatever else comes is taken together.

    Args:
        screen: whose worker does it.
        show: takes the entries in their order, in the interface's thread.
    """

    def __init__(
        self, screen: FleetScreen | InboxScreen, show: Callable[[list[FleetEntry]], Any]
    ) -> None:
        self._screen = screen
        self._show = show
        self._busy = self._again = False

    @cached_property
    def seeing(self) -> Seeing:
        """What the person has seen of collaborations."""
        from acp_core.fleet.overview import Seeing  # late: not for the first picture

        return Seeing(self._screen.app.attention)

    def begin(self, before: Mapping[str, FleetEntry]) -> None:
        """Arrange the fleet as it stands now; ``before`` are the entries that are shown."""
        if self._busy:
            self._again = True
            return
        snapshots = tuple(self._screen.app.fleet.snapshots.values())
        if len(snapshots) < MANY:
            self._show(self._arranged(snapshots, before))
            return
        self._busy = True
        self._screen.run_worker(
            lambda: self._in_thread(snapshots, before), thread=True, group="arrange"
        )

    def _in_thread(self, snapshots: tuple[Snapshot, ...], before: Mapping[str, FleetEntry]) -> None:
        """In a thread of its own."""
        entries = self._arranged(snapshots, before)
        self._screen.app.call_from_thread(self._done, entries)

    def _done(self, entries: list[FleetEntry]) -> None:
        self._busy = False
        if self._screen.is_attached:
            self._show(entries)
            if self._again:
                self._again = False
                self.begin({entry.key: entry for entry in entries})

    def _arranged(
        self, snapshots: tuple[Snapshot, ...], before: Mapping[str, FleetEntry]
    ) -> list[FleetEntry]:
        from acp_core.fleet import overview

        ordered = overview.arrange(snapshots, self.seeing, before)
        ordered.sort(key=lambda entry: entry.archived)
        return ordered


GAP = "  "
LEAST = 8  # cells of a text that has to be cut


class FleetHeader(Widget):
    """One line: view, where, counts, clock. What does not fit is left out, the counts last."""

    DEFAULT_CSS = """
    FleetHeader { height: 1; padding: 0 1; background: $panel; color: $text; }
    """

    where: reactive[str] = reactive("")
    """The paths, as a person would write them."""
    view: reactive[str] = reactive("")
    """How the fleet is listed, where that is other than usual."""
    note: reactive[str] = reactive("")
    """How the files are looked at, where that is out of the ordinary."""
    counts: reactive[str] = reactive("")
    """How many need somebody, are live, are done."""
    urgent: reactive[bool] = reactive(False)
    """Whether any needs somebody."""
    clock: reactive[str] = reactive("")
    """The time."""

    def render(self) -> Content:
        """Draw it in the width there is."""
        first, dot, rest = self.counts.partition(" · ")
        counts = text.join(
            (first + dot[:1], "bold $text-error" if self.urgent else ""), (dot[1:] + rest, "")
        )
        clock = f"  {self.clock}"
        if counts.cell_length + text.width(clock) + len(f"acp{GAP}") > self.content_size.width:
            clock = ""
        right = text.join(counts, (clock, text.MUTED))
        space = self.content_size.width - right.cell_length - len("acp") - 2 * len(GAP)
        view = _at_most(self.view, space)
        space -= text.width(view) + len(GAP) if view else 0
        where = _at_most(self.where, space)
        note = f"({self.note})" if self.note else ""
        note = _at_most(note, space - text.width(where) - len(GAP))
        between = space - text.width(where) - text.width(note)
        return text.join(
            ("acp", "bold $text-accent"),
            GAP if view else "",
            (view, "$text-accent"),
            GAP,
            (where, text.MUTED),
            GAP if note else "",
            (note, "$text-warning"),
            " " * (between + len(GAP) - (len(GAP) if note else 0)),
            right,
        )


def _at_most(words: str, cells: int) -> str:
    """``words``, cut where they are too long, or nothing where hardly any would be left."""
    if text.width(words) <= cells:
        return words
    return text.fit(words, cells) if cells >= LEAST else ""
