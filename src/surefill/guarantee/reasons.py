"""Why a cell is not kept, in the words that tables, recommendations and the report share."""

from __future__ import annotations

import enum


class Reason(enum.StrEnum):
    """Why a cell is not kept; empty where it is.

    Examples
    --------
    >>> Reason.SUPPORT
    <Reason.SUPPORT: 'too little support'>
    >>> str(Reason.NEW_ROW)
    'row never seen'
    """

    KEPT = ""
    SUPPORT = "too little support"
    RARE = "cells like it are too rarely observed"
    RISK = "expected error too large"
    NOTHING = "nothing can be promised at this tolerance"
    NEW_ROW = "row never seen"
    NEW_COLUMN = "column never seen"
    NEW_BOTH = "row and column never seen"
    OBSERVED = "observed"
