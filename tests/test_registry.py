import pytest

from surefill.registry import COMPLETIONS, CONFIDENCES, STORABLE, storable


@pytest.mark.parametrize("entry", [*COMPLETIONS.values(), *CONFIDENCES.values()], ids=lambda entry: entry.cls)
def test_every_named_algorithm_can_be_made_and_stored(entry):
    algorithm = entry.make(random_state=3)
    assert algorithm.random_state == 3
    assert STORABLE[entry.cls] is type(algorithm)
    assert entry.summary


def test_two_kinds_of_one_name_are_refused_and_a_reload_is_not(monkeypatch):
    monkeypatch.setattr("surefill.registry.STORABLE", {})
    first, again, other = (type("Thing", (), {"__module__": module}) for module in ("mine", "mine", "theirs"))
    assert storable(first) is first
    assert storable(again) is again
    with pytest.raises(TypeError, match="two kinds of objects are called Thing"):
        storable(other)
