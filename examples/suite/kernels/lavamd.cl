// Potential and forces of particles in a cube of boxes. Each workgroup handles the particles of one
// box, which interact with particles in this box and the adjacent boxes. A particle is its position
// and a term v, with |a - b|^2 = v(a) + v(b) - 2 a.b for the cut-off function.

#define PARTICLES 32

// Computes v of each position.
__kernel void prepare(__global double4 *particles)
{
    const int index = get_global_id(0);
    double4 particle = particles[index];
    particle.w = particle.x * particle.x + particle.y * particle.y + particle.z * particle.z;
    particles[index] = particle;
}

__kernel __attribute__((reqd_work_group_size(PARTICLES, 1, 1)))
void forces(__global double4 *result, __global const double4 *particles,
            __global const double *charges, int boxes, double alpha)
{
    __local double4 near[PARTICLES];
    __local double charge[PARTICLES];
    const int lane = get_local_id(0);
    const int x = get_group_id(0), y = get_group_id(1), z = get_group_id(2);
    const int home = ((z * boxes + y) * boxes + x) * PARTICLES + lane;
    const double4 self = particles[home];
    double4 sum = (double4)(0.0);
    for (int k = max(z - 1, 0); k <= min(z + 1, boxes - 1); k++)
        for (int j = max(y - 1, 0); j <= min(y + 1, boxes - 1); j++)
            for (int i = max(x - 1, 0); i <= min(x + 1, boxes - 1); i++) {
                const int box = ((k * boxes + j) * boxes + i) * PARTICLES;
                near[lane] = particles[box + lane];
                charge[lane] = charges[box + lane];
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int other = 0; other < PARTICLES; other++) {
                    const double4 there = near[other];
                    const double product =
                        self.x * there.x + self.y * there.y + self.z * there.z;
                    const double distance = self.w + there.w - 2.0 * product;
                    const double potential = exp(-2.0 * alpha * alpha * distance);
                    const double scale = 2.0 * charge[other] * potential;
                    sum.x += scale * (self.x - there.x);
                    sum.y += scale * (self.y - there.y);
                    sum.z += scale * (self.z - there.z);
                    sum.w += charge[other] * potential;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
    result[home] = sum;
}
