"""Coroutines that belong together: when one ends, so do the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def until_one_ends(*coroutines: Coroutine[Any, Any, object]) -> None:
    """Run all until the first ends; cancel the others, and wait until they are gone.

    Raises:
        Exception: what the first that ended has raised.
    """
    work = [asyncio.create_task(each) for each in coroutines]
    try:
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)
