"""Operations that take a part of one axis, on a part of the tensor: their words, counted from its start. Rules OPS-3 to OPS-5."""

from collections.abc import Mapping

Box = tuple[slice, ...]

__all__ = ["Box", "along"]


def along(op: str, words: Mapping[str, str], box: Box) -> dict[str, str] | None:
    """The words for a box; None where nothing of what the operation takes lies in it."""
    name = {"slice": "range", "take": "indices", "select": "index"}.get(op)
    if name is None:
        return dict(words)
    try:
        axis, numbers = int(words["axis"]), [int(text) for text in words[name].split(",")]
        part = box[axis]
    except (KeyError, ValueError, IndexError):
        return None
    if op == "slice" and len(numbers) == 2:
        low, high = max(numbers[0], part.start), min(numbers[1], part.stop)
        kept = [low, high] if low < high else []
    else:
        kept = [number for number in numbers if part.start <= number < part.stop]
    if not kept:
        return None
    return {**words, name: ",".join(str(number - part.start) for number in kept)}
