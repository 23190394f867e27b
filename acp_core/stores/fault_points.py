"""The steps of publishing and of writing what was read, by name: where a kill makes a difference.

Nobody listens in the program itself. Tests do, in processes of their own, and kill, stop or fail
at a step. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable

STEPS = (
    "before pending",
    "before publish",
    "after publish",
    "before document",
    "before log",
    "before protocol",
    "before base",
    "after base",
)
"""Every step by name: before the key is kept, before and after the store is asked, then before each
kind of local file; an engine may name more, beginning with its own name."""


class Steps:
    """Who is called at each step; nobody, unless a test says so."""

    def __init__(self) -> None:
        self.listener: Callable[[str], object] | None = None

    def __call__(self, name: str) -> None:
        """A step is reached."""
        if self.listener is not None:
            self.listener(name)


fault_point = Steps()
"""``reach("before publish")`` says that this comes next."""
