"""Code as runs of text in a few styles, line by line."""

from __future__ import annotations

LONGEST = 20_000
"""How many characters of code are coloured at most; longer code is plain."""

Run = tuple[str, str]


def lines_of(code: str, language: str) -> list[tuple[Run, ...]]:
    """The lines of ``code``, each as pieces of text with the name of their style."""
    plain: list[tuple[Run, ...]] = [((line, ""),) for line in code.split("\n")]
    if not language or len(code) > LONGEST:
        return plain
    from pygments import lex  # type: ignore[import-untyped]
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return plain
    lines: list[list[Run]] = [[]]
    for token, text in lex(code, lexer):
        style = _style(str(token))
        for number, part in enumerate(text.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append((part, style))
    if len(lines) != len(plain):  # a lexer that drops lines would move every line below
        return plain
    return [tuple(line) for line in lines]


def _style(token: str) -> str:
    if token.startswith("Token.Comment"):
        return "comment"
    if token.startswith("Token.Literal.String"):
        return "string"
    if token.startswith(("Token.Keyword", "Token.Name.Tag", "Token.Operator.Word")):
        return "keyword"
    if token.startswith("Token.Literal.Number"):
        return "accent"
    return ""
