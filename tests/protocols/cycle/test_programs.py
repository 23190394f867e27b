"""Each agent of a cycle may have a program of its own, chosen in the form that begins it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from textual.widgets import Select

from acp_core.agents import presets
from acp_core.protocols.cycle.acts import conducting
from acp_core.protocols.cycle.read.orchestrator_spec import Spec
from acp_core.protocols.cycle.schema import AGENTS
from acp_core.protocols.kit.values import completed
from acp_tui.app import AcpApp
from acp_tui.screens.action import ActionScreen
from tests.protocols.cycle.conducting import AGENT
from tests.tui.stage import until


def test_an_agent_gets_the_program_that_was_chosen_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "config" / "config.toml"
    own.parent.mkdir()
    own.write_text(
        '[presets.bold]\ntitle = "Bold"\nprogram = "bold"\nargs = ["-y"]\ncaution = "asks nobody"\n'
    )
    monkeypatch.setenv("ACP_CONFIG", str(own.parent))
    action = conducting.create(tmp_path / "new")
    given = action.inputs.model_validate(
        {"objective": "Export", "program": presets.ANY, "command": AGENT, "cd_program": "codex"}
    )
    known = presets.load({})
    values = completed(action.fields or (), given)
    spec = conducting.spec_of(values, known, Spec(str(tmp_path), "cycle-1"))
    assert [spec.preset(name)[0].name for name in AGENTS] == [
        "command",
        "command",
        "codex",
        "command",
    ]
    preview = action.preview(given)
    assert preview.changes[-1].path == "the orchestrator, with command as ra, command as ep, codex as cd, command as vas"  # fmt: skip
    other = given.model_copy(update={"cd_program": "bold"})
    warned = "Bold asks nobody"
    assert warned not in preview.warnings
    assert warned in action.preview(other).warnings


def test_no_command_is_needed_where_every_agent_has_a_program(tmp_path: Path) -> None:
    action = conducting.create(tmp_path / "new")
    chosen = {f"{name}_program": "codex" for name in AGENTS}
    common = {"objective": "Export", "program": presets.ANY}
    preview = action.preview(action.inputs.model_validate(common | chosen))
    assert preview.changes[-1].path == "the orchestrator, with codex as all four agents"
    chosen["ra_program"] = None
    refused = action.preview(action.inputs.model_validate(common | chosen)).refused
    assert refused
    with pytest.raises(ValidationError):
        action.inputs.model_validate(common | {"cd_program": "no-such-program"})


async def test_the_form_asks_for_it_and_begins_with_none(tmp_path: Path) -> None:
    app = AcpApp([str(tmp_path)])
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(ActionScreen(None, conducting.create(tmp_path / "new")))
        screen = app.screen
        await until(pilot, lambda: isinstance(screen, ActionScreen) and screen.form is not None)
        assert isinstance(screen, ActionScreen)
        assert screen.form is not None
        views = {view.field.name: view for view in screen.form.views}
        assert views["cd_program"].field.optional
        assert views["cd_program"].query_one(Select).value is Select.NULL
