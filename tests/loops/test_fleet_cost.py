"""What agents cost, of each collaboration of the fleet and of all of them, and whose cost is unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from acp_core.fleet import Fleet, overview
from acp_core.fleet.overview import Seen
from acp_core.model import Cost
from acp_tui.widgets import fleet_table
from tests.cli.support import Acp
from tests.loops.support import make, start, wait_for_turns
from tests.loops.test_costs import paying
from tests.support import paid


def test_sums_say_that_a_part_of_them_is_unknown() -> None:
    known, none = Cost(1.25), Cost(None, ("ben",))
    assert (known + Cost(0.5)).words == "$1.75"
    assert (known + none).words == "$1.25 + ?" == (none + known).words
    assert (none + none).words == "?"


@pytest.mark.slow
def test_the_fleet_shows_what_each_collaboration_and_all_of_them_cost(tmp_path: Path) -> None:
    folders = [make(tmp_path / "fleet" / name) for name in ("priced", "partly")]
    preset = paying(tmp_path)
    for folder in folders:
        start(folder, "server", preset)
        wait_for_turns(folder, "server", 1)
    start(folders[1], "reader", replace(preset, stream="codex"))  # it reports no cost
    wait_for_turns(folders[1], "reader", 1)
    make(tmp_path / "fleet" / "idle")
    acp = Acp(tmp_path)
    listed = json.loads(acp("status", str(tmp_path / "fleet"), "--json").stdout)["collaborations"]
    costs = {
        Path(each["key"]).name: (each.get("cost"), each.get("cost_unknown")) for each in listed
    }
    assert costs == {
        "priced": (paid.COST, []),
        "partly": (paid.COST, ["reader"]),
        "idle": (None, None),
    }
    assert (
        acp("status", str(tmp_path / "fleet")).stdout.splitlines()[-1].endswith("· cost $0.50 + ?")
    )
    snapshots = Fleet([tmp_path / "fleet"]).read()
    entries = overview.arrange(snapshots, lambda one: Seen((), 0, False))
    widths = fleet_table.columns(120, ("phase", "cost"))
    rows = {
        Path(entry.key).name: "".join(
            text for text, _ in fleet_table.row(entry, "", ("", ""), widths, False)
        )
        for entry in entries
    }
    assert "$0.25 + ?" in rows["partly"] and "$" not in rows["idle"]
    assert "$0.25" in rows["priced"] and "?" not in rows["priced"]
    assert not fleet_table.columns(120)["cost"]  # only where it is chosen
