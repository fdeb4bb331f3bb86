/* Numbers by the stage decode of a recipe. POL-5. Steps: recipes.cl. */

static uint number_by(uint v, uint g, uint b, uint s, __constant const Format* formats, __constant const ulong* facts) {
    uint t[STEPS], y = DECODE;
    return y;
}

/* POL-5, QNT-10, QNT-11 */
__kernel void dequantize_by(__constant const Format* formats, uint value, __global const int* table, uint entries, uint output,
                            __constant const ulong* codec, __constant const ulong* facts, __global const uint* tensor,
                            __global const uint* blocks, __global const uint* effective, __constant const ulong* grid,
                            __global const uchar* codes, __global uchar* y, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    ulong at = block_of(i, grid);
    uint v = decode_by(codes[i], formats + value, table, entries, codec);
    uint number = number_by(v, tensor[0], blocks[at], effective[at], formats, facts);
    store_code(y, formats[output].size, i, narrow(number, formats + output));
}
