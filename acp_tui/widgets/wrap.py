"""Cutting a long line of text into pieces that fit, at blanks where there are any."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import get_character_cell_size

from acp_tui.text import width


def wrap(text: str, cells: int, rest: int = 0) -> list[tuple[int, int]]:
    """The spans of characters of the pieces of ``text``, each at most ``cells`` wide.

    Blanks at which a line is cut belong to no piece. Linear in the length of the text.

    Args:
        text: One line.
        cells: The width of the first piece; less than 2 counts as 2, a wide letter's width.
        rest: The width of the others, where it is another one.
    """
    limit = max(2, cells)
    after = max(2, rest or cells)
    if len(text) <= limit and width(text) <= limit:
        return [(0, len(text))]
    narrow = text.isascii()
    spans: list[tuple[int, int]] = []
    start = used = 0
    blank = -1  # the last blank of this piece
    index = 0

    def after_blanks(at: int) -> int:
        while at < len(text) and text[at] == " ":
            at += 1
        return at

    while index < len(text):
        letter = text[index]
        size = 1 if narrow else get_character_cell_size(letter)
        if used + size > limit and index > start:
            if letter == " ":
                spans.append((start, index))
                start = after_blanks(index)
            elif blank > start:
                spans.append((start, blank))
                start = blank + 1
            else:
                spans.append((start, index))
                start = index
            index, used, blank, limit = start, 0, -1, after  # at most a piece is looked at again
            continue
        if letter == " ":
            blank = index
        used += size
        index += 1
    if start < len(text) or not spans:
        spans.append((start, len(text)))
    return spans


def wrap_path(path: str, cells: int) -> Iterator[tuple[int, int]]:
    """The spans of characters of the pieces of a path, cut behind slashes where there are any.

    Args:
        path: A path, or any other line.
        cells: How wide a piece may be; less than 2 counts as 2.
    """
    start = 0
    while width(path[start:]) > max(2, cells):
        stop = start + wrap(path[start:].replace(" ", "_"), cells)[0][1]
        slash = path.rfind("/", start, stop)
        stop = slash + 1 if slash > start else stop
        yield start, stop
        start = stop
    yield start, len(path)
