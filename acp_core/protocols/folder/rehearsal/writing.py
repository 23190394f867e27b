"""How a text becomes another one in front of a reader: pure functions, no files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from string import Template
from typing import Any

from acp_core.protocols.folder.rehearsal.scenario import Write
from acp_core.protocols.folder.schema import list_in

_EMPTY_BOX = re.compile(r"^(\s*- )\[ \]", re.MULTILINE)


def result(write: Write, text: str, values: Mapping[str, str]) -> str:
    """What ``write`` makes of a file that holds ``text``; ``values`` fill in its ``$names``.

    Raises:
        KeyError: a text names a value that there is none of.
        ValueError: what is to be replaced does not stand in the file.
    """
    if write.tick:
        return _EMPTY_BOX.sub(r"\1[x]", text)
    if write.text is not None:
        return fill(write.text, values)
    if not write.find or write.find not in text:
        raise ValueError(f"{write.file} does not hold {write.find!r}")
    return text.replace(write.find, fill(write.replace, values), 1)


def fill(text: str, values: Mapping[str, str]) -> str:
    """``text`` with its ``$names`` filled in.

    Raises:
        KeyError: it names a value that there is none of.
    """
    return Template(text).substitute(values)


def stages(old: str, new: str) -> list[str]:
    """The texts between ``old`` and ``new``, from the top down; the last one is ``new``.

    Lines that change one for one change one at a time; what is new comes paragraph by
    paragraph. Empty where nothing changes.
    """
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    found: list[str] = []
    done: list[str] = []
    for tag, i, i_end, j, j_end in SequenceMatcher(None, before, after, False).get_opcodes():
        if tag == "equal":
            done += after[j:j_end]
            continue
        one_for_one = i_end - i == j_end - j
        pieces = ([line] for line in after[j:j_end]) if one_for_one else _paragraphs(after[j:j_end])
        gone = i
        for piece in pieces:
            done += piece
            gone = gone + 1 if one_for_one else i_end
            found.append("".join(done + before[gone:]))
        if tag == "delete":
            found.append("".join(done + before[i_end:]))
    return found


def _paragraphs(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines up to and with the blank ones that end each paragraph."""
    paragraph: list[str] = []
    ended = False
    for line in lines:
        if ended and line.strip():
            yield paragraph
            paragraph = []
        paragraph.append(line)
        ended = not line.strip()
    if paragraph:
        yield paragraph


def gate_lists(protocol: dict[str, Any]) -> dict[str, str]:
    """The completion gates of a protocol.json as check lists, by the names that texts use.

    ``gates`` are all of them; in dialect v2 ``objective_gates``
    and ``generated_gates`` are those of each source.
    """
    gates = [
        (item.get("source", ""), item.get("text", "")) if isinstance(item, dict) else ("", item)
        for item in list_in(protocol, "completionGates")
    ]
    lists = {
        "gates": [text for _, text in gates],
        "objective_gates": [text for source, text in gates if source == "objective"],
        "generated_gates": [text for source, text in gates if source == "generated"],
    }
    return {name: "\n".join(f"- [ ] {text}" for text in texts) for name, texts in lists.items()}
