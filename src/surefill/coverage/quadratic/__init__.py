"""MP 1, the quadratic coverage program, bracketed from both sides."""
