"""A governed run within one repository, as its files tell it: its turns, gates, and permissions.

The open objections are computed: no file holds them, an objection stands where the latest mention
of its id left it. A turn's dispatch bundle is compared with its manifest, whose shape is the
existing program's; what concerns the turn's program stands in the person's state folder. What a
planning file must say so that its gate is met follows the shapes that the existing program writes
and checks. A configuration comes with a repository: its hooks, and the services that it names by an
address of its own, are used only after a human has allowed them; that is remembered by their
content, in the person's state folder. Source: governed protocol specification, "Repo-local governed
run", "Files" (dispatch bundle) and "Phase model".
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from acp_core import model
from acp_core.agents import codec
from acp_core.agents.processes import ATTEMPT, Identity, bearer
from acp_core.files import claims
from acp_core.files.atomic import is_leftover
from acp_core.files.claims import Seen, of_turn
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.text import clean_line, clean_name
from acp_core.person.paths import state_folder
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.read.existing_program import Transaction
from acp_core.protocols.governed.schema import (
    AcceptedTurn,
    Config,
    Loaded,
    Log,
    Object,
    ObjectionChange,
    Programs,
    Raised,
    RunState,
    TurnState,
    decode,
    objects,
    text,
)
from acp_core.protocols.governed.state import Predicate

AT_WORK = ("assigned", "dispatched", "starting", "running", "retrying", "reissued", "")


class Objection(NamedTuple):
    """An objection from its first mention to its latest."""

    id: str
    severity: str
    statement: str
    status: str
    raised_by: str
    raised_at: datetime | None
    changed_by: str
    changed_at: datetime | None

    @property
    def open(self) -> bool:
        """Whether it still stands."""
        return self.status not in schema.RESOLVED


@dataclass(frozen=True, slots=True)
class ActiveTurn(TurnState):
    """A turn that is under way, and what stands in its folders.

    ``staged`` says that its result waits for acceptance, ``bundle`` that it was dispatched,
    ``running`` that its program is at work on this machine, ``lost`` that it was started here and
    is gone.
    """

    id: str = ""
    staged: bool = False
    bundle: bool = False
    running: bool = False
    lost: bool = False


class Pending(NamedTuple):
    """A gate that waits for a human: ``to`` is "" for the run's completion."""

    gate: str
    phase: str
    to: str
    turn: str
    since: datetime | None


@dataclass(frozen=True)
class Run:
    """What was read of a run; ``unfinished`` is what the existing program left half written."""

    root: Path
    config: Loaded
    state: Loaded
    history: Log
    ledger: Log
    events: Log
    session: Loaded
    turns: tuple[ActiveTurn, ...]
    unfinished: tuple[Transaction, ...] = ()

    @cached_property
    def accepted(self) -> tuple[AcceptedTurn, ...]:
        """The turns that were accepted, as the lines of the history tell."""
        return tuple(decode(AcceptedTurn, line.value) for line in self.history.lines)

    @cached_property
    def objections(self) -> tuple[Objection, ...]:
        """Every objection, in the order in which they were raised."""
        return objections(self.accepted, self.ledger)

    @cached_property
    def record(self) -> RunState:
        """What its state file holds."""
        return decode(RunState, self.state.value)

    @cached_property
    def settings(self) -> Config:
        """What its configuration holds."""
        return decode(Config, self.config.value)

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases in order: the keys of the configuration's routing."""
        return schema.phases(self.config.value) or schema.PHASES

    @property
    def phase(self) -> str:
        """The current phase, "" where the state does not tell."""
        return self.record.phase

    @property
    def status(self) -> str:
        """The run's status as its file tells it, "unreadable" where it cannot."""
        return schema.status(self.state)

    @property
    def pending(self) -> Pending | None:
        """The gate that waits for a human, or None."""
        asked = self.record.transition
        request = asked if asked.raw else self.record.completion
        if self.status not in ("paused", "blocked") or not request.raw:
            return None
        by = next((e for e in reversed(self.accepted) if e.turn_id == request.turn), None)
        since = request.since or (by.at if by else None)
        return Pending(request.gate, asked.phase or self.phase, asked.to, request.turn, since)

    @property
    def by_acp(self) -> bool:
        """Whether acp made this run, so that the specification's own rules hold in it."""
        return self.record.created_by == "acp"


def read_run(root: Path, config: str = schema.CONFIG) -> Run:
    """Read a run's files; never raises for what they hold."""
    state = schema.read_object(root / schema.STATE)
    return Run(
        root,
        schema.read_object(root / config),
        state,
        schema.read_log(root / schema.HISTORY),
        schema.read_log(root / schema.LEDGER),
        schema.read_log(root / schema.EVENTS),
        schema.read_object(root / schema.SESSION),
        tuple(_turns(root, decode(RunState, state.value))),
        existing_program.unfinished_transactions(root),
    )


def _turns(root: Path, state: RunState) -> Iterator[ActiveTurn]:
    legacy = state.current_turn
    active = state.active_turns or ({str(legacy.get("turn_id", "")): legacy} if legacy else {})
    for name, raw in list(active.items())[:50]:
        bundle = schema.inside(root, f".agentxchain/dispatch/turns/{name}")
        staged = schema.inside(root, f".agentxchain/staging/{name}/turn-result.json")
        program = program_state(root, name)
        yield replace(
            decode(ActiveTurn, raw),
            id=clean_name(name, 80),
            staged=bool(staged and staged.is_file()),
            bundle=bool(bundle and bundle.is_dir()),
            running=program is ProgramState.RUNS,
            lost=program is ProgramState.LOST,
        )


def objections(accepted: Sequence[AcceptedTurn], ledger: Log) -> tuple[Objection, ...]:
    """Every objection, in the order in which they were raised."""
    mentions: list[tuple[float, Objection]] = []
    last = 0.0
    for turn in accepted:
        last = turn.at.timestamp() if turn.at else last
        mentions += [(last, _mention(each, turn.role, turn.at)) for each in turn.objections]
    for line in ledger.lines:
        if line.value.get("type") != "objection_status":
            continue
        change = decode(ObjectionChange, line.value)
        when = change.at.timestamp() if change.at else last
        mentions.append((when, _mention(change, change.by, change.at)))
    found: dict[str, Objection] = {}
    for _, each in sorted(mentions, key=lambda mention: mention[0]):
        first = found.get(each.id, each)
        found[each.id] = first._replace(
            status=each.status, changed_by=each.changed_by, changed_at=each.changed_at
        )
    found.pop("", None)
    return tuple(found.values())


def _mention(raised: Raised, by: str, at: datetime | None) -> Objection:
    status = raised.status or "raised"
    return Objection(raised.id, raised.severity, raised.statement, status, by, at, by, at)


def detect(folder_path: Path | str) -> bool:
    """Whether a governed run or an initiative stands in this folder.

    The name of the configuration decides nothing alone: it must hold what only such a
    configuration holds, or the program's own folder must stand beside it.
    """
    root = Path(folder_path)
    for name, keys, homes in (
        (schema.MULTI_CONFIG, ("workstreams", "repos"), (".coordinator", ".agentxchain/multirepo")),
        (schema.CONFIG, ("roles", "runtimes", "agents"), (".agentxchain",)),
    ):
        path = root / name
        if not path.is_file():
            continue
        loaded = schema.read_object(path)
        if any(key in loaded.value for key in keys):
            return True
        if any((root / home).is_dir() for home in homes):
            return True
    return False


MANIFEST = "MANIFEST.json"

MARK = "bundle_manifest"

"""What a turn that acp gave out holds in the state: the digest of its bundle's manifest."""

MISSING, MORE, CHANGED, OUTSIDE = "missing", "more", "changed", "outside"

_ADDED = (
    "API_REQUEST.json", "CONTEXT.effective.md", "COORDINATOR_CONTEXT.json",
    "COORDINATOR_CONTEXT.md", "TOKEN_BUDGET.json", "stdout.log",
)  # fmt: skip

"""What the existing program adds to a bundle after its manifest."""

_LARGEST_BUNDLE_FILE = 8 << 20

_MOST_COMPARED = 50  # files that are compared


class Difference(NamedTuple):
    """One file of a bundle that is not as the manifest says.

    ``name`` is relative to the bundle; ``what`` is `MISSING`, `MORE`, `CHANGED`, `OUTSIDE` (of the
    bundle), or why it cannot be read; ``passing``: for a reason that says nothing of the file.
    """

    name: str
    what: str
    passing: bool = False

    def sentence(self, home: str) -> str:
        """The difference in words; ``home`` is the bundle's folder."""
        path = f"{home}/{self.name}"
        match self.what:
            case "missing":
                return f"{path} is missing"
            case "more":
                return f"{path} was added since the turn was dispatched"
            case "changed":
                return f"{path} was changed since the turn was dispatched"
            case "outside":
                return f"the manifest names “{self.name}”, which leads out of the bundle"
        return f"{path}: {self.what}"


def bundle_folder(turn_id: str) -> str:
    """Where the bundle of a turn lies, relative to the repository."""
    return f".agentxchain/dispatch/turns/{turn_id}"


def read_manifest(root: Path, turn_id: str) -> Loaded:
    """The manifest of a turn's bundle; missing where there is none."""
    path = schema.inside(root, f"{bundle_folder(turn_id)}/{MANIFEST}")
    return schema.read_object(path) if path else Loaded({}, "leads out of the repository")


def bundle_differences(root: Path, turn_id: str, mark: object) -> list[Difference]:
    """Every file of a turn's bundle that is not as it was written; never raises.

    Args:
        root: the repository.
        turn_id: the turn.
        mark: the `MARK` that its state holds; where it has none, another program gave the turn out,
            which may write no manifest.
    """
    home, manifest = schema.inside(root, bundle_folder(turn_id)), read_manifest(root, turn_id)
    if home is None or (manifest.missing and not mark):
        return []
    if manifest.reason:
        what = MISSING if manifest.missing else manifest.reason
        return [Difference(MANIFEST, what, manifest.passing)]
    own = _compared_file(home, MANIFEST, mark) if mark else None
    named = schema.items(manifest.value, "files")[:_MOST_COMPARED]
    known = {text(each, "path", 300) for each in named}
    compared = (_compared_file(home, text(each, "path", 300), each.get("sha256")) for each in named)
    more = (Difference(name, MORE) for name in sorted(set(_bundle_names(home)) - known))
    return [each for each in (own, *compared, *more) if each is not None]


def _compared_file(home: Path, name: str, digest: object) -> Difference | None:
    path = schema.inside(home, name)
    if path is None:
        return Difference(name, OUTSIDE)
    try:
        found = hashlib.sha256(read_bounded(path, _LARGEST_BUNDLE_FILE)).hexdigest()
    except Unreadable as error:
        return Difference(name, MISSING if error.missing else error.reason, error.passing)
    return None if found == digest else Difference(name, CHANGED)


def _bundle_names(home: Path) -> Iterator[str]:
    """The files and folders of a bundle, but what the programs add themselves."""
    try:
        found = sorted(os.listdir(home))[: 2 * _MOST_COMPARED]
    except OSError:
        return
    for name in found:
        if name not in (MANIFEST, *_ADDED) and not is_leftover(name):
            yield clean_line(name, 300)


# --- the program that takes the turn


def program_folder(root: Path, turn_id: str) -> Path:
    """The folder for what concerns a turn's program. It need not exist."""
    name = os.fsencode(os.path.realpath(root)) + b"\0" + turn_id.encode(errors="surrogatepass")
    return state_folder() / "governed" / hashlib.sha256(name).hexdigest()[:24]


def program_logs(root: Path, turn_id: str) -> tuple[Path, ...]:
    """Where what the turn's program prints is kept; they need not exist."""
    folder = program_folder(root, turn_id)
    return folder / "stderr.log", folder / "stdout.log"


def read_program_note(root: Path, turn_id: str) -> Identity | None:
    """The process that takes the turn, None where none is noted."""
    try:
        identity = codec.read(Identity, program_folder(root, turn_id) / "process.json")
    except codec.CodecError:
        return None
    return identity if identity.pid > 0 else None


def how_it_ended(root: Path, turn_id: str) -> str:
    """How the program ended that staged the turn's result, where that was not well; one line."""
    try:
        said = (program_folder(root, turn_id) / "ended").read_text(
            encoding="utf-8", errors="replace"
        )
    except OSError:
        return ""
    return clean_line(said, 300)


def is_program_running(root: Path, turn_id: str) -> bool:
    """Whether the turn's program is running now, whoever started it."""
    return program_state(root, turn_id) is ProgramState.RUNS


class ProgramState(Enum):
    """What is seen of the program that takes a turn."""

    NONE = "none was noted"
    RUNS = "it runs"
    LOST = "it took the turn, and is gone"


def program_state(root: Path, turn_id: str) -> ProgramState:
    """What is seen of the turn's program now, whoever started it."""
    identity = read_program_note(root, turn_id)
    if identity is not None and identity.alive():
        return ProgramState.RUNS
    seen = claims.seen(root, of_turn(turn_id))
    if seen.child is not None:
        return ProgramState.RUNS
    if identity is None and (seen.owner is None or seen.owner.child is None):
        return ProgramState.NONE
    return (
        ProgramState.LOST if unrecorded_program(root, turn_id, seen) is None else ProgramState.RUNS
    )


def unrecorded_program(root: Path, turn_id: str, seen: Seen) -> Identity | None:
    """The program of a taker that was killed before it noted which one that is."""
    owner = seen.owner
    if owner is None or not seen.mine or owner.child != owner.process:
        return None  # the program was noted: what runs and bears its mark is what it left behind
    return bearer(ATTEMPT, os.fspath(program_folder(root, turn_id)))


def runs_elsewhere(root: Path, turn_id: str) -> Seen | None:
    """The program that runs and that this account's own folder does not know, None where none."""
    found = claims.seen(root, of_turn(turn_id))
    return found if found.child is not None else None


BY_A_HUMAN = "approved by a human"

MET = {True: "met", False: "not met", None: "cannot be known"}

_LARGEST_PLANNING_FILE = 1 << 20

_SECTIONS = {
    "SYSTEM_SPEC.md": ("Purpose", "Interface", "Acceptance Tests"),
    "IMPLEMENTATION_NOTES.md": ("Changes", "Verification"),
    "RELEASE_NOTES.md": ("User Impact", "Verification Summary"),
}

_PLACEHOLDER = re.compile(r"^(?:\(.*\)|<.*>|\[.*\]|_.*_|TBD.*|-)?$", re.I)


def predicates(
    root: Path, config: Object, gate: str, verification: str | None
) -> tuple[Predicate, ...]:
    """What a gate demands besides a human's approval, each met or not.

    Args:
        root: the repository.
        config: the configuration.
        gate: the gate's name.
        verification: what the latest accepted turn says of it; None where there is none.
    """
    rule = decode(Config, config).gates.get(gate)
    if rule is None:
        return ()
    found = [_file_predicate(root, name) for name in rule.requires_files[:50]]
    if rule.requires_verification_pass:
        said = "no turn was accepted yet"
        if verification is not None:
            said = f"the latest accepted turn says {verification or 'nothing about verification'}"
        met = verification in ("pass", "attested_pass")
        found.append(Predicate("verification", "verification passed", met, said))
    return tuple(found)


def unknown(demanded: Iterable[Predicate]) -> str:
    """Why it cannot be found out now what of a gate is met, "" where it can."""
    said = [f"{each.name}: {each.reason}" for each in demanded if each.unknown]
    return f"files that the gate requires cannot be read now: {', '.join(said)}" if said else ""


def gates_of_run(run: Run, phase: str = "") -> tuple[model.Gate, ...]:
    """The predicates of the gate that ends a phase (by default the current one), met or not."""
    gate = run.settings.route(phase or run.phase).exit_gate
    rule = run.settings.gates.get(gate)
    if rule is None:
        return ()
    found = []
    for each in predicates(run.root, run.config.value, gate, latest_verification(run, phase)):
        name = clean_line(each.name, 200)
        document = name if each.kind == "file" else None
        met = None if each.unknown else each.met
        found.append(model.Gate(name, met, document, evidence=clean_line(each.reason, 400)))
    if rule.requires_human_approval:
        passed = schema.obj(run.state.value, "phase_gate_status").get(gate) == "passed"
        found.append(model.Gate(f"{gate}: {BY_A_HUMAN}", passed))
    return tuple(found)


def lacking(run: Run, phase: str = "") -> tuple[model.Gate, ...]:
    """The predicates that are not met, besides the approval itself; as `gates`."""
    return tuple(
        gate
        for gate in gates_of_run(run, phase)
        if gate.met is False and not gate.label.endswith(BY_A_HUMAN)
    )


def latest_verification(run: Run, phase: str = "") -> str | None:
    """What the latest accepted turn (of a phase) says of its verification; None without one."""
    accepted = reversed(run.accepted)
    last = next((turn for turn in accepted if not phase or turn.phase == phase), None)
    return None if last is None else last.normalized_verification or last.verification


def _file_predicate(root: Path, name: str) -> Predicate:
    path = schema.inside(root, name)
    if path is None:
        return Predicate("file", name, False, "leads out of the repository")
    try:
        content = read_bounded(path, _LARGEST_PLANNING_FILE).decode("utf-8", "replace")
    except Unreadable as error:
        return Predicate("file", name, False, error.reason, error.missing, error.passing)
    lacking = lacks(path.name, content)
    return Predicate("file", name, not lacking, lacking)


def lacks(name: str, content: str) -> str:
    """What a planning file lacks so that its gate is met, "" where nothing."""
    lines = [line.strip() for line in content.splitlines()]
    if name == "PM_SIGNOFF.md":
        met = any(re.fullmatch(r"approved:\s*yes", line, re.I) for line in lines)
        return "" if met else "no line says “Approved: YES”"
    if name == "ship-verdict.md":
        met = any(re.fullmatch(r"## verdict:\s*(yes|ship|ship it)", line, re.I) for line in lines)
        return "" if met else "no line says “## Verdict: YES”"
    if name == "acceptance-matrix.md":
        return _matrix(lines)
    missing = [title for title in _SECTIONS.get(name, ()) if not _is_filled(lines, title)]
    return f"not filled in: {', '.join(missing)}" if missing else ""


def _is_filled(lines: list[str], title: str) -> bool:
    within = False
    for line in lines:
        if line.startswith("## "):
            within = line[3:].strip().casefold() == title.casefold()
        elif within and not line.startswith("#") and not _PLACEHOLDER.match(line):
            return True
    return False


def _matrix(lines: list[str]) -> str:
    rows: list[list[str]] = []
    header: list[str] | None = None
    for line in lines:
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if header is None:
            header = cells if cells[0].casefold() == "req #" else None
        elif len(cells) > 1 and set("".join(cells)) - set("-: ") and not cells[0].startswith("("):
            rows.append(cells)
    if header is None or not rows:
        return "no requirement has a row"
    at = next((i for i, cell in enumerate(header) if cell.casefold() == "status"), len(header) - 1)
    bad = [row[0] for row in rows if len(row) <= at or row[at].upper() not in _GOOD]
    return f"not passed: {clean_line(', '.join(bad), 200)}" if bad else ""


_GOOD = ("PASS", "PASSED", "OK", "YES")

_LARGEST_SCRIPT = 4 << 20  # bytes of a script


def asked_permissions(config: Object) -> list[str]:
    """What is to be allowed, a line each; empty where nothing is."""
    lines, programs = [], decode(Programs, config)
    for phase, hooks in sorted(programs.hooks.items()):
        for hook in hooks:
            what = clean_line(hook.url, 500) or " ".join(hook.command)
            lines.append(clean_line(f"hook {phase}, {hook.name}: {what}", 600))
    for name, runtime in sorted(programs.runtimes.items()):
        if runtime.base_url:
            key = f", which is sent the key in {runtime.auth_env}" if runtime.auth_env else ""
            lines.append(clean_line(f"runtime {name}: the service at {runtime.base_url}{key}", 600))
    return lines


def permissions_fingerprint(root: Path, config: Object) -> str:
    """What is to be allowed, with the scripts of the repository that it runs, as a digest."""
    scripts: dict[str, str] = {}
    for hooks in decode(Programs, config).hooks.values():
        for hook in hooks:
            for word in hook.command:
                path = schema.inside(root, word)
                if path is not None and path.is_file():
                    scripts[word] = _script_digest(path)
    services = {
        name: [runtime.get("base_url"), runtime.get("auth_env"), runtime.get("provider")]
        for name, runtime in objects(config.get("runtimes")).items()
        if runtime.get("base_url")
    }
    content = {"hooks": config.get("hooks"), "services": services, "scripts": scripts}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def is_trusted(root: Path) -> bool:
    """Whether what the configuration asks for, as it stands, was allowed."""
    config = schema.read_object(root / schema.CONFIG).value
    if not asked_permissions(config):
        return True
    known = schema.read_object(trusted_file()).value
    return known.get(os.path.realpath(root)) == permissions_fingerprint(root, config)


def _script_digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_bounded(path, _LARGEST_SCRIPT)).hexdigest()
    except Unreadable as error:
        return error.reason


def trusted_file() -> Path:
    return state_folder() / "governed" / "trusted-runs.json"
