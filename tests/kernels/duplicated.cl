/* Computes each sum twice and reports an error if the two differ. */
kernel void duplicated(global uint *sums, global uint *errors, global const uint *in)
{
    size_t id = get_global_id(0);
    uint first = in[id], second = first;
    __asm__ volatile("" : "+v"(second));
    first = first * 7 + 3;
    second = second * 7 + 3;
    __asm__ volatile("" : "+v"(first), "+v"(second));
    sums[id] = first;
    if (first != second)
        atomic_or(errors, 1u);
}
