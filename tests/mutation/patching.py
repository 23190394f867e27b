"""A change of a file, made in modules that are loaded already.

A process that has imported everything is forked, and gets the change in its memory: each function
that the change lies in gets other code. What a module computed as it was imported stays, so a
change that was not noticed this way has to be tried in a fresh process, too.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

_Key = tuple[str, str, int]  # file, qualified name, first line


class Unpatchable(Exception):
    """The change cannot be made in memory."""


class Loaded:
    """All functions that are in memory, by where they come from."""

    def __init__(self) -> None:
        self._functions: dict[_Key, list[FunctionType]] = {}
        gc.unfreeze()  # what is frozen is in no list of objects
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                self._functions.setdefault(_key(each.__code__), []).append(each)

    def change(self, path: str, source: str, changed: str) -> None:
        """Make a change.

        Args:
            path: The file that the functions were loaded from.
            source: Its text.
            changed: Its text with the change, which lies in one function.

        Raises:
            Unpatchable: No function of that file is loaded that the change lies in, or the change
                needs a name of the functions around it that its function did not use.
        """
        done = 0
        for old, new in _differing(compile(source, path, "exec"), compile(changed, path, "exec")):
            for function in self._functions.get(_key(old), ()):
                if old.co_freevars != new.co_freevars:
                    raise Unpatchable(old.co_qualname)
                function.__code__ = new
                done += 1
        if not done:
            raise Unpatchable(path)


def _differing(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Each piece of code that the change lies in, from the outside to the inside."""
    olds, news = _within(old), _within(new)
    if len(olds) != len(news):
        return  # the change took away a piece: the one around it is changed already
    for one, other in zip(olds, news, strict=True):
        if one != other:
            yield one, other
            yield from _differing(one, other)


def _within(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _key(code: CodeType) -> _Key:
    return code.co_filename, code.co_qualname, code.co_firstlineno
