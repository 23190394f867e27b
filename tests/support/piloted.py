"""How a Pilot's app runs here: when it is idle, and that nothing is made which nobody gets to see.

Textual takes a process for idle that has hardly used the processor for a while. On a machine that
is busy with something else every process looks so, and on one that is not most of the while is
lost. Here an app is idle when its event loop has nothing to run, nothing that is due at once, and
no thread of its pool at work (for long it may: some work takes as long as somebody lets it), and
the process does nothing else either.

An app without a terminal renders its widgets as any other does, so that what cannot be rendered
fails; but the strips are not put together for a screen that is not there. `render_strips`, which
tests look at, puts them together as ever.

What was parsed of a stylesheet is kept for the apps to come: nothing changes it, and parsing it
anew was most of an app's start.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, process_time
from typing import Any

import textual.app
import textual.pilot
from textual._compositor import Compositor
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
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


def use() -> None:
    """Let every app of this process run so."""
    for module in (textual.app, textual.pilot):
        module.wait_for_idle = wait_for_idle  # type: ignore[attr-defined]
    Screen._compositor_refresh = _refresh  # type: ignore[method-assign]
    Compositor._render_chops = _render  # type: ignore[method-assign]
    Stylesheet.__init__ = _stylesheet  # type: ignore[method-assign]
    Stylesheet.set_variables = _variables  # type: ignore[method-assign]
    RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign,assignment]  # the same, without a call of Python
