/* Faults in the decisions of branches. The decision of a wave is that of the lanes that continue first: those at
 * the lower address, unless it is where the lanes meet again. */

/* Where a branch leads: to the instruction at which lanes that take different ways meet, to another one while they
 * meet at the next, or neither. */
enum { TO_MEETING, FROM_MEETING, APART };

/* Returns bit 0 in lanes that take the branch, and bit 1 in lanes that follow the others on a path of their own. */
uint32_t decide(bool guard, uint32_t way)
{
    uint32_t active = flipwave_active();
    uint32_t taken = flipwave_ballot(active, guard);
    struct wave *state = struck_wave();
    if (!state)
        return guard;
    bool is_divided = taken != 0 && taken != active;
    bool before = is_divided ? way == FROM_MEETING : taken != 0;
    bool after = faulty(before, 0) & 1;
    note(state, 1ull << leader(), before, after);
    if (before == after)
        return guard;
    if (is_divided && way == APART)
        return guard ? 1 : 2;
    return after;
}
