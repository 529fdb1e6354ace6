"""MP 2, the linear coverage program: solvers, certificates and results."""
