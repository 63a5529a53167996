"""Replays the sample archive with pywb: pages, compressed and deduplicated bodies, and POST requests told apart by body."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from process import Process, check, empty_folder, free_port

DATE = "20260102030405"


def fetch(url: str, body: dict | None = None) -> bytes | None:
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"} if body else {})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.read()
    except urllib.error.HTTPError as error:
        return f"status {error.code}".encode()
    except OSError:
        return None


def main(directory: Path, tools: Path, work: Path) -> None:
    empty_folder(work)
    manager = tools / "wb-manager"
    files = sorted((directory / "archive").glob("*.warc.gz"))
    for command in [[manager, "init", "site"], [manager, "add", "site", *files]]:
        subprocess.run(command, cwd=work, check=True, capture_output=True)
    port = free_port()
    base = f"http://127.0.0.1:{port}/site"
    with Process(work / "pywb.log", [tools / "wayback", "-b", "127.0.0.1", "-p", port], cwd=work) as server:
        server.wait_until(lambda: fetch(f"http://127.0.0.1:{port}/"), 60, "answer")
        replayed = lambda path, body=None: fetch(f"{base}/{DATE}id_/http://site.test{path}", body)  # noqa: E731
        page = fetch(f"{base}/{DATE}mp_/http://site.test/")
        check(b"Hello archive" in page and b"wombat" in page, f"the rewritten page is {page!r}")
        css = replayed("/style.css?v=1")
        check(len(css) == 2250 and css == replayed("/copy.css"), "the deduplicated body differs")
        check(b"console.log('compressed')" in replayed("/app.js"), "the compressed body differs")
        image = bytes(range(256)) * 8
        check(replayed("/image") == image[:2000], "the binary body differs")
        for name in ["User", "Cart"]:
            found = replayed("/graphql", {"operationName": name, "variables": {"id": 1}})
            check(found == json.dumps({"data": name}, separators=(",", ":")).encode(), f"{name}: {found!r}")
        check(replayed("/unknown") == b"status 404", "an unknown URL was found")
    print("pywb: page, compressed, deduplicated and binary bodies, POST requests")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
