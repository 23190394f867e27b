"""The parser of protocols' commands. Standard library only."""

from __future__ import annotations

import argparse
import os

from acp_core.model.light import NoReturn
from acp_core.protocols.kit.command_line import complain


def sentence(told: str) -> str:
    """The line of a list, ``begin a cycle``, as the sentence above a command's own help."""
    return f"{told[:1].upper()}{told[1:]}."


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        """A formatter that need not look for the terminal's width: that costs 2 ms at each start."""
        if self.formatter_class is not argparse.HelpFormatter:
            return super()._get_formatter()
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isascii() and columns.isdigit() and len(columns) < 5 else 80
        return argparse.HelpFormatter(prog=self.prog, width=max(width, 40) - 2)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        complain(f"{message} (`{self.prog} --help` explains)")
        raise SystemExit(2)
