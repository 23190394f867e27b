"""A folder collaboration, opened: from a location to its files, and from these to Snapshots.

Source: folder protocol specification, "Files". State always follows from the log; what
protocol.json says of it may lag behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path

from acp_core.files import markdown
from acp_core.files.journal import read_line
from acp_core.files.locked import is_locked
from acp_core.files.reading import Unreadable, open_regular, read_bounded
from acp_core.model import Action, DocumentText, Heading, Matter, Outcome, Snapshot
from acp_core.model.light import TYPE_CHECKING
from acp_core.model.past import Story, TrackedFile
from acp_core.model.text import clean, clean_line
from acp_core.model.turn import Brief, TurnState
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.folder.matters.causes import Damage, Repairs, causes
from acp_core.protocols.folder.past import is_edit, recorded_files
from acp_core.protocols.folder.read import facts as read_facts
from acp_core.protocols.folder.read.current_state import people_of_settings
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema import deliverables, records
from acp_core.protocols.folder.schema.records import BadLine
from acp_core.protocols.folder.view.build import Builder
from acp_core.protocols.folder.view.timeline import LINK_NOTE, EventLog

if TYPE_CHECKING:
    from acp_core.agents.live.requests import OwnCommand
    from acp_core.model.card import Card
    from acp_core.protocols.folder.conduct.syncing import Wanted
    from acp_core.protocols.folder.conduct.turns import Turns
    from acp_core.protocols.folder.view.story import Pace, Totals
    from acp_core.protocols.folder.write.repair import Outlook
    from acp_core.protocols.kit.diagnosis import DiagnosisContext

_AGAIN = 5.0  # seconds between two looks whether a folder that is watched follows its store
GRACE = 2.0  # seconds for which a file that is empty, torn or gone counts as being written


def open_location(location: str) -> Collaboration:
    """Open a collaboration. Never raises for what stands there."""
    if "://" in location:
        from acp_core.protocols.folder.mirror import StoreCollaboration  # only links need it

        return StoreCollaboration(location, open_folder)
    from acp_core.protocols.folder.read.detect import shows_mirror

    if shows_mirror(location):
        from acp_core.protocols.folder.mirror import MirrorCollaboration  # only mirrors

        return MirrorCollaboration(location)
    return open_folder(location)


def open_folder(location: str, humans: frozenset[str] | None = None) -> FolderCollaboration:
    """Open the collaboration in a folder. Never raises for what the folder holds.

    Args:
        location: The folder.
        humans: Ids of participants that are people, beside those that protocol.json names;
            None takes those of the user's settings.
    """
    if humans is None:
        humans = people_of_settings()
    return FolderCollaboration(location, humans)


class FolderCollaboration(Collaboration):
    """One folder; keeps what it has read, so that a look costs only what changed.

    Args:
        location: The folder's path.
        humans: Ids of participants that are people, beside those that protocol.json names.

    Attributes:
        facts: what was read of the files.
    """

    protocol = "folder"
    has_turns = True

    def __init__(self, location: str, humans: frozenset[str] = frozenset()) -> None:
        self.key = location if os.path.isabs(location) else os.path.abspath(location)
        self.facts = Facts(self.key, grace=GRACE)
        self._builder = Builder(self.key, humans, _diagnose)
        self._last: Snapshot | None = None
        self._is_live = False
        self._followed: Wanted | None = None
        self._store_note = ""

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Have a shared folder synchronized while it is watched: its files tell what changed."""
        self._is_live = True

    def close(self) -> None:
        if self._followed is not None:
            self._followed.close()
            self._followed = None

    def refresh(self, now: datetime) -> Snapshot:
        if self._is_live and self._followed is None and records.is_shared(self.key):
            from acp_core.protocols.folder.conduct.syncing import want  # only shared ones need it

            self._followed = want(self.key)
        changed = self.facts.refresh(now.timestamp())
        last = self._last
        if last is not None and _is_half_appended(self.facts):
            self.facts.unsettled = "an event is being appended"
            self.facts.recheck = now.timestamp() + GRACE
        if records.is_shared(self.key):
            from acp_core.protocols.folder.matters import store  # only shared ones need it

            note = store.note(self.key)
            if note and self._is_live:  # whoever follows it begins, or asks its store again
                self.facts.recheck = now.timestamp() + _AGAIN
            changed |= note != self._store_note
            self._store_note = note
        due = last is not None and last.recheck_at is not None and last.recheck_at <= now
        if last is None or changed or due:
            self._last = self._builder.snapshot(self.facts, now)
            return self._last
        return last

    def watched(self) -> frozenset[Path]:
        folders = {Path(self.key)}
        if self.facts.kept:
            folders.add(Path(self.key, read_facts.FOLDER))
        root = self.facts.root.path
        for declared in self.facts.deliverables:
            path = declared.file.path
            if path is not None and root is not None:
                folders.add(Path(_nearest_folder(os.path.dirname(path), root)))
        return frozenset(folders)

    def follows_from_folder(self) -> bool:
        facts = self.facts
        outside = facts.declaration.mode != deliverables.INTERNAL or records.is_shared(self.key)
        return not (outside or facts.unsettled or facts.rewritten or facts.log_full)

    def tracked_files(self) -> tuple[TrackedFile, ...]:
        return recorded_files(self.facts)

    def is_edit(self, document: str, before: bytes, after: bytes) -> bool:
        return is_edit(document, before, after)

    def load(self, document: str) -> DocumentText:
        shown = self._last.document(document) if self._last else None
        if shown is None:
            raise KeyError(document)
        if shown.note == LINK_NOTE or shown.path is None:
            return DocumentText(shown.id, shown.version, "", note=shown.note)
        try:
            data, note = _beginning(shown.path, records.MAX_DOCUMENT)
        except Unreadable as error:
            return DocumentText(shown.id, shown.version, "", note=clean_line(error.reason))
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            text = data.decode(errors="replace")
            note = note or f"not UTF-8 at byte {error.start + 1}"
        text = clean(text.removeprefix("\ufeff"))
        found = markdown.headings(text) if shown.kind == "markdown" else ()
        headings = tuple(Heading(h.level, clean_line(h.title, 300), h.line) for h in found)
        return DocumentText(shown.id, shown.version, text, headings, note)

    def raw_event(self, event: str) -> str:
        events = self._last.events if self._last else ()
        index = events.find(event) if isinstance(events, EventLog) else None
        if index is None or not isinstance(events, EventLog):
            return ""
        try:
            raw = read_line(self.facts.path(records.LOG_FILE), events.line_of(index))
        except Unreadable:
            return ""
        parsed = records.parse_line(raw, 1)
        if parsed is None or isinstance(parsed, BadLine):
            return ""  # the log has changed since
        text = raw.decode(errors="replace")
        return clean_line(text, len(text) + 1)

    def actions(self, now: datetime) -> Sequence[Action]:
        from acp_core.protocols.folder.acts.offered import actions  # only who acts needs it

        return actions(self, now)

    def action(self, name: str, now: datetime) -> Action | None:
        from acp_core.protocols.folder.acts.offered import action  # only who acts needs it

        return action(self, name, now)

    def cards(self, now: datetime) -> Sequence[Card]:
        from acp_core.protocols.folder.acts.cards import cards  # only who decides needs it

        return cards(self, now)

    def causes(self, case: DiagnosisContext) -> Sequence[Matter]:
        return tuple(causes(self.facts, Repairs(self._planned, _diagnose), case))

    def durations(self, participant: str) -> Sequence[float]:
        return self._pace.of(self.facts.history, participant)

    def story(self) -> Story:
        from acp_core.protocols.folder.view.story import story  # only reports need it

        texts = [self._text(name) for name in ("review.md", "decisions.md")]
        return story(self.facts, *texts)

    def totals(self) -> Mapping[str, int | None]:
        decisions = self._text("decisions.md")
        return self._totals.of(self.facts, lambda: self._text("review.md"), decisions)

    def _text(self, name: str) -> str | None:
        """A document's text as scans see it, None where it cannot be read."""
        try:
            data = read_bounded(self.facts.path(name), records.MAX_DOCUMENT)
            return markdown.normalise(data.decode())
        except (Unreadable, UnicodeDecodeError):
            return None

    @cached_property
    def outlook(self) -> Outlook:
        """What a repair would do."""
        from acp_core.protocols.folder.write.repair import Outlook  # only actions need it

        return Outlook()

    @cached_property
    def _mended(self) -> Outlook:
        """The same for causes, which another thread looks for."""
        from acp_core.protocols.folder.write.repair import Outlook  # only repairs need it

        return Outlook()

    def _planned(self, facts: Facts, now: datetime) -> frozenset[str]:
        return frozenset(fix.name for fix in self._mended.planned(facts, now))

    @cached_property
    def _totals(self) -> Totals:
        from acp_core.protocols.folder.view.story import Totals  # only reports need it

        return Totals()

    @cached_property
    def _pace(self) -> Pace:
        from acp_core.protocols.folder.view.story import Pace

        return Pace()

    def turn(self, participant: str, now: datetime, brief: Brief | None = None) -> TurnState:
        return self._turns.turn(participant, now, brief)

    def turn_signs(self) -> tuple[Path, ...]:
        signs = (Path(self.key, records.LOG_FILE), Path(self.key, records.PROTOCOL_FILE))
        of_store = Path(self.key, ".acp", "base.json"), Path(self.key, ".acp", "run", "sync.json")
        return (*signs, *of_store) if records.is_shared(self.key) else signs

    def prompt(self, participant: str, brief: Brief) -> str:
        return self._turns.prompt(participant, brief)

    def own_commands(self) -> Mapping[str, OwnCommand]:
        from acp_core.protocols.folder.acts.offered import own_commands

        return own_commands()

    def conclude(self, participant: str, brief: Brief, by: str, now: datetime) -> Outcome:
        return self._turns.conclude(participant, brief, by, now)

    def leave(self, participant: str) -> str:
        if not records.is_shared(self.key):
            return ""
        from acp_core.protocols.folder.conduct import turns  # only shared ones need it

        return turns.leave(self.key, participant)

    @cached_property
    def _turns(self) -> Turns:
        from acp_core.protocols.folder.conduct.turns import Turns  # only loops need it

        return Turns(self.key)


def _diagnose(folder: str, now: datetime) -> Damage:
    """What a repair finds in a folder."""
    from acp_core.protocols.folder.write import repair  # most folders need no repair

    plan = repair.diagnose(folder, now)
    return Damage(frozenset(fix.name for fix in plan.fixes), plan.hopeless)


def _is_half_appended(facts: Facts) -> bool:
    """Whether a review stands in review.md whose event is just being appended."""
    headings = facts.pairing.without_review
    return any(not event for _, event, _ in headings) and is_locked(facts.path(records.LOG_FILE))


def _nearest_folder(folder: str, root: str) -> str:
    """``folder``, or the nearest one above it that exists, within ``root``."""
    while folder != root and not os.path.isdir(folder):
        above = os.path.dirname(folder)
        if above == folder or not above.startswith(root):
            return root
        folder = above
    return folder


def _beginning(path: str, limit: int) -> tuple[bytes, str]:
    """At most ``limit`` bytes of a file, whole lines, and a note where that is not all.

    Raises:
        Unreadable: it cannot be read.
    """
    descriptor, found = open_regular(path)
    try:
        parts, left = [], limit
        while left and (part := os.read(descriptor, left)):
            parts.append(part)
            left -= len(part)
    except OSError as error:
        raise Unreadable((error.strerror or str(error)).lower(), error.errno) from None
    finally:
        os.close(descriptor)
    data = b"".join(parts)
    if left or found.st_size <= limit:
        return data, ""
    cut = data[: data.rfind(b"\n") + 1] or data
    return cut, f"only the first {limit >> 20} MiB are shown"
