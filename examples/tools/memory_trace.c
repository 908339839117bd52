/* Records each access of each lane to memory: global, flat, buffer, LDS, scratch, and once per wave
 * scalar memory. */

#include <flipwave.h>

struct access {
    flipwave_site site;
    uint32_t workgroup_x, workgroup_y, workgroup_z;
    /* The wave in its workgroup. */
    uint32_t wave;
    flipwave_lane_number lane;
    uint64_t address;
    uint8_t bytes;
};

FLIPWAVE_STREAM(accesses, struct access, "function", "pc", "instruction")

/* Runs in the active lanes of the instruction. */
void trace(uint64_t address, int64_t distance, uint32_t bytes, bool is_scalar, flipwave_site site, uint32_t x,
           uint32_t y, uint32_t z, uint32_t wave)
{
    struct access access = {
        .site = site,
        .workgroup_x = x,
        .workgroup_y = y,
        .workgroup_z = z,
        .wave = wave,
        .lane = is_scalar ? 255 : flipwave_lane(),
        .address = address + distance,
        .bytes = bytes,
    };
    flipwave_append(&accesses, access);
}

void flipwave_instrument(const flipwave_inst *inst)
{
    if (inst->space == FLIPWAVE_NO_MEMORY)
        return;
    flipwave_site site = flipwave_new_site(&accesses, inst, FLIPWAVE_LOCATION(inst));
    for (uint32_t element = 0; element < inst->elements; element++) {
        flipwave_insert_call(inst, "trace", FLIPWAVE_BEFORE);
        if (inst->space == FLIPWAVE_SPACE_SCALAR)
            flipwave_one_lane();
        flipwave_arg_address();
        flipwave_arg_number(element * inst->distance);
        flipwave_arg_number(inst->access_bytes / inst->elements);
        flipwave_arg_number(inst->space == FLIPWAVE_SPACE_SCALAR);
        flipwave_arg_number(site);
        for (uint32_t dimension = 0; dimension < 3; dimension++)
            flipwave_arg_workgroup(dimension);
        flipwave_arg_wave();
    }
}
