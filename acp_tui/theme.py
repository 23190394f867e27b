"""The choice of a theme, and colours that can be read in every one.

Textual's themes choose colours for their own widgets: some of them cannot be read on the rows and bars
of the dashboard. `readable` changes the variables of a theme whose contrast falls below `LEAST`, and
adds ``$cursor``, the colour of the row under the cursor. `ReadableDim` draws dim text as dim as can
still be read. The sixteen colours of a terminal are the person's own: they stay.

This is needed before the first picture, and imports nothing that is slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from rich.color import Color as RichColor
from rich.style import Style
from textual.color import BLACK, WHITE, Color
from textual.filter import ANSIToTruecolor

if TYPE_CHECKING:
    from rich.terminal_theme import TerminalTheme

DEFAULT = "textual-dark"

WITHOUT_COLOUR = "ansi-dark"  # says by reversed, bold and dim text what others say by colour


def choose(wanted: str | None, available: Iterable[str], *, colour: bool = True) -> tuple[str, str]:
    """The theme to start with, and what to tell where the wanted one does not exist ("" else).

    Args:
        wanted: What the settings ask for.
        available: The names of all themes.
        colour: Whether colours may be used (``NO_COLOR`` says not).
    """
    if not colour:
        return WITHOUT_COLOUR, ""
    if not wanted:
        return DEFAULT, ""
    names = sorted(available)
    if wanted in names:
        return wanted, ""
    return DEFAULT, f"Unknown theme {wanted!r} (available: {', '.join(names)})."


LEAST = 4.5

"""The contrast that text has at least: what WCAG 2 asks for (AA)."""

NEAR = 1.4

"""The contrast of bars, and of the row under the cursor, with what is around them, at most."""

TEXTS = (
    *(
        "text-primary",
        "text-secondary",
        "text-accent",
        "text-success",
        "text-warning",
        "text-error",
    ),
    *(
        "foreground",
        "button-foreground",
        "footer-foreground",
        "footer-description-foreground",
        "footer-key-foreground",
    ),
)

BARS = ("panel", "footer-background")

STEPS = 20

"""Shades that are tried between a colour and black or white."""


def contrast(one: Color, other: Color) -> float:
    """The contrast of two opaque colours, from 1 to 21, as WCAG 2 defines it."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@cache
def _luminance(color: Color) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in color.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def readable(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of a theme, with colours of text that can be read, and ``$cursor``.

    Args:
        variables: All of the theme's, by name.
    """
    names = ("background", "surface", "foreground", "primary")
    colors = [Color.parse(variables[name]) for name in names]
    if any(color.ansi is not None for color in colors):
        return {**variables, "cursor": "transparent"}
    return {**variables, **_changed(variables, *colors)}


def _changed(
    variables: Mapping[str, str],
    background: Color,
    surface: Color,
    foreground: Color,
    primary: Color,
) -> dict[str, str]:
    bars = {name: _near(background, Color.parse(variables[name])) for name in BARS}
    cursor = _near(background, background.blend(primary, 0.25))
    raised = (ground.blend(foreground, 0.08) for ground in (background, surface))
    under = (background, surface, cursor, *bars.values(), *raised)
    limit, block = _limit(under), Color.parse(variables["block-cursor-background"])
    on_block = WHITE if contrast(WHITE, block) >= LEAST else BLACK
    read = {name: _towards(limit, Color.parse(variables[name]), under) for name in TEXTS}
    changed = {**bars, **read, "cursor": cursor, "block-cursor-foreground": on_block}
    muted = _muted(under, background, limit)
    shares = {"text-muted": muted, "text-disabled": muted}  # what an empty field asks for, too
    return shares | {name: color.hex for name, color in changed.items()}


def _near(background: Color, color: Color) -> Color:
    """As much of a colour as stays near the background: seen at once, and no obstacle to texts."""
    shades = (background.blend(color, (STEPS - step) / STEPS) for step in range(STEPS))
    return next((each for each in shades if contrast(each, background) <= NEAR), background)


def _limit(under: Iterable[Color]) -> Color:
    """Black or white, whichever can be read better on all of these."""
    grounds = tuple(under)
    return max((BLACK, WHITE), key=lambda color: min(contrast(color, each) for each in grounds))


def _towards(limit: Color, color: Color, under: Iterable[Color]) -> Color:
    """The first shade on the way from a colour to black or white that can be read on all of these."""
    grounds = tuple(under)
    shades = (color.blend(limit, step / STEPS) for step in range(STEPS))
    return next((each for each in shades if _is_readable(each, grounds)), limit)


def _is_readable(color: Color, under: Iterable[Color]) -> bool:
    return all(contrast(color, each) >= LEAST for each in under)


def _muted(under: tuple[Color, ...], background: Color, limit: Color) -> str:
    """What matters less, as Textual writes it: a share of black or white, whichever fits the ground."""
    shares = (
        share
        for share in range(60, 100, 2)
        if _is_readable(background.blend(limit, share / 100), under)
    )
    return f"auto {next(shares, 100)}%"


class ReadableDim(ANSIToTruecolor):
    """Textual's filter for true colours, that makes nothing dimmer than can be read."""

    def __init__(self, terminal_theme: TerminalTheme) -> None:
        super().__init__(terminal_theme)

    @lru_cache(1024)  # noqa: B019 - one for each of the two palettes, as in Textual
    def truecolor_style(self, style: Style, background: RichColor) -> Style:
        """Replace the sixteen colours, and dim by a colour."""
        plain = super().truecolor_style(style + _NOT_DIM if style.dim else style, background)
        if not style.dim or plain.color is None:
            return plain
        ground = Color.from_rich_color(plain.bgcolor or background)
        color = Color.from_rich_color(plain.color)
        dimmed = _towards(color, ground.blend(color, DIM), (ground,))
        return plain + Style.from_color(dimmed.rich_color)


DIM = 0.66

"""How much of its colour is left of a dim text, where it can be read then."""

_NOT_DIM = Style(dim=False)
