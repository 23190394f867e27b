"""Answers of an agent that may be anybody: bounded in size and in time, never decompressed.

An answer that leads elsewhere is not followed: whoever is asked answers, or nobody does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx

LARGEST = 32 << 20  # bytes of an answer
LONGEST_LINE = 8 << 20  # bytes of one line of a stream; a message may have 1 MiB
PLAIN = {"accept-encoding": "identity"}


class TooLarge(httpx.HTTPError):
    """An answer, or a line of it, is larger than anything that an agent says."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"{what} of more than {limit} bytes")


async def body(response: httpx.Response, seconds: float, limit: int = LARGEST) -> bytes:
    """The whole of an answer.

    Args:
        seconds: within which all of it has to arrive.
        limit: bytes of it at most.

    Raises:
        TooLarge: it is larger.
        httpx.ReadTimeout: it did not end in time.
        httpx.HTTPError: the connection broke.
    """
    data = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in _chunks(response):
                data += chunk
                if len(data) > limit:
                    raise TooLarge("an answer", limit)
    except TimeoutError:
        raise httpx.ReadTimeout("the answer is endless") from None
    return bytes(data)


async def lines(response: httpx.Response, limit: int = LONGEST_LINE) -> AsyncIterator[str]:
    """The lines of a stream as they come, without their ends.

    Raises:
        TooLarge: a line is longer than ``limit`` bytes.
        httpx.HTTPError: the connection broke.
    """
    parts: list[bytes] = []
    size = 0
    async for chunk in _chunks(response):
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join((*parts, line)).removesuffix(b"\r").decode("utf-8", "replace")
            parts, size = [], 0
        if rest:
            parts.append(rest)
            size += len(rest)
        if size > limit:
            raise TooLarge("a line", limit)


async def _chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise httpx.DecodingError(
            f"the answer has the encoding {coding[:40]}, which acp did not request"
        )
    async for chunk in response.aiter_raw():
        yield chunk
