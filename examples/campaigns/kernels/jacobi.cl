// One Jacobi step towards the solution of A x = b in double precision, one row per work-item:
// next[i] = (b[i] - sum of A[i][j] x[j] over j != i) / A[i][i]. A is stored column by column,
// so that neighbouring work-items read neighbouring elements.
kernel void jacobi_step(global const double *restrict a, global const double *restrict b,
                        global const double *restrict x, global double *restrict next, int size) {
    int row = get_global_id(0);
    if (row >= size)
        return;
    double rest = b[row];
    for (int column = 0; column < size; ++column)
        if (column != row)
            rest = fma(-a[column * size + row], x[column], rest);
    next[row] = rest / a[row * size + row];
}
