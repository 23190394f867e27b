"""Integration: conflicts, the draft with its sources, the final output with its metadata, its status.

Source: agent workspaces specification, "Integration Step Protocol", steps 3 and 5 to 7, and "Conflict
Resolution Protocol". An output that is no text, or is too long, is linked and stated as a gap.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import File
from acp_core.files.transaction import CREATE, LIMIT, REPLACE, Write
from acp_core.model import format
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.format import count
from acp_core.model.text import clean_line
from acp_core.protocols.workspaces import prompts, schema, state
from acp_core.protocols.workspaces.matters import draft_problem
from acp_core.protocols.workspaces.read import conflict_hints, manifest, scan
from acp_core.protocols.workspaces.read.conflict_hints import Hint
from acp_core.protocols.workspaces.read.manifest import (
    Manifest,
    read_bytes,
    read_json,
    read_manifest,
    read_run,
)
from acp_core.protocols.workspaces.schema import (
    CATEGORIES,
    GROUNDS,
    TO_WRITE,
    Agent,
    Conflict,
    Conflicts,
    Dispatch,
    Layout,
    Run,
    encode,
    iso,
)
from acp_core.protocols.workspaces.write import dispatch
from acp_core.protocols.workspaces.write.step import Step

METADATA = "## Integration metadata"
_KEY = "integration_metadata"
_NAME = "final-output"
Object = dict[str, Any]


def draft_file(place: Layout) -> Path:
    """Where the text is prepared."""
    return place.draft / f"{_NAME}.{read_manifest(place).form}"


def final_file(place: Layout) -> Path:
    """Where it stands in the end."""
    return place.integration / f"{_NAME}.{read_manifest(place).form}"


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
    manifest = read_manifest(place)
    unknown = [name for name in order if name not in manifest.tasks]
    if unknown:
        raise Refused(f"{unknown[0]!r} is not an agent of the run")
    manifest.value["order"] = list(order)
    return Step(f"Reading order: {', '.join(manifest.order)}.", (manifest.write(),))


def write_draft(place: Layout) -> Step:
    """What preparing a draft would write: every output with its source, for a person to work on.

    Raises:
        Refused: it is too early, or a draft is there already.
    """
    run, manifest = require_ready(place)
    path = draft_file(place)
    if os.path.lexists(path):
        raise Refused(f"{path} already exists: edit that file, or move it away")
    hints = [each.question for each in state.open_hints(run)]
    material = Material(reading(run, manifest), resolved(run), gaps(run), hints)
    make = draft_json if manifest.form == "json" else draft_text
    text = make(run, manifest, material)
    return Step(
        f"Prepare a draft in {path}.", (Write(path, CREATE, text.encode(errors="replace")),)
    )


def require_ready(place: Layout) -> tuple[Run, Manifest]:
    """The run, once it can be synthesised.

    Raises:
        Refused: one of the steps before is not through; the message says which, and what to do.
    """
    run, manifest = read_run(place, utc_now()), read_manifest(place)
    dispatch.require_all(run)
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


def synthesis_prompt(place: Layout) -> str:
    """What the one who integrates is told.

    Raises:
        Refused: as `ready`.
    """
    run, manifest = require_ready(place)
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


def finish_run(place: Layout, more_gaps: Sequence[str] | None = None, by: str = "") -> Step:
    """What approving the draft would write: the final output with its metadata, then its status.

    ``more_gaps`` are those that a person adds; None for those that were added before.

    Raises:
        Refused: a step before is not through, there is no draft, or another output is there.
    """
    run, manifest = require_ready(place)
    path, final = draft_file(place), final_file(place)
    data = read_bytes(path)
    problem = draft_problem(data, manifest.form)
    if problem:
        raise Refused(f"{path}: {problem}")
    others = [file.path for file in (*run.finals, *run.planted) if file.path != final]
    if others:
        raise Refused(f"{others[0]} already exists: move it away; a run has one final output")
    aside, warnings = _set_aside(run, manifest.place, final)
    by = by or dispatch.this_person()
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
    if schema.value_of(run.integration).get("sha256") == sha256(held).hexdigest():
        return (), ()
    target = dispatch.free_path(place.coord / schema.HISTORY / "integration" / final.name)
    by = [each for each in run.trespasses if each.file.path == final]
    who = f"was written by {state.trespassers(by)}" if by else "was changed since"
    warning = f"{final} {who}: its content is kept as {target}"
    return (Write(target, CREATE, held),), (warning,)


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
    return [*found, *(each.gap() for each in linked_outputs(run))]


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
    lines += [f"- {schema.decode_object(Conflict, each).sentence}" for each in record["conflicts"]]
    lines += [f"- Unresolved: {each}" for each in record["not_settled"]]
    lines += [f"- Gap: {each}" for each in record["gaps"]]
    return f"{body}\n\n" + "\n".join(clean_line(line, 8_000) for line in lines) + "\n"


def _with_key(text: str, record: Object) -> str:
    """The JSON object with its metadata under a key of its own."""
    return encode({**json.loads(text), _KEY: record}).decode()


_BOTH = f"The parts of this draft hold each version: keep one. {TO_WRITE}"


class Material(NamedTuple):
    """What a draft is made of: agents with their files in order, resolved conflicts, gaps,
    and where outputs may contradict each other."""

    reading: list[tuple[str, Path, int]]
    resolved: list[Conflict]
    gaps: list[str]
    hints: list[str]

    @property
    def settled(self) -> list[str]:
        """The record sentences of resolved conflicts; with what is left to do where several versions stand in the draft.

        Source: "Conflict Resolution Protocol", step 2: one version is kept, both are never
        concatenated.
        """
        names = {name for name, _, _ in self.reading}
        return [
            f"{each.sentence} {_BOTH}" if len(names & set(each.agents)) > 1 else each.sentence
            for each in self.resolved
        ]


def draft_text(run: Run, manifest: Manifest, material: Material) -> str:
    """The draft as Markdown or plain text."""
    lines = [f"# {manifest.project}", ""]
    for name, path, _ in material.reading:
        source = clean_line(f"Source: {name}, {path}", 8_000)
        lines += [f"## {_title(manifest, name)}", "", source, ""]
        lines += [_part_of(run, path), ""]
    for agent in run.agents:
        if agent.decision == "orchestrator-does":
            lines += [
                f"## {_title(manifest, agent.name)}",
                "",
                "Source: the orchestrator",
                "",
                TO_WRITE,
                "",
            ]
    for title, items in (
        ("Resolved conflicts", material.settled),
        ("Unresolved", material.hints),
        ("Gaps", material.gaps),
    ):
        if items:
            lines += [f"## {title}", "", *[clean_line(f"- {each}", 8_000) for each in items], ""]
    return "\n".join(lines)


def _title(manifest: Manifest, agent: str) -> str:
    task = schema.decode_object(Dispatch, manifest.entries.get(agent)).task
    return clean_line(" ".join(task.split()) or agent, 200)


def _lower(text: str) -> str:
    """A text as a part of another: its headings two levels down, those in code aside."""
    lines, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        heading = line.startswith("#") and not fenced
        lines.append(f"##{line}" if heading else line)
    return "\n".join(lines)


def draft_json(run: Run, manifest: Manifest, material: Material) -> str:
    """The draft as a JSON object."""
    made: list[dict[str, object]] = []
    for name, path, _ in material.reading:
        text, problem = _read_part(run, path)
        part: dict[str, object] = {"agent": name, "source": str(path)}
        if problem:
            made.append({**part, "content": None, "not_included": f"it {problem}"})
            continue
        try:
            content: object = json.loads(text) if path.suffix == ".json" else text
        except (ValueError, RecursionError):
            content = text
        made.append({**part, "content": content})
    settled = {"resolved_conflicts": material.settled} if material.resolved else {}
    return encode({"task": manifest.project, "parts": made, **settled}).decode()


def _part_of(run: Run, path: Path) -> str:
    """An output as it stands in the draft: its text, or a link and the reason."""
    content, problem = _read_part(run, path)
    file = next((each for each in run.files if each.path == path), None)
    return link_line(file, problem) if problem and file else _lower(content).strip("\n")


def _read_part(run: Run, path: Path) -> tuple[str, str]:
    file = next((each for each in run.files if each.path == path), None)
    return text_of(file) if file else ("", "is missing")


class Linked(NamedTuple):
    """An output that is not part of the text, and why."""

    agent: Agent
    file: File
    problem: str

    def gap(self) -> str:
        """What is missing because of it, in a line."""
        task = f" ({self.agent.task_id})" if self.agent.task_id else ""
        what = f"{self.file.path.name} ({format.size(self.file.size)})"
        return f"{self.agent.name}{task}: {what} is only linked: it {self.problem}"


def text_of(file: File) -> tuple[str, str]:
    """The text of an output, and why it cannot be part of another text ("" where it can)."""
    if file.link:
        return "", "is a symbolic link" if file.path.is_symlink() else "is not a regular file"
    try:
        data = read_bounded(file.path, scan.LIMIT)
    except Unreadable as error:
        return "", f"is {error}" if str(error).startswith("larger") else str(error)
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        return "", "is not text"
    return (text, "") if "\0" not in text else ("", "is not text")


def linked_outputs(run: Run) -> list[Linked]:
    """The outputs that can only be linked, of the agents whose outputs are integrated."""
    found = []
    for agent in conflict_hints.used(run):
        for listed in agent.results:
            if listed.file is not None and listed.owner == agent.name:
                problem = text_of(listed.file)[1]
                found += [Linked(agent, listed.file, problem)] if problem else []
    return found


def link_line(file: File, problem: str) -> str:
    """A line of Markdown that leads to a file, and says why its text does not stand there."""
    name = re.sub(r"([\\\[\]])", r"\\\1", clean_line(file.path.name))
    target = quote(str(file.path).encode("utf-8", "surrogateescape"))
    return f"[{name}]({target}) ({format.size(file.size)}): only linked: it {problem}"


def current_hints(place: Layout) -> list[Hint]:
    """What a machine finds in the outputs now.

    Raises:
        Refused: there is no manifest that can be read.
    """
    run = read_run(place, utc_now())
    order = dict.fromkeys(
        [*manifest.read_manifest(place).order, *(agent.name for agent in run.agents)]
    )
    outputs = conflict_hints.outputs(run, list(order))
    return conflict_hints.hints(outputs, conflict_hints.built_on(run))


def record_hints(place: Layout, by: str = "") -> Step:
    """What writing the hints down would write.

    What was settled or recorded by a person stays as it is; a hint that is no longer true goes.

    Raises:
        Refused: not every agent is through and decided on.
    """
    run = read_run(place, utc_now())
    dispatch.require_all(run)
    value, items = _read_conflicts(place)
    now = {conflicts_about(each): each for each in current_hints(place)}
    left = [
        each for each in items if not (_is_open_hint(each) and conflicts_about(each) not in now)
    ]
    known = {conflicts_about(each) for each in left}
    new = [each for key, each in now.items() if key not in known]
    numbers = _numbers(left)
    made = [
        {
            "id": f"c{next(numbers)}",
            **_plain(each),
            "hint": True,
            "found_by": "acp",
            "at": iso(utc_now()),
        }
        for each in new
    ]
    written = [*(each.raw for each in left), *made]
    value |= {"looked_at": iso(utc_now()), "by": by or dispatch.this_person()}
    sentence = f"Compare the outputs: {count(len(new), 'new hint')}, {len(written)} recorded."
    return _conflicts_step(place, value, written, sentence)


def _conflicts_step(
    place: Layout, value: Object, conflicts: list[Object], sentence: str, notes: Sequence[str] = ()
) -> Step:
    """What writes the conflicts down."""
    data = encode(value | {"conflicts": conflicts})
    return Step(sentence, (Write(place.conflicts, REPLACE, data),), notes=tuple(notes))


def _is_open_hint(item: Conflict) -> bool:
    return item.is_open and item.is_hint


def dispute(place: Layout, agents: list[str], topic: str, category: str, by: str = "") -> Step:
    """What adding a conflict would write; a hint that says the same becomes a conflict.

    Raises:
        Refused: it is not between two agents of the run, or lacks its topic.
    """
    run = read_run(place, utc_now())
    pair = [dispatch.find_agent(run, name).name for name in agents]
    if len(set(pair)) != 2:
        raise Refused("a conflict is between two agents")
    _require_conflict(category)
    if not topic.strip():
        raise Refused("give the conflict a topic")
    value, items = _read_conflicts(place)
    topic = conflict_hints.topic_of(topic)
    new = {
        "id": f"c{next(_numbers(items))}",
        "agents": pair,
        "topic": topic,
        "category": category,
        "files": [],
        "hint": False,
        "found_by": by or dispatch.this_person(),
        "at": iso(utc_now()),
    }
    key = frozenset(pair), topic.lower()
    same = next((each for each in items if conflicts_about(each) == key), None)
    if same is not None and not _is_open_hint(same):
        raise Refused("this conflict is already recorded")
    if same is not None:
        same.raw.update(hint=False, category=category, found_by=new["found_by"])
    written = [*(each.raw for each in items), *([] if same else [new])]
    sentence = f"Add the conflict of {' and '.join(pair)} on {topic} ({category})."
    return _conflicts_step(place, value, written, sentence)


def resolve_conflict(
    place: Layout,
    id: str,
    *,
    category: str = "",
    keep: str = "",
    because: str = "",
    by: str = "",
    alike: bool = False,
) -> Step:
    """What resolving a conflict would write, with its record sentence.

    Args:
        place: the run.
        id: the conflict's.
        category: another one than was thought; "" for that.
        keep: the agent whose version holds, or is the more detailed one.
        because: for a fact: one of `GROUNDS`.
        by: who decides.
        alike: resolve the other open ones on this topic in the same way, as far as ``keep`` has a
            part in them.

    Raises:
        Refused: there is no such conflict, or what its category asks for is missing.
    """
    value, items = _read_conflicts(place)
    item = _find_conflict(items, id)
    category = category or item.category
    _require_conflict(category)
    if len(item.agents) < 2:
        raise Refused(f"{id} does not name two agents")
    if keep and keep not in item.agents:
        raise Refused(f"{keep!r} is not part of {id}: the conflict is between {item.between}")
    rule = _rule(place, category, keep, because)
    made: Object = {
        "category": category,
        "rule": rule,
        "keep": keep,
        "by": by or dispatch.this_person(),
    }
    made |= {"resolved_at": iso(utc_now()), "dismissed": False}
    sentences = []
    for each in [item, *(_alike(items, item) if alike else ())]:
        if len(each.agents) > 1 and (not keep or keep in each.agents):
            topic = conflict_hints.topic_of(each.topic)
            sentences.append(f"Conflict between {each.between} on {topic}. Resolved by {rule}.")
            each.raw.update(made, sentence=sentences[-1])
    written = [each.raw for each in items]
    if not sentences[1:]:
        return _conflicts_step(place, value, written, sentences[0])
    topic = conflict_hints.topic_of(item.topic)
    sentence = f"{count(len(sentences), 'conflict')} on {topic}. Resolved by {rule}."
    return _conflicts_step(place, value, written, sentence, sentences)


def _alike(items: list[Conflict], item: Conflict) -> list[Conflict]:
    """The other open conflicts on the same topic, of the same category."""
    same = item.topic.lower(), item.category.lower()
    others = (each for each in items if each is not item and each.is_open)
    return [each for each in others if (each.topic.lower(), each.category.lower()) == same]


def _rule(place: Layout, category: str, keep: str, because: str) -> str:
    """The rule of a category, as the record sentence names it.

    A fact is never averaged: one version holds, and it is said why.
    """
    if category == "factual":
        if not keep:
            raise Refused(
                "choose whose version of the fact holds (--keep): facts are never averaged"
            )
        if because not in GROUNDS:
            raise Refused(
                f"give the reason why the version holds (--because): {', '.join(GROUNDS)}"
            )
        return f"the factual rule, the more {because} version, that of {keep}"
    if category == "coverage":
        detailed = f", that of {keep}" if keep else ""
        return f"the coverage rule, merged and keeping the more detailed version{detailed}"
    return f"the format rule, both brought into the structure of the final {_form(place)} output"


def dismiss_conflict(
    place: Layout, id: str, reason: str, by: str = "", *, alike: bool = False
) -> Step:
    """What dismissing a conflict would write: it is none; ``alike``: nor are the others like it.

    Raises:
        Refused: there is no such conflict, or no reason is given.
    """
    reason = " ".join(reason.split())[:2_000]
    if not reason:
        raise Refused("give the reason why this is not a conflict")
    value, items = _read_conflicts(place)
    item = _find_conflict(items, id)
    gone = [item, *(_alike(items, item) if alike else ())]
    made: Object = {
        "dismissed": True,
        "reason": reason,
        "by": by or dispatch.this_person(),
        "resolved_at": iso(utc_now()),
    }
    for each in gone:
        each.raw.update(made)
        each.raw.pop("sentence", None)
    ids = ", ".join(each.id or "?" for each in gone)
    written = [each.raw for each in items]
    return _conflicts_step(place, value, written, f"Dismiss {ids}: {reason}")


def recorded_conflicts(place: Layout) -> list[Conflict]:
    """The conflicts that are written down.

    Raises:
        Refused: they cannot be read.
    """
    return _read_conflicts(place)[1]


def _read_conflicts(place: Layout) -> tuple[Object, list[Conflict]]:
    value = read_json(place.conflicts) or {}
    return value, list(schema.decode_object(Conflicts, value).conflicts)


def _find_conflict(items: list[Conflict], id: str) -> Conflict:
    item = next((each for each in items if each.id == id), None)
    if item is None:
        known = ", ".join(each.id for each in items) or "none"
        raise Refused(f"no conflict {id!r} (conflicts: {known})")
    return item


def _require_conflict(category: str) -> None:
    if category not in CATEGORIES:
        raise Refused(f"the category {category!r} is unknown (categories: {', '.join(CATEGORIES)})")


def conflicts_about(item: Conflict | Hint) -> tuple[frozenset[str], str]:
    """Between whom it is, and on what: one of each is written down."""
    return frozenset(item.agents), item.topic.lower()


def _numbers(items: list[Conflict]) -> Iterator[int]:
    taken = {each.id for each in items}
    return (number for number in range(1, 10_000) if f"c{number}" not in taken)


def _plain(hint: Hint) -> Object:
    return {
        "agents": list(hint.agents),
        "topic": hint.topic,
        "category": hint.category,
        "files": list(hint.files),
        "why": hint.why,
    }


def _form(place: Layout) -> str:
    return manifest.read_manifest(place).form
