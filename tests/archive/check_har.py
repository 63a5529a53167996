"""Lets Playwright serve the sample site from our HAR file with routeFromHAR, without any network."""

import os
import sys

from playwright.sync_api import sync_playwright

FETCH = """async ([url, body]) => {
    const options = body ? {method: 'POST', body, headers: {'Content-Type': 'application/json'}} : {};
    const response = await fetch(url, options);
    return [response.status, await response.text()];
}"""


def check(name: str, found: object, expected: object) -> None:
    if found != expected:
        sys.exit(f"{name}: {found!r} instead of {expected!r}")


def main(har: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])
        page = browser.new_page()
        page.route_from_har(har, not_found="abort")
        page.goto("http://site.test/")
        check("title", page.title(), "Home page")
        check("body", page.inner_text("body"), "Hello archive")
        check("redirect", page.goto("http://site.test/old").url, "http://site.test/")
        ask = lambda path, body=None: page.evaluate(FETCH, [path, body])  # noqa: E731
        check("script", ask("/app.js"), [200, "console.log('compressed')"])
        check("style", len(ask("/style.css?v=1")[1]), 2250)
        for name in ["User", "Cart"]:
            body = f'{{"operationName":"{name}","variables":{{"id":1}}}}'
            check(name, ask("/graphql", body), [200, f'{{"data":"{name}"}}'])
        size = page.evaluate("async () => (await (await fetch('/image')).arrayBuffer()).byteLength")
        check("image", size, 2000)
        browser.close()
    print("Playwright: page, redirect, compressed and binary bodies, POST requests from the HAR file")


main(sys.argv[1])
