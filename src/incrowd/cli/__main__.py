"""`python -m incrowd.cli`: the same as the command `incrowd`."""

import sys

from incrowd.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
