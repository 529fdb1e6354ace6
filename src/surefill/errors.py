"""What can go wrong with what a user gives, said in one sentence each."""

from __future__ import annotations


class InputError(ValueError):
    """Something given to surefill cannot be used; the message is one sentence that says what would do."""


class MissingExtraError(ImportError):
    """A feature needs packages that are not installed; the message says which extra brings them."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs packages that are not installed: pip install 'surefill[{extra}]'.")


def invalid_parameter(owner: str, name: str, expected: str, got: object) -> InputError:
    """One sentence shape for every parameter error: which parameter, what is valid, what was given."""
    return InputError(f"The {name!r} parameter of {owner} must be {expected}. Got {got!r} instead.")
