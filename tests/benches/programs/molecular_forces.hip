// Molecular dynamics with the Lennard-Jones potential over several steps. Each thread iterates over
// the neighbour list of an atom and skips neighbours that are too far away.
#include "program.h"

const int threads = 256, steps = 4, most = 128, reach = 2;
const float spacing = 1.2f, cutoff = 2.5f, skin = 0.3f, time_step = 0.001f;

// Force of the neighbours on an atom. The k-th neighbour of atom i is at [k * atoms + i].
__host__ __device__ inline float3 force(const float4 *places, const int *neighbours, int count,
                                        int atoms, int atom) {
    float3 sum = make_float3(0, 0, 0);
    for (int k = 0; k < count; k++) {
        float4 other = places[neighbours[k * atoms + atom]];
        float x = places[atom].x - other.x, y = places[atom].y - other.y;
        float z = places[atom].z - other.z;
        float squared = x * x + y * y + z * z;
        if (squared < cutoff * cutoff) {
            float inverse = 1 / squared, sixth = inverse * inverse * inverse;
            float factor = 48 * inverse * sixth * (sixth - 0.5f);
            sum = make_float3(sum.x + factor * x, sum.y + factor * y, sum.z + factor * z);
        }
    }
    return sum;
}

__host__ __device__ inline void push(float4 &place, float4 &speed, float3 force) {
    speed.x += force.x * time_step, speed.y += force.y * time_step, speed.z += force.z * time_step;
    place.x += speed.x * time_step, place.y += speed.y * time_step, place.z += speed.z * time_step;
}

__global__ void find_forces(const float4 *places, const int *neighbours, const int *counts,
                            int atoms, float3 *forces) {
    int atom = blockIdx.x * blockDim.x + threadIdx.x;
    if (atom < atoms)
        forces[atom] = force(places, neighbours, counts[atom], atoms, atom);
}

__global__ void move(float4 *places, float4 *speeds, const float3 *forces, int atoms) {
    int atom = blockIdx.x * blockDim.x + threadIdx.x;
    if (atom < atoms)
        push(places[atom], speeds[atom], forces[atom]);
}

static void step_host(float4 *places, float4 *speeds, float3 *forces, const int *neighbours,
                      const int *counts, int atoms) {
    for (int atom = 0; atom < atoms; atom++)
        forces[atom] = force(places, neighbours, counts[atom], atoms, atom);
    for (int atom = 0; atom < atoms; atom++)
        push(places[atom], speeds[atom], forces[atom]);
}

static float apart(float4 a, float4 b) {
    float x = a.x - b.x, y = a.y - b.y, z = a.z - b.z;
    return std::sqrt(x * x + y * y + z * z);
}

int main(int count, char **arguments) {
    const int side = size(count, arguments, 28, 8), atoms = side * side * side;
    Random random(13);
    std::vector<float4> places(atoms), speeds(atoms);
    auto near = [&] { return random.real(-0.1f, 0.1f); };
    for (int i = 0; i < atoms; i++) {
        float x = i % side + near(), y = i / side % side + near(), z = i / side / side + near();
        places[i] = make_float4(x * spacing, y * spacing, z * spacing, 0);
    }
    std::vector<int> neighbours(most * atoms), counts(atoms);
    for (int i = 0; i < atoms; i++)
        for (int offset = 0; offset < 125; offset++) {
            int x = i % side + offset % 5 - reach, y = i / side % side + offset / 5 % 5 - reach;
            int z = i / side / side + offset / 25 - reach, other = (z * side + y) * side + x;
            if (other == i || std::min({x, y, z}) < 0 || std::max({x, y, z}) >= side)
                continue;
            if (apart(places[i], places[other]) < cutoff + skin)
                neighbours[counts[i]++ * atoms + i] = other;
        }
    Device<float4> device_places(places), device_speeds(speeds);
    Device<float3> device_forces(atoms);
    Device<int> device_neighbours(neighbours), device_counts(counts);
    double gpu = seconds([&] {
        int workgroups = groups(atoms, threads);
        for (int step = 0; step < steps; step++) {
            find_forces<<<workgroups, threads>>>(device_places, device_neighbours, device_counts,
                                                 atoms, device_forces);
            move<<<workgroups, threads>>>(device_places, device_speeds, device_forces, atoms);
        }
    });
    std::vector<float3> forces(atoms);
    double host = seconds([&] {
        for (int step = 0; step < steps; step++)
            step_host(places.data(), speeds.data(), forces.data(), neighbours.data(),
                      counts.data(), atoms);
    });
    std::vector<float4> found = device_speeds.values();
    for (int i = 0; i < atoms; i++) {
        float away = apart(found[i], speeds[i]);
        EXPECT(away <= 1e-3f, "atom %d is faster by %g than it should be", i, away);
    }
    return report("molecular_forces", gpu, host, found);
}
