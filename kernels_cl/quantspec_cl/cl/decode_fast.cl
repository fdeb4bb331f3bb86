/* Decode, fast: a vector of codes times their scales. VAL-1 to VAL-3, VAL-12, VAL-13, SCL-1 to SCL-3, SCL-14, QNT-9 to QNT-11.

   Facts come as definitions. Of the value: VALUE_KIND, BITS of a code, WIDTH of a stored field; of a float format MANTISSA,
   BIAS, INFINITY_CODE, FIRST_NAN. Of the block scale: SCALE_KIND, SCALE_SIZE, SCALE_MANTISSA, SCALE_BIAS, SCALE_INFINITY,
   SCALE_NAN, SCALE_MAGNITUDE. TENSOR: 1 where the scheme has a tensor scale besides. EACH: 1 where every element has a scale
   of its own. Of the output: OUT_SIZE, OUT_BIAS; EXACT: 1 where it holds every digit of a product.

   A float multiplication is used only where its operands are normal or zero and its result is: there every device rounds it
   alike. One test of the scale's exponent decides it for all values of a format; the rest goes through integers. Signs of
   zeros, NaNs and infinities are set in integers, so that no build option that promises their absence matters. */
#define LOOKUP 3u
#define NONE 4u /* SCALE_KIND: no block scale */
#define OUTSIDE_F16 0x38800000u /* 2^-14, the smallest normal f16 */

#ifndef NORMAL_FROM /* the smallest exponent field that a product of two scales may have where a float multiplication gives it */
#define NORMAL_FROM 1
#endif
#ifndef EXACT
#define EXACT 0
#endif
#ifndef MARGIN /* how far below the smallest scale that keeps all products normal a float multiplication is used */
#define MARGIN 0u
#endif
#ifndef VALUE_SIGN
#define VALUE_SIGN(top) (AS_UINTS(top) & SIGN)
#endif
#ifndef IS_NAN
#define IS_NAN(moved) ((moved) >= MOVED(FIRST_NAN))
#endif
#ifndef EVEN /* what decides a tie in an output type */
#define EVEN(bits) ((bits) & 1u)
#endif

#if EACH
typedef Uints Scales;
typedef Ints Which;
typedef Floats Factors;
#define AS_INT AS_INTS
#define AS_UINT AS_UINTS
#define AS_FLOAT AS_FLOATS
#define ALL(which) all(which)
#else
typedef uint Scales;
typedef int Which;
typedef float Factors;
#define AS_INT as_int
#define AS_UINT as_uint
#define AS_FLOAT as_float
#define ALL(which) (which)
#endif

/* m / 2^dropped, nearest, ties to even; dropped at most 31 */
static Uints round_all(Uints m, Uints dropped) {
    Uints kept = m >> dropped, twice = (m - (kept << dropped)) << 1u;
    return kept - AS_UINTS((twice + EVEN(kept)) > ((Uints)(1u) << dropped));
}

/* s * v in integers, for all patterns; a NaN result is 7FC00000. As `multiply` and `compose`. */
static Uints multiply_all(Uints s, Uints v) {
    Uints a = s & MAGNITUDE, b = v & MAGNITUDE, sign = (s ^ v) & SIGN;
    Uints shift_a = select((Uints)(0u), clz(a) - 8u, a < IMPLICIT), shift_b = select((Uints)(0u), clz(b) - 8u, b < IMPLICIT);
    Uints m = select(a << (shift_a & 31u), (a & FRACTION) | IMPLICIT, a >= IMPLICIT) << 8u;
    Uints n = select(b << (shift_b & 31u), (b & FRACTION) | IMPLICIT, b >= IMPLICIT) << 8u;
    Ints e = AS_INTS(max(a >> 23u, (Uints)(1u)) + max(b >> 23u, (Uints)(1u)) - shift_a - shift_b) - 300;
    Uints high = mul_hi(m, n) | select((Uints)(0u), (Uints)(1u), ((m >> 8u) * (n >> 8u) & 0xFFFFu) != 0u);
    Uints lead = clz(high);
    Ints field = e + 174 - AS_INTS(lead); /* the exponent field of 2^31 * 2^e, as in `compose` */
    high <<= lead & 31u;
    high = (high >> 1u) | (high & 1u);
    Uints dropped = select(AS_UINTS(8 - field), (Uints)(7u), field > 0);
    high = select(high, (Uints)(1u), dropped > 31u);
    Uints r = round_all(high, min(dropped, (Uints)(31u))) + (AS_UINTS(max(field, (Ints)(1)) - 1) << 23u);
    r = select(r, (Uints)(INF), field >= 255);
    r = select(r, (Uints)(0u), (a == 0u) | (b == 0u)); /* and 0 * Inf, which comes next */
    r = select(r, (Uints)(INF), ((a == INF) & (b != 0u)) | ((b == INF) & (a != 0u))) | sign;
    return select(r, (Uints)(QNAN), (a > INF) | (b > INF) | ((a == INF) & (b == 0u)) | ((b == INF) & (a == 0u)));
}

/* A finite float code's magnitude field, moved to binary32's place, as a number: F is right but where the exponent field is 0;
   there 2F - 2^(1-bias) is, and is the lesser of the two only there. Both are normal or zero, and exact. */
#define DECODED(as_float_, as_uint_, moved, bias)                                                                            \
    min(as_uint_(as_float_((moved) + ((uint)(127 - (bias)) << 23))),                                                        \
        as_uint_(as_float_((moved) + ((uint)(127 - (bias)) << 23)) +                                                        \
                 (as_float_((moved) + ((uint)(127 - (bias)) << 23)) - as_float((uint)(128 - (bias)) << 23))))

#if VALUE_KIND == FLOATING
#define SPECIALS (FIRST_NAN != ABSENT)
#define MOVED(magnitude) ((magnitude) << (23 - MANTISSA))
/* The magnitude fields of codes at the top of 32 bits, moved to binary32's place */
static Uints moved_of(Ints top) { return AS_UINTS(top >> (9 + MANTISSA - BITS)) & MOVED((1u << (BITS - 1)) - 1u); }
#else
#define SPECIALS 0
#endif

/* The numbers of codes at the top of 32 bits: finite ones exactly, without sign in float formats, others anything.
   VAL-1, VAL-2, VAL-13 */
static Floats numbers_of(Ints top, __global const int* table) {
#if VALUE_KIND == LOOKUP
    Uints i = AS_UINTS(top) >> (uint)(32 - BITS);
#define ENTRY(lane) table[i.s##lane]
    return AS_FLOATS((Ints)(FOR_EACH_LANE(ENTRY)));
#elif VALUE_KIND == INTEGER
    return TO_FLOATS(top >> (32 - BITS));
#else
    Uints moved = moved_of(top);
    return AS_FLOATS(DECODED(AS_FLOATS, AS_UINTS, moved, BIAS));
#endif
}

/* Every NaN and infinity of the value format in its place. VAL-3, VAL-12, QNT-11 */
static Uints with_specials(Uints r, Ints top) {
#if SPECIALS
    Uints moved = moved_of(top);
#if INFINITY_CODE != ABSENT
    r = select(r, (r & SIGN) | INF, moved == MOVED(INFINITY_CODE));
#endif
    r = select(r, (Uints)(QNAN), IS_NAN(moved));
#endif
    return r;
}

/* The numbers' patterns. */
static Uints patterns_of(Ints top, __global const int* table) {
    Uints v = AS_UINTS(numbers_of(top, table));
    return VALUE_KIND == FLOATING ? with_specials(v | VALUE_SIGN(top), top) : v;
}

/* Block scales as binary32 patterns, NaN as any NaN. SCL-1, SCL-2, SCL-3 */
#if SCALE_KIND != NONE
static Scales scales_of(Scales code) {
#if SCALE_KIND == POWER
    Scales s = select(code << 23, (Scales)(IMPLICIT >> 1), code == (Scales)(0u)); /* 2^-127 is subnormal */
    return select(s, (Scales)(QNAN), code >= (Scales)(SCALE_NAN));
#elif SCALE_SIZE == 4
    return code;
#elif SCALE_BIAS == 127
    return code << 16;
#else
    Scales u = code & (Scales)(SCALE_MAGNITUDE);
    Scales moved = u << (23 - SCALE_MANTISSA), s = DECODED(AS_FLOAT, AS_UINT, moved, SCALE_BIAS);
#if SCALE_INFINITY != ABSENT
    s = select(s, (Scales)(INF), u == (Scales)(SCALE_INFINITY));
#endif
    s = select(s, (Scales)(QNAN), u >= (Scales)(SCALE_NAN));
    return SCALE_SIZE == 2 ? s | ((code & (Scales)(0x8000u)) << 16) : s;
#endif
}
#endif

/* g * b, one multiplication. SCL-14 */
static Scales effective(Scales b, uint g) {
    Scales field = (b >> 23) & (Scales)(255u);
    uint exponent = (g >> 23) & 255u; /* the product's field is that of the operands, less 127, or one more */
    Which normal = (field - (Scales)(1u) < (Scales)(254u)) & (field + exponent - (Scales)(127 + NORMAL_FROM) < (Scales)(254 - NORMAL_FROM));
    if (exponent - 1u < 254u && ALL(normal)) return AS_UINT(AS_FLOAT(b) * (Factors)(as_float(g)));
#if EACH
    return multiply_all((Uints)(g), b);
#else
    return multiply(g, b);
#endif
}

/* A number's code in f16 or bf16: one rounding, nearest-even, overflow to Inf; NaN, 7FC00000, canonical. `plain`: the number is
   zero, NaN or at least 2^-14, in bf16 normal; where it is also EXACT, nothing is left to round. QNT-10, QNT-11 */
static Uints narrow_all(Uints y, int plain) {
#if OUT_SIZE == 2 && OUT_BIAS == 127
    if (EXACT && plain) return y >> 16u;
    return (y + 0x7FFFu + EVEN(y >> 16u)) >> 16u; /* 7FC0 of 7FC00000 */
#elif OUT_SIZE == 2
    Uints m = y & MAGNITUDE, sign = (y >> 16u) & 0x8000u, from = (m > (Uints)(112u << 23) ? m : (Uints)(112u << 23)) - (112u << 23);
    if (!EXACT || !plain) from += 0xFFFu + EVEN(from >> 13u);
    Uints r = from >> 13u;
    r = r > 0x7C00u ? (Uints)(0x7C00u) : r;
    if (plain) return SPECIALS ? select(r | sign, (Uints)(0x7E00u), m > INF) : r | sign;
    Uints field = max(m >> 23u, (Uints)(1u)), dropped = min(126u - min(field, (Uints)(112u)), (Uints)(25u));
    Uints tiny = round_all((m & FRACTION) | select((Uints)(0u), (Uints)(IMPLICIT), m >= IMPLICIT), dropped);
    r = select(r, tiny, m < OUTSIDE_F16);
    return select(r | sign, (Uints)(0x7E00u), m > INF);
#else
    return y;
#endif
}

/* What is written for codes at the top of 32 bits: s * v, one multiplication, narrowed. From `lowest` to `highest` is the
   range of s's exponent field in which no product of a finite value leaves the normal numbers. QNT-9 to QNT-11 */
static Uints products(Ints top, Scales s, uint lowest, uint highest, __global const int* table) {
    Scales exponent = (s >> 23) & (Scales)(255u);
    Which inside = exponent - (Scales)(lowest - MARGIN) <= (Scales)(highest - lowest + MARGIN);
#if VALUE_KIND == LOOKUP
    inside |= (s & (Scales)(MAGNITUDE)) == (Scales)(0u); /* as in blocks of zeros: every entry is finite */
#endif
    if (ALL(inside)) {
        Uints r = AS_UINTS(numbers_of(top, table) * AS_FLOAT(s));
#if VALUE_KIND == FLOATING
        r = with_specials(r ^ VALUE_SIGN(top), top);
#endif
        Which far = exponent >= (Scales)(lowest + 112u); /* all products are normal in f16, or above it */
        return narrow_all(r, OUT_BIAS == 127 || ALL(far));
    }
#if VALUE_KIND != LOOKUP
    Uints magnitude = VALUE_KIND == FLOATING ? AS_UINTS(top) << 1u : AS_UINTS(top);
    if (ALL((s & (Scales)(MAGNITUDE)) < (Scales)(INF)) && !any(magnitude != 0u)) { /* a block of zeros, whose scale may be subnormal */
        return narrow_all((VALUE_KIND == FLOATING ? VALUE_SIGN(top) : (Uints)(0u)) ^ (Uints)(s & (Scales)(SIGN)), 0);
    }
#endif
    return narrow_all(multiply_all((Uints)(s), patterns_of(top, table)), 0);
}
