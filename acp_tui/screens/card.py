"""A matter to be decided: the facts first, all verdicts beside each other.

A verdict is one digit. It counts only where the key was pressed after the card was drawn, and is refused
where the matter has changed since then.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from acp_core.model import Action, Card, Outcome, OutcomeState
from acp_core.model.errors import Refused
from acp_tui import keys, text
from acp_tui.actions import forms
from acp_tui.actions.collaboration_actions import offered_named, trouble
from acp_tui.actions.preview import (
    Evaluation,
    evaluated,
    outcome_content,
    performed,
    preview_content,
)
from acp_tui.screens.result import capitalize_sentence, leave, report
from acp_tui.terminal.key_queue import NEVER_HELD
from acp_tui.widgets.card import CardFrame
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.row_list import RowList

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
        self._end(action, outcome)

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

    def _end(self, action: Action, result: Outcome | Evaluation) -> None:
        if isinstance(result, Evaluation):
            self._show_wrong(result.errors)
        elif result.state in (OutcomeState.DONE, OutcomeState.REQUESTED):
            leave(self, result)
            report(self.app, self.key, action, result)
        elif result.state is OutcomeState.REFUSED:
            self._refuse(result.sentence)
            self._load()
        else:
            self.add_class("-over")
            said = dataclasses.replace(result, sentence=self._alone(result.sentence))
            self._show_why(outcome_content(said))

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
