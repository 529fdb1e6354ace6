"""``python -m surefill``."""

from surefill.cli import main

main()
