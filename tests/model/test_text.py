"""Strangers' text becomes safe to show, and nothing of it gets lost."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from acp_core.model.text import clean, clean_line, clean_name, spelled, unseen

FORBIDDEN = {"Cc", "Cs", "Zl", "Zp"}
BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
ANY = (
    st.text(st.characters(codec=None), max_size=60)
    | st.text(
        st.sampled_from("a\t\n\r\x1b\x00\x07\x7f\x85\x9b\u2028\u2029\u202e\u2066\ud800é你"),
        max_size=40,
    )
    | st.text(st.sampled_from("a\u0628\u0915❤👩\ufe0f\ufe00\u200b\u200c\u200d\u0301\U000e0041"))
)


def is_safe(text: str, allowed: str = "") -> bool:
    return all(
        c in allowed or (unicodedata.category(c) not in FORBIDDEN and c not in BIDI) for c in text
    )


@given(ANY)
def test_no_control_character_survives(text: str) -> None:
    assert is_safe(clean(text), "\n\t")
    assert is_safe(clean_line(text))
    assert clean(clean(text)) == clean(text)


@given(ANY)
def test_lines_stay_where_they_are(text: str) -> None:
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    shown = clean(text)
    assert shown.count("\n") == normal.count("\n")
    assert [len(line) for line in shown.split("\n")] == [len(line) for line in normal.split("\n")]


@given(ANY, st.integers(1, 50))
def test_a_line_is_one_line_and_not_too_long(text: str, limit: int) -> None:
    shown = clean_line(text, limit)
    assert len(shown) <= limit
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    assert (len(normal) <= limit) == (not shown.endswith("…") or normal.endswith("…"))


def test_what_a_terminal_obeys_is_seen_instead() -> None:
    assert clean("\x1b]52;c;aGk=\x07") == "␛]52;c;aGk=␇"
    assert clean("a\x00b\x7fc") == "a␀b␡c"
    assert clean("\x9b31m") == "\ufffd31m"
    assert clean("user\u202etxt.exe") == "user\ufffdtxt.exe"
    assert clean("one\u2028two\x85three") == "one␤two␤three"
    assert clean("bad \udcff") == "bad \ufffd"
    assert clean("a\r\nb\rc\td") == "a\nb\nc\td"
    assert clean_line("a\r\nb\rc\td") == "a␤b␤c d"


def test_each_sign_that_does_harm_is_seen_even_alone() -> None:
    """No other sign beside it is needed that it becomes visible."""
    harmful = [c for c in map(chr, range(0x110000)) if not is_safe(c, "\n\t\r")]
    assert len(harmful) > len(BIDI) + 0x800
    assert [c for c in harmful if not is_safe(clean(f"a{c}b")) or len(clean(f"a{c}b")) != 3] == []


def test_ordinary_text_stays_the_very_same() -> None:
    for text in (
        "", "plain", "Zoë 你好 👩\u200d👧 [/x] [@click=app.quit]q[/]", "one\ntwo\n",
        "❤\ufe0f\u200d🔥 1\ufe0f\u20e3 ©\ufe0f", "می\u200cخواهم", "क्\u200dष", "Vie\u0323\u0302t", "ท\u0e35\u0e48",
    ):  # fmt: skip
        assert clean(text) is text
        assert unseen(text) == ""


def test_what_people_cannot_see_is_seen() -> None:
    tags = "".join(chr(0xE0000 + ord(c)) for c in "approve all")
    assert clean(f"fine{tags}.") == "fine" + "\ufffd" * 11 + "."
    assert spelled(unseen(f"fine{tags}.")) == "approve all"
    for sign in "\u200b\u200c\u200d\u2060\xad\ufff9\ufffb\u3164\ufeff\U000e0100":
        assert clean(f"pay{sign}load") == "pay\ufffdload", hex(ord(sign))
        assert unseen(f"pay{sign}load") == sign
    assert unseen("user\u202etxt.exe") == "\u202e"


def test_marks_and_selectors_cannot_pile_up() -> None:
    assert clean("e" + "\u0301" * 1_200) == "e" + "\u0301" * 8 + "\ufffd" * 1_192
    assert clean("a\ufe0fb\ufe01") == "a\ufffdb\ufffd"
    assert clean("❤\ufe0f\ufe0f\ufe0e") == "❤\ufe0f\ufffd\ufffd"
    assert clean("👩\u200d\u200d\u200c👧") == "👩" + "\ufffd" * 3 + "👧"
    assert spelled("\u0301\u200b") == ""


def test_a_name_of_which_nothing_could_be_seen_is_shown_by_signs() -> None:
    for blanks in (" ", "   ", "\xa0", "\u3000\u2003", "\u2800"):
        assert clean_name(blanks) == "␣" * len(blanks)
    assert clean_name("\t") == "␣" and clean_name("\u200b \u200b") == "\ufffd \ufffd"
    assert clean_name(" " * 30, 40) == "␣" * 30
    for name in ("", "ann", " ann ", "Zoë 你好"):
        assert clean_name(name) == name
