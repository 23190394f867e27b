"""An action's inputs as a form, made from their description, and the action tried with what is typed.

Nothing is known here of any action: a title, a description, a default, the choices and
the kind of each field stand in its table of fields (see `acp_core.model.action_spec.Field`), or in the
pydantic model of an action that has no such table. Inputs that hold several choices have widgets of
their own: `MultiSelect`, a switch for each choice, and `ChoicePerName`, a choice for each name.
`evaluated` and `performed` are slow: for worker threads.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Any, Protocol

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Checkbox, Input, Select, Static, TextArea

from acp_core.model import action_spec as spec
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import Kind
from acp_core.model.format import count
from acp_core.protocols.kit import schema
from acp_core.protocols.kit.schema import fields as described
from acp_tui import text

if TYPE_CHECKING:
    from pydantic import ValidationError

KINDS = {
    Kind.LINES: "lines",
    Kind.NUMBER: "number",
    Kind.DURATION: "number",
    Kind.DECIMAL: "number",
    Kind.FLAG: "switch",
    Kind.LIST: "list",
    Kind.CHOICE: "choice",
}

_WRITTEN = ("line", "lines", "list")


@dataclass(frozen=True, slots=True)
class Field:
    """One input. ``kind`` is line, lines, list, number, choice, switch, several (of the choices) or
    each (a choice for each of ``names``, or of what stands in the field ``names_from``).

    ``default`` is what the field begins with; an ``optional`` one gives None while nothing
    is in it. ``labels`` says what a choice is called where it does not speak for itself.
    """

    name: str
    title: str
    kind: str
    description: str = ""
    default: object = None
    required: bool = False
    optional: bool = False
    choices: tuple[Any, ...] = ()
    labels: Mapping[str, str] = dataclass_field(default_factory=dict)
    names: tuple[str, ...] = ()
    names_from: str = ""
    bare: object = None


def fields(
    action: Action, given: Mapping[str, object] | None = None, *, must: Collection[str] = ()
) -> tuple[Field, ...]:
    """The inputs of an action in the order of its description.

    Args:
        action: The action.
        given: Values that stand above the defaults.
        must: Names of texts that must be written here, also where the action does without.
    """
    asked = (each for each in described(action) if each.asked)
    made = (_field(each, {**action.defaults, **(given or {})}) for each in asked)
    return tuple(
        replace(each, required=True)
        if each.name in must and each.kind in _WRITTEN and not each.default
        else each
        for each in made
    )


def _field(field: spec.Field, given: Mapping[str, object]) -> Field:
    chosen = given.get(field.name, field.default)
    choices = field.choices if field.kind is Kind.CHOICE else ()
    kind = KINDS.get(field.kind, "line") if choices or field.kind is not Kind.CHOICE else "line"
    if field.items is Kind.CHOICE:
        kind, choices = "each" if field.names or field.names_from else "several", field.choices
    empty = field.default is None and not field.required
    return Field(
        name=field.name,
        title=field.title or field.name.replace("_", " ").capitalize(),
        kind=kind,
        description=field.help,
        default=value_of(field.choices, field.labels, chosen),
        required=field.required and chosen is None,
        optional=field.optional or (empty and kind in ("choice", "number")),
        choices=choices,
        labels=field.labels,
        names=field.names,
        names_from=field.names_from,
        bare=field.bare,
    )


def value_of(choices: Iterable[Any], labels: Mapping[str, str], value: object) -> object:
    """The choice that a value means: a choice itself, or what one is called."""
    called = [each for each in choices if labels.get(str(each)) == value]
    return called[0] if len(called) == 1 and value not in choices else value


def errors_by_field(error: ValidationError) -> dict[str, str]:
    """What is wrong, by field ("" where it is about the whole), the first for each."""
    problems: dict[str, str] = {}
    for name, problem in schema.problems(error):
        problems.setdefault(name, problem)
    return problems


class LineInput(Input):
    """One line; what is pasted cannot hold anything that a terminal obeys."""

    def on_paste(self, event: events.Paste) -> None:
        event.text = text.safe(event.text)  # what `Input` then does with it follows by itself


class LinesInput(TextArea):
    """Several lines; what is pasted cannot hold anything that a terminal obeys."""

    async def on_paste(self, event: events.Paste) -> None:
        event.text = text.safe(event.text)  # what `TextArea` then does with it follows by itself


class FieldView(Vertical):
    """A field with its title, its description, and what is wrong with what is in it."""

    DEFAULT_CSS = """
    FieldView {
        height: auto;
        margin: 0 0 1 0;
        & > .field--title { height: auto; text-style: bold; }
        & > .field--about { height: auto; color: $text-muted; }
        & > .field--wrong { height: auto; color: $text-error; display: none; }
        &.-wrong > .field--wrong { display: block; }
        & > TextArea { height: auto; min-height: 4; max-height: 9; scrollbar-size-vertical: 1; }
        & > TextArea.field--list { min-height: 3; }
        & SelectCurrent Static#label, & SelectCurrent .arrow { color: $text-muted; }
        & Checkbox, & Checkbox:focus { border: none; padding: 0; background: transparent; }
        & Tick > .toggle--button { color: $surface; background: $foreground 60%; }
        & Tick.-on > .toggle--button { color: $surface; background: $foreground; }
    }
    """

    @dataclass
    class Changed(Message):
        """Something else is in the field now."""

        view: FieldView

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field

    def compose(self) -> ComposeResult:
        """Title, description, the control, the error."""
        field = self.field
        mark = (" (required)", f"not bold {text.MUTED}") if field.required else ""
        if field.kind == "switch":
            yield Tick(text.line(field.title), bool(field.default))
        else:
            yield Static(text.join(text.safe_line(field.title), mark), classes="field--title")
        about = field.description
        if field.kind == "list":
            about = f"{about} One per line.".strip()
        if about:
            yield Static(text.plain(about), classes="field--about")
        if field.kind != "switch":
            yield self._control()
        yield Static(classes="field--wrong")

    def _control(self) -> Widget:
        field, value = self.field, self.field.default
        if field.kind in ("several", "each"):
            return MultiSelect(field) if field.kind == "several" else ChoicePerName(field)
        if field.kind == "choice":
            options = [
                (text.searchable(field.labels.get(str(choice), str(choice))), choice)
                for choice in field.choices
            ]
            known = value in field.choices
            alone = len(options) == 1 and not field.optional
            chosen = value if known else field.choices[0] if alone else Select.NULL
            blank = field.optional or chosen is Select.NULL
            return Select(options, value=chosen, allow_blank=blank)
        if field.kind == "lines":
            return LinesInput(text.safe(_text(value)), tab_behavior="focus", soft_wrap=True)
        if field.kind == "list":
            lines = "\n".join(map(str, value)) if isinstance(value, list | tuple) else _text(value)
            return LinesInput(text.safe(lines), tab_behavior="focus", classes="field--list")
        return LineInput(text.safe_line(" ".join(_text(value).splitlines())), type="text")

    @property
    def control(self) -> Widget:
        """What the person types or chooses in."""
        groups = list(self.query("MultiSelect, ChoicePerName").results(Widget))
        return groups[0] if groups else self.query_one("Input, TextArea, Select, Checkbox", Widget)

    def focus_control(self) -> None:
        """Go to what the person types or chooses in."""
        control = next(iter(self.query("Input, TextArea, Select, Checkbox")), None)
        if control is not None:
            control.focus()

    @property
    def value(self) -> object:
        """What is in it, as pydantic takes it; None for nothing where that is allowed."""
        control, field = self.control, self.field
        if isinstance(control, Checkbox | MultiSelect | ChoicePerName):
            return control.value
        if isinstance(control, Select):
            return None if control.is_blank() else control.value
        if isinstance(control, TextArea):
            if field.kind == "list":
                return [line.strip() for line in control.text.splitlines() if line.strip()]
            return control.text
        assert isinstance(control, Input)
        if not control.value.strip() and (field.optional or field.kind == "number"):
            return None
        return control.value

    @value.setter
    def value(self, value: object) -> None:
        control = self.control
        if isinstance(control, MultiSelect | ChoicePerName):
            control.value = value
        elif isinstance(control, Checkbox):
            control.value = bool(value)
        elif isinstance(control, Select):
            chosen = value_of(self.field.choices, self.field.labels, value)
            if chosen in self.field.choices:
                control.value = chosen
        elif isinstance(control, TextArea):
            lines = "\n".join(map(str, value)) if isinstance(value, list | tuple) else _text(value)
            control.load_text(text.safe(lines))
        elif isinstance(control, Input):
            control.value = text.safe_line(_text(value))

    def show_wrong(self, message: str) -> None:
        """Say beside the field what is wrong ("" for nothing)."""
        self.set_class(bool(message), "-wrong")
        self.query_one(".field--wrong", Static).update(text.plain(f"✗ {message}"))

    @on(Input.Changed)
    @on(TextArea.Changed)
    @on(Select.Changed)
    @on(Checkbox.Changed)
    def _control_changed(self, event: Message) -> None:
        event.stop()
        self.post_message(self.Changed(self))

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        event.stop()
        self.screen.focus_next()


class Form(Vertical):
    """The fields of an action."""

    DEFAULT_CSS = "Form { height: auto; }"

    def __init__(self, described: Iterable[Field]) -> None:
        super().__init__()
        self.described = tuple(described)

    def compose(self) -> ComposeResult:
        """One view per field."""
        for field in self.described:
            yield FieldView(field)

    @property
    def views(self) -> list[FieldView]:
        """The fields on the screen."""
        return list(self.query(FieldView))

    @on(FieldView.Changed)
    async def _rename(self, message: FieldView.Changed) -> None:
        """Give a choice to each name that another field holds now."""
        for view in self.views:
            if view.field.names_from == message.view.field.name:
                for group in view.query(ChoicePerName):  # none while it is being made
                    await group.rename(entries(message.view.value))

    def values(self) -> dict[str, object]:
        """What is in the fields; what is empty and has no need to be given is left out."""
        values = {}
        for view in self.views:
            value = view.value
            if value is None and not view.field.optional:
                continue
            values[view.field.name] = value
        for view in self.views:
            if view.field.names_from:
                names = entries(values.get(view.field.names_from))
                values[view.field.name] = view.query_one(ChoicePerName).value_for(names)
        return values

    def missing(self) -> dict[str, str]:
        """What is wrong with required texts in which nothing is written, by field."""
        must = [each for each in self.views if each.field.required and each.field.kind in _WRITTEN]
        return {each.field.name: "is missing" for each in must if not _holds_text(each.value)}

    def sentence(self, errors: Mapping[str, str]) -> str:
        """What is wrong in one line, with the titles of the fields."""
        titles = {each.field.name: each.field.title for each in self.views}
        return "; ".join(
            f"“{titles[name]}” {message}" if name in titles else message
            for name, message in errors.items()
        )

    def fill(self, values: Mapping[str, object]) -> None:
        """Put values into the fields that have them."""
        for view in self.views:
            if view.field.name in values:
                view.value = values[view.field.name]
            if view.field.names_from in values:
                names = entries(values[view.field.names_from])
                view.query_one(ChoicePerName).remember(names, values.get(view.field.name))

    def show_wrong(self, errors: Mapping[str, str], only: frozenset[str] | None = None) -> None:
        """Say what is wrong beside each field; in fields outside ``only``, not yet."""
        for view in self.views:
            marked = only is None or view.field.name in only
            view.show_wrong(errors.get(view.field.name, "") if marked else "")


def _holds_text(value: object) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)


def _text(value: object) -> str:
    return "" if value is None else str(value)


class Described(Protocol):
    """What is needed of a field; see `acp_tui.actions.forms.Field`."""

    @property
    def choices(self) -> tuple[Any, ...]:
        """What can be chosen."""

    @property
    def labels(self) -> Mapping[str, str]:
        """What choices are called; ``NAME=`` for a name."""

    @property
    def names(self) -> tuple[str, ...]:
        """What each gets a choice."""

    @property
    def bare(self) -> object:
        """The choice of a name that is given without one."""

    @property
    def default(self) -> object:
        """What is chosen at first."""


class Tick(Checkbox):
    """A switch that is told from its contrary without colours: the box is empty, or it is not."""

    def render(self) -> Content:
        """Draw it."""
        self.BUTTON_INNER = "X" if self.value else " "
        return super().render()


class MultiSelect(Vertical):
    """A switch for each choice; its value is those that are on."""

    DEFAULT_CSS = "MultiSelect { height: auto; }"

    def __init__(self, field: Described) -> None:
        super().__init__()
        self.field = field

    def compose(self) -> ComposeResult:
        """One switch for each."""
        chosen = entries(self.field.default)
        for choice in map(str, self.field.choices):
            label = text.line(self.field.labels.get(choice, choice))
            yield Tick(label, choice in chosen, compact=True)

    @property
    def value(self) -> list[str]:
        """What is chosen."""
        ticks = zip(self.field.choices, self.query(Tick), strict=True)
        return [str(choice) for choice, tick in ticks if tick.value]

    @value.setter
    def value(self, value: object) -> None:
        chosen = entries(value)
        for choice, tick in zip(self.field.choices, self.query(Tick), strict=True):
            tick.value = str(choice) in chosen


class Row(Vertical):
    """A name with the choice for it."""


class ChoicePerName(Vertical):
    """A choice, or nothing, for each name; its value is a list of ``NAME=CHOICE``."""

    DEFAULT_CSS = """
    ChoicePerName {
        height: auto;
        & > Row { height: auto; }
        & .each--name { height: auto; text-style: bold; }
    }
    """

    def __init__(self, field: Described) -> None:
        super().__init__()
        self.field = field
        self.names = list(field.names)
        self._wished = self._chosen(field.default)

    def compose(self) -> ComposeResult:
        """The name, and what can be chosen for it."""
        for name in self.names:
            yield self._row(name, self._wished.get(name, Select.NULL))

    def _row(self, name: str, chosen: Any) -> Row:
        options = [
            (text.searchable(self.field.labels.get(str(each), str(each))), str(each))
            for each in self.field.choices
        ]
        title = Static(self._title(name), classes="each--name")
        choice = Select(options, value=chosen, prompt="no agent", allow_blank=True)
        return Row(title, choice)

    def _title(self, name: str) -> Content:
        return text.plain(self.field.labels.get(f"{name}=", name))

    async def rename(self, names: Iterable[str]) -> None:
        """Give a choice to each of these names: what was chosen for it, else the usual one."""
        choices = self._choices(names)
        rows, self.names = len(self.names), list(choices)
        for row in [*self.query(Row)][len(choices) :]:
            await row.remove()
        await self.mount_all(self._row(*each) for each in [*choices.items()][rows:])
        titles = self.query(".each--name").results(Static)
        for name, title, select in zip(choices, titles, self.query(Select), strict=True):
            title.update(self._title(name))
            select.value = choices[name]

    def value_for(self, names: Iterable[str]) -> list[str]:
        """What is chosen for these names, though their rows may not be drawn yet."""
        choices = self._choices(names).items()
        return [f"{name}={choice}" for name, choice in choices if choice is not Select.NULL]

    def _choices(self, names: Iterable[str]) -> dict[str, Any]:
        wanted = list(dict.fromkeys(name for name in names if "=" not in name))
        usual = self.field.bare if self.field.bare in self.field.choices else Select.NULL
        before = {**self._wished, **dict(self._pairs())}
        if len(wanted) == len(self.names):  # a name is being typed: its row stays
            pairs = zip(wanted, self.names, strict=True)
            before |= {new: before.get(old, usual) for new, old in pairs}
        return {name: before.get(name, usual) for name in wanted}

    def remember(self, names: Iterable[str], value: object) -> None:
        """Take what was chosen for these names, nothing among it, before their rows are there."""
        self._wished = {**dict.fromkeys(names, Select.NULL), **self._chosen(value)}

    def _chosen(self, value: object) -> dict[str, Any]:
        """The choices by name; a name without one gets the usual one."""
        pairs = (each.partition("=") for each in entries(value))
        given = {name: choice if equals else self.field.bare for name, equals, choice in pairs}
        return {name: choice for name, choice in given.items() if choice in self.field.choices}

    def _pairs(self) -> list[tuple[str, Any]]:
        return [
            (name, select.value)
            for name, select in zip(self.names, self.query(Select), strict=False)
        ]

    @property
    def value(self) -> list[str]:
        """What is chosen."""
        return [f"{name}={choice}" for name, choice in self._pairs() if choice is not Select.NULL]

    @value.setter
    def value(self, value: object) -> None:
        self._wished = self._chosen(value)
        for name, select in zip(self.names, self.query(Select), strict=True):
            select.value = self._wished.get(name, Select.NULL)


def entries(value: object) -> list[str]:
    """The entries of a list; one text stands for a list of it."""
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    return [] if value in (None, "") else [str(value)]


DIFF_LINES = 400
"""How many lines of a file's difference are shown at most."""

_OUTCOMES = {
    OutcomeState.DONE: ("✓ Done", "$text-success"),
    OutcomeState.REQUESTED: ("… Queued, not applied yet", "$text-warning"),
    OutcomeState.REFUSED: ("✗ Refused, nothing was changed", "$text-error"),
    OutcomeState.UNKNOWN: ("? Result unknown", "$text-warning"),
}


def preview_content(preview: Preview, above: str = "") -> Content:
    """The sentence, warnings, notes, the change of every file, and the command that does the same.

    Args:
        preview: What the action would do.
        above: What stands above it on the screen already, and is not repeated.
    """
    parts: list[text.Part] = []
    if preview.sentence != above:
        parts += [(preview.sentence, "bold"), "\n"]
    if preview.refused and preview.refused != preview.sentence:
        parts.append((f"✗ {preview.refused}\n", "$text-error"))
    parts += [(f"! {warning}\n", "$text-warning") for warning in preview.warnings]
    parts += [(f"· {note}\n", text.MUTED) for note in preview.notes]
    for change in preview.changes:
        parts += ["\n" if parts else "", *_change(change)]
    if preview.command:
        parts += ["\n" if parts else "", ("The same from a shell\n", text.MUTED)]
        parts.append((shlex.join(preview.command) + "\n", "$text-accent"))
    return text.join(*parts)


def _change(change: Change) -> list[text.Part]:
    lines = change.diff.splitlines()
    parts: list[text.Part] = [
        (f"{change.verb} ", text.MUTED),
        (f"{text.safe_line(change.path)}\n", "bold"),
    ]
    for line in lines[:DIFF_LINES]:
        parts.append((f"{text.safe_line(line)}\n", _colour(line)))
    if len(lines) > DIFF_LINES:
        parts.append((f"… {count(len(lines) - DIFF_LINES, 'more line')}\n", text.MUTED))
    return parts


def _colour(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return text.MUTED
    return {"+": "$text-success", "-": "$text-error"}.get(line[:1], text.MUTED)


def outcome_line(outcome: Outcome) -> Content:
    """How it ended, as a row: the sign of how, then the sentence."""
    word, colour = _OUTCOMES[outcome.state]
    sentence = text.safe_line(outcome.sentence)
    if outcome.state is OutcomeState.UNKNOWN and not f"? {sentence}".startswith(word):
        sentence = f"{word[2:]}: {sentence}"
    return text.join((f"{word[0]} ", f"bold {colour}"), (sentence, colour))


def outcome_content(outcome: Outcome) -> Content:
    """How it ended: a sign and a word, then the sentence."""
    word, colour = _OUTCOMES[outcome.state]
    return text.join((f"{word}\n\n", f"bold {colour}"), outcome.sentence)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a look at the form found: what is wrong with it, else what would be done."""

    errors: Mapping[str, str] = dataclass_field(default_factory=dict)
    preview: Preview | None = None


def evaluated(action: Action, values: Mapping[str, object]) -> Evaluation:
    """What is wrong with the values of an action's inputs, else what it would do; slow."""
    from pydantic import ValidationError

    try:
        inputs = action.inputs.model_validate(dict(action.defaults) | dict(values))
    except ValidationError as error:
        return Evaluation(errors=errors_by_field(error))
    return Evaluation(preview=action.preview(inputs))


def performed(action: Action, values: Mapping[str, object]) -> Outcome | Evaluation:
    """Do an action; what is wrong with the values where it cannot be tried. Slow."""
    from pydantic import ValidationError

    try:
        inputs = action.inputs.model_validate(dict(action.defaults) | dict(values))
    except ValidationError as error:
        return Evaluation(errors=errors_by_field(error))
    return action.perform(inputs)
