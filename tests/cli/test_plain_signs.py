"""Signs for terminals that have few: which are chosen, and what stands for the others."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from acp_core.cli import signs
from acp_core.cli.plain_signs import ALL, ASCII, CONSOLE, table, wanted


@pytest.mark.parametrize(
    ("environment", "chosen"),
    [
        ({}, ALL),  # no word of a locale: a container, and a terminal of today
        ({"LANG": "de_DE.UTF-8"}, ALL),
        ({"LANG": "en_US.utf8", "TERM": "xterm"}, ALL),
        ({"LANG": "C"}, ASCII),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, ASCII),  # Python wrote the second itself
        ({"LANG": "POSIX", "LC_CTYPE": "en_US.UTF-8"}, ALL),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, ASCII),
        ({"LANG": "de_DE@euro"}, ASCII),
        ({"LANG": "C.UTF-8", "TERM": "linux"}, CONSOLE),
        ({"LANG": "C", "TERM": "linux"}, ASCII),
        ({"LANG": "C", "ACP_SIGNS": "unicode"}, ALL),
        ({"LANG": "C.UTF-8", "ACP_SIGNS": " ASCII "}, ASCII),
        ({"LANG": "C.UTF-8", "ACP_SIGNS": "nonsense"}, ALL),
    ],
)
def test_the_environment_says_which_there_are(environment: dict[str, str], chosen: str) -> None:
    assert wanted(environment) == chosen


def test_every_sign_of_a_state_has_a_plain_one_of_its_own_meaning() -> None:
    for meanings in (signs.TONE, signs.SEVERITY, signs.PHASE, signs.STATUS, signs.VERDICT):
        for sign in meanings.values():
            for kind in (ASCII, CONSOLE):
                plain = sign.translate(table(kind))
                assert "?" not in plain or "?" in sign
                assert plain.isascii() or kind == CONSOLE
    for kind in (ASCII, CONSOLE):
        states = [sign.translate(table(kind)) for sign in signs.PHASE.values()]
        assert len(set(states)) == len(states)


def test_lines_letters_and_other_scripts() -> None:
    plain = table(ASCII)
    assert "╭─ Zürich ─╮".translate(plain) == "+- Zurich -+"
    assert "┃ Straße 待 │".translate(plain) == "| Stra?e ?? |"
    console = table(CONSOLE)
    assert "╭─ Zürich ✓ ─╮".translate(console) == "┌─ Zürich v ─┐"
    assert "Москва".translate(console) == "Москва"  # its font may have them


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn", "Co"))))
def test_only_ascii_is_left_and_ascii_stays(text: str) -> None:
    plain = text.translate(table(ASCII))
    assert plain.isascii()
    assert text.translate(table(ASCII)) == plain
    if text.isascii():
        assert plain == text


@pytest.mark.parametrize("kind", [ASCII, CONSOLE])
def test_columns_stay_where_they_are(kind: str) -> None:
    for code in (*range(0xA0, 0x2600), *map(ord, "待定漢、：✅✓✗❯")):
        sign = chr(code)
        if (
            unicodedata.category(sign) in ("Mn", "Me", "Mc", "Cf", "Cn", "Zl", "Zp", "Lo")
            and code < 0x2600
        ):
            continue
        assert cell_len(sign.translate(table(kind))) == cell_len(sign), (hex(code), sign)


@pytest.mark.parametrize("kind", [CONSOLE, ASCII])
def test_how_far_something_is_shows_without_colour(kind: str) -> None:
    full, left, unknown = (sign.translate(table(kind)) for sign in "━─┄")
    assert len({full, left, unknown}) == 3
