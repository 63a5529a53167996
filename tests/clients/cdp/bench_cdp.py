"""Compares a Playwright script on its own Chromium with the same script through the CDP endpoint of a lease.

Own Chromium means two things: one that Playwright launches with its flags, and one with the flags of webgym that Playwright
connects to directly, so that only the endpoint differs. Each round has one step of each, in random order, so that a change of
the machine's load affects all alike. Then eight clients at once: memory of one Chromium with eight leases driven over HTTP, over
CDP, and by Playwright over CDP. Needs the packages playwright and websocket-client.
Usage: WEBGYM=… CHROMIUM=… PYTHONPATH=tests/shared bench_cdp.py SITE [ROUNDS]
"""

import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright, sync_playwright
from websocket import WebSocket, create_connection

from farm import Farm, Session

WARM_UP = 20
CLIENTS = 8
MEMORY_TURNS = 5
SOURCE = Path(__file__).parents[3] / "crates/cdp/src/flags.rs"


def webgym_flags() -> list[str]:
    """Reads the flags of webgym's Chromium from its source."""
    constants = SOURCE.read_text().split("fn flags")[0]
    joined = re.sub(r"\\\n\s*", "", constants)
    return re.findall(r'^\s+"(--[^"]+)"', joined, re.MULTILINE)


def start_chromium(profile: Path) -> tuple[subprocess.Popen, str]:
    """Starts Chromium with the flags of webgym. Returns it with the address of its debugging port."""
    flags = [*webgym_flags(), "--headless", "--no-sandbox", "--window-size=1280,768", "--remote-debugging-port=0"]
    command = [os.environ["CHROMIUM"], *flags, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while not (lines := (profile / "DevToolsActivePort").read_text().split() if (profile / "DevToolsActivePort").exists() else []):
        time.sleep(0.1)
    return process, f"http://127.0.0.1:{lines[0]}"


def step(page: Page, number: int) -> float:
    """Acts on the page, reads from it and takes a screenshot. Returns the seconds that it took."""
    started = time.perf_counter()
    page.fill("#upper", f"heron{number}")
    page.click("#save")
    assert page.inner_text("#state-upper") == f"HERON{number}"
    page.screenshot()
    return time.perf_counter() - started


def resident_mib(root: int) -> float:
    """Returns the proportional memory of a process and its descendants."""
    children = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True).stdout.split("\n")
    pairs = [tuple(map(int, line.split())) for line in children if line.strip()]
    tree = {root}
    while True:
        more = {pid for pid, parent in pairs if parent in tree} - tree
        if not more:
            break
        tree |= more
    total = 0
    for pid in tree:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1024


def compare_speed(browsers: dict[str, Browser], site: str, rounds: int) -> None:
    """Takes one step in every browser, in random order, in each of the rounds."""
    pages = {name: browser.new_context(viewport={"width": 1280, "height": 768}).new_page() for name, browser in browsers.items()}
    for page in pages.values():
        page.goto(f"{site}/course/controlled")
    times = {name: [] for name in browsers}
    for number in range(WARM_UP + rounds):
        for name in random.sample(sorted(pages), len(pages)):
            seconds = step(pages[name], number)
            if number >= WARM_UP:
                times[name].append(seconds)
    for name, seconds in times.items():
        ratios = sorted(endpoint / own for endpoint, own in zip(times["CDP endpoint"], seconds))
        low, middle, high = (ratios[len(ratios) * part // 100] for part in (25, 50, 75))
        print(f"{name}: {statistics.median(seconds) * 1000:.1f} ms a step (median of {len(seconds)}); "
              f"the endpoint takes {middle:.3f} times as long in the median round, quartiles {low:.3f} and {high:.3f}")


def open_raw(cdp_url: str, url: str) -> WebSocket:
    """Opens a page through the endpoint without any client library, so that nothing is injected into it. Returns the socket."""
    version = json.load(urllib.request.urlopen(f"{cdp_url}/json/version"))
    socket = create_connection(version["webSocketDebuggerUrl"])

    def wait_for(field: str, value: object) -> dict:
        while (message := json.loads(socket.recv())).get(field) != value:
            pass
        return message

    def call(number: int, method: str, session: str | None, **params: object) -> dict:
        message = {"id": number, "method": method, "params": params}
        socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        return wait_for("id", number)["result"]

    targets = call(1, "Target.getTargets", None)["targetInfos"]
    page = next(target["targetId"] for target in targets if target["type"] == "page")
    session = call(2, "Target.attachToTarget", None, targetId=page, flatten=True)["sessionId"]
    call(3, "Page.enable", session)
    call(4, "Page.navigate", session, url=url)
    wait_for("method", "Page.loadEventFired")
    call(5, "Page.captureScreenshot", session)
    return socket


def memory_of_a_lease(kind: str, playwright: Playwright, site: str, log: Path) -> float:
    """Returns the MiB of each of eight leases with one open page, driven in one of three ways."""
    farm = Farm(Path(os.environ["WEBGYM"]), CLIENTS, log / "memory.log")
    url = f"{site}/course/controlled"
    clients = []
    for session in [Session(farm) for _ in range(CLIENTS)]:
        if kind == "HTTP":
            session.execute("visit_page", url=url)
            session.execute("screenshot", interaction_mode="coordinates")
        elif kind == "CDP without a library":
            clients.append(open_raw(session.lease["cdp_url"], url))
        else:
            browser = playwright.chromium.connect_over_cdp(session.lease["cdp_url"])
            clients.append(browser)
            page = browser.contexts[0].pages[0]
            page.goto(url)
            page.screenshot()
    time.sleep(3)
    mib = resident_mib(farm.process.child.pid) / CLIENTS
    for client in clients:
        client.close()
    farm.stop()
    return mib


def compare_memory(playwright: Playwright, site: str, log: Path) -> None:
    kinds = {kind: [] for kind in ["HTTP", "CDP without a library", "CDP with Playwright"]}
    for _ in range(MEMORY_TURNS):
        for kind, found in kinds.items():
            found.append(memory_of_a_lease(kind, playwright, site, log))
    for kind, found in kinds.items():
        print(f"{CLIENTS} leases, {kind}: {statistics.median(found):.1f} MiB a lease, from {min(found):.1f} to {max(found):.1f} "
              f"(webgym and Chromium, PSS)")


def main() -> None:
    site, rounds = sys.argv[1].rstrip("/"), int(sys.argv[2]) if len(sys.argv) > 2 else 300
    log = Path(tempfile.mkdtemp(prefix="webgym-cdp-"))
    with sync_playwright() as playwright:
        process, address = start_chromium(log / "profile")
        farm = Farm(Path(os.environ["WEBGYM"]), 1, log / "farm.log")
        over_cdp = playwright.chromium.connect_over_cdp
        browsers = {
            "launched by Playwright": playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"]),
            "flags of webgym, direct": over_cdp(address),
            "CDP endpoint": over_cdp(Session(farm).lease["cdp_url"]),
        }
        compare_speed(browsers, site, rounds)
        for browser in browsers.values():
            browser.close()
        # The program may be a wrapper: end its whole group.
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        farm.stop()
        compare_memory(playwright, site, log)


main()
