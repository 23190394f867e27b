"""A stand-in for a program that answers: run as a real one, it does as its words say.

``echo`` says what it was told; ``env`` prints its variables; ``ask`` needs input until a message
names a colour; ``count FILE`` notes each start in a file, then says "done"; ``slow FILE`` the same,
and ends when FILE.go appears; ``fail`` ends with code 3 and a line that holds a key; ``result
JSON`` writes a result; ``claude`` prints what Claude Code prints; ``hang`` never ends, whatever it
is asked.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def main(word: str, *more: str) -> int:
    told = sys.stdin.read()
    content = json.loads(Path(os.environ["ACP_MESSAGE_FILE"]).read_text())
    if word == "echo":
        print(f"you said: {told}")
    elif word == "env":
        print(json.dumps(dict(os.environ)))
    elif word == "argv":
        print(json.dumps(more))
    elif word == "ask":
        if "blue" not in told:
            print("Which colour?")
            return 100
        asked = [each["parts"][0]["content"] for each in content["history"]]
        print(f"painted blue, after {asked}")
    elif word == "json":
        print(json.dumps({"status": "input_required", "text": "Which size?"}))
    elif word in ("count", "slow"):
        with open(more[0], "a") as file:
            file.write(f"{told.strip()}\n")
        while word == "slow" and not Path(f"{more[0]}.go").exists():
            time.sleep(0.02)
        print(f"done: {told}")
    elif word == "fail":
        print("no way: api_key=sk-ant-REDACTED", file=sys.stderr)
        return 3
    elif word == "result":
        Path(os.environ["ACP_RESULT_FILE"]).write_text(more[0])
        print("this is not the answer")
    elif word == "claude":
        said = {"type": "text", "text": f"the prompt had {told.count('=====') // 2} marks"}
        print(json.dumps({"type": "assistant", "message": {"id": "1", "content": [said]}}))
        print(json.dumps({"type": "result", "is_error": False, "result": said["text"]}))
    elif word == "hang":
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        Path(more[0]).write_text(str(os.getpid()))
        time.sleep(600)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
