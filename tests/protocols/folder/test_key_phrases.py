"""Programs that call the skill's scripts look for certain words in what these print: they stay."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.protocols.folder.schema.records import EVENTS_V1, EVENTS_V2, SCRIPTS
from tests.protocols.folder.acting import Ran, acp
from tests.protocols.folder.support import GATES, age, edit, extend, make_v1, make_v2
from tests.protocols.folder.test_prompts import SENTENCES

COMMANDS = {script.name: script.command for script in SCRIPTS}
INIT, APPEND, NEXT, WAIT, VALIDATE = COMMANDS
CHECKED = ("- [ ] Ready", "- [x] Ready")


Run = Callable[..., Ran]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a script of the skill, by its file's name."""

    def run(name: str, *arguments: object) -> Ran:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", [f"/skill/scripts/{name}"])
            return acp(COMMANDS[name], *map(str, arguments))

    return run


FLAGS = {
    INIT: (
        "--folder --participant --objective --completion --resume --primary-deliverable-type "
        "--primary-deliverable-file --primary-deliverable-check --deliverables-mode "
        "--deliverables-dir --repo-root"
    ),
    APPEND: "--folder --participant --event --summary --doc --reply-to --role --sha256",
    NEXT: "--folder --participant",
    WAIT: "--folder --participant --interval --timeout",
    VALIDATE: "--folder",
}


@pytest.mark.parametrize("name", FLAGS)
def test_the_help_of_a_script_names_its_flags(script: Run, name: str) -> None:
    ran = script(name, "--help")
    assert ran.code == 0 and ran.out.startswith(f"Usage: {name}")
    assert set(FLAGS[name].split()) <= set(re.findall(r"--[a-z0-9-]+", ran.out))


def test_the_help_of_waiting_says_for_how_long(script) -> None:
    told = " ".join(script(WAIT, "--help").out.split())
    assert "defaults to 1800 seconds" in told and "[default: 2" in told


def test_an_unknown_event_is_a_usage_error_that_lists_the_choices(script: Run, fresh: Path) -> None:
    ran = appended(script, fresh, "server", "withdrawn", 1)
    assert ran.code == 2 and all(event in ran.err for event in (*EVENTS_V1, *EVENTS_V2))


def appended(
    script: Run, folder: Path, who: str, event: str, reply_to: int | None, *more: str
) -> Ran:
    reply = () if reply_to is None else ("--reply-to", reply_to)
    return script(
        APPEND, "--folder", folder, "--participant", who, "--event", event,
        "--summary", "Done.", *reply, *more,
    )  # fmt: skip


class TestAppend:
    def test_an_event_that_goes_in(self, script: Run, fresh: Path) -> None:
        ran = appended(script, fresh, "server", "proposal_submitted", 1)
        assert (ran.code, ran.out) == (0, "appended seq 2: proposal_submitted\n")

    @pytest.mark.parametrize(
        ("upto", "who", "event", "reply_to", "words"),
        [
            ("drafting", "server", "completed", 1, "seq 2: completed is not allowed from phase drafting"),
            ("drafting", "reader", "proposal_submitted", 1, "seq 2: proposal submission is reserved for server; got reader"),
            ("reviewing", "server", "review_submitted", 2, "seq 3: review submission is reserved for reader, reviewer; got server"),
            ("revising", "reader", "proposal_revised", 2, "proposal revision is reserved for server; got reader"),
            ("revising", "reader", "decision_proposed", 2, "decision proposal is reserved for server; got reader"),
            ("decision_review", "reader", "question_classified", 2, "question classification is reserved for server; got reader"),
            ("decision_review", "server", "decision_accepted", 2, "decision_accepted requires question_classified after the latest proposal or decision"),
            ("readiness_check", "reader", "readiness_passed", 2, "readiness pass is reserved for server; got reader"),
            ("readiness_check", "server", "completed", 2, "completed requires a prior readiness_passed event"),
            ("readiness_check", "server", "completed", 2, "completed must reference conclusion.md"),
            ("passed", "reader", "completed", 2, "completion is reserved for server; got reader"),
            ("passed", "server", "completed", 2, "completed must reference conclusion.md"),
            ("completed", "reader", "blocked", 2, "blocked is not allowed from phase completed"),
            ("drafting", "ghost", "blocked", 1, "participant 'ghost' is not listed in protocol.json"),
            ("drafting", "server", "proposal_submitted", 9, "reply_to must point to an existing event"),
            ("drafting", "server", "proposal_submitted", None, "reply_to is required after initialized"),
            ("drafting", "server", "initialized", 1, "initialized must be seq 1"),
            ("readiness_check", "server", "readiness_passed", 2, "readiness.md must check 'Ready to implement' first"),
        ],
    )  # fmt: skip
    def test_what_the_log_refuses(
        self, script: Run, tmp_path: Path, upto: str, who: str, event: str, reply_to: int | None, words: str
    ) -> None:  # fmt: skip
        ran = appended(script, make_v1(tmp_path / "run", upto), who, event, reply_to)
        assert ran.code == 2 and ran.out == ""
        assert ran.err.startswith("error: ") and words in ran.err

    @pytest.mark.parametrize(
        ("upto", "event", "doc", "role", "words"),
        [
            ("drafting", "proposal_submitted", "", "", "proposal_submitted requires prior primary deliverable_drafted"),
            ("readiness_check", "readiness_passed", "", "", "readiness_passed requires primary deliverable_frozen"),
            ("drafting", "deliverable_drafted", "deliverables/decision.md", "", "deliverable events require role"),
            ("drafting", "deliverable_drafted", "", "primary", "deliverable events require doc"),
            ("drafting", "deliverable_drafted", "proposal.md", "primary", "doc must reference the primary deliverable"),
            ("drafting", "deliverable_drafted", "proposal.md", "supporting", "doc must reference a declared supporting deliverable"),
            ("passed", "deliverable_revised", "deliverables/decision.md", "primary", "deliverable_revised is not allowed"),
            ("passed", "deliverable_frozen", "deliverables/decision.md", "primary", "primary deliverable can be frozen only once"),
        ],
    )  # fmt: skip
    def test_what_deliverables_refuse(
        self, script: Run, tmp_path: Path, upto: str, event: str, doc: str, role: str, words: str
    ) -> None:
        folder = make_v2(tmp_path / "run", upto)
        more = (*(("--doc", doc) if doc else ()), *(("--role", role) if role else ()))
        ran = appended(script, folder, "server", event, 1, *more)
        assert ran.code == 2 and words in ran.err, ran.err

    @pytest.mark.parametrize(
        ("upto", "event", "what"),
        [("revising", "deliverable_drafted", "deliverable draft"),
         ("revising", "deliverable_revised", "deliverable revision"),
         ("readiness_check", "deliverable_frozen", "deliverable freeze")],
    )  # fmt: skip
    def test_deliverables_are_the_owners(
        self, script: Run, tmp_path: Path, upto: str, event: str, what: str
    ) -> None:
        folder = make_v2(tmp_path / "run", upto)
        more = ("--doc", "deliverables/decision.md", "--role", "primary")
        ran = appended(script, folder, "reader", event, 1, *more)
        assert ran.code == 2 and f"{what} is reserved for server; got reader" in ran.err

    def test_what_is_not_there_cannot_be_frozen(self, script: Run, tmp_path: Path) -> None:
        folder = make_v2(tmp_path / "run", "readiness_check")
        (folder / "deliverables/decision.md").unlink()
        more = ("--doc", "deliverables/decision.md", "--role", "primary")
        ran = appended(script, folder, "server", "deliverable_frozen", 2, *more)
        assert ran.code == 2 and "deliverable_frozen doc does not exist" in ran.err

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("- [blocking] No access", "blocking readiness items must be cleared first"),
            ("- [unresolved] Who pays?", "unresolved readiness questions must be classified first"),
            ("- [deferred_nonblocking] Later", "deferred_nonblocking readiness items require a reason"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize(
        ("upto", "event"), [("classified", "decision_accepted"), ("readiness_check", "readiness_passed")]
    )  # fmt: skip
    def test_what_readiness_refuses(
        self, script: Run, tmp_path: Path, upto: str, event: str, line: str, words: str
    ) -> None:
        folder = make_v1(tmp_path / "run", upto)
        extend(folder, f"\n{line}\n", "readiness.md")
        ran = appended(script, folder, "server", event, 2)
        assert ran.code == 2 and words in ran.err

    def test_what_the_end_refuses(self, script: Run, tmp_path: Path) -> None:
        folder = make_v1(tmp_path / "run", "passed")
        (folder / "conclusion.md").write_text(
            "## Decision Outcome\n\n- [blocked] TBD\n\n## Rationale\n\nTBD\n"
        )
        edit(folder, "readiness.md", f"- [x] {GATES[1]}", f"- [ ] {GATES[1]}")
        ran = appended(script, folder, "server", "completed", 2, "--doc", "conclusion.md")
        assert ran.code == 2
        for words in (
            f"completion gates must be checked first: {GATES[1]}",
            "conclusion.md is missing required sections: Accepted Decisions, Implementation Approach",
            "conclusion.md outcome cannot be completed while blocked",
            "conclusion.md must not contain unresolved placeholders before completed",
        ):
            assert words in ran.err, ran.err
        (folder / "conclusion.md").write_text("## Decision Outcome\n")
        ran = appended(script, folder, "server", "completed", 2, "--doc", "conclusion.md")
        assert "conclusion.md must declare exactly one final outcome" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--participant a --participant b --completion Done", "--objective must not be blank"),
        ("--objective X --completion Done", "at least one non-blank --participant is required"),
        ("--objective X --participant a --participant b", "at least one non-blank --completion is required"),
        ("--objective X --participant a --completion D --primary-deliverable-type adr", "at least two non-blank --participant values are required"),
        ("OK --primary-deliverable-type custom", "custom deliverables require --primary-deliverable-file"),
        ("OK --primary-deliverable-type custom --primary-deliverable-file a.md", "custom deliverables require at least one --primary-deliverable-check"),
        ("OK --primary-deliverable-type adr --primary-deliverable-file a.txt", "primary deliverable file must end with .md"),
        ("OK --primary-deliverable-type adr --primary-deliverable-file ../a.md", "primary deliverable file must be relative and must not contain .."),
        ("OK --primary-deliverable-type adr --deliverables-dir /tmp", "--deliverables-dir must be relative and must not contain .."),
        ("OK --primary-deliverable-type adr --deliverables-dir ../x", "--deliverables-dir must be relative and must not contain .."),
        ("OK --primary-deliverable-type adr --deliverables-mode external", "--repo-root is required when --deliverables-mode external"),
        ("OK --primary-deliverable-type adr --deliverables-mode external --repo-root /tmp", "--repo-root must be relative to the collaboration folder"),
        ("OK --primary-deliverable-type adr --repo-root ..", "--repo-root is only allowed when --deliverables-mode external"),
    ],
)  # fmt: skip
def test_what_init_refuses(script: Run, tmp_path: Path, arguments: str, words: str) -> None:
    sound = "--objective X --participant a --participant b --completion Done"
    given = arguments.replace("OK", sound).split()
    ran = script(INIT, "--folder", tmp_path / "run", *given)
    assert ran.code == 2 and words in ran.err, ran.err


@pytest.mark.parametrize("kind", ["", "adr"])
def test_what_init_says(script: Run, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "run"
    given = ["--folder", folder, "--objective", "X", "--completion", "Done"]
    given += ["--participant", "a", "--participant", "b"]
    given += ["--primary-deliverable-type", kind] if kind else []
    ran = script(INIT, *given)
    if kind:
        assert ran.out == f"Initialized ACP schema v2 collaboration folder: {folder}\n"
    else:
        assert ran.out == f"Initialized ACP collaboration folder: {folder}\nstate seq: 1\n"
    again = script(INIT, *given)
    assert again.code == 2
    assert (
        "collaboration folder already contains protocol.json; use --resume to acknowledge it"
        in again.err
    )
    resumed = script(INIT, *given, "--resume")
    assert resumed.out.startswith(f"Collaboration folder already exists: {folder}\n")


MORE_SENTENCES = [
    ("v2", "classified", "reader", "review decisions.md and append decision_accepted only if decisions are explicit."),
    ("v2", "completed", "reader", "stop; collaboration is complete."),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "upto", "who", "sentence"), [*SENTENCES, *MORE_SENTENCES])
def test_what_next_says(
    script: Run, tmp_path: Path, dialect: str, upto: str, who: str, sentence: str
) -> None:
    folder = (make_v1 if dialect == "v1" else make_v2)(tmp_path / "run", upto)
    ran = script(NEXT, "--folder", folder, "--participant", who)
    phase = {"classified": "decision_review", "passed": "readiness_check"}.get(upto, upto)
    lines = ran.out.splitlines()
    assert ran.code == 0 and lines[:2] == [f"phase: {phase}", "proposal owner: server"]
    assert lines[2].startswith("waiting for: ") and re.match(
        r"last event: seq \d+ \w+ from", lines[3]
    )
    assert lines[4].startswith(f"next action: {sentence}")


def test_scripts_name_scripts_and_acp_names_its_commands(script: Run, tmp_path: Path) -> None:
    passing = make_v1(tmp_path / "v1", "readiness_check")
    freezing = make_v2(tmp_path / "v2", "readiness_check")
    ending = make_v1(tmp_path / "end", "passed")
    for folder in (passing, freezing):
        edit(folder, "readiness.md", *CHECKED)
    done = make_v1(tmp_path / "done", "completed")
    (ending / "conclusion.md").write_bytes((done / "conclusion.md").read_bytes())
    empty = make_v1(tmp_path / "empty", "drafting")
    (empty / "events.jsonl").write_bytes(b"")
    age(empty)
    sentences = {
        passing: "run {}, then append readiness_passed.",
        freezing: "freeze the primary deliverable with deliverable_frozen, run {}, then append readiness_passed.",
        ending: "run {}, then append completed with doc=conclusion.md.",
    }  # fmt: skip
    for folder, sentence in sentences.items():
        asked = ("--folder", folder, "--participant", "server")
        expected = f"next action: {sentence}\n"
        assert script(NEXT, *asked).out.endswith(expected.format("validate_collaboration.py"))
        assert script(WAIT, *asked).out.endswith(expected.format("validate_collaboration.py"))
        assert acp("next", *asked).out.endswith(expected.format("acp validate"))
        assert acp("wait", *asked).out.endswith(expected.format("acp validate"))
    asked = ("--folder", empty, "--participant", "server")
    assert "run init_collaboration.py --resume" in script(NEXT, *asked).out
    assert "run acp init --resume" in acp("next", *asked).out


def test_a_folder_that_cannot_be_validated(script: Run, tmp_path: Path, folder: Path) -> None:
    ran = script(VALIDATE, "--folder", tmp_path)
    assert ran.code == 2
    assert f"ERROR: missing protocol.json in {tmp_path}" in ran.out
    (folder / "protocol.json").write_text("{")
    age(folder)
    assert "ERROR: invalid protocol.json: " in script(VALIDATE, "--folder", folder).out
