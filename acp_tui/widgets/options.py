"""A list of options of several lines; the footer says which key opens the selected one."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.widgets import OptionList

from acp_tui import keys


class Options(OptionList):
    """Textual's list, with its key named."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.OPTIONS]
