"""Completions by shrinking singular values: soft-impute, iterative SVD, the trace-norm ball."""
