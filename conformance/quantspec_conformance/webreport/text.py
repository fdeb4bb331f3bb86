"""Text from results made harmless: what an implementation said may hold markup, links that run, bidi and control characters."""

import hashlib
import re
import unicodedata
from urllib.parse import urlsplit

from markupsafe import Markup

__all__ = ["clean", "markup_of", "share", "slug", "web_address"]

LONGEST = 4000
SLUG_LENGTH = 100
#: Categories of characters that are not drawn as themselves: control, format (bidi), surrogates, private use, line separators.
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_KEPT = ("\n", "\t")
#: The characters of RFC 3986, and a host that is spelled without escapes.
_ADDRESS = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
_HOST = re.compile(r"[A-Za-z0-9.-]+|[0-9a-fA-F:.]+")


def clean(text: str, longest: int = LONGEST) -> str:
    """The text with every character that is not seen, or that turns others round, written as its number; and not too long."""
    cut = text if len(text) <= longest else f"{text[:longest]} [{len(text) - longest} more characters in report.json]"
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(_shown(char) for char in cut)


def _shown(char: str) -> str:
    if char in _KEPT or unicodedata.category(char) not in _HIDDEN:
        return char
    return f"\\x{ord(char):02X}" if ord(char) < 0x100 else f"\\u{ord(char):04X}"


def web_address(text: str) -> str:
    """The text if it is an http or https URL that can be a link, else nothing."""
    if len(text) > LONGEST or not _ADDRESS.fullmatch(text):
        return ""
    try:
        parts = urlsplit(text)
        plain = "@" not in parts.netloc and _HOST.fullmatch(parts.hostname or "")
    except ValueError:
        return ""
    return text if plain and parts.scheme in ("http", "https") else ""


def markup_of(text: str) -> Markup:
    """A text whose http and https words are links that give nothing away; all else is escaped."""
    found: list[Markup] = []
    for word in re.split(r"(\s+)", clean(text)):
        address = web_address(word.rstrip(".,;)"))
        if address:
            link = Markup('<a href="{0}" rel="noopener noreferrer nofollow">{0}</a>').format(address)
            found.append(link + word[len(address) :])
        else:
            found.append(Markup("{}").format(word))
    return Markup("").join(found)


def slug(text: str) -> str:
    """A file name of a text: lower-case letters, digits, dots, dashes; a digest where that would lose something."""
    plain = re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-.")[:SLUG_LENGTH]
    if plain and plain == text:
        return plain
    return f"{plain or 'x'}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def share(part: int, whole: int) -> str:
    """A share in per cent, never rounded up to all or down to nothing."""
    if not whole:
        return "-"
    tenths = 1000 * part // whole
    if part and not tenths:
        return "< 0.1 %"
    return f"{tenths // 10} %" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10} %"
