/* Probe, second part: the device's own multiplication and division against the prelude's integers, on made pairs. */

static uint mixed(ulong seed) { /* splitmix64, upper half */
    seed += 0x9E3779B97F4A7C15ul;
    seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9ul;
    seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EBul;
    return (uint)((seed ^ (seed >> 31)) >> 32);
}

/* A normal number whose products and quotients with another are normal, the significand's end often all zeros or ones. */
static uint made(ulong seed) {
    uint fraction = mixed(seed) & FRACTION, kind = mixed(seed + 1u) & 3u;
    if (kind == 1u) fraction |= 0xFFFu;
    if (kind == 2u) fraction &= ~0xFFFu;
    return fraction | ((96u + mixed(seed + 2u) % 60u) << 23);
}

__kernel void wrong_products(__global uint* wrong, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint a = made(8 * i), b = made(8 * i + 4);
    wrong[i] = (uint)(as_uint(as_float(a) * as_float(b)) != multiply(a, b));
}

__kernel void wrong_quotients(__global uint* wrong, ulong n) {
    ulong i = get_global_id(0);
    if (i >= n) return;
    uint a = made(8 * i), b = made(8 * i + 4);
    wrong[i] = (uint)(as_uint(as_float(a) / as_float(b)) != divide(a, b));
}
