"""Compiled inner loops. Kernels take arrays only, live at module level, and each has a readable twin."""
