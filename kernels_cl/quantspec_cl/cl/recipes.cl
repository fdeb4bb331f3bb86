/* Recipes: scales, quotients and numbers by the steps of a recipe. POL-5 to POL-10.

   The steps come as definitions, written by recipes.py from the recipe's rows: SINGLE, TENSOR_STAGE and BLOCK_STAGE
   (recipe_scales.cl), ELEMENT (recipe_codes.cl) and DECODE (recipe_numbers.cl) are expressions that assign t[0], t[1] and so on
   and give the last. Every step is one of the functions below or of the prelude, so all of it is integers. */
#ifndef EVEN_THRESHOLD /* the significand from which a rule raises the exponent. POL-7 */
#define EVEN_THRESHOLD(limit) (limit)
#endif
#ifndef NARROWED_UP /* what an unsigned type makes of a sign. POL-6 */
#define NARROWED_UP(x, number, f) ((x) & SIGN && ((f)->sign_bit || ((x) != SIGN && (number))) ? (number) | SIGN : (number))
#endif
#ifndef QUOTIENT_NAN /* a NaN quotient takes the sign of x. POL-10 */
#define QUOTIENT_NAN(x) (QNAN | ((x) & SIGN))
#endif
#ifndef LOGARITHM_LOSES /* the steps of a significand that a logarithm in binary32 cannot tell from a power of two. POL-20 */
#define LOGARITHM_LOSES 88u
#endif
enum { FACT_HALF, FACT_LARGEST, FACT_EXPONENT, FACT_TOP, FACT_EMAX, FACT_LIMITS }; /* of the scheme; limits: one a rule of POL-7 */
enum { IS_ZERO, IS_NAN, IS_FINITE, IS_ABOVE };

/* Unsigned integers that order as the numbers do, -0 just below +0 */
static uint rank_of(uint x) { return x & SIGN ? ~x : x | SIGN; }

/* min and max: a NaN wins. POL-6 */
static uint extreme(uint x, uint y, int larger) {
    if (is_nan(x) || is_nan(y)) return QNAN;
    return (rank_of(x) < rank_of(y)) != larger ? x : y;
}

/* fmin and fmax: a NaN loses. POL-6 */
static uint extreme_number(uint x, uint y, int larger) {
    if (is_nan(x)) return canonical(y);
    return is_nan(y) ? x : extreme(x, y, larger);
}

static uint difference(uint x, uint y) { return sum_of(x, y ^ SIGN); }
static uint met(uint x, uint condition) {
    uint magnitude = x & MAGNITUDE;
    return (uint)(condition == IS_ZERO ? magnitude == 0 : condition == IS_NAN ? magnitude > INF : condition == IS_FINITE ? magnitude < INF : x != 0 && x <= INF);
}

/* up and rne: the number of the scale type that a scale is stored as. POL-6 */
static uint stored(uint x, __constant const Format* f, int up) {
    if (f->mantissa == 23u) return canonical(x);
    uint magnitude = x & MAGNITUDE;
    if (magnitude > INF) return QNAN;
    uint number = decode_scale_code(min(round_scale(magnitude, f, up), f->largest), f);
    return NARROWED_UP(x, number, f);
}

/* Whether it saturated. SCL-24 */
static uint saturates(uint x, __constant const Format* f, int up) {
    uint magnitude = x & MAGNITUDE;
    if (f->mantissa == 23u || magnitude > INF) return 0;
    return (uint)(up ? round_scale(magnitude, f, 1) > f->largest : magnitude > widen(f->largest, f));
}

static uint narrowed(uint x, __constant const Format* f) { return canonical(widen(narrow(x, f), f)); }

/* The power of two of a rule: m * 2^L to L - emax, one more where m reaches the limit. POL-7 */
static uint power_of_two(uint x, uint limit, int emax, int top_for_infinity) {
    uint magnitude = x & MAGNITUDE;
    if (magnitude > INF) return QNAN;
    if (magnitude == 0) return compose(1u, -127);
    Number n = number(magnitude); /* Inf: 2^128 */
    int wanted = n.e + 23 - emax + (int)(n.m >= EVEN_THRESHOLD(limit));
    if (top_for_infinity && magnitude == INF) wanted = 127;
    return compose(1u, max(min(wanted, 127), -127));
}

/* Steps next to 2^n, below it or above it by half as much, whose logarithm in binary32 is n: the steps of binary32 next to n are
   halves on the side of 0 where n is a power of two. POL-20 */
static uint steps_lost(int n, int above) {
    uint size = (uint)(n < 0 ? -n : n), toward_zero = (uint)((n < 0) == above);
    uint width = 32u - clz(size), halves = toward_zero && size && !(size & (size - 1u));
    return width > halves ? (uint)LOGARITHM_LOSES >> (8u + (uint)above - (width - halves)) : 0u;
}

/* The power of two of a logarithm in binary32: rounded down, less emax; or up. POL-20 */
static uint power_by_logarithm(uint x, int emax, int up) {
    uint magnitude = x & MAGNITUDE;
    if (magnitude > INF) return QNAN;
    if (magnitude == 0) return compose(1u, -127);
    if (magnitude == INF) return compose(1u, 127);
    Number n = number(magnitude);
    int low = n.e + 23, grows = up ? (n.m & FRACTION) > steps_lost(low, 1) : (IMPLICIT << 1) - n.m <= steps_lost(low + 1, 0);
    return compose(1u, max(min(low - emax + grows, 127), -127));
}
