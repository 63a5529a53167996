"""Compares our index with the one that cdxj-indexer makes of the same WARC files."""

import io
import json
import sys
from pathlib import Path

from cdxj_indexer.main import CDXJIndexer

FIELDS = ["url", "mime", "status", "digest", "length", "offset", "filename"]


def entries(text: str) -> dict:
    found = {}
    for line in text.splitlines():
        key, timestamp, fields = line.split(" ", 2)
        fields = json.loads(fields)
        # A record without HTTP headers that count has no mime or status.
        found[key, timestamp, fields["offset"]] = {name: fields.get(name) or "" for name in FIELDS}
    return found


def main(directory: Path) -> None:
    output = io.StringIO()
    output.close = lambda: None
    files = [str(path) for path in sorted((directory / "archive").glob("*.warc.gz"))]
    CDXJIndexer(output, files, post_append=True, sort=True, records="response,revisit").process_all()
    theirs = entries(output.getvalue())
    ours = entries((directory / "indexes" / "index.cdxj").read_text())
    if ours != theirs:
        for key in sorted(ours.keys() | theirs.keys()):
            if ours.get(key) != theirs.get(key):
                print(f"{key}:\n  ours   {ours.get(key)}\n  theirs {theirs.get(key)}", file=sys.stderr)
        sys.exit("the index differs from the one of cdxj-indexer")
    print(f"cdxj-indexer: the same {len(ours)} lines")


main(Path(sys.argv[1]))
