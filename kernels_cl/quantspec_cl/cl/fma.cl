/* fma: a product and a sum with one rounding, in integers. PRD-1.

   The product of two significands has 48 bits, a sum's bits that matter lie within 62: what an operand loses when it is moved
   down to the other's exponent is kept as a sticky bit, and only an operand loses bits that is too small to cancel the other. */
#define ONE 0x3F800000u

/* m * 2^e, m of up to 64 bits, rounded once */
static uint nearest_of(ulong m, int e) {
    if (m == 0) return 0;
    uint lead = (uint)clz(m);
    m <<= lead;
    return compose((uint)(m >> 32) | (uint)((m & 0xFFFFFFFFul) != 0), e + 32 - (int)lead);
}

/* m / 2^shift, bit 0 telling whether anything below it was not 0 */
static ulong moved_down(ulong m, int shift) {
    if (shift <= 0) return m;
    if (shift > 62) return 1;
    return (m >> shift) | (ulong)((m & ((1ul << shift) - 1ul)) != 0);
}

/* a * b + c, rounded once; a NaN result is 7FC00000. PRD-1 */
static uint fused(uint a, uint b, uint c) {
    uint sign = (a ^ b) & SIGN, other = c & SIGN, x = a & MAGNITUDE, y = b & MAGNITUDE, z = c & MAGNITUDE;
    if (x > INF || y > INF || z > INF || (x == INF && y == 0) || (y == INF && x == 0)) return QNAN;
    if (x == INF || y == INF) return z == INF && other != sign ? QNAN : sign | INF;
    if (z == INF) return c;
    if (x == 0 || y == 0) return z ? c : sign & other;
    Number m = number(x), n = number(y);
    ulong product = (ulong)m.m * n.m << 14, addend = 0; /* below 2^62 */
    int e = m.e + n.e - 14;
    if (z) {
        Number k = number(z);
        int level = k.e - 38; /* the exponent of c's unit, c at 2^61 and above */
        addend = moved_down((ulong)k.m << 38, e - level);
        product = moved_down(product, level - e);
        e = max(e, level);
    }
    if (sign == other) return sign | nearest_of(product + addend, e);
    if (product == addend) return 0;
    return product > addend ? sign | nearest_of(product - addend, e) : other | nearest_of(addend - product, e);
}

/* a + b, one IEEE 754 binary32 addition; a NaN result is 7FC00000. PRD-6, OPS-17 */
static uint sum_of(uint a, uint b) { return fused(a, ONE, b); }
