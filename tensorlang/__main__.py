"""`python -m tensorlang` is the command `tensorlang`."""

import sys

from tensorlang.cli import main

if __name__ == "__main__":
    sys.exit(main())
