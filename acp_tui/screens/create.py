"""A new collaboration: its folder and protocol, then the form that the protocol itself describes."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from textual import on, work
from textual.app import ComposeResult
from textual.widgets import Input, Select, Static

from acp_core.model import Action
from acp_core.protocols import registry
from acp_tui import text
from acp_tui.actions import forms
from acp_tui.screens.action import ActionScreen

LONGEST_NAME = 48  # characters of a folder's name that is made from an objective


class CreateScreen(ActionScreen):
    """Starts a collaboration; shows what will be written before it is."""

    def __init__(self, parent: Path) -> None:
        """Make it.

        Args:
            parent: The folder in which the new one is proposed to stand.
        """
        super().__init__(None, "create")
        self._parent_folder = parent
        self._protocols: dict[str, registry.Protocol] = {}
        self._proposed = ""  # what stands in the folder's field by itself

    def compose_above(self) -> ComposeResult:
        """Folder and protocol."""
        yield Static(text.plain("Folder"), classes="field--title")
        yield forms.LineInput(id="folder")
        yield Static(id="where")
        yield Static(text.plain("Protocol"), classes="field--title", id="protocol-title")
        yield Select[str]([], id="protocol", allow_blank=True)

    async def prepare(self) -> None:
        """Find out which protocols can begin something, and take the first."""
        self.query_one("#title", Static).update(text.plain("New collaboration", "bold"))
        known = await asyncio.to_thread(lambda: [p for p in registry.installed() if p.create])
        if not known:
            self.cannot("No installed protocol can create a collaboration from here.")
            return
        self._protocols = {protocol.name: protocol for protocol in known}
        several = len(known) > 1
        self.query_one("#protocol").display = several
        self.query_one("#protocol-title").display = several
        choice = self.query_one("#protocol", Select)
        choice.set_options((text.searchable(each.title), each.name) for each in known)
        choice.value = known[0].name
        self._propose("")
        (choice if several else self.query_one("#folder")).focus()
        self._take()

    @property
    def folder(self) -> Path:
        """Where it will stand: relative paths count from the parent."""
        typed = os.path.expanduser(self.query_one("#folder", Input).value.strip())
        return Path(os.path.normpath(self._parent_folder / typed))

    def _propose(self, objective: str) -> None:
        """Name the folder after the objective, unless the person named it."""
        field = self.query_one("#folder", Input)
        if field.value == self._proposed:
            self._proposed = field.value = folder_name(objective)

    @on(Input.Changed, "#folder")
    @on(Select.Changed, "#protocol")
    def _elsewhere(self) -> None:
        if self._protocols:
            self._take()

    @on(forms.FieldView.Changed)
    def _objective(self, message: forms.FieldView.Changed) -> None:
        if message.view.field.name == "objective":
            self._propose(str(message.view.value or ""))

    @work(exclusive=True, group="take", exit_on_error=False)
    async def _take(self) -> None:
        """Get the action for the folder and protocol that are chosen now; the form's texts stay."""
        chosen = self.query_one("#protocol", Select).value
        protocol = self._protocols.get(str(chosen))
        if protocol is None or protocol.create is None:
            return
        folder, reference = self.folder, protocol.create
        where = text.join(("Will be created in ", text.MUTED), text.safe_line(str(folder)))
        self.query_one("#where", Static).update(where)
        try:
            action: Action = await asyncio.to_thread(lambda: registry.load(reference)(folder))
        except Exception as error:  # somebody else's protocol: said, not raised
            sentence = f"{protocol.title} cannot be created from here: {error!r}"
            self.query_one("#what", Static).update(text.plain(sentence, "$text-error"))
            return
        await self.replace(action)


def folder_name(objective: str) -> str:
    """A folder's name made from an objective: its words, with dashes."""
    words = re.findall(r"\w+", objective.casefold())
    name = "-".join(words)[:LONGEST_NAME].strip("-_")
    return name or "new-collaboration"
