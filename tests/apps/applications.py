"""The applications: how each is started, which page is visited first, and what is done on it."""

import os
from dataclasses import dataclass
from pathlib import Path

from harness import OUT, RUN, Process, is_answering
from process import empty_folder, free_port

SITES = Path(__file__).resolve().parent / "sites"


@dataclass(frozen=True)
class Action:
    """A click on the element with this name, or, with `value`, filling it."""

    name: str
    value: str | None = None
    press_enter: bool = False

    def command(self, mark: str) -> dict:
        if self.value is None:
            return {"click_id": {"id": mark}}
        return {"fill_id": {"id": mark, "value": self.value, "press_enter": self.press_enter}}


@dataclass(frozen=True)
class Application:
    """A web application. `command` is completed with the port."""

    name: str
    command: tuple[str, ...]
    first_page: str
    actions: tuple[Action, ...]
    env: tuple[tuple[str, str], ...] = ()

    def start(self) -> tuple[Process, str]:
        """Starts a new server process with empty folders. Returns it and the URL of the first page."""
        port = free_port()
        folder = RUN / "data" / self.name
        empty_folder(folder)
        programs = OUT / self.name / "bin"
        program, *arguments = (part.format(port=port, sites=SITES) for part in self.command)
        # Applications keep settings in the home folder; theirs must not reach ours, and a cold start has none.
        env = {"HOME": str(folder), "PATH": f"{programs}:{os.environ['PATH']}", **dict(self.env)}
        process = Process(self.name, [programs / program, *arguments], env, folder)
        url = f"http://127.0.0.1:{port}"
        process.wait_until(lambda: is_answering(url + self.first_page), 60, "page")
        return process, url + self.first_page


APPLICATIONS = [
    Application(
        name="jupyterlab",
        command=("jupyter-lab", "--no-browser", "--allow-root", "--ServerApp.port={port}", "--IdentityProvider.token="),
        # Without `reset` a second visit would restore the notebooks of the first one.
        first_page="/lab?reset",
        actions=(Action("Python 3 (ipykernel)"), Action("Run this cell and advance (Shift+Enter)"), Action("Insert a cell below (B)")),
    ),
    Application(
        name="streamlit",
        command=("streamlit", "run", "{sites}/streamlit_app.py", "--server.port={port}", "--server.headless=true", "--browser.gatherUsageStats=false"),
        first_page="/",
        actions=(Action("Details"), Action("Notes"), Action("Weekends only")),
    ),
    Application(
        name="django",
        command=("python", "{sites}/django_site.py", "{port}"),
        first_page="/leave/",
        actions=(Action("Username:", "admin"), Action("Password:", "admin", press_enter=True), Action("Users")),
    ),
    Application(
        name="gradio",
        command=("python", "{sites}/gradio_app.py", "{port}"),
        first_page="/",
        actions=(Action("More options"), Action("Output"), Action("Write")),
        env=(("GRADIO_ANALYTICS_ENABLED", "False"), ("HF_HUB_OFFLINE", "1")),
    ),
    Application(
        name="nicegui",
        command=("python", "{sites}/nicegui_app.py", "{port}"),
        first_page="/",
        actions=(Action("Details"), Action("Week"), Action("Watering")),
    ),
    Application(
        name="dash",
        command=("python", "{sites}/dash_app.py", "{port}"),
        first_page="/",
        actions=(Action("Load berths"), Action("Map"), Action("Arrivals")),
    ),
]
