"""What opens a link never stands in the output of a command, whichever line says it.

A link holds a token, and whoever has the token can ask the agent behind it. Errors and usage lines
repeat what was typed, and end in logs and bug reports.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, cast

_LINK = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://([^/\s?#]+)/+(\S+)")
_WORD = r"[A-Za-z0-9_\-.~]"
_SIGN = r"[A-Za-z0-9_\-~]"  # a full stop behind a token ends a sentence
_WEB = ("http", "https")
_STORES = ("postgresql", "postgres", "git+ssh", "git+https", "git+file", "ssh", "file")
"""Addresses that hold no token: a store of shared collaborations asks for it elsewhere."""
_SECRET = re.compile(r"pass|secret|token", re.IGNORECASE)
_LONG = 8  # characters from which a word is nothing that anybody would say by chance
_HEAD = 4  # characters that are left at least of a token that was cut short
HIDDEN = "…"


def hider(arguments: Sequence[str]) -> Callable[[str], str] | None:
    """What hides the tokens of the links among some arguments; None where there is no link."""
    tokens: set[str] = set()
    places: set[str] = set()
    last: set[str] = set()
    for place, rest in _links(arguments):
        words = re.findall(_WORD + "+", rest)
        tokens.update(each for each in words if len(each) >= _LONG)
        places.add(place)
        last.update(words[-1:])
    if not last:
        return None
    linked = re.compile(rf"((?:{_any(places)})/+(?:acp/)?)({_SIGN}(?:{_WORD}*{_SIGN})?)")
    whole = re.compile(rf"(?<!{_WORD})(?:{_any(tokens)})(?!{_SIGN})" if tokens else "(?!)")

    def behind(match: re.Match[str]) -> str:
        """A token, or what is left where it was cut short; not that of another link there."""
        there = match[2]
        left = len(there) >= _HEAD and any(each.startswith(there) for each in last)
        return match[1] + HIDDEN if left or there in last else match[0]

    return lambda text: whole.sub(HIDDEN, linked.sub(behind, text))


def _any(words: set[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


def _links(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Where each link leads, and what stands behind that. Addresses of files are no links."""
    for argument in arguments:
        if "://" in argument:
            for scheme, place, rest in _LINK.findall(argument):
                rest = rest.rstrip("/")
                if scheme.lower() in _STORES and not _SECRET.search(rest):
                    continue
                if scheme.lower() not in _WEB or not re.search(r"[/.]", rest):
                    yield place, rest


class _Hiding:
    """A stream that hides tokens in what is written to it, and else is the stream below it."""

    def __init__(self, stream: TextIO, hide: Callable[[str], str]) -> None:
        self._stream, self._hide = stream, hide

    def write(self, text: str, /) -> int:
        """Write it without the tokens."""
        self._stream.write(self._hide(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def hiding(arguments: Sequence[str]) -> Iterator[None]:
    """Hide the tokens of the links among some arguments in all that the block prints."""
    hide = hider(arguments)
    if hide is None:
        yield
        return
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", _Hiding(each, hide)) for each in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
