"""A policy and a judge with fixed replies, with the API of OpenAI. What they reply depends on the kind of the task,
which is the first word of its name: `success: find number 3`.
"""

import json
import re
import time

import quiet_server

SCROLL = {"action": "scroll", "direction": "down"}
# A click beside every link: the page does not change, so trainers that leave out unchanged steps leave out this one.
CLICK_NOTHING = {"action": "left_click", "coordinate": [990, 500]}
CLICK_LINK = {"action": "left_click", "coordinate": [30, 115]}
TYPE = {"action": "type", "coordinate": [500, 300], "text": "forty-two"}
GO_BACK = {"action": "go_back"}
WAIT = {"action": "wait", "time": 0.1}

SCRIPTS = {
    "success": [CLICK_LINK, SCROLL, CLICK_NOTHING, GO_BACK, {"action": "answer", "text": "It is 42."}],
    "short": [{"action": "answer", "text": "It is 42."}],
    "failure": [SCROLL, TYPE, {"action": "answer", "text": "It is 17."}],
    "endless": [SCROLL] * 100,
    "blocked": [WAIT, {"action": "answer", "text": "The site refuses me."}],
    "unjudged": [SCROLL, {"action": "answer", "text": "It is 42."}],
    "slow": [SCROLL] * 100,
    "lost": [SCROLL] * 100,
    "invalid": [SCROLL] * 100,
}
SLOW_SECONDS = 3.0


class ScriptedServer:
    """Serves the policy at `url` and the judge at `judge_url`. `pause` makes every reply of the policy slow."""

    def __init__(self):
        server = self
        self.pause = 0.0

        class Handler(quiet_server.Handler):
            def do_GET(self) -> None:
                self.reply_json(200, {"object": "list", "data": [{"id": "scripted", "max_model_len": 131072}]})

            def do_POST(self) -> None:
                messages = json.loads(self.body())["messages"]
                is_judge = self.path.startswith("/judge/")
                text = judge_reply(messages) if is_judge else server.policy_reply(messages)
                if text is None:
                    self.reply_json(500, {"error": {"message": "out of order", "code": 500}})
                    return
                choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
                self.reply_json(200, {"object": "chat.completion", "model": "scripted", "choices": [choice]})

        self.url = quiet_server.serve(Handler)
        self.judge_url = f"{self.url}/judge/v1"

    def policy_reply(self, messages: list) -> str | None:
        """Returns the reply of the task's script for the step, or None for a server error."""
        kind, step = task_kind(messages), step_number(messages)
        if kind == "lost" and step > 2:
            return None
        time.sleep(SLOW_SECONDS if kind == "slow" and step > 2 else self.pause)
        arguments = SCRIPTS[kind][min(step, len(SCRIPTS[kind])) - 1]
        if uses_marks := '"web_interaction"' in texts(messages[:1]):
            arguments = with_mark(arguments)
        name = "web_interaction" if uses_marks else "computer_use"
        call = json.dumps({"name": name, "arguments": arguments})
        return (
            f"Memory: step {step} of a {kind} task, with a <video> on the page\nProgress: {step - 1} steps are done\n"
            f"Intention: go on\nAction: I do number {step}: {arguments['action']}.\n<tool_call>\n{call}\n</tool_call>"
        )


def with_mark(arguments: dict) -> dict:
    """Returns the arguments with the number of an element instead of a position, as set-of-marks mode has them."""
    if "coordinate" not in arguments:
        return arguments
    action = arguments["action"].removeprefix("left_")
    others = {key: value for key, value in arguments.items() if key not in ("action", "coordinate")}
    return {"action": action, "element_id": "1", **others}


def judge_reply(messages: list) -> str:
    kind, question = task_kind(messages), texts(messages)
    if "Did the website block the agent" in question:
        return "The page asks for a captcha.\nStep: 1\nBlocked: YES" if kind == "blocked" else "No block.\nBlocked: NO"
    if "only YES or NO" in question:
        return "It shows the number.\nYES"
    if kind == "unjudged":
        return "I cannot decide this."
    return "It fits.\nVerdict: SUCCESS" if kind in ("success", "short") else "It does not fit.\nVerdict: NOT SUCCESS"


def texts(messages: list) -> str:
    parts = []
    for message in messages:
        content = message["content"]
        parts += [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
    return "\n".join(parts)


def task_kind(messages: list) -> str:
    return re.search(r"^Task: (\w+):", texts(messages), re.MULTILINE).group(1)


def step_number(messages: list) -> int:
    return int(re.findall(r"^Step (\d+) of at most", texts(messages), re.MULTILINE)[-1])
