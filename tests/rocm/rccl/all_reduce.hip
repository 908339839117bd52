// An all-reduce of RCCL: each rank has a GPU, on which a kernel writes the rank's numbers, and receives the sums over
// all ranks.
//
//     all_reduce RANKS SUMS                 all ranks in this process
//     all_reduce RANK RANKS SUMS ID         one rank; rank 0 writes the identifier of the group to the file ID
//
// Each rank prints how many sums differ from the expected ones, and writes its sums (f32) to its row of the file SUMS. The
// exit code is 0 even if sums are wrong. With the variable PLANTED, expected sums are those of one more rank.
#include "../../applications/check.h"

#include <rccl/rccl.h>

#include <fcntl.h>
#include <memory>
#include <unistd.h>

#define RCCL(call)                                                                                 \
    do {                                                                                           \
        ncclResult_t status_ = (call);                                                             \
        EXPECT(status_ == ncclSuccess, "line %d: %s: %s", __LINE__, #call,                         \
               ncclGetErrorString(status_));                                                       \
    } while (0)

const int COUNT = 1024;

// Small integers, so that sums are exact in any order.
__global__ void contribute(float *values, int rank) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = (rank + 1) * (i % 97 + 1);
}

struct Rank {
    int number;
    ncclComm_t group;
    hipStream_t stream;
    float *values, *sums;

    // Allocates on the current device.
    explicit Rank(int number) : number(number) {
        HIP(hipStreamCreate(&stream));
        HIP(hipMalloc((void **)&values, COUNT * sizeof(float)));
        HIP(hipMalloc((void **)&sums, COUNT * sizeof(float)));
    }

    void start() {
        contribute<<<COUNT / 256, 256, 0, stream>>>(values, number);
        HIP(hipGetLastError());
        RCCL(ncclAllReduce(values, sums, COUNT, ncclFloat, ncclSum, group, stream));
    }

    void finish(int ranks, const char *path) {
        HIP(hipStreamSynchronize(stream));
        std::vector<float> found = from_device(sums, COUNT);
        int terms = ranks + (getenv("PLANTED") ? 1 : 0);
        int factor = terms * (terms + 1) / 2, wrong = 0;
        for (int i = 0; i < COUNT; i++)
            wrong += found[i] != (float)(factor * (i % 97 + 1));
        printf("rank %d: %d of %d sums are wrong\n", number, wrong, COUNT);
        size_t bytes = COUNT * sizeof(float);
        int file = open(path, O_WRONLY | O_CREAT, 0666);
        EXPECT(file >= 0 && pwrite(file, found.data(), bytes, number * bytes) == (ssize_t)bytes,
               "%s cannot be written", path);
        close(file);
        RCCL(ncclCommDestroy(group));
    }
};

static int in_one_process(int ranks, const char *path) {
    std::vector<std::unique_ptr<Rank>> all;
    std::vector<ncclComm_t> groups(ranks);
    RCCL(ncclCommInitAll(groups.data(), ranks, nullptr));
    for (int number = 0; number < ranks; number++) {
        HIP(hipSetDevice(number));
        all.emplace_back(new Rank(number));
        all.back()->group = groups[number];
    }
    RCCL(ncclGroupStart());
    for (auto &rank : all) {
        HIP(hipSetDevice(rank->number));
        rank->start();
    }
    RCCL(ncclGroupEnd());
    for (auto &rank : all) {
        HIP(hipSetDevice(rank->number));
        rank->finish(ranks, path);
    }
    return 0;
}

// Gets the group's identifier from rank 0, through a file that appears complete.
static ncclUniqueId identifier(int number, const std::string &path) {
    ncclUniqueId id;
    if (number == 0) {
        RCCL(ncclGetUniqueId(&id));
        std::string part = path + ".part";
        FILE *file = fopen(part.c_str(), "w");
        EXPECT(file && fwrite(&id, sizeof(id), 1, file) == 1 && fclose(file) == 0 &&
                   rename(part.c_str(), path.c_str()) == 0,
               "%s cannot be written", path.c_str());
        return id;
    }
    FILE *file = nullptr;
    for (int tries = 0; tries < 600 && !file; tries++) {
        usleep(100000);
        file = fopen(path.c_str(), "r");
    }
    EXPECT(file && fread(&id, sizeof(id), 1, file) == 1, "no identifier in %s", path.c_str());
    fclose(file);
    return id;
}

int main(int count, char **arguments) {
    if (count == 3)
        return in_one_process(atoi(arguments[1]), arguments[2]);
    EXPECT(count == 5, "usage: all_reduce RANKS SUMS | all_reduce RANK RANKS SUMS ID");
    int number = atoi(arguments[1]), ranks = atoi(arguments[2]);
    int devices;
    HIP(hipGetDeviceCount(&devices));
    HIP(hipSetDevice(number % devices));
    Rank rank(number);
    RCCL(ncclCommInitRank(&rank.group, ranks, identifier(number, arguments[4]), number));
    rank.start();
    rank.finish(ranks, arguments[3]);
}
