"""Acting in a collaboration: choosing an action, its form, what it would do, and how it ended.

`CreateScreen` asks for the folder and protocol of a new collaboration, then shows the form that the
protocol itself describes. What is refused leaves the form open; else `report` tells the outcome on the
screen below (`acp_tui.widgets.outcome_line`). Refusals and outcomes are data, which commands print after
"error: " too. Where one stands by itself it begins with a capital (`capitalize_sentence`);
`acp_core.model.format` has the rule.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, Input, OptionList, Select, Static
from textual.widgets.option_list import Option

from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.model.format import names_in, sentence_case
from acp_core.protocols import registry
from acp_tui import keys, text
from acp_tui.actions import forms
from acp_tui.actions.availability import UNNAMED, describe
from acp_tui.actions.forms import (
    Evaluation,
    evaluated,
    outcome_content,
    performed,
    preview_content,
)
from acp_tui.actions.offered import (
    grave,
    grave_last,
    offered,
    offered_named,
    trouble,
)
from acp_tui.screens.choosing import Options
from acp_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from textual.content import Content
    from textual.screen import Screen

    from acp_core.fleet import Batch
    from acp_core.model import Action, Outcome
    from acp_tui.app import AcpApp, Ended

T = TypeVar("T")

PAUSE = 0.15  # seconds without typing before the preview is worked out


class ActionScreen(ModalScreen[Outcome | None]):
    """The form of one action."""

    CSS_PATH = "action.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*keys.FORM]
    app: AcpApp

    def __init__(
        self, key: str | None, action: Action | str, given: Mapping[str, str] | None = None
    ) -> None:
        """Make it.

        Args:
            key: The collaboration; None where the action belongs to none.
            action: The action, or the name of one that the collaboration offers.
            given: What stands in its fields at first, by name, where it has such fields.
        """
        super().__init__()
        self._given = dict(given or {})
        self.collaboration = key
        self._wanted = action if isinstance(action, str) else action.name
        self._action = None if isinstance(action, str) else action
        self._touched: set[str] = set()
        self._evaluation: Evaluation | None = None
        self._busy = False
        self._refused = False  # what was refused, and why, shows until something is changed
        self._timer: Timer | None = None
        self.is_being_made = True
        """Whether its fields are not there yet: keys wait for them."""

    # building

    def compose(self) -> ComposeResult:
        """A frame: title, form beside preview, buttons."""
        with VerticalScroll(id="frame", can_focus=False):
            yield Static(id="title")
            with Horizontal(id="panes"):
                with VerticalScroll(id="form", can_focus=False):
                    yield from self.compose_above()
                    yield Vertical(id="fields")
                with VerticalScroll(id="preview"):
                    yield Static(id="what")
            with Horizontal(id="buttons"):
                yield Button(
                    text.line("Do it"), id="do", variant="primary", compact=True, disabled=True
                )
                yield Button(text.line("Cancel"), id="cancel", compact=True)
                yield Static(id="why")
        yield KeyLine()

    def compose_above(self) -> ComposeResult:
        """What stands above the form."""
        yield from ()

    async def on_mount(self) -> None:
        """Listen to the fleet, and get the action."""
        self.app.snapshots_changed.subscribe(self, self._changed)
        await self.prepare()

    async def prepare(self) -> None:
        """Show the form, or find the action first."""
        if self._action is None:
            self.query_one("#title", Static).update(text.plain("Loading the actions…"))
            self._find()
        else:
            await self.begin(self._action)

    @work(exclusive=True, group="find", exit_on_error=False)
    async def _find(self) -> None:
        assert self.collaboration is not None
        try:
            action = await offered_named(self.app, self.collaboration, self._wanted)
            others = () if action else await offered(self.app, self.collaboration)
        except Refused as refused:
            self.cannot(f"{await self._impossible()}: {refused}")
        except Exception as error:  # somebody else's protocol: said, not raised
            why = trouble(self.app, self.collaboration, error)
            self.cannot(f"Could not load the actions: {why}")
        else:
            if action is not None:
                await self.begin(action)
                return
            known = ", ".join(each.label for each in others)
            instead = f" Possible now: {known}." if known else ""
            self.cannot(f"{await self._impossible()}.{instead}")

    async def _impossible(self) -> str:
        """That the act that is wanted is not possible now, by what it is called."""
        snapshot = self.app.fleet.snapshots.get(self.collaboration or "")
        protocol = snapshot.protocol if snapshot is not None else ""
        label = await describe(protocol, self._wanted)
        return f"{'This' if label == UNNAMED else f'“{label}”'} is not possible now"

    def cannot(self, sentence: str) -> None:
        """Say that there is no action to show, and why."""
        self.query_one("#title", Static).update(text.plain(sentence))
        self.add_class("-over")
        self._name_button("#cancel", "Close")
        self.query_one("#cancel", Button).focus()
        self.is_being_made = False

    def _name_button(self, id: str, label: str) -> None:
        button = self.query_one(id, Button)
        button.label = text.line(label)
        button.refresh(layout=True)  # a new label alone leaves the button as wide as it was

    async def begin(self, action: Action) -> None:
        """Show the form of an action."""
        self._action = action
        self.query_one("#title", Static).update(self._title(action))
        self._name_button("#do", action.label)
        self.set_class(action.risky, "-risky")
        names = {field.name for field in forms.fields(action)}
        given = {name: text for name, text in self._given.items() if name in names}
        described = forms.fields(action, given)
        form = forms.Form(described)
        place = self.query_one("#fields", Vertical)
        await place.remove_children()
        await place.mount(form)
        self.set_class(not described, "-bare")
        draft = self.app.drafts.get(self._draft_key)
        if draft:
            form.fill({name: value for name, value in draft.items() if name not in given})
        self._focus_first()
        self.is_being_made = False
        self.preview_soon(0)

    async def replace(self, action: Action) -> None:
        """Go on with another action; where its form is the same, what was typed stays as it is."""
        form, before = self.form, self._action
        if form and before and forms.fields(action) == forms.fields(before):
            self._action = action
            self.preview_soon()
            return
        if form:
            self._keep_draft()
        await self.begin(action)

    def _title(self, action: Action) -> Content:
        where = ""
        if self.collaboration is not None:
            snapshot = self.app.fleet.snapshots.get(self.collaboration)
            where = f"  {snapshot.name}" if snapshot else ""
        return text.join(
            (text.safe_line(action.label), "bold $text-accent"),
            (text.safe_line(where), text.MUTED),
            "\n",
            (action.sentence, "$text"),
        )

    def _focus_first(self) -> None:
        """Go to what must be filled in, else to what can be written, else to what there is."""
        views = self.form.views if self.form else []
        required = [v for v in views if v.field.required and v.field.default in (None, "", [])]
        groups = [view for view in views if view.field.kind in ("several", "each")]
        written = [view for view in views if view.field.kind not in ("choice", "switch")]
        view = next(iter((*required, *groups, *written, *views)), None)
        if view is None:
            self.query_one("#do", Button).focus()
            return
        view.focus_control()  # at once, as somebody may type already; it has no place yet
        self.call_after_refresh(view.scroll_visible, animate=False)

    @property
    def form(self) -> forms.Form | None:
        """The form, once it is there."""
        return next(iter(self.query(forms.Form)), None)

    @property
    def _draft_key(self) -> tuple[str, str]:
        return self.collaboration or "", self._wanted

    # what would be done

    def _changed(self, batch: Batch) -> None:
        changed = any(snapshot.key == self.collaboration for snapshot in batch.snapshots)
        changed = changed or self.collaboration in batch.loops
        if changed and not self._refused:
            self.preview_soon()

    @on(forms.FieldView.Changed)
    def _typed(self, message: forms.FieldView.Changed) -> None:
        field = message.view.field
        if message.view.value != field.default:
            self._touched.add(field.name)
        self._refused = False
        self.preview_soon()

    def preview_soon(self, seconds: float = PAUSE) -> None:
        """Work out what would be done, when nothing was typed for so long."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(seconds, self._evaluate) if seconds else None
        if not seconds:
            self._evaluate()

    @work(exclusive=True, group="look", exit_on_error=False)
    async def _evaluate(self) -> None:
        form, action = self.form, self._action
        if form is None or action is None or self._busy or self.has_class("-over"):
            return
        values = form.values()
        try:
            evaluation = await self._run(lambda: evaluated(action, values))
        except Exception as error:  # somebody else's protocol: said, not raised
            why = trouble(self.app, self.collaboration, error)
            sentence = "Could not make the preview."
            evaluation = Evaluation(preview=Preview(sentence, refused=why))
        self._show_evaluation(evaluation)

    def _show_evaluation(self, evaluation: Evaluation, *, everything: bool = False) -> None:
        self._evaluation = evaluation
        if self.form:
            only = None if everything else frozenset(self._touched)
            self.form.show_wrong(evaluation.errors, only)
        why = evaluation.errors.get("", "") if evaluation.errors else ""
        if evaluation.preview is not None and (action := self._action) is not None:
            why = evaluation.preview.refused  # it stands beside the buttons, and once
            preview = dataclasses.replace(evaluation.preview, refused="")
            self.query_one("#what", Static).update(preview_content(preview, action.sentence))
        elif evaluation.errors:
            missing = "Fill in the required fields to see the preview."
            self.query_one("#what", Static).update(text.plain(missing, text.MUTED))
        allowed = (
            not evaluation.errors
            and evaluation.preview is not None
            and not evaluation.preview.refused
        )
        button = self.query_one("#do", Button)
        began = button.disabled and allowed
        button.disabled = not allowed
        if began and self.has_class("-bare"):  # there is no field to begin with
            button.focus()
        said = f"✗ {self._alone(why)}" if why else ""
        self.query_one("#why", Static).update(text.plain(said, "$text-error"))

    def _alone(self, sentence: str) -> str:
        """A refusal or an outcome as it stands in the form."""
        values = self.form.values() if self.form else {}
        return capitalize_sentence(self.app, self.collaboration, sentence, values)

    async def _run(self, function: Callable[[], T]) -> T:
        """Run in a worker thread, one at a time with everything else about the collaboration."""
        if self.collaboration is None:
            return await asyncio.to_thread(function)
        return await self.app.fleet.call(self.collaboration, lambda _: function())

    # doing it

    def action_do(self) -> None:
        """Do it; where something is wrong, say what instead."""
        if not self._busy and self.form and self._action:
            self._do(self._action, self.form.values())

    @on(Button.Pressed, "#do")
    def _pressed(self) -> None:
        self.action_do()

    @work(exclusive=True, group="do", exit_on_error=False)
    async def _do(self, action: Action, values: dict[str, object]) -> None:
        self._busy = True
        self._keep_draft()
        button = self.query_one("#do", Button)
        button.loading = True
        try:
            result = await self._run(lambda: performed(action, values))
        except Exception as error:  # the files may have changed: neither done nor refused
            why = trouble(self.app, self.collaboration, error)
            result = Outcome(OutcomeState.UNKNOWN, f"Result unknown: {why}")
        finally:
            button.loading = False
            self._busy = False
        if isinstance(result, Evaluation):
            self._show_evaluation(result, everything=True)
            self._focus_wrong(result)
        else:
            self._end(result)

    def _focus_wrong(self, evaluation: Evaluation) -> None:
        for view in self.form.views if self.form else []:
            if view.field.name in evaluation.errors:
                view.focus_control()
                return

    def _end(self, outcome: Outcome) -> None:
        if self._action is not None and self._action.personal:
            self.app.attention_changed()
        if outcome.state is not OutcomeState.REFUSED:
            self.app.drafts.pop(self._draft_key, None)
            leave(self, outcome)
            report(self.app, self.collaboration, outcome)
            return
        said = dataclasses.replace(outcome, sentence=self._alone(outcome.sentence))
        self.query_one("#what", Static).update(outcome_content(said))
        self.query_one("#preview").scroll_home(animate=False)
        why = self.query_one("#why", Static)
        self._refused = True  # change something and try again
        why.update(text.plain("✗ Refused: change the form, or cancel", "$text-error"))
        self.query_one("#do", Button).disabled = True

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to do it only while it is not over."""
        return not (action == "do" and self.has_class("-over"))

    # leaving

    @property
    def unsaved(self) -> str:
        """What would be lost if the dashboard were left now, as a sentence."""
        if self._busy:
            return "Running."
        if self._touched and not self.has_class("-over"):
            return "What you typed here has not been applied, and would be lost."
        return ""

    @on(Button.Pressed, "#cancel")
    def _cancelled(self) -> None:
        self.action_cancel()

    def action_cancel(self) -> None:
        """Leave; what was typed is there again the next time."""
        if self._busy:
            self.app.tell("Running. The result will appear here.")
            return
        if self._touched and not self.has_class("-over"):
            self._keep_draft()
        self.dismiss(None)

    def _keep_draft(self) -> None:
        if self.form:
            self.app.drafts[self._draft_key] = self.form.values()


LONGEST_NAME = 48  # characters of a folder's name that is made from an objective


class CreateScreen(ActionScreen):
    """Starts a collaboration; shows what will be written before it is."""

    def __init__(self, parent: Path) -> None:
        """Make it.

        Args:
            parent: The folder in which the new one is proposed to stand.
        """
        super().__init__(None, "create")
        self._parent_folder = parent
        self._protocols: dict[str, registry.Protocol] = {}
        self._proposed = ""  # what stands in the folder's field by itself

    def compose_above(self) -> ComposeResult:
        """Folder and protocol."""
        yield Static(text.plain("Folder"), classes="field--title")
        yield forms.LineInput(id="folder")
        yield Static(id="where")
        yield Static(text.plain("Protocol"), classes="field--title", id="protocol-title")
        yield Select[str]([], id="protocol", allow_blank=True)

    async def prepare(self) -> None:
        """Find out which protocols can begin something, and take the first."""
        self.query_one("#title", Static).update(text.plain("New collaboration", "bold"))
        known = await asyncio.to_thread(lambda: [p for p in registry.installed() if p.create])
        if not known:
            self.cannot("No installed protocol can create a collaboration from here.")
            return
        self._protocols = {protocol.name: protocol for protocol in known}
        several = len(known) > 1
        self.query_one("#protocol").display = several
        self.query_one("#protocol-title").display = several
        choice = self.query_one("#protocol", Select)
        choice.set_options((text.searchable(each.title), each.name) for each in known)
        choice.value = known[0].name
        self._propose("")
        (choice if several else self.query_one("#folder")).focus()
        self._take()

    @property
    def folder(self) -> Path:
        """Where it will stand: relative paths count from the parent."""
        typed = os.path.expanduser(self.query_one("#folder", Input).value.strip())
        return Path(os.path.normpath(self._parent_folder / typed))

    def _propose(self, objective: str) -> None:
        """Name the folder after the objective, unless the person named it."""
        field = self.query_one("#folder", Input)
        if field.value == self._proposed:
            self._proposed = field.value = folder_name(objective)

    @on(Input.Changed, "#folder")
    @on(Select.Changed, "#protocol")
    def _elsewhere(self) -> None:
        if self._protocols:
            self._take()

    @on(forms.FieldView.Changed)
    def _objective(self, message: forms.FieldView.Changed) -> None:
        if message.view.field.name == "objective":
            self._propose(str(message.view.value or ""))

    @work(exclusive=True, group="take", exit_on_error=False)
    async def _take(self) -> None:
        """Get the action for the folder and protocol that are chosen now; the form's texts stay."""
        chosen = self.query_one("#protocol", Select).value
        protocol = self._protocols.get(str(chosen))
        if protocol is None or protocol.create is None:
            return
        folder, reference = self.folder, protocol.create
        where = text.join(("Will be created in ", text.MUTED), text.safe_line(str(folder)))
        self.query_one("#where", Static).update(where)
        try:
            action: Action = await asyncio.to_thread(lambda: registry.load(reference)(folder))
        except Exception as error:  # somebody else's protocol: said, not raised
            sentence = f"{protocol.title} cannot be created from here: {error!r}"
            self.query_one("#what", Static).update(text.plain(sentence, "$text-error"))
            return
        await self.replace(action)


def folder_name(objective: str) -> str:
    """A folder's name made from an objective: its words, with dashes."""
    words = re.findall(r"\w+", objective.casefold())
    name = "-".join(words)[:LONGEST_NAME].strip("-_")
    return name or "new-collaboration"


class ActionsScreen(ModalScreen[None]):
    """The actions of one collaboration, each with its sentence."""

    CSS_PATH = "actions.tcss"
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [*keys.PICK]
    app: AcpApp

    def __init__(self, key: str, then: Ended | None = None) -> None:
        super().__init__()
        self.collaboration = key
        self._then = then
        self._offered: Sequence[Action] = ()

    def compose(self) -> ComposeResult:
        """A title and the list."""
        with Vertical(id="frame"):
            yield Static(id="title")
            yield Options(markup=False)
        yield KeyLine()

    def on_mount(self) -> None:
        """Find out what can be done."""
        self._say("Loading the actions…")
        self._find()

    def _say(self, sentence: str) -> None:
        snapshot = self.app.fleet.snapshots.get(self.collaboration)
        name = snapshot.name if snapshot else self.collaboration
        title = text.join((text.safe_line(name), "bold $text-accent"), "\n", sentence)
        self.query_one("#title", Static).update(title)

    def _limits(self) -> str:
        snapshot = self.app.fleet.snapshots.get(self.collaboration)
        return snapshot.limits if snapshot else ""

    @work(exclusive=True, exit_on_error=False)
    async def _find(self) -> None:
        try:
            self._offered = grave_last(await offered(self.app, self.collaboration))
        except Exception as error:  # somebody else's protocol: said, not raised
            why = trouble(self.app, self.collaboration, error)
            self._say(f"Could not load the actions: {why}")
            return
        if not self._offered:
            self._say(self._limits() or "No actions are possible here now.")
            return
        self._say(" ".join(filter(None, (self._limits(), "Possible actions:"))))
        choices = self.query_one(OptionList)
        for place, action in enumerate(self._offered):
            option = text.join(
                (text.safe_line(action.label), "bold"),
                (" (cannot be undone)" if action.risky else "", "$text-warning"),
                "\n",
                (text.safe_line(action.sentence), text.MUTED),
            )
            choices.add_option(Option(option, id=str(place)))
        choices.highlighted = None if grave(self._offered[0]) else 0
        choices.focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        action = self._offered[int(event.option_id or 0)]
        self.dismiss()
        self.app.perform(self.collaboration, action, self._then)

    def action_close(self) -> None:
        """Leave."""
        self.dismiss()


def report(app: AcpApp, key: str | None, outcome: Outcome) -> None:
    """Tell how an act ended, on the screen that shows now.

    Args:
        app: The dashboard.
        key: The collaboration's; None where the act belongs to none.
        outcome: How it ended.
    """
    place = outcome.location
    if place and place not in app.fleet.snapshots and os.path.isdir(place):
        app.fleet.add(Path(place))
    sentence = capitalize_sentence(app, key, outcome.sentence)
    app.outcomes.tell(replace(outcome, sentence=sentence))


def leave(screen: Screen[Outcome | None], outcome: Outcome) -> None:
    """Leave the screen of an act with its outcome; what was opened over it meanwhile goes too."""
    app = screen.app
    while app.screen is not screen:  # a document of its card: Textual takes away what is on top
        app.pop_screen()
    screen.dismiss(outcome)


_NOTHING: Mapping[str, object] = {}

_NAMED = re.compile(r"\S+(?: \d+)?:(?: |$)")


def capitalize_sentence(
    app: AcpApp, key: str | None, sentence: str, values: Mapping[str, object] = _NOTHING
) -> str:
    """A refusal or an outcome as it stands by itself.

    Args:
        app: Its fleet knows the names with which a sentence may begin.
        key: The collaboration that it is about; None for none.
        sentence: What was said. A word (and a number) before a colon names what it is about: a
            field, a file, an event.
        values: What is in the form: names that no collaboration has yet, agents that are chosen.

    Returns:
        The sentence, with a capital unless it begins with a name.
    """
    if _NAMED.match(sentence):
        return sentence
    snapshot = app.fleet.snapshots.get(key) if key is not None else None
    known = names_in(snapshot) if snapshot is not None else ()
    return sentence_case(sentence, (*known, *_names(values)))


def _names(values: Mapping[str, object]) -> Iterator[str]:
    """What a form's values may name: words alone, and both sides of NAME=VALUE."""
    for value in values.values():
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(each, str) and " " not in each:
                yield from each.split("=")
