"""The ledger: cases left out, cases where upstream's number differs from the canonical one, and choices among answers.

Every entry is checked: ids exist, an id is tested or left out and never both, a choice is one that the case offers.
"""

#: Upstream's cases without a test, and why: none.
BURN_LEFT_OUT: dict[str, str] = {}

ANY_PAIR = "any pair of scale types at two levels is defined (semantics, section 1); upstream declines this one"
WHOLE_LINES = (
    "each line is padded on its own (PAK-3), so no length is refused; upstream panics unless the words divide it"
)

#: Upstream's cases whose test asserts the canonical answer, which is another than upstream's.
BURN_DIFFERS = {
    "bytes-err-narrow-global": ANY_PAIR,
    "quantizable-3": "ue8m0 has a round-up rule (SCL-8); the checkout declined it, later revisions accept it",
    "quantizable-4": "ue8m0 has a round-up rule (SCL-8); the checkout declined it, later revisions accept it",
    "quantizable-5": ANY_PAIR,
    "quantizable-6": ANY_PAIR,
    "cube-err-last-dim": WHOLE_LINES,
    "cube-err-block-small": "words run along a line whatever its blocks (PAK-3); upstream wants blocks of whole words",
    "flex-zero": "the codes are upstream's; the stored scale is the given 0 (SCL-20), where flex repairs it to 2^-126",
    "flex-block-transpose": "the codes move (OPS-1); flex quantizes again, so only its bound on the values is shared",
    "flex-block-select": "the codes move (OPS-1); flex quantizes again, so only its bound on the values is shared",
    "flex-block-flip": "the codes move (OPS-1); flex quantizes again, so only its bound on the values is shared",
}

#: Reported faults without a test, and why: none.
BUG_LEFT_OUT: dict[str, str] = {}

FLOOR = "the floor rule of OCP is not the canonical one: scales are rounded up (SCL-8), the file's rceil"

#: Reported faults whose file gives a number under a rule that is not ours too (or alone); the test asserts ours.
BUG_DIFFERS = {
    "BC-031": FLOOR + "; the huge block's first element reads back as Inf, as the note says (QNT-9)",
    "BC-057": FLOOR,
    "BC-059": FLOOR,
    "BC-061": FLOOR + "; derived by hand from amax / 6",
    "BC-063": FLOOR + "; derived by hand: one exponent up, the clipped element no longer clips",
    "BC-069": "a scale is rounded up (SCL-8), not to nearest",
    "BC-133": "a scale is rounded up (SCL-8), not to nearest",
    "BC-153": "e3m2 in packed_u32 (five codes a word, PAK-1) and an f16 tensor scale are defined (semantics, section 1)",
}

#: Reported faults asserted on less than the file describes, and why.
BUG_REDUCED = {
    "BC-137": "2^31 + 16 elements take more memory than a test may: counts are asserted at that size and at the limit of "
    "2^63 - 1 (LAY-5), bits on a tensor with the same last block and word",
    "BC-143": "the launch size is the kernels' own, not an argument: sizes around 64 and 256 stand in for a local size of 256",
}

#: The answer the spec takes where a case offers several that are each right: its `when`, and the rule.
BUG_CHOSEN = {
    "BC-011": ("ties to even", "VAL-7"),
    "BC-015": ("documented cast to f32 first, or f64 refused", "QNT-1"),
    "BC-019": ("overflow saturates", "VAL-8"),
    "BC-029": ("canonical recipe (finite elements only)", "SCL-5"),
    "BC-031": ("saturating, documented", "VAL-8"),
    "BC-043": ("device keeps f32 subnormals", "SCL-14"),
    "BC-073": ("(block*global) first, then value", "SCL-14"),
    "BC-085": ("dense little-endian 6-bit", "PAK-1"),
    "BC-129": ("negative scales accepted", "SCL-18"),
    "BC-131": ("saturates", "SCL-8"),
    "BC-139": ("device keeps subnormals", "SCL-3"),
    "BC-141": ("supported", "LAY-2"),
    "BC-145": ("saturating", "VAL-8"),
}
