"""A proxy before a policy server that records every chat request with its response."""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass

import quiet_server


@dataclass
class Exchange:
    request: dict
    status: int
    response: str

    def image_urls(self) -> list[str]:
        return image_urls(self.request["messages"])


def image_urls(messages: list) -> list[str]:
    parts = [part for message in messages if isinstance(message["content"], list) for part in message["content"]]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


class RecordingProxy:
    def __init__(self, target: str):
        self.exchanges: list[Exchange] = []
        exchanges = self.exchanges

        class Handler(quiet_server.Handler):
            def do_GET(self) -> None:
                self.reply(*self.forward(None))

            def do_POST(self) -> None:
                body = self.body()
                status, answer = self.forward(body)
                exchanges.append(Exchange(json.loads(body), status, answer.decode()))
                self.reply(status, answer)

            def forward(self, body: bytes | None) -> tuple[int, bytes]:
                names = ("authorization", "content-type")
                headers = {name: self.headers[name] for name in names if name in self.headers}
                forwarded = urllib.request.Request(target + self.path, body, headers)
                try:
                    with urllib.request.urlopen(forwarded, timeout=300) as response:
                        return response.status, response.read()
                except urllib.error.HTTPError as error:
                    return error.code, error.read()

        self.url = quiet_server.serve(Handler)

    def completed(self) -> list[dict]:
        """Returns the choices of the successful responses, with the ids of their prompts' tokens."""
        answers = [json.loads(exchange.response) for exchange in self.exchanges if exchange.status == 200]
        return [{**answer["choices"][0], "prompt_token_ids": answer.get("prompt_token_ids")} for answer in answers]
