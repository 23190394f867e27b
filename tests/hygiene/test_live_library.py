"""The library of the Agent Client Protocol is called like our command: one module imports it."""

from __future__ import annotations

import ast
import subprocess
import sys

from tests.hygiene.sources import ROOT, files, tree

ONLY = "acp_core/agents/live/runner.py"


def test_one_module_imports_the_library() -> None:
    importing = set()
    for path in files():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            else:
                continue
            if any(each.partition(".")[0] == "acp" for each in names):
                importing.add(path.relative_to(ROOT).as_posix())
    assert importing == {ONLY}


def test_who_takes_turns_does_not_load_it() -> None:
    code = "import acp_core.loops.process, acp_core.cli.loops, sys; print('acp' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"
