"""Images of handwritten digits of which each shows only one half, and that with holes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.data import Observations
from surefill.errors import invalid_parameter, is_number, is_seed

SIDE = 8
"""Pixels along each side of an image."""

INK_LEVELS = 16.0
"""Ink of a black pixel."""

MOST_IMAGES = 1797
"""Images that come with scikit-learn."""


@dataclass(frozen=True, eq=False)
class HiddenDigits:
    """Images as rows and their pixels, line by line, as columns; ink from 0 to 16.

    Attributes
    ----------
    observations : the pixels that were seen.
    truth : all pixels, images x 64.
    digits : which digit each image is.
    shown : images x 64, True in the half of the image that could be seen; no image shows both halves.

    Examples
    --------
    >>> from surefill.datasets import make_hidden_digits
    >>> hidden = make_hidden_digits(50, random_state=0)
    >>> hidden.truth.shape, int(hidden.shown[0].sum())
    ((50, 64), 32)
    """

    observations: Observations
    truth: NDArray[np.float64]
    digits: NDArray[np.int64]
    shown: NDArray[np.bool_]

    @property
    def upper(self) -> NDArray[np.bool_]:
        """Whether each image shows its upper half; the others show their lower one."""
        return np.asarray(self.shown[:, 0])

    @property
    def seen(self) -> NDArray[np.bool_]:
        """images x 64: which pixels were seen."""
        return np.asarray(~np.isnan(self.observations.dense()))


def make_hidden_digits(n_images: int = 400, share: float = 0.7, random_state: int = 0) -> HiddenDigits:
    """The digits that come with scikit-learn: half of the images show only pixels of their upper half, the others of
    their lower one, and of these each pixel with probability ``share``.

    A hole within the half that is shown can be learnt from other images that show the same half. What the other half
    looks like cannot: no image has pixels of both, so nothing observed ties them together.

    >>> hidden = make_hidden_digits(100)
    >>> hidden.observations.shape, bool((hidden.seen & ~hidden.shown).any())
    ((100, 64), False)
    """
    from sklearn.datasets import load_digits

    if not (is_seed(n_images) and 2 <= n_images <= MOST_IMAGES):
        expected = f"a whole number from 2 to {MOST_IMAGES}"
        raise invalid_parameter("make_hidden_digits", "n_images", expected, n_images)
    if not (is_number(share) and 0 < share <= 1):
        raise invalid_parameter("make_hidden_digits", "share", "a number above 0 and at most 1", share)
    rng = np.random.default_rng(random_state)
    images, digits = load_digits(return_X_y=True)
    chosen = rng.permutation(len(images))[:n_images]
    truth = np.asarray(images[chosen], dtype=np.float64)
    upper = rng.permutation(np.arange(n_images) % 2 == 0)
    shown = upper[:, None] == (np.arange(SIDE**2) < SIDE**2 // 2)
    rows, cols = np.nonzero(shown & (rng.random(truth.shape) < share))
    observations = Observations(rows, cols, truth[rows, cols], truth.shape, (0.0, INK_LEVELS))
    return HiddenDigits(observations, truth, digits[chosen].astype(np.int64), shown)
