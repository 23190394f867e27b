"""A matter to be decided: the facts first, all verdicts beside each other.

The facts are rows of a list, a section's title beside its first row; the verdicts always show.
A verdict is one digit. It counts only where the key was pressed after the card was drawn, and is refused
where the matter has changed since then.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from acp_core.cli.signs import of_row
from acp_core.model import Action, Card, Outcome, OutcomeState, Row, Target, Tone
from acp_core.model.card import CardVerdict
from acp_core.model.errors import Refused
from acp_core.model.format import age
from acp_tui import keys, text
from acp_tui.actions import forms
from acp_tui.actions.forms import Evaluation, evaluated, performed, preview_content
from acp_tui.actions.offered import offered_named, trouble
from acp_tui.keys import NEVER_HELD
from acp_tui.screens.action import capitalize_sentence, leave, report
from acp_tui.text import MUTED, fit, join, line, safe_line, width
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.lines import wrap
from acp_tui.widgets.row_list import Item, RowList

if TYPE_CHECKING:
    from acp_core.fleet import Batch
    from acp_core.model.card import CardVerdict
    from acp_core.protocols.contract import Collaboration
    from acp_tui.app import AcpApp

PAUSE = 0.3
"""Seconds after which a card that is not there yet says that it loads."""
OVER = "This is no longer open: it was answered or withdrawn. Press esc to go back."


class CardScreen(ModalScreen[Outcome | None]):
    """One card. Gives the outcome of the verdict, or None where none was given."""

    CSS_PATH = "card.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [*keys.CARD]
    app: AcpApp

    def __init__(self, key: str, action: str, given: Mapping[str, str] | None = None) -> None:
        """Make it.

        Args:
            key: The collaboration's.
            action: The name of an action. Where no card has it as a verdict, its form is shown instead.
            given: Values of its inputs, by name.
        """
        super().__init__()
        self.key = key
        self.card: Card | None = None
        self._wanted = action
        self._given = dict(given or {})
        self._drawn_at = float("inf")
        self.is_being_made = True
        """Whether it is not known yet what takes the keys: the card, or a form."""
        self._in_form = False  # no card: the action's form is over this screen
        self._chosen = 0  # the verdict in hand, from 0
        self._action: Action | None = None  # of the verdict whose inputs are asked for
        self._confirming = -1  # the verdict that was pressed once, and cannot be undone
        self._writes = False
        self._busy = False

    def compose(self) -> ComposeResult:
        """The matter, the inputs of the verdict, the verdicts."""
        yield CardFrame(id="card")
        yield KeyLine()

    def on_mount(self) -> None:
        """Find the card."""
        self._frame = self.query_one(CardFrame)
        self.facts = self.query_one(RowList)
        self.app.snapshots_changed.subscribe(self, self._changed)
        self.set_interval(30.0, self._draw_title)
        self.set_timer(PAUSE, self._say_that_it_loads)
        self._load()

    def on_key(self, event: events.Key) -> None:
        """Take no verdict from a key that was pressed before the card was drawn."""
        if event.time < self._drawn_at and event.key not in NEVER_HELD:
            event.stop()
            event.prevent_default()

    # --- the matter ------------------------------------------------------------------------

    def _say_that_it_loads(self) -> None:
        if self.card is None and not self._in_form and not self.has_class("-over"):
            self.query_one("#card-title", Static).update(text.plain("Loading…", text.MUTED))
            self.add_class("-loading")

    def _changed(self, batch: Batch) -> None:
        settled = self._busy or self._in_form or self.has_class("-over")
        if not settled and any(each.key == self.key for each in batch.snapshots):
            self._load()

    @work(exclusive=True, group="card", exit_on_error=False)
    async def _load(self) -> None:
        try:
            card = await self.app.fleet.call(self.key, self._find)
        except Exception as error:  # somebody else's protocol: reported, not raised
            if self.card is not None:
                self._fail(f"Could not load the card: {trouble(self.app, self.key, error)}")
                return
            card = None  # the form says what is wrong, or does without a card
        if card is None and (self.card is not None or await self._is_over()):
            self._fail(OVER)
        elif card is None:
            self._in_form = True
            self.remove_class("-loading")
            self.app.perform_in_form(self.key, self._wanted, self._formed, self._given)
            self.is_being_made = False
        elif self.card is None or card.digest != self.card.digest:
            self._show(card)

    def _find(self, opened: Collaboration) -> Card | None:
        from acp_core.diagnosis.cards import card_of, cards

        snapshot, now = self.app.fleet.snapshots[self.key], self.app.now()
        if self.card is None:
            return card_of(opened, snapshot, self._wanted, self._given, now)
        shown = self.card.id
        return next((each for each in cards(opened, snapshot, now) if each.id == shown), None)

    async def _is_over(self) -> bool:
        """Whether somebody decided the matter between the last Snapshot and the key."""
        from acp_core.diagnosis.cards import is_over

        try:
            action = await offered_named(self.app, self.key, self._wanted)
        except Exception:  # the form says what is wrong
            return False
        if action is None or not is_over(action, self._given):
            return False
        self.query_one("#card-title", Static).update(text.line(action.label, "bold $text-accent"))
        self.add_class("-unclaimed", "-bare")
        return True

    def _show(self, card: Card) -> None:
        again, self.card = self.card is not None, card
        if not again:
            meant = card.fitting(self._wanted, self._given)
            self._chosen = meant[0] if len(meant) == 1 else 0
        self._chosen = min(self._chosen, len(card.verdicts) - 1)
        self._confirming = -1
        self._drawn_at = float("inf")
        self._draw_title()
        self._frame.draw_facts(card)
        self._draw_verdicts()
        self._explain("This has changed since: here is the new state." if again else "")
        self.remove_class("-loading")
        self.add_class("-loaded")
        if self._action is None:
            self.facts.focus()
        self.call_after_refresh(self._drawn)

    def on_resize(self) -> None:
        """Give the facts the room that is left."""
        if self.card is not None:
            self._frame.draw_facts(self.card)
        self._draw_title()
        self._draw_verdicts()
        self.call_after_refresh(self._fit)

    def _drawn(self) -> None:
        self._fit()
        self._drawn_at = time.monotonic()
        self.is_being_made = False

    def _draw_title(self) -> None:
        if self.card is not None:
            self._frame.draw_title(self.card, self.app.now())

    def _draw_verdicts(self) -> None:
        if self.card is not None:
            self._frame.draw_verdicts(self.card, self._chosen)

    def _fit(self) -> None:
        for frame in self.query(CardFrame):  # none: it was left meanwhile
            frame.fit(self.size.height - 1)

    def _explain(self, sentence: str, style: str = "$text-warning") -> None:
        self._show_why(text.plain(sentence, style), shown=bool(sentence))

    def _refuse(self, sentence: str) -> None:
        """Say why something cannot be done."""
        self._explain(f"✗ {self._alone(sentence)}", "$text-error")

    def _alone(self, sentence: str) -> str:
        """A refusal or an outcome as it stands on the card."""
        return capitalize_sentence(
            self.app, self.key, sentence, self._form.values() if self._form else {}
        )

    def _show_why(self, words: Content, *, shown: bool = True) -> None:
        """Show words below the verdicts; a narrow card keeps no row for them while there are none."""
        self.query_one("#card-why", Static).update(words)
        if shown is not self.has_class("-explained"):
            self.set_class(shown, "-explained")
            self.call_after_refresh(self._fit)

    def _fail(self, sentence: str) -> None:
        self.add_class("-over")
        self.remove_class("-loading")
        self._refuse(sentence)
        self.refresh_bindings()
        self.call_after_refresh(self._drawn)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer nothing but the way back once there is nothing to decide."""
        return not (self.has_class("-over") and action in ("toggle_writes", "form", "pick"))

    # --- verdicts --------------------------------------------------------------------------

    def action_verdict(self, number: int) -> None:
        """Give a verdict; what it needs besides is asked for first."""
        card = self.card
        if card is None or self._busy or self.has_class("-over"):
            return
        if not 1 <= number <= len(card.verdicts):
            self._explain(f"There is no verdict {number}.")
            return
        self._pick(number - 1)
        self.is_being_made = True  # what is typed next may be the reason
        self._begin(card.verdicts[number - 1])

    def action_pick(self, by: int) -> None:
        """Take the next verdict in hand, or the one before, and give none."""
        if self.card is not None and self.card.verdicts:
            self._pick((self._chosen + by) % len(self.card.verdicts))

    def _pick(self, number: int) -> None:
        if number != self._chosen:
            self._chosen, self._confirming = number, -1
            self._end_inputs()
            self._draw_verdicts()
            if self._writes:
                self._preview()

    @work(exclusive=True, group="verdict", exit_on_error=False)
    async def _begin(self, verdict: CardVerdict) -> None:
        action = await self._action_of(verdict)
        if action is not None:
            await self._go_on(verdict, action)
        self.is_being_made = False

    async def _go_on(self, verdict: CardVerdict, action: Action) -> None:
        """Give the verdict, or ask for what it needs first."""
        must = {*verdict.asks} - {*verdict.blank}
        fields = forms.fields(action, dict(verdict.given), must=must)
        asked = [each for each in fields if each.required or each.name in verdict.asks]
        if asked:
            await self._ask(action, asked)
        elif action.risky and self._confirming != self._chosen:
            self._confirming = self._chosen
            self._explain(f"This cannot be undone. Press {self._chosen + 1} again to do it.")
        else:
            self._decide(action, {})

    async def _action_of(self, verdict: CardVerdict) -> Action | None:
        """The verdict's action; None where it cannot be done, which is said."""
        try:
            action = await offered_named(self.app, self.key, verdict.action)
        except Refused as refused:
            self._refuse(str(refused))
        except Exception as error:  # somebody else's protocol: reported, not raised
            self._refuse(trouble(self.app, self.key, error))
        else:
            if action is not None:
                return action
            self._explain(f"✗ “{verdict.label}” is not possible now.", "$text-error")
        return None

    async def _ask(self, action: Action, fields: list[forms.Field]) -> None:
        """Ask for what the verdict needs."""
        self._action = action
        place = self.query_one("#card-inputs")
        await place.remove_children()
        form = forms.Form(fields)
        await place.mount(form)
        self.add_class("-asking")
        form.views[0].control.focus()
        sure = " It cannot be undone." if action.risky else ""
        self._explain(f"ctrl+s: {action.label}.{sure}", text.MUTED)
        self.call_after_refresh(self._fit)

    def _end_inputs(self) -> None:
        if self._action is not None:
            self._action = None
            self.remove_class("-asking")
            self.query_one("#card-inputs").remove_children()
            self._explain("")
            self.facts.focus()
            self.call_after_refresh(self._fit)

    @property
    def _form(self) -> forms.Form | None:
        """What the verdict in hand asks for, where it asks for something."""
        return next(iter(self.query(forms.Form)), None)

    def action_do(self) -> None:
        """Give the verdict whose inputs were asked for."""
        form = self._form
        if form is None or self._action is None or self._busy:
            return
        if missing := form.missing():
            self._show_wrong(missing)
        else:
            self._decide(self._action, form.values())

    @work(exclusive=True, group="decide", exit_on_error=False)
    async def _decide(self, action: Action, typed: Mapping[str, object]) -> None:
        card = self.card
        if card is None:
            return
        values = {**dict(card.verdicts[self._chosen].given), **typed}
        self._busy = True
        self._explain("Working…", text.MUTED)
        try:
            outcome = await self.app.fleet.call(
                self.key, lambda opened: self._performed(opened, card, action, values)
            )
        except Exception as error:  # the files may have changed: neither done nor refused
            why = trouble(self.app, self.key, error)
            outcome = Outcome(OutcomeState.UNKNOWN, f"Result unknown: {why}")
        finally:
            self._busy = False
        self._end(outcome)

    def _performed(
        self, opened: Collaboration, card: Card, action: Action, values: Mapping[str, object]
    ) -> Outcome | Evaluation:
        """Give the verdict, unless the matter is not the one on the screen; in a worker thread."""
        from acp_core.diagnosis.cards import check

        snapshot = self.app.fleet.snapshots[self.key]
        try:
            check(opened, snapshot, card.digest, action.name, self.app.now())
        except Refused as refused:
            return Outcome(OutcomeState.REFUSED, str(refused))
        return performed(action, values)

    def _end(self, result: Outcome | Evaluation) -> None:
        if isinstance(result, Evaluation):
            self._show_wrong(result.errors)
        elif result.state is OutcomeState.REFUSED:
            self._refuse(result.sentence)
            self._load()
        else:
            leave(self, result)
            report(self.app, self.key, result)

    def _show_wrong(self, errors: Mapping[str, str]) -> None:
        """Say what is wrong with the inputs, beside each and below them."""
        form = self._form
        if form is not None:
            form.show_wrong(errors)
        sentence = form.sentence(errors) if form else "; ".join(errors.values())
        self._refuse(sentence)

    # --- what would be written -------------------------------------------------------------

    def action_toggle_writes(self) -> None:
        """Show the exact writes of the verdict in hand, and its command; or the matter again."""
        self._writes = not self._writes
        self.set_class(self._writes, "-writes")
        self.call_after_refresh(self._fit)
        if self._writes:
            self._preview()
        elif self._action is None:
            self.facts.focus()

    @work(exclusive=True, group="preview", exit_on_error=False)
    async def _preview(self) -> None:
        card = self.card
        if card is None or not card.verdicts:
            return
        verdict, place = card.verdicts[self._chosen], self.query_one("#card-changes", Static)
        action = await self._action_of(verdict)
        if action is None:
            place.update("")
            return
        form = self._form
        values = {**dict(verdict.given), **(form.values() if form else {})}
        found = await self.app.fleet.call(self.key, lambda _: evaluated(action, values))
        if found.preview is not None:
            refused = self._alone(found.preview.refused)
            place.update(preview_content(dataclasses.replace(found.preview, refused=refused)))
        else:
            place.update(text.plain("Give the verdict's reason to see its writes.", text.MUTED))
        self.query_one("#card-writes").focus()

    @on(forms.FieldView.Changed)
    def _typed(self, message: Message) -> None:
        if self._writes:
            self._preview()

    # --- elsewhere -------------------------------------------------------------------------

    @on(RowList.Chosen)
    def _chosen_row(self, message: RowList.Chosen) -> None:
        """Open what a row points to, over the card."""
        message.stop()
        target, card = message.item.target, self.card
        if card is None:
            return
        from acp_tui.screens.reading import ReadingScreen

        if target.change is not None:
            change = next((each for each in card.changes if each.path == target.change), None)
            if change is not None:
                self.app.push_screen(ReadingScreen.of_change(change))
        elif target.document is not None:
            self.app.push_screen(ReadingScreen(self.key, target.document, target.line or 1))

    def action_form(self) -> None:
        """Show the whole form of the verdict in hand."""
        if self.card is not None and self.card.verdicts and not self._busy:
            verdict = self.card.verdicts[self._chosen]
            self.app.perform_in_form(self.key, verdict.action, self._formed, dict(verdict.given))

    def _formed(self, outcome: Outcome | None) -> None:
        if outcome is not None or self.card is None:
            self.dismiss(outcome)

    def action_close(self) -> None:
        """Leave the inputs, or the card."""
        if self._busy:
            self.app.tell("Working. The result will appear here.")
        elif self._action is not None:
            self._end_inputs()
        else:
            self.dismiss(None)


_STYLES = {Tone.REVISE: "error", Tone.REVIEW: "warning", Tone.BLOCKED: "error"}

_WHOLE = ("create", "script")  # of these the whole text is shown, not a difference

GAP = 2
"""Cells between the titles and the rows."""

_GAP = "   "  # between verdicts


class CardFacts(RowList):
    """The rows of a card; the key that opens one is offered where there is something to open."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether the selected row leads to a document or to a difference."""
        if action != "choose":
            return super().check_action(action, parameters)
        if self.selected is None:
            return False
        target = self.selected.target
        return target.change is not None or target.document is not None

    def select(self, index: int | None) -> None:
        """Select a row, and offer what can be done with it."""
        super().select(index)
        self.refresh_bindings()


def title_content(card: Card, now: datetime, room: int) -> Content:
    """Who asks for what and how long it waits: in one row of so many cells, or in two."""
    waits = f"waiting for you {age(card.since, now)}" if card.since else ""
    title = line(card.title, "bold $text-accent")
    gap = room - width(title.plain) - width(waits)
    between = (" " * gap if gap >= 2 else "\n") if waits else ""
    return join(title, between, (waits, MUTED))


def claim_rows(card: Card, room: int) -> int:
    """How many rows of so many cells the claim takes."""
    return sum(len(wrap(safe_line(each), room)) for each in f"“{card.claim}”".splitlines())


def items_of(card: Card, claim: int = 0) -> tuple[Item, ...]:
    """The rows of a card, each with what it points to.

    Args:
        card: The card.
        claim: Cells of a row of the claim, where it is too long to stay above them: it scrolls with them,
            row by row.
    """
    whole = {each.path for each in card.changes if each.verb in _WHOLE}
    wide = max((width(section.title) for section in card.sections), default=0)
    items = []
    lines = [safe_line(each) for each in card.claim.splitlines()] if claim else []
    parts = (each[start:end] for each in lines for start, end in wrap(each, claim))
    for number, each in enumerate(parts):
        items.append(_item("", ((each, ""),), 0, Target(), f"claim {number}"))
    for section in card.sections:
        title = section.title
        if section.columns:
            cells = "  ".join(section.columns)
            items.append(_item(title, ((cells, "muted"),), wide, Target(), f"{title} columns"))
            title = ""
        lead = max(map(width, section.leads), default=0)
        signed = any(map(of_row, section.rows))
        for number, row in enumerate(section.rows):
            pieces = _pieces(row, lead, signed)
            item = _item(title, pieces, wide, row.target, f"{section.title} {number}", whole)
            items.append(item)
            title = ""
    return tuple(items)


def _item(
    title: str,
    pieces: tuple[tuple[str, str], ...],
    wide: int,
    target: Target,
    key: str,
    whole: Collection[str] = (),
) -> Item:
    hints = []
    if target.change is not None:
        hints.append(
            ("enter: open" if target.change in whole else "enter: what changed", "primary")
        )
    elif target.document is not None:
        near = safe_line("/".join(target.document.split("/")[-2:]))  # a whole path takes three rows
        is_said = any(near in text for text, _ in pieces)
        hints.append(("enter: open" if is_said else f"enter: {near}", "primary"))
    lead = fit(safe_line(title), wide) + " " * GAP
    return Item(((lead, "muted"), *pieces), tuple(hints), target, indent=wide + GAP + 2, key=key)


def _pieces(row: Row, lead: int, signed: bool) -> tuple[tuple[str, str], ...]:
    """The row's sign, then the cells, the first of several as wide as ``lead``.

    A row without a sign leaves the room of one where others of its section are ``signed``.
    """
    style = _STYLES.get(row.tone, "")
    pieces = []
    if signed:
        checked = {None: style, True: "success", False: "error"}
        pieces.append((f"{of_row(row) or ' '} ", checked[row.checked]))
    cells = [safe_line(each) for each in row.cells if each]
    if len(cells) > 1 and lead:
        cells[0] += " " * (lead - width(cells[0]))
    for number, cell in enumerate(cells):
        pieces.append((("  " if number else "") + cell, style))
    return tuple(pieces)


def verdict_content(verdicts: Sequence[CardVerdict], chosen: int, room: int) -> Content:
    """The verdicts with their numbers: in one row, or else in as many columns as fit.

    Args:
        verdicts: Those of the card.
        chosen: The one in hand, from 0.
        room: How many cells a line has.
    """
    parts = []
    for number, each in enumerate(verdicts):
        style = "bold reverse" if number == chosen else "bold"
        sign = (f" {number + 1} ", f"{style} $text-accent")
        parts.append(join(sign, (f" {each.label}", "bold")))
    wide = sum(each.cell_length for each in parts) + len(_GAP) * (len(parts) - 1)
    if wide <= room:
        return Content(_GAP).join(parts)
    widest = max(each.cell_length for each in parts)
    rows = -(-len(parts) // max(1, (room + len(_GAP)) // (widest + len(_GAP))))
    columns = -(-len(parts) // rows)  # no more than these rows need
    padded = [
        part if (place + 1) % columns == 0 else part.pad_right(widest - part.cell_length)
        for place, part in enumerate(parts)
    ]
    lines = (padded[first : first + columns] for first in range(0, len(parts), columns))
    return Content("\n").join(Content(_GAP).join(each) for each in lines)


CLAIM_ROWS, NARROW_CLAIM_ROWS = 6, 3
"""Rows of a claim that stays above the facts; a longer one scrolls with them."""

_EDGE = 6  # cells of a row of the facts that its sign, the gap and the scroll bar take

_SCROLLING = ("card-facts", "card-writes", "card-inputs")


class CardFrame(Vertical):
    """Draws a card, and gives what scrolls the rows that all else leaves."""

    def compose(self) -> ComposeResult:
        """The matter, the writes, the inputs of the verdict, the verdicts."""
        yield Static(id="card-title")
        yield Static(id="card-claim")
        yield CardFacts(id="card-facts", wrapped=True)
        with VerticalScroll(id="card-writes"):
            yield Static(id="card-changes")
        yield VerticalScroll(id="card-inputs", can_focus=False)
        yield Static(id="card-verdicts")
        yield Static(id="card-why")

    def draw_title(self, card: Card, now: datetime) -> None:
        """Draw who asks for what, and how long it waits."""
        self.query_one("#card-title", Static).update(title_content(card, now, self._room))

    def draw_facts(self, card: Card) -> None:
        """Draw the claim above the facts, or, where it is long, among what scrolls."""
        most = NARROW_CLAIM_ROWS if self._is_narrow else CLAIM_ROWS
        is_long = claim_rows(card, self._room) > most
        claim = text.plain(f"“{card.claim}”", "italic")
        self.query_one("#card-claim", Static).update(claim)
        self.screen.set_class(not card.claim or is_long, "-unclaimed")
        self.screen.set_class(not card.sections and not is_long, "-bare")
        self.query_one(RowList).items = items_of(card, self._room - _EDGE if is_long else 0)

    def draw_verdicts(self, card: Card, chosen: int) -> None:
        """Draw the verdicts; the one in hand, counted from 0, stands out."""
        shown = verdict_content(card.verdicts, chosen, self._room)
        self.query_one("#card-verdicts", Static).update(shown)

    def fit(self, height: int) -> None:
        """Let what scrolls take what the title, the claim and the verdicts leave of the height."""
        scrolling = [each for each in self.children if each.id in _SCROLLING]
        fixed = sum(
            each.outer_size.height + each.styles.margin.height
            for each in self.children
            if each.display and each not in scrolling
        )
        shown = [each for each in scrolling if each.display]
        blank = sum(each.styles.margin.height for each in shown)
        room = height - self.gutter.height - fixed - blank
        for each in shown:
            rows = room // len(shown) if each.id != "card-inputs" else room - room // len(shown)
            each.styles.max_height = max(3, rows)

    @property
    def _is_narrow(self) -> bool:
        return self.screen.has_class("-narrow")

    @property
    def _room(self) -> int:
        """Cells of a row of the card."""
        share = 1.0 if self._is_narrow else 0.96
        return min(int(self.screen.size.width * share), 120) - self.gutter.width
