"""Says that four requests may wait, and answers a short one before the long one that came first."""

from .talk import IDENTITY, say, serve

_KEPT: list[str] = []


def turned(line: str) -> None:
    """Keeps an answer of 4096 integers back until the next one is there."""
    if "=u32:4096:" in line and not _KEPT:
        _KEPT.append(line)
        return
    say(line)
    if len(_KEPT) == 1:
        say(_KEPT[0])
        _KEPT.append("")


if __name__ == "__main__":
    serve(identity=f"{IDENTITY} max_in_flight=4", tell=turned)
