/* Prelude: binary32 patterns, and the two IEEE 754 operations that the rules need, in integers.

   Nothing in these files is a float. Numbers enter, move and leave as their 32-bit patterns, and every rounding is an
   integer operation, so a device that flushes subnormals, divides to 2.5 ulp, contracts a*b+c, or was told
   -cl-fast-relaxed-math has no operation left to get wrong. A magnitude is a pattern with bit 31 clear; magnitudes
   order as their numbers do. The rules cited are those of spec/.

   Macros in #ifndef are facts that a planted fault replaces on the command line, to see that the tests notice. */
#pragma OPENCL FP_CONTRACT OFF

#define SIGN 0x80000000u
#define MAGNITUDE 0x7FFFFFFFu
#define INF 0x7F800000u
#define QNAN 0x7FC00000u
#define IMPLICIT 0x00800000u /* the leading bit of a significand, which a normal pattern does not store */
#define FRACTION 0x007FFFFFu
#define SMALLEST 1u /* 2^-149 */

#define ABSENT 0xFFFFFFFFu /* in a table: the format has no such code; as a format's index: no such level */
#define NOWHERE 0xFFFFFFFFFFFFFFFFul /* no element was found */

/* Lanes of two vectors of eight in turn, one or two of each, from the low or the high half of their halves. Lane by lane: of
   parts of a vector Oclgrind loses sight. */
#define LOW_ONES(a, b) (uint8)((a).s0, (b).s0, (a).s1, (b).s1, (a).s4, (b).s4, (a).s5, (b).s5)
#define HIGH_ONES(a, b) (uint8)((a).s2, (b).s2, (a).s3, (b).s3, (a).s6, (b).s6, (a).s7, (b).s7)
#define LOW_TWOS(a, b) (uint8)((a).s0, (a).s1, (b).s0, (b).s1, (a).s4, (a).s5, (b).s4, (b).s5)
#define HIGH_TWOS(a, b) (uint8)((a).s2, (a).s3, (b).s2, (b).s3, (a).s6, (a).s7, (b).s6, (b).s7)

#ifndef TIE /* what decides a tie: the low bit of the quotient, so that ties go to even */
#define TIE(q) ((q) & 1u)
#endif
#ifndef LOST /* what becomes of a scale that is not zero and was rounded to zero: SCL-7, SCL-12 */
#define LOST SMALLEST
#endif
#ifndef LARGEST_RAW /* 2^126: SCL-10 */
#define LARGEST_RAW 0x7E800000u
#endif
#ifndef SMALLEST_TENSOR /* 2^-126: SCL-11 */
#define SMALLEST_TENSOR 0x00800000u
#endif

/* A row of the host's tables. Value formats, scale types and float types are rows of one kind. */
typedef struct {
    uint kind;      /* INTEGER, FLOATING or POWER */
    uint size;      /* bytes of a code in memory */
    uint mask;      /* the bits that a code may set */
    uint sign_bit;  /* 0: unsigned */
    uint magnitude; /* the bits of a code that are not its sign */
    uint mantissa;  /* bits of the mantissa field */
    int bias;
    uint largest;   /* magnitude code of the largest finite number */
    uint infinity;  /* magnitude code, or ABSENT */
    uint first_nan; /* smallest magnitude code that is a NaN, or ABSENT */
    uint nan;       /* magnitude code written for NaN, or ABSENT */
    int lowest;     /* integers: smallest and largest code that encode produces */
    int highest;
    uint top;       /* what two levels map the largest block scale to, binary32: SCL-11 */
    uint spare0;
    uint spare1;
} Format;

#define INTEGER 0u
#define FLOATING 1u /* sign, exponent and mantissa fields, with zero and subnormals */
#define POWER 2u    /* 2^(code - bias): no zero, no fraction */

static int is_nan(uint x) { return (x & MAGNITUDE) > INF; }

/* m / 2^dropped to the nearest integer, ties to even; dropped at most 31. VAL-6, VAL-7 */
static uint round_nearest(uint m, uint dropped) {
    uint kept = m >> dropped;
    uint twice = (m - (kept << dropped)) << 1;
    return kept + (uint)(twice + TIE(kept) > (1u << dropped));
}

/* m / 2^dropped to the smallest integer not below; dropped at most 31 */
static uint round_above(uint m, uint dropped) {
    uint kept = m >> dropped;
    return kept + (uint)(m != (kept << dropped));
}

/* A magnitude other than 0, Inf and NaN as m * 2^e, m in [2^23, 2^24): subnormals are normalised here, once for all. */
typedef struct {
    uint m;
    int e;
} Number;

static Number number(uint magnitude) {
    Number n;
    if (magnitude >= IMPLICIT) {
        n.m = (magnitude & FRACTION) | IMPLICIT;
        n.e = (int)(magnitude >> 23) - 150;
    } else {
        uint shift = clz(magnitude) - 8u;
        n.m = magnitude << shift;
        n.e = -149 - (int)shift;
    }
    return n;
}

/* The magnitude of m * 2^e, rounded once to binary32: nearest, ties to even, subnormals kept, overflow to Inf.

   m = 0 gives 0. Where m is the top of a longer number, its bit 0 says whether anything below it is not 0 (sticky). */
static uint compose(uint m, int e) {
    if (m == 0) return 0;
    uint shift = clz(m);
    int field = e + 158 - (int)shift; /* the exponent field of 2^31 * 2^e */
    if (field >= 255) return INF;
    m <<= shift;
    m = (m >> 1) | (m & 1u); /* leading bit at 30: the lowest normal loses 7 bits, every step below it one more */
    uint dropped = field > 0 ? 7u : (uint)(8 - field);
    if (dropped > 31u) {
        dropped = 31u;
        m = 1u; /* below a quarter of 2^-149 */
    }
    return round_nearest(m, dropped) + ((uint)(max(field, 1) - 1) << 23); /* a carry lands in the exponent */
}

/* x / s, one IEEE 754 binary32 division; a NaN result is 7FC00000. QNT-5, SCL-6, SCL-11, SCL-12 */
static uint divide(uint x, uint s) {
    uint sign = (x ^ s) & SIGN, a = x & MAGNITUDE, b = s & MAGNITUDE;
    if (a > INF || b > INF || (a == INF && b == INF) || (a == 0 && b == 0)) return QNAN;
    if (a == INF || b == 0) return sign | INF;
    if (a == 0 || b == INF) return sign;
    Number n = number(a), d = number(b);
    ulong dividend = (ulong)n.m << 31; /* quotient in (2^30, 2^32): at least six bits more than are kept */
    ulong quotient = dividend / d.m;
    uint sticky = (uint)(quotient * d.m != dividend);
    return sign | compose((uint)quotient | sticky, n.e - d.e - 31);
}

/* s * v, one IEEE 754 binary32 multiplication; a NaN result is 7FC00000. QNT-9, QNT-11, SCL-14 */
static uint multiply(uint s, uint v) {
    uint sign = (s ^ v) & SIGN, a = s & MAGNITUDE, b = v & MAGNITUDE;
    if (a > INF || b > INF || (a == INF && b == 0) || (a == 0 && b == INF)) return QNAN;
    if (a == INF || b == INF) return sign | INF;
    if (a == 0 || b == 0) return sign;
    Number m = number(a), n = number(b);
    uint high = mul_hi(m.m << 8, n.m << 8); /* the 48-bit product without its low 16 bits: at least 2^30 */
    uint sticky = (uint)(((m.m * n.m) & 0xFFFFu) != 0);
    return sign | compose(high | sticky, m.e + n.e + 16);
}

/* Codes of finite magnitudes (or Inf) in a float format whose exponent range has no upper end: exponent and mantissa
   field side by side, so that a carry out of the mantissa lands in the exponent. VAL-2, VAL-6, VAL-7, SCL-8, SCL-16 */
static uint round_fields(uint magnitude, __constant const Format* f, int up) {
    int smallest = 128 - f->bias; /* binary32's exponent field of the format's smallest normal number */
    int exponent = max((int)(magnitude >> 23), 1);
    uint m = (magnitude & FRACTION) | (magnitude >= IMPLICIT ? IMPLICIT : 0u);
    uint dropped = min((uint)(23 - (int)f->mantissa + max(smallest - exponent, 0)), 25u); /* m < 2^24: 25 leave less than half */
    uint kept = up ? round_above(m, dropped) : round_nearest(m, dropped);
    return kept + ((uint)max(exponent - smallest, 0) << f->mantissa);
}

/* The number of a code of a float format, NaN with the code's sign. VAL-2, VAL-3, SCL-1, SCL-3, QNT-1 */
static uint widen(uint code, __constant const Format* f) {
    uint magnitude = code & f->magnitude, sign = code & f->sign_bit ? SIGN : 0u;
    if (magnitude >= f->first_nan) return QNAN | sign;
    if (magnitude == f->infinity) return INF | sign;
    if (f->mantissa == 23u) return magnitude | sign;
    if (f->kind == POWER) return compose(1u, (int)magnitude - f->bias) | sign;
    uint exponent = magnitude >> f->mantissa, m = magnitude & ((1u << f->mantissa) - 1u);
    if (exponent > 0) m |= 1u << f->mantissa;
    return compose(m, (int)max(exponent, 1u) - f->bias - (int)f->mantissa) | sign;
}

/* Every NaN that is written is 7FC00000. QNT-11, VAL-12 */
static uint canonical(uint x) { return is_nan(x) ? QNAN : x; }

/* Codes of 1, 2 or 4 bytes */
static uint load_code(__global const uchar* codes, uint size, ulong i) {
    if (size == 1u) return codes[i];
    if (size == 2u) return ((__global const ushort*)codes)[i];
    return ((__global const uint*)codes)[i];
}

static void store_code(__global uchar* codes, uint size, ulong i, uint code) {
    if (size == 1u) codes[i] = (uchar)code;
    else if (size == 2u) ((__global ushort*)codes)[i] = (ushort)code;
    else ((__global uint*)codes)[i] = code;
}

/* The pattern of element i of an f32, f16 or bf16 input, widened exactly. QNT-1 */
static uint load_number(__global const uchar* x, __constant const Format* f, ulong i) {
    uint code = load_code(x, f->size, i);
    return f->size == 4u ? code : widen(code, f);
}

/* a / b where most numbers fit 32 bits, whose division is faster on every device */
static ulong quotient_of(ulong a, ulong b) {
    if (((a | b) >> 32) == 0) return (uint)a / (uint)b;
    return a / b;
}

/* Offset of index i, counted row-major over sizes, in an array with other strides: [axes, (size, stride) each]. */
static ulong walk(ulong i, __constant const ulong* geometry) {
    ulong offset = 0;
    for (uint axis = (uint)geometry[0]; axis-- > 1u;) {
        ulong size = geometry[1 + 2 * axis], outer = quotient_of(i, size);
        offset += (i - outer * size) * geometry[2 + 2 * axis];
        i = outer;
    }
    return offset + (geometry[0] ? i * geometry[2] : 0);
}

/* Two-stage searches: each work-item looks at `chunk` elements and stores the first index where `condition` holds;
   `fold_first` then folds. No 64-bit atomics are needed and the answer never depends on the schedule. */
#define FIRST_WHERE(condition)                                                                    \
    ulong piece = get_global_id(0), start = piece * chunk, stop = min(start + chunk, n);          \
    if (start >= n) return;                                                                       \
    ulong first = NOWHERE;                                                                        \
    for (ulong i = start; i < stop; i++) {                                                        \
        if (condition) {                                                                          \
            first = i;                                                                            \
            break;                                                                                \
        }                                                                                         \
    }                                                                                             \
    firsts[piece] = first;

__kernel void fold_first(__global const ulong* found, __global ulong* firsts, ulong n, ulong chunk) {
    ulong piece = get_global_id(0), start = piece * chunk, stop = min(start + chunk, n);
    if (piece > 0 && start >= n) return;
    ulong first = NOWHERE;
    for (ulong i = start; i < stop; i++) first = min(first, found[i]);
    firsts[piece] = first;
}

__kernel void fold_sum(__global const ulong* counts, __global ulong* sums, ulong n, ulong chunk) {
    ulong piece = get_global_id(0), start = piece * chunk, stop = min(start + chunk, n);
    if (piece > 0 && start >= n) return;
    ulong sum = 0;
    for (ulong i = start; i < stop; i++) sum += counts[i];
    sums[piece] = sum;
}

/* Elements of a strided array, closed up. */
__kernel void gather(__global const uchar* x, ulong first, uint size, __constant const ulong* geometry, __global uchar* y, ulong n) {
    ulong i = get_global_id(0);
    if (i < n) store_code(y, size, i, load_code(x, size, first + walk(i, geometry)));
}
