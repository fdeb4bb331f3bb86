/* Codecs: how one number becomes a code, where stacks differ. POL-11 to POL-13.

   A codec is numbers: which kind it is, its rounding, the codes of what is beyond the range and of a NaN, which zeros keep a
   sign, how a negative zero is read; and after those its own thresholds, as order keys, and the code of each place. */
enum { CODEC_KIND, CODEC_ROUNDING, CODEC_BEYOND, CODEC_NAN, CODEC_NAN_SIGN, CODEC_ZERO, CODEC_READ, CODEC_SIGNED, CODEC_LIMITS, CODEC_LISTS };
enum { BY_FORMAT, BY_ROUNDING, BY_THRESHOLDS };
enum { TO_EVEN, AWAY, TOWARD_ZERO, HALF_UP, DOWN };
enum { SIGN_DROPPED, SIGN_KEPT, SIGN_INVERTED };
enum { ZERO_KEPT, ZERO_UNDERFLOW, ZERO_DROPPED };

#ifndef TIE_AWAY /* what decides a tie that goes away from zero. POL-12 */
#define TIE_AWAY 1u
#endif
#ifndef ROUNDS_DOWN /* whether a magnitude that is not exact grows, rounded toward minus infinity. POL-12 */
#define ROUNDS_DOWN(negative) (negative)
#endif
#ifndef NAN_SIGN /* the sign that a NaN's code takes. POL-13 */
#define NAN_SIGN(rule, sign, bit) ((rule) == SIGN_KEPT ? (sign) : (rule) == SIGN_INVERTED ? (sign) ^ (bit) : 0u)
#endif

/* m / 2^dropped as an integer, by a rounding that may look at the sign; dropped at most 25, m below 2^24. POL-12 */
static uint round_by(uint m, uint dropped, uint rounding, int negative) {
    uint kept = m >> dropped, twice = (m - (kept << dropped)) << 1;
    if (rounding == DOWN) return kept + (uint)(twice > 0 && ROUNDS_DOWN(negative));
    uint tie = rounding == TO_EVEN ? TIE(kept) : rounding == AWAY ? TIE_AWAY : rounding == HALF_UP ? (uint)!negative : 0u;
    return kept + (uint)(twice + tie > (1u << dropped));
}

/* The integer of a number by the codec's rounding, saturating. POL-12, POL-13 */
static uint encode_integer_by(uint x, __constant const Format* f, __constant const ulong* codec) {
    if (is_nan(x)) return (uint)codec[CODEC_NAN];
    uint magnitude = x & MAGNITUDE;
    int negative = (x & SIGN) != 0, exponent = max((int)(magnitude >> 23), 1), n = 0x7FFFFFFF;
    uint m = (magnitude & FRACTION) | (magnitude >= IMPLICIT ? IMPLICIT : 0u);
    if (exponent < 150) n = (int)round_by(m, (uint)min(150 - exponent, 25), (uint)codec[CODEC_ROUNDING], negative);
    n = negative ? max(-n, f->lowest) : min(n, f->highest);
    return (uint)n & 0xFFu;
}

/* The minifloat of a number by the codec: rounding, what is beyond the range, NaN, signs of zeros. POL-12, POL-13 */
static uint encode_minifloat_by(uint x, __constant const Format* f, __constant const ulong* codec) {
    uint magnitude = x & MAGNITUDE, sign = x & SIGN ? f->sign_bit : 0u;
    if (magnitude > INF) return (uint)codec[CODEC_NAN] | NAN_SIGN((uint)codec[CODEC_NAN_SIGN], sign, f->sign_bit);
    int least = 128 - f->bias, exponent = max((int)(magnitude >> 23), 1); /* least: binary32's field of the smallest normal */
    uint m = (magnitude & FRACTION) | (magnitude >= IMPLICIT ? IMPLICIT : 0u);
    uint dropped = (uint)min(23 - (int)f->mantissa + max(least - exponent, 0), 25);
    uint code = round_by(m, dropped, (uint)codec[CODEC_ROUNDING], sign != 0);
    code += (uint)max(exponent - least, 0) << f->mantissa;
    if (code > f->largest || magnitude == INF) code = (uint)codec[CODEC_BEYOND];
    uint zero = (uint)codec[CODEC_ZERO];
    if ((zero == ZERO_DROPPED && code == 0) || (zero == ZERO_UNDERFLOW && magnitude == 0)) sign = 0;
    return code | sign;
}

/* The code in the place that counts the codec's thresholds below a number; a NaN is above none. POL-12 */
static uint encode_threshold(uint x, __constant const Format* f, __constant const ulong* codec) {
    uint count = (uint)codec[CODEC_LIMITS], place = 0;
    int key = order_key(codec[CODEC_SIGNED] ? x & MAGNITUDE : x);
    while (place < count && !is_nan(x) && (int)(uint)codec[CODEC_LISTS + place] < key) place++;
    uint sign = codec[CODEC_SIGNED] && !is_nan(x) && order_key(x) < 0 ? f->sign_bit : 0u;
    return (uint)codec[CODEC_LISTS + count + place] | sign;
}

static uint encode_by(uint x, __constant const Format* f, __global const int* table, uint entries, uint thresholds,
                      __constant const ulong* codec) {
    if (codec[CODEC_KIND] == BY_FORMAT) return encode_value(x, f, table, entries, thresholds);
    if (codec[CODEC_KIND] == BY_THRESHOLDS) return encode_threshold(x, f, codec);
    return f->kind == INTEGER ? encode_integer_by(x, f, codec) : encode_minifloat_by(x, f, codec);
}

/* The number of a code, a negative zero read as the codec reads it. POL-13 */
static uint decode_by(uint code, __constant const Format* f, __global const int* table, uint entries, __constant const ulong* codec) {
    uint v = decode_value(code, f, table, entries);
    return codec[CODEC_READ] && (v & MAGNITUDE) == 0 ? 0u : v;
}
