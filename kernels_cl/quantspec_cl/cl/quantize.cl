/* Quantize and dequantize. SCL-4 to SCL-14, SCL-23, SCL-24, QNT-1 to QNT-11. */

/* Store the smallest representable scale not below, and whether it saturated. SCL-8, SCL-9, SCL-24 */
static void store_up(uint scale, __constant const Format* f, __global uchar* codes, ulong i, __global uchar* saturated, int counts) {
    uint code = round_scale(scale, f, 1);
    store_code(codes, f->size, i, min(code, f->largest));
    saturated[i] = (uchar)(counts && code > f->largest);
}

/* One level, of a block or of the tensor. SCL-4 to SCL-9 */
__kernel void choose_one_level(__constant const Format* formats, uint scale, uint half_range, __global const uint* largest,
                               __global uchar* codes, __global uchar* saturated, ulong n) {
    ulong i = get_global_id(0);
    if (i < n) store_up(raw_scale(largest[i], half_range), formats + scale, codes, i, saturated, 1);
}

/* Two levels: the tensor scale, from the largest amax (raw is monotone, so it belongs to the largest raw). SCL-10, SCL-11, SCL-13 */
__kernel void choose_tensor_scale(__constant const Format* formats, uint block, uint tensor, uint half_range,
                                  __global const uint* largest, __global uchar* code, __global uchar* saturated) {
    if (get_global_id(0) > 0) return;
    uint limited = min(raw_scale(largest[0], half_range), LARGEST_RAW);
    store_up(max(divide(limited, formats[block].top), SMALLEST_TENSOR), formats + tensor, code, 0, saturated, 1);
}

/* Two levels: block scales relative to the tensor scale; they count as saturated only where it saturated or was given. SCL-12, SCL-24 */
__kernel void choose_block_scales(__constant const Format* formats, uint block, uint tensor, uint half_range,
                                  __global const uint* largest, __global const uchar* tensor_code,
                                  __global const uchar* tensor_saturated, uint given, __global uchar* codes,
                                  __global uchar* saturated, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint g = decode_scale_code(load_code(tensor_code, formats[tensor].size, 0), formats + tensor);
    uint limited = min(raw_scale(largest[i], half_range), LARGEST_RAW);
    int counts = given || tensor_saturated[0];
    store_up(not_lost(divide(limited, g), limited), formats + block, codes, i, saturated, counts);
}

/* s = g * b, one multiplication; with one level the stored scale. SCL-14 */
__kernel void effective_scale(__constant const Format* formats, uint block, uint tensor, __global const uchar* codes,
                              __global const uchar* tensor_code, __global uint* effective, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint b = 0, g = 0;
    if (block != ABSENT) b = decode_scale_code(load_code(codes, formats[block].size, i), formats + block);
    if (tensor != ABSENT) g = decode_scale_code(load_code(tensor_code, formats[tensor].size, 0), formats + tensor);
    effective[i] = tensor == ABSENT ? b : block == ABSENT ? g : multiply(g, b);
}

__kernel void quantize(__constant const Format* formats, uint number_type, uint value, __global const int* table, uint entries,
                       uint thresholds, __global const uchar* x, __global const uint* effective, __constant const ulong* grid,
                       __global uchar* codes, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint q = quotient(load_number(x, formats + number_type, i), effective[block_of(i, grid)]);
    codes[i] = (uchar)encode_value(q, formats + value, table, entries, thresholds); /* QNT-6 */
}

__kernel void dequantize(__constant const Format* formats, uint value, __global const int* table, uint entries,
                         uint thresholds, uint output,
                         __global const uchar* codes, __global const uint* effective, __constant const ulong* grid,
                         __global uchar* y, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint product = multiply(effective[block_of(i, grid)], decode_value(codes[i], formats + value, table, entries)); /* QNT-9 */
    store_code(y, formats[output].size, i, narrow(product, formats + output));
}

/* Saturated scales of a chunk: how many bits are set, and the first, by its number among the bits. SCL-24 */
__kernel void tally(__global const uchar* saturated, __global ulong* counts, __global ulong* firsts, ulong n, ulong chunk) {
    ulong piece = get_global_id(0), start = piece * chunk, stop = min(start + chunk, n);
    if (start >= n) return;
    ulong count = 0, first = NOWHERE;
    for (ulong i = start; i < stop; i++) {
        uint bits = saturated[i];
        if (bits && count == 0) first = 8 * i + 31u - clz(bits & -bits);
        for (; bits; bits &= bits - 1u) count++;
    }
    counts[piece] = count;
    firsts[piece] = first;
}
