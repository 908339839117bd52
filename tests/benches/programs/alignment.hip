// Local alignment of pairs of sequences (Smith-Waterman): a workgroup for each pair, a thread for
// each column, one antidiagonal after the other. Threads read the results of the left neighbour
// from shared memory.
#include "program.h"

const int columns = 128, rows = 256;
const int match = 3, mismatch = -2, gap = -4;

__host__ __device__ inline int score(int diagonal, int up, int left, bool same) {
    int best = diagonal + (same ? match : mismatch);
    best = best > up + gap ? best : up + gap;
    best = best > left + gap ? best : left + gap;
    return best > 0 ? best : 0;
}

__global__ void align(const uint8_t *a, const uint8_t *b, int *scores) {
    __shared__ int passed[2][columns + 1];
    __shared__ int best_of_all;
    int column = threadIdx.x;
    uint8_t letter = a[blockIdx.x * columns + column];
    for (int i = column; i < 2 * (columns + 1); i += columns)
        passed[i / (columns + 1)][i % (columns + 1)] = 0;
    if (column == 0)
        best_of_all = 0;
    __syncthreads();
    int up = 0, diagonal = 0, best = 0;
    for (int step = 0; step < rows + columns - 1; step++) {
        int row = step - column, left = passed[step & 1][column];
        if (row >= 0 && row < rows) {
            up = score(diagonal, up, left, letter == b[blockIdx.x * rows + row]);
            passed[~step & 1][column + 1] = up;
            diagonal = left;
            best = up > best ? up : best;
        }
        __syncthreads();
    }
    atomicMax(&best_of_all, best);
    __syncthreads();
    if (column == 0)
        scores[blockIdx.x] = best_of_all;
}

static void align_host(const uint8_t *a, const uint8_t *b, int pairs, int *scores) {
    for (int pair = 0; pair < pairs; pair++, a += columns, b += rows) {
        int line[columns] = {}, best = 0;
        for (int row = 0; row < rows; row++) {
            int left = 0, diagonal = 0;
            for (int column = 0; column < columns; column++) {
                left = score(diagonal, line[column], left, a[column] == b[row]);
                diagonal = line[column];
                line[column] = left;
                best = left > best ? left : best;
            }
        }
        scores[pair] = best;
    }
}

int main(int count, char **arguments) {
    const int pairs = size(count, arguments, 512, 4);
    Random random(2);
    std::vector<uint8_t> a(pairs * columns), b(pairs * rows);
    for (uint8_t &letter : a)
        letter = random.word() % 4;
    // The second sequence contains the first, with one letter in eight changed.
    for (int i = 0; i < pairs * rows; i++) {
        int column = i % rows - 50;
        bool copied = column >= 0 && column < columns && random.word() % 8 != 0;
        b[i] = copied ? a[i / rows * columns + column] : random.word() % 4;
    }
    Device<uint8_t> device_a(a), device_b(b);
    Device<int> device_scores(pairs);
    double gpu = seconds([&] { align<<<pairs, columns>>>(device_a, device_b, device_scores); });
    std::vector<int> scores(pairs);
    double host = seconds([&] { align_host(a.data(), b.data(), pairs, scores.data()); });
    expect_equal("scores", device_scores.values(), scores);
    return report("alignment", gpu, host, scores);
}
