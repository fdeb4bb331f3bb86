/* Values: the codec between binary32 numbers and codes. VAL-1 to VAL-13, QNT-7, QNT-8.

   A table is [entries: patterns][thresholds: order keys, one fewer than the distinct entries][indices]; no entries: no table. */

/* Nearest integer, ties to even, saturating to the range; NaN gives 0. VAL-1, VAL-6, VAL-7, VAL-8, VAL-10 */
static uint encode_integer(uint x, __constant const Format* f) {
    uint magnitude = x & MAGNITUDE;
    int exponent = (int)(magnitude >> 23), n;
    if (magnitude > INF || exponent < 126) n = 0; /* below one half */
    else if (exponent > 149) n = 0x7FFFFFFF;      /* above every integer format */
    else n = (int)round_nearest((magnitude & FRACTION) | IMPLICIT, (uint)(150 - exponent));
    n = x & SIGN ? max(-n, f->lowest) : min(n, f->highest);
    return (uint)n & 0xFFu;
}

/* Nearest minifloat, ties to the even code, saturating; the sign kept. VAL-2, VAL-6 to VAL-11 */
static uint encode_minifloat(uint x, __constant const Format* f) {
    uint sign = x & SIGN ? f->sign_bit : 0u;
    if (is_nan(x)) return f->nan == ABSENT ? 0u : f->nan | sign;
    return min(round_fields(x & MAGNITUDE, f, 0), f->largest) | sign;
}

/* Integers that order as the numbers do, the two zeros equal */
static int order_key(uint x) {
    int magnitude = (int)(x & MAGNITUDE);
    return x & SIGN ? -magnitude : magnitude;
}

/* Lowest index of the nearest entry, in exact arithmetic; NaN the entry nearest 0. QNT-7, QNT-8 */
static uint encode_lookup(uint x, __global const int* table, uint entries, uint thresholds) {
    int key = is_nan(x) ? 0 : order_key(x);
    uint low = 0, high = thresholds; /* how many thresholds are below x */
    while (low < high) {
        uint middle = (low + high) >> 1;
        if (table[entries + middle] < key) low = middle + 1u;
        else high = middle;
    }
    return (uint)table[entries + thresholds + low];
}

static uint encode_value(uint x, __constant const Format* f, __global const int* table, uint entries, uint thresholds) {
    if (entries) return encode_lookup(x, table, entries, thresholds);
    return f->kind == INTEGER ? encode_integer(x, f) : encode_minifloat(x, f);
}

/* The code byte of a field: integers sign-extended, minifloats and indices zero-extended. VAL-4 */
static uint extend(uint field, __constant const Format* f, uint entries) {
    uint sign_bit = f->kind == INTEGER && entries == 0 ? f->sign_bit : 0u;
    return ((field ^ sign_bit) - sign_bit) & 0xFFu;
}

/* The exact number of a code, NaN as 7FC00000. VAL-1, VAL-2, VAL-3, VAL-12, VAL-13 */
static uint decode_value(uint code, __constant const Format* f, __global const int* table, uint entries) {
    if (entries) return (uint)table[min(code, entries - 1u)];
    if (f->kind != INTEGER) return canonical(widen(code, f));
    int n = (int)(code ^ 0x80u) - 0x80;
    return n < 0 ? compose((uint)-n, 0) | SIGN : compose((uint)n, 0);
}

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
