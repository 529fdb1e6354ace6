"""The service over HTTP: one router for each noun."""
