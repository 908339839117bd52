// Jacobi's method for a system of linear equations: each step computes all unknowns from the
// unknowns of the previous step.

// Makes the matrix diagonally dominant, so that the method converges.
__kernel void prepare(__global float *a, int size)
{
    const int i = get_global_id(0);
    a[i * size + i] += size;
}

__kernel void step(__global float *after, __global const float *before, __global const float *a,
                   __global const float *b, int size)
{
    const int row = get_global_id(0);
    float sum = b[row];
    for (int column = 0; column < size; column++)
        if (column != row)
            sum = fma(-a[row * size + column], before[column], sum);
    after[row] = sum / a[row * size + row];
}
