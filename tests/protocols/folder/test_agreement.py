"""Whatever happened to a collaboration, all that speak of it agree, and what they offer works."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from acp_core.__main__ import no_dashboard
from acp_core.cli.main import run
from acp_core.cli.output import act_command
from acp_core.diagnosis import actions, personal_table
from acp_core.diagnosis.engine import diagnose, with_standing
from acp_core.loops.acts import names
from acp_core.model import Matter, Snapshot, SourceState, Status, Verdict
from acp_core.model.errors import Refused
from acp_core.protocols.folder.rules.checks import validate
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import Report
from acp_core.protocols.folder.write import repair
from acp_core.protocols.folder.write.append import Request, prepare
from acp_core.protocols.folder.write.opened import Opened, open_unlocked
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.folder.acting import FolderCollaboration, Ran, acp, open_folder
from tests.protocols.folder.disorder import BEGINNINGS, HAPPENINGS, Happening, befall
from tests.support import examples, forked

BLOCK = "append blocked: the log can never become valid again"
NEW = "history is never rewritten"
COMMAND = re.compile(r"`(acp [^`]+)`")
CHOSEN = re.compile(
    r"\b(?:TEXT|NAME|FOLDER|ACTION)\b|\bacp (?:init|continue|append|validate|next|why)\b"
)
ASKED = re.compile(
    r"refused: say |is deferred: add|required|must not be blank|--\w+: is missing|error: --|\(--\w+\)"
)
ELSEWHERE = names.NAMES | personal_table.NAMES
pytestmark = pytest.mark.usefixtures("in_memory")
FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(FEW, max_examples=examples.MANY)
FEWER = settings(FEW, max_examples=12)

Runner = Callable[[list[str], dict[str, str]], Ran]
Beginning = tuple[Callable[..., Path], str]


def read(folder: Path) -> tuple[FolderCollaboration, Snapshot]:
    """The folder once nothing in it is new any more, with its causes."""
    opened = open_folder(folder)
    now = datetime.now(UTC)
    opened.refresh(now)
    now += timedelta(seconds=10)
    seen = opened.refresh(now)
    return opened, with_standing(seen, diagnose(opened, DiagnosisContext(seen, Clock(now))), None)


def opened_as_writer(folder: Path) -> Opened | str:
    """What a writer finds, or why nothing can be written."""
    try:
        return open_unlocked(str(folder))
    except Refused as error:
        return str(error)


def refusal(opened: Opened, who: str, event: str) -> str:
    """Why an event would be refused now; "" where it would not."""
    doc = "conclusion.md" if event == "completed" else None
    role = None
    if event in records.DELIVERABLE_EVENTS:
        role, doc = "primary", "deliverables/decision.md"
    request = Request(opened.folder, who, event, "x", doc, opened.last_seq, role=role)
    try:
        prepare(opened, request, datetime.now(UTC))
    except Refused as error:
        return str(error)
    return ""


def check_agreement(folder: Path) -> None:
    """The validator, the diagnosis, the repair, the next action and the writes say the same."""
    report = validate(folder)
    collaboration, seen = read(folder)
    if seen.source.state is SourceState.UNREACHABLE:
        return
    assert (seen.verdict is Verdict.INVALID) == (report.verdict == 2), (
        seen.verdict,
        report.lines(),
    )
    over = seen.status in (Status.BLOCKED, Status.COMPLETED) or seen.dialect == "unknown"
    assert not report.errors or over or any(cause.wanted for cause in seen.causes), report.lines()
    keys = {cause.key for cause in seen.causes}
    assert all(each.key in keys for each in seen.obstacles), (keys, seen.obstacles)

    beyond = next((each for each in seen.obstacles if each.key.startswith("log:")), None)
    assert (beyond is not None) == ("ACP922" in {each.code for each in report.findings})
    opened = opened_as_writer(folder)
    if isinstance(opened, str):
        assert seen.obstacles, opened
    check_offers(collaboration, seen)
    if isinstance(opened, Opened):
        check_writes(folder, opened, seen, report, beyond is not None)


def check_offers(collaboration: FolderCollaboration, seen: Snapshot) -> None:
    """What an obstacle refuses is offered by nobody, in lists, by name or as a remedy."""
    offered = {each.name for each in actions.actions(collaboration, seen)}
    own = offered - ELSEWHERE
    assert not [name for name in own if guard.blocking(seen.obstacles, name)]
    for cause in seen.causes:
        if cause.remedy and cause.remedy not in ELSEWHERE:
            assert cause.remedy in offered, (cause, offered)


def check_writes(
    folder: Path, opened: Opened, seen: Snapshot, report: Report, beyond: bool
) -> None:
    """What is said of the log, and what a writer may do with it."""
    hopeless = [
        text for text in repair.diagnose(str(folder), datetime.now(UTC)).hopeless if NEW in text
    ]
    assert bool(hopeless) == beyond, (hopeless, seen.obstacles)
    over = opened.machine.ending or not opened.machine.count
    for who in opened.participants:
        told = acp("next", "--folder", folder, "--participant", who).out.splitlines()[-1]
        assert (BLOCK in told) == bool(beyond and not over), told
        for event in records.events_of(opened.dialect):
            refused = refusal(opened, who, event)
            if beyond and event != "blocked" and "completed" not in opened.machine.last:
                assert NEW in refused, (who, event, refused)
        blocked = refusal(opened, who, "blocked")
        allowed = opened.machine.count and "completed" not in opened.machine.last
        assert bool(blocked) == (not allowed), (who, blocked)
    if not beyond:
        check_turns(opened, seen)


def check_turns(opened: Opened, seen: Snapshot) -> None:
    """An acceptance that documents forbid is named at once, with somebody who can mend them."""
    machine = opened.machine
    if machine.phase != "decision_review" or not machine.classified:
        return
    for who in machine.waiting:
        if who not in opened.participants:
            continue
        refused = refusal(opened, who, "decision_accepted")
        if refused:
            named = [each for each in seen.causes if each.wanted and each.code[0] in "AD"]
            assert named and any(each.remedy or each.instruction for each in named), (
                refused,
                seen.causes,
            )


def cures(seen: Snapshot) -> list[tuple[Matter, str]]:
    """Every command that is printed as a cure, and can be run as it stands."""
    found = []
    for cause in seen.causes:
        # "first X; then Y": X mends another cause, which stands for itself
        advice = (
            cause.instruction.partition("; then ")[2]
            if cause.instruction.startswith("first ")
            else ""
        )
        texts = COMMAND.findall(advice or cause.instruction)
        found += [(cause, text) for text in texts if not CHOSEN.search(text)]
        if cause.remedy and cause.wanted and cause.remedy not in ELSEWHERE:  # those need a program
            found.append((cause, act_command(seen, cause.remedy, cause.given)))
    return found


def asks(words: list[str], said: str) -> bool:
    """Whether a command that was run as printed asks for what its reader has to choose."""
    left = [word for word in words if word.isupper()]  # what stands for it, as NAME
    return bool(ASKED.search(said)) or any(f": {word!r} must" in said for word in left)


def as_process(words: list[str], environment: dict[str, str]) -> Ran:
    """How a command of acp ends that a person types."""
    ran = forked.run(tuple(words), Path(environment["HOME"]), environment, "")
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def in_process(words: list[str], environment: dict[str, str]) -> Ran:
    """The same without a process: in a fraction of its time."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(environment["HOME"]):
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr("sys.stdin", io.StringIO())
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(words, no_dashboard)
    assert "this is a bug in acp" not in err.getvalue(), (words, err.getvalue())
    return Ran(code, out.getvalue(), err.getvalue())


def check_cures(folder: Path, run_words: Runner) -> None:
    """Every command that is printed as a cure exits 0 and changes the cause, or asks for a choice."""
    _, seen = read(folder)
    for cause, command in cures(seen):
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / "run"
            shutil.copytree(folder, copy, symlinks=True)
            words = [word.replace(str(folder), str(copy)) for word in shlex.split(command)[1:]]
            if words[0] == "act":
                words[1:] = [str(copy), *words[2:], "--yes"]  # nobody is there to be asked
            state = {"ACP_STATE": f"{place}/state", "ACP_CONFIG": f"{place}/config", "HOME": place,
                     "PATH": "/usr/bin:/bin"}  # fmt: skip
            ran = run_words(words, state)
            assert ran.out[:1] != "\n" and ran.out[-1:] in ("", "\n"), (command, ran)
            if ran.code and asks(words, ran.out + ran.err):
                continue
            left = words[0] == "repair" and "cannot be repaired" in ran.out + ran.err
            _, after = read(copy)
            assert ran.code == 0 or left or not cause.key.startswith("log:"), (command, ran)
            assert ran.code in (0, 2) and "Traceback" not in ran.err, (command, ran)
            key = cause.key.replace(str(folder), str(copy))
            assert key not in {each.key for each in after.causes if each.wanted}, (command, ran)


@FEW
@given(beginning=BEGINNINGS, happenings=HAPPENINGS)
def test_all_voices_agree(beginning: Beginning, happenings: list[Happening]) -> None:
    with tempfile.TemporaryDirectory() as place:
        check_agreement(befall(Path(place), beginning, happenings))


@pytest.mark.slow
@examples.PATIENT
@MANY
@given(beginning=BEGINNINGS, happenings=HAPPENINGS)
def test_all_voices_agree_at_length(beginning: Beginning, happenings: list[Happening]) -> None:
    with tempfile.TemporaryDirectory() as place:
        check_agreement(befall(Path(place), beginning, happenings))


@FEWER
@given(beginning=BEGINNINGS, happenings=HAPPENINGS)
def test_every_cure_works(beginning: Beginning, happenings: list[Happening]) -> None:
    with tempfile.TemporaryDirectory() as place:
        check_cures(befall(Path(place), beginning, happenings), as_process)


@pytest.mark.slow
@examples.PATIENT
@MANY
@given(beginning=BEGINNINGS, happenings=HAPPENINGS)
def test_every_cure_works_at_length(beginning: Beginning, happenings: list[Happening]) -> None:
    with tempfile.TemporaryDirectory() as place:
        check_cures(befall(Path(place), beginning, happenings), in_process)
