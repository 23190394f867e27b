"""What the panes of a collaboration ask for: texts to load, things to copy, links to follow."""

from __future__ import annotations

import asyncio
import json
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from textual import on, work

from acp_core.files.text import clean, clean_line
from acp_core.model import Document, DocumentText, Event, Need, Snapshot
from acp_tui.actions.collaboration_actions import CollaborationActions, offered
from acp_tui.actions.labels import Labels
from acp_tui.screens.link import LinkScreen, is_web
from acp_tui.screens.pick import PickScreen
from acp_tui.terminal.editor import EditorProblem, edit
from acp_tui.widgets.document_view import DocumentView
from acp_tui.widgets.documents import PEOPLE, Documents
from acp_tui.widgets.event_details import EventDetails
from acp_tui.widgets.findings import Findings
from acp_tui.widgets.row_list import Item
from acp_tui.widgets.state_tree import StateTree
from acp_tui.widgets.text_view import TextView
from acp_tui.widgets.timeline import Timeline

if TYPE_CHECKING:
    from acp_tui.app import AcpApp


class Requests(CollaborationActions):
    """Answers the panes; whatever is slow runs in a worker."""

    app: AcpApp

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        self.snapshot: Snapshot | None = None

    def in_hand(self) -> Snapshot | None:
        """The collaboration to act on."""
        return self.snapshot

    # --- loading ---------------------------------------------------------------------------

    @on(Documents.TextWanted)
    def _text_wanted(self, message: Documents.TextWanted) -> None:
        self._load(message.document)

    @work(group="load", exit_on_error=False)
    async def _load(self, document: Document) -> None:
        try:
            text = await self.app.fleet.call(self.key, lambda c: c.load(document.id))
        except KeyError:
            return  # it went away meanwhile: the next Snapshot says so
        except Exception as error:  # somebody else's protocol: said, not raised
            note = clean_line(f"It cannot be read: {error!r}")
            text = DocumentText(document.id, document.version, "", note=note)
        self.query_one(Documents).loaded(text)

    @on(Timeline.SourceWanted)
    def _source_wanted(self, message: Timeline.SourceWanted) -> None:
        self._load_source(message.event)

    @work(group="source", exclusive=True, exit_on_error=False)
    async def _load_source(self, event: Event) -> None:
        source = await self._source(event)
        self.query_one(EventDetails).show_source(event.id, source)

    async def _source(self, event: Event) -> str:
        """An event as its source holds it, or else its fields as JSON."""
        try:
            source: str = await self.app.fleet.call(self.key, lambda c: c.raw_event(event.id))
        except Exception:  # somebody else's protocol: the fields are there anyway
            source = ""
        return source or json.dumps(event._asdict(), ensure_ascii=False, default=str)

    @on(Documents.LabelsWanted)
    def _labels_wanted(self) -> None:
        self._find_labels()

    @work(group="labels", exclusive=True, exit_on_error=False)
    async def _find_labels(self) -> None:
        """Say what the causes' remedies are called, and which can be done now."""
        try:
            found = await offered(self.app, self.key)
        except Exception:  # somebody else's protocol, or it is gone: their names do
            return
        self.query_one(Documents).set_labels({action.name: action.label for action in found})

    @cached_property
    def _labels(self) -> Labels:
        return Labels(self.app, self.renamed)

    def called(self, action: str) -> str:
        """What an action is called."""
        return self._labels.of(self.key, action)

    def want_labels(self, snapshot: Snapshot, needs: tuple[Need, ...]) -> None:
        """See to it that it is known what the actions of needs and findings are called."""
        names = [*(need.action for need in needs), *(found.action for found in snapshot.findings)]
        self._labels.want_soon((snapshot, name) for name in dict.fromkeys(names) if name)

    def renamed(self) -> None:
        """It is known now what actions are called."""
        raise NotImplementedError

    # --- loops -----------------------------------------------------------------------------

    @work(group="loops", exclusive=True, exit_on_error=False)
    async def find_loops(self) -> None:
        """Show which loops the participants have; looking at them can wait for a disk."""
        loops = await asyncio.to_thread(self.app.fleet.loops, self.key)
        self.query_one(Documents).set_loops(loops)

    def action_log(self) -> None:
        """Show the log of the participant that is selected, waited for, or to be chosen."""
        snapshot = self.snapshot
        if snapshot is None or not snapshot.participants:
            self.app.tell("Nobody takes part yet.")
            return
        documents = self.query_one(Documents)
        people = [person.id for person in snapshot.participants]
        selected = documents.list.selected if documents.active == PEOPLE else None
        waited = [turn.participant for turn in snapshot.turns]
        if selected is not None and selected.key in people:
            self.app.open_participant(self.key, selected.key)
        elif len(waited) == 1:
            self.app.open_participant(self.key, waited[0])
        else:
            items = [
                Item(((id, ""), ("  waited for" if id in waited else "", "accent")), key=id)
                for id in people
            ]
            screen = PickScreen("Whose log?", items, next(iter(waited), ""))
            self.app.push_screen(screen, self._person_picked)

    def _person_picked(self, id: str | None) -> None:
        if id is not None:
            self.app.open_participant(self.key, id)

    # --- copying ---------------------------------------------------------------------------

    def _copy(self, text: str, what: str) -> None:
        self.app.copy_to_clipboard(clean(text))
        self.app.tell(f"Copied {what}.", timeout=3)

    @on(Timeline.CopyWanted)
    def _event_wanted(self, message: Timeline.CopyWanted) -> None:
        self._copy_event(message.event)

    @work(group="copy", exit_on_error=False)
    async def _copy_event(self, event: Event) -> None:
        self._copy(await self._source(event), f"event {event.order} as JSON")

    @on(Findings.CopyWanted)
    def _finding_wanted(self, message: Findings.CopyWanted) -> None:
        self._copy(message.text, "the finding")

    @on(StateTree.CopyWanted)
    def _value_wanted(self, message: StateTree.CopyWanted) -> None:
        self._copy(message.text, "the value as JSON")

    @on(DocumentView.PathWanted)
    def _path_wanted(self, message: DocumentView.PathWanted) -> None:
        if message.document.path is not None:
            self._copy(message.document.path, message.document.path)

    # --- documents -------------------------------------------------------------------------

    @on(DocumentView.EditWanted)
    def _edit_wanted(self, message: DocumentView.EditWanted) -> None:
        path = message.document.path
        if path is None:
            return
        try:
            edit(self.app, Path(path), message.line, self.app.settings.editor)
        except EditorProblem as problem:
            self.app.tell(str(problem), "error")
        self.app.fleet.touch(self.key)

    @on(DocumentView.OutlineWanted)
    def _outline_wanted(self, message: DocumentView.OutlineWanted) -> None:
        items = [
            Item(
                (
                    ("  " * (heading.level - 1), ""),
                    (heading.title, ""),
                    (f"  {heading.line}", "muted"),
                ),
                key=str(heading.line),
            )
            for heading in message.text.headings
        ]
        here = self.query_one(DocumentView).view.current_line
        above = [h.line for h in message.text.headings if h.line <= here]
        selected = str(above[-1]) if above else ""
        self.app.push_screen(PickScreen("Contents", items, selected), self._heading_picked)

    def _heading_picked(self, line: str | None) -> None:
        if line is not None:
            self.query_one(DocumentView).go_to(int(line))

    @on(TextView.LinkClicked)
    def _link_clicked(self, message: TextView.LinkClicked) -> None:
        """Ask before anything leaves the terminal; follow a link inside of the collaboration."""
        address = message.address
        if is_web(address):
            self.app.push_screen(
                LinkScreen(address), lambda yes: self.app.open_url(address) if yes else None
            )
            return
        inside = self._document_at(address)
        if inside is None:
            self.app.tell(f"Not followed: {address}", "warning")
        else:
            self.query_one(Documents).open(inside.id)

    def _document_at(self, address: str) -> Document | None:
        """The document that a relative link of the shown one leads to."""
        try:
            parts = urlsplit(address)
        except ValueError:
            return None
        here = self.query_one(DocumentView).document
        if parts.scheme or parts.netloc or not parts.path or here is None or self.snapshot is None:
            return None
        if here.path is None:
            return self.snapshot.document(unquote(parts.path))
        wanted = os.path.normpath(os.path.join(os.path.dirname(here.path), unquote(parts.path)))
        paths = ((d, d.path) for d in self.snapshot.documents)
        return next((d for d, path in paths if path and os.path.normpath(path) == wanted), None)

    # --- findings --------------------------------------------------------------------------

    @on(Findings.FixWanted)
    def _fix_wanted(self, message: Findings.FixWanted) -> None:
        self.app.perform(self.key, message.action, None, dict(message.given))
