// MPI ranks with a GPU each, which add up their results.
#include "../check.h"

#include <mpi.h>

const int count = 64;

__global__ void square(float *values, int rank) {
    float value = values[threadIdx.x];
    for (int i = 0; i <= rank; i++)
        value = __builtin_fmaf(value, value, 1.0f) * 0.125f;
    values[threadIdx.x] = value;
}

int main(int arguments, char **argument) {
    MPI_Init(&arguments, &argument);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *values = to_device(std::vector<float>(count, 1.0f + rank));
    square<<<1, count>>>(values, rank);
    HIP(hipDeviceSynchronize());
    double sum = 0, all = 0;
    for (float value : from_device(values, count))
        sum += value;
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.9g\n", all);
    MPI_Finalize();
    return 0;
}
