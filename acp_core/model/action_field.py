"""The inputs of an act or a query, described: one `Field` each. Standard library only.

As light as can be: commands that agents run at every turn import it.
"""

from __future__ import annotations

from enum import Enum

from acp_core.model.light import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(str, Enum):
    """What a field holds.

    ``TEXT``: one line. ``LINES``: a text of several lines. ``NUMBER``: a whole number. ``FLAG``: yes or
    no. ``CHOICE``: one of some texts. ``LIST``: several texts. ``DURATION``: seconds, typed with or
    without a unit (``90``, ``20m``). ``DECIMAL``: any number. ``FOLDER``, ``FILE``: a path.
    """

    TEXT = "text"
    LINES = "lines"
    NUMBER = "number"
    FLAG = "flag"
    CHOICE = "choice"
    LIST = "list"
    DURATION = "duration"
    DECIMAL = "decimal"
    FOLDER = "folder"
    FILE = "file"


PARTICIPANTS, PRESETS, DOCUMENTS = "participants", "presets", "documents"
STORIES, VIEWS = "stories", "views"
"""What a shell can offer for an input: participants and documents of the collaboration that is named,
presets of agents, ways of `acp demo` to get stuck, saved views of the fleet."""


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
        bare: its value where its option stands without one; None: it needs one.
        items: of a list: what its entries are.
        names: of a list of choices: what each entry gives a choice to, as ``NAME=CHOICE``; a label of
            ``NAME=`` says what a name is called.
        names_from: of such a list: the input whose entries are the names, where a person types those.
        asked: whether a form on the screen asks for it; else only commands and JSON input have it.
        unasked: its value where a form cannot ask for it; None for its default.
        suggests: what a shell offers for it besides its choices; "" for nothing.
        needed: whether it must be given on the screen and in `acp act`, where the command of the act's
            own works without it.
        owner: whether nobody but the owner of this machine gives it a value: not who asks over a
            bridge, a store or a mirror (see `acp_core.protocols.kit.owner_inputs`).
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
    bare: Any = None
    items: Kind = Kind.TEXT
    names: tuple[str, ...] = ()
    names_from: str = ""
    asked: bool = True
    suggests: str = ""
    needed: bool = False
    owner: bool = False

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
        if self.optional:
            return None
        if self.kind is Kind.LIST:
            return []
        return False if self.kind is Kind.FLAG else "" if self.kind in _TEXTS else None


_TEXTS = frozenset({Kind.TEXT, Kind.LINES, Kind.FOLDER, Kind.FILE, Kind.CHOICE})

PLACE = Field(
    "folder", help="The collaboration's folder.", kind=Kind.FOLDER, default=".", position=True,
    form=False,
)  # fmt: skip
"""The folder of an act or a query, by position or as ``--folder``; the one in which one stands."""
