"""`python -m fgp_vnn` is the command line."""

import sys

from fgp_vnn.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
