// Product of a sparse matrix in compressed rows and a vector, in double precision: a wave for each
// row, whose lanes exchange partial sums.
#include "program.h"

const int threads = 256, lanes = 64, repeats = 4;

__global__ void multiply(const int *starts, const int *columns, const double *values,
                         const double *vector, double *product, int rows) {
    int row = (blockIdx.x * threads + threadIdx.x) / lanes, lane = threadIdx.x % lanes;
    if (row >= rows)
        return;
    double sum = 0;
    for (int i = starts[row] + lane; i < starts[row + 1]; i += lanes)
        sum += values[i] * vector[columns[i]];
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        sum += __shfl_down(sum, distance);
    if (lane == 0)
        product[row] = sum;
}

static void multiply_host(const int *starts, const int *columns, const double *values,
                          const double *vector, double *product, int rows) {
    for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int i = starts[row]; i < starts[row + 1]; i++)
            sum += values[i] * vector[columns[i]];
        product[row] = sum;
    }
}

int main(int count, char **arguments) {
    const int rows = size(count, arguments, 20000, 300);
    Random random(18);
    std::vector<int> starts(rows + 1), columns;
    std::vector<double> values, vector(rows), product(rows);
    for (int row = 0; row < rows; row++) {
        vector[row] = random.real(-1, 1);
        // Only a few rows are long.
        int longest = random.word() % 16 == 0 ? 600 : 80;
        for (int length = random.word() % longest; length > 0; length--) {
            columns.push_back(random.word() % rows);
            values.push_back(random.real(-1, 1));
        }
        starts[row + 1] = (int)columns.size();
    }
    Device<int> device_starts(starts), device_columns(columns);
    Device<double> device_values(values), a(vector), b(product);
    double *in = a, *out = b;
    double gpu = seconds([&] {
        for (int i = 0; i < repeats; i++) {
            multiply<<<groups(rows * lanes, threads), threads>>>(device_starts, device_columns,
                                                                 device_values, in, out, rows);
            std::swap(in, out);
        }
    });
    double host = seconds([&] {
        for (int i = 0; i < repeats; i++) {
            multiply_host(starts.data(), columns.data(), values.data(), vector.data(),
                          product.data(), rows);
            vector.swap(product);
        }
    });
    expect_close("vector", from_device(in, rows), vector, 1e-9);
    return report("spmv", gpu, host, from_device(in, rows));
}
