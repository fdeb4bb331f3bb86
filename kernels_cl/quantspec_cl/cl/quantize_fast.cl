/* Quantize, fast: the scales of eight blocks at a time, and one element by the generic steps. SCL-4 to SCL-14, QNT-2 to QNT-6.

   A vector's arithmetic holds inside a guard: no NaN or Inf, scales that did not saturate, and nothing near an end of binary32's
   range. What lies outside goes through the generic steps, in integers, block by block. The definitions are facts of the
   scheme: VALUE_ROW, INPUT_ROW, SCALE_ROW (rows of the tables), SCALE_* (of the blocks' type), HALF_RANGE (H), HAS_BLOCK and
   HAS_TENSOR (the levels), GIVEN (the block scales are inputs), FIELDS (of a word), WORD_SIZE (bytes of one in memory). */

__constant const Format VALUE = {VALUE_ROW};
__constant const Format INPUT = {INPUT_ROW};
__constant const Format SCALE = {SCALE_ROW};

/* Scale codes of eight blocks, their divisors, and where the generic steps must be taken. */
typedef struct {
    uint8 code;
    float8 s, inverse, rest;
    int8 odd;
} Choice;

#ifndef LOWEST_AMAX
#if SCALE_POWER && !HAS_TENSOR
#define LOWEST_AMAX 0x12800000u /* 2^-90 */
#else
#define LOWEST_AMAX 0x2B800000u /* 2^-40 */
#endif
#define HIGHEST_AMAX 0x6C800000u /* 2^90: a magic number of the binade is not yet infinite */
#endif
#ifndef LOWEST_SCALE
#define LOWEST_SCALE 0x21800000u  /* 2^-60 */
#define HIGHEST_SCALE 0x5D800000u /* 2^60 */
#endif
#ifndef ABOVE /* added before bits are dropped, it rounds up */
#define ABOVE(one, bits) (((one) << (bits)) - 1u)
#endif

static int8 outside(uint8 magnitude, uint low, uint high) { return magnitude - low > (uint8)(high - low); }

/* Codes of the smallest scales not below normal numbers, not yet saturated. SCL-8 */
static uint8 rounded_up(uint8 magnitude) {
#if SCALE_POWER
    return (magnitude + (ABOVE(1u, 23) - ((127u - SCALE_BIAS) << 23))) >> 23;
#elif SCALE_MANTISSA == 23
    return magnitude;
#elif SCALE_BIAS == 127
    return (magnitude + ABOVE(1u, 23 - SCALE_MANTISSA)) >> (23 - SCALE_MANTISSA);
#else
    uint8 exponent = magnitude >> 23, smallest = (uint8)(128u - SCALE_BIAS), normal = max(exponent, smallest);
    uint8 dropped = min(23u - SCALE_MANTISSA + normal - exponent, (uint8)25u);
    uint8 m = (magnitude & FRACTION) | IMPLICIT;
    return ((m + ABOVE((uint8)1u, dropped)) >> dropped) + ((normal - smallest) << SCALE_MANTISSA);
#endif
}

/* The numbers of finite scale codes, where they are normal or zero. SCL-1 */
static float8 scale_of(uint8 code) {
#if SCALE_POWER
    return as_float8((code + (127u - SCALE_BIAS)) << 23);
#elif SCALE_BIAS == 127
    return as_float8(code << (23 - SCALE_MANTISSA));
#else
    uint8 normal = (code << (23 - SCALE_MANTISSA)) + ((127u - SCALE_BIAS) << 23);
    float8 small = convert_float8(code) * as_float((128u - SCALE_BIAS - SCALE_MANTISSA) << 23);
    return as_float8(select(normal, as_uint8(small), code < (1u << SCALE_MANTISSA)));
#endif
}

/* Where x / s may be too large to be clamped, or s is not in the middle of the range; NaN, Inf, negative scales among them. */
static int8 unusable(uint8 largest, uint8 s) {
    return outside(s, LOWEST_SCALE, HIGHEST_SCALE) | (largest > s + (60u << 23));
}

static Choice with_divisor(Choice c, float8 s) {
#if QUOTIENT == POWER_OF_TWO
    c.s = c.rest = c.inverse = as_float8((254u << 23) - as_uint8(s));
#else
    Divisor d = divisor(s);
    c.s = d.s, c.inverse = d.inverse, c.rest = d.rest;
#endif
    return c;
}

#if !HAS_BLOCK
/* The tensor's scale, chosen or given before. */
static Choice choose(uint8 largest, uint8 code, float g) {
    Choice c;
    c.code = code;
    c.odd = unusable(largest, as_uint8((float8)g));
    return with_divisor(c, (float8)g);
}
#elif GIVEN
/* Scales of given codes. SCL-14, SCL-21 */
static Choice choose(uint8 largest, uint8 code, float g) {
    Choice c;
    c.code = code;
    float8 s = scale_of(min(code, (uint8)SCALE_LARGEST));
#if HAS_TENSOR
    s *= g;
#endif
    c.odd = (code > SCALE_LARGEST) | unusable(largest, as_uint8(s));
    return with_divisor(c, s);
}
#elif SCALE_POWER && !HAS_TENSOR
/* amax / H is at most 2^k if amax is at most H * 2^k: H has so few bits that the rounded quotient says the same. SCL-6, SCL-8 */
static Choice choose(uint8 largest, uint8 unused, float g) {
    Choice c;
    int8 empty = largest == 0u;
    c.odd = ~empty & outside(largest, LOWEST_AMAX, HIGHEST_AMAX);
    c.code = select((largest + ((SCALE_BIAS << 23) + ABOVE(1u, 23) - HALF_RANGE)) >> 23, (uint8)0u, empty);
#if MAGIC
    Divisor d = magic_of(c.code + (127u - SCALE_BIAS));
    c.s = d.s, c.inverse = d.inverse, c.rest = d.rest;
#else
    c.s = c.rest = c.inverse = as_float8(((127u + SCALE_BIAS) - c.code) << 23);
#endif
    return c;
}
#else
/* Scales from the largest magnitudes; g is the tensor's. SCL-6 to SCL-9, SCL-10 to SCL-14 */
static Choice choose(uint8 largest, uint8 unused, float g) {
    Choice c;
    int8 empty = largest == 0u;
    c.odd = ~empty & outside(largest, LOWEST_AMAX, HIGHEST_AMAX);
    Divisor half_range = divisor((float8)as_float(HALF_RANGE));
    float8 raw = divided(as_float8(largest), half_range.s, half_range.inverse, half_range.rest);
#if HAS_TENSOR
    Divisor tensor = divisor((float8)g);
    raw = divided(raw, tensor.s, tensor.inverse, tensor.rest);
#endif
    c.code = select(rounded_up(as_uint8(raw)), (uint8)0u, empty);
    c.odd |= c.code > SCALE_LARGEST;
    float8 s = scale_of(c.code);
#if HAS_TENSOR
    s *= g;
    c.odd |= ~empty & outside(as_uint8(s), LOWEST_SCALE, HIGHEST_SCALE);
#endif
    return with_divisor(c, as_float8(select(as_uint8(s), (uint8)0x3F800000u, empty))); /* only zeros are left */
}
#endif

static void store_scales(uint8 code, __global uchar* scales, ulong block) {
#if SCALE_SIZE == 1
    vstore8(convert_uchar8(code), 0, scales + block);
#elif SCALE_SIZE == 2
    vstore8(convert_ushort8(code), 0, (__global ushort*)scales + block);
#else
    vstore8(code, 0, (__global uint*)scales + block);
#endif
}

static uint8 load_scales(__global const uchar* scales, ulong block) {
#if SCALE_SIZE == 1
    return convert_uint8(vload8(0, scales + block));
#elif SCALE_SIZE == 2
    return convert_uint8(vload8(0, (__global const ushort*)scales + block));
#else
    return vload8(0, (__global const uint*)scales + block);
#endif
}

static uint load_pattern(__global const Input* x, ulong i) { return load_number((__global const uchar*)x, &INPUT, i); }

static uint finite_magnitude(__global const Input* x, ulong i) {
    uint magnitude = load_pattern(x, i) & MAGNITUDE;
    return magnitude < INF ? magnitude : 0u;
}

/* One block's scale by the generic steps: its number, its code written; `saturated` gets the bit where it saturated. SCL-24 */
static uint block_scale(uint largest, __global uchar* scales, ulong block, uint g, uint bit, uint* saturated) {
#if !HAS_BLOCK
    return g;
#elif GIVEN
    uint code = load_code(scales, SCALE_SIZE, block);
#else
    uint raw = raw_scale(largest, HALF_RANGE);
#if HAS_TENSOR
    raw = min(raw, LARGEST_RAW);
    raw = not_lost(divide(raw, g), raw);
#endif
    uint code = round_scale(raw, &SCALE, 1);
    if (code > SCALE_LARGEST) *saturated |= bit;
    code = min(code, (uint)SCALE_LARGEST);
    store_code(scales, SCALE_SIZE, block, code);
#endif
#if HAS_BLOCK
    uint s = decode_scale_code(code, &SCALE);
    return HAS_TENSOR ? multiply(g, s) : s;
#endif
}

/* The field of one element by the generic steps. QNT-2 to QNT-8 */
static uint field_of(__global const Input* x, ulong i, uint s, __global const int* table) {
    uint q = quotient(load_pattern(x, i), s);
#if VALUE_LOOKUP
    uint code = encode_lookup(q, table, VALUE_ENTRIES, sizeof(THRESHOLD) / sizeof(int));
#else
    uint code = VALUE_INTEGER ? encode_integer(q, &VALUE) : encode_minifloat(q, &VALUE);
#endif
    return code & ((1u << WIDTH) - 1u);
}

/* A tensor scale outside this range, or arithmetic that is not trusted, leaves every block to the generic steps. */
static int is_usable(uint g) {
    if (QUOTIENT == BY_INTEGERS) return 0;
    return !HAS_TENSOR || (g >= LOWEST_SCALE && g <= HIGHEST_SCALE);
}
