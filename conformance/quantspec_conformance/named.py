"""Schemes that people use, by the names they use: what `--tensor` runs when nothing is chosen."""

__all__ = ["NAMED"]

#: Scheme text -> name. The arithmetic is quantspec's canonical recipe, not that of the stack that made the name known.
NAMED = {
    "q8s.native.t-f32": "int8, a scale a tensor",
    "q8s.native.b32-f16": "int8, blocks of 32",
    "q4s.packed_u32_0.b32-f16": "int4, blocks of 32",
    "q4f.packed_native_0.b128-f16": "int4, blocks of 128",
    "q4f.packed_native_0.lut-nf4.b64-f32": "NF4",
    "q2s.packed_u32_0.b16-f16": "int2, blocks of 16",
    "e4m3.native.t-f32": "FP8, a scale a tensor",
    "e4m3.native.b128x128-f32": "FP8, tiles of 128 x 128",
    "e5m2.native.t-f32": "FP8, the wide one",
    "e4m3.packed_u32_0.b32-ue8m0": "MXFP8",
    "e3m2.packed_native_0.b32-ue8m0": "MXFP6 E3M2",
    "e2m3.packed_native_0.b32-ue8m0": "MXFP6 E2M3",
    "e2m1.packed_native_0.b32-ue8m0": "MXFP4",
    "e2m1.packed_native_0.b16-ue4m3.t-f32": "NVFP4",
}
