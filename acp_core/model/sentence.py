"""The first letter of a sentence: a capital where it stands by itself, none where it goes on.

Needs, causes and headlines are data that is printed in both ways: at the beginning of a row, and after
" — " or ": ". Names keep the letter that they have. Standard library only (see `acp_core.model`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

TYPE_CHECKING = False  # without typing, which costs a start

if TYPE_CHECKING:
    from acp_core.model.snapshot import Need, Snapshot

_OF_NAMES = frozenset("./_`'\"’“”„‘")
_COMMANDS = frozenset(("acp", "git", "mkdir"))


def sentence_case(text: str, names: Iterable[str] = ()) -> str:
    """A text as it stands by itself: with a capital, unless it begins with a name.

    Args:
        text: a need, a cause, an advice, a headline.
        names: names of participants, which begin a sentence as they are ("reader's program ended").
            A file, an id, a field, what is quoted and a command are known as such without.
    """
    first = text[:1]
    capital = first.upper()
    if capital == first or len(capital) != 1 or _is_name(text, names):
        return text
    return capital + text[1:]


def continued(text: str, names: Iterable[str] = ()) -> str:
    """A text as it goes on after " — " or ": ": without a capital, unless it begins with a name.

    Args:
        text: a need, a cause, an advice, a headline.
        names: names of participants, which stay as they are.
    """
    word = _first_word(text)
    ordinary = word.isalpha() and word[:1].isupper() and not any(map(str.isupper, word[1:]))
    if not ordinary or _is_name(text, names):
        return text
    return text[:1].lower() + text[1:]


def names_in(snapshot: Snapshot) -> Iterator[str]:
    """The names with which a sentence about a collaboration may begin."""
    for each in snapshot.participants:
        if each.id != "you":  # a pronoun
            yield each.id
    yield snapshot.name


def need_case(need: Need, snapshot: Snapshot) -> str:
    """A need as it stands by itself; one of a part begins with the part's name.

    Args:
        need: what a human is wanted for.
        snapshot: the collaboration under which it is shown.
    """
    if need not in snapshot.needs:
        return need.text
    return sentence_case(need.text, names_in(snapshot))


def is_said(text: str, longer: str) -> bool:
    """Whether a longer text says a sentence, with or without its capital."""
    return text in longer or text[:1].swapcase() + text[1:] in longer


def _first_word(text: str) -> str:
    return text.partition(" ")[0].rstrip(",:;.!?")


def _is_name(text: str, names: Iterable[str]) -> bool:
    """Whether a text begins with what is written as it is wherever it stands."""
    word = _first_word(text)
    if word in _COMMANDS or any(map(str.isupper, word[1:])):
        return True
    owner = word.removesuffix("'s").removesuffix("’s")
    if any(sign in _OF_NAMES or sign.isdigit() for sign in owner):
        return True
    return any(_begins(text, name) for name in names)


def _begins(text: str, name: str) -> bool:
    """Whether a text begins with this very name, and not with a longer word."""
    after = text[len(name) : len(name) + 1]
    return bool(name) and text.startswith(name) and not (after.isalnum() or after in ("-", "_"))
