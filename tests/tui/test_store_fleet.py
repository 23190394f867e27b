"""Who coordinates looks at a store: what no folder here holds is listed, opened and acted in."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from tests.stores.hosts import Host, repository, started
from tests.tui.stage import opens, screen_text, shows, until


async def test_a_collaboration_of_a_store_is_opened_from_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = repository(tmp_path)
    anna = Host("anna", tmp_path)
    for id in ("cache-key", "checkout"):
        anna.folder = anna.home / id
        started(anna)
        anna.done_here("share", str(store), "--id", id, "--yes")
    anna.write("proposal.md", "# P\n\n## Objective\nChoose\n")
    anna.appended("writer", "proposal_submitted", "--reply-to", "1")
    (tmp_path / "config").mkdir()
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    (tmp_path / "config" / "config.toml").write_text('humans = ["reader"]\n')
    app = AcpApp([f"git+file://{store}"], settings=Settings(humans=["reader"]))
    async with app.run_test(size=(130, 30)) as pilot:
        words = ("1 needs you · 1 live", "reader must review the proposal", " host ")
        await until(pilot, lambda: all(each in screen_text(app) for each in words), "the list")
        table = app.screen.query_one("FleetTable")
        assert [entry.name for entry in table.entries] == ["checkout", "cache-key"]
        assert table.entries[0].snapshot.documents == ()
        await pilot.press("enter")
        await opens(pilot, "CollaborationScreen")
        await shows(pilot, "proposal_submitted")
        shown = app.fleet.snapshots[f"git+file://{store}#checkout"]
        assert [each.kind for each in shown.events] == ["initialized", "proposal_submitted"]
        assert "proposal.md" in [each.id for each in shown.documents]
