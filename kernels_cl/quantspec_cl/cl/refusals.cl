/* Refusals that only some recipes have: numbers for which one has no answer. POL-10. The quotient: recipe_codes.cl. */

/* The first x, or the first q, that meets a condition. POL-10 */
__kernel void first_met(__constant const Format* formats, uint number_type, uint condition, uint quotients, __constant const ulong* facts,
                        __global const uint* whole, __global const uint* largest, __global const uint* tensor,
                        __global const uint* blocks, __global const uint* effective, __constant const ulong* grid,
                        __global const uchar* x, __global ulong* firsts, ulong n, ulong chunk) {
#define LOOKED_AT(x) (quotients ? quotient_by(x, whole[0], largest[block_of(i, grid)], tensor[0], blocks[block_of(i, grid)], effective[block_of(i, grid)], formats, facts) : (x))
    FIRST_WHERE(met(LOOKED_AT(load_number(x, formats + number_type, i)), condition))
}
