"""Drives one browser session: goes to a page, follows its first link and saves a screenshot."""

import sys

import webgym_rs as wg

start = sys.argv[1] if len(sys.argv) > 1 else "https://example.com"
# Pages may not reach this machine or its private network unless that is allowed.
arguments = ["--allow-private-network"] if "localhost" in start or "127.0.0.1" in start else []

with wg.serve(2, arguments=arguments) as farm, farm.lease(minutes=5, locale="en-GB") as session:
    page = session.goto(start)
    print(f"{page.title}\n{page.ac_tree}")
    observation = session.step(wg.click(id=1), include=["screenshot", "metadata"])
    if observation.error:
        print(f"the click failed: {observation.error}")
    assert observation.screenshot
    observation.screenshot.save("page.png")
    print(f"now at {observation.url}; page.png has {observation.screenshot.width} pixels in each row")
