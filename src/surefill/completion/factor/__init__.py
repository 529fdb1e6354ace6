"""Factor models fitted by alternating least squares."""
