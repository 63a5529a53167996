"""Playwright for Python: does the practice task in the lease at CDP_URL. Usage: playwright_task.py CDP_URL SITE"""

import sys

from playwright.sync_api import sync_playwright


def main(cdp_url: str, site: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.connect_over_cdp(cdp_url)
        context = browser.contexts[0]
        assert len(context.pages) == 1, [page.url for page in context.pages]
        context.add_init_script("window.startedWith = document.readyState")
        # A page of its own, a dialog and a second context, as scripts have them.
        other = context.new_page()
        other.goto(f"{site}/course/buttons")
        assert other.evaluate("startedWith") == "loading"
        assert len(other.screenshot()) > 5000
        other.once("dialog", lambda dialog: dialog.dismiss())
        assert other.evaluate("confirm('sure?')") is False
        other.close()
        separate = browser.new_context(viewport={"width": 800, "height": 600})
        page = separate.new_page()
        page.goto(f"{site}/course/buttons")
        assert page.evaluate("[innerWidth, innerHeight]") == [800, 600]
        separate.close()

        page = context.pages[0]
        page.goto(f"{site}/course/controlled")
        page.get_by_label("Upper case").fill("heron")
        page.get_by_label("Digits only").press_sequentially("2024")
        page.get_by_role("button", name="Save").click()
        assert page.locator("#state-upper").inner_text() == "HERON"
        browser.close()


main(sys.argv[1], sys.argv[2])
