// Gaussian elimination of a system of equations. Each step computes the multipliers of the rows
// below, then updates these rows. Back substitution computes the unknowns.

// Makes the matrix diagonally dominant, so that it needs no pivots.
__kernel void prepare(__global float *a, int size)
{
    const int i = get_global_id(0);
    a[i * size + i] += size;
}

__kernel void multipliers(__global float *m, __global const float *a, int size, int step)
{
    const int row = get_global_id(0) + step + 1;
    if (row < size)
        m[row * size + step] = a[row * size + step] / a[step * size + step];
}

__kernel void eliminate(__global float *a, __global float *b, __global const float *m, int size,
                        int step)
{
    const int column = get_global_id(0) + step, row = get_global_id(1) + step + 1;
    if (row >= size || column >= size)
        return;
    const float factor = m[row * size + step];
    a[row * size + column] = fma(-factor, a[step * size + column], a[row * size + column]);
    if (column == step)
        b[row] = fma(-factor, b[step], b[row]);
}

// Back substitution. Only the first lane works.
__kernel void substitute(__global float *x, __global const float *a, __global const float *b,
                         int size)
{
    if (get_global_id(0) != 0)
        return;
    for (int row = size - 1; row >= 0; row--) {
        float value = b[row];
        for (int column = row + 1; column < size; column++)
            value = fma(-a[row * size + column], x[column], value);
        x[row] = value / a[row * size + row];
    }
}
