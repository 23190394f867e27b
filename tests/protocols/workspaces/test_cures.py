"""Whatever state a run is in, reached or damaged: what is printed as a cure cures, and all agree."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from acp_core.cli.matters import why_fields
from acp_core.cli.output import act_command, fitting
from acp_core.diagnosis import actions as acts
from acp_core.diagnosis.engine import Diagnosis
from acp_core.files.transaction import JOURNAL
from acp_core.model import Action, Matter, OutcomeState, Snapshot, Verdict
from acp_core.model.clock import utc_now
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.diagnosis import Patience
from acp_core.protocols.kit.schema import fields
from acp_core.protocols.kit.values import Values
from acp_core.protocols.workspaces.collaboration import open_workspaces
from acp_core.protocols.workspaces.queries import status as query
from acp_core.protocols.workspaces.schema import DISPATCH_ACT, EVERY_ACT, REPAIR_ACT, STOP_ACT
from tests.support.examples import MANY, PATIENT

BASE, COORD = "agent-workspaces", "agent-workspaces/.coord"
NAMES = ("ann", "ben", "cat")
ENDED = {"success": "success", "partial": "partial", "failure": "failure", "DONE": "success"}
Spec = dict[str, Any]

agents = st.fixed_dictionaries(
    {
        "how": st.sampled_from(
            ["fresh", "dispatched", "silent", "success", "partial", "failure", "missing", "torn",
             "DONE", "other", "contradict"]
        ),
        "decision": st.sampled_from(["", "", "accept", "rerun", "skip", "gap", "orchestrator-does"]),
        "output": st.sampled_from(["text", "binary", "none", "dear"]),
        "after": st.booleans(),
        "outside": st.sampled_from(["", "", "neighbour", "integration", "beside"]),
    }
)  # fmt: skip
runs = st.fixed_dictionaries(
    {
        "agents": st.lists(agents, min_size=1, max_size=3),
        "manifest": st.sampled_from(["whole"] * 6 + ["torn", "lost", "twice", "none", "list"]),
        "triage": st.sampled_from(["whole"] * 6 + ["torn", "text", "link"]),
        "conflicts": st.sampled_from(
            ["none", "looked", "hint", "open", "resolved", "nameless", "torn", "text"]
        ),
        "draft": st.sampled_from(["none", "text", "unwritten"]),
        "final": st.sampled_from(["none", "none", "ours", "two", "alone"]),
        "status": st.sampled_from(["whole", "whole", "torn"]),
        "spec": st.sampled_from([True, True, True, False]),
        "journal": st.sampled_from(["none"] * 5 + ["done", "torn", "outside"]),
        "folder": st.sampled_from(["whole"] * 6 + ["link"]),
    }
)  # fmt: skip


def put(root: Path, name: str, content: object, ago: float) -> Path:
    """A file that was last changed so many seconds ago."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, bytes) else _text(content).encode()
    path.write_bytes(data)
    at = utc_now().timestamp() - ago
    os.utime(path, (at, at))
    return path


def _text(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content)


def at(ago: float) -> str:
    return (utc_now() - timedelta(seconds=ago)).isoformat()


def make(root: Path, spec: Spec) -> Path:
    """The run as it is described."""
    entries, decisions = [], []
    for number, each in enumerate(spec["agents"]):
        entries.append(_agent(root, number, each, spec))
        if each["decision"]:
            name = NAMES[number]
            decisions.append({"agent": name, "task_id": f"{name}-part", "reason": "so", "attempt": 1,
                              "decision": each["decision"], "by": "pat", "at": at(500)})  # fmt: skip
    if spec["spec"]:
        put(root, f"{BASE}/shared/task-spec.json", {"scope": "queues"}, 5_000)
    else:
        (root / BASE / "shared").mkdir(parents=True, exist_ok=True)
    _manifest(root, entries, spec["manifest"])
    _shared(root, decisions, spec)
    _integration(root, spec)
    if spec["folder"] == "link" and not (root / "integration").exists():
        (root / "elsewhere").mkdir()
        (root / "integration").symlink_to(root / "elsewhere")
    return root


def _agent(root: Path, number: int, each: Spec, spec: Spec) -> Spec:
    name, how = NAMES[number], each["how"]
    own = root / BASE / name
    own.mkdir(parents=True, exist_ok=True)
    begun, over = how != "fresh", how not in ("fresh", "dispatched", "silent")
    if begun:
        told = f"AGENT NAME: {name}\nTASK ID: {name}-part\n\nYOUR TASK:\nDo it.\n"
        folder = "prompts" if spec["manifest"] == "none" else f"{COORD}/prompts"
        put(root, f"{folder}/{name}-part.md", told, 4_000)
    if how == "silent":
        put(root, f"{BASE}/{name}/notes.md", "x", 3_000)
    listed = []
    if over and each["output"] != "none":
        texts = {"text": "- Price: 10\n", "dear": "- Price: 12\n", "binary": b"\0\1"}
        put(root, f"{BASE}/{name}/output.md", texts[each["output"]], 1_000)
    if over:
        listed = [{"file": str(own / "output.md"), "size_estimate": "small", "description": "It"}]
    if how == "torn":
        put(root, f"{BASE}/{name}/status.json", "{", 999)
    elif over and how != "missing":
        word = {"other": "success", "contradict": "success"}.get(how, how)
        who = NAMES[(number + 1) % 3] if how == "other" else name
        value = {"agent": who, "task_id": f"{name}-part", "status": word,
                 "completed_at": at(999), "outputs": listed}  # fmt: skip
        put(root, f"{BASE}/{name}/status.json", value, 999)
        said = "failure" if how == "contradict" else ENDED.get(how, "success")
        back = {"agent": name, "task_id": f"{name}-part", "status": said, "summary": "It.",
                "errors": ["no"], "files_written": []}  # fmt: skip
        folder = "returns" if spec["manifest"] == "none" else f"{COORD}/returns"
        put(root, f"{folder}/{name}-part.json", back, 998)
    outside = {"neighbour": f"{BASE}/{NAMES[(number + 1) % 3]}/output.md", "beside": "notes.md",
               "integration": "integration/final-output.md"}.get(each["outside"])  # fmt: skip
    return {
        "agent": name,
        "task": "Do it.",
        "task_id": f"{name}-part",
        "after": [NAMES[number - 1]] if each["after"] and number else [],
        "attempt": 1,
        "dispatched_at": at(4_000) if begun else None,
        "ended_at": at(900) if over else None,
        "exit": "exit code 0" if over else None,
        "host": "elsewhere",
        "outside": [outside] if outside and over else [],
    }


def _manifest(root: Path, entries: list[Spec], how: str) -> None:
    text = json.dumps({"run_id": "1", "task": "queues", "agents": entries})
    if how == "none":
        return
    (root / COORD / "prompts").mkdir(parents=True, exist_ok=True)
    if how == "twice":
        text = json.dumps({"task": "queues", "agents": [*entries, entries[0]]})
    elif how == "list":
        text = json.dumps({"agents": {}})
    elif how == "torn":
        text = text[: len(text) // 2]
    if how != "lost":
        put(root, f"{COORD}/manifest.json", text, 800)


def _shared(root: Path, decisions: list[Spec], spec: Spec) -> None:
    if spec["triage"] == "torn":
        put(root, f"{COORD}/triage.json", "{", 500)
    elif spec["triage"] == "link":
        (root / COORD).mkdir(parents=True, exist_ok=True)
        (root / COORD / "triage.json").symlink_to(root / "nowhere")
    elif spec["triage"] == "text" or decisions:
        value: object = "none" if spec["triage"] == "text" else decisions
        put(root, f"{COORD}/triage.json", {"decisions": value}, 500)
    item: Spec = {"id": "c1", "agents": list(NAMES[: len(spec["agents"])]), "topic": "price",
                  "category": "factual", "found_by": "pat"}  # fmt: skip
    made: dict[str, object] = {
        "looked": {"conflicts": []},
        "hint": {"conflicts": [item | {"hint": True, "why": "price: 1, 2"}]},
        "open": {"conflicts": [item]},
        "nameless": {"conflicts": [{key: item[key] for key in item if key != "id"}]},
        "resolved": {"conflicts": [item | {"sentence": "Conflict between ann and ben on price. "
                                           "Resolved by the factual rule."}]},
        "torn": "[",
        "text": {"conflicts": "none"},
    }  # fmt: skip
    if spec["conflicts"] != "none":
        value = made[spec["conflicts"]]
        if isinstance(value, dict):
            value = {"looked_at": at(100)} | value
        put(root, f"{COORD}/conflicts.json", value, 100)
    writes: dict[str, object] = {
        "done": {"what": "decide", "writes": []},
        "torn": "{",
        "outside": {"what": "decide", "writes": [{"path": "../x"}]},
    }
    if spec["journal"] != "none":
        put(root, f"{COORD}/{JOURNAL}", writes[spec["journal"]], 90)


def _integration(root: Path, spec: Spec) -> None:
    if spec["draft"] != "none":
        text = "All.\n" if spec["draft"] == "text" else "(Write this part.)\n"
        put(root, f"{COORD}/draft/final-output.md", text, 80)
    if spec["final"] != "none":
        put(root, "integration/final-output.md", "All.\n", 70)
    if spec["final"] == "two":
        put(root, "integration/final-output.txt", "All.\n", 70)
    if spec["final"] in ("ours", "two"):
        told = {"integrated": list(NAMES[: len(spec["agents"])]), "skipped": [], "gaps": []}
        value = told if spec["status"] == "whole" else "{"
        put(root, "integration/status.json", value, 60)


# --- looking, and doing what is printed -------------------------------------------------------


def look(root: Path) -> tuple[Collaboration, Snapshot]:
    opened = open_workspaces(str(root))
    now = utc_now()
    snapshot = Diagnosis(Patience()).diagnose(opened, opened.refresh(now), (), (), now)
    return opened, snapshot


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / root.name
        shutil.copytree(root, copy, symlinks=True)
        yield copy


def carry_out(root: Path, command: str) -> list[str]:
    """Do what a printed command says, with each value that can be chosen; why it was refused."""
    words = shlex.split(command)
    assert words[:2] == ["acp", "act"], command
    name, options = words[3], words[4:]
    refused = []
    with copied(root) as first:
        opened, snapshot = look(first)
        for chosen in _choices(_action(opened, snapshot, name), options):
            with copied(root) as copy:
                again, seen = look(copy)
                action = _action(again, seen, name)
                outcome = action.perform(action.inputs.model_validate(chosen))
                if outcome.state in (OutcomeState.DONE, OutcomeState.REQUESTED):
                    return []
                refused.append(f"{chosen}: {outcome.sentence}")
    return refused


def _action(opened: Collaboration, snapshot: Snapshot, name: str) -> Action:
    action = acts.action(opened, snapshot, name, utc_now())
    assert action is not None, name
    return action


def _choices(action: Action, options: list[str]) -> list[Spec]:
    """The inputs: those that are said, and for what stands in capitals each value there is."""
    said: Spec = dict(action.defaults)
    pairs = dict(zip(options[::2], options[1::2], strict=True))
    known = {f"--{each.name.replace('_', '-')}": each for each in fields(action)}
    left = {}
    for option, value in pairs.items():
        field = known[option]
        if value == (field.metavar or field.name.upper()):
            left[field.name] = list(field.choices) or ["Because."]
        else:
            said[field.name] = value
    made = [said]
    for name, values in left.items():
        made = [each | {name: value} for each in made for value in values]
    return made


def check(root: Path) -> None:
    _, snapshot = look(root)
    agree(root, snapshot)
    offered = {each.name for each in acts.actions(*look(root), utc_now()) if not each.personal}
    assert offered <= EVERY_ACT
    for cause in snapshot.causes:
        for name in (each.act for each in cause.verdicts):
            assert name in offered, (cause.code, name, offered)
        if cause.remedy and cause.remedy not in (DISPATCH_ACT, STOP_ACT):
            cures(root, snapshot, cause)
        for other in cause.others:
            if other not in (DISPATCH_ACT, STOP_ACT, cause.remedy):
                command = act_command(snapshot, other, fitting(snapshot, other, cause.given))
                assert carry_out(root, command) == [], (cause.code, command)


def cures(root: Path, snapshot: Snapshot, cause: Matter) -> None:
    """The command is done, and the cause is another one or none then."""
    assert cause.remedy
    command = act_command(snapshot, cause.remedy, cause.given)
    if "--keep" in cause.instruction:  # a fact: the advice says what is to be chosen
        command += " --keep ann --because sourced"
    assert carry_out(root, command) == [], (cause.code, command)


def agree(root: Path, snapshot: Snapshot) -> None:
    """Findings, causes, what is refused and what `status` says tell of the same damage."""
    damaged = bool(snapshot.obstacles)
    named = {cause.key for cause in snapshot.causes}
    for obstacle in snapshot.obstacles:
        assert obstacle.key in named, obstacle
        if obstacle.key != "A5:folder" and not obstacle.key.endswith("task-spec.json:gone"):
            assert snapshot.verdict is Verdict.INVALID, obstacle
    codes = {each.code for each in snapshot.findings} & {"B36", "B37", "B39"}
    assert not codes or damaged, codes
    told = why_fields(snapshot)
    assert told["wanted"] == any(cause.wanted for cause in snapshot.causes)
    if snapshot.participants and not any(o.key == "A5:folder" for o in snapshot.obstacles):
        answer = query(Values(folder=str(root)))
        lines = "\n".join(answer.lines)
        assert all(each.code in lines for each in snapshot.findings)
    for name in EVERY_ACT - {DISPATCH_ACT, STOP_ACT, REPAIR_ACT}:
        if guard.blocking(snapshot.obstacles, name):
            with pytest.raises(Exception, match=r".+"):
                guard.check(snapshot.obstacles, name)


pytestmark = pytest.mark.usefixtures("in_memory")
BOTH = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(BOTH, max_examples=25)
@given(spec=runs)
def test_every_cure_works_and_all_agree(spec: Spec) -> None:
    note(str(spec))
    with tempfile.TemporaryDirectory() as folder:
        check(make(Path(folder) / "queues", spec))


@pytest.mark.slow
@PATIENT
@settings(BOTH, max_examples=MANY)
@given(spec=runs)
def test_every_cure_works_and_all_agree_in_very_many_states(spec: Spec) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(make(Path(folder) / "queues", spec))
