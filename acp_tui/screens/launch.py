"""Starting and stopping participants' loops: a preset for each, and what will be run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual import work
from textual.widgets import Static

from acp_core.fleet import Batch
from acp_core.model import Action
from acp_core.protocols.contract import Collaboration
from acp_tui import text
from acp_tui.screens.action import ActionScreen, T


def _has_turns(opened: Collaboration) -> bool:
    return opened.has_turns


class LoopsScreen(ActionScreen):
    """The form of an action about a collaboration's loops."""

    def __init__(self, key: str, act: str) -> None:
        """Make it.

        Args:
            key: The collaboration's.
            act: ``launch`` or ``stop``.
        """
        super().__init__(key, act)

    async def prepare(self) -> None:
        """Find out which loops and presets there are."""
        self.query_one("#title", Static).update(text.plain("Looking which loops there are…"))
        self._prepare()

    @work(exclusive=True, group="find", exit_on_error=False)
    async def _prepare(self) -> None:
        key, settings = self.collaboration or "", self.app.settings
        snapshot = self.app.fleet.snapshots.get(key)
        if snapshot is None:
            self.cannot("The collaboration is not there any more.")
            return
        if self._wanted != "stop" and not await self.app.fleet.call(key, _has_turns):
            self.cannot("Its participants take no turns that a loop could take.")
            return

        def make() -> Action:
            from acp_core.loops import manage

            loops = self.app.fleet.loops(key)
            if self._wanted == "stop":
                return manage.stop(loops)
            return manage.launch(snapshot, loops, settings.presets, settings.loops)

        try:
            action = await asyncio.to_thread(make)
        except Exception as error:  # a preset of the person's own, or a fault: said, not raised
            self.cannot(f"Loops cannot be started: {error}")
            return
        if not action.inputs.model_fields:
            self.cannot("No loop runs here.")
            return
        await self.begin(action)

    def _focus_first(self) -> None:
        """Go to the first participant."""
        views = self.form.views if self.form else []
        if views:
            views[0].control.focus()

    def _changed(self, batch: Batch) -> None:
        """Loops that start or end change what would be done."""
        if self.collaboration in batch.loops:
            self.preview_soon()

    async def _run(self, function: Callable[[], T]) -> T:
        """Beside everything else: starting takes long, and reading must go on meanwhile."""
        return await asyncio.to_thread(function)
