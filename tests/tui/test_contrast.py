"""What stands on the screens can be read in every theme: each colour of text on what is below it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.color import Color as RichColor
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from textual.color import BLACK, WHITE, Color
from textual.geometry import Size
from textual.pilot import Pilot
from textual.strip import Strip
from textual.theme import BUILTIN_THEMES
from textual.widgets import Button

from acp_core.cli import signs
from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.theme import LEAST, TEXTS, ReadableDim, contrast
from acp_tui.widgets.findings import SEVERITY_COLOURS
from acp_tui.widgets.timeline_view import TONE_COLOURS
from tests.golden.states import all_states
from tests.hygiene.sources import ROOT, files
from tests.tui.screen import settle
from tests.tui.stage import until

FIRST = ("textual-dark", "textual-light", "ansi-light")
THEMES = [pytest.param(FIRST, id="first")] + [
    pytest.param((name,), id=name, marks=pytest.mark.slow)
    for name in BUILTIN_THEMES
    if name not in FIRST
]
SCENES = {
    "fleet": ("", ()),
    "filter of the fleet": ("", ("slash",)),
    "inbox": ("", ("exclamation_mark",)),
    "folder": ("folder/human-reviews", ()),
    "help": ("folder/human-reviews", ("question_mark",)),
    "actions": ("folder/human-reviews", ("x",)),
    "start form": ("folder/human-reviews", ("L",)),
    "replay": ("folder/human-reviews", ("R",)),
    "times": ("folder/human-reviews", ("T",)),
    "findings": ("folder/charter-behind", ("3",)),
    "new collaboration": ("folder/human-reviews", ("escape", "n")),
    "governed run": ("governed/run-gate-waits", ()),
    "card": ("governed/run-gate-waits", ("f",)),
    "reason of a verdict": ("governed/run-gate-waits", ("f", "2")),
    "cycle": ("cycle/decision_open", ()),
    "workspaces": ("workspaces/partial", ()),
    "network agent": ("wire/tasks-of-every-state", ()),
}
"""For each screen: the state of the collaboration that is opened ("": the fleet), and the keys to it."""
DECORATION = {chr(number) for number in range(0x2500, 0x25A0)} | set(" ·…")
"""Lines, bars and blocks: no text."""


def painted(app: AcpApp) -> Iterator[tuple[str, Style]]:
    """The texts that are drawn, with their styles; of a dialog alone where one covers the rest."""
    strips: list[Strip] = app.screen._compositor.render_strips(Size(*app.size))
    off = [button.region for button in app.screen.query(Button) if button.disabled]
    for y, strip in enumerate(strips):
        hidden = [region.column_span for region in off if y in region.line_range]
        for start, stop in _columns(app, y):
            column = start
            for segment in strip.crop(start, stop):
                column += segment.cell_length
                under = any(left < column <= right for left, right in hidden)
                if set(segment.text) - DECORATION and segment.style and not under:
                    yield segment.text.strip(), segment.style


def _columns(app: AcpApp, y: int) -> list[tuple[int, int]]:
    """The columns of a row that belong to the screen on top, and are not what is seen through it."""
    screen = app.screen
    if screen.styles.background.a == 1:
        return [(0, app.size.width)]
    shown = [child.region for child in screen.children if child.display]
    return [region.column_span for region in shown if y in region.line_range]


def colours(style: Style, app: AcpApp) -> tuple[Color, Color] | None:
    """Colour and ground of a text; None where one of them is the terminal's own."""
    text, ground = style.color, style.bgcolor
    if text is None or ground is None or text.is_default or ground.is_default:
        return None
    pair = [_true(each, app, first) for each, first in ((text, True), (ground, False))]
    one, other = reversed(pair) if style.reverse else pair
    return one, other


def _true(color: RichColor, app: AcpApp, foreground: bool) -> Color:
    return Color(*color.get_truecolor(app.ansi_theme, foreground=foreground))


def too_faint(app: AcpApp) -> list[str]:
    """The texts whose contrast is too small."""
    faint = set()
    for text, style in painted(app):
        pair = colours(style, app)
        if pair is not None and (ratio := contrast(*pair)) < LEAST - 0.05:
            faint.add(f"{app.theme}: {ratio:.2f} {pair[0].hex} on {pair[1].hex}: {text!r}")
    return sorted(faint)


def place_of(state: str, tmp_path: Path) -> Path:
    """The folder of a collaboration in this state; of several of them where none is named."""
    for name in (state,) if state else ("folder/human-reviews", "governed/run-gate-waits"):
        place = tmp_path / "all" / name / "work"
        place.mkdir(parents=True)
        made = all_states()[name].build(place)
    return made if state else tmp_path / "all"


async def reach(pilot: Pilot[Any], state: str, keys: tuple[str, ...]) -> None:
    """Press the keys to a screen, each when what the one before it opened is drawn."""
    await until(pilot, lambda: bool(pilot.app.fleet.snapshots))
    await until(pilot, lambda: len(pilot.app.screen_stack) == 1 + bool(state))
    for key in keys:
        await settle(pilot)
        await pilot.press(key)
    await settle(pilot)
    await pilot.pause(0.3)


@pytest.mark.slow
@pytest.mark.parametrize("themes", THEMES)
@pytest.mark.parametrize("scene", SCENES)
async def test_every_text_can_be_read(
    tmp_path: Path, scene: str, themes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    state, keys = SCENES[scene]
    place = await asyncio.to_thread(place_of, state, tmp_path)
    attention = Attention(tmp_path / "attention.json")
    app = AcpApp([str(place)], settings=Settings(bell=False, theme=themes[0]), attention=attention)
    async with app.run_test(size=(120, 36)) as pilot:
        await reach(pilot, state, keys)
        for name in themes:
            app.theme = name
            await pilot.pause()
            await pilot.pause()
            drawn = [style for text, style in painted(app) if text]
            assert len(drawn) > 5
            assert too_faint(app) == []


OF_PAIRS = {
    "footer-foreground": "footer-background",
    "footer-key-foreground": "footer-background",
    "footer-description-foreground": "footer-background",
    "block-cursor-foreground": "block-cursor-background",
    "surface": "foreground",
}
"""Colours of text that are drawn on a ground of their own, beside those that all texts are drawn on."""
AUTOMATIC = ("text", "text-muted", "text-disabled")
"""Colours of text that are a share of black or white, whichever fits the ground."""


@pytest.mark.parametrize("name", BUILTIN_THEMES)
def test_the_colours_of_a_theme_can_be_read_on_its_grounds(name: str) -> None:
    app = AcpApp([])
    app.theme = name
    variables = app.get_css_variables()
    names = ("background", "surface", "panel", "cursor")
    grounds = [Color.parse(variables[each]) for each in names]
    if grounds[0].ansi is not None:
        assert variables["cursor"] == "transparent"
        return
    for text in (*TEXTS, *OF_PAIRS):
        color, own = Color.parse(variables[text]), OF_PAIRS.get(text)
        under = [Color.parse(variables[own])] if own else grounds
        assert all(contrast(color, ground) >= LEAST for ground in under), text
        assert all(contrast(_dimmed(color, ground), ground) >= LEAST for ground in under), text
    for text in AUTOMATIC:
        share = int(variables[text].removeprefix("auto ").removesuffix("%")) / 100
        for ground in grounds:
            limit = max((BLACK, WHITE), key=lambda each: contrast(each, ground))
            assert contrast(ground.blend(limit, share), ground) >= LEAST, text


def _dimmed(color: Color, ground: Color) -> Color:
    """What the dashboard draws where a text of this colour is dim."""
    style = Style.from_color(color.rich_color, ground.rich_color) + Style(dim=True)
    drawn = ReadableDim(DEFAULT_TERMINAL_THEME).truecolor_style(style, ground.rich_color).color
    assert drawn is not None
    return Color.from_rich_color(drawn)


def test_every_colour_that_texts_have_is_one_that_is_tested() -> None:
    """A colour that a stylesheet or a widget names for a text is among those tested above."""
    stylesheets = [path.read_text("utf-8") for path in (ROOT / "acp_tui").rglob("*.tcss")]
    modules = [path.read_text("utf-8") for path in files("acp_tui")]
    named = {each for text in (*stylesheets, *modules) for each in _COLOUR.findall(text)}
    named |= {each for text in modules for each in _STYLE.findall(text)}
    known = {*TEXTS, *OF_PAIRS, *AUTOMATIC}
    assert named - known == {"primary"}  # of the bars of progress, which are no text
    assert {"text-error", "text-warning", "text-success", "text-muted"} <= named


_COLOUR = re.compile(r"(?<![-\w])color: \$([a-z]+(?:-[a-z]+)*)")
_STYLE = re.compile(r"""["']\$([a-z]+(?:-[a-z]+)*)["' ]""")


def test_no_state_is_told_by_its_colour_alone() -> None:
    """Of states that share a place on the screen, each has a sign of its own."""
    kinds: tuple[Mapping[Any, str], ...] = (
        *(signs.TONE, signs.SEVERITY, signs.PHASE, signs.STATUS, signs.VERDICT),
        *(signs.CHECKED, signs.SOURCE),
    )
    for kind in kinds:
        assert len(set(kind.values())) == len(kind), kind
    assert set(TONE_COLOURS) == set(signs.TONE)
    assert set(SEVERITY_COLOURS) == set(signs.SEVERITY)
