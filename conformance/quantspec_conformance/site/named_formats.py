"""The named formats that have a page: the scheme of each, and what people mean and do under its name. Rule POL-1.

Prose only; what a page shows in tables and drawings is computed. What is said of others is what the decision records say.
"""

from dataclasses import dataclass

from ..named import NAMED

__all__ = ["NAMED_FORMATS", "NamedFormat"]


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A page: `slug` names it, `scheme` is a key of NAMED."""

    slug: str
    scheme: str
    means: str  #: what people mean by the name
    others: tuple[str, ...]  #: where the bits that go by the name elsewhere differ

    @property
    def title(self) -> str:
        """The name, as the command prints it."""
        return NAMED[self.scheme]


def _decision(name: str) -> str:
    """A link to a decision record."""
    return f"[{name[:4]}](../decisions/{name}.md)"


NAN = _decision("0001-nan-becomes-zero")
TIES = _decision("0002-full-range-ties")
UP = _decision("0003-scales-round-up")
FLOOR = _decision("0004-floor-of-the-tensor-scale")
SWAP = _decision("0006-swap-not-move")
EVEN = _decision("0012-ties-to-even")
DIVIDE = _decision("0013-divide-not-reciprocal")
ZERO = _decision("0014-zero-scale")
IN_BLOCK = _decision("0015-nan-and-inf-in-a-block")
SATURATE = _decision("0016-saturate")
FACTOR = _decision("0017-tensor-scale-is-a-multiplier")
PARTIAL = _decision("0019-partial-blocks")
LOWEST = _decision("0020-lowest-field-first")
HALF = _decision("0021-half-range")
RECIPE = "Here the recipe is canonical (POL-1), so the name alone does not say which bits a stack writes."
MX_NAN = (
    f"A NaN in a block: torchao and microxcaling turn the whole block into NaN. Here amax leaves it out (SCL-5) and the other "
    f"elements keep their numbers. Decision {IN_BLOCK}."
)
MX_STORE = (
    "Scales follow all values, row-major (LAY-1, LAY-3): no tiles of 128 x 4 as NVIDIA's kernels read, no ggml blocks."
)
#: What both MXFP6 have after their first line.
MXFP6 = (
    "Four codes take three bytes, lowest bits first (PAK-1, PAK-4). PTX wants a byte a code, torchao has both, HIP puts 32 "
    "codes in 24 bytes.",
    "NaN becomes +0 (VAL-10); PTX writes the largest number, ml_dtypes a zero with the sign turned round. "
    f"Decision {NAN}.",
    MX_NAN,
    MX_STORE,
)

_ROWS = (
    NamedFormat(
        "mxfp4",
        "e2m1.packed_native_0.b32-ue8m0",
        "Four-bit E2M1 values in blocks of 32, each block with a power of two as scale: the MXFP4 of OCP MX 1.0.",
        (
            "OCP MX 1.0 takes 2^(floor(log2 amax) - 2) as scale: amax 7 gets scale 1, and 7 clips to 6. Here amax / 6 is rounded "
            f"up (SCL-6, SCL-8): scale 2, nothing clips. Decision {UP}.",
            "PTX, cuBLAS and torchao's RCEIL round up too; torchao's default is the OCP rule; Quark and compressed-tensors round "
            "by a third rule, EVEN.",
            "Ties of elements go to the even code (VAL-7); ggml, MLX and ModelOpt send 0.75, 1.75 and 3.5 to the smaller "
            f"magnitude. Decision {EVEN}.",
            MX_NAN,
            "The first of two codes is in the low half of a byte (PAK-4), as in ONNX, torch and PTX. ggml puts element i beside "
            f"element i + 16. Decision {LOWEST}.",
            MX_STORE,
        ),
    ),
    NamedFormat(
        "mxfp6-e3m2",
        "e3m2.packed_native_0.b32-ue8m0",
        "Six-bit E3M2 values in blocks of 32, each block with a power of two as scale: one of the two MXFP6 of OCP MX 1.0.",
        (
            "OCP MX 1.0 takes 2^(floor(log2 amax) - 4) as scale: amax 30 gets scale 1 and clips to 28. Here amax / 28 is rounded "
            f"up (SCL-6, SCL-8): scale 2. Decision {UP}.",
            *MXFP6,
        ),
    ),
    NamedFormat(
        "mxfp6-e2m3",
        "e2m3.packed_native_0.b32-ue8m0",
        "Six-bit E2M3 values in blocks of 32, each block with a power of two as scale: the MXFP6 of finer steps in OCP MX 1.0.",
        (
            "OCP MX 1.0 takes 2^(floor(log2 amax) - 2) as scale: amax 7.8 gets scale 1 and clips to 7.5. Here amax / 7.5 is "
            f"rounded up (SCL-6, SCL-8): scale 2. Decision {UP}.",
            *MXFP6,
        ),
    ),
    NamedFormat(
        "mxfp8",
        "e4m3.packed_u32_0.b32-ue8m0",
        "E4M3 values in blocks of 32, each block with a power of two as scale. OCP MX 1.0 calls E5M2 values MXFP8 too. "
        "The store here packs four codes in a 32-bit word: in lines of a multiple of four, the bytes are those of `native`.",
        (
            "OCP MX 1.0 takes 2^(floor(log2 amax) - 8) as scale: amax 500 gets scale 1 and clips to 448. Here amax / 448 is "
            f"rounded up (SCL-6, SCL-8): scale 2. Decision {UP}.",
            "torchao's RCEIL, MLX and cuBLAS round up as well; compressed-tensors takes the threshold it has for MXFP4.",
            "A NaN element stays NaN, with its sign (VAL-9), and changes nothing else (SCL-5). torchao and microxcaling make the "
            "whole block NaN; MLX loses the NaN.",
            "A scale of 2^-127 is a number like any other (SCL-3); decoders that shift bits read it as 0.",
            MX_STORE,
        ),
    ),
    NamedFormat(
        "nvfp4",
        "e2m1.packed_native_0.b16-ue4m3.t-f32",
        "Four-bit E2M1 values in blocks of 16 with UE4M3 scales, and one binary32 scale for the tensor: NVIDIA's two-level format.",
        (
            f"Block scales are rounded up (SCL-12). NVIDIA's paper, TransformerEngine, torchao, ModelOpt, compressed-tensors and "
            f"vLLM round to nearest; Burn and cuDNN's text round up. On Gaussian data about half of the scale codes differ: "
            f"decision {UP}. {RECIPE}",
            "The tensor scale here is a factor on the way back (SCL-14). torchao and ModelOpt store such a factor, amax / 2688; "
            "compressed-tensors and vLLM store its reciprocal; TransformerEngine and MLX store amax. "
            f"Decision {FACTOR}.",
            "A block of zeros has scale code 00 (SCL-9), as in TransformerEngine, MLX and vLLM's CUDA kernel. torchao writes 08, "
            f"compressed-tensors 20, ModelOpt 38. Decision {ZERO}.",
            f"A tensor of zeros has tensor scale 2^-126 and reads back as zeros (SCL-13); torchao and ModelOpt read back NaN. "
            f"Decision {FLOOR}.",
            f"NaN becomes +0 (VAL-10); PTX and MLX write +6. Decision {NAN}.",
            "Scales follow the values, row-major (LAY-1, LAY-3). Tensor cores read them in tiles of 128 x 4.",
        ),
    ),
    NamedFormat(
        "fp8",
        "e4m3.native.t-f32",
        "E4M3 values, a byte each, and one binary32 scale for the whole tensor.",
        (
            "e4m3 is the OCP format with largest number 448 (VAL-2). Formats of the same letters exist with largest number 240 "
            "(IEEE style, FNUZ) and 224 (P3109): other bits under one name.",
            "What lies beyond 448 saturates, infinities too (VAL-8). PTX's satfinite and torch from 2.13 do this; ml_dtypes and "
            f"earlier torch write NaN. Decision {SATURATE}.",
            "NaN gives 7F with the sign of the input (VAL-9), as in ml_dtypes and torch; CUDA's headers drop the sign, MLX writes "
            "7E, which is 448.",
            "x is divided by the scale (QNT-5), never multiplied by a reciprocal: next to ties the codes differ. "
            f"Decision {DIVIDE}.",
        ),
    ),
    NamedFormat(
        "q8",
        "q8s.native.b32-f16",
        "Eight-bit integers from -127 to 127 in blocks of 32 with a binary16 scale. ggml's Q8_0 has these parts.",
        (
            "The divisor of amax is 127 here (SCL-4), as in ggml, Burn's Q8S and neural-compressor. torchao and compressed-tensors "
            f"divide by 127.5, which is q8f here (decision {TIES}); some GPTQ tools by 128. Decision {HALF}.",
            f"The binary16 scale is rounded up (SCL-8) and the quotient uses it as stored (SCL-14): decision {UP}. ggml rounds the "
            "scale it stores to nearest and multiplies by the reciprocal of the unrounded one.",
            f"Ties go to the even integer (VAL-7); ggml rounds half away from zero. Decision {EVEN}.",
            "NaN becomes 0 (VAL-10); ONNX's reference and onnxruntime give -128.",
            "All values come first, then all scales (LAY-1). A Q8_0 block is 34 bytes: its scale, then its 32 values.",
        ),
    ),
    NamedFormat(
        "q4",
        "q4s.packed_u32_0.b32-f16",
        "Four-bit integers from -7 to 7 in blocks of 32 with a binary16 scale, eight codes in a 32-bit word.",
        (
            "The divisor of amax is 7 here (SCL-4). ggml's Q4_0 divides the signed maximum by -8, torchao and compressed-tensors "
            f"divide by 7.5, which is q4f here (decision {TIES}).",
            "There is no zero point (POL-4). GPTQ, AWQ, HQQ and MLX's affine mode have one: their tensors are no schemes here.",
            "Fields are two's complement, the first in the lowest bits (VAL-1, PAK-4). compressed-tensors adds 8 to each code; AWQ "
            f"orders the eight codes 0 2 4 6 1 3 5 7; Q4_0 puts element i beside element i + 16. Decision {LOWEST}.",
            f"GPTQ packs along the input axis of a matrix: here that is another packed axis (PAK-2). Decision {SWAP}.",
            f"The scale is rounded up (SCL-8): decision {UP}.",
        ),
    ),
    NamedFormat(
        "nf4",
        "q4f.packed_native_0.lut-nf4.b64-f32",
        "Four-bit indices into the sixteen numbers of NF4, in blocks of 64 with a binary32 scale: bitsandbytes' format.",
        (
            "The first of two codes is in the low half of a byte (PAK-4). bitsandbytes puts it in the high half. "
            f"Decision {LOWEST}.",
            "The nearest entry is found in exact arithmetic, the lower index on a tie (QNT-7). bitsandbytes compares with short "
            "decimal thresholds.",
            f"x is divided by the scale (QNT-5); bitsandbytes multiplies by 1/absmax in full blocks. Decision {DIVIDE}.",
            "Blocks lie along the innermost axis and end with it (BLK-1, BLK-4). bitsandbytes cuts the flattened tensor, so rows "
            f"that are no multiple of 64 fall into other blocks. Decision {PARTIAL}.",
            "Its nested form, scales quantized to 8 bits themselves, is no scheme here. NaN takes the entry nearest 0 (QNT-8).",
        ),
    ),
)

#: Every named format by the name of its page.
NAMED_FORMATS = {row.slug: row for row in _ROWS}
if len(NAMED_FORMATS) != len(_ROWS) or any(row.scheme not in NAMED for row in _ROWS):
    raise AssertionError("two named formats share a page, or one is not in NAMED")
