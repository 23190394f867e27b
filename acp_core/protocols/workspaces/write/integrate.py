"""Integration: the draft with its sources, the final output with its metadata, and its status.

Source: agent workspaces specification, "Integration Step Protocol", steps 3 and 5 to 7.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.transaction import CREATE, LIMIT, REPLACE, Write
from acp_core.model.clock import utc_now
from acp_core.model.format import count
from acp_core.model.text import clean_line
from acp_core.protocols.workspaces import prompts, schema, state
from acp_core.protocols.workspaces.read import conflict_hints, trespasses
from acp_core.protocols.workspaces.schema import Agent, Run, coord
from acp_core.protocols.workspaces.schema.coord import Conflict
from acp_core.protocols.workspaces.write import Refused, dispatch, drafting, parts, triage
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.drafting import TO_WRITE
from acp_core.protocols.workspaces.write.layout import Layout, read_bytes, read_json
from acp_core.protocols.workspaces.write.manifest import Manifest
from acp_core.protocols.workspaces.write.writing import Step, encode, iso

METADATA = "## Integration metadata"
_KEY = "integration_metadata"
_NAME = "final-output"
Object = dict[str, Any]


def draft_file(place: Layout) -> Path:
    """Where the text is prepared."""
    return place.draft / f"{_NAME}.{manifests.read(place).form}"


def final_file(place: Layout) -> Path:
    """Where it stands in the end."""
    return place.integration / f"{_NAME}.{manifests.read(place).form}"


def reading(run: Run, manifest: Manifest) -> list[tuple[str, Path, int]]:
    """The outputs that go into it in the order in which they are read: agent, file, bytes."""
    agents = {agent.name: agent for agent in conflict_hints.used(run)}
    return [
        (name, listed.path, listed.file.size)
        for name in dict.fromkeys([*manifest.order, *agents])
        for listed in (agents[name].results if name in agents else ())
        if listed.file is not None and listed.path is not None and listed.owner == name
    ]


def reorder(place: Layout, order: Sequence[str]) -> Step:
    """What another order of reading would write; agents that it does not name come after.

    Raises:
        Refused: it names somebody who is not in the run.
    """
    manifest = manifests.read(place)
    unknown = [name for name in order if name not in manifest.tasks]
    if unknown:
        raise Refused(f"{unknown[0]!r} is not an agent of the run")
    manifest.value["order"] = list(order)
    return Step(f"Reading order: {', '.join(manifest.order)}.", (manifest.write(),))


def draft(place: Layout) -> Step:
    """What preparing a draft would write: every output with its source, for a person to work on.

    Raises:
        Refused: it is too early, or a draft is there already.
    """
    run, manifest = ready(place)
    path = draft_file(place)
    if os.path.lexists(path):
        raise Refused(f"{path} already exists: edit that file, or move it away")
    hints = [each.question for each in state.open_hints(run)]
    material = drafting.Material(reading(run, manifest), resolved(run), gaps(run), hints)
    make = drafting.json_text if manifest.form == "json" else drafting.text
    text = make(run, manifest, material)
    return Step(
        f"Prepare a draft in {path}.", (Write(path, CREATE, text.encode(errors="replace")),)
    )


def ready(place: Layout) -> tuple[Run, Manifest]:
    """The run, once it can be synthesised.

    Raises:
        Refused: one of the steps before is not through; the message says which, and what to do.
    """
    run, manifest = dispatch.read_run(place, utc_now()), manifests.read(place)
    triage.require_all(run)
    _, _, readable, looked, *_ = state.steps(run)
    if not readable:
        raise Refused(f"{_missing(run)}: rerun the agent, accept its result as it is, or skip it")
    if not looked:
        since = " since the last agent ended" if run.conflicts is not None else ""
        raise Refused(f"the outputs were not compared{since}: run `acp workspaces compare`")
    waiting = [each.id or "?" for each in state.open_conflicts(run)]
    if waiting:
        raise Refused(
            f"unresolved conflicts: {', '.join(waiting)}"
            " (use `acp workspaces resolve` or `acp workspaces dismiss`)"
        )
    return run, manifest


def _missing(run: Run) -> str:
    """Which outputs were listed, and are not there."""
    lost = {
        agent.name: [each.written for each in agent.results if each.file is None]
        for agent in conflict_hints.used(run)
        if agent.decision != "accept"
    }
    parts = [f"{name} lists {', '.join(files)}" for name, files in lost.items() if files]
    several = sum(map(len, lost.values())) > 1
    return clean_line(f"{'; '.join(parts)}, which {'do' if several else 'does'} not exist", 1_000)


def prompt(place: Layout) -> str:
    """What the one who integrates is told.

    Raises:
        Refused: as `ready`.
    """
    run, manifest = ready(place)
    ended = [
        prompts.Ended(
            agent.name,
            state.ending(agent, run) or "no result",
            [str(each.path) for each in agent.results if each.file and each.owner == agent.name],
        )
        for agent in run.agents
    ]
    return prompts.integration(
        ended,
        [
            *(each.sentence for each in resolved(run)),
            *(f"Unresolved: {each.question}." for each in state.open_hints(run)),
        ],
        [str(path) for _, path, _ in reading(run, manifest)],
        final_file(place),
        draft_file(place),
        [*decisions(run), *[f"Gap: {gap}" for gap in gaps(run)]],
    )


def added_gaps(run: Run) -> list[str]:
    """The gaps that a person added when this run was integrated before."""
    return list(run.integrated.gaps_added)


def finish(place: Layout, more_gaps: Sequence[str] | None = None, by: str = "") -> Step:
    """What approving the draft would write: the final output with its metadata, then its status.

    ``more_gaps`` are those that a person adds; None for those that were added before.

    Raises:
        Refused: a step before is not through, there is no draft, or another output is there.
    """
    run, manifest = ready(place)
    path, final = draft_file(place), final_file(place)
    data = read_bytes(path)
    problem = draft_problem(data, manifest.form)
    if problem:
        raise Refused(f"{path}: {problem}")
    others = [file.path for file in (*run.finals, *run.planted) if file.path != final]
    if others:
        raise Refused(f"{others[0]} already exists: move it away; a run has one final output")
    aside, warnings = _set_aside(run, manifest.place, final)
    by = by or triage.me()
    said = added_gaps(run) if more_gaps is None else more_gaps
    more = [" ".join(gap.split()) for gap in said if gap.strip()]
    all_gaps = [*gaps(run), *more]
    record = _status(run, manifest, all_gaps, by) | {"gaps_added": more}
    text = data.decode(errors="replace")
    made = _with_key(text, record) if manifest.form == "json" else _with_section(text, record)
    written = made.encode(errors="replace")
    record["sha256"] = sha256(written).hexdigest()
    status = place.integration / "status.json"
    read_json(status)  # what is no status of ours is not overwritten
    left = record["skipped"]
    sentence = f"Integrate {', '.join(record['integrated']) or 'no agents'}"
    sentence += f"; skipped: {', '.join(left)}" if left else ""
    return Step(
        f"{sentence}; {count(len(all_gaps), 'gap')}.",
        (
            *aside,
            Write(final, REPLACE, written),
            Write(status, REPLACE, encode(record)),
        ),
        warnings=warnings,
        notes=(
            *(f"gap: {each}" for each in all_gaps),
            *(f"unresolved: {each}" for each in record["not_settled"]),
        ),
    )


def _set_aside(run: Run, place: Layout, final: Path) -> tuple[tuple[Write, ...], tuple[str, ...]]:
    """What stands in the final output's place and is not what acp wrote there is put away first."""
    if not os.path.lexists(final):
        return (), ()
    try:
        held = read_bounded(final, LIMIT)
    except Unreadable as error:
        raise Refused(f"{final} {error}: move it away") from None
    known = (run.integration.value or {}) if run.integration else {}
    if known.get("sha256") == sha256(held).hexdigest():
        return (), ()
    target = dispatch.free(place.coord / schema.HISTORY / "integration" / final.name)
    by = [each for each in run.trespasses if each.file.path == final]
    who = f"was written by {trespasses.who(by)}" if by else "was changed since"
    warning = f"{final} {who}: its content is kept as {target}"
    return (Write(target, CREATE, held),), (warning,)


def draft_problem(data: bytes, form: str) -> str:
    """Why a draft cannot become the final output, "" where it can."""
    if not data.strip():
        return "there is no draft: prepare one, or let a program write it"
    if TO_WRITE.encode() in data:
        return f"the draft still contains “{TO_WRITE}”: write that part"
    if form == "json":
        try:
            if not isinstance(json.loads(data), dict):
                return "a final output in JSON must be an object, to hold the metadata"
        except (ValueError, RecursionError):
            return "the draft is not valid JSON"
    return ""


def gaps(run: Run) -> list[str]:
    """What is missing: an agent failed, was skipped or did a part, or an output is no text."""
    found = []
    for agent in run.agents:
        why = _why(agent)
        task = f" ({agent.task_id})" if agent.task_id else ""
        how = state.ending(agent, run) or "no result"
        if agent.decision == "orchestrator-does":
            found.append(f"{agent.name}{task}: {how}, done by the orchestrator")
        elif agent.decision in ("skip", "gap") or how in (schema.FAILURE, "no result"):
            found.append(f"{agent.name}{task}: {how}, skipped{why}")
        elif how == schema.PARTIAL:
            found.append(f"{agent.name}{task}: partial, accepted{why}")
    return [*found, *(each.gap() for each in parts.linked(run))]


def _why(agent: Agent) -> str:
    return f": {' '.join(agent.errors[0].split())[:300]}" if agent.errors else ""


def _status(run: Run, manifest: Manifest, all_gaps: list[str], by: str) -> Object:
    used = {agent.name for agent in conflict_hints.used(run)}
    done = {agent.name for agent in run.agents if agent.decision == "orchestrator-does"}
    return {
        "run_id": manifest.value.get("run_id"),
        "at": iso(utc_now()),
        "by": by,
        "final_output": str(final_file(manifest.place)),
        "integrated": [a.name for a in run.agents if a.name in used | done],
        "skipped": [a.name for a in run.agents if a.name not in used | done],
        "gaps": all_gaps,
        "conflicts": [_record(each) for each in resolved(run)],
        "not_settled": [each.question for each in state.open_hints(run)],
        "decisions": decisions(run),
        "sources": [{"agent": name, "file": str(path)} for name, path, _ in reading(run, manifest)],
    }


def _record(conflict: Conflict) -> Object:
    kept = ("id", "agents", "topic", "category", "rule", "sentence")
    return {key: conflict.raw[key] for key in kept if key in conflict.raw}


def resolved(run: Run) -> list[Conflict]:
    """The conflicts that were resolved, each with its record sentence."""
    found = run.recorded.conflicts if run.conflicts else ()
    return [each for each in found if each.sentence and not each.is_dismissed]


def decisions(run: Run) -> list[str]:
    """A line for each decision that holds."""
    holding = {agent.name: agent.decision for agent in run.agents}
    held: dict[str, str] = {}
    for each in run.decisions:
        if holding.get(each.agent) == each.decision:
            held[each.agent] = f"{each.agent}: {each.decision} ({each.by or '?'}): {each.reason}"
    return list(held.values())


def _with_section(text: str, record: Object) -> str:
    """The text with its metadata section at the end, in place of an earlier one."""
    body = text.partition(f"\n{METADATA}")[0].rstrip("\n")
    lines = [METADATA, "", f"- Integrated by {record['by']} at {record['at']}"]
    lines += [f"- Integrated: {', '.join(record['integrated']) or 'no agents'}"]
    lines += [f"- Skipped: {', '.join(record['skipped']) or 'no agents'}"]
    lines += [f"- Source: {each['agent']}, {each['file']}" for each in record["sources"]]
    lines += [f"- Decision: {each}" for each in record["decisions"]]
    lines += [f"- {coord.parse(Conflict, each).sentence}" for each in record["conflicts"]]
    lines += [f"- Unresolved: {each}" for each in record["not_settled"]]
    lines += [f"- Gap: {each}" for each in record["gaps"]]
    return f"{body}\n\n" + "\n".join(clean_line(line, 8_000) for line in lines) + "\n"


def _with_key(text: str, record: Object) -> str:
    """The JSON object with its metadata under a key of its own."""
    return encode({**json.loads(text), _KEY: record}).decode()
