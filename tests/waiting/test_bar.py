import io
import subprocess
import sys
import time
import types

import pytest
from rich.console import Console
from sklearn.base import clone

from surefill import PartialCompleter, load
from surefill.datasets import make_low_rank
from surefill.errors import InputError
from surefill.estimators.evaluation import evaluate_folds
from surefill.loop import Progress
from surefill.waiting import Part, ProgressBar, Waiting, WaitingState, bar, watching


class Recorder:
    def __init__(self):
        self.states, self.closed = [], 0

    def show(self, state):
        self.states.append(state)

    def close(self):
        self.closed += 1


@pytest.fixture(scope="module")
def seen():
    return make_low_rank((40, 30), rank=2, n_draws=900, noise=0.2, random_state=0).observations


@pytest.fixture
def shown(monkeypatch):
    """What bars show, looked at often."""
    recorder = Recorder()
    monkeypatch.setattr(bar, "EVERY", 0.005)
    monkeypatch.setattr(bar, "_display", lambda: recorder)
    return recorder


def test_true_gives_one_bar_over_the_whole_fit(seen, shown):
    completer = PartialCompleter(0.2, progress=True).fit(seen)
    doing = list(dict.fromkeys(state.doing for state in shown.states))
    order = ["setting aside", "trial fit", "trial support", "fit", "support", "cross-fitting", "risk", "promise"]
    positions = [order.index(name) for name in doing if name in order]
    assert positions == sorted(positions)
    assert {"trial support", "cross-fitting"} <= set(doing)
    shares = [state.share for state in shown.states]
    assert shares == sorted(shares)
    assert shown.closed == 1
    assert completer.progress is True
    assert clone(completer).progress is True


def test_progress_is_not_saved(seen, tmp_path, shown):
    PartialCompleter(0.2, confidence="posterior", progress=True).fit(seen).save(tmp_path / "model.surefill")
    assert load(tmp_path / "model.surefill").progress is None


def test_folds_of_an_evaluation_share_one_bar(seen, shown):
    evaluate_folds(seen, [k % 2 for k in range(len(seen))], tolerance=0.2, confidence="posterior", progress=True)
    doing = {state.doing for state in shown.states}
    assert {name.split(",")[0] for name in doing} >= {"fold 0", "fold 1"}
    assert shown.closed == 1


def test_an_interrupted_fit_takes_its_bar_away(seen, shown, monkeypatch):
    def interrupt(self, step):
        raise KeyboardInterrupt

    monkeypatch.setattr(Waiting, "__call__", interrupt)
    with pytest.raises(KeyboardInterrupt):
        PartialCompleter(0.2, confidence="posterior", progress=True).fit(seen)
    assert shown.closed == 1


def test_a_callable_stays_a_callable_and_other_things_are_refused(seen):
    steps = []
    PartialCompleter(0.2, confidence="posterior", progress=steps.append).fit(seen)
    assert all(isinstance(step, Progress) for step in steps)
    assert len(steps) > 10
    with watching(False) as callback:
        assert callback is None
    with pytest.raises(InputError, match="'progress' parameter of PartialCompleter must be True for a bar"):
        PartialCompleter(progress="yes").fit(seen)


def test_a_terminal_shows_what_is_done_and_left_and_is_left_clean():
    screen = io.StringIO()
    display = bar.TerminalDisplay(Console(file=screen, force_terminal=True, width=80, legacy_windows=False))
    display.show(WaitingState(0.5, 118.0, "cross-fitting"))
    text = screen.getvalue()
    assert "cross-fitting" in text
    assert "about 2 min left" in text
    display.close()
    assert screen.getvalue().endswith(("\x1b[2K", "\x1b[?25h\r\x1b[1A\x1b[2K"))


def test_a_bar_is_away_while_something_is_asked(shown):
    with ProgressBar() as watched:
        watched.plan([Part("fit", 1.0)])
        with watched.paused():
            assert shown.closed == 1
            time.sleep(0.02)
            before = len(shown.states)
            time.sleep(0.05)
            assert len(shown.states) == before
        time.sleep(0.05)
    assert len(shown.states) > before
    assert shown.closed == 2


def test_a_notebook_gets_a_bar_that_needs_no_widgets(monkeypatch):
    drawn = []
    handle = types.SimpleNamespace(update=lambda what: drawn.append(what._repr_html_()))
    fake = types.ModuleType("IPython.display")
    fake.display = lambda what, display_id: handle
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    display = bar.NotebookDisplay()
    display.show(WaitingState(0.25, 44.0, "fit"))
    display.close()
    assert drawn == ['<progress value="0.250" max="1"></progress> fit, about 40 s left', ""]


def test_nothing_is_printed_where_nobody_watches_and_rich_waits_to_be_asked_for():
    script = (
        "import sys, surefill, surefill.waiting\n"
        "assert 'rich' not in sys.modules\n"
        "seen = surefill.datasets.make_low_rank((30, 20), rank=1, n_draws=300, random_state=0).observations\n"
        "surefill.PartialCompleter(0.5, confidence='posterior', progress=True).fit(seen)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
