"""The commands of a cycle, its forms and `acp act` are one: made of the same descriptions."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents import presets
from acp_core.model.action import OutcomeState
from acp_core.model.action_spec import ActionSpec
from acp_core.model.errors import Refused
from acp_core.person import journal
from acp_core.protocols.cycle.acts import conducting, table
from acp_core.protocols.cycle.collaboration import Cycles, open_cycles
from acp_core.protocols.cycle.read.orchestrator_spec import Spec
from acp_core.protocols.cycle.schema import AGENTS
from acp_core.protocols.kit.parser import Parser
from tests.protocols.cycle import making
from tests.protocols.cycle import test_cards as cards
from tests.protocols.cycle.conducting import ID, acp, done, refused, state
from tests.protocols.cycle.making import NOW

pytestmark = pytest.mark.usefixtures("nothing_is_left")

OTHER = "cycle-v1-20260302T190000-tooltips"
KNOWN = presets.load({})


def two_cycles(root: Path) -> Path:
    """A project with two cycles of which the second is shown."""
    for id in (ID, OTHER):
        done(root, "start", "Export", "--cycle", id, "--no-run")
    return root


def chosen(*words: str, before: bool = False) -> dict[str, str]:
    """The programs that these words of `acp cycle run` choose, with their arguments."""
    command = list(words[words.index("--") + 1 :]) if "--" in words else []
    values = typed(*(words[: words.index("--")] if "--" in words else words))
    values.words = command
    conducting.join_words(values)
    spec = Spec("/project", ID)
    if before:
        spec = conducting.spec_of(typed("--agent", "claude"), KNOWN, spec)
    spec = conducting.spec_of(values, KNOWN, spec, before)
    found = {name: spec.preset(name) for name in AGENTS}
    return {
        name: " ".join([each.name, *(each.args if each.name == "command" else ()), model]).strip()
        for name, (each, model) in found.items()
    }


def typed(*words: str) -> Any:
    """What these words say to `acp cycle run`."""
    parser = table.COMMANDS.find("run")
    assert isinstance(parser, Parser)
    return parser.parse_args(list(words))


def test_programs_are_named_in_the_words_of_all_commands_and_in_those_of_before() -> None:
    mixed = {"ra": "claude", "ep": "claude", "cd": "codex", "vas": "claude"}
    assert chosen("--agent", "claude", "--agent", "cd=codex") == mixed
    assert chosen("--agent", "cd=codex", "--program", "claude") == mixed
    every = dict.fromkeys(AGENTS, "command --fast opus")
    assert chosen("--command", "agent --fast", "--model", "opus") == every
    assert chosen("--model", "opus", "--", "agent", "--fast") == every
    words = ("--program", "claude", "--agent-command", "vas=tests --all")
    assert chosen(*words) == dict.fromkeys(AGENTS, "claude") | {"vas": "command --all"}
    assert chosen("--agent", "cd=codex", before=True) == mixed
    with pytest.raises(Refused, match="no program for ra, ep, vas: name one with --agent"):
        chosen("--agent", "cd=codex")
    with pytest.raises(
        Refused, match=r"--agent takes NAME=[.]{3}, with NAME one of ra, ep, cd, vas"
    ):
        chosen("--agent", "qa=codex")


@pytest.mark.parametrize(
    ("words", "attempts", "timeout"),
    [
        ((), 2, 1_800),
        (("--attempts", "3", "--timeout", "90"), 3, 90),
        (("--retries", "0", "--timeout", "20m"), 1, 1_200),
    ],
)
def test_limits_of_runs_have_old_and_new_names(
    words: tuple[str, ...], attempts: int, timeout: float
) -> None:
    spec = conducting.spec_of(typed("--agent", "claude", *words), KNOWN, Spec("/project", ID))
    assert (spec.attempts, spec.timeout) == (attempts, timeout)


@pytest.mark.parametrize("words", [("--timeout", "0"), ("--timeout", "8d"), ("--attempts", "0")])
def test_limits_that_cannot_be_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(Refused, match="--timeout must be above 0"):
        conducting.spec_of(typed("--agent", "claude", *words), KNOWN, Spec("/project", ID))


def test_the_folder_stands_by_position_where_no_other_word_does(tmp_path: Path) -> None:
    root = str(making.cycle(tmp_path))
    assert acp("status", root, "--json")[0] == acp("pause", root)[0] == 0
    assert acp("resume", root, "--dry-run")[0] == 0
    assert acp("limit", "8", "--folder", root)[0] == 0
    assert json.loads((tmp_path / making.STATE).read_text())["max_iterations"] == 8
    assert "must be a whole number" in acp("limit", root, "8")[2]


def test_a_form_names_the_command_that_does_the_same(tmp_path: Path) -> None:
    root = making.cycle(tmp_path)
    action = open_cycles(str(root)).action("feedback", NOW)
    assert action is not None
    given = action.inputs(agent="vas", text="--quote\nthem", kind="requirement_update")
    command = action.preview(given).command
    assert command[:3] == ("acp", "cycle", "feedback")
    code, _, err = acp(*command[2:])
    assert code == 0, (shlex.join(command), err)
    (said,) = json.loads((root / making.STATE).read_text())["coordination"]["feedback_log"]
    assert (said["target"], said["type"]) == ("vas", "requirement_update")
    assert "--quote" in said["content"] and "them" in said["content"]


def test_a_form_acts_on_the_cycle_that_it_was_opened_for(tmp_path: Path) -> None:
    cycles = Cycles(str(two_cycles(tmp_path)))
    cycles.refresh(NOW)
    pause = cycles.action("pause", NOW)
    assert pause is not None
    first = next(e for e in (ID, OTHER) if e in " ".join(pause.preview(pause.inputs()).command))
    done(tmp_path, "select", OTHER if first == ID else ID)
    outcome = pause.perform(pause.inputs())
    assert outcome.done is not None
    assert outcome.done.data == {"cycle": first, "state": "done"}


def test_another_cycle_is_chosen_by_how_its_id_ends(tmp_path: Path) -> None:
    root = two_cycles(tmp_path)
    assert done(root, "select", "csvexprt")["sentence"] == f"Showing {ID}."
    assert done(root, "status")["cycle"] == ID
    assert done(root, "show", "tooltips")["command"] == "show"
    assert done(root, "status")["cycle"] == OTHER
    assert "'cycle-x' is not a cycle here" in refused(root, "select", "cycle-x")
    assert "'cycle-x' is not a cycle here" in refused(root, "pause", "--cycle", "cycle-x")


@pytest.mark.parametrize(("old", "new"), [("conduct", "run"), ("show", "select")])
def test_old_names_of_acts_still_work(tmp_path: Path, old: str, new: str) -> None:
    action = open_cycles(str(two_cycles(tmp_path))).action(old, NOW)
    assert action is not None and action.name == new and old in action.aliases


def test_what_cannot_be_done_now_is_not_offered_and_says_why(tmp_path: Path) -> None:
    cycles = open_cycles(str(making.cycle(tmp_path)))
    offered = {each.name for each in cycles.actions(NOW)}
    refusals = {}
    for spec in table.OFFERED:
        action = cycles.action(spec.name, NOW)
        assert action is not None and action.offered == (spec.name in offered)
        if not action.offered:
            values = {"decision": "DEC-001", "choice": "1", "blocker": "B", "resolution": "Gone",
                      "text": "More", "cycle": "none"}  # fmt: skip
            outcome = action.perform({k: v for k, v in values.items() if _has(spec, k)})
            assert outcome.state is OutcomeState.REFUSED
            refusals[spec.name] = outcome.sentence
    assert refusals["decide"] == "no decision 'DEC-001' (pending: none)"
    assert refusals["resume"] == "the cycle is running, not paused or created or failed"
    assert "no documents to rebuild from" in refusals["rebuild"]
    assert cycles.action("no-such-act", NOW) is None


def _has(spec: ActionSpec, name: str) -> bool:
    """Whether a form or its JSON input has this."""
    return any(each.name == name and each.form for each in spec.fields)


def test_nothing_is_refused_twice_and_nothing_is_made_where_nobody_wanted_it(
    tmp_path: Path,
) -> None:
    nowhere = tmp_path / "typo"
    assert "no such folder" in refused(nowhere, "start", "Export", "--no-run")
    assert not nowhere.exists()
    assert "no such folder" in refused(nowhere, "pause")
    assert "no cycle here (start one with `acp cycle start`)" in refused(tmp_path, "pause")
    assert acp("decide", "--folder", str(tmp_path))[2] == (
        "error: ID (or --decision): is missing; CHOICE (or --choice): is missing\n"
    )


def test_json_says_what_was_done_to_which_cycle(tmp_path: Path) -> None:
    begun = done(tmp_path, "start", "Export", "--cycle", ID, "--no-run")
    assert (begun["schema"], begun["command"], begun["done"]) == ("acp.cycle/1", "start", True)
    said = done(tmp_path, "limit", "7")
    assert (said["cycle"], said["state"], said["done"]) == (ID, "requested", False)
    assert '+  "max_iterations": 7' in said["changes"][0]["diff"]
    assert state(tmp_path)["max_iterations"] == 7


def test_what_a_person_does_by_commands_is_counted_as_their_acts(tmp_path: Path) -> None:
    done(tmp_path, "start", "Export", "--cycle", ID, "--no-run")
    done(tmp_path, "feedback", "cd", "Quote fields")
    done(tmp_path, "pause", "--dry-run")
    done(tmp_path, "pause")
    acts = journal.read(str(tmp_path))
    assert [each.action for each in acts] == ["start", "feedback", "pause"]
    assert acts[1].inputs == {"agent": "cd", "text": "Quote fields"}


def test_the_status_of_a_cycle_that_asks_names_the_command_that_answers(tmp_path: Path) -> None:
    root = cards.asking(tmp_path / "report")
    code, said, _ = acp("status", str(root))
    assert code == 0
    assert "run: acp cycle decide DEC-001 NUMBER" in said
