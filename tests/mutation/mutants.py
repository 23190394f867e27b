"""What can be changed in a file: guards taken away, comparisons turned, calls left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.places import UNDEFENDED, Undefended

_TURNED: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_WORDS = ("__repr__", "__str__")  # functions that no guard depends on


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    Attributes:
        path: The file, from the top of the project.
        line: Where it is, from 1.
        kind: What is done: ``guard``, ``compare``, ``logic``, ``not``, ``call``, ``number`` or ``truth``;
            ``undefended`` for a guard that is taken away in every run.
        start: Where the replaced text begins, in characters.
        end: Where it ends.
        text: What stands there in its place.
        was: What stood there.
        test: The test that is tried first, if one is known.
    """

    path: str
    line: int
    kind: str
    start: int
    end: int
    text: str
    was: str
    test: str = ""

    @property
    def name(self) -> str:
        """What identifies it as long as the file is the same."""
        return f"{self.path}:{self.line}:{self.kind}:{self.start}"

    def apply(self, source: str) -> str:
        """The file's text with the change."""
        return source[: self.start] + self.text + source[self.end :]


def mutants(root: Path, path: str) -> list[Mutant]:
    """Every change of a file, in the order of its text."""
    source = (root / path).read_text(encoding="utf-8")
    return sorted(_Finder(path, source).all(), key=lambda each: (each.start, each.kind))


def undefended(root: Path) -> list[Mutant]:
    """The guards that no test defended once, each taken away.

    Raises:
        ValueError: one of them does not stand in its file, or more than once.
    """
    return [_undefended(root, each) for each in UNDEFENDED]


def _undefended(root: Path, guard: Undefended) -> Mutant:
    source = (root / guard.path).read_text(encoding="utf-8")
    if source.count(guard.was) != 1:
        raise ValueError(f"{guard.path} has not once: {guard.was}")
    start = source.index(guard.was)
    line, end = source.count("\n", 0, start) + 1, start + len(guard.was)
    return Mutant(guard.path, line, "undefended", start, end, guard.becomes, guard.was, guard.test)


class _Finder:
    """Walks through the functions of a file."""

    def __init__(self, path: str, source: str) -> None:
        self._path, self._source = path, source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._bytes = source.splitlines(keepends=True)

    def all(self) -> Iterator[Mutant]:
        for node in ast.walk(ast.parse(self._source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in _WORDS:
                for statement in node.body:
                    yield from self._within(statement)

    def _within(self, top: ast.stmt) -> Iterator[Mutant]:
        waiting: list[ast.AST] = [top]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.JoinedStr):
                continue  # a function is walked by itself; the words of a message guard nothing
            waiting += ast.iter_child_nodes(node)
            yield from self._of(node)

    def _of(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.If(
                test=test, body=[ast.Raise() | ast.Return() | ast.Continue(), *_], orelse=[]
            ):
                yield self._mutant(test, "guard", "False")
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                turned = _TURNED[type(op)]
                yield self._mutant(
                    node, "compare", f"(({self._text(left)}) {turned} ({self._text(right)}))"
                )
            case ast.BoolOp(op=op, values=values):
                word = " or " if isinstance(op, ast.And) else " and "
                parts = (f"({self._text(each)})" for each in values)
                yield self._mutant(node, "logic", f"({word.join(parts)})")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._mutant(node, "not", f"bool({self._text(operand)})")
            case ast.Expr(value=ast.Call()):
                yield self._mutant(node, "call", "pass")
            case ast.Constant(value=bool() as value):
                yield self._mutant(node, "truth", str(not value))
            case ast.Constant(value=int() as value):
                yield self._mutant(node, "number", str(value + 1))

    def _mutant(self, node: ast.expr | ast.stmt, kind: str, text: str) -> Mutant:
        start, end = self._span(node)
        return Mutant(self._path, node.lineno, kind, start, end, text, self._source[start:end])

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end]

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self._at(node.lineno, node.col_offset),
            self._at(node.end_lineno, node.end_col_offset),
        )

    def _at(self, line: int, column: int) -> int:
        """The character at a column, which ``ast`` counts in bytes."""
        before = self._bytes[line - 1].encode()[:column].decode()
        return self._lines[line - 1] + len(before)
