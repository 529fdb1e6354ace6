"""Completion over the max-norm ball (the paper's full completion)."""
