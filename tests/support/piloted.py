"""How a Pilot's app runs here: when it is idle, and that nothing is made which nobody gets to see.

Textual takes a process for idle that has hardly used the processor for a while. On a machine that
is busy with something else every process looks so, and on one that is not most of the while is
lost. Here an app is idle when its event loop has nothing to run, nothing that is due at once, and
no thread of its pool at work (for long it may: some work takes as long as somebody lets it), and
the process does nothing else either.

An app without a terminal renders its widgets as any other does, so that what cannot be rendered
fails; but the strips are not put together for a screen that is not there. `render_strips`, which
tests look at, puts them together as ever.

Which rules the parts of a widget get (its component classes) is found once for all widgets that
stand alike: with the same types, names, classes and states above them, up to the app.

What was parsed of a stylesheet is kept for the apps to come: nothing changes it, and parsing it
anew was most of an app's start. What was drawn of a widget is not: Textual's cache of two styles
keeps a thousand of the widgets that asked for them, each search for garbage went through all of these.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from time import monotonic, process_time
from typing import Any

import textual.app
import textual.pilot
from textual._compositor import Compositor
from textual._styles_cache import StylesCache
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.geometry import Region
from textual.screen import Screen

SLICE = 0.005
"""Seconds between two looks."""
SOON = 0.02
"""What is due within so many seconds is waited for: the screen is drawn so often, at the least."""
WORK = 0.2
"""Seconds for which work in a thread is waited for."""


async def wait_for_idle(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until nothing is left to be done; no longer than ``max_sleep`` seconds."""
    loop = asyncio.get_running_loop()
    began = monotonic()
    while True:
        used = process_time()
        await asyncio.sleep(SLICE)
        used = process_time() - used
        passed = monotonic() - began
        at_work = passed < WORK and _at_work(getattr(loop, "_default_executor", None))
        quiet = used < SLICE / 5 and not at_work and _nothing_due(loop)
        if passed >= max_sleep or (passed > min_sleep and quiet):
            return


def _nothing_due(loop: Any) -> bool:
    soon = loop.time() + SOON
    timers = loop._scheduled[:64]  # a heap: what is due next is at its front
    return not loop._ready and all(each._when > soon or each._cancelled for each in timers)


def _at_work(pool: ThreadPoolExecutor | None) -> bool:
    if pool is None:
        return False
    return bool(pool._work_queue.qsize()) or pool._idle_semaphore._value < len(pool._threads)


_compositor_refresh = Screen._compositor_refresh
_render_chops = Compositor._render_chops
_unseen: set[Compositor] = set()


def _refresh(self: Screen[Any]) -> None:
    _unseen.add(self._compositor)
    try:
        _compositor_refresh(self)
    finally:
        _unseen.discard(self._compositor)


def _render(self: Compositor, crop: Region, is_rendered_line: Any) -> Any:
    if self not in _unseen:
        return _render_chops(self, crop, is_rendered_line)
    for _ in self._get_renders(crop):
        pass
    return []


_begin, _set_variables = Stylesheet.__init__, Stylesheet.set_variables
_parsed: dict[frozenset[tuple[str, str]], Any] = {}


def _known(variables: dict[str, str] | None) -> Any:
    """What was parsed with these variables."""
    return _parsed.setdefault(frozenset((variables or {}).items()), {})


def _stylesheet(self: Stylesheet, *, variables: dict[str, str] | None = None) -> None:
    _begin(self, variables=variables)
    self._parse_cache = _known(variables)


def _variables(self: Stylesheet, variables: dict[str, str]) -> None:
    self._parse_cache = LRUCache(1)  # which is cleared
    _set_variables(self, variables)
    self._parse_cache = _known(variables)


_apply, _replace = Stylesheet.apply, Stylesheet.replace_rules.__func__  # type: ignore[attr-defined]
_found: dict[tuple[Any, ...], Any] = {}
_rules: dict[tuple[Any, ...], object] = {}
_above: tuple[Any, Any] = (None, None)  # the widget whose parts get their rules, and how it stands
_given: Any = None  # the rules that a node got last


def _apply_once(
    self: Stylesheet, node: DOMNode, *, animate: bool = False, cache: Any = None
) -> None:
    global _above, _given
    if type(node) is not DOMNode or cache is not None:
        _above = (None, None)
        _apply(self, node, animate=animate, cache=cache)
        return
    if _above[0] is not node._parent:
        path = tuple(_stands(each) for each in node.css_path_nodes[:-1])
        _above = (node._parent, (_ruled(self), path))
    key = (*_above[1], node.classes)
    if key in _found:
        if _found[key] is not None:
            self.replace_rules(node, _found[key])
        return
    _given = None
    _apply(self, node)
    _found[key] = _given


def _ruled(self: Stylesheet) -> object:
    """What stands for these rules, in whichever stylesheet they are."""
    rules = self.rules  # another list when another source is parsed
    known = getattr(self, "_as_known", None)
    if known is None or known[0] is not rules:
        key = (frozenset(self._variables.items()), tuple(self.source.items()))
        known = self._as_known = (rules, _rules.setdefault(key, object()))  # type: ignore[attr-defined]
    return known[1]


def _stands(node: DOMNode) -> tuple[Any, ...]:
    return node._css_type_names, node.id, node.classes, node.pseudo_classes


def _replaced(cls: type[Stylesheet], node: DOMNode, rules: Any, animate: bool = False) -> None:
    global _given
    _given = rules
    _replace(cls, node, rules, animate)


_inner_outer = lru_cache(1024)(partial(StylesCache.get_inner_outer.__wrapped__, None))  # type: ignore[attr-defined]


def use() -> None:
    """Let every app of this process run so."""
    for module in (textual.app, textual.pilot):
        module.wait_for_idle = wait_for_idle  # type: ignore[attr-defined]
    Screen._compositor_refresh = _refresh  # type: ignore[method-assign]
    Compositor._render_chops = _render  # type: ignore[method-assign]
    StylesCache.get_inner_outer = staticmethod(_inner_outer)  # type: ignore[assignment,method-assign]
    Stylesheet.__init__ = _stylesheet  # type: ignore[method-assign]
    Stylesheet.set_variables = _variables  # type: ignore[method-assign]
    Stylesheet.apply = _apply_once  # type: ignore[method-assign]
    Stylesheet.replace_rules = classmethod(_replaced)  # type: ignore[assignment]
    RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign,assignment]  # the same, without a call of Python
