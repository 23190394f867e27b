"""The protocols that acp knows, and how each is found.

Adding a protocol means adding one folder here and its name to `NAMES`; other
distributions add theirs with an entry point in the group ``acp.protocols``. What a
protocol offers stands in its package as ``PROTOCOL``, a `Protocol`, which must
import fast: everything heavy is named by a string and loaded when it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from acp_core.model.light import Any, NamedTuple

# Named tuples, not dataclasses: importing those costs agents several milliseconds at every turn.

NAMES = ("folder", "workspaces", "wire", "governed", "cycle")
ENTRY_POINTS = "acp.protocols"


class Command(NamedTuple):
    """A command that a protocol adds to `acp`.

    ``target`` is ``module:function``; the function takes the arguments after the
    command's name and returns the exit code. ``parser`` is ``module:function`` too and
    makes the `argparse` parser (for help and completion). Commands that are made from the
    descriptions of acts have both from `group`. ``group`` is the heading
    under which ``acp --help`` lists it.
    """

    name: str
    summary: str
    target: str
    parser: str
    group: str = "Agents"


def group(name: str, summary: str, commands: str, heading: str = "Agents") -> Command:
    """The entry of commands that are made from descriptions.

    Args:
        name: the word after `acp`.
        summary: what `acp --help` says of it.
        commands: ``module:NAME`` of its `acp_core.protocols.kit.command.Commands`.
        heading: the heading below which `acp --help` lists it.
    """
    return Command(name, summary, f"{commands}.main", f"{commands}.parser", heading)


class Protocol(NamedTuple):
    """What a protocol is called, how its folders are recognised, and where its code is.

    ``markers`` are file or folder names of which at least one stands at the top of a
    collaboration's folder: a cheap first test for discovery. ``detect`` (``module:function``,
    taking a folder's path) decides; ``open`` (same form, taking a location) makes the
    `acp_core.protocols.contract.Collaboration`. ``create`` makes the Action that starts a new
    collaboration in a folder, where the protocol has one. ``schemes`` are URL schemes that it opens;
    ``locate`` (taking a URL, and a token beside it or None) says the key of what is there, without
    any token, or raises ValueError. ``running`` lists the locations of this user's collaborations
    that no path leads to, and the folders in which a change may make it another list.
    ``listing`` makes the `acp_core.protocols.contract.Listing` of a link without ``#``, which leads to many
    collaborations; what follows the ``#`` names one of them.
    ``past`` is the `acp_core.model.past.Derivation` that tells what files held at a time from which
    they are not known.
    ``rehearse`` makes the `acp_core.rehearsal.Rehearsal` that `acp demo` shows; ``stuck`` is the
    module that tells the stories of `acp demo --stuck`. ``manual`` is the `acp_core.protocols.kit.parser.Manual` with
    examples and exit codes of its commands. ``tools`` are the descriptions of what participants' programs
    can use as tools, besides what every protocol offers (see `acp_core.protocols.kit.tools`). ``acts`` are
    the descriptions of acts that have no command of their own, so that a command that is printed for
    them names the inputs that a person must choose. ``newest`` tells the newest events of a folder that is
    not read yet, where that costs next to nothing (see `acp_core.protocols.newest`).
    """

    name: str
    title: str
    markers: tuple[str, ...]
    detect: str
    open: str
    create: str | None = None
    schemes: tuple[str, ...] = ()
    rehearse: str | None = None
    stuck: str | None = None
    past: str | None = None
    locate: str | None = None
    running: str | None = None
    listing: str | None = None
    commands: tuple[Command, ...] = ()
    manual: str | None = None
    tools: str | None = None
    acts: str | None = None
    newest: str | None = None


WATCH = "watch"
"""What makes the `acp_core.protocols.contract.Watched` of a folder's path."""
START = "start programs"
"""The `acp_core.protocols.kit.starting.Starter` for the participants of a new folder."""
_handed_in: dict[str, str] = {}


def hand_in(what: str, reference: str) -> None:
    """Give protocols something that stands above them: they import nothing of it.

    Args:
        what: the name by which `handed_in` finds it, such as `WATCH`.
        reference: where it is, as ``module:name``; imported when it is first used.
    """
    _handed_in[what] = reference


def handed_in(what: str) -> Any:
    """What was handed in under this name.

    Raises:
        Unusable: nothing was: the program that runs is not `acp`.
    """
    from acp_core.model.errors import Unusable

    if what not in _handed_in:
        raise Unusable(f"nothing was handed in to {what} with")
    return load(_handed_in[what])


def load(reference: str) -> Any:
    """The object that ``module:name`` names, or ``module:name.attribute``.

    Raises:
        ImportError, AttributeError: it is not there.
    """
    module, _, names = reference.partition(":")
    __import__(module)  # as `importlib` would, which takes longer to import than this module
    found: Any = sys.modules[module]
    for name in names.split("."):
        found = getattr(found, name)
    return found


def bundled() -> Iterator[Protocol]:
    """The protocols that come with acp, in order."""
    for name in NAMES:
        yield load(f"acp_core.protocols.{name}:PROTOCOL")


def installed() -> Iterator[Protocol]:
    """Every protocol: the bundled ones, then those of other distributions.

    Looking those up costs tens of milliseconds: commands that agents run at every
    turn use `bundled` first. A distribution that fails to load is left out.
    """
    yield from bundled()
    from acp_core.protocols.entry_points import named  # late: what agents run needs none

    for entry in named(ENTRY_POINTS):
        try:
            protocol = entry.load()
        except Exception:  # somebody else's code: its fault must not be ours
            continue
        if isinstance(protocol, Protocol):
            yield protocol
