"""How far a job is and how long it still takes, for people who wait: the parts of a job, an estimate, and a bar."""

from surefill.waiting.bar import ProgressBar, Watcher, check_progress, watched, watching
from surefill.waiting.estimate import Part, Waiting, WaitingState, part, plan

__all__ = [
    "Part",
    "ProgressBar",
    "Waiting",
    "WaitingState",
    "Watcher",
    "check_progress",
    "part",
    "plan",
    "watched",
    "watching",
]
