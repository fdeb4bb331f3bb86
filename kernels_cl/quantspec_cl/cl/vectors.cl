/* Vectors: eight numbers at a time. Rounding, quotients and packing for specialised kernels. VAL-6 to VAL-8, QNT-5, PAK-2.

   Floats are used where they are exact or correctly rounded: on normal operands with normal results, which the caller's guard
   makes sure of, by operations that `trust` measured. A result too small to be normal may flush: it encodes to zero either way.
   Vectors have 256 bits: PoCL 3.0 aborts on more. The definitions are facts of the tables and of the device:
   VALUE_* (the format), WIDTH (bits of a stored field), QUOTIENT (how x / s is rounded), CLAMPED (a quotient may exceed the
   range, by at most 2^64). */

#define POWER_OF_TWO 0 /* s is 2^k: x * 2^-k is exact */
#define BY_FMA 1
#define BY_DIVISION 2
#define BY_INTEGERS 3 /* nothing is trusted: no vector is used */

#ifndef ROUND_MAGIC
#define ROUND_MAGIC 12582912.0f /* 1.5 * 2^23: added, it rounds to the nearest integer, ties to even */
#endif
#define ROUND_BITS 0x4B400000u

#ifndef FMA /* as in trust.cl, which measures them */
#define FMA(a, b, c) fma(a, b, c)
#endif
#ifndef IS_ABOVE
#define IS_ABOVE(a, b) ((a) > (b))
#endif
#ifndef OVER
#define OVER(a, b) ((a) / (b))
#endif
#ifndef FIRST_QUOTIENT /* within one unit in the last place: what Markstein's theorem asks for */
#define FIRST_QUOTIENT(x, inverse, rest) FMA(x, inverse, (x) * (rest))
#endif
#ifndef CORRECTED
#define CORRECTED(q, x, s, inverse) FMA(FMA(-(q), s, x), inverse, q)
#endif

/* A divisor of normal numbers: s, and for BY_FMA 1 / s correctly rounded and what is missing to it. */
typedef struct {
    float8 s, inverse, rest;
} Divisor;

static Divisor divisor(float8 s) {
    Divisor d;
    d.s = d.inverse = d.rest = s;
#if QUOTIENT == BY_FMA
    float8 y = 1.0f / s; /* good to a few last places; two steps later it is the nearest, but where s ends in all ones */
    y = FMA(FMA(-s, y, (float8)1.0f), y, y);
    y = FMA(FMA(-s, y, (float8)1.0f), y, y);
    uint8 bits = as_uint8(s), ones = ((253u << 23) - (bits & INF)) + 1u;
    y = as_float8((bits & FRACTION) == FRACTION ? ones : as_uint8(y));
    d.inverse = y;
    d.rest = FMA(-s, y, (float8)1.0f) * y;
#endif
    return d;
}

/* x / s, correctly rounded. BY_FMA: a quotient within one unit, its exact remainder, one correction (Markstein's theorem). QNT-5 */
static float8 divided(float8 x, float8 s, float8 inverse, float8 rest) {
#if QUOTIENT == BY_FMA
    float8 q = FIRST_QUOTIENT(x, inverse, rest);
    return CORRECTED(q, x, s, inverse);
#elif QUOTIENT == POWER_OF_TWO
    return x * inverse;
#else
    return OVER(x, s);
#endif
}

#define FIRST_CODE ((128u - VALUE_BIAS) << VALUE_MANTISSA) /* what the exponent field of the lowest binade puts into a code */
#define CODES ((1u << (VALUE_BITS - 1)) - 1u)

#if VALUE_LOOKUP
__constant int THRESHOLD[] = {THRESHOLDS}; /* order keys, none near 0; the entries ascend, so the count is the index. QNT-7 */
#endif

/* Divided by a power of two, a number is rounded where it stands: s is then the lowest binade of normal codes, times the scale, and
   `rest` is what makes the magic number of a binade. */
#define MAGIC (QUOTIENT == POWER_OF_TWO && !CLAMPED && !VALUE_INTEGER && !VALUE_LOOKUP)
#if MAGIC
static Divisor magic_of(uint8 exponent) { /* the scale's exponent field; of a block of zeros any will do */
    Divisor d;
    uint8 lowest = (exponent + (1u - VALUE_BIAS)) << 23;
    d.s = d.inverse = as_float8(lowest);
    d.rest = as_float8(((0u - (lowest >> (23 - VALUE_MANTISSA))) & CODES) + ((23u - VALUE_MANTISSA) << 23));
    return d;
}
#endif

/* Fields of the quotients of eight numbers. QNT-6, VAL-6, VAL-7, VAL-8 */
static uint8 encode8(uint8 x, float8 s, float8 inverse, float8 rest) {
#if VALUE_LOOKUP
    int8 q = as_int8(divided(as_float8(x), s, inverse, rest)), sign = q >> 31, key = ((q & 0x7FFFFFFF) ^ sign) - sign, n = 0;
    for (uint i = 0; i < sizeof(THRESHOLD) / sizeof(int); i++) n -= IS_ABOVE(key, THRESHOLD[i]);
    return as_uint8(n);
#elif VALUE_INTEGER
    float8 q = divided(as_float8(x), s, inverse, rest);
#if CLAMPED
    float8 low = -(float)VALUE_BELOW, high = VALUE_HIGHEST;
    q = q < low ? low : q;
    q = q > high ? high : q;
#endif
    uint8 n = as_uint8(q + ROUND_MAGIC);
#if !CLAMPED && VALUE_BELOW != VALUE_HIGHEST /* amax lands half a step above the largest code */
    n = smaller(n, (uint8)(ROUND_BITS + VALUE_HIGHEST));
#endif
    return n & ((1u << WIDTH) - 1u);
#elif MAGIC
    uint8 magnitude = x & MAGNITUDE, binade = larger(magnitude, as_uint8(s)) & INF;
    uint8 code = as_uint8(as_float8(magnitude) + as_float8(binade + as_uint8(rest))) + (binade >> (23 - VALUE_MANTISSA));
    return (code & CODES) | ((x >> (32 - VALUE_BITS)) & ~CODES);
#else
    uint8 q = as_uint8(divided(as_float8(x & MAGNITUDE), s, inverse, rest));
    uint8 binade = larger(q, (uint8)((128u - VALUE_BIAS) << 23)) & INF; /* subnormal codes are spaced as the lowest normal ones */
#if CLAMPED
    uint8 magic = binade + ((23u - VALUE_MANTISSA) << 23); /* its last place is the spacing of codes in the binade */
    uint8 code = as_uint8(as_float8(q) + as_float8(magic)) - magic + (binade >> (23 - VALUE_MANTISSA));
    code = smaller(code - FIRST_CODE, (uint8)VALUE_LARGEST);
#else /* the same modulo the codes: the magic number's own last bits stand for what is taken away, an even number */
    uint8 magic = binade + (((23u - VALUE_MANTISSA) << 23) + ((0u - FIRST_CODE) & CODES));
    uint8 code = (as_uint8(as_float8(q) + as_float8(magic)) + (binade >> (23 - VALUE_MANTISSA)));
#endif
    return (code & CODES) | ((x >> (32 - VALUE_BITS)) & ~CODES); /* with x's sign */
#endif
}

/* The largest lane of each of eight vectors. */
static uint8 across(uint8 a, uint8 b) { return larger((uint8)(a.lo, b.lo), (uint8)(a.hi, b.hi)); }
static uint8 between(uint8 a, uint8 b) { return larger(LOW_TWOS(a, b), HIGH_TWOS(a, b)); }
static uint8 largest_lanes(uint8 a, uint8 b, uint8 c, uint8 d, uint8 e, uint8 f, uint8 g, uint8 h) {
    uint8 low = between(across(a, b), across(c, d)), high = between(across(e, f), across(g, h));
    uint8 m = larger((uint8)(low.even, high.even), (uint8)(low.odd, high.odd)); /* a c b d e g f h */
    return m.s02134657;
}

typedef uchar16 Bytes16 __attribute__((aligned(1)));
typedef uchar8 Bytes8 __attribute__((aligned(1)));
typedef uchar4 Bytes4 __attribute__((aligned(1)));
typedef uchar2 Bytes2 __attribute__((aligned(1)));

/* Thirty-two fields of one line, into words at `words`; field i of a word at bit i * WIDTH. PAK-2 to PAK-4 */
static void store32(uint8 a, uint8 b, uint8 c, uint8 d, __global uchar* words) {
#if WIDTH == 8
    *((__global Bytes8*)words + 0) = convert_uchar8(a);
    *((__global Bytes8*)words + 1) = convert_uchar8(b);
    *((__global Bytes8*)words + 2) = convert_uchar8(c);
    *((__global Bytes8*)words + 3) = convert_uchar8(d);
#elif WIDTH == 6 /* words of three bytes, held in four */
    uint8 place = (uint8)(0, 6, 12, 18, 0, 6, 12, 18);
    a <<= place, b <<= place, c <<= place, d <<= place;
    uint8 p = (uint8)(a.even, b.even) | (uint8)(a.odd, b.odd), q = (uint8)(c.even, d.even) | (uint8)(c.odd, d.odd);
    *((__global Bytes16*)words + 0) = as_uchar16(p.even | p.odd);
    *((__global Bytes16*)words + 1) = as_uchar16(q.even | q.odd);
#elif WIDTH == 4
    uint8 place = (uint8)(0, 4, 8, 12, 16, 20, 24, 28);
    a <<= place, b <<= place, c <<= place, d <<= place;
    uint8 p = (uint8)(a.lo, b.lo) | (uint8)(a.hi, b.hi), q = (uint8)(c.lo, d.lo) | (uint8)(c.hi, d.hi);
    uint8 r = LOW_TWOS(p, q) | HIGH_TWOS(p, q);
    *((__global Bytes16*)words + 0) = as_uchar16((r.even | r.odd).s0213);
#else
    uint8 place = (uint8)(0, 2, 4, 6, 8, 10, 12, 14);
    a = (a | (b << 16)) << place, c = (c | (d << 16)) << place;
    uint8 p = (uint8)(a.lo, c.lo) | (uint8)(a.hi, c.hi);
    uint4 r = p.even | p.odd;
    *((__global Bytes8*)words + 0) = as_uchar8(r.even | r.odd);
#endif
}

/* Eight fields: those of one vector, where a line does not hold thirty-two in a row. */
static void store8(uint8 a, __global uchar* words) {
#if WIDTH == 8
    *((__global Bytes8*)words + 0) = convert_uchar8(a);
#elif WIDTH == 6
    a <<= (uint8)(0, 6, 12, 18, 0, 6, 12, 18);
    uint4 p = a.even | a.odd;
    *((__global Bytes8*)words + 0) = as_uchar8(p.even | p.odd);
#else
    a <<= (uint8)(0, 1, 2, 3, 4, 5, 6, 7) * WIDTH;
    uint4 p = a.lo | a.hi;
    uint2 q = p.lo | p.hi;
#if WIDTH == 4
    *(__global Bytes4*)words = as_uchar4(q.x | q.y);
#else
    *(__global Bytes2*)words = as_uchar2((ushort)(q.x | q.y));
#endif
#endif
}
