"""Compares a Playwright script on its own Chromium with the same script through the CDP endpoint of a lease.

Both run in alternating turns, so that a change of the machine's load hits both. Then eight clients at once: memory of one
Chromium with eight CDP leases, and of the same Chromium with eight leases that are driven over HTTP.
Usage: WEBGYM=… CHROMIUM=… PYTHONPATH=tests/shared bench_cdp.py SITE [TURNS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from farm import Farm, Session

STEPS = 20
CLIENTS = 8
# As webgym starts its Chromium, as far as it concerns speed.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-site-isolation-trials",
         "--disable-features=IsolateOrigins,site-per-process,BackForwardCache", "--disable-smooth-scrolling"]


def steps(page: Page, site: str) -> list[float]:
    """Returns the seconds of each step: act on the page, read from it, take a screenshot."""
    page.goto(f"{site}/course/controlled")
    seconds = []
    for number in range(STEPS):
        started = time.perf_counter()
        page.fill("#upper", f"heron{number}")
        page.click("#save")
        assert page.inner_text("#state-upper") == f"HERON{number}"
        page.screenshot()
        seconds.append(time.perf_counter() - started)
    return seconds


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


def compare_speed(own: Browser, farm: Farm, playwright, site: str, turns: int) -> None:
    session = Session(farm)
    remote = playwright.chromium.connect_over_cdp(session.lease["cdp_url"])
    times = {"own Chromium": [], "CDP endpoint": []}
    ratios = []
    for turn in range(turns + 1):
        medians = {}
        for name, browser in [("own Chromium", own), ("CDP endpoint", remote)][:: 1 if turn % 2 else -1]:
            context = browser.new_context(viewport={"width": 1280, "height": 768})
            seconds = steps(context.new_page(), site)
            context.close()
            medians[name] = statistics.median(seconds)
            # The first turn only warms up.
            if turn:
                times[name] += seconds
        if turn:
            ratios.append(medians["CDP endpoint"] / medians["own Chromium"])
    for name, seconds in times.items():
        print(f"{name}: {statistics.median(seconds) * 1000:.1f} ms a step (median of {len(seconds)})")
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    print(f"ratio of a turn: median {middle:.3f}, from {low:.3f} to {high:.3f}")
    remote.close()
    session.release()


def compare_memory(playwright, site: str, log: Path) -> None:
    for kind in ["HTTP", "CDP"]:
        farm = Farm(Path(os.environ["WEBGYM"]), CLIENTS, log / f"memory-{kind}.log")
        sessions = [Session(farm) for _ in range(CLIENTS)]
        browsers = []
        for session in sessions:
            if kind == "HTTP":
                session.execute("visit_page", url=f"{site}/course/controlled")
                session.execute("screenshot", interaction_mode="coordinates")
                continue
            browser = playwright.chromium.connect_over_cdp(session.lease["cdp_url"])
            browsers.append(browser)
            page = browser.contexts[0].pages[0]
            page.goto(f"{site}/course/controlled")
            page.screenshot()
        time.sleep(3)
        print(f"{CLIENTS} {kind} leases: {resident_mib(farm.process.pid) / CLIENTS:.1f} MiB a lease (webgym and Chromium, PSS)")
        for browser in browsers:
            browser.close()
        farm.stop()


def main() -> None:
    site, turns = sys.argv[1].rstrip("/"), int(sys.argv[2]) if len(sys.argv) > 2 else 15
    log = Path(tempfile.mkdtemp(prefix="webgym-cdp-"))
    with sync_playwright() as playwright:
        own = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=FLAGS)
        farm = Farm(Path(os.environ["WEBGYM"]), 1, log / "farm.log")
        compare_speed(own, farm, playwright, site, turns)
        own.close()
        farm.stop()
        compare_memory(playwright, site, log)


main()
