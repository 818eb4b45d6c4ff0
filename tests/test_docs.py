"""Every Python block of README.md and docs/ runs as it stands.

The blocks of one file share their names, in order, like cells of a notebook, and run in an empty folder. Where one of
them speaks of `spark`, the tests' Spark session is there under that name.
"""

from __future__ import annotations

import textwrap
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent


class Block(NamedTuple):
    line: int
    code: str


def python_blocks(text: str) -> list[Block]:
    """Code of the blocks fenced as python, each with the number of its first line counted from 0."""
    return [
        Block(token.map[0] + 1, textwrap.dedent(token.content))
        for token in MarkdownIt().parse(text)
        if token.type == "fence" and token.map and token.info.split()[:1] == ["python"]
    ]


def pages() -> list[Path]:
    """The pages that have Python in them."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [file for file in files if file.exists() and python_blocks(file.read_text())]


def run(block: Block, page: Path, names: dict[str, Any]) -> None:
    """Execute a block so that a failure points at the line of its page."""
    exec(compile("\n" * block.line + block.code, str(page), "exec"), names)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(page.read_text())
    names: dict[str, Any] = {"__name__": "__docs__"}
    spark = None
    if any("spark" in block.code for block in blocks):
        names["spark"] = spark = request.getfixturevalue("spark")
    try:
        for block in blocks:
            run(block, page, names)
    finally:
        for query in spark.streams.active if spark else []:
            query.stop()


def test_only_python_fences_are_taken() -> None:
    text = "```python\nx = 1\n```\n\n```bash\nls\n```\n\n- item\n\n  ```python\n  y = x\n  ```\n\n```pythonic\n```\n"
    assert python_blocks(text) == [Block(1, "x = 1\n"), Block(11, "y = x\n")]


def test_a_failure_names_the_line_of_the_page() -> None:
    block = python_blocks("# A\n\n```python\nx = 1\nx / 0\n```\n")[0]
    with pytest.raises(ZeroDivisionError) as caught:
        run(block, Path("page.md"), {})
    last = traceback.extract_tb(caught.tb)[-1]
    assert (last.filename, last.lineno) == ("page.md", 5)
