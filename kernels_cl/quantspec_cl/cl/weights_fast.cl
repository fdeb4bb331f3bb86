/* Weights, fast: codes of eight columns as numbers, and their scales. PAK-2 to PAK-4, QNT-9.

   Definitions beside those of decode_fast.cl. ALONG: 1 where the words of a column follow one another (packed along K), 0 where
   those of a row do. Columns come in whole eights. */

/* Eight columns' words of a run, word i of each in t[i]; columns start `stride` words apart. */
#if ALONG
static uint8 two_lines(__global const uint* a, __global const uint* b) {
#if WIDTH >= 4
    return (uint8)(vload4(0, a), vload4(0, b));
#else
    return (uint8)(a[0], a[1], 0u, 0u, b[0], b[1], 0u, 0u);
#endif
}
#define TWO_LINES(j) two_lines(words + j * stride, words + (j + 4) * stride)

static void load_run(__global const uint* words, ulong stride, uint8* t) {
#pragma unroll
    for (uint i = 0; i < WIDTH; i += 4) {
        uint8 a = TWO_LINES(0), b = TWO_LINES(1), c = TWO_LINES(2), d = TWO_LINES(3);
        uint8 e = LOW_ONES(a, b), f = LOW_ONES(c, d);
        t[i] = LOW_TWOS(e, f);
        t[i + 1] = HIGH_TWOS(e, f);
#if WIDTH >= 4
        uint8 g = HIGH_ONES(a, b), h = HIGH_ONES(c, d);
        t[i + 2] = LOW_TWOS(g, h);
        t[i + 3] = HIGH_TWOS(g, h);
#endif
        words += 4;
    }
}
#else
/* The codes of eight columns that are all there, at the top of 32 bits. */
static int8 load_row(__global const uchar* words) {
#if WIDTH == 8
    return convert_int8(vload8(0, (__global const char*)words)) << (32 - BITS);
#elif WIDTH == 4
    return (int8)(*(__global const int*)words) << (int8)(28, 24, 20, 16, 12, 8, 4, 0);
#else
    return (int8)((int)*(__global const ushort*)words) << (int8)(30, 28, 26, 24, 22, 20, 18, 16);
#endif
}
#endif

/* All numbers of a format of four bits, which a shuffle looks up; of a float format without sign. `code`: in the low bits. */
#if BITS == 4 && VALUE_KIND != INTEGER
#define LOOKED_UP 1
typedef struct {
    float8 low, high;
} Known;
static Known known_of(__global const int* table) {
    int8 code = (int8)(0, 1, 2, 3, 4, 5, 6, 7);
    Known known = {numbers_of(code << 28, table), numbers_of((code + 8) << 28, table)};
    return known;
}
#else
#define LOOKED_UP 0
typedef int Known;
static Known known_of(__global const int* table) { return 0; }
#endif

/* The numbers of eight codes, which stand at the top of 32 bits and at the bottom. VAL-1 to VAL-3, VAL-12 */
static float8 weights_of(int8 top, uint8 code, Known known, __global const int* table) {
#if LOOKED_UP && VALUE_KIND == LOOKUP
    return select(shuffle(known.low, code), shuffle(known.high, code), top);
#elif LOOKED_UP
    return as_float8(as_uint8(shuffle(known.low, code)) ^ VALUE_SIGN(top));
#else
    return as_float8(patterns_of(top, table));
#endif
}

/* Scales of eight columns (of all, where not EACH) in a row of blocks. */
static Scales scales_at(__global const uchar* scales, uint g, ulong at) {
#if SCALE_KIND == NONE
    return g;
#else
#if EACH
#if SCALE_SIZE == 1
    Scales b = convert_uint8(vload8(0, scales + at));
#elif SCALE_SIZE == 2
    Scales b = convert_uint8(vload8(0, (__global const ushort*)scales + at));
#else
    Scales b = vload8(0, (__global const uint*)scales + at);
#endif
#else
    Scales b = load_code(scales, SCALE_SIZE, at);
#endif
    b = scales_of(b);
#if TENSOR
    b = effective(b, g);
#endif
    return b;
#endif
}

/* The exponent fields of scales: least and largest. */
static uint2 fields_of(Scales s) {
    s = (s >> 23) & (Scales)(255u);
#if EACH
    uint4 low = min(s.lo, s.hi), high = max(s.lo, s.hi);
    uint2 lower = min(low.lo, low.hi), higher = max(high.lo, high.hi);
    return (uint2)(min(lower.x, lower.y), max(higher.x, higher.y));
#else
    return (uint2)(s, s);
#endif
}
