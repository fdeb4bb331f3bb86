/* Probe: what the device's floats really do. Built once with the prelude's FP_CONTRACT OFF and once without it.

   No kernel of the rules depends on any of this; it is measured so that a report can say what the device is. Operands come
   from a buffer, so that the compiler cannot work the answers out by itself. */
#define MULTIPLY_ADD 0u
#define MULTIPLY 1u
#define DIVIDE 2u
#define ABOVE_ZERO 3u
#define UNORDERED 4u
#define FUSED 5u
#define TO_INT 6u
#define TO_CHAR 7u
#define LEADING_ZEROS 8u
#define HIGH_HALF 9u
#define LONG_QUOTIENT 10u

__kernel void probe(__global const uint* steps, __global const uint* operands, __global uint* results, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint step = steps[i], x = operands[3 * i], y = operands[3 * i + 1], z = operands[3 * i + 2], r = 0;
    float a = as_float(x), b = as_float(y), c = as_float(z);
    if (step == MULTIPLY_ADD) r = as_uint(a * b + c);
    if (step == MULTIPLY) r = as_uint(a * b);
    if (step == DIVIDE) r = as_uint(a / b);
    if (step == ABOVE_ZERO) r = (uint)(a > 0.0f);
    if (step == UNORDERED) r = (uint)(a != a);
    if (step == FUSED) r = as_uint(fma(a, b, c));
    if (step == TO_INT) r = as_uint(convert_int_sat_rte(a));
    if (step == TO_CHAR) r = (uint)(uchar)convert_char_sat_rte(a);
    if (step == LEADING_ZEROS) r = clz(x);
    if (step == HIGH_HALF) r = mul_hi(x, y);
    if (step == LONG_QUOTIENT) r = (uint)((((ulong)x << 32) | y) / z);
    results[i] = r;
}
