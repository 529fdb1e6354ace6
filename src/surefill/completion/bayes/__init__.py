"""The Bayesian factor model: variational posteriors of factors, biases and noise."""
