"""Whatever stands in an initiative's files: a picture, a finding or one line, never a traceback."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.governed import making, multi
from tests.protocols.governed.acting import coordinator, open_folder, step
from tests.protocols.governed.multi import NOW, begin, ledger, state

NAMES = ("auth", "web")
HOSTILE = "\x1b[31mred\x07 [@click=app.quit]x[/] \u202e\n| # `"

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False)
    | st.sampled_from(["../..", "/etc", "blocked", "approved", "reached", HOSTILE, "a\0b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.text(max_size=6) | st.sampled_from(["auth", "web", "plan-sync", "status", "name"]), inner
    ),
    max_leaves=8,
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An initiative with an open gate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACP_STATE", str(tmp_path_factory.mktemp("state")))
        root = begin(tmp_path_factory.mktemp("whole") / "house", NAMES)
        multi.all_ask(root, NAMES)
        step(root)
    return root


def look_and_act(root: Path) -> None:
    """Everything that reads or acts: it may refuse, it may not fail."""
    opened = open_folder(root)
    snapshot = opened.refresh(NOW)
    assert snapshot.protocol == "governed"
    list(opened.causes(DiagnosisContext(snapshot, Clock(NOW + timedelta(hours=9)))))
    for action in opened.actions(NOW):
        action.preview(action.inputs.model_validate({"comment": "x", **action.defaults}))
    shown = [snapshot.name, snapshot.headline, *(e.summary for e in snapshot.events)]
    shown += [cell for panel in snapshot.panels for row in panel.rows for cell in row.cells]
    assert not any(char in text for text in shown for char in "\x1b\x07\u202e\n")
    for verb in ("status", "step", "resync"):
        assert coordinator([verb, str(root), "--json"]) in (0, 1, 2)
    assert coordinator(
        ["approve-barrier", str(root), "--as", "Ann", "--yes", "--json"]
    ) in (0, 1, 2)  # fmt: skip


def any_value_anywhere(whole: Path, tmp_path: Path, data: st.DataObject, value: object) -> None:
    root = tmp_path / "house"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(whole, root, symlinks=True)
    files = {
        "agentxchain-multi.json": multi.configuration(NAMES),
        ".coordinator/state.json": state(root),
        "web/.agentxchain/state.json": state(root, "web"),
        "web/agentxchain.json": making.config(),
    }
    name = data.draw(st.sampled_from(sorted(files)))
    content = files[name]
    key = data.draw(st.sampled_from(sorted(content)))
    inner = content[key]
    if isinstance(inner, dict) and inner and data.draw(st.booleans()):
        deeper = data.draw(st.sampled_from(sorted(inner)))
        changed: object = inner | {deeper: value}
    elif isinstance(inner, list) and inner and data.draw(st.booleans()):
        first = inner[0] | {data.draw(st.sampled_from(sorted(inner[0]))): value}
        changed = [first, *inner[1:]]
    else:
        changed = value
    making.write(root / name, content | {key: changed})
    look_and_act(root)
    assert not list(tmp_path.glob("*.json")) and {p.name for p in tmp_path.iterdir()} == {"house"}


def any_line_in_a_ledger(whole: Path, tmp_path: Path, data: st.DataObject, value: object) -> None:
    root = tmp_path / "house"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(whole, root, symlinks=True)
    line = data.draw(st.sampled_from([*ledger(root), {"type": "resync_failed", "failures": []}]))
    key = data.draw(st.sampled_from(sorted(line)))
    place = data.draw(st.sampled_from([".coordinator/ledger.jsonl",
                                       "web/.agentxchain/decision-ledger.jsonl",
                                       "web/.agentxchain/history.jsonl"]))  # fmt: skip
    with (root / place).open("a") as log:
        log.write(json.dumps(line | {key: value}) + "\n")
    look_and_act(root)


def tried(body: Callable[..., None], examples: int) -> Callable[..., None]:
    """The body with so many drawn values."""
    often = settings(
        max_examples=examples, deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )  # fmt: skip
    return often(given(data=st.data(), value=values)(body))


test_any_value_anywhere_is_borne = tried(any_value_anywhere, 6)
test_any_line_in_a_ledger_is_borne = tried(any_line_in_a_ledger, 4)
test_any_value_at_length = pytest.mark.slow(tried(any_value_anywhere, 100))
test_any_line_at_length = pytest.mark.slow(tried(any_line_in_a_ledger, 50))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 5000, b"null"])
@pytest.mark.parametrize(
    "name", ["agentxchain-multi.json", ".coordinator/state.json", ".coordinator/ledger.jsonl",
             "web/.agentxchain/state.json", "web/agentxchain.json"]
)  # fmt: skip
def test_damaged_files_are_borne(
    whole: Path, tmp_path: Path, name: str, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    shutil.copytree(whole, tmp_path / "house", symlinks=True)
    (tmp_path / "house" / name).write_bytes(content)
    look_and_act(tmp_path / "house")


def test_a_pipe_in_place_of_a_file_is_not_waited_for(whole: Path, tmp_path: Path) -> None:

    shutil.copytree(whole, tmp_path / "house", symlinks=True)
    place = tmp_path / "house/web/.agentxchain/state.json"
    place.unlink()
    os.mkfifo(place)
    look_and_act(tmp_path / "house")
