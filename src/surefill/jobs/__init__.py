"""Jobs from file to file, which the command line and a service both call: they print nothing, and raise InputError.

A job checks where it is to write before it starts to work, and leaves either all of its files or none.
"""

from surefill.jobs.complete import CompletedFile, complete_file
from surefill.jobs.completed_table import WrittenTable, write_completed
from surefill.jobs.evaluate import ORDER_NAMES, evaluate_file
from surefill.jobs.forecast import Forecast
from surefill.jobs.predict import ScoredPairs, predict_file
from surefill.jobs.recommend import RecommendedColumns, recommend_columns
from surefill.jobs.suggest import SuggestedCells, suggest_cells
from surefill.jobs.table_size import TableSize
from surefill.jobs.update import UpdatedModel, update_model
from surefill.jobs.write_options import WriteOptions

__all__ = [
    "ORDER_NAMES",
    "CompletedFile",
    "Forecast",
    "RecommendedColumns",
    "ScoredPairs",
    "SuggestedCells",
    "TableSize",
    "UpdatedModel",
    "WriteOptions",
    "WrittenTable",
    "complete_file",
    "evaluate_file",
    "predict_file",
    "recommend_columns",
    "suggest_cells",
    "update_model",
    "write_completed",
]
