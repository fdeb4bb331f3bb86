"""Every link of the built site leads to a file, and to an anchor where it names one; nothing is fetched from elsewhere."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["broken_links", "links_of"]

#: Elements that a browser loads by itself, by the attribute that names what.
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
#: Values of rel that name something without loading it.
NAMES = ("canonical", "author", "license", "help")


class _Page(HTMLParser):
    """Anchors of a page, its links, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        if "id" in found:
            self.anchors.add(found["id"])
        if tag == "a" and "name" in found:
            self.anchors.add(found["name"])
        if tag in ("a", "area") and "href" in found:
            self.links.append(found["href"])
        loaded = found.get(LOADS.get(tag, ""))
        if loaded and found.get("rel") not in NAMES:
            self.loads.append(loaded)


def links_of(path: Path) -> _Page:
    """The page's anchors and links."""
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page


def broken_links(root: Path) -> list[str]:
    """Links and loads of all pages that lead nowhere, and loads from elsewhere."""
    pages = {path.resolve(): links_of(path) for path in sorted(root.rglob("*.html"))}
    if not pages:
        return [f"{root}: no pages"]
    found: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(root.resolve())
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme in ("data", "mailto"):
                continue
            if parts.scheme or parts.netloc:
                if link in page.loads:
                    found.append(f"{name}: loads {link} from elsewhere")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.is_file():
                found.append(f"{name}: {link} leads to no file")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                found.append(f"{name}: {link} leads to no anchor")
    return found
