/* Trust: what the device's float arithmetic does on pairs made to be hard, against integers. Eight lanes share a divisor.

   Operands come from buffers, in the forms in which the fast kernels use them: vectors of eight, a shared divisor too. */
#define SUM 0u
#define PRODUCT 1u
#define QUOTIENT_STEP 2u
#define FUSED 3u
#define UNFUSED 4u /* a * b + c in one expression rounds twice */
#define COUNTED 5u /* a comparison of vectors that is true takes 1 away: Oclgrind 21.10 takes 255 */

#ifndef IS_ABOVE
#define IS_ABOVE(a, b) ((a) > (b))
#endif
#ifndef FMA
#define FMA(a, b, c) fma(a, b, c)
#endif
#ifndef OVER
#define OVER(a, b) ((a) / (b))
#endif

static uint mixed_bits(ulong seed) { /* splitmix64, upper half */
    seed += 0x9E3779B97F4A7C15ul;
    seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9ul;
    seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EBul;
    return (uint)((seed ^ (seed >> 31)) >> 32);
}

/* m * 2^e, m of up to 64 bits, rounded once. */
static uint nearest(ulong m, int e) {
    if (m == 0) return 0;
    uint lead = (uint)clz(m);
    m <<= lead;
    return compose((uint)(m >> 32) | (uint)((m & 0xFFFFFFFFul) != 0), e + 32 - (int)lead);
}

static uint nearest_signed(long m, int e) { return m < 0 ? nearest((ulong)-m, e) | SIGN : nearest((ulong)m, e); }

/* 1 / b modulo 2^24, b odd. */
static uint inverse_of(uint b) {
    uint y = b;
    for (uint i = 0; i < 4; i++) y *= 2u - b * y;
    return y & (IMPLICIT * 2u - 1u);
}

static uint normal(uint significand, uint field) { return (significand & FRACTION) | (field << 23); }

/* a / b within 2^-24 of the middle between two numbers: (2^24 + m) * b = a * 2^24 + r, r a small odd number. */
static uint hard_dividend(uint b, uint seed) {
    uint r = 2u * (seed & 7u) + 1u, m = (seed & 8u ? r : 0u - r) * inverse_of(b);
    ulong product = ((m & 0xFFFFFFul) | 0x1000000ul) * b;
    ulong a = (product + (1ul << 23)) >> 24;
    return a < 2 * IMPLICIT && a >= IMPLICIT ? (uint)a : a & 1 ? b ^ (seed & FRACTION) : (uint)(a >> 1);
}

/* a * b whose low 24 bits are one half, or one more or less. */
static uint hard_factor(uint b, uint seed) {
    return ((IMPLICIT + seed % 3u - 1u) * inverse_of(b)) | IMPLICIT;
}

__kernel void trust_cases(uint step, __global uint* a, __global uint* b, __global uint* c, __global uint* expected, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint seed = mixed_bits(4 * i), shared = mixed_bits(4 * (i / 8) + 1), field = 100u + mixed_bits(4 * i + 2) % 50u;
    uint mb = (shared & FRACTION) | IMPLICIT | 1u, shift = mixed_bits(4 * i + 3) % 30u, ma = (seed & FRACTION) | IMPLICIT;
    if ((i / 8 & 15u) == 0u) mb |= FRACTION; /* the divisor whose reciprocal is hardest */
    uint other = 100u + (shared >> 24) % 50u, mc = 0, third = 0, result = 0;
    if (step == SUM) {
        uint lower = field - min(shift, 26u);
        ulong high = (ulong)ma << (field - lower);
        if (seed >> 31) mb = (mb & ~FRACTION) | (FRACTION & (~0u << (shared & 15u))); /* ties */
        result = nearest(high + mb, (int)lower - 150);
        other = lower;
    } else if (step == QUOTIENT_STEP) {
        ma = hard_dividend(mb, seed) | IMPLICIT;
        result = divide(normal(ma, field), normal(mb, other));
    } else if (step == COUNTED) {
        result = (uint)(normal(ma, field) > normal(mb, other));
    } else {
        ma = hard_factor(mb, seed) & (2u * IMPLICIT - 1u);
        int e = (int)(field + other) - 300;
        long product = (long)((ulong)ma * mb), rounded = 0;
        result = nearest((ulong)product, e);
        if (step == FUSED || step == UNFUSED) {
            mc = (mixed_bits(4 * i + 5) & FRACTION) | IMPLICIT;
            third = field + other - 150u + (seed & 64u ? 24u : shift); /* the exponent field of mc * 2^(e + that shift) */
            long addend = (long)((ulong)mc << (third + 150u - field - other));
            if (seed & 128u) addend = -addend;
            mc = normal(mc, third) | (addend < 0 ? SIGN : 0u);
            if (seed & 256u || step == UNFUSED) { /* less the rounded product: what is left is exact */
                mc = result ^ SIGN;
                rounded = (long)((ulong)((result & FRACTION) | IMPLICIT) << ((result >> 23) + 150u - field - other));
                addend = -rounded;
            }
            result = step == UNFUSED ? 0u : nearest_signed(product + addend, e);
        }
    }
    a[i] = normal(ma, field);
    b[i] = normal(mb, other);
    c[i] = mc;
    expected[i] = result;
}

/* Eight cases a work-item. */
__kernel void trust_results(uint step, __global const uint* a, __global const uint* b, __global const uint* c,
                            __global uint* found, ulong n) {
    ulong i = get_global_id(0);
    if (8 * i >= n) return;
    float8 x = as_float8(vload8(i, a)), y = as_float8(vload8(i, b)), z = as_float8(vload8(i, c)), r = x;
    if (step == SUM) r = x + y;
    if (step == PRODUCT) r = x * y;
    if (step == QUOTIENT_STEP) r = i & 1u ? OVER(x, y) : OVER(x, (float8)as_float(b[8 * i]));
    if (step == FUSED) r = FMA(x, y, z);
    if (step == UNFUSED) r = x * y + z;
    uint8 bits = as_uint8(r);
    if (step == COUNTED) bits = (uint8)0u - as_uint8(IS_ABOVE(as_int8(x), as_int8(y)));
    vstore8(bits, i, found);
}
