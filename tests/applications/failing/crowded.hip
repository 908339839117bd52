// A grid barrier with one workgroup more than the device keeps resident: no workgroup can end.
#include "../grid_barrier.h"

int main() {
    meet(resident_blocks() + 1);
    return passed();
}
