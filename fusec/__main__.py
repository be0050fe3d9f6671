"""``python -m fusec`` is the command ``fusec``."""

import sys

from fusec.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
