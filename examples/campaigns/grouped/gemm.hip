// Several small matrix products in one launch, one per workgroup in y. Tables in memory hold the
// addresses of the matrices of each product.
#include <hip/hip_runtime.h>

// Passed by value.
struct Shape {
    int rows, columns, depth;
    float alpha;
};

extern "C" __global__ void grouped_gemm(const float *const *left, const float *const *right,
                                        float *const *product, Shape shape)
{
    int element = blockIdx.x * blockDim.x + threadIdx.x;
    if (element >= shape.rows * shape.columns)
        return;
    const float *a = left[blockIdx.y], *b = right[blockIdx.y];
    int row = element / shape.columns, column = element % shape.columns;
    float sum = 0;
    for (int k = 0; k < shape.depth; k++)
        sum += a[row * shape.depth + k] * b[k * shape.columns + column];
    product[blockIdx.y][element] = shape.alpha * sum;
}
