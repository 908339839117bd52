/* Separates the names of the following sources from those of a user's function. */

#define fault injection_fault
#define wave injection_wave
#define waves injection_waves
#define event injection_event
#define unit injection_unit
#define held injection_held
#define number injection_number
#define value_t injection_value_t
#define GIVEN INJECTION_GIVEN

#define faulty injection_faulty
#define note injection_note
#define lanes_struck injection_lanes_struck
#define strike injection_strike
#define is_struck_wave injection_is_struck_wave
#define is_struck_execution injection_is_struck_execution
#define mix injection_mix
#define infinity injection_infinity
#define unpack injection_unpack
#define pack injection_pack

#define strike_memory injection_strike_memory
#define strike_lds injection_strike_lds
#define strike_lanes injection_strike_lanes
#define strike_lanes_seen injection_strike_lanes_seen
#define see_exec injection_see_exec
#define strike_wave injection_strike_wave
#define lend_lanes injection_lend_lanes
#define give_back_lanes injection_give_back_lanes
#define lend_wave injection_lend_wave
#define give_back_wave injection_give_back_wave
#define decide injection_decide
#define give_back injection_give_back
#define decide_word injection_decide_word
#define give_back_word injection_give_back_word
