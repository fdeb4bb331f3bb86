/* Scales: how a number becomes a scale code and back. SCL-1 to SCL-3, SCL-8, SCL-9, SCL-15 to SCL-21. */

/* The code of a given scale: NaN the type's NaN, else up (or nearest), saturating, the sign kept. SCL-15 to SCL-17, SCL-20 */
static uint encode_given(uint x, __constant const Format* f, int up) {
    if (is_nan(x)) return f->nan;
    return min(round_scale(x & MAGNITUDE, f, up), f->largest) | (x & SIGN ? f->sign_bit : 0u);
}

/* A sign that an unsigned type lacks; with `up` also a negative that is not exactly a finite number of the type. SCL-17, SCL-20 */
static int is_refused(uint x, __constant const Format* f, int up) {
    if (is_nan(x) || !(x & SIGN)) return 0;
    if (f->sign_bit == 0) return 1;
    return up && ((x & MAGNITUDE) == INF || widen(encode_given(x, f, 1), f) != x);
}

__kernel void encode_scale(__constant const Format* formats, uint number_type, uint scale, uint up, __global const uchar* x,
                           __global uchar* codes, __global uchar* saturated, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    __constant const Format* f = formats + scale;
    uint bits = load_number(x, formats + number_type, i);
    store_code(codes, f->size, i, encode_given(bits, f, (int)up));
    saturated[i] = (uchar)(!is_nan(bits) && round_scale(bits & MAGNITUDE, f, (int)up) > f->largest); /* SCL-24 */
}

__kernel void decode_scale(__constant const Format* formats, uint scale, __global const uchar* codes, __global uint* y, ulong n) {
    ulong i = get_global_id(0);
    if (i < n) y[i] = decode_scale_code(load_code(codes, formats[scale].size, i), formats + scale);
}

/* The first given scale that is refused. SCL-17, SCL-20 */
__kernel void first_refused_scale(__constant const Format* formats, uint number_type, uint scale, uint up,
                                  __global const uchar* x, __global ulong* firsts, ulong n, ulong chunk) {
    FIRST_WHERE(is_refused(load_number(x, formats + number_type, i), formats + scale, (int)up))
}

/* The first scale code with a bit that its type lacks. SCL-2 */
__kernel void first_wrong_scale_code(__constant const Format* formats, uint scale, __global const uchar* codes,
                                     __global ulong* firsts, ulong n, ulong chunk) {
    __constant const Format* f = formats + scale;
    FIRST_WHERE(load_code(codes, f->size, i) & ~f->mask)
}

/* Scale codes with the bits that their type lacks cleared: imports only. SCL-2 */
__kernel void clear_unused_bits(__constant const Format* formats, uint scale, __global const uchar* codes,
                                __global uchar* cleared, ulong n) {
    ulong i = get_global_id(0);
    if (i < n) store_code(cleared, formats[scale].size, i, load_code(codes, formats[scale].size, i) & formats[scale].mask);
}

/* One number as a message shows it. */
__kernel void widen_one(__constant const Format* formats, uint number_type, __global const uchar* x, ulong i, __global uint* y) {
    if (get_global_id(0) == 0) y[0] = load_number(x, formats + number_type, i);
}
