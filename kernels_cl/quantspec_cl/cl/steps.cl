/* Steps: what one number goes through, as functions that generic and specialised kernels share. VAL, SCL, QNT.

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

/* Codes in a format of powers of two, no zero; nearest is by value. At most 2^-bias is code 0. SCL-3, SCL-9, SCL-16 */
static uint round_power(uint magnitude, __constant const Format* f, int up) {
    if (magnitude == 0) return 0;
    Number n = number(magnitude);
    int code = n.e + 23 + f->bias;
    uint rest = n.m & FRACTION;
    /* between 2^k and 2^(k+1) the midpoint is 1.5 * 2^k; the even code takes a tie */
    uint grows = up ? (uint)(rest > 0) : (uint)(2u * rest + TIE((uint)code) > IMPLICIT);
    return (uint)max(code + (int)grows, 0);
}

/* The code of a magnitude, not yet saturated: up is the smallest not below, else nearest, ties to the even code. */
static uint round_scale(uint magnitude, __constant const Format* f, int up) {
    return f->kind == POWER ? round_power(magnitude, f, up) : round_fields(magnitude, f, up);
}

/* The exact number of a scale code, NaN as 7FC00000. SCL-1, SCL-2, SCL-3, SCL-18 */
static uint decode_scale_code(uint code, __constant const Format* f) { return canonical(widen(code, f)); }

static uint not_lost(uint scale, uint source) { return scale == 0 && source > 0 ? LOST : scale; }

/* amax / H, one division. SCL-4, SCL-6, SCL-7 */
static uint raw_scale(uint largest, uint half_range) { return not_lost(divide(largest, half_range), largest); }

/* x / s; NaN and zero scales by rule, every NaN with x's sign. QNT-2 to QNT-5 */
static uint quotient(uint x, uint s) {
    uint sign = x & SIGN;
    if (is_nan(x) || is_nan(s)) return QNAN | sign;
    if ((s & MAGNITUDE) == 0) return sign;
    uint q = divide(x, s);
    return is_nan(q) ? QNAN | sign : q;
}

/* The code of a number in an output type: one rounding, nearest-even, overflow to Inf, NaN canonical. QNT-10, QNT-11 */
static uint narrow(uint y, __constant const Format* f) {
    if (is_nan(y)) return f->nan;
    return min(round_fields(y & MAGNITUDE, f, 0), f->infinity) | (y & SIGN ? f->sign_bit : 0u);
}
