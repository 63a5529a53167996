"""A Gradio page. Its first argument is the port."""

import sys
import time

import gradio


def show_more():
    time.sleep(0.3)
    return gradio.update(visible=True), gradio.update(visible=True)


with gradio.Blocks(title="Letters") as page:
    text = gradio.Textbox(label="Text")
    size = gradio.Slider(1, 20, value=5, label="Repetitions")
    style = gradio.Radio(["plain", "upper"], value="plain", label="Style")
    result = gradio.Textbox(label="Result")
    gradio.Button("Write").click(lambda text, size: text * int(size), [text, size], result)
    more = gradio.Button("More options")
    with gradio.Tab("Language"):
        gradio.Dropdown(["English", "Finnish"], label="Language")
    with gradio.Tab("Output"):
        gradio.Checkbox(label="Compress")
    first, second = gradio.Button("Clear history", visible=False), gradio.Button("Export history", visible=False)
    more.click(show_more, None, [first, second])

page.launch(server_name="127.0.0.1", server_port=int(sys.argv[1]), quiet=True, show_error=True)
