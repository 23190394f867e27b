"""A folder on another machine in the dashboard: two processes, and nothing but the link."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
import pytest

from acp_core.fleet import Fleet
from acp_core.fleet.live import watch
from acp_core.history.archive import BadArchive, export
from acp_core.history.past import Past
from acp_core.model import Intent, OutcomeState, Snapshot, SourceState
from acp_core.model.errors import Refused
from acp_core.protocols import locations
from acp_core.protocols.kit.diagnosis import Case, Clock
from acp_core.protocols.wire.bridge.serving import Asked, carry_out
from acp_core.protocols.wire.collaboration import RemoteAgent
from tests.loops import support as loops
from tests.protocols.wire.support import PATIENCE, ROOT, do, until
from tests.protocols.wire.test_bridge import Bridge, propose
from tests.support import forked


def look(agent: RemoteAgent) -> Snapshot:
    return agent.refresh(datetime.now(UTC))


def test_the_dashboard_shows_a_folder_behind_a_link_and_each_change_of_it(tmp_path: Path) -> None:
    folder = loops.make(tmp_path / "run")
    with Bridge(folder, "--port", "0", "--http-port", "0") as bridge:
        key = locations.resolve(bridge.url)

        async def follow() -> None:
            fleet = Fleet([key])
            proposed = False
            try:
                async with asyncio.timeout(PATIENCE):
                    async for _ in fleet.changes():
                        seen = fleet.snapshots.get(key)
                        if seen is None or not seen.documents:
                            continue
                        if not proposed:
                            proposed = True
                            assert seen.phase == "drafting"
                            assert [turn.participant for turn in seen.turns] == ["server"]
                            assert str(tmp_path) not in repr(seen)
                            await asyncio.to_thread(propose, folder)
                        elif seen.phase == "reviewing":
                            assert {turn.participant for turn in seen.turns} == {
                                "reader",
                                "reviewer",
                            }
                            assert seen.events[-1].kind == "proposal_submitted"
                            text = await fleet.call(key, lambda c: c.load("proposal.md"))
                            assert "Invalidate by key." in text.text
                            id = seen.events[-1].id
                            raw = await fleet.call(key, lambda c, id=id: c.raw_event(id))
                            assert '"proposal_submitted"' in raw
                            break
            finally:
                await fleet.close()

        asyncio.run(follow())


def test_with_the_link_of_a_bridge_its_allowed_actions_can_be_done_and_no_others(
    tmp_path: Path,
) -> None:
    folder = loops.make(tmp_path / "run")
    ports = ("--port", "0")  # the link's HTTP is 100 above its port
    with Bridge(folder, *ports, "--allow", "block", "--allow", "continue") as bridge:
        agent = RemoteAgent(locations.resolve(bridge.link))
        try:
            assert look(agent).dialect.startswith("bridge, folder")
            names = [action.name for action in agent.actions(datetime.now(UTC))]
            assert names == ["block"]
            with pytest.raises(
                Refused, match="allows this action, but it is not possible in the folder now"
            ):
                agent.action("continue", datetime.now(UTC))
            with pytest.raises(Refused, match="allows reading and these actions: block, continue"):
                agent.action("append", datetime.now(UTC))
            assert do(agent, "block", reason="Wait for the \x1b[31mboss").state is OutcomeState.DONE
            until(lambda: "blocked" in look(agent).events[-1].kind, "the event")
            with pytest.raises(KeyError):
                agent.load("no-such.md")
            told = look(agent)
            assert "What to do" not in told.headline  # that is said of its causes
            found = locations.find(agent.key)
            assert found
            past = Past(found, datetime.now(UTC))
            try:  # its events, and no other collaboration in their place
                assert [each.name for each in past.moments] == [each.id for each in told.events]
                then = past.at(0).snapshot
                assert then.name == told.name
                assert "not recorded" in then.headline
            finally:
                past.close()
            with pytest.raises(BadArchive, match="export the collaboration there"):
                export(found, tmp_path / "x.zip")
            bridge.stop()
            until(lambda: look(agent).source.state is SourceState.STALE, "that it is away")
            later = datetime.now(UTC) + timedelta(hours=1)
            causes = agent.causes(Case(look(agent), Clock(later)))
            assert causes[0].code == "wire-unreachable"
            assert look(agent).phase
            assert agent.actions(datetime.now(UTC)) == ()
            assert "not reachable" in agent.load("proposal.md").note
        finally:
            agent.close()


def test_what_would_be_done_through_a_bridge_is_shown_and_nothing_is_done(tmp_path: Path) -> None:
    folder = loops.make(tmp_path / "run")
    with Bridge(folder, "--port", "0", "--allow", "block") as bridge:
        before = (folder / "events.jsonl").read_bytes()
        agent = RemoteAgent(locations.resolve(bridge.link))
        try:
            look(agent)
            action = agent.action("block", datetime.now(UTC))
            assert action
            assert action.intent is Intent.STOP_EVERYTHING
            shown = action.preview(action.inputs(reason="Wait"))
            assert [(each.verb, each.path) for each in shown.changes] == [
                ("append", "events.jsonl"),
                ("replace", "protocol.json"),
            ]
            assert "Wait" in shown.changes[0].diff
            assert str(tmp_path) not in repr(shown)
            assert action.preview(action.inputs(reason=" ")).refused
            assert (folder / "events.jsonl").read_bytes() == before
        finally:
            agent.close()


def test_a_bridge_that_allows_nothing_says_so_and_what_would_allow_more(tmp_path: Path) -> None:
    folder = loops.make(tmp_path / "run")
    with Bridge(folder, "--port", "0") as bridge:
        for words in (("act", bridge.link), ("act", bridge.link, "block")):
            ran = forked.run(words, ROOT, {**os.environ, "PYTHONPATH": str(ROOT)}, "")
            assert "This bridge allows reading and these actions: none" in ran.stdout + ran.stderr
            assert "acp bridge FOLDER --allow NAME" in ran.stdout + ran.stderr
            assert bridge.link not in ran.stdout + ran.stderr


@pytest.mark.parametrize("name", ["nonsense", "other", "stop everything", "ack", "archive"])
def test_no_intent_and_nobodys_own_note_can_be_allowed_to_others(tmp_path: Path, name: str) -> None:
    """Acts are allowed by their exact name alone, and what is a person's own not at all."""
    folder = loops.make(tmp_path / "run")
    ran = forked.run(
        ("bridge", str(folder), "--port", "0", "--allow", name),
        ROOT,
        {**os.environ, "PYTHONPATH": str(ROOT)},
        "",
    )
    assert ran.returncode == 2
    assert f"--allow {name}: unknown action; possible now: block" in ran.stderr


def test_what_a_person_notes_for_themselves_is_not_there_for_others(tmp_path: Path) -> None:
    folder = loops.make(tmp_path / "run")
    log = folder / "events.jsonl"
    log.write_bytes(log.read_bytes() + b"nonsense\n")

    async def look() -> None:
        watched = watch(str(folder))
        changes = watched.changes()
        try:
            while watched.snapshot is None:
                await anext(changes)
            assert watched.snapshot.needs
            names = {each.name for each in await watched.call(watched.actions)}
            assert "launch" in names and not names & {"ack", "archive", "unack", "unarchive"}
            for name in ("ack", "acknowledge", "archive", "unarchive", "other"):
                assert await watched.call(partial(watched.action, name=name)) is None
                assert not await watched.call(partial(watched.knows, name=name))
                asked = Asked(action=name, inputs={})
                with pytest.raises(Refused):
                    await carry_out(watched, str(folder), frozenset({name}), asked)
        finally:
            await changes.aclose()  # type: ignore[attr-defined]
            await watched.close()

    asyncio.run(look())


def test_who_has_the_link_of_a_bridge_sees_no_tokens_of_others(tmp_path: Path) -> None:
    folder = loops.make(tmp_path / "run")
    with Bridge(folder, "--port", "0") as bridge:
        token = bridge.link.rpartition("/")[2]
        with httpx.Client(
            base_url=bridge.url, headers={"authorization": f"Bearer {token}"}, trust_env=False
        ) as remote:
            for path in ("/peers", "/link", "/recv", "/history", "/offline-queue"):
                assert remote.get(path).status_code == 403, path
            assert "own_" not in remote.get("/status").text + remote.get("/card").text
