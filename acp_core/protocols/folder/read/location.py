"""What a link to a store, or to a collaboration in one, stands for; light, as nothing is opened yet."""

from __future__ import annotations

from acp_core.stores.address import BadAddress, parse


def locate(text: str, token: str | None = None) -> str:
    """The key of a store, or of a collaboration in one.

    Args:
        text: an address as people write it.
        token: not used: how people authenticate is configured elsewhere.

    Raises:
        ValueError: it is none, or acp does not use what it names.
    """
    try:
        return parse(text).link
    except BadAddress as error:
        raise ValueError(str(error)) from None
