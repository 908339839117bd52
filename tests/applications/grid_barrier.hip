// Workgroups that wait for all others at a barrier in global memory: nine, many, and as many as the
// device keeps resident.
#include "grid_barrier.h"

int main() {
    meet(9);
    meet(64);
    meet(resident_blocks());
    return passed();
}
