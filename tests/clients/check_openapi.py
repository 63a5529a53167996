"""Lints the OpenAPI documents with redocly, generates clients from the master's, and uses these with a farm."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import login_site
from farm import Farm

HERE = Path(__file__).resolve().parent
NODE = Path(os.environ["NODE_TOOLS"]) / "node_modules"
TSC = ["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "--types", "node", "--typeRoots", f"{NODE}/@types"]


def lint(tier: str, folder: Path) -> None:
    """Lints a document; warnings are failures, too."""
    command = [NODE / ".bin/redocly", "lint", f"{tier}.json", "--format=json"]
    report = json.loads(subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout)
    if any(report["totals"].values()):
        sys.exit(f"redocly lint, {tier}: {json.dumps(report['problems'], indent=2)}")
    print(f"redocly lint, {tier}: passed")


def run(name: str, *command: object, cwd: Path, quiet_words: str = "") -> None:
    """Runs a program, which must succeed and must not print `quiet_words`."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    output = done.stdout + done.stderr
    if done.returncode != 0 or (quiet_words and quiet_words in output):
        sys.exit(f"{name} failed with status {done.returncode}:\n{output}")
    print(f"{name}: passed")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="webgym-openapi-"))
    site = login_site.start()
    farm = Farm(Path(os.environ["WEBGYM"]), 1, folder / "farm.log")
    try:
        check(folder, farm, f"{site}/login")
    finally:
        farm.stop()
        shutil.rmtree(folder)


def check(folder: Path, farm: Farm, page: str) -> None:
    for tier, server in [("master", farm.url), ("node", farm.node_url)]:
        (folder / f"{tier}.json").write_bytes(farm.request("GET", "/openapi.json", server=server))
        lint(tier, folder)
    generator = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none", "--path", "master.json"]
    generator += ["--config", str(HERE / "openapi_python_client.yaml"), "--output-path", "generated_client"]
    run("openapi-python-client", *generator, cwd=folder, quiet_words="WARNING")
    shutil.copy(HERE / "use_generated.py", folder)
    run("the generated Python client", sys.executable, "use_generated.py", farm.url, page, cwd=folder)
    (folder / "node_modules").symlink_to(NODE)
    (folder / "package.json").write_text('{"type": "module"}')
    shutil.copy(HERE / "use_generated.ts", folder)
    run("openapi-typescript", NODE / ".bin/openapi-typescript", "master.json", "-o", "schema.ts", cwd=folder)
    run("types of the TypeScript client", NODE / ".bin/tsc", *TSC, "use_generated.ts", cwd=folder)
    run("the TypeScript client", "node", "use_generated.js", farm.url, page, cwd=folder)


if __name__ == "__main__":
    main()
