"""Jobs from file to file, which the command line and a service both call: they print nothing, and raise InputError.

A job checks where it is to write before it starts to work, and leaves either all of its files or none.
"""

from surefill.jobs.complete import CompletedFile, complete_file
from surefill.jobs.evaluate import ORDER_NAMES, evaluate_file
from surefill.jobs.suggest import SuggestedCells, suggest_cells

__all__ = ["ORDER_NAMES", "CompletedFile", "SuggestedCells", "complete_file", "evaluate_file", "suggest_cells"]
