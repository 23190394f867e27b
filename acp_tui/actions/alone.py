"""Sentences that stand by themselves, in a form, on a card or in the corner: they begin with a capital.

Refusals and outcomes are data, which commands print after "error: " too; `acp_core.model.sentence` has
the rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from acp_core.model.sentence import names_in, sentence_case

if TYPE_CHECKING:
    from acp_tui.app import AcpApp

_NOTHING: Mapping[str, object] = {}
_NAMED = re.compile(r"\S+(?: \d+)?:(?: |$)")


def alone(
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
