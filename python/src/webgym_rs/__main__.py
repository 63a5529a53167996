"""`python -m webgym_rs …` runs the `webgym` program with the same arguments."""

import os
import sys

from ._binary import find_binary
from .errors import FarmStartError


def main() -> None:
    try:
        binary = str(find_binary())
    except FarmStartError as error:
        sys.exit(f"webgym_rs: {error}")
    os.execv(binary, [binary, *sys.argv[1:]])


if __name__ == "__main__":
    main()
