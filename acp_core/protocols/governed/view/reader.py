"""Reads a run or an initiative, and reads it anew whenever one of its files changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from acp_core.files.atomic import is_leftover
from acp_core.files.reading import Stamp, just_changed, stamp
from acp_core.model import Document, DocumentText, Snapshot
from acp_core.model.past import TrackedFile
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.read import run as run_module
from acp_core.protocols.governed.read.initiative import (
    OWN,
    Initiative,
    context_folder,
    folder,
    read_initiative,
)
from acp_core.protocols.governed.read.own_writes import (
    COORDINATOR_HOME,
    JOURNAL,
    RUN_HOME,
    SEAL,
    coordinators_above,
)
from acp_core.protocols.governed.read.run import Run, read_run
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.rules.findings import UNSEEN, Trouble
from acp_core.protocols.governed.rules.initiatives import check_initiative
from acp_core.protocols.governed.rules.runs import check_run
from acp_core.protocols.governed.schema import HOOK_AUDIT, RUN_HISTORY
from acp_core.protocols.governed.view.initiative import initiative_snapshot
from acp_core.protocols.governed.view.run import run_snapshot
from acp_core.protocols.kit.documents import kind_of, loaded
from acp_core.protocols.kit.findings import UnseenText
from acp_core.protocols.kit.snapshots import steadily, with_parts_of

_RUN_STATE = (
    f"{RUN_HOME}/{JOURNAL}",
    schema.STATE,
    schema.CONFIG,
    schema.LEDGER,
    schema.HISTORY,
    schema.EVENTS,
)

_BESIDES = (schema.REPO_DECISIONS, schema.ESCALATIONS, RUN_HISTORY, HOOK_AUDIT)
_RUN_FOLDERS = ("", ".agentxchain", ".agentxchain/staging", ".agentxchain/dispatch/turns")


class Reader:
    """One run, or one initiative where the folder holds the configuration of one.

    Attributes:
        snapshot: what was read last; None before the first reading.
        run: the run as it was read last; None of an initiative.
        initiative: the initiative as it was read last; None of a run.
        troubles: what the rules said of it.
    """

    def __init__(self, location: str) -> None:
        self._key = location
        self._root = Path(location)
        self.snapshot: Snapshot | None = None
        self._unseen = UnseenText(UNSEEN)
        self._stamps: dict[Path, Stamp | None] = {}
        self._doubt = False  # a file had just changed when it was read
        self.troubles: list[Trouble] = []
        self._children: tuple[Path, ...] = ()
        self._printed: dict[str, Path] = {}
        self._contexts: tuple[Path, ...] = ()
        self.initiative: Initiative | None = None
        self.run: Run | None = None

    @property
    def status(self) -> str:
        """The run's or the initiative's status in the word of its own files."""
        of = self.run or self.initiative
        return of.status if of else ""

    def refresh(self, now: datetime) -> Snapshot:
        """Everything as it stands at ``now``; the last one where no file changed since."""
        stamps = {path: stamp(path) for path in self._signs()}
        last = self.snapshot
        due = last is not None and last.recheck_at is not None and last.recheck_at <= now
        doubt, self._doubt = (
            self._doubt,
            any(just_changed(each.modified / 1e9) for each in stamps.values() if each),
        )
        if last is not None and stamps == self._stamps and not due and not doubt:
            return last
        new = steadily(lambda: self._read(now), self._written)
        # what came to be known of children is looked at from the next reading on
        self._stamps = stamps if set(stamps) == set(self._signs()) else {}
        self.snapshot = new
        made = self._unseen.added(new, self.tracked_files())
        self.snapshot = with_parts_of(last, made) if last and doubt else made
        return self.snapshot

    def _read(self, now: datetime) -> Snapshot:
        """Everything as it stands."""
        if self.is_initiative():
            self.run = None
            initiative = self.initiative = read_initiative(self._root)
            self._children = tuple(w.run.root for w in initiative.workstreams if w.run)
            home = schema.inside(self._root, context_folder(initiative.config.value))
            self._contexts = tuple(_subfolders(home)) if home else ()
            self.troubles = check_initiative(initiative, now)
            documents = self._documents(self._initiative_files(initiative))
            return initiative_snapshot(
                initiative,
                self._key,
                now,
                self.troubles,
                documents,
                guard.of_initiative(initiative),
            )
        self.initiative = None
        run = self.run = read_run(self._root)
        obstacles = guard.of_run(run, now=now)
        self.troubles = check_run(run, now, obstacles)
        self._printed = {
            f"{turn.id}/{path.name}": path
            for turn in run.turns
            if turn.running or turn.lost
            for path in run_module.program_logs(self._root, str(turn.raw.get("turn_id")))
        }
        documents = self._documents(self._run_files()) + self._outputs()
        return run_snapshot(run, self._key, now, self.troubles, documents, obstacles)

    def _written(self) -> dict[Path, Stamp | None]:
        """The stamps of what acp writes as one, in the run, or in the initiative and its runs."""
        found = [
            root / name for root in (self._root, *self._children) for name in (*_RUN_STATE, SEAL)
        ]
        if self.is_initiative():
            found += (path for layout in (OWN, "") for path in _files(self._root / folder(layout)))
        return {path: stamp(path) for path in found}

    def watched(self) -> frozenset[Path]:
        """The folders in which its files are; see `Collaboration.watched`."""
        return frozenset(path for path in self._folders() if path.is_dir())

    def load(self, document: str) -> DocumentText:
        """A document's text; see `Collaboration.load`."""
        known = self.snapshot.document(document) if self.snapshot else None
        if known is None or known.path is None:
            raise KeyError(document)
        printed = self._printed.get(document)
        return loaded(known, printed or schema.inside(self._root, known.path))

    def tracked_files(self) -> tuple[TrackedFile, ...]:
        """The run's files and its documents; see `Collaboration.tracked_files`.

        Its events come from several logs, so that none of these is *the* log; all follow from
        what somebody did, and are written right after it.
        """
        found = []
        for document in self.snapshot.documents if self.snapshot else ():
            path = Path(document.path) if document.path else None
            if path is None or path.is_symlink() or document.id in self._printed:
                continue
            name = os.path.relpath(path, self._root).replace(os.sep, "/")
            follows = document.group == "state" or name == schema.TALK
            found.append(TrackedFile(name, str(path), False, document.id, follows))
        return tuple(found)

    def raw_event(self, event: str) -> str:
        """The line of a log that tells of an event; see `Collaboration.raw_event`."""
        known = (
            next((e for e in self.snapshot.events if e.id == event), None)
            if self.snapshot
            else None
        )
        path = schema.inside(self._root, known.source) if known else None
        if known is None or path is None:
            return ""
        for line in schema.read_log(path).lines:
            if line.number == known.line:
                return clean_line(json.dumps(line.value, ensure_ascii=False), 1 << 20)
        return ""

    def is_initiative(self) -> bool:
        """Whether the folder holds the configuration of an initiative, as of now."""
        return (self._root / schema.MULTI_CONFIG).is_file()

    def _folders(self) -> Iterator[Path]:
        for root in (self._root, *self._children):
            for name in _RUN_FOLDERS:
                yield root / name
            yield from _subfolders(root / ".agentxchain/staging")
            yield from existing_program.transaction_folders(root)
        yield from _subfolders(self._root / ".agentxchain/dispatch/turns")
        yield self._root / ".planning"
        yield self._root / ".agentxchain/reviews"
        yield from {path.parent for path in self._printed.values()}
        for root in coordinators_above(self._root):
            yield root / COORDINATOR_HOME
        for layout in (OWN, ""):
            yield self._root / folder(layout)
            yield self._root / folder(layout) / "context"
        yield from self._contexts

    def _signs(self) -> list[Path]:
        found = [self._root / schema.MULTI_CONFIG, self._root / schema.TALK]
        for root in (self._root, *self._children):
            found += [root / name for name in (*_RUN_STATE, schema.SESSION, SEAL)]
            found += [p / "turn-result.json" for p in _subfolders(root / ".agentxchain/staging")]
        for root in coordinators_above(self._root):
            found += [root / schema.MULTI_CONFIG, root / COORDINATOR_HOME / "state.json"]
        found += list(self._folders())
        found += self._printed.values()
        found += [self._root / name for name in _BESIDES]
        found += list(_files(self._root / ".planning"))
        found += list(_files(self._root / ".agentxchain/reviews"))
        found += existing_program.transaction_files(self._root)
        for place in _subfolders(self._root / ".agentxchain/dispatch/turns"):
            found += list(_files(place))
        for layout in (OWN, ""):
            found += list(_files(self._root / folder(layout)))
        for place in self._contexts:
            found += list(_files(place))
        return found

    def _run_files(self) -> list[tuple[str, str]]:
        found = [(schema.TALK, "document"), ("HUMAN_TASKS.md", "document")]
        found += [(f".planning/{p.name}", "document") for p in _files(self._root / ".planning")]
        for place in _subfolders(self._root / ".agentxchain/dispatch/turns"):
            names = (f"{place.relative_to(self._root)}/{p.name}" for p in _files(place))
            found += [(name, "document") for name in names]
        for place in _subfolders(self._root / ".agentxchain/staging"):
            found.append((f"{place.relative_to(self._root)}/turn-result.json", "deliverable"))
        reviews = _files(self._root / ".agentxchain/reviews")
        found += [(f".agentxchain/reviews/{path.name}", "document") for path in reviews]
        left = [
            os.path.relpath(path, self._root)
            for path in existing_program.transaction_files(self._root)
        ]
        state = (*_RUN_STATE, schema.SESSION, *_BESIDES, *left)
        return found + [(name, "state") for name in state]

    def _initiative_files(self, initiative: Initiative) -> list[tuple[str, str]]:
        home = folder(initiative.layout)
        found = [(schema.MULTI_CONFIG, "state")]
        found += [(f"{home}/{p.name}", "state") for p in _files(self._root / home)]
        for place in self._contexts:  # what agents are told; the board comes first
            names = (f"{place.relative_to(self._root)}/{p.name}" for p in _files(place))
            found += [(name, "state") for name in names if name.endswith(".md")]
        return found

    def _documents(self, names: list[tuple[str, str]]) -> tuple[Document, ...]:
        documents: dict[str, Document] = {}
        for name, group in names[:300]:
            path = schema.inside(self._root, name)
            found = stamp(path) if path else None
            if path is None or found is None:
                continue
            id = clean_line(name, 300)
            stream = clean_line(path.parent.name, 80) if path.parent in self._contexts else ""
            documents[id] = Document(
                id,
                f"Context of {stream}" if stream else id,
                kind_of(path),
                group,
                str(path),
                found.size,
                datetime.fromtimestamp(found.modified / 1e9, UTC),
                f"{found.modified}/{found.size}/{found.inode}",
            )
        return tuple(documents.values())

    def _outputs(self) -> tuple[Document, ...]:
        """What the programs of turns under way printed; it is kept outside of the repository."""
        documents = []
        for id, path in self._printed.items():
            found = stamp(path)
            if found is None or not found.size:
                continue
            at = datetime.fromtimestamp(found.modified / 1e9, UTC)
            version = f"{found.modified}/{found.size}/{found.inode}"
            documents.append(
                Document(id, id, "text", "document", str(path), found.size, at, version)
            )
        return tuple(documents)


def _subfolders(path: Path) -> list[Path]:
    try:
        return sorted(p for p in path.iterdir() if p.is_dir() and not p.is_symlink())[:50]
    except OSError:
        return []


def _files(path: Path) -> list[Path]:
    try:
        found = sorted(p for p in path.iterdir() if p.is_file() and not p.is_symlink())
        # what a killed writer left of a file that was to be put in place whole is no document
        return [p for p in found if not is_leftover(p.name)][:100]
    except OSError:
        return []
