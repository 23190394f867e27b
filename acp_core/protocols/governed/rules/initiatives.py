"""The rules for an initiative's files, and the states in which an initiative is stuck.

Source: governed protocol specification, "Gates and resync" (the three invariants).
"""

from __future__ import annotations

from datetime import datetime

from acp_core import model
from acp_core.files.reading import read_bounded
from acp_core.files.transaction import Interrupted
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.initiative import OWN, Initiative, folder
from acp_core.protocols.governed.read.unfinished_write import COORDINATOR, interrupted
from acp_core.protocols.governed.rules import guard, initiative_mending
from acp_core.protocols.governed.rules.barriers import check_barriers
from acp_core.protocols.governed.rules.coordinator_records import check_coordinator
from acp_core.protocols.governed.rules.finding import (
    Trouble,
    file_troubles,
    log_troubles,
    of_obstacles,
)
from acp_core.protocols.governed.rules.initiative_mending import why_workstream_cannot_be_mended
from acp_core.protocols.governed.rules.multi_config import check_config
from acp_core.protocols.governed.schema import act_names
from acp_core.protocols.governed.schema.state_file import RunState

_ERROR, _WARNING = model.Severity.ERROR, model.Severity.WARNING


def check_initiative(initiative: Initiative, now: datetime) -> list[Trouble]:
    """Everything that is wrong with an initiative, its files first."""
    home = folder(initiative.layout)
    found = file_troubles(schema.MULTI_CONFIG, initiative.config)
    found += check_config(initiative)
    found += _state(initiative, f"{home}/state.json")
    if initiative.layout != OWN and not initiative.state.reason:
        found += file_troubles(f"{home}/barriers.json", initiative.barriers_file)
    ledger = "ledger.jsonl" if initiative.layout == OWN else "decision-ledger.jsonl"
    found += log_troubles(f"{home}/{ledger}", initiative.ledger)
    found += log_troubles(f"{home}/history.jsonl", initiative.history)
    found += log_troubles(f"{home}/barrier-ledger.jsonl", initiative.barrier_ledger)
    found += _contexts(initiative)
    left = interrupted(initiative.root, COORDINATOR) if initiative.layout == OWN else None
    if left is not None:  # until it is finished, the files cannot agree
        stuck = of_obstacles(guard.of_initiative(initiative))
        return found + (stuck or [_interrupted(left)])
    found += check_coordinator(initiative)
    return found + _workstreams(initiative) + check_barriers(initiative)


def _state(initiative: Initiative, document: str) -> list[Trouble]:
    """What is wrong with the coordinator's state; the ledger makes one again that is lost."""
    found = file_troubles(document, initiative.state, bool(initiative.ledger.lines))
    if initiative_mending.why_state_cannot_be_rebuilt(initiative):
        return found
    remedy = "Rebuild it from the ledger; a damaged file is kept."
    return [each._replace(action=act_names.MEND_STATE, remedy=remedy) for each in found]


def _interrupted(left: Interrupted) -> Trouble:
    message = f"Interrupted, with {left.done} of {left.total} files written: {left.what}."
    remedy = "Resync: any command on the initiative completes it or rolls it back."
    return Trouble(
        "INTERRUPTED", _WARNING, message, remedy, ".coordinator/acp-journal.json",
        group="A6", since=left.at, action=act_names.RESYNC,
    )  # fmt: skip


def _workstreams(initiative: Initiative) -> list[Trouble]:
    found = []
    begun = not initiative.state.reason
    for stream in initiative.workstreams:
        run = stream.run
        if run is None:
            message = f"The path of workstream {stream.name} leads out of the initiative."
            found.append(Trouble("PATH", _ERROR, message, document=schema.MULTI_CONFIG))
            continue
        if begun and run.state.reason:
            message = f"The state of workstream {stream.name} cannot be read: {schema.why(run.state.reason)}"
            remedy = "Correct the file; until then the initiative cannot proceed."
            action = ""
            if initiative.layout == OWN and not why_workstream_cannot_be_mended(stream):
                action, remedy = act_names.MEND, "Restore it, or rebuild it."
            trouble = Trouble(
                "CHILD_STATE", _ERROR, message, remedy, group="A3", participant=stream.name,
                action=action,
                explains=tuple(t.key for t in file_troubles(schema.STATE, run.state)),
            )  # fmt: skip
            found.append(trouble)
            continue
        known, real = clean_line(stream.recorded.run_id, 80), run.record.run_id
        if known and real and known != real:
            message = f"Workstream {stream.name} runs {real}; the coordinator knows {known}."
            remedy = "Restore that run, or start the initiative again with the other."
            found.append(Trouble("RUN_ID", _ERROR, message, remedy, group="A4"))
        if initiative.layout == OWN and begun:
            found += _linked(initiative, stream.name, run.record)
        if initiative.status == "completed" and run.status != "completed":
            message = f"The initiative is completed while workstream {stream.name} is {run.status}."
            remedy = "Approve that run's completion."
            found.append(Trouble("COMPLETED_EARLY", _WARNING, message, remedy, group="D3"))
    on = initiative.record.blocked_reason
    if initiative.status.startswith("blocked") and initiative.layout != OWN:
        message = f"The initiative is {initiative.status}" + (f": {on}" if on else "")
        remedy = "Fix the failure, then resync."
        found.append(Trouble("INITIATIVE_BLOCKED", _WARNING, message, remedy, group="E2"))
    return found


def _linked(initiative: Initiative, name: str, state: RunState) -> list[Trouble]:
    wanted, given = initiative.settings.super_run_id, state.super_run_id
    if not wanted or given == wanted or not state.run_id:
        return []
    message = f"Workstream {name} has the super_run_id “{given}” instead of “{wanted}”."
    remedy = "Write the initiative's id into its state; until then it cannot cross a barrier."
    return [Trouble("SUPER_RUN_ID", _ERROR, message, remedy, schema.MULTI_CONFIG, group="A7")]


def _contexts(initiative: Initiative) -> list[Trouble]:
    home = initiative.root / folder(initiative.layout) / "context"
    try:
        names = sorted(entry.name for entry in home.iterdir())[:200]
    except OSError:
        return []
    bad = []
    for name in names:
        path = schema.inside(home, f"{name}/COORDINATOR_CONTEXT.md")
        try:
            if path and "[object Object]" in read_bounded(path, 1 << 20).decode("utf-8", "replace"):
                bad.append(name)
        except OSError:
            continue
    if not bad:
        return []
    message = "The context documents tell the agents “[object Object]” instead of the decisions: "
    message += clean_line(", ".join(bad))
    remedy = "Write the decisions to TALK.md; the program writes no others."
    at_work = any(each.run and each.run.turns for each in initiative.workstreams)
    group = "C3" if at_work and initiative.status == "active" else ""
    return [Trouble("CONTEXT_EMPTY", _WARNING, message, remedy, group=group, wanted=False)]
