"""browser-use: an agent with a scripted model does the practice task in the lease at CDP_URL.

Usage: browser_use_task.py CDP_URL SITE
"""

import asyncio
import http.server
import json
import os
import re
import sys
import threading

os.environ.update(ANONYMIZED_TELEMETRY="false", BROWSER_USE_LOGGING_LEVEL="warning", BROWSER_USE_CLOUD_SYNC="false")

from browser_use import Agent, BrowserSession, ChatOpenAI  # noqa: E402


class Script(http.server.BaseHTTPRequestHandler):
    """An OpenAI-compatible server that plays the model: it finds the elements in the prompt, as a model would."""

    site = ""
    turn = 0

    def do_POST(self) -> None:
        prompt = self.rfile.read(int(self.headers["content-length"])).decode()
        action = self.choose(json.dumps(json.loads(prompt)["messages"][-1]))
        type(self).turn += 1
        reply = {"evaluation_previous_goal": "-", "memory": "-", "next_goal": "-", "thinking": "-", "action": action}
        message = {"role": "assistant", "content": json.dumps(reply)}
        body = json.dumps({
            "id": "1", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def choose(self, state: str) -> list[dict]:
        index = lambda name: int(re.search(rf"\[(\d+)\]<(?:input|button)[^>]*id={name}\b", state)[1])
        match self.turn:
            case 0:
                return [{"navigate": {"url": f"{self.site}/course/controlled", "new_tab": False}}]
            case 1:
                return [{"input": {"index": index("upper"), "text": "heron"}}]
            case 2:
                return [{"input": {"index": index("digits"), "text": "2024"}}]
            case 3:
                return [{"click": {"index": index("save")}}]
            case _:
                return [{"done": {"text": "saved", "success": True, "files_to_display": []}}]

    def log_message(self, *_) -> None:
        pass


async def main(cdp_url: str, site: str) -> None:
    Script.site = site
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Script)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model = ChatOpenAI(model="scripted", base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none",
                       add_schema_to_system_prompt=True, dont_force_structured_output=True)
    session = BrowserSession(cdp_url=cdp_url)
    agent = Agent(task="Type heron and 2024, press Save.", llm=model, browser_session=session, use_vision=True, use_judge=False)
    history = await agent.run(max_steps=8)
    assert history.final_result() == "saved" and not any(history.errors()), history.errors()
    await session.stop()


asyncio.run(main(sys.argv[1], sys.argv[2]))
