"""What an append to a shared folder asks of the system, counted: no more than it needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from acp_core.files import locked
from acp_core.model.clock import utc_now
from acp_core.protocols.folder.write import shared, sharing
from acp_core.protocols.folder.write.append import Request
from acp_core.stores.engine import Change, Tip
from acp_core.stores.hosts import open_engine
from tests.bench.collaborations import OWNER, READER, of_length
from tests.stores.hosts import repository


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are brought to the disk, and each look at the list of mounts."""
    found: list[str] = []

    def noted(name: str) -> None:
        sync = getattr(os, name)

        def call(fd: int) -> None:
            path = os.readlink(f"/proc/self/fd/{fd}")
            found.append(Path(path).name.removesuffix(".acp-tmp").lstrip("."))
            sync(fd)

        monkeypatch.setattr(os, name, call)

    noted("fsync")
    noted("fdatasync")
    here = locked.here

    def listed() -> tuple[locked.Mount, ...]:
        found.append("mounts")
        return here()

    monkeypatch.setattr(locked, "here", listed)
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="tells which file is synced")
def test_the_key_is_synced_before_the_event_is_published_and_the_mounts_are_listed_once(
    tmp_path: Path, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside an unshared append, which syncs its document and not its key, it is one sync more."""
    folder = of_length(tmp_path / "folder", 10)
    address = sharing.share(str(folder), f"git+file://{repository(tmp_path)}", "one").address
    with (folder / "review.md").open("a") as review:
        review.write(f"\n## 2026-01-01T00:00:00Z - {READER} - seq 11\n\nPosition:\n- Fine.\n")
    at = str(folder)
    with open_engine(address) as engine:
        publish = engine.publish

        def noted(tip: Tip | None, change: Change) -> Tip:
            called.append("published")
            return publish(tip, change)

        monkeypatch.setattr(engine, "publish", noted)
        for request in (
            Request(at, READER, "review_submitted", "Fine", "review.md", 10),
            Request(at, OWNER, "proposal_submitted", "Again", "proposal.md", 11),
        ):
            called.clear()
            shared.publish(request, address, engine, now=utc_now, before_write=lambda: None)
    pending, run, published, log, protocol, home = (each for each in called if each != "mounts")
    assert (run, published, log, home) == ("run", "published", "events.jsonl", "folder")
    assert pending.startswith("pending.json") and protocol.startswith("protocol.json")
    assert called.count("mounts") == 1
