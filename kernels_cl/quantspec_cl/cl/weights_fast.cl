/* Weights, fast: codes of LANES columns as numbers, and their scales. PAK-2 to PAK-4, QNT-9.

   Definitions beside those of decode_fast.cl. ALONG: 1 where the words of a column follow one another (packed along K), 0 where
   those of a row do. Columns come in whole vectors. */

#if ALONG
#if WIDTH >= 4
#define LINE(j) vload4(0, words + (j) * stride)
#else
#define LINE(j) (uint4)(vload2(0, words + (j) * stride), 0u, 0u)
#endif
/* Pairs of lanes, and pairs of pairs, of each four lanes of two vectors: lower and higher ones. */
#if LANES == 8
#define LINES(j) (uint8)(LINE(j), LINE(j + 4))
#define LOW_PAIRS(a, b) (uint8)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5)
#define HIGH_PAIRS(a, b) (uint8)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7)
#define LOW_HALVES(a, b) (uint8)(a.s01, b.s01, a.s45, b.s45)
#define HIGH_HALVES(a, b) (uint8)(a.s23, b.s23, a.s67, b.s67)
#else
/* Each is one instruction, but compilers make many of it where they see that lines were put together before: `nothing`, which is
   zero only when the kernel runs, keeps that from them. */
#define LINES(j) ((uint16)(LINE(j), LINE(j + 4), LINE(j + 8), LINE(j + 12)) ^ nothing)
#define LOW_PAIRS(a, b) (uint16)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5, a.s8, b.s8, a.s9, b.s9, a.sc, b.sc, a.sd, b.sd)
#define HIGH_PAIRS(a, b) (uint16)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7, a.sa, b.sa, a.sb, b.sb, a.se, b.se, a.sf, b.sf)
#define LOW_HALVES(a, b) as_uint16((ulong8)(as_ulong8(a).s0, as_ulong8(b).s0, as_ulong8(a).s2, as_ulong8(b).s2, \
                                            as_ulong8(a).s4, as_ulong8(b).s4, as_ulong8(a).s6, as_ulong8(b).s6))
#define HIGH_HALVES(a, b) as_uint16((ulong8)(as_ulong8(a).s1, as_ulong8(b).s1, as_ulong8(a).s3, as_ulong8(b).s3, \
                                             as_ulong8(a).s5, as_ulong8(b).s5, as_ulong8(a).s7, as_ulong8(b).s7))
#endif
/* LANES columns' words of a run, word i of each in t[i]; columns start `stride` words apart. */
static void load_run(__global const uint* words, ulong stride, uint nothing, Uints* t) {
#pragma unroll
    for (uint i = 0; i < WIDTH; i += 4) {
        Uints a = LINES(0), b = LINES(1), c = LINES(2), d = LINES(3);
        Uints e = LOW_PAIRS(a, b), f = LOW_PAIRS(c, d);
        t[i] = LOW_HALVES(e, f);
        t[i + 1] = HIGH_HALVES(e, f);
#if WIDTH >= 4
        Uints g = HIGH_PAIRS(a, b), h = HIGH_PAIRS(c, d);
        t[i + 2] = LOW_HALVES(g, h);
        t[i + 3] = HIGH_HALVES(g, h);
#endif
        words += 4;
    }
}
#else
/* The codes of LANES columns that are all there, at the top of 32 bits. */
static Ints load_row(__global const uchar* words) {
#if WIDTH == 8
    return TO_INTS(LOADED(0, (__global const char*)words)) << (32 - BITS);
#elif WIDTH == 4
    return EIGHT_EACH(*(__global const PART(int)*)words) << ALIKE(28, 24, 20, 16, 12, 8, 4, 0);
#elif LANES == 16
    return (Ints)(*(__global const int*)words) << (Ints)(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
#else
    return (Ints)((int)*(__global const ushort*)words) << (Ints)(30, 28, 26, 24, 22, 20, 18, 16);
#endif
}
#endif

/* All numbers of a format of four bits, in which codes are looked up; eight lanes of a float format hold those without sign. */
#if BITS == 4 && VALUE_KIND != INTEGER
#define LOOKED_UP LANES
#elif BITS == 4 && LANES == 16
#define LOOKED_UP LANES
#else
#define LOOKED_UP 0
#endif
#if LOOKED_UP == 16
typedef float16 Known;
static Known known_of(__global const int* table) {
    return as_float16(patterns_of((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) << 28, table));
}
#elif LOOKED_UP
typedef struct {
    float8 low, high;
} Known;
static Known known_of(__global const int* table) {
    int8 code = (int8)(0, 1, 2, 3, 4, 5, 6, 7);
    Known known = {numbers_of(code << 28, table), numbers_of((code + 8) << 28, table)};
    return known;
}
#else
typedef int Known;
static Known known_of(__global const int* table) { return 0; }
#endif

/* The numbers of codes, which stand at the top of 32 bits and at the bottom. VAL-1 to VAL-3, VAL-12 */
static Floats weights_of(Ints top, Uints code, Known known, __global const int* table) {
#if LOOKED_UP == 16 /* elements are named one by one: of that compilers make one instruction, and many of `shuffle` */
#define KNOWN(lane) known[code.s##lane]
    code &= 15u;
    return (float16)(FOR_EACH_LANE(KNOWN));
#elif LOOKED_UP && VALUE_KIND == LOOKUP
    return select(shuffle(known.low, code), shuffle(known.high, code), top);
#elif LOOKED_UP
    return as_float8(as_uint8(shuffle(known.low, code)) ^ VALUE_SIGN(top));
#else
    return AS_FLOATS(patterns_of(top, table));
#endif
}

/* Scales of LANES columns (of all, where not EACH) in a row of blocks. */
static Scales scales_at(__global const uchar* scales, uint g, ulong at) {
#if SCALE_KIND == NONE
    return g;
#else
#if EACH
#if SCALE_SIZE == 1
    Scales b = TO_UINTS(LOADED(0, scales + at));
#elif SCALE_SIZE == 2
    Scales b = TO_UINTS(LOADED(0, (__global const ushort*)scales + at));
#else
    Scales b = LOADED(0, (__global const uint*)scales + at);
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

/* Where the exponent fields of scales are not from `low` to `high`. */
static Which fields_outside(Scales s, uint low, uint high) {
    return ((s >> 23) & (Scales)(255u)) - (Scales)(low) > (Scales)(high - low);
}
