"""What was not recorded, as far as the files tell it, and which files a recording tracks.

The manifest, the decisions and the conflicts bear the times of what stands in them: what came later
is left out. A file that is written once, at a moment that is written down, was not there before.
Nothing else is made up: of outputs that changed later nobody knows how they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from acp_core.files.decode import moment
from acp_core.model.past import Derivation, Evidence, Files, Held, TrackedFile
from acp_core.model.text import clean_line
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema import Dispatch, Run, encode

Object = dict[str, Any]
_EMPTY = ".gitkeep"  # what stands in a workspace in which nothing was written
_CONFLICT = ("id", "agents", "topic", "category", "files", "found_by", "at", "why")


class WorkspacesDerivation(Derivation):
    """Tells what stood in a run's files at a moment."""

    def derive(self, evidence: Evidence) -> Files:
        """See `Derivation`."""
        at, _, known, there = evidence
        found: Files = {}
        for name, data in known.items():
            base, _, inside = name.partition("/")
            value = schema.parse_object(data) if base in schema.FOLDERS else None
            if value is None:
                continue
            if inside == f"{schema.COORD}/manifest.json":
                found |= _manifest(name, base, value, at, known, there)
            elif inside == f"{schema.COORD}/triage.json":
                found[name] = _triage(value, at)
            elif inside == f"{schema.COORD}/conflicts.json":
                found[name] = _conflicts(value, at)
        return found


def _later(value: object, at: datetime) -> bool:
    """Whether it was written down that this came after the moment."""
    written = moment(value)
    return written is not None and written > at


def _manifest(
    name: str,
    base: str,
    value: Object,
    at: datetime,
    known: Mapping[str, bytes],
    there: Mapping[str, Held],
) -> Files:
    """The manifest, and what its agents had not written yet; nothing after a second rerun."""
    if _later(value.get("created_at"), at):
        return {name: None}
    found: Files = {}
    for entry in schema.objects_of(value.get("agents")):
        early = _later(entry.get("dispatched_at"), at)
        found[f"{base}/{schema.decode_object(Dispatch, entry).agent}/{_EMPTY}"] = (
            b""  # made before dispatch
        )
        if early and entry.get("attempt") not in (None, 1):
            if entry.get("attempt") != 2:
                return {}  # when its earlier reruns were is not written down
            found |= _first_attempt(base, entry, known, there)
        elif early or _later(entry.get("ended_at"), at):
            found |= _not_yet(base, entry, early, at, known)
            entry |= {"ended_at": None, "exit": None, "outside": []}
            entry |= {"dispatched_at": None, "prompt_file": None} if early else {}
    return {**found, name: encode(value)}


def _first_attempt(
    base: str, entry: Object, known: Mapping[str, bytes], there: Mapping[str, Held]
) -> Files:
    """An agent before it was run once more: what was moved into the history stood in its place."""
    dispatch = schema.decode_object(Dispatch, entry)
    agent, task = dispatch.agent, dispatch.task_id
    home, own, stamp = f"{base}/{schema.COORD}", f"{base}/{agent}/", entry.pop("stamp", "")
    moved = {
        f"{home}/history/{agent}/1/status.json": f"{own}status.json",
        f"{home}/history/{agent}/1/{agent}-status.json": f"{own}{agent}-status.json",
        f"{home}/history/{agent}/1/return-{task}.json": f"{home}/returns/{task}.json",
        f"{home}/history/{agent}/1/return-{task}.txt": f"{home}/returns/{task}.txt",
    }
    found: Files = dict.fromkeys(
        each for each in known if f"-{stamp}." in each and stamp and (agent in each or task in each)
    )
    for kept, place in moved.items():
        if kept in there or kept in known:
            found[kept] = None
            found[place] = there[kept][0] if kept in there else None
    prompt = there.get(f"{home}/prompts/{task}.md")
    back = there.get(f"{home}/history/{agent}/1/return-{task}.json")
    back = back or there.get(f"{home}/history/{agent}/1/return-{task}.txt")
    entry |= {"attempt": 1, "exit": None, "outside": [], "feedback": ""}
    entry["prompt_file"] = None
    entry["dispatched_at"] = _iso(prompt[1]) if prompt else None
    entry["ended_at"] = _iso(back[1]) if back else None
    return found


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _not_yet(
    base: str, entry: Object, early: bool, at: datetime, known: Mapping[str, bytes]
) -> Files:
    """The files that an agent had not written: all before it was dispatched, else its last ones."""
    dispatch = schema.decode_object(Dispatch, entry)
    agent, task = dispatch.agent, dispatch.task_id
    home, own = f"{base}/{schema.COORD}", f"{base}/{agent}/"
    found: Files = {}
    for name, data in known.items():
        last = name in (f"{home}/returns/{task}.json", f"{home}/returns/{task}.txt")
        if name in (f"{own}status.json", f"{own}{agent}-status.json"):
            last = _later((schema.parse_object(data) or {}).get("completed_at"), at)
        if last or (early and (name.startswith(own) or name == f"{home}/prompts/{task}.md")):
            found[name] = None
    return found


def _triage(value: Object, at: datetime) -> bytes | None:
    """The decisions that were made by then; None where there were none."""
    decisions = schema.objects_of(value.get("decisions"))
    made = [each for each in decisions if not _later(each.get("at"), at)]
    return encode({**value, "decisions": made}) if made else None


def _conflicts(value: Object, at: datetime) -> bytes | None:
    """The conflicts that were known by then, open where they were resolved later."""
    conflicts = schema.objects_of(value.get("conflicts"))
    held = [each for each in conflicts if not _later(each.get("at"), at)]
    looked_at = value.get("looked_at") if not _later(value.get("looked_at"), at) else None
    if not held and looked_at is None:
        return None
    open_ones = [
        {key: each[key] for key in _CONFLICT if key in each}
        if _later(each.get("resolved_at"), at)
        else each
        for each in held
    ]
    kept = {key: each for key, each in value.items() if key not in ("looked_at", "conflicts")}
    more = {} if looked_at is None else {"looked_at": looked_at}
    return encode({**kept, **more, "conflicts": open_ones})


MOST = 500  # files of a run that are kept


def tracked_files(run: Run) -> tuple[TrackedFile, ...]:
    """Statuses, outputs, prompts, returns, what orchestrators keep, and the final output.

    Scratch folders and symbolic links are left out.
    """
    wanted = []
    scratch = tuple(f"{run.base.name}/{agent.name}/{schema.SCRATCH}/" for agent in run.agents)
    for file in run.files:
        if file.link or "/" not in file.name or file.name.startswith(scratch):
            continue
        wanted.append(TrackedFile(file.name, str(file.path), document=clean_line(file.name)))
    return tuple(wanted[:MOST])
