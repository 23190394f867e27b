"""What is wrong with a given value, in words for whoever gave it.

The model's library words its errors for programmers; who fills in a form, or an option of a
command, has neither a "String" nor a "validator".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_PLAIN = {
    "missing": "is missing",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number",
    "bool_type": "must be yes or no",
    "bool_parsing": "must be yes or no",
    "string_type": "must be text",
    "list_type": "must be a list",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
}


def problems(error: ValidationError) -> Iterator[tuple[str, str]]:
    """The field that each problem is about ("" for the whole), and what is wrong with it."""
    for each in error.errors(include_url=False, include_input=False):
        yield (str(each["loc"][0]) if each["loc"] else ""), _message(each)


def _message(each: ErrorDetails) -> str:
    kind, context = each["type"], each.get("ctx", {})
    if kind in ("string_too_short", "too_short"):
        least = context.get("min_length", 1)
        what = "characters" if kind == "string_too_short" else "entries"
        return "is missing" if least == 1 else f"must have at least {least} {what}"
    if kind in _PLAIN:
        return _PLAIN[kind].format_map(context)
    return str(each["msg"]).removeprefix("Value error, ")
