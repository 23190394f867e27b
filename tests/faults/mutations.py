"""Changes to a file that somebody, or something, may have made: at random, from a seed."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

HOSTILE = (
    "\x1b]52;c;cHduZWQ=\x07", "\x1b]0;pwned\x07", "\x1b[2J\x1b[?1049l\x1bc", "\x9b2J\x9d2;pwned\x9c",
    "\u202egnp\u2066\u2069\u200f\u061c", "\u2028\u2029\x85\x0b\x0c\x1c", "[@click=app.quit]CLICK[/]",
    "[/x] [bold [$v", "\u200b\u200c\u200d\ufeff\u2060", "e" + "\u0301" * 60, "\x00\x07\x08\r",
    "\ud800", "<script>alert(1)</script><img src=x onerror=alert(1)>", "=cmd|' /C calc'!A0",
    "`$(touch pwned)`; ../../../../etc/passwd", "👩‍👩‍👧‍👦\U000e0041\U0001f3f4", "x" * 20_000, "\\", "%s%n{0}",
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1e308, 10**4_000, float("nan"), float("inf"), "", "0", [], {}, [[]],
    "9999-12-31T23:59:59-23:00", "0001-01-01T00:00:00+23:00", "2026-13-45", "../..", "/", ".", "a/b",
    {"": ""}, [None] * 50, 2**63, -(2**63),
)  # fmt: skip
TOKENS = (
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\r", b"\r\n", b"\n\n\n", b"\xe2\x80\xa8", b"{", b"}", b"[" * 3_000,
    b'{"a":' * 3_000, b'"', b"\\", b"null", b"1e999", b"9" * 5_000, b"-", b"\xef\xbb\xbf", b"\t" * 200,
    b"#" * 400, b"- [blocking] ", b"## ", b"| " * 500, b"```\n", b"<!--", b"\x1b[31m",
)  # fmt: skip


def mutated(data: bytes, chance: Random) -> bytes:
    """``data`` with one to three changes."""
    for _ in range(chance.randint(1, 3)):
        data = chance.choice(_WAYS)(data, chance)
    return data


def _flip(data: bytes, chance: Random) -> bytes:
    made = bytearray(data or b" ")
    for _ in range(chance.randint(1, 4)):
        made[chance.randrange(len(made))] = chance.randrange(256)
    return bytes(made)


def _drop(data: bytes, chance: Random) -> bytes:
    start = chance.randint(0, len(data))
    return data[:start] + data[start + chance.randint(0, 80) :]


def _insert(data: bytes, chance: Random) -> bytes:
    at = chance.randint(0, len(data))
    token = chance.choice(TOKENS + tuple(h.encode("utf-8", "surrogatepass") for h in HOSTILE))
    return data[:at] + token + data[at:]


def _shuffle(data: bytes, chance: Random) -> bytes:
    lines = data.split(b"\n")
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    how = chance.randrange(3)
    if how == 0:
        lines[first], lines[second] = lines[second], lines[first]
    elif how == 1:
        lines.insert(first, lines[second])
    else:
        del lines[first]
    return b"\n".join(lines)


def _value(data: bytes, chance: Random) -> bytes:
    """Another value somewhere in a JSON file, or in a line of a log."""
    lines = data.split(b"\n")
    number = chance.randrange(len(lines))
    for whole in (True, False):
        try:
            held = json.loads(data if whole else lines[number])
        except (ValueError, RecursionError):
            continue
        new = json.dumps(_changed(held, chance), ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )
        if whole:
            return new
        lines[number] = new
        return b"\n".join(lines)
    return _insert(data, chance)


def _changed(held: Any, chance: Random) -> Any:
    inner = (
        list(held)
        if isinstance(held, dict)
        else list(range(len(held)))
        if isinstance(held, list)
        else []
    )
    if not inner or chance.random() < 0.1:
        return chance.choice(ODD + HOSTILE)
    key = chance.choice(inner)
    how = chance.random()
    if how < 0.1:
        del held[key]
    elif how < 0.2 and isinstance(held, dict):
        held[chance.choice(HOSTILE)] = held[key]
    elif how < 0.3 and isinstance(held, list):
        held.append(held[key])
    else:
        held[key] = _changed(held[key], chance)
    return held


_WAYS: tuple[Callable[[bytes, Random], bytes], ...] = (
    _flip,
    _drop,
    _insert,
    _shuffle,
    _value,
    _value,
    _value,
)
