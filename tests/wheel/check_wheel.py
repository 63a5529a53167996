"""Checks an installed wheel: the documented programs work, and a missing Chromium is explained.

Runs in the virtual environment of the wheel. Arguments: the repository, and an empty folder.
"""

import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import files
from pathlib import Path

PAGES = ["README.md", "python/README.md", "docs/python.md"]
PAGE = b"<!doctype html><title>Page</title><a href='/other'>Other page</a>"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_) -> None:
        pass


def documented_program(text: str) -> str:
    """Returns the first program of a page that uses the package."""
    block = re.search(r"^( *)import webgym_rs as wg\n(.*?)(?:^```|\n\n(?! )|\Z)", text, re.DOTALL | re.MULTILINE)
    if block is None:
        raise SystemExit("test-wheel: the page has no program")
    indent = block[1]
    return "\n".join(line.removeprefix(indent) for line in block[0].removesuffix("```").splitlines())


def run(program: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=180, check=False)


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise SystemExit(f"test-wheel: {message}")


def main() -> None:
    root, folder = Path(sys.argv[1]), Path(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{server.server_port}/"
    where = run("import webgym_rs; print(webgym_rs.__file__)", folder)
    expect(str(folder) in where.stdout, f"the package is not that of the wheel: {where.stdout}{where.stderr}")
    for page in PAGES:
        program = documented_program((root / page).read_text())
        program = program.replace("https://example.com", site)
        program = program.replace("wg.serve(8)", 'wg.serve(2, arguments=["--allow-private-network"])')
        done = run(program, folder)
        expect(done.returncode == 0, f"the program of {page} fails:\n{program}\n{done.stderr}")
        print(f"test-wheel: the program of {page} works")
    licences = {file.name for file in files("webgym-rs") or [] if "licenses" in file.parts}
    expect(licences == {"LICENSE-MIT", "LICENSE-APACHE"}, f"the wheel has these licences: {licences}")
    version = subprocess.run(["webgym", "--version"], capture_output=True, text=True, check=True).stdout
    print(f"test-wheel: {version.strip()} is in the environment")
    # A path that has Python, but no Chromium.
    serve = "import webgym_rs as wg; wg.serve(1)"
    doctor = "import sys, webgym_rs.__main__ as main; sys.argv[1:] = ['doctor']; main.main()"
    for program in (serve, doctor):
        done = run(program, folder, PATH=str(Path(sys.executable).parent))
        output = done.stdout + done.stderr
        expect(done.returncode != 0, "a farm started without Chromium")
        expect("apt-get install chromium-headless-shell" in output, f"the error does not help:\n{output}")
        expect("scripts/" not in output, f"the error names a file that the wheel does not have:\n{output}")
    print("test-wheel: without Chromium, the error names the package to install")


main()
