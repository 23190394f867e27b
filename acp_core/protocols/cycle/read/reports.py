"""What an agent says at its end: the block PHASE_RESULT, taken out of whatever it printed.

Source: development cycle specification, "Phase Result Format". Agents print it with line ends of
any kind, in fences, in bold, more than once: the last block counts. Values become what they mean
("[a, b]" a list, "92%" a number, "17/20" a `Ratio`, "true" a truth); unknown keys are kept.
Nothing in it can fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from acp_core.protocols.cycle.schema import AGENTS

RESULT_BYTES = 4 << 20  # characters that are looked at, the last ones

RESULT_STATUSES = ("success", "failed", "partial")

_LINES = 500  # of one block

_LONG_VALUE = 4_000  # characters of one value

_HEAD = re.compile(r"^[\s>*_#`]*PHASE_RESULT[*_`]*\s*:[\s*_`]*$")

_DETAILS = re.compile(r"^[\s>*_#`]*PHASE_DETAILS[*_`]*\s*:[\s*_`]*(.*)$")

_FENCE = re.compile(r"^\s*(?:```|~~~)")

_DASH = re.compile(r"^(\s*)(?:[-*+\u2022]|\d{1,3}[.)])\s+(.*)$")

_PAIR = re.compile(
    r"^[*_`]*([A-Za-z][A-Za-z0-9_ -]{0,60}?)[*_`]*\s*:(?:[*_`]+(?=\s|$))?(?:\s+(.*)|)$"
)

_RATIO = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})")

_PERCENT = re.compile(r"([+-]?\d{1,9}(?:\.\d{1,9})?)\s*%")

_INTEGER = re.compile(r"[+-]?\d{1,15}")

_DECIMAL = re.compile(r"[+-]?\d{1,15}\.\d{1,15}")

_NO_VALUE = ("", "none", "n/a", "-", "null", "no", "nothing")


class Ratio(NamedTuple):
    """``part`` of ``whole``, as in "17/20"."""

    part: int
    whole: int

    def __str__(self) -> str:
        return f"{self.part}/{self.whole}"


Value = str | int | float | bool | Ratio | list[str]


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """One block, taken apart.

    Attributes:
        fields: every key with its value, in the order of the block.
        details: the text behind PHASE_DETAILS, "" where there is none.
        blocks: how many blocks the output held; this is the last one.
    """

    fields: Mapping[str, Value] = field(default_factory=dict)
    details: str = ""
    blocks: int = 1

    @property
    def phase(self) -> str:
        """The agent that it names, in small letters."""
        return self.word("phase").lower()

    @property
    def status(self) -> str:
        """Its status, in small letters: one of `STATUSES` where it is in order."""
        return self.word("status").lower()

    @property
    def summary(self) -> str:
        """The one-line summary."""
        return self.word("summary")

    def word(self, key: str) -> str:
        """A value as text; a list as its items with commas; "" where it is missing."""
        value = self.fields.get(key, "")
        return ", ".join(value) if isinstance(value, list) else str(value)

    def items(self, key: str) -> list[str]:
        """A value as a list: words like "none", and mere numbers, mean an empty one."""
        value = self.fields.get(key, "")
        if isinstance(value, list):
            return [each for each in value if each.strip().lower() not in _NO_VALUE]
        if not isinstance(value, str) or value.strip().lower() in _NO_VALUE:
            return []
        return [value]

    def number(self, key: str) -> float | None:
        """A number, or the percentage that a `Ratio` is; None for anything else."""
        value = self.fields.get(key)
        if isinstance(value, Ratio):
            return 100 * value.part / value.whole if value.whole else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value)

    def truth(self, key: str) -> bool | None:
        """A truth; None for anything else."""
        value = self.fields.get(key)
        return value if isinstance(value, bool) else None

    def problems(self, agent: str = "") -> list[str]:
        """What is not as it should be, a sentence each; with ``agent``, also another's phase."""
        found = []
        if agent and self.phase != agent:
            found.append(f"phase is {self.phase!r}, not {agent!r}")
        elif self.phase not in AGENTS:
            found.append(f"phase {self.phase!r} is not one of {', '.join(AGENTS)}")
        if self.status not in RESULT_STATUSES:
            found.append(f"status {self.status!r} is not one of {', '.join(RESULT_STATUSES)}")
        missing = [key for key in ("files_written", "summary", "issues") if key not in self.fields]
        if missing:
            found.append(f"missing: {', '.join(missing)}")
        if self.blocks > 1:
            found.append(f"{self.blocks} blocks, the last one counts")
        unhappy = self.status in ("failed", "partial")
        reasons = (*self.items("issues"), *self.items("blockers"), *self.items("failed_tests"))
        if unhappy and not reasons:
            found.append(f"{self.status} without issues or blockers")
        return found

    def plain(self) -> dict[str, object]:
        """The fields ready for JSON: a `Ratio` as "17/20"."""
        return {k: str(v) if isinstance(v, Ratio) else v for k, v in self.fields.items()}


def parse_result(output: str) -> PhaseResult | None:
    """The last block of an output; None where there is none.

    A block whose phase or status still lists the choices ("ra|ep|cd|vas") is a template that was
    repeated, not a result.
    """
    lines = output[-RESULT_BYTES:].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    starts = [number for number, line in enumerate(lines) if _HEAD.match(line[:200])]
    found = [(start, _block(lines[start + 1 : start + 1 + _LINES])) for start in starts]
    real = [(start, each) for start, each in found if each and not _template(each)]
    if not real:
        return None
    start, fields = real[-1]
    return PhaseResult(fields, _details(lines[start + 1 :]), len(real))


def _template(fields: Mapping[str, Value]) -> bool:
    return any("|" in str(fields.get(key, "")) for key in ("phase", "status"))


def _block(lines: list[str]) -> dict[str, Value]:
    raw: dict[str, str | list[str]] = {}
    last, depth = "", 0
    for line in _body(lines):
        dash = _DASH.match(line)
        indent = len(dash[1]) if dash else len(line) - len(line.lstrip())
        said = (dash[2] if dash else line).strip()[:_LONG_VALUE]
        pair = _PAIR.match(said)
        held = raw.get(last)
        if pair and indent <= depth and not (isinstance(held, list) and held and indent > depth):
            last, depth = _key(pair[1]), indent
            raw[last] = (pair[2] or "").strip()
        elif last and dash:
            items = held if isinstance(held, list) else [held] if held else []
            raw[last] = [*items, _bare(said)]
        elif last and isinstance(held, list) and held:
            held[-1] = f"{held[-1]} {said}"[:_LONG_VALUE]
        elif last:
            raw[last] = f"{held} {said}".strip()[:_LONG_VALUE]
        elif pair:  # the first key stands further in than the head
            last, depth = _key(pair[1]), indent
            raw[last] = (pair[2] or "").strip()
    return {key: value if isinstance(value, list) else typed(value) for key, value in raw.items()}


def _body(lines: list[str]) -> Iterator[str]:
    """The lines of a block: up to a blank one, the end of a fence, or the next heading word."""
    begun = False
    for line in lines:
        if not line.strip():
            if begun:
                return
            continue
        if _DETAILS.match(line) or _HEAD.match(line):
            return
        if _FENCE.match(line):
            if begun:
                return
            continue
        begun = True
        yield line.expandtabs(4)[: _LONG_VALUE * 2].removeprefix("> ")


def _key(said: str) -> str:
    return re.sub(r"[ -]+", "_", said.strip().lower())


def _details(lines: list[str]) -> str:
    for number, line in enumerate(lines):
        if _HEAD.match(line):
            return ""
        head = _DETAILS.match(line)
        if head:
            rest = [head[1]] if head[1] else []
            for each in lines[number + 1 : number + _LINES]:
                if _FENCE.match(each):
                    break
                rest.append(each)
            return "\n".join(rest).strip()[: _LONG_VALUE * 4]
    return ""


def typed(said: str) -> Value:
    """A value as what it means; text stays text."""
    said = said.strip()
    if said.startswith("[") and said.endswith("]"):
        return _listed(said[1:-1])
    bare = _bare(said)
    small = bare.lower()
    if small in ("true", "false"):
        return small == "true"
    if match := _RATIO.fullmatch(bare):
        return Ratio(int(match[1]), int(match[2]))
    if match := _PERCENT.fullmatch(bare):
        return float(match[1])
    if _INTEGER.fullmatch(bare):
        return int(bare)
    if _DECIMAL.fullmatch(bare):
        return float(bare)
    return bare


def _bare(said: str) -> str:
    """Text without the quotes, backticks or stars around the whole of it."""
    said = said.strip()
    for sign in ("**", "`", '"', "'"):
        if len(said) >= 2 * len(sign) and said.startswith(sign) and said.endswith(sign):
            inside = said[len(sign) : -len(sign)]
            if sign not in inside:
                said = inside.strip()
    return said


def _listed(inside: str) -> list[str]:
    """The items of a list in brackets; a comma in quotes or in brackets parts nothing."""
    items, current, quote, depth = [], "", "", 0
    for number, sign in enumerate(inside):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'`" and not current.strip() and sign in inside[number + 1 :]:
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth = max(0, depth - 1)
        elif sign == "," and not depth:
            items.append(current)
            current = ""
            continue
        current += sign
    items.append(current)
    return [bare for each in items if (bare := _bare(each)[:_LONG_VALUE])]
