"""Browser sessions for web agents: a client of webgym farms, and the program itself.

    import webgym_rs as wg

    with wg.serve(8) as farm, farm.lease(minutes=30) as session:
        session.goto("https://example.com")
        observation = session.step(wg.click(id=1), include=["screenshot", "ac_tree"])

`webgym_rs.aio` has the same client for asyncio and trio, `webgym_rs.errors` the exceptions, `webgym_rs.commands` all
commands.
"""

from importlib.metadata import PackageNotFoundError, version

from . import aio, commands, errors, trajectories
from ._client_sync import Farm, Session, serve
from ._rollout import Rollout, rollout
from ._stream import Item, PauseStatus, TrajectoryStream
from .commands import (
    Command,
    back,
    click,
    close_tab,
    command,
    drag,
    fill,
    forward,
    hover,
    hover_and_scroll,
    key_down,
    key_up,
    mouse_click,
    mouse_down,
    mouse_move,
    mouse_up,
    open_tab,
    page_down,
    page_up,
    press,
    scroll,
    select,
    set_files,
    switch_tab,
    tab_and_enter,
    type_text,
    visit,
    wait,
    wheel,
)
from .errors import (
    AgentError,
    FarmStartError,
    FarmUnreachable,
    InfrastructureError,
    InstanceLost,
    NoCapacity,
    RequestError,
    RolloutError,
    StreamError,
    StreamUnreachable,
    WebgymError,
)
from .observations import ComputerResult, File, Observation, PageMetadata, Screenshot, Tab
from .options import SessionOptions
from .trajectories import load

try:
    __version__ = version("webgym-rs")
except PackageNotFoundError:  # run from the source tree
    __version__ = "0+source"

__all__ = [
    "AgentError",
    "Command",
    "ComputerResult",
    "Farm",
    "FarmStartError",
    "FarmUnreachable",
    "File",
    "InfrastructureError",
    "InstanceLost",
    "Item",
    "NoCapacity",
    "Observation",
    "PageMetadata",
    "PauseStatus",
    "RequestError",
    "Rollout",
    "RolloutError",
    "Screenshot",
    "Session",
    "SessionOptions",
    "StreamError",
    "StreamUnreachable",
    "Tab",
    "TrajectoryStream",
    "WebgymError",
    "aio",
    "back",
    "click",
    "close_tab",
    "command",
    "commands",
    "drag",
    "errors",
    "fill",
    "forward",
    "hover",
    "hover_and_scroll",
    "key_down",
    "key_up",
    "load",
    "mouse_click",
    "mouse_down",
    "mouse_move",
    "mouse_up",
    "open_tab",
    "page_down",
    "page_up",
    "press",
    "rollout",
    "scroll",
    "select",
    "serve",
    "set_files",
    "switch_tab",
    "tab_and_enter",
    "trajectories",
    "type_text",
    "visit",
    "wait",
    "wheel",
]
