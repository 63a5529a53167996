"""BrowserGym on a farm: its tasks run on leased sessions instead of a Chromium each.

    import gymnasium, browsergym.miniwob, webgym_rs as wg
    from webgym_rs.browsergym import use_farm

    with wg.Farm("http://host:7000") as farm, use_farm(farm):
        env = gymnasium.make("browsergym/miniwob.click-test")
        observation, info = env.reset(seed=1)

Tasks, observations and actions are BrowserGym's own. docs/browsergym.md describes what differs.
"""

from importlib import import_module

try:
    import_module("browsergym.core")
except ImportError as error:
    raise ImportError("BrowserGym is not installed; run: pip install 'webgym-rs[browsergym]'") from error

from ._chat import ChatMode
from ._miniwob import serve_miniwob
from ._playwright import FarmChromium, FarmPlaywright, use_farm

__all__ = ["ChatMode", "FarmChromium", "FarmPlaywright", "serve_miniwob", "use_farm"]
