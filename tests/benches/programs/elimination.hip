// Gaussian elimination in double precision: replaces a matrix by its two triangular factors. Each
// column takes two launches: one for the factors of the rows below, one for the rest of the matrix.
#include "program.h"

const int width = 32, height = 8, threads = 256;

__global__ void divide(double *matrix, int side, int column) {
    int row = column + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (row < side)
        matrix[row * side + column] /= matrix[column * side + column];
}

__global__ void subtract(double *matrix, int side, int column) {
    int x = column + 1 + blockIdx.x * width + threadIdx.x;
    int y = column + 1 + blockIdx.y * height + threadIdx.y;
    if (x < side && y < side)
        matrix[y * side + x] -= matrix[y * side + column] * matrix[column * side + x];
}

static void eliminate(double *matrix, int side) {
    for (int column = 0; column + 1 < side; column++) {
        int left = side - column - 1;
        divide<<<groups(left, threads), threads>>>(matrix, side, column);
        subtract<<<dim3(groups(left, width), groups(left, height)), dim3(width, height)>>>(
            matrix, side, column);
    }
}

static void eliminate_host(double *matrix, int side) {
    for (int column = 0; column + 1 < side; column++) {
        const double *pivot = matrix + column * side;
        for (int y = column + 1; y < side; y++) {
            double *row = matrix + y * side;
            double factor = row[column] /= pivot[column];
            for (int x = column + 1; x < side; x++)
                row[x] -= factor * pivot[x];
        }
    }
}

int main(int count, char **arguments) {
    const int side = size(count, arguments, 384, 48);
    Random random(5);
    std::vector<double> matrix(side * side);
    for (double &value : matrix)
        value = random.real(-1, 1);
    // Makes pivoting unnecessary.
    for (int i = 0; i < side; i++)
        matrix[i * side + i] += side;
    Device<double> device_matrix(matrix);
    double gpu = seconds([&] { eliminate(device_matrix, side); });
    double host = seconds([&] { eliminate_host(matrix.data(), side); });
    expect_close("factors", device_matrix.values(), matrix, 1e-12);
    return report("elimination", gpu, host, device_matrix.values());
}
