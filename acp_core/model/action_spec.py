"""How an act is described: once, as a table from which forms, commands and completion are made.

Source: the rule "acts are described once" (docs/contributing.md, "Describe an act"). Standard library
only, and light: commands that agents run at every turn import it.
"""

from __future__ import annotations

from enum import Enum

from acp_core.model.light import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Intent(str, Enum):
    """What kind of act it is: keys and cards are bound to intents, never to names."""

    STOP_EVERYTHING = "stop everything"
    ANSWER = "answer"
    DECIDE = "decide"
    ACCEPT = "accept"
    REJECT = "reject"
    RETRY = "retry"
    START = "start"
    STOP = "stop"
    MESSAGE = "message"
    CONTINUE = "continue"
    REPAIR = "repair"
    CREATE = "create"
    OTHER = "other"


class Kind(str, Enum):
    """What a field holds.

    ``TEXT``: one line. ``LINES``: a text of several lines. ``NUMBER``: a whole number. ``FLAG``: yes or
    no. ``CHOICE``: one of some texts. ``LIST``: several texts. ``DURATION``: seconds, typed with or
    without a unit (``90``, ``20m``). ``FOLDER``, ``FILE``: a path.
    """

    TEXT = "text"
    LINES = "lines"
    NUMBER = "number"
    FLAG = "flag"
    CHOICE = "choice"
    LIST = "list"
    DURATION = "duration"
    FOLDER = "folder"
    FILE = "file"


class By(str, Enum):
    """Whose act it is: a person's, or a participant's own."""

    HUMAN = "human"
    PARTICIPANT = "participant"


class Field(NamedTuple):
    """One input of an act or a query.

    Attributes:
        name: how programs call it; its option is ``--name`` with dashes.
        title: how a form calls it; "" for the name in words.
        help: an imperative phrase or a sentence that can be understood alone.
        kind: what it holds.
        choices: of a choice: the values.
        labels: what choices are called where they do not speak for themselves.
        default: its value where nothing is given; None for nothing.
        required: whether it must be given, and hold something.
        optional: whether nothing is a value of its own, other than an empty one.
        position: whether a command takes it by position, too, in the order of the table.
        short: a short option, such as ``-a``.
        metavar: what stands for its value in help; "" for the usual one of its kind.
        least, most: bounds of a number, in characters of a text, in entries of a list.
        flag: its option where that is not its name: ``--gap`` for each of several ``gaps``.
        aliases: old names of its option (``--program``); they work and are not listed.
        form: whether forms and JSON input have it; else only the command does.
        listed: whether the command's help lists it; else its option works all the same.
        unasked: its value where a form cannot ask for it; None for its default.
    """

    name: str
    title: str = ""
    help: str = ""
    kind: Kind = Kind.TEXT
    choices: tuple[Any, ...] = ()
    labels: Mapping[str, str] = {}
    default: Any = None
    required: bool = False
    position: bool = False
    short: str = ""
    metavar: str = ""
    least: float | None = None
    most: float | None = None
    flag: str = ""
    aliases: tuple[str, ...] = ()
    form: bool = True
    listed: bool = True
    unasked: Any = None
    optional: bool = False

    @property
    def option(self) -> str:
        """Its option, such as ``--reply-to``."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def old_options(self) -> tuple[str, ...]:
        """Options that work, too, and are not listed."""
        named = f"--{self.name.replace('_', '-')}"
        return self.aliases if named == self.option else (named, *self.aliases)

    @property
    def empty(self) -> Any:
        """Its value where nothing is given."""
        if self.default is not None:
            return list(self.default) if self.kind is Kind.LIST else self.default
        if self.kind is Kind.LIST:
            return []
        return False if self.kind is Kind.FLAG else "" if self.kind in _TEXTS else None


_TEXTS = frozenset({Kind.TEXT, Kind.LINES, Kind.FOLDER, Kind.FILE, Kind.CHOICE})

Exits = tuple[tuple[int, str], ...]
DONE: Exits = (
    (0, "done"),
    (2, "refused, or bad input: one line says why"),
    (130, "interrupted"),
)
"""Exit codes of a command that names no others."""

PLACE = Field(
    "folder", help="The collaboration's folder.", kind=Kind.FOLDER, default=".", position=True,
    form=False,
)  # fmt: skip
"""The folder of an act or a query, by position or as ``--folder``; the one in which one stands."""


class ActionSpec(NamedTuple):
    """An act, described once.

    Attributes:
        name: one verb: the same on screens, in `acp act`, in the protocol's command, as a request.
        label: what a button says.
        sentence: what it does; the command's help begins with it.
        bind: ``module:function``, called as ``function(context, now)``: it gives the `Action` as it can
            be done now, or None where it cannot, or raises `Refused` with the reason. The
            context has a ``key``, the collaboration's location; the collaboration itself is one.
        fields: its inputs.
        intent: what kind of act it is.
        by: whose act it is.
        risky: whether it cannot be taken back.
        command: where it stands in `acp`, such as ``workspaces triage``; "" for `acp act` alone.
        help: what the command's help says besides the sentence.
        aliases: old names of the act.
        examples: whole command lines.
        exits: exit codes of the command with their meanings.
        place: the field that names the collaboration; it stands before the others.
        run: ``module:function`` of a command that does more than preview and perform, such as
            following what it started; called with the values, it returns the exit code.
        alone: ``module:function`` of the query that the command answers where it is given nothing.
        words: what the command takes after ``--``, such as ``COMMAND``; "" for nothing.
    """

    name: str
    label: str
    sentence: str
    bind: str = ""
    fields: tuple[Field, ...] = ()
    intent: Intent = Intent.OTHER
    by: By = By.HUMAN
    risky: bool = False
    command: str = ""
    help: str = ""
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    exits: Exits = DONE
    place: Field = PLACE
    run: str = ""
    alone: str = ""
    words: str = ""

    def called(self, name: str) -> bool:
        """Whether this is its name, or was."""
        plain = name.replace("-", "_")
        return plain == self.name.replace("-", "_") or plain in self.aliases


class Moved(NamedTuple):
    """A switch of a command that has become a verb of its own: ``conflicts --find``.

    ``option`` of that verb takes the switch's value; "" where it has none.
    """

    switch: str
    verb: str
    option: str = ""


class QuerySpec(NamedTuple):
    """A command that merely reads, described once.

    Attributes:
        name: one verb.
        sentence: what it says; the command's help begins with it.
        answer: ``module:function``, called with the values: it gives an `Answer`, or raises `Refused`.
        fields: its inputs, its folder among them.
        command, help, aliases, examples, exits: as those of an `ActionSpec`.
        moved: switches that have become verbs of their own; ``--`` stands for a command.
    """

    name: str
    sentence: str
    answer: str
    fields: tuple[Field, ...] = (PLACE,)
    command: str = ""
    help: str = ""
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    exits: Exits = DONE
    moved: tuple[Moved, ...] = ()


Spec = ActionSpec | QuerySpec


class Answer(NamedTuple):
    """What a query found: as JSON, as lines for people, and the exit code."""

    data: Mapping[str, Any]
    lines: tuple[str, ...] = ()
    code: int = 0
