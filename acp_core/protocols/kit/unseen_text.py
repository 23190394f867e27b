"""Text that people cannot see in files that programs read: a finding in every protocol.

Tag characters, signs without a width and piles of marks reach a program as text, and the person who
supervises it not at all. Documents are read as they are, JSON with its escapes. Standard library only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from acp_core.files.reading import Stamp, Unreadable, open_regular, stamp, stamp_of
from acp_core.files.text import clean_line, spelled, unseen
from acp_core.model import Finding, Severity
from acp_core.model.tracked import TrackedFile

LIMIT = 64 << 20  # bytes of a file that are looked at
_JSON = (".json", ".jsonl", ".ndjson")
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class _Look:
    """What was seen of a file.

    Attributes:
        stamp: as of when.
        offset, lines: bytes and number of the complete lines.
        hits: how many lines hold such text.
        first, characters: the first of them, counted from 1, and its text that cannot be seen.
    """

    stamp: Stamp
    offset: int = 0
    lines: int = 0
    hits: int = 0
    first: int = 0
    characters: str = ""


class UnseenText:
    """Looks at files again only where they changed; of a log only at what was added.

    Args:
        code: the code of the findings.
    """

    def __init__(self, code: str) -> None:
        self._code = code
        self._looks: dict[str, _Look] = {}

    def findings(self, files: Iterable[TrackedFile]) -> tuple[Finding, ...]:
        """A finding for each of these files that holds such text; none for unreadable ones."""
        files = tuple(files)
        looks = {each.path: self._look(each, self._looks.get(each.path)) for each in files}
        self._looks = {path: look for path, look in looks.items() if look is not None}
        return tuple(
            finding(self._code, file, look.first, look.characters, look.hits)
            for file in files
            if (look := self._looks.get(file.path)) is not None and look.hits
        )

    def _look(self, file: TrackedFile, before: _Look | None) -> _Look | None:
        now = stamp(file.path)
        if now is None or (before is not None and before.stamp == now):
            return before if now is not None else None
        try:
            descriptor, status = open_regular(file.path)
            with os.fdopen(descriptor, "rb") as opened:
                added = file.log and before is not None and before.offset <= status.st_size
                look = before if added and before is not None else _Look(now)
                opened.seek(look.offset)
                return _read(
                    replace(look, stamp=stamp_of(status)), opened.read(LIMIT - look.offset), file
                )
        except (Unreadable, OSError):
            return None


def _read(look: _Look, data: bytes, file: TrackedFile) -> _Look:
    """The look after what was read behind its offset; of a log, complete lines count."""
    json = file.name.endswith(_JSON)
    complete = data.rfind(b"\n") + 1
    read = data[:complete] if file.log else data
    after = replace(look, offset=look.offset + complete, lines=look.lines + read.count(b"\n"))
    if read.isascii() and not (json and b"\\u" in read):
        return after
    lines = enumerate(read.removeprefix(_BOM).split(b"\n"), look.lines + 1)
    hits = [(number, unseen_in_line(line, json)) for number, line in lines]
    hits = [hit for hit in hits if hit[1]]
    if not hits:
        return after
    first, characters = (look.first, look.characters) if look.hits else hits[0]
    return replace(after, hits=look.hits + len(hits), first=first, characters=characters)


def unseen_in_line(line: bytes, json: bool = False) -> str:
    """The characters of a line that people cannot see.

    Args:
        line: as it stands in the file; what is no UTF-8 is left out.
        json: whether an escape such as ``\\u200b`` stands for its character.
    """
    if line.isascii() and not (json and b"\\u" in line):
        return ""
    text = line.decode("utf-8", "ignore")
    return unseen(_ESCAPES.sub(_unescaped, text) if json else text)


def _unescaped(match: re.Match[str]) -> str:
    return bytes.fromhex(match.group().replace("\\u", "")).decode("utf-16-be", "replace")


def finding(code: str, file: TrackedFile, line: int, characters: str, lines: int = 1) -> Finding:
    """What is said of such text: a warning where a program reads words in it, else advice.

    Args:
        code: the finding's code.
        file: where the text stands.
        line: the first line of it, counted from 1.
        characters: those that cannot be seen, of that line.
        lines: how many lines hold some.
    """
    count = len(characters)
    words = clean_line(spelled(characters), 120)
    sentence = f"line {line} holds {count} character{'s' * (count != 1)} that people cannot see"
    if words:
        sentence += f"; programs read them as “{words}”"
    if lines > 1:
        sentence += f" ({lines} lines hold such text)"
    severity = Severity.WARNING if words else Severity.ADVICE
    return Finding(code, severity, sentence, file.document or None, line if file.document else None)
