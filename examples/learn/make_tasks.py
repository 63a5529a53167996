"""Writes tasks of one kind for the practice sites: open the page that the task names, by one or two clicks.

    webgym practice --port 4700 &
    python make_tasks.py --site http://127.0.0.1:4700 --out tasks

The names come from the pages themselves. A fifth of them is kept for `test.jsonl`. Tasks carry a check of the address, for
`judge=program`. An easy task starts on the list that has the link; a medium one starts a click before it.
"""

import argparse
import html
import json
import re
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

LINK = re.compile(r'<a[^>]* href="([^"]+)"[^>]*>(.*?)</a>', re.DOTALL)
# Front page, links to lists and links to pages; what a list and a page are called in a task.
SITES = {
    "shop": ("/shop/", "/shop/search?category=", "/shop/p/", "shelf", "product"),
    "wiki": ("/wiki/", "/wiki/category/", "/wiki/a/", "category", "article"),
}


def links(base: str, path: str, prefix: str) -> dict[str, str]:
    """Returns the links of a page that begin with the prefix: address → name."""
    with urllib.request.urlopen(base + path, timeout=30) as response:
        source = response.read().decode()
    found = {}
    for address, inner in LINK.findall(source):
        name = html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<svg.*?</svg>", "", inner)))
        if html.unescape(address).startswith(prefix) and name.strip():
            found.setdefault(html.unescape(address), " ".join(name.split()))
    return found


def make_tasks(base: str) -> list[dict]:
    port = urlsplit(base).port
    tasks = []
    for site, (front, of_list, of_page, list_word, page_word) in SITES.items():
        origin = f"http://{site}.localhost:{port}"
        shown_first = links(base, front, of_page)
        for list_path, list_name in links(base, front, of_list).items():
            for path, name in links(base, list_path, of_page).items():
                check = {"url": f"*{path}"}
                about = {"domain": site, "subdomain": list_name, "judge": check}
                goal = f"Open the page of the {page_word} “{name}”."
                tasks.append({"task_name": goal, "website": origin + list_path, "difficulty": 1, **about})
                if path not in shown_first:
                    goal = f"Go to the {list_word} “{list_name}” and open the page of the {page_word} “{name}”."
                    tasks.append({"task_name": goal, "website": origin + front, "difficulty": 4, **about})
    return tasks


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes train.jsonl and test.jsonl for the practice sites.")
    parser.add_argument("--site", required=True, help="address of `webgym practice`")
    parser.add_argument("--out", type=Path, required=True, help="folder for the task files")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    splits = {"train": [], "test": []}
    pages = {}
    for number, task in enumerate(make_tasks(options.site.rstrip("/"))):
        # Both tasks about a page are in the same split.
        index = pages.setdefault(task["judge"]["url"], len(pages))
        task = {"task_id": f"learn-{number}", **task}
        splits["test" if index % 5 == 4 else "train"].append(task)
    for split, tasks in splits.items():
        (options.out / f"{split}.jsonl").write_text("".join(json.dumps(task, ensure_ascii=False) + "\n" for task in tasks))
    print(json.dumps({split: len(tasks) for split, tasks in splits.items()}))


if __name__ == "__main__":
    main()
