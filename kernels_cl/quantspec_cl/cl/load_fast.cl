/* Load, fast: eight numbers of an input type at a time. QNT-1; what INPUT_* says comes from the type's row.

   PoCL calls its built-in functions where it cannot inline them, eight lanes through memory: here and in vectors.cl operators
   take the place of max, min, select, vload and vstore wherever it is an element's work. */

#if INPUT_SIZE == 4
typedef uint Input;
typedef uint8 Input8 __attribute__((aligned(4)));
#else
typedef ushort Input;
typedef ushort8 Input8 __attribute__((aligned(2)));
#endif

/* Asks for the line of memory at x, which is read later: while a block is worked out, no cache foresees the next one. It may lie
   outside the tensor. Compilers for a host do nothing for `prefetch`, those for other targets may not know the other name. */
#define LINE (64u / (uint)sizeof(Input)) /* numbers in a line */
#if defined(__x86_64__) || defined(__aarch64__)
#define FETCH(x) __builtin_prefetch(x)
#else
#define FETCH(x) prefetch((__global const char*)(x), 64) /* of chars: on Intel's runtime uints were seen to gain less */
#endif

static uint8 larger(uint8 a, uint8 b) { return a > b ? a : b; }
static uint8 smaller(uint8 a, uint8 b) { return a < b ? a : b; }

/* Eight numbers widened to binary32 patterns. QNT-1 */
static uint8 load8(__global const Input* x, ulong i) {
#if INPUT_SIZE == 4
    return *(__global const Input8*)(x + i);
#elif INPUT_BIAS == 127
    return convert_uint8(*(__global const Input8*)(x + i)) << (23 - INPUT_MANTISSA);
#else
    uint8 code = convert_uint8(*(__global const Input8*)(x + i)), magnitude = code & 0x7FFFu;
    uint8 normal = (magnitude << (23 - INPUT_MANTISSA)) + ((127u - INPUT_BIAS) << 23);
    uint8 small = as_uint8(convert_float8(magnitude) * as_float((128u - INPUT_BIAS - INPUT_MANTISSA) << 23));
    uint8 wide = magnitude < (1u << INPUT_MANTISSA) ? small : normal;
    wide |= as_uint8(magnitude >= INPUT_INFINITY) & INF;
    return wide | ((code & 0x8000u) << 16);
#endif
}

static uint largest_lane(uint8 m) {
    uint4 four = max(m.lo, m.hi);
    uint2 two = max(four.lo, four.hi);
    return max(two.x, two.y);
}
