"""Parts of a message (core specification, section 2)."""

from __future__ import annotations

import json
import mimetypes
from typing import Any
from urllib.parse import unquote, urlsplit

from acp_core.protocols.wire.network.links import is_host
from acp_core.protocols.wire.schema import MAX_PARTS, PART_TYPES, Json, invalid

LONGEST_URL = 8192
_DATA = 200  # characters of data that are shown
_JSON = json.JSONEncoder(ensure_ascii=False)


def text_part(text: str) -> Json:
    """A text part."""
    return {"type": "text", "content": text}


def data_part(content: Any) -> Json:
    """A data part; ``content`` is any JSON value, null included."""
    return {"type": "data", "content": content}


def file_part(url: str, media_type: str = "", filename: str = "") -> Json:
    """A file part: a reference, never the bytes."""
    part: Json = {"type": "file", "url": url}
    if media_type:
        part["media_type"] = media_type
    if filename:
        part["filename"] = filename
    return part


def file_at(url: str) -> Json:
    """A file part with the name and the media type that its address lets expect."""
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    kind = mimetypes.guess_type(name)[0] or ""
    return file_part(url, kind, name if name.isprintable() else "")


def check_parts(value: object) -> list[Json]:
    """``value`` as the parts of a message, unchanged.

    Raises:
        Refusal: it is no list of parts; says which part, and why.
    """
    if not isinstance(value, list):
        raise invalid("parts: must be a list")
    if not value:
        raise invalid("parts: must not be empty")
    if len(value) > MAX_PARTS:
        raise invalid(f"parts: more than {MAX_PARTS}")
    for place, part in enumerate(value):
        wrong = _wrong(part)
        if wrong:
            raise invalid(f"parts[{place}]: {wrong}")
    return value


def shown_text(parts: object) -> str:
    """What a reader sees of parts that anybody sent: texts, and what else there is, in words."""
    if not isinstance(parts, list):
        return ""
    return " ".join(filter(None, map(_part_text, parts)))


def spoken(parts: object) -> str:
    """The texts of parts in one line; where there is none, what else there is, in words."""
    listed = [each for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
    texts = [each.get("content") for each in listed if each.get("type") == "text"]
    words = in_line(" ".join(each for each in texts if isinstance(each, str)))
    return words or in_line(shown_text(parts))


def in_line(text: str) -> str:
    """A text as one line: between its words stands one blank."""
    return " ".join(text.split())


def _part_text(part: object) -> str:
    if not isinstance(part, dict):
        return ""
    kind, content = part.get("type"), part.get("content")
    if kind == "text":
        return content if isinstance(content, str) else ""
    if kind == "file":
        return f"[file {part.get('filename') or part.get('url') or ''}]"
    if kind == "data":
        return f"[data {_begun(content)}]"
    return f"[{kind if isinstance(kind, str) else 'unknown part'}]"


def _begun(content: object) -> str:
    """The beginning of data as JSON; no more of it is written than is shown."""
    text = ""
    try:
        for piece in _JSON.iterencode(content):
            text += piece[: _DATA + 1]
            if len(text) > _DATA:
                return f"{text[:_DATA]}…"
    except (ValueError, TypeError, RecursionError):
        return "…"
    return text


def _wrong(part: object) -> str:
    if not isinstance(part, dict):
        return "must be an object"
    kind = part.get("type")
    if kind == "text":
        return "" if isinstance(part.get("content"), str) else "content: must be a text"
    if kind == "data":
        return "" if "content" in part else "content is missing"
    if kind == "file":
        return _wrong_file(part)
    return f"type: must be one of {', '.join(PART_TYPES)}"


def _wrong_file(part: Json) -> str:
    for name in ("media_type", "filename"):
        if part.get(name) is not None and not isinstance(part[name], str):
            return f"{name}: must be a text"
    return "" if is_web_address(part.get("url")) else "url: must be an http:// or https:// URL"


def is_web_address(url: object) -> bool:
    """Whether ``url`` is an absolute http or https URL with a host."""
    if not isinstance(url, str) or len(url) > LONGEST_URL:
        return False
    if any(sign.isspace() or not sign.isprintable() for sign in url):
        return False
    try:
        address = urlsplit(url)
        _ = address.port
    except ValueError:
        return False
    host = address.hostname or ""
    try:
        plain = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        return False
    return address.scheme in ("http", "https") and is_host(plain)


def parts_of(fields: Json) -> list[Json] | None:
    """The parts that a body gives: ``parts``, or ``text`` (``content``) in short.

    None where it gives none of them.

    Raises:
        Refusal: they are not what they should be.
    """
    if fields.get("parts") is not None:
        return check_parts(fields["parts"])
    for name in ("text", "content"):
        if fields.get(name) is not None:
            if not isinstance(fields[name], str):
                raise invalid(f"{name}: must be a text")
            return [text_part(fields[name])]
    return None
