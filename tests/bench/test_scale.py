"""The study of large clusters, at quick size."""

from __future__ import annotations

from pathlib import Path

from trimtab.bench.studies import scale


def test_every_variant_is_planned_within_its_budget_and_drawn(tmp_path: Path) -> None:
    result = scale.run(lambda text: None, quick=True)
    (slots, _), rows = scale.QUICK[0], {(row.variant, row.planner): row for row in result.rows}
    assert {"loads", "traffic", "traffic and budget"} == {variant for variant, _ in rows}
    assert rows["traffic", "auto"].collocation > 0.9
    assert rows["traffic", "auto"].load_distance <= rows["loads", "auto"].load_distance + 0.1
    limited = [row.moves for (variant, _), row in rows.items() if variant == "traffic and budget"]
    assert limited and 0 < max(limited) <= scale.BUDGET * slots
    for name in ("one.svg", "other.svg"):
        scale.draw(result, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()
