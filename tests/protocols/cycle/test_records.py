"""What the state records of an iteration, as the programs of other people read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_core.protocols.cycle.conduct import results, steps
from acp_core.protocols.cycle.conduct.results import Facts
from acp_core.protocols.cycle.read.progress import parse_result
from acp_core.protocols.cycle.write.store import first_state
from tests.protocols.cycle import conducting
from tests.protocols.cycle.making import ID, NOW

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def told(state: dict[str, Any], number: int) -> dict[str, tuple[object, object]]:
    """Of each agent of an iteration: how many files it modified, and which."""
    (record,) = (each for each in state["iterations"] if each["number"] == number)
    return {
        name: (each["files_modified"], each["files"])
        for name, each in record["agent_results"].items()
    }


@pytest.mark.slow
def test_an_iteration_records_the_number_of_modified_files_of_each_agent(tmp_path: Path) -> None:
    conducting.start(tmp_path, cd=["buggy"])
    state = conducting.wait_for_end(tmp_path)
    assert state["status"] == "completed"
    one, all_written = (1, ["product.txt"]), (1, ["all"])
    assert told(state, 1) == {
        "ra": all_written, "ep": all_written, "cd": one, "vas": all_written
    }  # fmt: skip
    assert told(state, 2)["cd"] == one


def test_all_modified_files_are_counted_also_where_not_all_are_listed() -> None:
    state: dict[str, Any] = first_state(ID, NOW, "Export", "")
    steps.begin_cycle(state, NOW)
    steps.prepared(state, NOW, "1.0.0", ())
    steps.begin_run(state, NOW, "ra")
    names = ", ".join(f"file-{number}.md" for number in range(250))
    said = parse_result(
        f"PHASE_RESULT:\n- phase: ra\n- status: success\n- files_modified: [{names}]\n"
    )
    assert said is not None
    results.ended_run(state, NOW, "ra", said, Facts("1.0.0", ()), 1)
    number, listed = told(state, 1)["ra"]
    assert (number, listed) == (250, [f"file-{each}.md" for each in range(200)])
