"""Measures how often the first observation after a visit or an action is complete.

An observation is complete if it contains every interactive element that the page has once nothing changes any more. Each
application is started anew and visited in a new session (cold), then visited again in the same session (warm).
"""

import argparse
import json
import signal
import statistics
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from applications import APPLICATIONS, Action, Application
from farm import Farm, Session
from harness import RUN, WEBGYM, phase
from process import CheckFailed

# The page is stable when its elements have not changed for this long: after a visit, and after an action.
STABLE_SECONDS = (3.0, 2.0)
MAX_STABLE_WAIT_SECONDS = 25.0
POLL_SECONDS = 0.4


def elements(info: dict) -> Counter:
    """The elements of an observation by tag, role and name. Positions are left out: pages may move what is complete."""
    regions = info["interactive_regions"].values()
    return Counter((region["tag_name"], region["role"], region["aria_name"]) for region in regions)


def wait_until_stable(session: Session, stable_seconds: float) -> tuple[Counter, float]:
    """Returns the elements of the stable page, and after how many seconds they were there."""
    start = time.monotonic()
    last, since = elements(session.observe()), start
    while time.monotonic() - since < stable_seconds and time.monotonic() - start < MAX_STABLE_WAIT_SECONDS:
        time.sleep(POLL_SECONDS)
        current = elements(session.observe())
        if current != last:
            last, since = current, time.monotonic()
    return last, since - start


def find_mark(info: dict, action: Action) -> str:
    for mark, element in info["id_mapping"].items():
        if info["interactive_regions"][element]["aria_name"].casefold() == action.name.casefold():
            return mark
    names = [region["aria_name"] for region in info["interactive_regions"].values()]
    raise CheckFailed(f"no mark is named {action.name!r}, only {names}")


def measure_step(session: Session, command: dict) -> dict:
    start = time.monotonic()
    reply = session.step(command)
    seconds = time.monotonic() - start
    if reply["error"]:
        raise CheckFailed(f"{command}: {reply['error']}")
    first = elements(reply["screenshot_info"])
    stable, late_seconds = wait_until_stable(session, STABLE_SECONDS["visit_page" not in command])
    missing = stable - first
    return {
        "seconds": seconds,
        "settled": reply["settled"],
        "first": first.total(),
        "marks": len(reply["screenshot_info"]["visible_rects"]),
        "stable": stable.total(),
        "missing": [" ".join(filter(None, element)) for element in missing.elements()],
        "late_seconds": late_seconds if missing else 0.0,
    }


def measure_visit(application: Application, session: Session, url: str, start: str) -> list[dict]:
    """Visits the first page and carries out the actions. Returns one record for each of these steps."""
    records = [{"step": "visit", **measure_step(session, {"visit_page": {"url": url}})}]
    for action in application.actions:
        try:
            command = action.command(find_mark(session.observe(), action))
            record = {"step": action.name, **measure_step(session, command)}
        except CheckFailed as failure:
            record = {"step": action.name, "failure": str(failure)}
        records.append(record)
        if "failure" in record:
            break
    return [{"application": application.name, "start": start, **record} for record in records]


def is_incomplete(record: dict) -> bool:
    return "failure" in record or bool(record["missing"])


def measure_application(application: Application, farm: Farm, tries: int) -> list[dict]:
    records = []
    for number in range((tries + 1) // 2):
        try:
            process, url = application.start()
            with process, Session(farm) as session:
                records += measure_visit(application, session, url, "cold")
                records += measure_visit(application, session, url, "warm")
        except CheckFailed as failure:
            phase(f"{application.name}: {failure}")
            records.append({"application": application.name, "start": "cold", "step": "start", "failure": str(failure)})
        incomplete = [record for record in records if is_incomplete(record)]
        phase(f"{application.name}: {2 * number + 2} visits, {len(incomplete)} of {len(records)} observations incomplete")
        # Also readable if the run is interrupted.
        (RUN / f"{application.name}.json").write_text(json.dumps(records, indent=1))
    return records


def summarize(records: list[dict]) -> dict:
    observed = [record for record in records if "failure" not in record]
    complete = sum(1 for record in observed if not record["missing"])
    median = lambda kind: statistics.median([record["seconds"] for record in observed if kind(record)] or [0])
    return {
        "observations": len(observed),
        "complete": complete,
        "percent": round(100 * complete / max(len(observed), 1), 1),
        "failures": len(records) - len(observed),
        "cold_visit_ms": round(1000 * median(lambda record: record["step"] == "visit" and record["start"] == "cold")),
        "warm_visit_ms": round(1000 * median(lambda record: record["step"] == "visit" and record["start"] == "warm")),
        "action_ms": round(1000 * median(lambda record: record["step"] != "visit")),
        "unsettled": sum(1 for record in observed if not record["settled"]),
        "marks_after_visit": statistics.median([record["marks"] for record in observed if record["step"] == "visit"] or [0]),
    }


def report(summaries: dict[str, dict]) -> None:
    columns = list(next(iter(summaries.values())))
    print("| application | " + " | ".join(column.replace("_", " ") for column in columns) + " |")
    print("|" + "---|" * (len(columns) + 1))
    for name, summary in summaries.items():
        print(f"| {name} | " + " | ".join(str(summary[column]) for column in columns) + " |")


def report_incomplete(records: list[dict]) -> None:
    """Prints what was missing, the most frequent first."""
    causes = Counter()
    for record in records:
        if is_incomplete(record):
            causes[(record["application"], record["start"], record["step"], record.get("failure") or ", ".join(record["missing"][:6]))] += 1
    for (application, start, step, missing), count in causes.most_common():
        print(f"{count} × {application}, {start}, {step}: {missing[:300]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("applications", nargs="*", default=[application.name for application in APPLICATIONS])
    parser.add_argument("--tries", type=int, default=26, help="visits of each application, half of them cold")
    parser.add_argument("--at-once", type=int, default=2, help="applications measured at the same time")
    parser.add_argument("--require-percent", type=float, default=0, help="fail if an application has less")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell starts background processes with SIGINT ignored, which our children would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    chosen = [application for application in APPLICATIONS if application.name in arguments.applications]
    farm = Farm(WEBGYM, arguments.at_once, RUN / "logs" / "farm.log")
    with ThreadPoolExecutor(arguments.at_once) as threads:
        results = list(threads.map(lambda one: measure_application(one, farm, arguments.tries), chosen))
    summaries = {application.name: summarize(records) for application, records in zip(chosen, results)}
    records = [record for result in results for record in result]
    (RUN / "results.json").write_text(json.dumps({"summaries": summaries, "records": records}, indent=1))
    report(summaries)
    report_incomplete(records)
    poor = [name for name, summary in summaries.items() if summary["percent"] < arguments.require_percent or summary["failures"]]
    if poor:
        phase(f"FAILED: {', '.join(poor)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
