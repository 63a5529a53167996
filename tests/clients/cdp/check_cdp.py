"""Lets eight copies of each CDP client do a practice task at once, in leases that share one Chromium.

The page of each lease is then read through the HTTP API: it must show what the client typed. Usage:
check_cdp.py SITE NAME=COMMAND…, where a command is split at blanks and gets the CDP address and the site as arguments.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from farm import Farm, Session

AT_ONCE = int(os.environ.get("AT_ONCE", "8"))
TIMEOUT = 240


def run(farm: Farm, site: str, name: str, command: list[str], log: Path) -> None:
    sessions = [Session(farm) for _ in range(AT_ONCE)]
    started = time.monotonic()
    clients = []
    for number, session in enumerate(sessions):
        arguments = [part.replace("{cdp_url}", session.lease["cdp_url"]).replace("{site}", site) for part in command]
        output = open(log / f"{name}-{number}.log", "wb")
        # Playwright MCP writes files into the current folder.
        clients.append(subprocess.Popen(arguments, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=log))
    failed = []
    for number, client in enumerate(clients):
        try:
            code = client.wait(max(1.0, started + TIMEOUT - time.monotonic()))
        except subprocess.TimeoutExpired:
            client.kill()
            code = "timeout"
        if code != 0:
            failed.append(f"client {number}: {code}, see {log / f'{name}-{number}.log'}")
    seconds = time.monotonic() - started
    for number, session in enumerate(sessions):
        text = session.execute("get_webpage_text")["text"]
        if "HERON" not in text or "2024" not in text or "saved" not in text:
            failed.append(f"client {number}: the page of its lease shows {text[-200:]!r}")
        session.release()
    if failed:
        sys.exit(f"{name}: " + "\n".join(failed))
    print(f"{name}: {AT_ONCE} clients at once did the task in {seconds:.1f} s")


def main() -> None:
    site, commands = sys.argv[1], [argument.split("=", 1) for argument in sys.argv[2:]]
    log = Path(tempfile.mkdtemp(prefix="webgym-cdp-"))
    farm = Farm(Path(os.environ["WEBGYM"]), AT_ONCE, log / "farm.log")
    for name, command in commands:
        run(farm, site.rstrip("/"), name, command.split(), log)
    farm.stop()


main()
