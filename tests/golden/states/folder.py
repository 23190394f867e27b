"""States of folder collaborations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.golden.builders.folder import PEOPLE, Story
from tests.golden.state import State

ESCAPES = "\x1b[31mRed\x1b]0;title\x07 \u202eback [bold]markup[/] \u0000 nul \ud7ff é\u0301 🚀"
HUMAN = ("server", {"id": "anna", "kind": "human"}, "reviewer")
Steps = Callable[[Story], object]
Build = Callable[[Path], Path]


def _v1(*steps: Steps, people: tuple[object, ...] = PEOPLE) -> Build:
    return _built(steps, people, "")


def _v2(*steps: Steps, repo_root: str = "") -> Build:
    return _built(steps, PEOPLE, repo_root, v2=True)


def _built(
    steps: tuple[Steps, ...], people: tuple[object, ...], repo_root: str, *, v2: bool = False
) -> Build:
    def build(place: Path) -> Path:
        story = Story(place / "cache", people, v2=v2, repo_root=repo_root)
        for step in steps:
            step(story)
        return story.folder

    return build


def _revising(story: Story) -> None:
    story.submit()
    story.reviews()


def _deciding(story: Story) -> None:
    _revising(story)
    story.revise()


def _checking(story: Story) -> None:
    _deciding(story)
    story.classify()
    story.accept()


def _completed(story: Story) -> None:
    _checking(story)
    if story.v2:
        story.freeze()
    story.ready()
    story.complete()


def _blocked(story: Story) -> None:
    story.submit()
    story.block("reviewer", "Nobody knows the budget.")


def _block_again(story: Story) -> None:
    story.block("server", "The repository is read only.")


def _hand_over(story: Story) -> None:
    """Let it be continued in a folder beside it."""
    link = {"at": "2026-01-06T09:00:00Z", "phase": story.phase}
    story.charter(continued_by=link | {"path": "../cache-2"})
    new = Story(story.folder.with_name("cache-2"))
    new.charter(continues=link | {"path": "../cache"}, objective="Build it")


def _second(place: Path) -> Path:
    """The one that continues another."""
    return _v1(_blocked, _hand_over)(place).with_name("cache-2")


def _write(name: str, text: str | bytes) -> Steps:
    return lambda story: story.write(name, text)


def _remove(*names: str) -> Steps:
    def damage(story: Story) -> None:
        for name in names:
            (story.folder / name).unlink()

    return damage


def _lines(change: Callable[[list[bytes]], list[bytes]]) -> Steps:
    """Change the lines of the log by hand."""

    def damage(story: Story) -> None:
        lines = (story.folder / "events.jsonl").read_bytes().splitlines(keepends=True)
        story.write("events.jsonl", b"".join(change(lines)))

    return damage


def _charter(**changes: object) -> Steps:
    return lambda story: story.charter(**changes)


def _link_out(story: Story) -> None:
    """Let a document lead out of the folder."""
    target = story.folder.parent / "elsewhere.md"
    (story.folder / "proposal.md").rename(target)
    (story.folder / "proposal.md").symlink_to(target)


def _hostile(story: Story) -> None:
    """Fill every text with what a terminal must not be handed."""
    story.submit()
    story.say("reader", "review_submitted", ESCAPES, "reviewing", ["reviewer"], role=ESCAPES)
    story.write("proposal.md", f"# {ESCAPES}\n\n## Purpose\n\n{ESCAPES}\n")
    story.write("readiness.md", f"# Readiness\n\n- [blocking] {ESCAPES}\n")
    story.charter(objective=ESCAPES, completionGates=[ESCAPES, "../../etc/passwd"], extra={"x": 1})


def _late_edit(story: Story) -> None:
    """Change documents while the reviews are awaited."""
    story.submit()
    story.at = story.at.replace(hour=story.at.hour + 2)
    story.write("decisions.md", "# Accepted Decisions\n\n- Decided already.\n")
    story.write("proposal.md", "# Proposal\n\nAnother one.\n")


def _early_review(story: Story) -> None:
    story.say("reader", "review_submitted", "Too early", "drafting", ["server"], doc="review.md")


def _stolen(story: Story) -> None:
    story.say("reader", "proposal_submitted", "Not mine", "reviewing", ["reviewer", "server"])


def _local_time(story: Story) -> None:
    _lines(lambda lines: [line.replace(b"09:20:00Z", b"09:20:00") for line in lines])(story)


def _supporting(story: Story) -> None:
    """Declare one deliverable more, whose file is not there."""
    declared = json.loads((story.folder / "protocol.json").read_text("utf-8"))["deliverables"]
    more = {"type": "test-plan", "file": "tests.md", "checklist": ["Cases"], "frozen": True}
    story.charter(deliverables=declared | {"supporting": [more], "coAuthors": ["reader"]})


STATES: tuple[State, ...] = (
    State("drafting", _v1()),
    State("decision-review", _v1(_deciding, Story.classify, lambda story: story.accept("reader"))),
    State("reviewing", _v1(Story.submit)),
    State(
        "reviewing-with-question",
        _v1(Story.submit, lambda story: story.review("reader", "How long may an entry live?")),
    ),
    State("revising", _v1(_revising)),
    State("second-round", _v1(_revising, _revising)),
    State("unclassified", _v1(_deciding)),
    State(
        "decisions-awaited-but-blocking",
        _v1(_deciding, lambda story: story.classify("[blocking] Who pays?")),
    ),
    State("readiness", _v1(_checking)),
    State("ready", _v1(_checking, Story.ready)),
    State("completed", _v1(_completed)),
    State("blocked", _v1(_blocked)),
    State(
        "blocked-twice",
        _v1(_blocked, _block_again),
    ),
    State(
        "blocked-and-continued",
        _v1(_blocked, _hand_over),
    ),
    State("continuing", _second),
    State(
        "human-reviews",
        _v1(Story.submit, people=HUMAN),
    ),
    State(
        "human-owns",
        _v1(_revising, people=({"id": "anna", "kind": "human"}, "reader")),
    ),
    State("torn-log", _v1(_revising, _lines(lambda lines: [*lines[:-1], lines[-1][:40]]))),
    State("gap", _v1(_revising, _lines(lambda lines: [*lines[:2], *lines[3:]]))),
    State("bad-line", _v1(_revising, _lines(lambda lines: [*lines[:2], b"{not JSON}\n", *lines[2:]]))),
    State(
        "illegal-event",
        _v1(_early_review),
    ),
    State(
        "proposal-of-another",
        _v1(_stolen),
    ),
    State(
        "time-without-zone",
        _v1(Story.submit, _local_time),
    ),
    State("log-missing", _v1(_revising, _remove("events.jsonl"))),
    State("charter-missing", _v1(_revising, _remove("protocol.json"))),
    State("charter-unreadable", _v1(_revising, _write("protocol.json", b'{"objective": \xff'))),
    State("charter-behind", _v1(_revising, _charter(currentPhase="drafting", waitingFor=["server"]))),
    State("documents-missing", _v1(_deciding, _remove("proposal.md", "readiness.md", "README.md"))),
    State(
        "edited-in-review",
        _v1(_late_edit),
    ),
    State("linked-out", _v1(Story.submit, _link_out)),
    State("hostile-text", _v1(_hostile)),
    State(
        "v2-drafting",
        _v2(),
    ),
    State("v2-drafted", _v2(Story.draft)),
    State("v2-reviewing", _v2(Story.submit)),
    State("v2-external", _v2(_deciding, repo_root="..")),
    State("v2-readiness", _v2(_checking)),
    State("v2-frozen", _v2(_checking, Story.freeze)),
    State("v2-completed", _v2(_completed)),
    State(
        "v2-deliverable-missing",
        _v2(_revising, lambda story: story.memo_path.unlink()),
    ),
    State(
        "v2-nothing-drafted",
        _v2(lambda story: story.say(
            "server", "proposal_submitted", "Without it", "reviewing", ["reader", "reviewer"],
            doc="proposal.md",
        )),
    ),
    State(
        "v2-digest-in-capitals",
        _v2(_checking, lambda story: story.freeze(str.upper), Story.ready, Story.complete),
    ),
    State(
        "v2-wrong-digest",
        _v2(_checking, lambda story: story.freeze(lambda found: found[::-1]), Story.ready),
    ),
    State(
        "v2-malformed-decision",
        _v2(_deciding, _write("decisions.md", "# Accepted Decisions\n\n### First\n\n- Decision: x.\n")),
    ),
    State("v2-supporting-missing", _v2(_deciding, _supporting)),
)  # fmt: skip
