"""A picture of a run: every scheme of the matrix as one cell, from the file that `quantspec run --json FILE` writes.

    quantspec run --device pocl --json run.json && python benchmarks/matrix_picture.py run.json matrix.svg

Rows are values, groups of columns are stores, the 35 columns of a group are the scale choices (tensor only, block only,
then both, by tensor scale type). Green: every case as expected. Red: some case not. Grey: not run.
"""

import json
import sys
from html import escape
from pathlib import Path

from quantspec import SCALES
from quantspec_conformance.compare import EXPECTED
from quantspec_conformance.matrix import STORES, groups

CELL, GAP, LEFT, TOP = 4, 10, 76, 46
COLOURS = {"good": "#2da44e", "bad": "#cf222e", "none": "#8c959f"}


def colour(outcomes: dict[str, int] | None) -> str:
    """The colour of a scheme's cell."""
    if not outcomes:
        return COLOURS["none"]
    return COLOURS["good" if all(outcome in EXPECTED for outcome in outcomes) else "bad"]


def main(result: Path, picture: Path) -> None:
    device = json.loads(result.read_text("utf-8"))["devices"][0]
    choices: list[tuple[str | None, str | None]] = [(t, None) for t in SCALES]
    choices += [(None, b) for b in SCALES]
    choices += [(t, b) for t in SCALES for b in SCALES]
    stores = [store for members in STORES.values() for store in members]
    stores.sort(key=lambda store: (store != "native", store))
    rows = list(dict.fromkeys(group.row for group in groups()))
    wide = len(choices) * CELL + GAP
    cells: dict[str, list[str]] = {}
    for group in groups():
        y = TOP + rows.index(group.row) * (2 * CELL + 4)
        column = choices.index((group.tensor, group.block))
        for place, store in enumerate(stores):
            fill = colour(device["schemes"].get(group.scheme(store).text))
            x = LEFT + place * wide + column * CELL
            cells.setdefault(fill, []).append(f"M{x} {y}h{CELL - 1}v{2 * CELL}h-{CELL - 1}z")
    parts = [f'<path fill="{fill}" d="{"".join(paths)}"/>' for fill, paths in cells.items()]
    label = '<text x="{}" y="{}" font-size="10" fill="#57606a">{}</text>'
    parts += [label.format(LEFT + place * wide, TOP - 6, escape(store)) for place, store in enumerate(stores)]
    parts += [label.format(4, TOP + at * (2 * CELL + 4) + 8, escape(row)) for at, row in enumerate(rows)]
    name = device["identity"].get("name", device["label"])
    title = f"{len(device['schemes'])} schemes on {name}: a cell a scheme, 35 scale choices a store"
    parts.append(label.format(4, 16, escape(title)))
    width, height = LEFT + len(stores) * wide, TOP + len(rows) * (2 * CELL + 4) + 4
    picture.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="monospace">'
        f"{''.join(parts)}</svg>\n",
        "utf-8",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
