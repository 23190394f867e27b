"""Makes the pictures of the cards: a decision of each kind, of every protocol, as the tests make it.

    python screenshots/cards.py                       # all of them, into cards/
    python screenshots/cards.py --check               # whether those in cards/ show what is shown now
    python screenshots/cards.py -o DIR --everywhere   # in every theme and size, somewhere else
    python screenshots/cards.py folder cycle          # only these protocols

The tests that make a decision on a card open it in the real dashboard, on a real collaboration; a
picture is taken of the card that they open first (see `tests/tui/cards.py`).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "screenshots" / "cards"
_FOLDER = "tests/protocols/folder/test_cards.py"
_RUN, _INITIATIVE = "tests/tui/test_card.py", "tests/protocols/governed/test_initiative_cards.py"
_CYCLE = "tests/protocols/cycle/test_cards.py"
_WORKSPACES = "tests/protocols/workspaces/test_cards.py"
_WIRE = "tests/protocols/wire/test_cards.py"
_PERMISSION = "tests/tui/test_permissions.py"
CARDS = {
    "folder": {
        "review": f"{_FOLDER}::test_a_proposal_is_reviewed_with_what_others_say_of_it",
        "revision": f"{_FOLDER}::test_a_revision_is_submitted_beside_what_the_reviews_require",
        "open-questions": f"{_FOLDER}::test_open_questions_are_classified_on_the_card",
        "decisions": f"{_FOLDER}::test_decisions_are_accepted_with_two_keys",
        "deliverable": f"{_FOLDER}::test_a_deliverable_is_frozen_with_what_its_draft_says",
        "gates": f"{_FOLDER}::test_gates_are_judged_one_by_one_or_at_once",
        "conclusion": f"{_FOLDER}::test_the_conclusion_is_one_of_its_outcomes_with_the_reason",
        "blocker": f"{_FOLDER}::test_a_blocker_is_answered_and_it_goes_on_in_a_new_folder",
        "question": f"{_FOLDER}::test_a_question_of_a_review_is_answered",
        "unresolved": f"{_FOLDER}::test_what_keeps_an_agent_from_going_on_is_settled_for_it",
        "agents-gates": f"{_FOLDER}::test_gates_that_keep_an_agent_from_going_on_are_judged_for_it",
        "permission-command": f"{_PERMISSION}::test_a_command_is_read_and_allowed_with_two_keys",
        "permission-change": f"{_PERMISSION}::test_a_change_is_opened_and_rejected_with_a_message",
        "permission-question": f"{_PERMISSION}::test_a_question_is_answered_with_the_key_of_its_option",
    },
    "governed": {
        "turn": f"{_RUN}::test_a_staged_turn_is_judged_by_what_it_says_and_accepted_with_two_keys",
        "undeclared-file": f"{_RUN}::test_a_file_that_was_not_declared_is_shown_with_what_changed_in_it",
        "gate": f"{_RUN}::test_a_gate_is_rejected_with_the_reason_that_the_next_agent_reads",
        "objection": f"{_RUN}::test_an_objection_is_resolved_with_the_reason_before_its_gate_is_decided",
        "question": f"{_RUN}::test_a_question_is_answered",
        "escalated": f"{_RUN}::test_a_run_that_somebody_stopped_is_unblocked_with_two_keys",
        "corrections": f"{_RUN}::test_proposed_corrections_of_a_result_are_applied_with_two_keys",
        "initiative-gate": f"{_INITIATIVE}::test_a_cross_repo_gate_is_approved_with_two_keys",
        "initiative-held": f"{_INITIATIVE}::test_what_keeps_workstreams_from_crossing_is_mended_there",
        "initiative-scripts": f"{_INITIATIVE}::test_scripts_are_read_before_they_may_run",
    },
    "cycle": {
        "options": f"{_CYCLE}::test_an_option_of_a_decision_is_chosen_with_two_keys",
        "words": f"{_CYCLE}::test_a_decision_is_answered_in_words_after_looking_at_what_changed",
        "orchestrator-asks": f"{_CYCLE}::test_what_the_orchestrator_asks_is_decided_by_one_of_its_options",
        "blocker": f"{_CYCLE}::test_a_blocker_is_resolved_with_what_its_reporter_is_told",
        "failed-agent": f"{_CYCLE}::test_an_agent_that_failed_is_run_again_with_instructions",
        "result": f"{_CYCLE}::test_a_result_with_failing_tests_is_accepted_with_two_keys",
        "question": f"{_CYCLE}::test_a_question_that_nobody_was_asked_is_answered_on_its_card",
        "limit-unasked": f"{_CYCLE}::test_a_limit_at_which_nobody_was_asked_is_raised_on_its_card",
        "limit": f"{_CYCLE}::test_the_limit_is_raised_where_the_cycle_asks_for_it",
        "feedback": f"{_CYCLE}::test_an_agent_that_did_not_answer_gets_more_feedback_on_its_card",
    },
    "workspaces": {
        "partial-result": f"{_WORKSPACES}::test_a_partial_result_is_accepted_with_its_reason",
        "failed-agent": f"{_WORKSPACES}::test_an_agent_that_failed_is_run_again_with_feedback_for_its_next_prompt",
        "doubt": f"{_WORKSPACES}::test_a_result_in_doubt_shows_where_status_and_files_disagree",
        "conflict": f"{_WORKSPACES}::test_a_conflict_is_resolved_with_both_versions_in_sight",
        "coverage": f"{_WORKSPACES}::test_a_conflict_is_dismissed_with_a_reason",
        "form": f"{_WORKSPACES}::test_a_conflict_of_form_is_resolved_with_two_keys",
        "hint": f"{_WORKSPACES}::test_a_hint_of_a_conflict_is_dismissed_with_both_versions_in_sight",
        "silent-agent": f"{_WORKSPACES}::test_a_silent_agent_is_given_up_on_with_what_is_known_of_it",
        "synthesis": f"{_WORKSPACES}::test_the_outputs_are_put_in_another_order_before_the_draft",
        "final-output": f"{_WORKSPACES}::test_the_final_output_is_approved_with_two_keys",
    },
    "wire": {
        "options": f"{_WIRE}::test_a_listed_option_is_chosen_with_two_keys",
        "question": f"{_WIRE}::test_an_answer_of_ones_own_is_written_on_the_card",
        "input": f"{_WIRE}::test_a_task_is_canceled_only_at_the_second_time",
    },
}
"""The test that opens each card, by its protocol and the name of its picture."""
_SPARE = re.compile(
    r'@font-face \{.*?\}|<clipPath.*?</clipPath>| clip-path="[^"]*"|<!--.*?-->', re.S
)
_AGES = re.compile(r"\S*\d\S*")
_ROW = 24.4  # the height of a row in a picture
_TEXT = "{http://www.w3.org/2000/svg}text"


def make(protocols: Sequence[str], output: Path, *, everywhere: bool = False) -> int:
    """Make pictures; the exit code of the tests that open the cards."""
    ended = 0
    for protocol in protocols:
        place = output / protocol
        place.mkdir(parents=True, exist_ok=True)
        names = {test.split("::test_")[-1]: name for name, test in CARDS[protocol].items()}
        asked = {"ACP_PICTURES": str(place), "ACP_PICTURES_EVERYWHERE": str(int(everywhere))}
        command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider"]
        command += CARDS[protocol].values()
        ended |= subprocess.run(command, cwd=ROOT, env=os.environ | asked, check=False).returncode
        for made in place.glob("*.svg"):
            test, _, where = made.stem.partition(".")
            if test in names:
                text = _SPARE.sub("", made.read_text(encoding="utf-8"))
                name = names[test] + (f"-{where}" if where else "")
                made.with_name(f"{name}.svg").write_text(text, encoding="utf-8")
                made.unlink()
    return ended


def words(picture: Path) -> str:
    """What stands on the card of a picture, without what is another at each time."""
    rows: dict[int, list[str]] = {}
    for each in ElementTree.fromstring(picture.read_bytes()).iter(_TEXT):
        text = (each.text or "").replace("\xa0", " ")
        rows.setdefault(int(float(each.attrib["y"]) / _ROW), []).append(text)
    lines = ["".join(rows[row]) for row in sorted(rows)]
    edges = [number for number, line in enumerate(lines) if "─" * 110 in line]
    card = "\n".join(lines[edges[0] : edges[-1]]) if edges else ""
    return " ".join(_AGES.sub("#", card.replace("─", "")).split())


def check(protocols: Sequence[str]) -> int:
    """Say which pictures do not show what is shown now; 0 where all of them do."""
    with tempfile.TemporaryDirectory(prefix="acp-cards-") as place:
        ended = make(protocols, Path(place))
        stale = [
            f"{protocol}/{name}.svg"
            for protocol in protocols
            for name in CARDS[protocol]
            if not _is_same(
                Path(place, protocol, f"{name}.svg"), PICTURES / protocol / f"{name}.svg"
            )
        ]
    for each in stale:
        print(f"stale: {each}")
    return ended or int(bool(stale))


def _is_same(now: Path, then: Path) -> bool:
    return now.is_file() and then.is_file() and words(now) == words(then)


def main() -> int:
    """Make or check the pictures that were asked for."""
    parser = argparse.ArgumentParser(description="Make the pictures of the cards.")
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=f"of {', '.join(CARDS)}")
    parser.add_argument("-o", "--output", type=Path, default=PICTURES)
    parser.add_argument("--everywhere", action="store_true", help="in every theme and size")
    parser.add_argument("--check", action="store_true", help="say which pictures are stale")
    given = parser.parse_args()
    unknown = sorted(set(given.protocols) - set(CARDS))
    if unknown:
        parser.error(f"no protocol {', '.join(unknown)}; there are: {', '.join(CARDS)}")
    protocols = given.protocols or list(CARDS)
    if given.check:
        return check(protocols)
    return make(protocols, given.output.absolute(), everywhere=given.everywhere)


if __name__ == "__main__":
    sys.exit(main())
