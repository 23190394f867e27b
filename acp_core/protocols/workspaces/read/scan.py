"""One reading of a run's folder: whether it is one, its files, and what they say of each agent.

Both naming forms, moved folders, reruns and unfinished writes are understood. Nothing outside the
run's folder is ever looked at, whatever path an agent names. Source: agent workspaces specification,
"Directory Structure for Agent Workspaces", "File Naming Conventions", "Timestamped Outputs", "Status
File Schema" and "Return Value Contract".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.atomic import is_leftover
from acp_core.files.reading import read_bounded
from acp_core.files.records import File, Record, entries, moment, read_record, read_text
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.schema import (
    Agent,
    Dispatch,
    Listed,
    ManifestDispatches,
    Output,
    Prompt,
    Report,
    Returned,
    Run,
    Triage,
    parse_return,
)

LIMIT = 1 << 20  # bytes of one file that are read
FILES = 5_000  # files of a run that are looked at
_STAMP = re.compile(r"-output-(\d{8}-\d{4})\.[^/]*$")
_NAMED = re.compile(r"^AGENT NAME:[ \t]*(.+?)[ \t]*$", re.M)
_TASK = re.compile(r"^TASK ID:[ \t]*(.+?)[ \t]*$", re.M)
_KEPT = re.compile(r"-(\d{8}-\d{4})$")
Decisions = dict[str, list[tuple[int | None, str]]]


def workspaces_of(root: Path) -> Path:
    """The folder below ``root`` that holds the workspaces; the usual name where none is there."""
    return next(
        (root / name for name in schema.FOLDERS if os.path.isdir(root / name)),
        root / schema.FOLDERS[0],
    )


def listed(root: Path) -> tuple[File, ...]:
    """Every file of the run; with `folders`, it differs whenever `scan` would read something else."""
    return tuple(_files(root, workspaces_of(root)))


def folders(root: Path) -> tuple[str, ...]:
    """The agents' folders, also those in which nothing stands yet."""
    return tuple(_folders(workspaces_of(root)))


def scan(root: Path, files: tuple[File, ...], now: datetime) -> Run:
    """Read the run in ``root`` as of ``now``; ``files`` as `listed`. Never raises for what it holds."""
    base = workspaces_of(root)
    by_name = {file.name: file for file in files}
    place = Place(root, base, by_name)
    prefix = f"{base.name}/"
    coord = f"{prefix}{schema.COORD}/"

    def record(name: str) -> Record | None:
        return read_record(by_name[name], LIMIT) if name in by_name else None

    ranked = sorted(files, key=_rank)
    returns = tuple(
        _returned(file, place)
        for file in ranked
        if file.name.startswith(("returns/", f"{coord}returns/"))
    )
    prompts = tuple(
        _prompt(file) for file in ranked if file.name.startswith(("prompts/", f"{coord}prompts/"))
    )
    manifest, triage = record(f"{coord}manifest.json"), record(f"{coord}triage.json")
    finals = tuple(
        f
        for f in files
        if f.name.startswith("integration/final-output.") and f.name.count("/") == 1
    )
    plans = _plans(manifest)
    names = _agent_names(base, plans, prompts)
    decisions = _decisions(triage)
    agents = tuple(
        _agent(
            name,
            place,
            returns,
            prompts,
            plans.get(name, Dispatch()),
            decisions,
        )
        for name in names
    )
    strayed = state.find_trespasses(agents, files, base.name)
    not_ours = {each.file.name for each in strayed}
    planted = tuple(each for each in finals if each.name in not_ours)
    finals = tuple(each for each in finals if each.name not in not_ours)
    return Run(
        root,
        base,
        now,
        agents,
        files,
        returns,
        prompts,
        manifest,
        triage,
        record(f"{coord}conflicts.json"),
        finals,
        read_text(finals[0], LIMIT)[0] if finals else "",
        record("integration/status.json"),
        by_name.get(f"{prefix}{schema.SHARED}/task-spec.json"),
        tuple(f for f in files if "/" not in f.name and f.name.startswith("output.")),
        tuple(f for f in files if f.name.startswith(f"{coord}draft/final-output.") and f.size),
        record(f"{coord}draft/synthesis.json"),
        len(files) >= FILES,
        nesting_level(root),
        planted,
        strayed,
    )


class Place(NamedTuple):
    """A run's folder, that of its workspaces, and its files by their names."""

    root: Path
    base: Path
    files: dict[str, File]


def resolve(written: str, agent: str, place: Place) -> Path | None:
    """Where a path that an agent named is in this run; None where it is outside.

    As it stands where that is inside the run; else from its last folder of workspaces, or of
    integration, on; else by its name in the agent's workspace.
    """
    root, base, files = place
    if "\0" in written or not written.strip() or not _is_name(written):
        return None
    if os.path.isabs(written):
        as_is = Path(os.path.normpath(written))
        if as_is.is_relative_to(root):
            return as_is
        cuts = [(written.rfind(f"/{name}/"), name) for name in (*schema.FOLDERS, "integration")]
        at, name = max(cuts)
        if at >= 0:
            tail = written[at + len(name) + 2 :]
            top = root / "integration" if name == "integration" else base
            moved = Path(os.path.normpath(top / tail))
            return moved if moved.is_relative_to(root) else None
        sibling = base / agent / os.path.basename(written)
        return sibling if relative_name(sibling, root) in files else None
    for top in (root, base / agent):
        moved = Path(os.path.normpath(top / written))
        if moved.is_relative_to(root) and relative_name(moved, root) in files:
            return moved
    moved = Path(os.path.normpath(base / agent / written))
    return moved if moved.is_relative_to(root) else None


def _is_name(written: str) -> bool:
    try:
        os.fsencode(written)
    except UnicodeEncodeError:  # a lone surrogate: no file can be called so
        return False
    return True


def relative_name(path: Path, root: Path) -> str:
    """A path inside the run as its files are named."""
    return path.relative_to(root).as_posix()


def _listed(item: Output, agent: str, place: Place) -> Listed:
    written = item.file
    path = resolve(written, agent, place)
    file = place.files.get(relative_name(path, place.root)) if path else None
    owner = ""
    if path is not None:
        real = Path(os.path.realpath(path))
        top = Path(os.path.realpath(place.base))
        if real.is_relative_to(top) and real != top:
            owner = real.relative_to(top).parts[0]
    absolute = os.path.isabs(written)
    moved = absolute and path is not None and os.path.normpath(written) != str(path)
    return Listed(written, item, path, file, moved, not absolute, owner)


def _agent(
    name: str,
    place: Place,
    returns: tuple[Returned, ...],
    prompts: tuple[Prompt, ...],
    plan: Dispatch,
    decisions: Decisions,
) -> Agent:
    own, folder = f"{place.base.name}/{name}/", place.base / name
    inside = [
        f
        for f in place.files.values()
        if f.name.startswith(own) and not f.name.endswith("/.gitkeep")
    ]
    records = tuple(
        read_record(f, LIMIT) for f in inside if _is_status(f.name.removeprefix(own), name)
    )
    status = max(records, key=lambda each: (_is_own(each, name), _newest(each)), default=None)
    value = schema.value_of(status)
    outputs = tuple(
        _listed(schema.one_output(item), name, place)
        for item in schema.items_of(value.get("outputs"))[:500]
    )
    stamps = sorted({m[1] for f in inside if (m := _STAMP.search(f.name))})
    back = _of(name, returns)
    found = _guessed(name, own, inside, back, records, place) if value else ()
    agent = Agent(
        name,
        folder if os.path.isdir(folder) else None,
        tuple(inside),
        records,
        status,
        outputs,
        () if outputs else found,
        back,
        next((p for p in reversed(prompts) if p.agent == name), None),
        plan,
        tuple(stamps),
    )
    decided = decisions.get(agent.task_id) or decisions.get(name, [])
    held = [what for attempt, what in decided if attempt in (None, agent.attempt)]
    return replace(agent, decision=held[-1] if held else "")


def _guessed(
    name: str,
    own: str,
    inside: list[File],
    returned: Returned | None,
    records: tuple[Record, ...],
    place: Place,
) -> tuple[Listed, ...]:
    """The outputs of an agent whose status lists none: those that it returned, else by their names.

    Of several with a stamp the newest counts.
    """
    statuses = {record.file.path for record in records}
    back = [each for each in (returned.listed if returned else ()) if each.owner == name]
    listed = tuple(each for each in back if each.file and each.path not in statuses)
    if listed:
        return listed
    names = {file.name.removeprefix(own): file for file in inside if not file.link}
    plain = [n for n in names if n.startswith(("output.", f"{name}-output.")) and "/" not in n]
    stamped = sorted(n for n in names if _STAMP.search(n) and "/" not in n)
    return tuple(
        _listed(Output(str(names[each].path)), name, place)
        for each in (stamped[-1:] or sorted(plain))
    )


def _is_status(name: str, agent: str) -> bool:
    if name in ("status.json", f"{agent}-status.json"):
        return True
    return bool(re.fullmatch(re.escape(agent) + r"-status-\d{8}-\d{4}\.json", name))


def _is_own(record: Record, agent: str) -> bool:
    return (record.value or {}).get("agent", agent) == agent


def _newest(record: Record) -> tuple[bool, datetime, datetime]:
    at = schema.decode_record(Report, record).completed_at
    oldest = datetime.min.replace(tzinfo=UTC)
    return record.value is not None, at or oldest, record.file.changed


def _rank(file: File) -> str:
    """Later attempts come last: the stamp in its name says which it is of."""
    stamp = _KEPT.search(file.path.stem)
    return stamp[1] if stamp else ""


def _of(name: str, returns: tuple[Returned, ...]) -> Returned | None:
    for each in reversed(returns):
        if schema.decode_object(Report, each.value).agent == name:
            return each
    for each in reversed(returns):
        if any(listed.owner == name for listed in each.listed):
            return each
        stem = each.file.path.stem
        if (each.value is None or not each.value.get("agent")) and (
            stem == name or stem.startswith(f"{name}-")
        ):
            return each
    return None


def _returned(file: File, place: Place) -> Returned:
    text, problem = read_text(file, LIMIT)
    if problem:
        return Returned(file, None, problem)
    value, prose = parse_return(text)
    if value is None:
        return Returned(file, None, "contains no object with a status")
    report = schema.decode_object(Report, value)
    agent = report.agent
    safe = agent if agent and "/" not in agent and agent not in (".", "..") else schema.SHARED
    listed = tuple(_listed(Output(each), safe, place) for each in report.files_written[:500])
    return Returned(file, value, "", prose, listed)


def _prompt(file: File) -> Prompt:
    text, _ = read_text(file, LIMIT)
    return prompt_of(file, text)


def prompt_of(file: File, text: str) -> Prompt:
    """A prompt, and whom it names."""
    named, task = _NAMED.search(text), _TASK.search(text)
    return Prompt(file, text, named[1] if named else "", task[1] if task else "")


def _plans(manifest: Record | None) -> dict[str, Dispatch]:
    agents = schema.decode_record(ManifestDispatches, manifest).agents
    return {each.agent: each for each in agents if each.agent}


def _agent_names(base: Path, plans: dict[str, Dispatch], prompts: tuple[Prompt, ...]) -> list[str]:
    found = set(_folders(base))
    named = {*plans, *(prompt.agent for prompt in prompts)}
    return sorted(found | {n for n in named if n and "/" not in n and not n.startswith(".")})


def _folders(base: Path) -> list[str]:
    found = [e.name for e in entries(base) if e.is_dir(follow_symlinks=False)]
    return [name for name in found if not name.startswith(".") and name != schema.SHARED]


def _decisions(triage: Record | None) -> Decisions:
    """What was decided, by task or agent: each with the attempt that it is about, where it says."""
    decided: Decisions = {}
    for each in schema.decode_record(Triage, triage).decisions:
        key = each.task_id or each.agent
        decided.setdefault(key, []).append((each.attempt, each.decision))
    return decided


def _files(root: Path, base: Path) -> Iterator[File]:
    left = FILES
    tops = [base, root / "integration", root / "returns", root / "prompts"]
    pending = [(root, False), *((top, True) for top in tops if not top.is_symlink())]
    while pending and left > 0:
        folder, deep = pending.pop(0)
        for entry in entries(folder):
            if left <= 0:
                return
            if is_leftover(entry.name):
                continue
            try:
                stat = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    if deep:
                        pending.append((Path(entry.path), True))
                    continue
            except OSError:
                continue
            left -= 1
            changed = moment(stat.st_mtime)
            path = Path(entry.path)
            name = relative_name(path, root)
            yield File(name, path, stat.st_size, changed, not entry.is_file(follow_symlinks=False))


_MOST_FOLDERS = 200  # folders that detection looks into
_STATUS_BYTES = 1 << 20  # bytes of a status file
_SIGN = re.compile(rb'"(?:agent|task_id)"')


def detect(folder: Path | str) -> bool:
    """Whether a run of agent workspaces stands in ``folder``.

    A folder ``agent-workspaces`` (or ``workspaces``) is not enough: it must hold a manifest, a
    task specification or an agent's status file.
    """
    root = Path(folder)
    return any(_holds_run(root / name) for name in schema.FOLDERS)


def nesting_level(root: Path) -> int:
    """In how many other runs' workspaces a folder stands: 0 where no agent's workspace holds it."""
    return sum(folder.name in schema.FOLDERS and _holds_run(folder) for folder in root.parents[:-1])


def _holds_run(base: Path) -> bool:
    if base.is_symlink() or not base.is_dir():
        return False
    if (base / schema.COORD / "manifest.json").is_file():
        return True
    if (base / schema.SHARED / "task-spec.json").is_file():
        return True
    try:
        with os.scandir(base) as entries:
            names = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
    except OSError:
        return False
    return any(
        _is_status_file(base / name / file)
        for name in names[:_MOST_FOLDERS]
        for file in ("status.json", f"{name}-status.json")
    )


def _is_status_file(path: Path) -> bool:
    try:
        return path.is_file() and _SIGN.search(read_bounded(path, _STATUS_BYTES)) is not None
    except OSError:
        return False
