"""Generates the sync client from the async one, so that the two cannot differ: `python tools/make_sync.py [--check]`."""

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "webgym_rs"
SOURCE, TARGET = PACKAGE / "_client_async.py", PACKAGE / "_client_sync.py"
HEADER = "# Generated from _client_async.py by tools/make_sync.py. Do not edit.\n"
REPLACEMENTS = [
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bawait ", ""),
    (r"`async with`", "`with`"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\baclose\b", "close"),
    (r"\b_io_async\b", "_io_sync"),
    (r"HttpClient, Pending, ", "HttpClient, "),
    (r"\bPending\[(\w+)\]", r"\1"),
    (r"\bPending\((.*)\)$", r"\1"),
    (r"for asyncio and trio", "for blocking code"),
]


def generate() -> str:
    text = SOURCE.read_text()
    for pattern, replacement in REPLACEMENTS:
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        if count == 0:
            sys.exit(f"make_sync: {pattern!r} occurs nowhere in {SOURCE.name}; remove it from REPLACEMENTS")
    return HEADER + text


def main() -> None:
    generated = generate()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(generated)
    elif TARGET.read_text() != generated:
        sys.exit(f"make_sync: {TARGET.name} is not up to date; run: python tools/make_sync.py")


if __name__ == "__main__":
    main()
