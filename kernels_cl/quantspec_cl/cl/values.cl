/* Values: the codec between binary32 numbers and codes. VAL-1 to VAL-13, QNT-7, QNT-8. The codec's steps: steps.cl. */

__kernel void encode(__constant const Format* formats, uint number_type, uint value, __global const int* table, uint entries,
                     uint thresholds, __global const uchar* x, __global uchar* codes, ulong n) {
    ulong i = get_global_id(0);
    if (i < n) codes[i] = (uchar)encode_value(load_number(x, formats + number_type, i), formats + value, table, entries, thresholds);
}

__kernel void decode(__constant const Format* formats, uint value, __global const int* table, uint entries, uint thresholds,
                     __global const uchar* codes, __global uint* y, ulong n) {
    ulong i = get_global_id(0);
    if (i < n) y[i] = decode_value(codes[i], formats + value, table, entries);
}

/* The first byte that is not the extension of its own field. VAL-5 */
__kernel void first_wrong_code(__constant const Format* formats, uint value, uint entries, __global const uchar* codes,
                               __global ulong* firsts, ulong n, ulong chunk) {
    __constant const Format* f = formats + value;
    FIRST_WHERE(extend(codes[i] & f->mask, f, entries) != codes[i])
}
