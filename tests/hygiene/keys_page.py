"""docs/keys.md: the key card, made from the one table of all bindings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.binding import Binding
from textual.keys import format_key

from acp_tui import keys
from tests.hygiene.sources import ROOT

PAGE = ROOT / "docs" / "keys.md"
_INTRODUCTION = """\
# Keys

<!-- made by python -m tests.hygiene.references -->

Every key of the dashboard. `?` in the dashboard lists the keys that work where you are, and the footer shows the most useful
ones. A key has one meaning on all screens.

To choose other keys, write the ids of the last column into `[keys]` of config.toml:
[configuration.md](configuration.md).

"""
PARTS: dict[str, Sequence[Binding]] = {
    "On every screen": keys.APP,
    "For the collaboration that is open or selected": keys.ACT,
    "The fleet": keys.FLEET,
    "The filter": keys.FILTER,
    "A collaboration": keys.COLLABORATION,
    "The timeline": keys.TIMELINE,
    "A search line": keys.TYPED,
    "A document": keys.DOCUMENT,
    "Findings": keys.FINDINGS,
    "A table": keys.PANEL,
    "A tree": keys.TREE,
    "A list of choices": (*keys.PICKING, *keys.PICK),
    "A link": keys.LINK,
    "A participant": keys.PARTICIPANT,
    "The inbox": keys.INBOX,
    "A card": keys.CARD,
    "A form": keys.FORM,
    "The outcome of an action": keys.RESULT,
    "Replay": keys.REPLAY,
    "The comparison of two versions": keys.COMPARE,
    "Stats": keys.TIMES,
    "Moving in a list": keys.LIST,
    "Moving in a text": keys.SCROLL,
    "Choosing": (*keys.CHOOSE, *keys.OPTIONS),
    "Help and texts": (*keys.HELP, *keys.READING),
}
"""By heading: the bindings, each in the part where people use it."""


def page() -> str:
    """The text of the page."""
    return _INTRODUCTION + "\n".join(line for part in PARTS.items() for line in _part(*part))


def _part(heading: str, bindings: Sequence[Binding]) -> Iterator[str]:
    yield f"## {heading}\n\n| keys | does | id |\n|---|---|---|"
    for each in bindings:
        does = f"{each.description}: {each.tooltip}" if each.tooltip else each.description
        yield f"| {_called(each)} | {does} | {each.id} |"
    yield ""


def _called(binding: Binding) -> str:
    """The keys of a binding, as the dashboard calls them."""
    signs = (_sign(key.strip()) for key in binding.key.split(","))
    return ", ".join(r"`\|`" if sign == "|" else f"`{sign}`" for sign in signs)


def _sign(key: str) -> str:
    return {"escape": "esc", "enter": "enter"}.get(key) or format_key(key)
