"""Every strategy of placement on every benchmark network, in one table: ``python benchmarks/scripts/mapping.py [snnc bench options]``.

The same as ``snnc bench --suite mapping``; see docs/howto/estimate-and-explore.md.
"""

from __future__ import annotations

import sys

from snnc.cli import main

if __name__ == "__main__":
    main(["bench", "--suite", "mapping", *sys.argv[1:]])
