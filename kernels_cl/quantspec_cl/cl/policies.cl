/* Policies: scale codes of a recipe's numbers, and codecs on their own. POL-9, POL-11, POL-13. */

/* The code of a number of a scale type. POL-9 */
static uint code_of(uint x, __constant const Format* f) {
    uint magnitude = x & MAGNITUDE;
    if (magnitude > INF) return f->nan;
    uint code = magnitude == INF && f->infinity != ABSENT ? f->infinity : min(round_scale(magnitude, f, 1), f->largest);
    return code | (x & SIGN ? f->sign_bit : 0u);
}

__kernel void scale_codes(__constant const Format* formats, uint scale, __global const uint* numbers, __global uchar* codes, ulong n) {
    ulong i = get_global_id(0);
    if (i < n) store_code(codes, formats[scale].size, i, code_of(numbers[i], formats + scale));
}

/* The first number that the type lacks. POL-9 */
__kernel void first_inexact(__constant const Format* formats, uint scale, __global const uint* numbers, __global ulong* firsts,
                            ulong n, ulong chunk) {
    __constant const Format* f = formats + scale;
    FIRST_WHERE(!is_nan(numbers[i]) && decode_scale_code(code_of(numbers[i], f), f) != numbers[i])
}

__kernel void encode_codes(__constant const Format* formats, uint number_type, uint value, __global const int* table, uint entries,
                           uint thresholds, __constant const ulong* codec, __global const uchar* x, __global uchar* codes, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    codes[i] = (uchar)encode_by(load_number(x, formats + number_type, i), formats + value, table, entries, thresholds, codec);
}

__kernel void decode_codes(__constant const Format* formats, uint value, __global const int* table, uint entries,
                           __constant const ulong* codec, __global const uchar* codes, __global uint* y, ulong n) {
    ulong i = get_global_id(0);
    if (i < n) y[i] = decode_by(codes[i], formats + value, table, entries, codec);
}
