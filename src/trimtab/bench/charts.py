"""Charts as files, the same bytes for the same figures. Needs matplotlib, which is in the extra `plot`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trimtab.errors import TrimtabError

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "trimtab",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}


@contextmanager
def chart(path: Path, rows: int = 1, columns: int = 1, width: float = 5, height: float = 3.5) -> Iterator[Any]:
    """A figure that is saved to `path` at the end, in the format of its ending.

    Yields its axes: the one there is, or a list of them row by row.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TrimtabError("Charts need matplotlib: pip install 'trimtab[plot]'.") from error
    with rc_context(STYLE):
        figure = Figure(figsize=(width * columns, height * rows))
        axes = list(figure.subplots(rows, columns, squeeze=False).flat)
        yield axes if len(axes) > 1 else axes[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
