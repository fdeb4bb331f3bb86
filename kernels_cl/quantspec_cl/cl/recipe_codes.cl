/* Codes by the stage element of a recipe, and a codec. POL-5, POL-10, POL-11. Steps: recipes.cl. */

/* q of an element; a NaN takes the sign of x. POL-5, POL-10 */
static uint quotient_by(uint x, uint A, uint a, uint g, uint b, uint s, __constant const Format* formats, __constant const ulong* facts) {
    uint t[STEPS], q = ELEMENT;
    return is_nan(q) ? QUOTIENT_NAN(x) : q;
}

/* POL-5, POL-11 */
__kernel void quantize_by(__constant const Format* formats, uint number_type, uint value, __global const int* table, uint entries,
                          uint thresholds, __constant const ulong* codec, __constant const ulong* facts,
                          __global const uint* whole, __global const uint* largest, __global const uint* tensor,
                          __global const uint* blocks, __global const uint* effective, __constant const ulong* grid,
                          __global const uchar* x, __global uchar* codes, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    ulong at = block_of(i, grid);
    uint q = quotient_by(load_number(x, formats + number_type, i), whole[0], largest[at], tensor[0], blocks[at], effective[at], formats, facts);
    codes[i] = (uchar)encode_by(q, formats + value, table, entries, thresholds, codec);
}
