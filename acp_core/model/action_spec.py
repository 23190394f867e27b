"""How an act is described: once, as a table from which forms, commands and completion are made.

Source: the rule "acts are described once" (docs/contributing.md, "Describe an act"). Standard library
only.
"""

from __future__ import annotations

from enum import Enum

from acp_core.model.action_field import PLACE as PLACE
from acp_core.model.action_field import Field as Field
from acp_core.model.action_field import Kind as Kind
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


class By(str, Enum):
    """Whose act it is: a person's, or a participant's own."""

    HUMAN = "human"
    PARTICIPANT = "participant"


Exits = tuple[tuple[int, str], ...]
DONE: Exits = (
    (0, "done"),
    (2, "refused, or invalid input"),
    (130, "interrupted"),
)
"""Exit codes of a command that names no others."""


class Moved(NamedTuple):
    """A switch of a command that has become a verb of its own: ``conflicts --find``.

    ``option`` of that verb takes the switch's value; "" where it has none.
    """

    switch: str
    verb: str
    option: str = ""


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
        place: the field that names the collaboration; it stands before the others. None: the act is
            about none that is there already.
        dry_run: whether its command can show what it would do.
        run: ``module:function`` of a command that does more than preview and perform, such as
            following what it started; called with the values, it returns the exit code, or None
            where the act is to be shown or done as any other.
        alone: ``module:function`` of the query that the command answers where it is given nothing.
        words: what the command takes after ``--``, such as ``COMMAND``; "" for nothing.
        moved: switches of the command that have become verbs of their own.
        unknown: exit code where it is not known how the act ended.
        json: whether its command can print one JSON object.
        personal: whether it is a person's own note or report: it writes that person's state or file
            alone, nothing in the collaboration, and can be granted to nobody else.
        owner: whether it is about what only the owner of this machine chooses, such as which program
            runs: it can be asked for neither over a bridge nor over a store or a mirror.
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
    place: Field | None = PLACE
    dry_run: bool = True
    run: str = ""
    alone: str = ""
    words: str = ""
    moved: tuple[Moved, ...] = ()
    unknown: int = 1
    json: bool = True
    personal: bool = False
    owner: bool = False

    def called(self, name: str) -> bool:
        """Whether this is its name, or was."""
        plain = name.replace("-", "_")
        return plain == self.name.replace("-", "_") or plain in self.aliases


class QuerySpec(NamedTuple):
    """A command that merely reads, described once.

    Attributes:
        name: one verb.
        sentence: what it says; the command's help begins with it.
        answer: ``module:function``, called with the values: it gives an `Answer`, or raises
            `Refused`; "" where ``run`` prints it.
        fields: its inputs, its folder among them.
        by: whose query it is; a participant's own is a tool of its program, too.
        command, help, aliases, examples, exits, moved, json: as those of an `ActionSpec`; the switch ``--``
            stands for a command.
        run: ``module:function`` of a command that prints its answer in a form of its own, or while it
            goes on; called with the values, it returns the exit code.
    """

    name: str
    sentence: str
    answer: str = ""
    fields: tuple[Field, ...] = (PLACE,)
    command: str = ""
    help: str = ""
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    exits: Exits = DONE
    moved: tuple[Moved, ...] = ()
    run: str = ""
    json: bool = True
    by: By = By.HUMAN


Spec = ActionSpec | QuerySpec


class Answer(NamedTuple):
    """What a query found: as JSON, as lines for people, and the exit code."""

    data: Mapping[str, Any]
    lines: tuple[str, ...] = ()
    code: int = 0
