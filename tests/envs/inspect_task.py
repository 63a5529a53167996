"""An inspect-ai evaluation whose agent uses the browser through mcp_server_http, with a scripted model."""

import argparse
import json

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import mcp_server_http, mcp_tools


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("tasks")
    parser.add_argument("logs")
    options = parser.parse_args()
    with open(options.tasks, encoding="utf-8") as file:
        task = json.loads(file.readline())
    server = mcp_server_http(name="browser", url=f"{options.url}/mcp?task_id={task['task_id']}")
    answer = task["definite_answer"]

    def call(name: str, arguments: dict) -> ModelOutput:
        return ModelOutput.for_tool_call("mockllm/model", name, arguments)

    outputs = [
        call("task_goal", {}),
        call("browser_snapshot", {}),
        call("browser_take_screenshot", {}),
        call("task_submit", {"answer": answer}),
        ModelOutput.from_content("mockllm/model", f"The answer is {answer}."),
    ]
    for output in outputs:
        # Otherwise tokens are counted with a vocabulary from the network.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    evaluation = Task(
        dataset=[Sample(input="Solve the task of the browser.", target=answer)],
        solver=[use_tools(mcp_tools(server)), generate()],
        scorer=includes(),
    )
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = run_eval(evaluation, model=model, display="none", log_dir=options.logs)
    assert log.status == "success", log.error and log.error.message
    messages = [message for message in log.samples[0].messages if message.role == "tool"]
    assert [message.function for message in messages] == [
        "task_goal",
        "browser_snapshot",
        "browser_take_screenshot",
        "task_submit",
    ], messages
    assert not any(message.error for message in messages), messages
    assert task["task_name"] in messages[0].text and "Reward: 1" in messages[3].text, messages
    assert any(content.type == "image" for content in messages[2].content), messages[2]
    print(f"inspect-ai: status {log.status}, accuracy {log.results.scores[0].metrics['accuracy'].value}")


main()
