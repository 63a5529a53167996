"""Compares a Playwright script on its own Chromium with the same script through the CDP endpoint of a lease.

Own Chromium means two things: one that Playwright launches with its flags, and one with the flags of webgym that Playwright
connects to directly, so that only the endpoint differs. All run in alternating turns, so that a change of the machine's load
hits all. Then eight clients at once: memory of one Chromium with eight CDP leases, and with eight leases driven over HTTP.
Usage: WEBGYM=… CHROMIUM=… PYTHONPATH=tests/shared bench_cdp.py SITE [TURNS]
"""

import os
import re
import signal
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


def compare_speed(browsers: dict[str, Browser], site: str, turns: int) -> None:
    times = {name: [] for name in browsers}
    ratios = {name: [] for name in browsers}
    for turn in range(turns + 1):
        medians = {}
        for name in sorted(browsers, reverse=turn % 2 == 0):
            context = browsers[name].new_context(viewport={"width": 1280, "height": 768})
            seconds = steps(context.new_page(), site)
            context.close()
            medians[name] = statistics.median(seconds)
            # The first turn only warms up.
            if turn:
                times[name] += seconds
        for name, median in medians.items() if turn else []:
            ratios[name].append(medians["CDP endpoint"] / median)
    for name, seconds in times.items():
        low, middle, high = min(ratios[name]), statistics.median(ratios[name]), max(ratios[name])
        print(f"{name}: {statistics.median(seconds) * 1000:.1f} ms a step (median of {len(seconds)}); "
              f"the endpoint takes {middle:.3f} times as long, from {low:.3f} to {high:.3f}")


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
        process, address = start_chromium(log / "profile")
        farm = Farm(Path(os.environ["WEBGYM"]), 1, log / "farm.log")
        connect = playwright.chromium.connect_over_cdp
        browsers = {
            "launched by Playwright": playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"]),
            "flags of webgym, direct": connect(address),
            "CDP endpoint": connect(Session(farm).lease["cdp_url"]),
        }
        compare_speed(browsers, site, turns)
        for browser in browsers.values():
            browser.close()
        # The program may be a wrapper: end its whole group.
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        farm.stop()
        compare_memory(playwright, site, log)


main()
