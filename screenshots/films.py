"""Makes the moving pictures in the folder films: what happens when a few keys are pressed.

    python screenshots/films.py            # all of them, into films/
    python screenshots/films.py -o DIR     # somewhere else
    python screenshots/films.py fix        # only this one

Each is one SVG whose frames are pictures of the real dashboard, taken one after the other while the
keys are pressed that stand below them. Viewers that move nothing see the last frame.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from make import (
    NOW,
    PLACE,
    THEMES,
    TO_SECOND_ROUND,
    at_rest,
    begin_again,
    keys,
    learned,
    settled_in,
)

from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.widgets import outcome_line

SIZE = (100, 28)
CAPTION = 34  # of the drawing's units, below the terminal
_NUMBER = re.compile(r"\bterminal-\d+")
# What a frame can do without: nothing runs over a row's end, and no font is loaded from elsewhere.
_SPARE = re.compile(
    r'@font-face \{.*?\}|<clipPath.*?</clipPath>| clip-path="[^"]*"|<!--.*?-->', re.S
)
_WHOLE = re.compile(
    r'<svg class="rich-terminal" viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>(.*)</svg>', re.S
)


class Frame(NamedTuple):
    """What is done before the picture is taken, what stands below it, and how long it is seen."""

    steps: tuple[str, ...]
    caption: str
    seconds: float


class Film(NamedTuple):
    """A folder that is opened, and what happens then."""

    name: str
    folder: str
    frames: tuple[Frame, ...]


def frame(caption: str, *steps: str, seconds: float = 2.5) -> Frame:
    """A frame; see `keys` for its steps."""
    return Frame(steps, caption, seconds)


FILMS = (
    Film(
        "fix",
        "work/log-retention",
        (
            frame(
                "A collaboration is stuck: one red line says why.", "see out of date", seconds=3.5
            ),
            frame("f: what the fix writes, before it is done", "f", "see createdAt", seconds=4.0),
            frame("ctrl+s: fixed", "ctrl+s", "see Fixed", seconds=4.0),
        ),
    ),
    Film(
        "decide",
        "work/session-tokens",
        (
            frame("A blocked collaboration needs a decision.", "see 13:16", seconds=3.0),
            frame(
                "f: the card has the facts, and a digit for each verdict",
                "f",
                "see 1  ",
                seconds=4.0,
            ),
            frame(
                "1: the verdict asks for an answer, ctrl+s sends it",
                "1",
                *"All devices.",
                seconds=3.0,
            ),
        ),
    ),
    Film(
        "replay",
        "past",
        (
            frame(
                "R: the replay begins at the last step",
                "see order-retries",
                "R",
                "see of",
                seconds=3.0,
            ),
            frame("{: to the first step", "left_curly_bracket", "see 1 of", seconds=2.5),
            frame(
                "shift+right: to the next events",
                *(key for key in TO_SECOND_ROUND if key == "shift+right"),
                seconds=3.0,
            ),
            frame("2: the documents as they were at this step", "2", "see round 2", seconds=3.5),
        ),
    ),
)


async def shoot(film: Film) -> list[str]:
    """The pictures of a film, in order."""
    state = Path(tempfile.mkdtemp(dir=PLACE, prefix=".state-"))
    begin_again()
    outcome_line.SECONDS = 3_600.0  # what shows for a moment shows in the picture
    settings = Settings(theme=THEMES["dark"], utc=True, bell=False)
    app = AcpApp(
        [str(PLACE / film.folder)], settings=settings, clock=lambda: NOW,
        attention=Attention(state / "attention.json"),
    )  # fmt: skip
    app.animation_level = "none"
    drawn = []
    async with app.run_test(size=SIZE) as pilot:
        await learned(pilot)
        for each in film.frames:
            await keys(*each.steps)(pilot)
            drawn.append(await at_rest(pilot))
    return drawn


def moving(name: str, frames: Sequence[Frame], drawn: Sequence[str]) -> str:
    """One SVG that shows the frames one after the other, without end."""
    whole = sum(each.seconds for each in frames)
    width, height, begun = "0", 0.0, 0.0
    styles, groups = [], []
    for number, (each, svg) in enumerate(zip(frames, drawn, strict=True)):
        match = _WHOLE.search(_SPARE.sub("", _NUMBER.sub(f"{name[0]}{number}", svg)))
        assert match is not None
        width, height = match[1], float(match[2])
        start, end = (100 * at / whole for at in (begun, begun + each.seconds))
        begun += each.seconds
        before = "" if number == 0 else "0% { visibility: hidden } "
        styles.append(
            f"@keyframes show-{number} {{ {before}{start:.2f}% {{ visibility: visible }} "
            f"{end:.2f}% {{ visibility: hidden }} }}\n"
            f".frame-{number} {{ animation: show-{number} {whole:g}s step-end infinite }}"
        )
        caption = (
            f'<text class="caption" x="{float(width) / 2:g}" y="{height + CAPTION - 12:g}" '
            f'text-anchor="middle">{_escaped(each.caption)}</text>'
        )
        groups.append(f'<g class="frame frame-{number}">{match[3]}{caption}</g>')
    last = len(frames) - 1
    return (
        f'<svg viewBox="0 0 {width} {height + CAPTION:g}" xmlns="http://www.w3.org/2000/svg">\n'
        f"<style>\n.frame {{ visibility: hidden }}\n.frame-{last} {{ visibility: visible }}\n"
        ".caption { fill: #8a8a8a; font-family: sans-serif; font-size: 20px }\n"
        "@media (prefers-reduced-motion: no-preference) {\n"
        + "\n".join(styles)
        + "\n}\n</style>\n"
        + "\n".join(groups)
        + "\n</svg>\n"
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def main() -> int:
    """Make the films that were asked for; the exit code."""
    parser = argparse.ArgumentParser(description="Make the moving pictures.")
    names = [film.name for film in FILMS]
    parser.add_argument("films", nargs="*", metavar="FILM", help=f"of {', '.join(names)}")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path(__file__).parent / "films", metavar="DIR"
    )
    given = parser.parse_args()
    unknown = sorted(set(given.films) - set(names))
    if unknown:
        parser.error(f"no film {', '.join(unknown)}; there are: {', '.join(names)}")
    output: Path = given.output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    for film in FILMS:
        if given.films and film.name not in given.films:
            continue
        with settled_in():
            path = output / f"{film.name}.svg"
            drawn = asyncio.run(shoot(film))
            path.write_text(moving(film.name, film.frames, drawn), encoding="utf-8")
            print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
