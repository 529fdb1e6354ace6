"""What the service must not forget, in SQLite or PostgreSQL: one module for each noun, functions of a connection."""

from surefill.service.store.engine import open_engine, writing

__all__ = ["open_engine", "writing"]
