"""A program that costs something: it runs another one, and reports as the known programs do.

``python paid.py COMMAND ...`` gives the command its standard input, and prints what the command
said as the last record of a stream of JSON, with 1,000 tokens read, 100 written and $0.25.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

COST = 0.25


def settings(*command: str) -> None:
    """Let the preset ``paid`` of the person's settings run a command and pay for it."""
    folder = Path(os.environ["ACP_CONFIG"])
    folder.mkdir(parents=True, exist_ok=True)
    args = json.dumps([__file__, *command])
    (folder / "config.toml").write_text(
        f'[presets.paid]\nprogram = {json.dumps(sys.executable)}\nargs = {args}\nstream = "claude"\n'
    )


def main(command: Sequence[str]) -> int:
    ended = subprocess.run(command, stdin=sys.stdin, stdout=subprocess.PIPE, text=True, check=False)
    usage = {"input_tokens": 1_000, "output_tokens": 100}
    record = {"type": "result", "result": ended.stdout, "usage": usage, "total_cost_usd": COST}
    print(json.dumps(record), flush=True)
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
