/* Faults in registers of lanes that may not run the hook, because they have taken another way or have ended. `held` has
 * the value of each lane's register: `mirror` runs after each instruction that writes it. A lane takes a faulty value
 * over with `resume`, which runs at the beginning of each block; `borrowed` are the lanes that have not done so. */

value_t held[WAVES][FLIPWAVE_LANES];

/* Records a strike of lanes. Others than those that run the hook have their values in `held`. */
static void note_all(struct wave *state, uint64_t lanes, value_t value)
{
    if (lanes == 0)
        return;
    uint64_t words = flipwave_uniform_64(state->words);
    if (words == 0) {
        uint32_t first = __builtin_ctzll(lanes);
        bool is_reached = flipwave_active() >> first & 1;
        value_t other = held[state - state_of(0)][first];
        value_t before = flipwave_read_lane_64(value, is_reached ? first : leader());
        before = is_reached ? before : other;
        state->before = before;
        state->after = faulty(before, first);
    }
    state->words = words + __builtin_popcountll(lanes);
}

/* Strikes a register after an instruction, which was executed in the lanes whose guard is true. */
value_t strike_lanes(value_t value, bool guard)
{
    uint32_t active = flipwave_active();
    uint64_t executing = flipwave_ballot(active, guard);
    struct wave *state = struck_wave();
    if (!state)
        return value;
    uint64_t lanes = lanes_of_wave(executing);
    note_all(state, lanes, value);
    value_t *registers = held[state - state_of(0)];
    if (flipwave_lane() == leader())
        for (uint64_t rest = lanes & ~(uint64_t)active; rest != 0; rest &= rest - 1) {
            uint32_t lane = __builtin_ctzll(rest);
            registers[lane] = faulty(registers[lane], lane);
        }
    state->borrowed = flipwave_uniform_64(state->borrowed) | (lanes & ~(uint64_t)active);
    if (!(lanes >> flipwave_lane() & 1))
        return value;
    value = faulty(value, flipwave_lane());
    registers[flipwave_lane()] = value;
    return value;
}

/* Strikes a register as an instruction reads it: only lanes that execute the instruction do. */
value_t strike_read(value_t value)
{
    struct wave *state = struck_wave();
    if (!state)
        return value;
    uint64_t lanes = lanes_of_wave(flipwave_active());
    note_all(state, lanes, value);
    return lanes >> flipwave_lane() & 1 ? faulty(value, flipwave_lane()) : value;
}

/* The wave's number in `waves`; WAVES for other waves than the struck ones. */
static uint32_t wave_number(void)
{
    uint32_t number;
    bool is_struck = is_struck_wave(flipwave_workgroup_x(), flipwave_workgroup_y(),
                                    flipwave_workgroup_z(), flipwave_wave(), &number);
    return is_struck ? number : WAVES;
}

void mirror(value_t value)
{
    uint32_t number = wave_number();
    /* A lane that enters the function has not taken its value over. */
    if (number < WAVES && !(state_of(number)->borrowed >> flipwave_lane() & 1))
        held[number][flipwave_lane()] = value;
}

value_t resume(value_t value)
{
    uint32_t number = wave_number();
    if (number >= WAVES)
        return value;
    uint64_t waiting = flipwave_uniform_64(state_of(number)->borrowed);
    state_of(number)->borrowed = waiting & ~(uint64_t)flipwave_active();
    return waiting >> flipwave_lane() & 1 ? held[number][flipwave_lane()] : value;
}
