"""What becomes of the promise where a value makes itself more likely to be seen, by a factor of up to G.

The tables and scores of ``filled.py``, but the chances of the lower half of all values, in the order of what is leant
to, are divided by G: values that are liked, extreme ones, or, an adversary, those that a model of low rank gets right.
Each setting is run without a word about it, and with ``sensitivity=G``. Asked for, the promise must hold; not asked
for, it may break, but not where the completer says that it survives such a factor ("broken though said to survive").

    python benchmarks/filled_leaning.py --draws 50 --jobs 2 --log build/filled_leaning.jsonl
"""

from __future__ import annotations

import sys

import numpy as np

from filled import MOST_BROKEN, TOLERANCES, Setting, conclude, parsed, print_known, read_log, study
from filled_tables import LEANINGS

FACTORS = (1.2, 1.5, 2.0, 3.0)
TABLES = (("jester", 0.25, 0.4), ("digits", 0.25, 0.4), ("long_tailed", 0.08, 0.6))
LEANING = [(*table, factor, direction) for table in TABLES for direction in LEANINGS for factor in FACTORS]
SETTINGS = [Setting(*each, sensitivity) for each in LEANING for sensitivity in (1.0, each[3])]


def overstated(settings, lines):
    """(draws that are said to survive their factor, how many of them are broken), of all without a sensitivity."""
    factors = {setting.name: setting.factor for setting in settings if setting.sensitivity == 1}
    found = [
        at["error"] > 1
        for line in lines
        if line["setting"] in factors
        for at in (line["at"][str(tolerance)] for tolerance in TOLERANCES)
        if at["promised"] and at["survives"] >= factors[line["setting"]]
    ]
    return len(found), int(np.sum(found))


def main() -> int:
    options, chosen = parsed(__doc__, 50, SETTINGS)
    summaries = study(chosen, options.draws, options.jobs, options.log)
    print_known(summaries)
    said, broken = overstated(chosen, read_log(options.log))
    print(f"\nSaid to survive the factor there was: {said} promises; broken though said to survive: {broken}.")
    names = {setting.name for setting in chosen if setting.sensitivity > 1}
    failed = [
        f"{name} at {tolerance:g}: broken in {s['broken']:.1%} of the draws that promise."
        for (name, tolerance), s in summaries.items()
        if name in names and s["broken"] > MOST_BROKEN
    ]
    if broken > MOST_BROKEN * max(said, 1):
        failed.append(f"{broken} of {said} promises were broken by a factor they are said to survive.")
    return conclude(failed)


if __name__ == "__main__":
    sys.exit(main())
