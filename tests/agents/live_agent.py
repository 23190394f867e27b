"""A stand-in for an agent's program that holds a live session, in the shapes of five real ones.

It is run as a real program and speaks the protocol over its standard input and output. In a turn
it does what its prompt asks, as `tests.loops.agent` does: it writes the documents, and runs the
exact commands that the prompt names. Where it is in a mode that asks, it asks before each command,
runs those that are allowed, and skips the others. How it behaves at each turn is a list of words in a file,
used up from the front; when none is left it does its work:

``act`` do it; ``spend`` report tokens as it goes, and wait to be cancelled; ``idle`` end the turn without doing anything; ``crash`` end with code 3; ``hang``
start a command that stays, and wait to be cancelled; ``deaf`` the same, and ignore that; ``odd``
send what no agent should, then do it; ``limit`` answer with an error that names a limit; ``listen`` wait for a message, say it, then do it;
``trouble`` answer well although its service failed; ``chat`` say what it remembers; ``closed``
close its output and stay; ``both`` ask for one command that no policy knows, then do it;
``wonder`` ask the person two questions and say the answers, then do it; ``forge`` send a request
that asks for nothing as a notification, then ask for one command;
``edit=PATH,PATH`` write these files, each if it may, then do it; a row of `tests.agents.service_errors`
fail as that program does; ``tools`` do it, and append by the tools of the server that the session
names instead of commands; ``use=TOOL`` use such a tool, say what it answers, then do it.

With ``--command``, its work is one command, of a folder collaboration or not: it gets the prompt as
its input, and what it prints is the agent's answer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import shlex
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.agents import service_errors
from tests.loops.agent import Agent, behaviour

OPTIONS = {
    "claude": (("allow-once", "allow_once"), ("allow-with-updates", "allow_always"), ("reject", "reject_once")),
    "codex": (("allow_once", "allow_once"), ("accept_execpolicy_amendment", "allow_always"), ("cancel", "reject_once")),
    "opencode": (("once", "allow_once"), ("always", "allow_always"), ("reject", "reject_once")),
    "gemini": (("proceed_always", "allow_always"), ("proceed_once", "allow_once"), ("cancel", "reject_once")),
    "qwen": (("proceed_always_project", "allow_always"), ("proceed_once", "allow_once"), ("cancel", "reject_once")),
}  # fmt: skip
GOES_ON = ("claude", "gemini")  # after a rejection; the others end the turn
MODES = {"claude": "default", "codex": "workspace-write", "opencode": "", "gemini": "default", "qwen": "default"}  # fmt: skip
QUESTIONS = (("Which store?", ("git", "postgres")), ("Which colour?", ("red", "blue")))
LOUD = 300_000  # bytes of complaints, more than a pipe holds
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


def wanted(params: dict[str, Any]) -> list[dict[str, str]]:
    """Which of its own messages claude's program is asked to pass on."""
    return params.get("_meta", {}).get("claudeCode", {}).get("emitRawSDKMessages", [])


class LiveAgent:
    """One process, and its sessions, which stay in a folder."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.shape, self.home = given.shape, given.home
        self.given = given
        self.inbox: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.session = ""
        self.mode = "auto"
        self.asked = 0
        self.cost = 0.0
        self.cancelled = False
        self.busy = False
        self.steered: list[str] = []
        self.files = ""
        self.servers: list[dict[str, Any]] = []
        self.wanted: list[dict[str, str]] = []

    def run(self) -> None:
        threading.Thread(target=self.read, daemon=True).start()
        while (message := self.inbox.get()) is not None:
            self.handle(message)

    def read(self) -> None:
        for line in sys.stdin:
            self.inbox.put(json.loads(line))
        self.inbox.put(None)

    def send(self, **message: Any) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def update(self, kind: str, /, **fields: Any) -> None:
        update = {"sessionUpdate": kind, **fields}
        self.send(method="session/update", params={"sessionId": self.session, "update": update})

    def handle(self, message: dict[str, Any]) -> None:
        if "id" not in message or "method" not in message:
            return
        try:
            name = "on_" + message["method"].strip("_").replace("/", "_")
            if not hasattr(self, name):
                raise Refused(-32601, f'"Method not found": {message["method"]}')
            result = getattr(self, name)(message["params"])
            self.send(id=message["id"], result=result)
        except Refused as error:
            self.send(id=message["id"], error=error.error)

    # the protocol's requests

    def on_initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.given.mute:
            time.sleep(600)
        able = {"list": {}} | ({} if self.given.no_resume else {"resume": {}})
        return {
            "protocolVersion": self.given.protocol,
            "agentInfo": {"name": f"stand-in-{self.shape}", "version": "9.9.9"},
            "agentCapabilities": {"loadSession": True, "sessionCapabilities": able},
            "_meta": {"steering": {"supported": self.shape in ("claude", "codex")}},
        }

    def on_session_new(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.given.login == "none":
            raise Refused(**service_errors.OPENED[f"{self.shape}/no-login"])
        self.session = f"s{len(list(self.home.iterdir()))}"
        self.servers = params["mcpServers"]
        self.wanted = wanted(params)
        self.remember([])
        self.send(method="_auth/status_update", params={"authStatus": {"kind": "api_key"}})
        return {"sessionId": self.session, "modes": {"currentModeId": "auto"}}

    def on_session_resume(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.given.no_resume:
            raise Refused(-32601, "Method not found")
        return self.on_session_load(params)

    def on_session_load(self, params: dict[str, Any]) -> dict[str, Any]:
        if not (self.home / params["sessionId"]).exists():
            raise Refused(-32002, "Resource not found")
        self.session, self.mode, self.wanted = params["sessionId"], "auto", wanted(params)
        self.servers = params["mcpServers"]
        return {}

    def on_session_set_mode(self, params: dict[str, Any]) -> dict[str, Any]:
        self.mode = params["modeId"]
        return {}

    def on_session_steering(self, params: dict[str, Any]) -> dict[str, Any]:
        if not self.busy:
            return {"outcome": "promptRequired"}
        self.steered.append(params["prompt"][0]["text"])
        return {"outcome": "injected"}

    def on_session_prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        self.cancelled, self.busy = False, True
        prompt = params["prompt"][0]["text"]
        self.remember([*self.memory(), prompt])
        how, _, self.files = behaviour(self.given.behaviour).partition("=")
        if how in service_errors.PROMPTED:
            return self.fail(service_errors.PROMPTED[how])
        stop = getattr(self, f"do_{how}", self.do_act)(prompt)
        self.busy = False
        self.cost += 0.01
        self.update("usage_update", used=self.given.used, size=1000, cost={"amount": self.cost, "currency": "USD"})  # fmt: skip
        usage = {"inputTokens": 900, "cachedReadTokens": 100, "outputTokens": 50}
        return {"stopReason": "cancelled" if self.cancelled else stop, "usage": usage}

    def memory(self) -> list[str]:
        return json.loads((self.home / self.session).read_text())

    def remember(self, prompts: list[str]) -> None:
        (self.home / self.session).write_text(json.dumps(prompts))

    # what it does in a turn

    def do_act(self, prompt: str) -> str:
        self.update("plan", entries=[{"content": "take the turn", "status": "in_progress"}])
        if self.given.command:
            return self.do_command(prompt)
        self.update("agent_message_chunk", content={"type": "text", "text": "I take my turn."})
        return self.work(Worker(prompt, self))

    def do_use(self, prompt: str) -> str:
        """Use a tool of the server that the session names, if it may, say what it answers, and do it."""
        tool = self.files
        if self.may(
            f"call-{agent_number(self, 0)}", tool, f"mcp__{self.servers[0]['name']}__{tool}"
        ):
            result = ToolWorker(prompt, self).use(tool, {})
            self.say(f"{tool} answers: {result['content'][0]['text']}\n")
        return self.do_act(prompt)

    def do_tools(self, prompt: str) -> str:
        return self.work(ToolWorker(prompt, self))

    def work(self, worker: Worker) -> str:
        with contextlib.suppress(EndTurn):
            worker.take_turn()
        return "end_turn"

    def do_idle(self, prompt: str) -> str:
        self.update("agent_message_chunk", content={"type": "text", "text": "Nothing to do."})
        return "end_turn"

    def do_chat(self, prompt: str) -> str:
        text = f"{len(self.memory())} prompts in {self.session}, mode {self.mode}"
        self.update("agent_message_chunk", content={"type": "text", "text": text})
        return "end_turn"

    def do_crash(self, prompt: str) -> str:
        self.stay()
        os._exit(3)

    def do_hang(self, prompt: str) -> str:
        self.stay()
        while (message := self.inbox.get()) is not None:
            if message.get("method") == "session/cancel":
                self.cancelled = True
                return "cancelled"
            self.handle(message)
        os._exit(0)

    def do_listen(self, prompt: str) -> str:
        self.update("tool_call", toolCallId="think", title="think", kind="think", status="in_progress")  # fmt: skip
        while not self.steered and (message := self.inbox.get()) is not None:
            if message.get("method") == "session/cancel":
                self.cancelled = True
                return "cancelled"
            self.handle(message)
        self.update("tool_call_update", toolCallId="think", status="completed")
        self.update("agent_message_chunk", content={"type": "text", "text": f"You said: {self.steered.pop(0)}\n"})  # fmt: skip
        return self.do_act(prompt)

    def do_spend(self, prompt: str) -> str:
        used = {"inputTokens": 4_000, "outputTokens": 1_000}
        self.update("agent_message_chunk", content={"type": "text", "text": ""}, _meta={"usage": used})  # fmt: skip
        return self.do_hang(prompt)

    def do_deaf(self, prompt: str) -> str:
        self.stay()
        time.sleep(600)
        return "end_turn"

    def do_closed(self, prompt: str) -> str:
        os.close(1)
        time.sleep(600)
        return "end_turn"

    def do_ask(self, prompt: str) -> str:
        """Run one command of its own that no policy knows, if it may, and end the turn."""
        command = f"touch {self.home.parent / 'asked'}"
        if self.may(f"call-{agent_number(self, 0)}", command):
            subprocess.run(command.split(), check=True)
        return "end_turn"

    def do_wonder(self, prompt: str) -> str:
        """Ask the person, as this program does: by a form, or by a request for permission."""
        self.asked += 1
        name, call = f"p{self.asked}", f"call-{agent_number(self, 0)}"
        if self.shape == "qwen":
            asked = [{"question": text, "header": text, "options": [{"label": each} for each in choices], "multiSelect": False} for text, choices in QUESTIONS]  # fmt: skip
            meta = {"toolName": "ask_user_question", "qwenInteractionKind": "user_question", "qwenQuestions": asked}  # fmt: skip
            tool = {"toolCallId": call, "title": "Ask user 2 questions", "kind": "think", "status": "pending", "_meta": meta}  # fmt: skip
            options = [{"optionId": "proceed_once", "name": "Submit", "kind": "allow_once"}, {"optionId": "cancel", "name": "Cancel", "kind": "reject_once"}]  # fmt: skip
            self.send(id=name, method="session/request_permission", params={"sessionId": self.session, "toolCall": tool, "options": options})  # fmt: skip
        else:
            fields: dict[str, Any] = {}
            for number, (text, choices) in enumerate(QUESTIONS):
                offered = [{"const": each, "title": each} for each in choices]
                fields[f"question_{number}"] = {"type": "string", "title": "Choice", "description": text, "oneOf": offered}  # fmt: skip
                fields[f"question_{number}_custom"] = {"type": "string", "title": "Other"}
            params = {"mode": "form", "sessionId": self.session, "toolCallId": call, "message": "Please answer the following questions.", "requestedSchema": {"type": "object", "properties": fields}}  # fmt: skip
            self.send(id=name, method="elicitation/create", params=params)
        self.say(f"The answer: {json.dumps(self.answer(name)['result'], sort_keys=True)}")
        self.update("plan", entries=[])
        return self.do_act(prompt)

    def do_forge(self, prompt: str) -> str:
        harmless = {"toolCallId": "x", "title": "x", "kind": "edit", "content": [{"type": "diff", "path": self.files, "newText": ""}], "locations": [{"path": self.files}]}  # fmt: skip
        options = [{"optionId": each, "name": each, "kind": kind} for each, kind in OPTIONS[self.shape]]  # fmt: skip
        params = {"sessionId": self.session, "toolCall": harmless, "options": options}
        self.send(method="session/request_permission", params=params)
        return self.do_ask(prompt)

    def do_both(self, prompt: str) -> str:
        self.do_ask(prompt)
        return self.do_act(prompt)

    def do_edit(self, prompt: str) -> str:
        for number, path in enumerate(self.files.split(",")):
            diff = {"type": "diff", "path": path, "oldText": None, "newText": "Mine.\n"}
            if self.allowed({"toolCallId": f"edit-{number}", "title": "notes", "kind": "edit", "content": [diff], "locations": [{"path": path}]}):  # fmt: skip
                Path(path).write_text(diff["newText"])
        return self.do_act(prompt)

    def do_command(self, prompt: str) -> str:
        """Do the work as one command, if it may be run, and answer with what that prints."""
        call, command = f"call-{agent_number(self, 1)}", self.given.command
        if not self.may(call, command):
            return "end_turn"
        ended = subprocess.run(shlex.split(command), input=prompt, capture_output=True, text=True, check=False)  # fmt: skip
        self.update("tool_call_update", toolCallId=call, status="completed" if ended.returncode == 0 else "failed", content=[{"type": "content", "content": {"type": "text", "text": ended.stderr}}])  # fmt: skip
        self.update("agent_message_chunk", content={"type": "text", "text": ended.stdout})
        return "end_turn"

    def say(self, text: str) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def fail(self, row: service_errors.Row) -> dict[str, Any]:
        """Fail as a program does that its model service refuses."""
        if row.warning:
            self.say(row.warning)
        if row.field:
            self.raw("rate_limit_event", rate_limit_info=row.field)
        if row.notice:
            self.update("session_info_update", _meta={"codex": {"error": {"message": row.notice}}})
        if row.trouble:
            self.update("session_info_update", _meta={"codex": {"threadStatus": {"type": "systemError"}}})  # fmt: skip
        if row.text:
            self.say(row.text)
        if row.silent:
            while (message := self.inbox.get()) is not None:
                if message.get("method") == "session/cancel":
                    return {"stopReason": "cancelled"}
        if row.error:
            raise Refused(**row.error)
        return {"stopReason": "end_turn", "usage": None}

    def raw(self, kind: str, **more: Any) -> None:
        """Pass a message of its own on, if the client asked for those of this kind."""
        if {"type": kind} in self.wanted:
            message = {"type": kind, **more}
            self.send(method="_claude/sdkMessage", params={"sessionId": self.session, "message": message})  # fmt: skip

    def do_limit(self, prompt: str) -> str:
        raise Refused(-32603, "Internal error", {"message": "Usage limit reached. Try again in 2 seconds."})  # fmt: skip

    def do_trouble(self, prompt: str) -> str:
        self.update("agent_message_chunk", content={"type": "text", "text": "HTTP 500"})
        self.update("session_info_update", _meta={"codex": {"threadStatus": {"type": "systemError"}}})  # fmt: skip
        return "end_turn"

    def do_odd(self, prompt: str) -> str:
        print('123\n["a", "list"]\nnot json\n', flush=True)
        sys.stderr.write("x" * LOUD)
        sys.stderr.flush()
        self.update("something_new", text="\x1b[31m")
        self.send(method="session/update", params={"_meta": {"session_id": "other"}, "sessionId": self.session, "update": {"sessionUpdate": "tool_call", "toolCallId": 7, "rawInput": [], "content": "x"}})  # fmt: skip
        self.send(id="q1", method="craft/drainMidTurnQueue", params={})
        self.send(id="q2", method="fs/write_text_file", params={"path": str(self.home / "forged"), "content": "x"})  # fmt: skip
        answers = {self.answer("q1").get("error", {}).get("code"), self.answer("q2").get("error", {}).get("code")}  # fmt: skip
        assert answers == {-32601}, answers
        self.do_act(prompt)
        return "a_reason_of_tomorrow"

    def stay(self) -> None:
        """Leave a command at work in a session of its own, which holds our output open."""
        subprocess.Popen(SLEEP, start_new_session=True)
        self.update("tool_call", toolCallId="sleep", title="sleep", kind="execute", status="in_progress")  # fmt: skip

    def answer(self, name: str) -> dict[str, Any]:
        """The answer to a request of ours."""
        while (message := self.inbox.get()) is not None:
            if message.get("method") == "session/cancel":
                self.cancelled = True
            elif message.get("id") == name and "method" not in message:
                return message
            elif message.get("method") == "_session/steering":
                self.handle(message)
        os._exit(0)

    def may(self, call: str, command: str, tool: str = "") -> bool:
        """Whether a command may be run or a tool used, asked for in this program's shape."""
        asked: dict[str, Any] = {"toolCallId": call, "title": command, "kind": "execute"}
        if tool:
            asked |= {"kind": "other", "_meta": {"claudeCode": {"toolName": tool}}}
        elif self.shape != "gemini":
            asked["rawInput"] = {"command": command}
        return self.allowed(asked)

    def allowed(self, tool: dict[str, Any]) -> bool:
        """Whether a tool may be used."""
        if self.mode != MODES[self.shape] and self.shape != "opencode":
            return True
        self.asked += 1
        tool["status"] = "pending"
        options = [{"optionId": each, "name": each, "kind": kind} for each, kind in OPTIONS[self.shape]]  # fmt: skip
        params = {"sessionId": self.session, "toolCall": tool, "options": options}
        name = f"p{self.asked}"
        self.send(id=name, method="session/request_permission", params=params)
        outcome = self.answer(name).get("result", {}).get("outcome", {})
        chosen = dict(OPTIONS[self.shape]).get(outcome.get("optionId", ""), "")
        return chosen == "allow_once"


class EndTurn(Exception):
    """The turn ends: a request was rejected."""


class Worker(Agent):
    """Does what a prompt asks, asks before it runs a command, and tells of it as updates."""

    def __init__(self, prompt: str, agent: LiveAgent) -> None:
        super().__init__(prompt, "text", as_process=True)
        self.agent = agent
        self.calls = 0

    def append(self, line: str) -> int:
        self.calls += 1
        call, agent = f"call-{agent_number(self.agent, self.calls)}", self.agent
        if agent.shape != "gemini":
            agent.update("tool_call", toolCallId=call, title=line.strip(), kind="execute", status="pending", rawInput={"command": line.strip()})  # fmt: skip
        if not agent.may(call, line.strip()):
            agent.update("tool_call_update", toolCallId=call, status="failed")
            if agent.shape not in GOES_ON:
                raise EndTurn
            return 1
        ended = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)  # noqa: S602 - as agents do
        text = {"type": "text", "text": ended.stdout + ended.stderr}
        agent.update("tool_call_update", toolCallId=call, status="completed", content=[{"type": "content", "content": text}])  # fmt: skip
        return ended.returncode


class ToolWorker(Worker):
    """Appends by the tool that the session's server offers, with what the prompt's command says."""

    def append(self, line: str) -> int:
        self.calls += 1
        call = f"call-{agent_number(self.agent, self.calls)}"
        words = shlex.split(line)
        options = dict(pairwise(words[words.index("append") + 1 :]))
        names = {
            "--event": "event",
            "--summary": "summary",
            "--doc": "doc",
            "--reply-to": "reply_to",
        }
        given: dict[str, Any] = {
            name: options[each] for each, name in names.items() if each in options
        }
        if "--review-file" in options:
            given["review"] = Path(options["--review-file"]).read_text()
        if not self.agent.may(call, "append", f"mcp__{self.agent.servers[0]['name']}__append"):
            return 1
        result = self.use("append", given)
        self.agent.update("tool_call_update", toolCallId=call, status="completed", content=[{"type": "content", "content": result["content"][0]}])  # fmt: skip
        return 2 if result.get("isError") else 0

    def use(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        """What a tool answers, of a server that gets only the variables that the session names."""
        [server] = self.agent.servers
        env = {
            "PATH": os.environ["PATH"],
            **{each["name"]: each["value"] for each in server["env"]},
        }
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}  # fmt: skip
        said = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": given}},
        ]  # fmt: skip
        command = [server["command"], *server["args"]]
        with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # fmt: skip
            assert process.stdin and process.stdout
            process.stdin.write("".join(f"{json.dumps(each)}\n" for each in said))
            process.stdin.flush()
            while (message := json.loads(process.stdout.readline())).get("id") != 2:
                pass
            process.stdin.close()
        return message["result"]


def agent_number(agent: LiveAgent, number: int) -> str:
    return f"{len(agent.memory())}-{number}"


def options() -> argparse.ArgumentParser:
    """The options of the stand-in."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--shape", choices=OPTIONS, default="claude")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--behaviour", type=Path)
    parser.add_argument("--command", default="", help="its work, instead of a collaboration's")
    parser.add_argument("--protocol", type=int, default=1)
    parser.add_argument("--used", type=int, default=100, help="tokens in its context, of 1000")
    parser.add_argument("--login", default="api_key")
    parser.add_argument("--mute", action="store_true", help="answer nothing")
    parser.add_argument("--no-resume", action="store_true")
    parser.add_argument("--launcher", action="store_true", help="work in a child that keeps the pipes")  # fmt: skip
    return parser


def main(name: str = "agent") -> None:
    """Hold sessions until the input ends."""
    given, _ = options().parse_known_args()
    given.home.mkdir(parents=True, exist_ok=True)
    if given.launcher:
        words = [each for each in sys.argv if each != "--launcher"]
        sys.exit(subprocess.run([sys.executable, *words], check=False).returncode)
    LiveAgent(given).run()


if __name__ == "__main__":
    main()
