"""What looks like a key or a password, masked wherever text leaves this machine or is shown.

Logs and prompts are kept as they are, in a folder that only their owner can read; exports and
what a screen or a command shows of them go through `mask`. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "********"
_KEEP = 4  # characters that stay, so that people can tell which key it was

_PREFIXED = re.compile(
    r"\b(?:"
    r"sk-(?:ant-|proj-|or-|svcacct-)?[A-Za-z0-9_\-]{16,}"
    r"|(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{16,}"
    r"|glpat-[A-Za-z0-9_\-]{16,}"
    r"|xox[abeoprs]-[A-Za-z0-9\-]{10,}"
    r"|AIza[A-Za-z0-9_\-]{30,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|hf_[A-Za-z0-9]{16,}"
    r"|npm_[A-Za-z0-9]{30,}"
    r"|pypi-[A-Za-z0-9_\-]{30,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"
    r"|(?:tok|own)_[0-9a-f]{16,}"  # what opens an agent on the network, as in its link
    r"|ya29\.[A-Za-z0-9_\-]{20,}"
    r"|eyJ[A-Za-z0-9_\-]{8,512}\.[A-Za-z0-9_\-]{8,8192}\.[A-Za-z0-9_\-]{8,2048}"
    r")"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)[ \t]{1,8}([A-Za-z0-9._~+/=\-]{12,})")
_NAMED = re.compile(
    r"""(?ix)
    ((?:[a-z0-9]{1,40}[_\-]){0,6}
     (?:api[_\-]?key|secret(?:[_\-]?(?:key|access[_\-]?key))?|access[_\-]?key|auth[_\-]?token
        |access[_\-]?token|refresh[_\-]?token|id[_\-]?token|token|password|passwd|passphrase|credentials?)
     \\?["']?[ \t]{0,4}(?:=|:|[ ](?=[^ ]))[ \t]{0,4})
    (\\?["'][^"'\n\\]{8,200}(?=\\?["'])|\\?["']?[^\s"'\\,;&{}()<>\[\]$]{8,})
    """
)
_ADDRESS = re.compile(r"\b([a-z][a-z0-9+.\-]{0,20}://[^\s/:@]{0,200}:)([^\s/@]{3,200})@")
_PRIVATE = re.compile(
    r"-----BEGIN ([A-Z ]{0,30}PRIVATE KEY)-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)


def mask(text: str) -> str:
    """``text`` with whatever looks like a secret replaced by `MASK`.

    Known forms of keys keep their first characters. What follows a name such as
    ``api_key`` or ``password``, a bearer token, a password inside an address and private key
    blocks are masked too. It errs on the side of masking; linear in the text's length.
    """
    text = _PRIVATE.sub(lambda found: f"-----BEGIN {found[1]}----- {MASK}", text)
    text = _PREFIXED.sub(lambda found: found[0][:_KEEP] + MASK, text)
    text = _BEARER.sub(lambda found: f"{found[1]} {MASK}", text)
    text = _NAMED.sub(_named, text)
    return _ADDRESS.sub(lambda found: f"{found[1]}{MASK}@", text)


def _named(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    if name.endswith(" ") and ":" not in name and "=" not in name and not _mixed(value):
        return found[0]  # "the token expires": a sentence, not an option with its value
    quote = _QUOTE.match(value)
    return found[0] if MASK in value else f"{name}{quote[0] if quote else ''}{MASK}"


_QUOTE = re.compile(r"\\?[\"']")


def _mixed(value: str) -> bool:
    """Whether a word looks made by a machine: letters and digits together."""
    return any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)


def mask_command(argv: Iterable[str]) -> tuple[str, ...]:
    """A command's words, each masked; the value after an option such as ``--api-key`` too."""
    shown: list[str] = []
    secret_next = False
    for word in argv:
        shown.append(MASK if secret_next else mask(word))
        secret_next = bool(_OPTION.fullmatch(word))
    return tuple(shown)


_OPTION = re.compile(r"(?i)--?[a-z\-]*(?:api-?key|secret|password|passwd|token|credentials?)")
