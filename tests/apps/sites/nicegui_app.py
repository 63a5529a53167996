"""A NiceGUI page, which is built by messages of a WebSocket. Its first argument is the port."""

import asyncio
import sys

from nicegui import ui


@ui.page("/")
async def index() -> None:
    ui.label("Greenhouse")
    ui.input("Plant")
    ui.slider(min=0, max=40, value=21)
    ui.switch("Watering")
    ui.select(["North", "South"], value="North", label="Wall")
    area = ui.row()

    async def open_details() -> None:
        await asyncio.sleep(0.3)
        with area:
            ui.button("Water now")
            ui.button("Move")

    ui.button("Details", on_click=open_details)
    with ui.tabs() as tabs:
        ui.tab("Today")
        ui.tab("Week")
    with ui.tab_panels(tabs, value="Today"):
        with ui.tab_panel("Today"):
            ui.button("Measure")
        with ui.tab_panel("Week"):
            ui.button("Compare")
    await ui.context.client.connected()
    await asyncio.sleep(0.3)
    ui.button("Sensor 1")
    ui.button("Sensor 2")


ui.run(host="127.0.0.1", port=int(sys.argv[1]), reload=False, show=False)
