"""What a later version of acp wrote: one line says so where it is needed, and nothing is written over.

For each kind of file with a version that acp keeps; `tests/upgrade/test_sample.py`, `tests/stores/test_texts.py`
and `tests/stores/test_postgres_store.py` hold recordings, attention, agents' stores, shared folders and databases. Claims,
ledgers of budgets, journals of live sessions and records of loops have no version: what is not known in them is passed
over. Rows in the cache count only for the acp that wrote them (`tests/fleet/test_snapshot_cache.py`).
"""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents import budgets
from acp_core.agents.processes import Identity
from acp_core.agents.state import Run
from acp_core.files import claims, transaction
from acp_core.files.read_only import NEWER, is_newer
from acp_core.files.transaction import REPLACE, Write
from acp_core.history import durations
from acp_core.model.errors import Refused
from acp_core.protocols.wire.read.known import FILE, Reader, Writer, recording_folder
from acp_core.stores import mirror
from acp_core.stores.engine import StoreRefused
from tests.upgrade import places
from tests.upgrade.scenes import House
from tests.upgrade.support import planted


@pytest.fixture
def house(tmp_path: Path) -> House:
    """What 0.2.1 left, at a path of the test's own."""
    return planted(tmp_path)


def later(schema: str) -> str:
    """The schema of the next version."""
    kind, _, version = schema.rpartition("/")
    return f"{kind}/{int(version) + 1}"


@pytest.mark.parametrize(
    ("said", "newer"),
    [("acp.x/2", True), ("acp.x/10", True), ("acp.x/1", False), ("acp.x/0", False), ("acp.y/2", False),
     ("acp.x/", False), ("acp.x/²", False), ("2", False), (None, False), (2, False), ([], False)],
)  # fmt: skip
def test_only_a_higher_number_of_the_same_kind_is_newer(said: object, newer: bool) -> None:
    assert is_newer(said, "acp.x/1") is newer


def test_what_was_learned_by_a_newer_program_is_kept(house: House) -> None:
    house.run("status", house.work)
    place = house.state / "durations.json"
    content = json.dumps({"schema": later(durations.SCHEMA), "collaborations": {"all": "new"}})
    place.write_text(content)
    ended = house.result("status", house.work)
    assert (ended.returncode, ended.stderr) == (0, "")
    house.run("show", house.work / "checkout")
    assert place.read_text() == content


def test_an_archive_of_a_newer_program_is_refused(house: House) -> None:
    archive = house.folder / "checkout.acp.zip"
    house.run("export", house.work / "checkout", "-o", archive)
    with zipfile.ZipFile(archive) as old:
        entries = {name: old.read(name) for name in old.namelist()}
    told = json.loads(entries["manifest.json"])
    entries["manifest.json"] = json.dumps(told | {"schema": later(told["schema"])}).encode()
    with zipfile.ZipFile(archive, "w") as new:
        for name, data in entries.items():
            new.writestr(name, data)
    ended = house.result("import", archive, house.folder / "arrived")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert "exported by a newer acp: use that version" in ended.stderr
    assert not (house.folder / "arrived").exists()


def test_a_mirror_of_a_newer_program_is_refused() -> None:
    with pytest.raises(StoreRefused, match=f"the mirror was {NEWER}"):
        mirror.decode(json.dumps({"schema": later(mirror.SCHEMA), "all": "new"}).encode())


def test_what_a_newer_program_heard_of_an_agent_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path))
    key = "http://127.0.0.1:9"
    place = recording_folder(key) / FILE
    place.parent.mkdir(parents=True)
    content = b'{"schema": "acp.wire-log/2", "key": "' + key.encode() + b'"}\n{"all": "new"}\n'
    place.write_bytes(content)
    writer = Writer(key)
    writer.open()
    assert writer.problem == NEWER
    writer.add([{"x": 1}], Reader(place.parent).known)
    writer.close()
    assert place.read_bytes() == content


def test_an_interrupted_writing_of_a_newer_program_is_left_to_it(tmp_path: Path) -> None:
    (tmp_path / ".acp").mkdir()
    journal = tmp_path / ".acp" / transaction.JOURNAL
    writes = [{"all": "new"}]
    journal.write_text(json.dumps({"schema_version": "2.0", "what": "dance", "writes": writes}))
    before = journal.read_bytes()
    assert transaction.fault(tmp_path, ".acp") == NEWER
    with (
        pytest.raises(Refused) as refused,
        transaction.begin(tmp_path, ".acp") as opened,
    ):
        opened.commit("write", [Write(tmp_path / "a", REPLACE, b"x")])
    assert str(refused.value) == f"{journal} cannot be applied: {NEWER}"
    assert journal.read_bytes() == before and not (tmp_path / "a").exists()


def newer_fields(value: Any) -> Any:
    """The same with a field more in each object, as a later version may write it."""
    if isinstance(value, dict):
        return {key: newer_fields(each) for key, each in value.items()} | {"later": {"all": "new"}}
    return [newer_fields(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["spec.json", "loop.json"])
def test_a_loop_of_a_newer_program_is_listed_and_its_record_stays(house: House, name: str) -> None:
    place = places.loop(house.state, house.work / "retries", "reader") / name
    content = json.dumps(newer_fields(json.loads(place.read_text())))
    place.write_text(content)
    assert house.loops()["retries", "reader"]["phase"] == "stopped"
    assert house.result("why", house.work / "retries").returncode in (0, 1)
    assert place.read_text() == content


def test_a_setting_of_a_newer_program_is_named_in_one_line(house: House) -> None:
    place = house.config / "config.toml"
    content = f"telepathy = true\n{place.read_text()}"
    place.write_text(content)
    ended = house.result("status", house.work)
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1, ended
    assert "config.toml" in ended.stderr and "telepathy: unknown setting" in ended.stderr
    assert place.read_text() == content


def test_a_claim_of_a_newer_program_still_says_who_holds_it(tmp_path: Path) -> None:
    with claims.take(tmp_path, "conduct", program="acp"):
        [record] = (tmp_path / ".acp" / "run").glob("conduct.json")
        record.write_text(json.dumps(newer_fields(json.loads(record.read_text()))))
        owner = claims.read_record(record.with_suffix(".lock"))
        assert owner is not None and owner.program == "acp"
        with pytest.raises(claims.Held), claims.take(tmp_path, "conduct", program="acp"):
            pass


def test_what_a_newer_program_spent_counts_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path))
    now = datetime(2026, 11, 28, 12, tzinfo=UTC)
    place = tmp_path / "spent" / f"{now.astimezone():%Y-%m-%d}.jsonl"
    place.parent.mkdir()
    facts = {"tokens": 5, "cost": 0.5, "unpriced": 0, "later": {"all": "new"}}
    place.write_text(f'{json.dumps(facts)}\n{{"kind": "all new"}}\n')
    assert budgets.spent_on(now).tokens == 5
    before = place.read_bytes()
    budgets.note_run(Run(1, Identity(1, 2.0), now, tokens_in=2), "/f", "p", now)
    assert budgets.spent_on(now).tokens == 7
    assert place.read_bytes().startswith(before)
