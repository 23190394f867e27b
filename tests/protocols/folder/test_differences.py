"""docs/folder.md lists where acp is stricter or laxer than the existing programs: each is so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.files import locked
from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.schema import records
from tests.hygiene.sources import ROOT
from tests.protocols.folder.acting import Ran, acp, append, block, log
from tests.protocols.folder.damage import Damage, change, event, line, more, write
from tests.protocols.folder.support import edit, extend, line_of, make_v1, make_v2

FROZEN = {"doc": "deliverables/decision.md", "role": "primary"}
LIMITS = pytest.MonkeyPatch


def lists(heading: str) -> dict[str, list[str]]:
    """The lists below a heading of the page, by the last words before each."""
    text = (ROOT / "docs/folder.md").read_text("utf-8").split("## Differences from the", 1)[1]
    part = re.split(r"^##+ ", text.split(f"### {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    found = {}
    for lead, rows in re.findall(r"([^\n]+)\n\n((?:\* .+\n(?:  .+\n)*)+)", part):
        found[lead] = [" ".join(each.split()) for each in re.split(r"^\* ", rows, flags=re.M)[1:]]
    return found


# --- validate ---------------------------------------------------------------------------------


def deep(folder: Path) -> None:
    value = "[" * 40 + "]" * 40
    extend(folder, f'{{"seq":3,"from":"reader","event":"blocked","x":{value}}}\n')


def linked(folder: Path) -> None:
    (folder / "review.md").unlink()
    (folder / "review.md").mkdir()


def many_supporting(folder: Path) -> None:
    protocol = json.loads((folder / "protocol.json").read_text())
    item = {"type": "review-report", "checklist": []}
    protocol["deliverables"]["supporting"] = [item | {"file": f"n{n}.md"} for n in range(101)]
    (folder / "protocol.json").write_text(json.dumps(protocol))


INVALID: dict[str, tuple[tuple[str, Damage, str], ...]] = {
    "an empty events.jsonl, or a log with more than 256 MiB or 1,000,000 lines;": (
        ("v1", write("events.jsonl", ""), "events.jsonl"),
        ("v1", lambda folder: grow(folder, (256 << 20) + 1), "events.jsonl"),
    ),
    "a `seq` or `reply_to` that is not a whole number, or a `reply_to` with the number of its own "
    "event;": (
        ("v1", line(1, seq=2.0), "seq"),
        ("v1", line(1, reply_to="1"), "reply_to"),
        ("v1", line(1, reply_to=2), "reply_to"),
    ),
    "an author who is not listed in protocol.json;": (
        ("v1", line(1, **{"from": "ghost"}), "ghost"),
    ),
    "a raw U+0085, U+2028 or U+2029 in a line: some readers split the line there;": tuple(
        ("v1", line(1, summary=f"Said{sign}so"), "U+") for sign in "\x85\u2028\u2029"
    ),
    "a line with more than 1 MiB or more than 32 levels of nesting, or a document with more than 4 "
    "MiB;": (
        ("v1", line(1, summary="x" * (1 << 20)), "1048576"),
        ("v1", deep, "nested deeper than 32"),
        ("v1", more("review.md", " " * (4 << 20)), "4194304"),
    ),
    "a document that is not a regular file or not UTF-8 (the existing validator ends with an "
    "exception);": (
        ("v1", linked, "review.md"),
        ("v1", write("review.md", b"\xff"), "not UTF-8"),
    ),
    "an unknown `schemaVersion`: acp only reads such a folder;": (
        ("v2", change(schemaVersion=3), "schemaVersion"),
    ),
    "a participant without an id, more than 1,000 participants or 100 supporting deliverables, or a "
    "v1 gate that is not text.": (
        ("v1", change(participants=["server", {"name": "reader"}]), "has no id"),
        ("v1", change(participants=["server", *(f"p{n}" for n in range(1000))]), "1000"),
        ("v2", many_supporting, "100"),
        ("v1", change(completionGates=[5]), "must be a text"),
    ),
}


def grow(folder: Path, size: int) -> None:
    """A log of that many bytes, most of which take no room on the disk."""
    with (folder / "events.jsonl").open("r+b") as file:
        file.truncate(size)


def test_what_only_acp_calls_invalid_is_what_the_page_lists() -> None:
    assert list(
        lists("validate")["`acp validate` is stricter. Only acp reports these as errors:"]
    ) == list(INVALID)


@pytest.mark.parametrize("row", INVALID)
def test_each_of_them_is_an_error(tmp_path: Path, row: str) -> None:
    for number, (dialect, damage, said) in enumerate(INVALID[row]):
        make = make_v1 if dialect == "v1" else make_v2
        folder = make(tmp_path / str(number), "reviewing")
        assert checks.validate(folder).verdict == 0
        damage(folder)
        report = checks.validate(folder)
        assert report.verdict == 2
        assert any(said in each for each in report.lines()), report.lines()


# --- append -----------------------------------------------------------------------------------


def refused(ran: Ran, said: str) -> None:
    assert ran.code == 2 and ran.out == "" and said in ran.err, ran


def after_completed(place: Path) -> None:
    folder = make_v1(place, "completed")
    refused(append(folder, "server", "question_classified", 1), "not allowed from phase completed")


def hopeless(place: Path) -> Path:
    """A log with an early review, which no later event makes valid."""
    folder = make_v1(place, "drafting")
    event("reader", "review_submitted")(folder)
    return folder


def in_a_hopeless_log(place: Path) -> None:
    folder = hopeless(place)
    refused(append(folder, "server", "proposal_revised", 2), "history is never rewritten")


def before_it_is_valid(place: Path) -> None:
    for upto, name, fields in (
        ("readiness_check", "readiness_passed", {}),
        ("passed", "completed", {"doc": "conclusion.md"}),
    ):
        folder = make_v1(place / upto, upto)
        edit(folder, "review.md", "- reader - seq 3", "- reader - sequel 3")
        edit(folder, "readiness.md", "- [ ] Ready", "- [x] Ready") if upto != "passed" else None
        refused(append(folder, "server", name, 9, **fields), "validate must pass first")


def that_would_make_it_invalid(place: Path) -> None:
    folder = make_v2(place, "readiness_check")
    memo = "deliverables/decision.md"
    edit(folder, memo, "Status: Draft", "Status: Frozen")
    wrong = append(folder, "server", "deliverable_frozen", 10, **FROZEN, sha256="0" * 64)
    refused(wrong, "does not match current file")
    edit(folder, memo, "About options.", "")
    refused(append(folder, "server", "deliverable_frozen", 10, **FROZEN), "must not be empty")


def without_readiness(place: Path) -> None:
    for upto, name in (
        ("classified", "decision_accepted"),
        ("readiness_check", "readiness_passed"),
        ("passed", "completed"),
    ):
        folder = make_v1(place / upto, upto)
        (folder / "readiness.md").unlink()
        refused(append(folder, "server", name, 6, doc="conclusion.md"), "missing readiness.md")


def with_a_role(place: Path) -> None:
    folder = make_v1(place, "drafting")
    refused(block(folder, role="primary"), "--role and --sha256 are for deliverable")
    refused(block(folder, sha256="0" * 64), "--role and --sha256 are for deliverable")


def what_cannot_be_written(place: Path) -> None:
    folder = make_v1(place, "drafting")
    refused(block(folder, doc="../secret"), "--doc must be a path below")
    refused(block(folder, " "), "--summary must not be blank")
    refused(block(folder, "\udc80"), "not UTF-8")
    refused(block(folder, "x" * (1 << 20)), "1048576")
    with LIMITS.context() as limits:  # a log of a million lines takes long to read
        limits.setattr(records, "MAX_LINES", 1)
        refused(block(folder), "lines")


def after_half_a_line(place: Path) -> None:
    for number, tail in enumerate(('{"seq":2,"from":"re', line_of({"seq": 2}).decode()[:-1])):
        folder = make_v1(place / str(number), "drafting")
        extend(folder, tail)
        refused(block(folder), "acp repair")
    folder = make_v1(place / "returns", "drafting")
    path = folder / "events.jsonl"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    refused(block(folder), "convert them to newlines")


def where_it_may_not(place: Path) -> None:
    folder = make_v2(place / "newer", "drafting")
    change(schemaVersion=3)(folder)
    refused(block(folder), "schemaVersion")
    folder = make_v1(place / "far", "drafting")
    with LIMITS.context() as mounted:
        mounted.setattr(locked, "here", lambda: (locked.Mount("/", "cifs"),))
        refused(block(folder), "is on cifs")
        words = ["append", "--folder", folder, "--participant", "reader", "--event", "blocked"]
        assert acp(*words, "--summary", "Now.", "--reply-to", "1", "--unlocked").code == 0


REFUSED: dict[str, Callable[[Path], None]] = {
    "every event after `completed`;": after_completed,
    "every event except `blocked` in a log that can never become valid again;": in_a_hopeless_log,
    "`readiness_passed` and `completed` while `validate` fails for the folder, as the specification "
    "requires;": before_it_is_valid,
    "an event that would make a valid collaboration invalid, for example `deliverable_frozen` while a "
    "required section is empty or missing, or with a digest that does not match the file;": that_would_make_it_invalid,
    "`decision_accepted`, `readiness_passed` and `completed` while readiness.md is missing;": without_readiness,
    "`--role` and `--sha256` for events that are not about a deliverable;": with_a_role,
    "a `--doc` outside the folder, a blank summary, text that is not UTF-8, an event with more than 1 "
    "MiB, and an event after line 1,000,000 of the log;": what_cannot_be_written,
    "any event while the last line of the log is incomplete or has no newline (`acp repair` fixes "
    "it), or while all lines end in carriage returns;": after_half_a_line,
    "any event in a folder with an unknown `schemaVersion`, and on a file system whose locks protect "
    "nothing (`--unlocked` writes anyway).": where_it_may_not,
}


def although_it_blocks(place: Path) -> None:
    folder = make_v1(place / "blocking", "readiness_check")
    edit(folder, "readiness.md", "- [resolved]", "- [blocking]")
    assert block(folder).code == 0
    assert block(hopeless(place / "hopeless")).code == 0


def without_a_digest(place: Path) -> None:
    folder = make_v2(place, "readiness_check")
    edit(folder, "deliverables/decision.md", "Status: Draft", "Status: Frozen")
    assert append(folder, "server", "deliverable_frozen", 10, **FROZEN).code == 0
    assert re.fullmatch(r"[0-9a-f]{64}", str(log(folder)[-1]["sha256"]))


ACCEPTED: dict[str, Callable[[Path], None]] = {
    "it accepts `blocked` whatever readiness.md says, and in a log that can never become valid "
    "again;": although_it_blocks,
    "`deliverable_frozen` works without `--sha256`: acp computes the digest.": without_a_digest,
}


def test_what_append_refuses_or_accepts_otherwise_is_what_the_page_lists() -> None:
    found = lists("append")
    stricter = found["`acp append` is stricter. Unlike the existing program, it refuses:"]
    assert stricter == list(REFUSED)
    assert found["`acp append` is laxer:"] == list(ACCEPTED)


@pytest.mark.parametrize("row", REFUSED | ACCEPTED)
def test_each_is_refused_or_accepted_as_the_page_says(tmp_path: Path, row: str) -> None:
    (REFUSED | ACCEPTED)[row](tmp_path / "run")


def once(place: Path) -> None:
    folder = make_v1(place, "drafting")
    assert block(folder).code == 0
    assert block(folder).out == "already appended seq 2: blocked\n"
    for number in range(2):
        ran = block(folder, "Again.", key="k1")
        assert ran.code == 0 and ran.out.startswith("already " if number else "appended ")
    assert [each["seq"] for each in log(folder)] == [1, 2, 3]


def never_before_the_last(place: Path) -> None:
    folder = make_v1(place, "drafting")
    event("reader", "blocked", at="2099-01-01T00:00:00Z")(folder)
    assert block(folder, "Now.").code == 0
    assert log(folder)[-1]["at"] == "2099-01-01T00:00:00Z"


def escaped(place: Path) -> None:
    folder = make_v1(place, "drafting")
    assert block(folder, "a\x85b\u2028c\u2029d", key="k1").code == 0
    line_written = (folder / "events.jsonl").read_bytes().splitlines()[-1]
    assert b"a\\u0085b\\u2028c\\u2029d" in line_written and log(folder)[-1]["key"] == "k1"


def all_reasons(place: Path) -> None:
    ran = append(make_v1(place, "readiness_check"), "server", "completed", 9, doc="decisions.md")
    assert ran.code == 2 and ran.err.count("\n") == 1, ran
    first, *more = ran.err.split("; ")
    assert "completed requires a prior readiness_passed event" in first
    assert "must reference conclusion.md" in more[0]
    assert any("readiness.md must check" in each for each in more[1:]), ran.err


WRITTEN: dict[str, Callable[[Path], None] | str] = {
    "if the same event is already the last one of the log": once,
    "the time of an event is never before that of the last one": never_before_the_last,
    "acp writes U+0085, U+2028 and U+2029 as": escaped,
    "a refusal names all reasons in one line": all_reasons,
    "if a program without a lock writes at the same moment": "test_a_writer_without_a_lock_is_noticed",
}


def test_what_append_writes_otherwise_is_what_the_page_lists() -> None:
    found = lists("append")["It writes differently:"]
    assert len(found) == len(WRITTEN)
    assert all(row.startswith(name) for row, name in zip(found, WRITTEN, strict=True))
    other = (Path(__file__).parent / "test_append_safety.py").read_text(encoding="utf-8")
    assert all(f"def {name}(" in other for name in WRITTEN.values() if isinstance(name, str))


@pytest.mark.parametrize("row", [row for row, shown in WRITTEN.items() if callable(shown)])
def test_each_is_written_as_the_page_says(tmp_path: Path, row: str) -> None:
    shown = WRITTEN[row]
    assert callable(shown)
    shown(tmp_path / "run")
