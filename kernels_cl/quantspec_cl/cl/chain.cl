/* Chains: steps on dequantized numbers, each rounded on its own, in integers, so that nothing can be contracted. OPS-14 to OPS-23.

   The steps of a chain are numbers: for each [operation, type of the operand's numbers, its first byte, the mask's first byte,
   words of the operand's walk, words of the mask's walk], then both walks, from an element's index to the operand's. */
#ifndef SUM_AFTER /* y + a, whatever the step before did with `before` and `with`. OPS-15 */
#define SUM_AFTER(y, a, before, with) sum_of(y, a)
#endif
enum { ADD, SUB, RSUB, MUL, DIV, RDIV, MIN, MAX, NEG, ABS, SELECT, CAST };

/* Unsigned integers that order as the numbers do, -0 just below +0 */
static uint rank_of(uint x) { return x & SIGN ? ~x : x | SIGN; }

/* The smaller number, or the larger; NaN where either is NaN. OPS-18 */
static uint extreme(uint y, uint a, int larger) {
    if (is_nan(y) || is_nan(a)) return QNAN;
    return (rank_of(y) < rank_of(a)) == larger ? a : y;
}

static uint stepped(uint op, uint y, uint a, uint kept, __constant const Format* f, uint before, uint with) {
    switch (op) {
    case ADD: return SUM_AFTER(y, a, before, with);
    case SUB: return sum_of(y, a ^ SIGN);
    case RSUB: return sum_of(a, y ^ SIGN);
    case MUL: return multiply(y, a);
    case DIV: return divide(y, a);
    case RDIV: return divide(a, y);
    case MIN: return extreme(y, a, 0);
    case MAX: return extreme(y, a, 1);
    case NEG: return canonical(y ^ SIGN);
    case ABS: return canonical(y & MAGNITUDE);
    case SELECT: return canonical(kept ? y : a);
    default: return canonical(widen(narrow(y, f), f)); /* CAST */
    }
}

__kernel void chain(__constant const Format* formats, uint value, __global const int* table, uint entries, uint output,
                    __global const uchar* codes, __global const uint* effective, __constant const ulong* grid,
                    __constant const ulong* steps, uint count, __global const uchar* operands, __global uchar* y, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint number = multiply(effective[block_of(i, grid)], decode_value(codes[i], formats + value, table, entries));
    uint before = number, with = ONE;
    for (uint step = 0; step < count; step++) {
        __constant const ulong *operand = steps + 6, *mask = operand + steps[4];
        __constant const Format* f = formats + (uint)steps[1];
        uint a = steps[4] ? load_number(operands + steps[2], f, walk(i, operand)) : 0u;
        uint kept = steps[5] ? operands[steps[3] + walk(i, mask)] : 1u;
        uint result = stepped((uint)steps[0], number, a, kept, f, before, with);
        before = number;
        with = a;
        number = result;
        steps = mask + steps[5];
    }
    store_code(y, formats[output].size, i, narrow(number, formats + output));
}
