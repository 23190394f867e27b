"""Every rule speaks where it should, in known words, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.protocols.folder.rules.checks import validate
from acp_core.protocols.folder.rules.codes import CODES
from acp_core.protocols.folder.schema.records import SHOWN, Finding, Report
from tests.protocols.folder.damage import (
    Damage,
    both,
    change,
    check,
    event,
    gave_way,
    line,
    link_out,
    more,
    names,
    remove,
    swap,
    write,
)
from tests.protocols.folder.support import (
    GATES,
    UPTO,
    age,
    change_protocol,
    line_of,
    make_v1,
    make_v2,
    read_protocol,
    write_protocol,
)


def concluded(more_text: str) -> Damage:
    """A conclusion that is finished, but for what is added."""

    def damage(folder: Path) -> None:
        done = make_v1(folder.parent / "done", "completed") / "conclusion.md"
        write("conclusion.md", done.read_text() + more_text)(folder)

    return damage


# code, story, how far it went, what was done to the folder, and what is said of it
V1: list[tuple[str, str, Damage, str]] = [
    ("ACP101", "reviewing", remove("proposal.md"), "missing proposal.md"),
    ("ACP101", "reviewing", remove("events.jsonl"), "missing events.jsonl"),
    ("ACP102", "reviewing", write("state.log", ""), "state.log is not part of the protocol; remove it and use events.jsonl/readiness.md instead"),
    ("ACP103", "reviewing", write("review.md", b"\xff"), "review.md cannot be read: not UTF-8 at byte 1"),
    ("ACP103", "reviewing", write("review.md", b" " * ((4 << 20) + 1)), "review.md cannot be read: larger than 4194304 bytes"),
    ("ACP110", "reviewing", write("protocol.json", ""), "invalid protocol.json: Expecting value: line 1 column 1 (char 0)"),
    ("ACP111", "reviewing", remove("protocol.json"), "missing protocol.json in "),
    ("ACP112", "reviewing", change(currentPhase="thinking"), "currentPhase must be one of ['drafting', 'reviewing', 'revising', 'decision_review', 'readiness_check', 'completed', 'blocked']"),
    ("ACP113", "reviewing", change(objective="  "), "protocol.json objective must not be blank"),
    ("ACP114", "reviewing", change(participants=[]), "protocol.json participants must not be empty"),
    ("ACP115", "reviewing", change(completionGates=[]), "protocol.json completionGates must not be empty"),
    ("ACP116", "reviewing", change(version=1), "protocol.json must not include a protocol version field"),
    ("ACP117", "reviewing", change(completionGates=["see state.log"]), "completion gate must not reference obsolete file state.log"),
    ("ACP118", "reviewing", change(waitingFor=None), "protocol.json waitingFor must be present"),
    ("ACP119", "reviewing", change(proposalOwner=None), "protocol.json proposalOwner must be present"),
    ("ACP120", "reviewing", change(participants=["server", {"id": "reader"}, {"name": "reviewer"}]), "protocol.json participants[2] has no id"),
    ("ACP121", "drafting", change(participants=["server", *(f"p{n}" for n in range(1000))]), "protocol.json has more than 1000 participants"),
    ("ACP122", "reviewing", change(completionGates=[5]), "completionGates[1] must be a text"),
    ("ACP131", "reviewing", change(schemaVersion=3), "protocol.json schemaVersion must be 2"),
    ("ACP150", "reviewing", change(currentPhase="revising"), "protocol.json currentPhase is revising, expected reviewing"),
    ("ACP151", "reviewing", change(waitingFor=["server"]), "protocol.json waitingFor is ['server'], expected ['reader', 'reviewer']"),
    ("ACP151", "reviewing", change(proposalOwner="reader"), "protocol.json proposalOwner is 'reader', expected 'server'"),
    ("ACP201", "reviewing", more("events.jsonl", "{oops}\n"), "events.jsonl line 3: invalid JSON: "),
    ("ACP202", "reviewing", more("events.jsonl", "[]\n"), "events.jsonl line 3: event must be an object"),
    ("ACP203", "reviewing", more("events.jsonl", "[" * 40 + "\n"), "events.jsonl line 3: nested deeper than 32"),
    ("ACP204", "reviewing", line(1, summary="a\u2028b"), "events.jsonl line 2: holds a raw U+0085, U+2028 or U+2029"),
    ("ACP205", "reviewing", write("events.jsonl", ""), "events.jsonl is empty"),
    ("ACP206", "reviewing", both(remove("events.jsonl"), lambda f: (f / "events.jsonl").mkdir()), "events.jsonl: is a folder, not a regular file"),
    ("ACP207", "reviewing", more("events.jsonl", '{"seq":3,'), "events.jsonl line 3: invalid JSON: "),
    ("ACP208", "reviewing", more("events.jsonl", "\n" * 1_000_000), "events.jsonl is larger than acp reads it"),
    ("ACP210", "reviewing", line(1, summary=None), "seq 2: missing required field summary"),
    ("ACP211", "reviewing", line(1, event="pondered"), "seq 2: unknown event 'pondered'"),
    ("ACP212", "drafting", event("ghost", "blocked"), "seq 2: participant 'ghost' is not listed in protocol.json"),
    ("ACP213", "reviewing", line(1, reply_to=7), "seq 2: reply_to must point to an earlier event"),
    ("ACP213", "reviewing", line(1, reply_to=2), "seq 2: reply_to must point to an earlier event"),
    ("ACP213", "reviewing", line(1, reply_to=True), "seq 2: reply_to must point to an earlier event"),
    ("ACP214", "reviewing", line(1, at="noon"), "seq 2: at must be an ISO-8601 timestamp"),
    ("ACP214", "reviewing", line(1, at="2026-01-02T03:14:05"), "seq 2: at must be an ISO-8601 timestamp"),
    ("ACP214", "reviewing", line(1, at="2026-01-02"), "seq 2: at must be an ISO-8601 timestamp"),
    ("ACP215", "reviewing", line(1, seq=5), "events.jsonl: expected seq 2, found 5"),
    ("ACP215", "reviewing", line(1, seq=2.0), "events.jsonl: expected seq 2, found 2.0"),
    ("ACP215", "drafting", line(0, seq=True), "events.jsonl: expected seq 1, found True"),
    ("ACP216", "reviewing", line(1, reply_to=None), "seq 2: reply_to is required after initialized"),
    ("ACP217", "reviewing", line(1, at="2026-01-02T03:04:04Z"), "seq 2: at must not be earlier than the previous event"),
    ("ACP301", "revising", write("review.md", "# Reviews\n"), "seq 3: review_submitted requires matching review.md heading"),
    ("ACP302", "reviewing", more("review.md", "## t - reader - seq 3\n"), "review.md heading seq 3: no matching event"),
    ("ACP302", "reviewing", more("review.md", f"## t - reader - seq {'9' * 5000}\n"), "review.md heading seq 99999999999999999999…: no matching event"),
    ("ACP303", "reviewing", more("review.md", "## t - reader - seq 2\n"), "review.md heading seq 2: matching event is proposal_submitted, not review_submitted"),
    ("ACP304", "revising", more("review.md", "## t - reviewer - seq 3\n"), "review.md heading seq 3: participant 'reviewer' does not match event from 'reader'"),
    ("ACP310", "readiness_check", more("readiness.md", "- [blocking] x\n"), "blocking readiness items must be cleared before decision_accepted"),
    ("ACP310", "passed", more("readiness.md", "- [blocking] x\n"), "blocking readiness items must be cleared before readiness_passed or completed"),
    ("ACP311", "readiness_check", more("readiness.md", "- [unresolved] x\n"), "unresolved readiness questions must be classified before decision_accepted"),
    ("ACP311", "passed", more("readiness.md", "- [resolved] TBD\n"), "unresolved readiness questions must be classified before readiness_passed or completed"),
    ("ACP312", "readiness_check", more("readiness.md", "- [deferred_nonblocking] x\n"), "deferred_nonblocking readiness items require a reason before decision_accepted"),
    ("ACP312", "passed", more("readiness.md", "- [deferred_nonblocking] x\n"), "deferred_nonblocking readiness items require a reason"),
    ("ACP313", "passed", swap("readiness.md", "- [x] Ready", "- [ ] Ready"), "readiness.md must check 'Ready to implement' before readiness_passed or completed"),
    ("ACP314", "completed", swap("readiness.md", f"- [x] {GATES[1]}", f"- [ ] {GATES[1]}"), f"completion gates must be checked before completed: {GATES[1]}"),
    ("ACP315", "drafting", more("readiness.md", "- [deferred_nonblocking] x\n"), "deferred_nonblocking readiness items should include a reason"),
    ("ACP320", "completed", swap("conclusion.md", "## Rationale", "## Why"), "conclusion.md is missing required sections: Rationale"),
    ("ACP321", "completed", more("conclusion.md", "- [defer] No\n"), "conclusion.md must declare exactly one final outcome"),
    ("ACP322", "completed", swap("conclusion.md", "[proceed]", "[blocked]"), "conclusion.md outcome cannot be completed while blocked"),
    ("ACP323", "completed", more("conclusion.md", "No unresolved questions.\n"), "conclusion.md must not contain unresolved placeholders before completed"),
    ("ACP401", "drafting", event("reader", "review_submitted"), "seq 2: review_submitted is not allowed from phase drafting"),
    ("ACP402", "reviewing", event("server", "review_submitted"), "seq 3: review submission is reserved for reader, reviewer; got server"),
    ("ACP403", "reviewing", event("server", "initialized"), "initialized must be seq 1"),
    ("ACP404", "drafting", change(participants=["reader", "reviewer"]), "seq 1: initialized participant is not listed in protocol.json"),
    ("ACP405", "reviewing", change(participants=["server"]), "seq 2: proposal_submitted requires at least one reviewer"),
    ("ACP406", "decision_review", event("server", "decision_accepted"), "seq 6: decision_accepted requires question_classified after the latest proposal or decision"),
    ("ACP407", "readiness_check", event("server", "completed", doc="conclusion.md"), "seq 10: completed requires a prior readiness_passed event"),
    ("ACP408", "passed", event("server", "completed", doc="decisions.md"), "seq 11: completed must reference conclusion.md"),
    ("ACP901", "reviewing", swap("events.jsonl", '{"seq":2,', '{"seq":2,"seq":2,'), "seq 2: the line contains the key 'seq' twice"),
    ("ACP902", "reviewing", line(1, summary=5), "seq 2: summary is not a text"),
    ("ACP903", "reviewing", line(1, summary="x" * 2_001), "seq 2: the summary is longer than 2000 characters"),
    ("ACP903", "reviewing", line(1, summary=""), "seq 2: the summary is empty"),
    ("ACP904", "reviewing", line(1, doc="../../etc/passwd"), "seq 2: doc '../../etc/passwd' points outside the folder"),
    ("ACP905", "reviewing", line(1, at="2026-01-02T13:04:05+09:00"), "seq 2: at '2026-01-02T13:04:05+09:00' is not UTC with whole seconds and Z"),
    ("ACP906", "reviewing", lambda f: write("events.jsonl", (f / "events.jsonl").read_bytes()[:-1])(f), "events.jsonl line 2: the newline at the end is missing"),
    ("ACP907", "completed", event("reader", "blocked"), "seq 12: blocked after completed"),
    ("ACP908", "passed", event("server", "readiness_passed"), "seq 11: readiness was passed before"),
    ("ACP910", "reviewing", change(participants=["server", "reader", "reviewer", "reader"]), "protocol.json participants: 'reader' is listed twice"),
    ("ACP911", "drafting", change(participants=["server", "a b"]), "protocol.json participants: the id 'a b' contains characters that are not safe everywhere"),
    ("ACP912", "reviewing", change(completionGates={"a": 1}), "protocol.json completionGates is not a list of texts"),
    ("ACP913", "reviewing", lambda f: link_out(f, "proposal.md"), "proposal.md is a symbolic link that points outside the folder"),
    ("ACP914", "reviewing", lambda f: write("events.jsonl", (f / "events.jsonl").read_bytes().replace(b"\n", b"\r"))(f), "events.jsonl: lines end in carriage returns; write newlines"),
    ("ACP920", "reviewing", change(currentPhase="drafting", waitingFor=["server"]), "protocol.json is out of date with events.jsonl; `acp repair` or the next append updates it"),
    ("ACP922", "drafting", event("reader", "review_submitted"), "events.jsonl can never become valid again: history is never rewritten: append blocked"),
    ("ACP930", "reviewing", more("readiness.md", "* [blocking] x\n"), "readiness.md: “* [blocking] x” does not count"),
    ("ACP931", "reviewing", more("readiness.md", "- [resolved]\n- [blocking] x\n"), "readiness.md: the bare [resolved] uses line 17 as its text, so that line does not count by itself"),
    ("ACP932", "reviewing", more("readiness.md", "## Blocking Issues\n- No access\n"), "readiness.md: “No access” is listed under blockers but is not marked [blocking]"),
    ("ACP933", "drafting", more("readiness.md", "- [deferred_nonblocking] x Reason:\n  y\n"), "readiness.md: Reason: is empty, or continues on the next line"),
    ("ACP934", "drafting", more("readiness.md", "- [resolved] TBD\n"), "readiness.md: [resolved] counts as unresolved because its text contains TBD"),
    ("ACP935", "readiness_check", write("readiness.md", "# Readiness\n"), "readiness.md classifies nothing, but decisions were accepted"),
    ("ACP936", "readiness_check", write("decisions.md", "# Decisions\n"), "decisions.md contains no decision, but decisions were accepted"),
    ("ACP936", "readiness_check", write("decisions.md", "# Decisions\n\n## Accepted Decisions\n\nNone yet. Only what was accepted stands here.\n"), "decisions.md contains no decision, but decisions were accepted"),
    ("ACP937", "passed", swap("readiness.md", f"- [x] {GATES[0]}", f"- [x] {GATES[0]}."), f"readiness.md: the gate “{GATES[0]}” must be checked exactly so"),
    ("ACP937", "readiness_check", swap("readiness.md", "- [ ] Ready to implement", "* [x] Ready to implement"), "readiness.md: “Ready to implement” must begin the line as '- [x] Ready to implement'"),
    ("ACP951", "reviewing", write("proposal.md", "# Proposal\n\n## Purpose\n\nx\n\n## Current Proposal\n\nNot written yet.\n"), "proposal.md was submitted but contains no proposal"),
    ("ACP952", "classified", swap("readiness.md", "- [resolved] Who starts?", "- [unresolved] Who starts?"), "question_classified was appended, but readiness.md contains unresolved questions"),
    ("ACP953", "drafting", event("reader", "proposal_submitted"), "seq 2: 'reader' owns the proposal from here on, no longer 'server'"),
    ("ACP954", "reviewing", line(1, cost=float("nan")), "seq 2: NaN is a value that JSON does not know"),
    ("ACP955", "reviewing", line(1, at="9999-12-31T23:59:59Z"), "seq 2: at '9999-12-31T23:59:59Z' is in the future"),
    ("ACP914", "drafting", lambda f: write("events.jsonl", (f / "events.jsonl").read_bytes().replace(b"\n", b"\r"))(f), "events.jsonl: lines end in carriage returns; write newlines"),
    ("ACP940", "reviewing", more("review.md", "## reader seq 3\n"), "review.md: the heading “reader seq 3” does not name a review"),
    ("ACP941", "revising", more("review.md", "## t - reader - seq 3\n"), "review.md: two headings name seq 3; the last one counts"),
    ("ACP942", "completed", swap("conclusion.md", "## Rationale", "### Rationale"), "conclusion.md: Rationale must be a heading of level 2"),
    ("ACP943", "completed", more("conclusion.md", "* [defer] No\n"), "conclusion.md: “* [defer] No” does not count as an outcome"),
    ("ACP946", "passed", concluded("There are no unresolved questions.\n"), "conclusion.md: “unresolved” counts as a placeholder"),
    ("ACP944", "completed", more("conclusion.md", "尚待定中\n"), "conclusion.md: 待定 inside a longer word is not seen as a placeholder"),
    ("ACP945", "completed", swap("conclusion.md", "## Next Action\n\nAs agreed.", "## Next Action"), "conclusion.md: Next Action is empty"),
    ("ACP956", "drafting", more("proposal.md", "So\u200b\U000e0041.\n"), "proposal.md: line 6 holds 2 characters that people cannot see; programs read “A”"),
    ("ACP957", "reviewing", gave_way("proposal.md"), "proposal.md was changed here and on another host: the text of this host is in .acp/kept/proposal.md.20260101T000000Z.laptop"),
    ("ACP958", "reviewing", gave_way("events.jsonl"), "events that were appended here without acp are in .acp/kept/events.jsonl.20260101T000000Z.laptop: the store took others first"),
]  # fmt: skip

# one more of the same, and what only happens between two looks
ELSEWHERE = {"ACP290", "ACP921"}


@pytest.mark.parametrize(("code", "upto", "damage", "text"), V1, ids=names(V1))
def test_a_rule_speaks(tmp_path: Path, code: str, upto: str, damage: Damage, text: str) -> None:
    folder = make_v1(tmp_path / "run", upto)
    assert code not in {finding.code for finding in validate(folder).findings}
    damage(folder)
    check(folder, validate(folder), code, text)


def test_every_code_is_tested_and_explained() -> None:
    from tests.protocols.folder.test_rules_deliverables import V2

    tested = {case[0] for case in (*V1, *V2)} | ELSEWHERE
    assert tested == set(CODES)


@pytest.mark.parametrize("make", [make_v1, make_v2])
@pytest.mark.parametrize("upto", UPTO)
def test_a_sound_collaboration_is_valid_at_every_point(
    tmp_path: Path, make: Callable[..., Path], upto: str
) -> None:
    for folder in (
        make(tmp_path / "one", upto),
        make(tmp_path / "rounds", upto, rounds=3) if upto != "drafting" else None,
        make(tmp_path / "blocked", upto, blocked="No access") if upto != "completed" else None,
    ):
        if folder is not None:
            report = validate(folder)
            assert report.findings == ()
            assert report.lines() == ["ACP validation passed"]
            assert report.exit_code(strict=True) == 0


def test_advice_counts_only_when_asked_for(folder: Path) -> None:
    more("readiness.md", "* [blocking] x\n")(folder)
    report = validate(folder)
    assert report.lines() == ["ACP validation passed"]
    assert (report.exit_code(), report.exit_code(strict=True)) == (0, 1)


def test_nothing_further_is_judged_without_protocol_json(folder: Path) -> None:
    write("state.log", "")(folder)
    write("protocol.json", "{")(folder)
    assert [finding.code for finding in validate(folder).findings] == ["ACP110"]
    remove("protocol.json")(folder)
    assert validate(folder).lines()[1] == f"ERROR: missing protocol.json in {folder}"


def test_much_of_the_same_is_counted_not_listed(fresh: Path) -> None:
    lines = b"".join(
        line_of(
            {"seq": n, "from": "ghost", "event": "blocked", "at": "2026-01-02T03:04:05Z",
             "summary": "x", "reply_to": 1}
        )
        for n in range(2, 502)
    )  # fmt: skip
    more("events.jsonl", lines.decode())(fresh)
    report = validate(fresh)
    assert sum(finding.code == "ACP212" for finding in report.findings) == SHOWN
    assert "ERROR: 400 more findings ACP212 are not listed" in report.lines()
    write("review.md", "## t - reader - seq 2\n" + "## t - a - seq 9999\n" * 3)(fresh)
    assert validate(fresh).exit_code() == 2
    many = Report(Finding("ACP101", f"missing {n}") for n in range(1_000))
    assert len(many.findings) == SHOWN + 1


def test_what_is_printed_is_one_safe_line_each(folder: Path) -> None:
    change_protocol(folder, waitingFor=["\x1b]52;c;x\x07\n[/x]"])
    line(1, event="a\x1b[31m\nb")(folder)
    for printed in validate(folder).lines():
        assert printed.isprintable()


def test_a_log_without_protocol_fields_is_not_compared(folder: Path) -> None:
    """An empty log says nothing about the phase: one finding, not four."""
    write("events.jsonl", "")(folder)
    assert [finding.code for finding in validate(folder).findings] == ["ACP205"]


def test_blank_lines_and_crlf_are_fine(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "completed")
    for name in ("events.jsonl", "readiness.md", "review.md", "conclusion.md"):
        text = (folder / name).read_bytes()
        write(name, text.replace(b"\n", b"\r\n") + b"\r\n\r\n")(folder)
    assert validate(folder).lines() == ["ACP validation passed"]


def test_unknown_keys_say_nothing(folder: Path) -> None:
    protocol = read_protocol(folder) | {"continues": {"path": "../x"}, "mine": [1, {"a": None}]}
    write_protocol(folder, protocol)
    line(1, mine={"deep": [1]})(folder)
    age(folder)
    assert validate(folder).findings == ()
