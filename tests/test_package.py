import ast
from pathlib import Path

import pytest

import surefill


def test_every_public_name_resolves_and_is_declared_for_type_checkers():
    for name in surefill.__all__:
        assert getattr(surefill, name) is not None
    assert set(surefill.__all__) < set(dir(surefill))
    tree = ast.parse(Path(surefill.__file__).read_text())
    declared = {alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert declared - {None} == set(surefill.__all__)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = surefill.nothing
