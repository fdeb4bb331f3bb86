/* Scales by the stages single, tensor and block of a recipe. POL-5, POL-9. Steps: recipes.cl. */
enum { STAGE_SINGLE, STAGE_TENSOR, STAGE_BLOCK };

/* The number that a stage gives for each block (or the tensor), and where its last step saturated. POL-9 */
__kernel void scales_by(__constant const Format* formats, __constant const ulong* facts, uint stage, uint type,
                        __global const uint* whole, __global const uint* largest, __global const uint* tensor,
                        __global uint* numbers, __global uchar* saturated, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint t[STEPS], scale = type, A = whole[0], a = largest[i], g = tensor[0], over = 0, number = 0;
    if (stage == STAGE_SINGLE) {
        number = SINGLE;
        over = SINGLE_OVER;
    } else if (stage == STAGE_TENSOR) {
        number = TENSOR_STAGE;
        over = TENSOR_STAGE_OVER;
    } else {
        number = BLOCK_STAGE;
        over = BLOCK_STAGE_OVER;
    }
    numbers[i] = number;
    saturated[i] = (uchar)(over != 0);
}
