"""`python -m quantspec_conformance.site OUT`: build the site into OUT/html, check every link, say where to open it."""

import sys
from pathlib import Path

from ..errors import HarnessError
from .build import build
from .check import broken_links


def main(out: Path) -> int:
    """Build and check; the exit code."""
    try:
        pages, seconds = build(out)
    except HarnessError as error:
        print(f"site: {error}", file=sys.stderr)
        return error.exit_code
    broken = broken_links(out / "html")
    for line in broken:
        print(line, file=sys.stderr)
    print(f"site: {pages} pages in {seconds:.1f} s, {len(broken)} broken links; open {out / 'html' / 'index.html'}")
    return 1 if broken else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python -m quantspec_conformance.site OUT", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1])))
