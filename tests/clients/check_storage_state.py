"""Moves a login between Playwright and webgym, in both directions, by their storage states."""

import json
import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import login_site
from farm import Farm, Session


def read_state(session: Session, url: str) -> str:
    session.execute("visit_page", url=url)
    return session.execute("get_webpage_text")["text"]


def check(name: str, actual: str, expected: str) -> None:
    if expected not in actual:
        sys.exit(f"{name}: the page shows {actual!r} instead of {expected!r}")
    print(f"{name}: {expected}")


def main() -> None:
    site = login_site.start()
    log = Path(tempfile.mkdtemp(prefix="webgym-clients-")) / "farm.log"
    farm = Farm(Path(os.environ["WEBGYM"]), 2, log)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])
        print(f"Playwright {os.environ['PLAYWRIGHT_VERSION']}, Chromium {browser.version}")

        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{site}/login")
        page.fill("#name", "ada")
        page.click("#enter")
        page.wait_for_function("document.title === 'Home' && !state.textContent.includes('loading')")
        state = context.storage_state(indexed_db=True)
        session = Session(farm, {"storage_state": state})
        check("saved by Playwright, used by webgym", read_state(session, site), login_site.expected_state("ada"))
        session.release()

        session = Session(farm)
        session.execute("visit_page", url=f"{site}/login")
        session.execute("screenshot", interaction_mode="set_of_marks")
        session.execute("fill_id", id="1", value="grace", press_enter=False)
        session.execute("click_id", id="2")
        check("logged in by webgym", read_state(session, site), login_site.expected_state("grace"))
        state = json.loads(farm.request("GET", "/storage_state", session.lease))
        session.release()
        page = browser.new_context(storage_state=state).new_page()
        page.goto(site)
        page.wait_for_function("!state.textContent.includes('loading')")
        check("saved by webgym, used by Playwright", page.text_content("#state"), login_site.expected_state("grace"))

        session = Session(farm)
        check("a new lease", read_state(session, site), "cookie nobody; storage null; database undefined undefined")
        session.release()
        browser.close()
    farm.stop()


if __name__ == "__main__":
    main()
