"""Two accounts at one cycle: one orchestrator, and nobody's decision is undone.

The other account is another state folder here; `tests/e2e/test_accounts.py` has real ones.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.files import claims, requests
from acp_core.files.claims import CONDUCT
from acp_core.model.errors import Refused
from acp_core.model.matter import Matter
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.collaboration import open_cycles
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.write import changes
from acp_core.protocols.cycle.write import store as write_store
from acp_core.protocols.cycle.write.store import Store
from tests.agents.support import is_gone, wait_for
from tests.protocols.cycle import conducting
from tests.protocols.cycle.conducting import (
    AGENT,
    ID,
    acp,
    calls,
    done,
    path,
    refused,
    start,
    state,
)

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    (tmp_path / "go").touch()  # for whoever was told to hold
    for name in ("mine", "theirs"):
        monkeypatch.setenv("ACP_STATE", str(tmp_path / name))
        conducting.end_all()


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose orchestrator runs for one account; the test goes on as another one."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "mine"))
    start(project, ra=["hold"])
    wait_for(lambda: calls(project) == ["ra hold"], "ra to begin")
    wait_for(lambda: claims.seen(project, "loops/ra").child, "its program to be noted")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "theirs"))
    return project


def holder(project: Path) -> claims.Owner:
    owner = claims.seen(project, CONDUCT).owner
    assert owner is not None
    return owner


@pytest.mark.slow
def test_a_second_orchestrator_is_refused_with_the_name_of_the_first(theirs: Path) -> None:
    said = refused(theirs, "run", "--command", AGENT)
    account, pid = claims.account(os.getuid()), holder(theirs).process.pid
    assert f"{account} controls this run (pid {pid} on {claims.host()} since " in said
    assert "over after it has ended" in said
    for words in (("run",), ("start", "Another one")):  # no program is asked for first
        assert refused(theirs, *words) == said
    told = done(theirs, "status")
    assert (told["orchestrator"], told["conducts"]) == (pid, ID)
    assert calls(theirs) == ["ra hold"]


@pytest.mark.slow
def test_that_another_account_conducts_is_in_the_way_of_a_second_orchestrator_only(
    theirs: Path,
) -> None:
    def found() -> tuple[Matter, ...]:
        return open_cycles(str(theirs)).refresh(datetime.now(UTC)).obstacles

    wait_for(found, "the claim to be seen as another's")
    (obstacle,) = found()
    account, pid = claims.account(os.getuid()), holder(theirs).process.pid
    assert obstacle.sentence.startswith(f"{account} controls this run (pid {pid} on ")
    assert not obstacle.wanted and {schema.RUN_ACT} == {
        value for name, value in vars(schema).items() if name.endswith("_ACT")
    } - set(obstacle.refuses)
    causes = done(theirs, "status")  # reading is never refused
    assert causes["conducts"] == ID
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not found(), "the claim to be free")


@pytest.mark.slow
def test_what_another_account_decides_is_done_by_the_orchestrator_and_stays(theirs: Path) -> None:
    told = done(theirs, "limit", "9")
    assert (told["state"], state(theirs)["max_iterations"]) == ("done", 9)
    assert done(theirs, "feedback", "cd", "Quote commas")["state"] == "done"
    revision = state(theirs)["revision"]
    wait_for(
        lambda: all(each.get("picked_up_at") for each in state(theirs)["coordination"]["requests"]),
        "the orchestrator to pick it up",
    )
    held = state(theirs)
    assert held["max_iterations"] == 9 and held["revision"] >= revision
    (entry,) = held["coordination"]["feedback_log"]
    assert entry["content"] == "Quote commas"
    assert "put back" not in json.dumps(held) and "put back" not in progress_text(theirs)


def progress_text(project: Path) -> str:
    folder = conducting.progress(project) / "coordination"
    return "".join(each.read_text() for each in folder.rglob("*.md"))


@pytest.mark.slow
def test_what_the_orchestrator_refuses_is_refused_with_its_words(theirs: Path) -> None:
    said = refused(theirs, "resolve", "BLK-404", "--resolution", "gone")
    assert "BLK-404" in said
    assert list((theirs / ".acp" / "run" / "requests").iterdir()) == []


@pytest.mark.slow
def test_requested_says_who_has_to_pick_it_up(theirs: Path) -> None:
    pid = holder(theirs).process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        told = done(theirs, "pause")
        assert told["state"] == "requested"
        assert f"(pid {pid} on" in told["sentence"] and "has to pick it up" in told["sentence"]
        assert state(theirs)["status"] == "running"
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: state(theirs)["status"] == "paused", "the request to be taken up")


@pytest.mark.slow
def test_stopping_the_cycle_from_another_account_ends_it(theirs: Path) -> None:
    assert done(theirs, "stop", "--reason", "not wanted")["state"] == "done"
    wait_for(lambda: not claims.seen(theirs, CONDUCT).held, "the orchestrator to end")
    assert (state(theirs)["status"], state(theirs)["failure_reason"]) == ("failed", "not wanted")


@pytest.mark.slow
def test_what_is_decided_while_nobody_conducts_is_not_undone_later(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.kill(holder(theirs).process.pid, signal.SIGKILL)
    wait_for(lambda: not claims.seen(theirs, CONDUCT).held, "the orchestrator to be gone")
    assert done(theirs, "limit", "9")["state"] == "requested"
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "mine"))
    done(theirs, "run")
    (theirs / "go").touch()
    conducting.wait_for_end(theirs)
    held = state(theirs)
    assert (held["status"], held["max_iterations"]) == ("completed", 9)
    assert calls(theirs) == ["ra hold", "ep work", "cd work", "vas work"]


@pytest.mark.slow
def test_a_killed_orchestrator_and_a_lost_state_folder_run_no_agent_twice_at_once(
    theirs: Path, tmp_path: Path
) -> None:
    left = claims.seen(theirs, "loops/ra").child
    assert left is not None
    os.kill(holder(theirs).process.pid, signal.SIGKILL)
    wait_for(lambda: not claims.seen(theirs, CONDUCT).held, "the orchestrator to be gone")
    shutil.rmtree(tmp_path / "mine")
    done(theirs, "run", "--command", AGENT)
    wait_for(lambda: process.running(str(theirs)), "the other account to conduct")
    wait_for(lambda: "run 1-ra" in log(theirs), "ra to be its turn")
    assert calls(theirs) == ["ra hold"] and not is_gone(left.pid)
    (theirs / "go").touch()
    conducting.wait_for_end(theirs)
    assert is_gone(left.pid) and state(theirs)["status"] == "completed"
    assert calls(theirs) == ["ra hold", "ra work", "ep work", "cd work", "vas work"]


def log(project: Path) -> str:
    return (process.conductor(str(project)).place.log).read_text()


def test_an_orchestrator_whose_lock_is_removed_stops_and_writes_nothing(theirs: Path) -> None:
    pid = holder(theirs).process.pid
    before = path(theirs).read_bytes()
    shared = theirs / ".acp"

    def remove() -> bool:  # while the orchestrator may be writing into it
        shutil.rmtree(shared, ignore_errors=True)
        return not shared.exists()

    wait_for(remove, "what is shared to be removed")
    wait_for(lambda: is_gone(pid), "the orchestrator to stop")
    assert path(theirs).read_bytes() == before


# --- what was written last -------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store.create_cycle(tmp_path, write_store.first_state(ID, NOW, "Export as CSV"))


def conduct(root: Path) -> dict[str, object]:
    """What an orchestrator that begins makes of the state."""
    return Store(root, ID).change(lambda held: None, NOW).state


def edit(store: Store, **fields: object) -> None:
    """As a program does that knows nothing of acp."""
    store.path.write_text(json.dumps(json.loads(store.path.read_text()) | fields))


def test_a_change_of_some_other_program_is_put_back_by_every_account(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(store, current_iteration=4)
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "theirs"))
    assert conduct(tmp_path)["current_iteration"] == store.read()["current_iteration"] == 0


def test_what_0_1_kept_privately_is_adopted_where_it_is_the_files(
    store: Store, tmp_path: Path
) -> None:
    shared = tmp_path / ".acp" / "run" / f"last-written-{ID}.json"
    shared.unlink()
    assert conduct(tmp_path)["status"] == "running"
    assert json.loads(shared.read_text())["digest"] == scan.content_digest(store.path.read_bytes())
    shared.unlink()
    edit(store, max_iterations=7)  # another account's, of which nothing was kept
    assert conduct(tmp_path)["max_iterations"] == 7
    conducting_store = Store(tmp_path, ID)
    conducting_store.change(lambda held: None, NOW)
    edit(store, max_iterations=8)
    assert conducting_store.change(lambda held: None, NOW).refused == ("max_iterations",)


def test_an_orchestrator_that_writes_believes_itself_and_no_forged_record(
    store: Store, tmp_path: Path
) -> None:
    own = Store(tmp_path, ID)
    own.change(lambda held: held.update(convergence={"test_pass_rate": 95}), NOW)
    edit(store, convergence={"test_pass_rate": 5})
    data = store.path.read_bytes()
    write_store.remember_shared(tmp_path, ID, data, data)  # as an agent's program could
    assert own.change(lambda held: None, NOW).refused == ("convergence",)
    edit(store, convergence={"test_pass_rate": 5}, max_iterations=9)
    data = store.path.read_bytes()
    write_store.remember_shared(tmp_path, ID, data, data)
    begun = conduct(tmp_path)
    assert begun["convergence"] == {"test_pass_rate": 95}
    assert begun["max_iterations"] == 9


def test_the_lost_state_is_put_back_from_what_all_accounts_share(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.change(
        lambda held: changes.feedback(held, NOW, "cd", "Quote", "issue_fix"), NOW, "feedback"
    )
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "theirs"))
    whole = scan.last_whole_state(tmp_path, ID)
    assert whole is not None and "Quote" in json.dumps(whole)


# --- what may be asked for -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "values"),
    [
        ("rebuild", {}), ("", {}), ("__class__", {}), ("limit", {"iterations": "9"}),
        ("limit", {"iterations": True}), ("feedback", {"agent": ["cd"], "text": "x", "kind": "x"}),
        ("stop", {"reason": "x" * 30_000}),
    ],
)  # fmt: skip
def test_what_is_no_act_of_a_person_is_not_done_on_request(
    act: str, values: dict[str, object]
) -> None:
    with pytest.raises(Refused):
        changes.requested_edit(act, values)


@pytest.mark.slow
def test_a_request_for_another_cycle_is_refused(theirs: Path) -> None:
    request = requests.ask(theirs, CONDUCT, "pause", {"cycle": "cycle-v1-x"})
    answer, _ = requests.wait(theirs, CONDUCT, request, 60)
    assert answer is not None and answer.state == "refused" and ID in answer.sentence
    assert acp("status", "--folder", str(theirs))[0] == 0
