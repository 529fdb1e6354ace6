"""What becomes of the promise where a value makes itself more likely to be seen, by a factor of up to G.

The tables and scores of ``filled.py``, but the chances of the lower half of all values, in the order of what is leant
to, are divided by G: values that are liked, extreme ones, or, an adversary, those that a model of low rank gets right.

    python benchmarks/filled_leaning.py --draws 50 --jobs 2 --log build/filled_leaning.jsonl
"""

from __future__ import annotations

import sys

from filled import Setting, parsed, print_known, study
from filled_tables import LEANINGS

FACTORS = (1.2, 1.5, 2.0, 3.0)
TABLES = (("jester", 0.25, 0.4), ("digits", 0.25, 0.4), ("long_tailed", 0.08, 0.6))
SETTINGS = [
    *(Setting(*table) for table in TABLES),
    *(Setting(*table, factor, direction) for table in TABLES for direction in LEANINGS for factor in FACTORS),
]


def main() -> int:
    options, chosen = parsed(__doc__, 50, SETTINGS)
    print_known(study(chosen, options.draws, options.jobs, options.log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
