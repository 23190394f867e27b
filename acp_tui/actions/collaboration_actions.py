"""What a person can do with the collaboration in hand: the same on the fleet and on its own screen.

A screen derives from `CollaborationActions`, binds `acp_tui.keys.ACT`, and says which collaboration is in hand.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.diagnosis.personal_table import ACK
from acp_core.loops.acts.names import LAUNCH, STOP_LOOP
from acp_core.model.format import need_case
from acp_core.model.text import clean_line
from acp_tui.keys import called
from acp_tui.terminal.editor import EditorProblem, open_folder
from acp_tui.terminal.painting import PaintingScreen

if TYPE_CHECKING:
    from textual.binding import ActiveBinding

    from acp_core.model import Matter, Outcome, Snapshot, Target
    from acp_tui.actions.availability import Availability
    from acp_tui.app import AcpApp

from acp_tui.actions.offered import UNKNOWN, offered, trouble

NO_ACTION = "No single action resolves this"
"""What the key that fixes says of a need without an action, before the way to go instead."""

LABEL = 20
"""Characters of an act's label that a key at the foot shows."""


class CollaborationActions(PaintingScreen[None]):
    """The acts on one collaboration."""

    app: AcpApp
    _was_fixable = False

    @cached_property
    def _availability(self) -> Availability:
        from acp_tui.actions.availability import Availability

        return Availability(self, lambda key: offered(self.app, key), self.offers_known)

    def ask_what_it_offers(self) -> None:
        """Another collaboration is in hand, or it is otherwise than before: which keys are of use?"""
        self._availability.want(self.in_hand())
        fixable = self._is_fixable()
        if fixable is not self._was_fixable:
            self._was_fixable = fixable
            self.refresh_bindings()

    def fix_words(self) -> tuple[str, str] | None:
        """What the key that fixes does now, and what for; None where it does nothing."""
        shown = self.need_in_hand()
        if shown is None or not shown[1].remedy:
            return None
        snapshot, need = shown
        return self.called(snapshot.key, need.remedy or ""), need_case(need, snapshot)

    def called(self, key: str, action: str) -> str:
        """What an action of a collaboration is called."""
        from acp_tui.actions.availability import described

        snapshot = self.app.fleet.snapshots.get(key)
        return described(snapshot.protocol if snapshot is not None else "", action)

    def _is_fixable(self) -> bool:
        """Whether an action settles the need that is in hand."""
        shown = self.need_in_hand()
        return shown is not None and bool(shown[1].remedy)

    def offers_known(self) -> None:
        """More is known of what the collaboration in hand offers."""

    def start_label(self, snapshot: Snapshot) -> str:
        """What the act is called that starts a collaboration that nothing runs; "" if there is none."""
        from acp_core.loops.wording import is_idle

        start = self._availability.start(snapshot) if is_idle(snapshot) else None
        return start.label if start else ""

    def in_hand(self) -> Snapshot | None:
        """The collaboration to act on."""
        raise NotImplementedError

    def asking(self, snapshot: Snapshot | None = None) -> list[tuple[Snapshot, Matter]]:
        """The open needs of a collaboration (the one in hand) and of its parts, with whose each is."""
        from acp_core.fleet.overview import asking

        snapshot = snapshot or self.in_hand()
        if snapshot is None:
            return []
        known = {**self.app.fleet.snapshots, snapshot.key: snapshot}
        return asking(snapshot.key, known, self.app.attention.open_needs)

    def needs_of(self, snapshot: Snapshot) -> tuple[Matter, ...]:
        """The open needs of a collaboration; those of its parts name the part."""
        return tuple(need for _, need in self.asking(snapshot))

    def perform_wanted(self, target: Target) -> None:
        """Do what a row points to, in the part that asks for it where one does."""
        if target.action is None or (snapshot := self.in_hand()) is None:
            return
        wanted = target.action, target.given
        keys = (whose.key for whose, need in self.asking() if (need.remedy, need.given) == wanted)
        key = next(keys, snapshot.key)
        self.app.perform(key, target.action, self.performed, dict(target.given))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim the keys that need a collaboration while there is none, and what it does not offer."""
        if action not in _NEED_ONE:
            return super().check_action(action, parameters)
        snapshot = self.in_hand()
        if snapshot is None:
            return None
        if action == "halt" and self._availability.halt(snapshot) is None:
            return False
        return super().check_action(action, parameters)

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """The keys that work now; the one that stops work is called what the act is called.

        The footer shows the one that fixes only where there is something to fix.
        """
        active, snapshot = super().active_bindings, self.in_hand()
        if snapshot is None:
            return active
        from acp_core.model import Status  # late: the first picture has no collaboration

        over = snapshot.status in (Status.COMPLETED, Status.BLOCKED)
        for key, entry in active.items():
            if entry.binding.action == "halt":
                words = clean_line(self._availability.label(snapshot), LABEL)
                idle = over and self._availability.halt(snapshot) is UNKNOWN  # most likely nothing
                binding = replace(entry.binding, description=words, show=not idle)
                active[key] = entry._replace(binding=binding)
            elif entry.binding.action == "remedy" and not self._is_fixable():
                binding = replace(entry.binding, show=False)  # it says that nothing is needed
                active[key] = entry._replace(binding=binding)
        return active

    async def action_halt(self) -> None:
        """Stop the work: all of it where that can be done, else the part that is in hand."""
        snapshot = self.in_hand()
        if snapshot is None:
            return
        halt, words = self._availability.halt(snapshot), self._selected_words()
        if halt is UNKNOWN:
            try:
                halt = await self._availability.find_out(snapshot)
            except Exception as error:  # somebody else's protocol: reported, not raised
                why = trouble(self.app, snapshot.key, error)
                self.app.tell(f"Could not load the actions: {why}", "error")
                return
        if halt is None:
            self.app.tell("There is nothing to stop here now.")
        else:
            self.app.perform(snapshot.key, halt.name, self.performed, halt.given(words))

    def _selected_words(self) -> tuple[str, ...]:
        """What the selected row of a list names: an agent, a task."""
        from acp_tui.widgets.row_list import RowList  # late: the first picture has no list

        item = self.focused.selected if isinstance(self.focused, RowList) else None
        if item is None:
            return ()
        cells = (piece[0].strip() for piece in item.pieces)
        return (*(value for _, value in item.target.given), *cells)

    def action_actions(self) -> None:
        """List everything that can be done."""
        if snapshot := self.in_hand():
            self.app.list_actions(snapshot.key, self.performed)

    @property
    def place_of_need(self) -> int:
        """Which of the needs is in hand: the one that is shown with the key that helps."""
        return 0

    def need_in_hand(self) -> tuple[Snapshot, Matter] | None:
        """The need that is shown with the key that helps, and whose it is; None where there is none."""
        asked = self.asking()
        return asked[min(self.place_of_need, len(asked) - 1)] if asked else None

    def _need_to_act_on(self) -> tuple[Snapshot, Matter] | None:
        """The need in hand with whose it is; None, which is told, where nothing needs the person."""
        if self.in_hand() is None:
            return None
        shown = self.need_in_hand()
        if shown is None:
            self.app.tell("Nothing here needs you.")
        return shown

    def action_remedy(self) -> None:
        """Do what the need in hand asks for."""
        if wanted := self._need_to_act_on():
            whose, need = wanted
            if need.remedy:
                self.app.perform(whose.key, need.remedy, self.performed, dict(need.given))
            else:
                self.show_need(whose, need)

    def show_need(self, whose: Snapshot, need: Matter) -> None:
        """Show what to do about a need that no single action settles."""
        self.app.tell(f"{NO_ACTION}: press {called(self.app, 'fleet.open')} to open it.")

    def action_launch(self) -> None:
        """Start loops for its participants, or what else runs it."""
        if snapshot := self.in_hand():
            start = self._availability.start(snapshot)
            self.app.perform(snapshot.key, start.name if start else LAUNCH, self.performed)

    def action_stop(self) -> None:
        """Stop loops of its participants."""
        if snapshot := self.in_hand():
            self.app.perform(snapshot.key, STOP_LOOP, self.performed)

    def action_acknowledge(self) -> None:
        """Take a need off the top, with a note."""
        if wanted := self._need_to_act_on():
            whose, need = wanted  # a part's needs are acknowledged part by part
            self.app.perform(whose.key, ACK.name, self.performed, {"need": need.key})

    async def action_archive(self) -> None:
        """Put it away, or take it back."""
        snapshot = self.in_hand()
        if snapshot is None:
            return
        from acp_core.diagnosis.personal import Noted, bind_archive, bind_unarchive
        from acp_core.model import OutcomeState

        noted = Noted(snapshot.key, snapshot, self.app.attention)
        archived = self.app.attention.is_archived(snapshot.key)
        action = (bind_unarchive if archived else bind_archive)(noted, self.app.now())
        outcome = await asyncio.to_thread(action.perform, {})
        if outcome.state is OutcomeState.REFUSED:
            said = f"Could not save it: {outcome.sentence}"
        else:
            again = f"{called(self.app, 'act.archive')} unarchives it"
            said = f"{snapshot.name} is {'back' if archived else f'archived; {again}'}."
        self.app.outcomes.tell(replace(outcome, sentence=said))
        self.app.attention_changed()

    def action_validate(self) -> None:
        """Read everything again now."""
        if snapshot := self.in_hand():
            self.app.fleet.touch(snapshot.key)
            self.app.tell(f"Reading {snapshot.name} again.", timeout=2)

    def action_copy_path(self) -> None:
        """Copy where it is, by way of the terminal (OSC 52)."""
        if snapshot := self.in_hand():
            self.app.copy(snapshot.key)

    def action_open_folder(self) -> None:
        """Show its folder in the desktop's file manager; where there is none, copy its path."""
        snapshot = self.in_hand()
        if snapshot is None:
            return
        if not os.path.isabs(snapshot.key):
            self.app.copy(snapshot.key)
            return
        try:
            open_folder(Path(snapshot.key))
        except EditorProblem as problem:
            self.app.copy(snapshot.key)
            self.app.tell(f"{problem}")

    def performed(self, outcome: Outcome | None) -> None:
        """An action ended so, or was left (None)."""


_NEED_ONE = frozenset(
    {"halt", "actions", "remedy", "acknowledge", "archive", "validate", "copy_path",
     "open_folder", "open", "launch", "stop"}
)  # fmt: skip

"""What the key that stops work is for: all of it where that can be done, else a part of it."""
