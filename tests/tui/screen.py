"""A dashboard without files for tests of the collaboration screen, and what it shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from acp_core import model
from acp_core.fleet import Batch
from acp_core.protocols.contract import Collaboration
from acp_tui.app import AcpApp
from tests.tui.stage import StageFleet, dashboard, opens, screen_text
from tests.tui.support import KEY, NOW


class Source(Collaboration):
    """A collaboration that holds texts and actions, and no files."""

    protocol = "folder"
    has_turns = True

    def __init__(self, key: str, texts: dict[str, str]) -> None:
        self.key = key
        self.texts = texts
        self.loads: list[str] = []
        self.offered: tuple[model.Action, ...] = ()

    def refresh(self, now: datetime) -> model.Snapshot:
        raise NotImplementedError

    def watched(self) -> frozenset[Path]:
        return frozenset()

    def load(self, document: str) -> model.DocumentText:
        self.loads.append(document)
        text = self.texts[document]
        headings = tuple(
            model.Heading(len(line) - len(line.lstrip("#")), line.lstrip("# "), number)
            for number, line in enumerate(text.split("\n"), 1)
            if line.startswith("#")
        )
        return model.DocumentText(document, "1", text, headings)

    def raw_event(self, event: str) -> str:
        return json.dumps({"seq": event, "event": "as the source holds it"})

    def actions(self, now: datetime) -> Sequence[model.Action]:
        return self.offered


class StillFleet(StageFleet):
    """A stage whose collaborations hold texts."""

    def __init__(self, *snapshots: model.Snapshot, texts: dict[str, str]) -> None:
        super().__init__(*snapshots)
        self.sources = {snapshot.key: Source(snapshot.key, texts) for snapshot in snapshots}

    async def call(self, key: str, function: Callable[[Any], Any]) -> Any:
        return function(self.sources[key])

    def add(self, path: Path) -> str:
        return str(path)


def make_app(*snapshots: model.Snapshot, texts: dict[str, str] | None = None, folder: Path,
             theme: str = "textual-dark", **settings: Any) -> AcpApp:  # fmt: skip
    """The dashboard over Snapshots that the test sets; what the person saw is kept in ``folder``."""
    return dashboard(
        StillFleet(*snapshots, texts=texts or TEXTS),
        folder,
        settings={"theme": theme, "utc": True} | settings,
        clock=lambda: NOW,
    )


def change(app: AcpApp, snapshot: model.Snapshot) -> None:
    """A newer Snapshot arrives."""
    app.fleet.snapshots[snapshot.key] = snapshot  # type: ignore[index]
    app.snapshots_changed.publish(Batch((snapshot,)))


def screen_lines(app: App[Any]) -> list[str]:
    """What is on the screen, line by line."""
    return screen_text(app).split("\n")


async def settle(pilot: Pilot[Any]) -> None:
    """Wait until nothing is at work but what listens to the fleet."""
    await pilot.pause()
    for _ in range(4_000):
        waiting = [w for w in pilot.app.workers if w.is_running and w.group != "fleet"]
        if not waiting:
            break
        await pilot.pause(0.01)
    await pilot.pause()
    await pilot.pause()


async def open_screen(pilot: Pilot[Any], target: model.Target | None = None) -> Any:
    """Open `make_snapshot`'s collaboration, and wait until it is drawn."""
    app: AcpApp = pilot.app  # type: ignore[assignment]
    await settle(pilot)
    app.open_collaboration(KEY, target)
    await settle(pilot)
    return await opens(pilot, "CollaborationScreen")


def headline(screen: Any) -> list[str]:
    """The lines on top of a collaboration's screen."""
    return str(screen.query_one("Headline").render()).split("\n")


def seen(pilot: Pilot[Any]) -> str:
    """All that is on the screen."""
    return screen_text(pilot.app)


def with_paths(snapshot: model.Snapshot, folder: str) -> model.Snapshot:
    """The Snapshot with paths of its documents in a folder."""
    documents = tuple(replace(d, path=f"{folder}/{d.id}") for d in snapshot.documents)
    return replace(snapshot, documents=documents)


TEXTS = {
    "proposal.md": """# Proposal

## Purpose

Decide where *sessions* are kept, so that a restart loses none of them and every
server sees `the same` session.

## Current Proposal

Keep sessions in the database, in one table, with an index on the time of expiry.

| option | cost | risk |
|---|---|---|
| database | 2 weeks | a slower login |
| memory | 1 day | lost on restart |

```python
def keep(session):
    return database.put(session.id, session)  # once per request
```

## Open Questions

- How long may a session live? See [the review](review.md).
- Is there a limit on its size? [Background](https://example.org/sessions)
""",
    "review.md": """# Review

## 2026-05-03T12:03:00Z - reviewer - seq 3

Context:
- Read `proposal.md` after event seq `2`.

Position:
- Good, with a limit.

Concerns:
- A session could grow without end.

Required Changes:
- Name a limit on the size of a session.

Questions:
- None.
""",
    "decisions.md": "# Decisions\n\n## Accepted Decisions\n",
    "readiness.md": "# Readiness\n\n- [unresolved] How long may a session live?\n",
    "conclusion.md": "",
    "protocol.json": json.dumps(
        {"objective": "Decide where sessions are kept", "currentPhase": "reviewing",
         "participants": [{"id": "server"}, {"id": "reviewer"}, {"id": "reader"}],
         "completionGates": ["The objective is decided"], "waitingFor": ["reader"]}, indent=2,
    ),
}  # fmt: skip
