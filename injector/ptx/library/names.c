/* Separates the names of the following sources from those of a user's function. */

#define fault injection_fault
#define wave injection_wave
#define waves injection_waves
#define event injection_event
#define unit injection_unit
#define number injection_number
#define value_t injection_value_t

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

#define uniform injection_uniform
#define record injection_record
#define state_of injection_state_of
#define existing injection_existing
#define struck_wave injection_struck_wave
#define strike_reached injection_strike_reached
#define lanes_of_wave injection_lanes_of_wave
#define note_all injection_note_all
#define wave_number injection_wave_number
#define held injection_held
#define mirror injection_mirror
#define resume injection_resume
#define leader injection_leader
#define strike_lanes injection_strike_lanes
#define strike_read injection_strike_read
#define strike_memory injection_strike_memory
#define strike_lds injection_strike_lds
#define strike_scratch injection_strike_scratch
#define decide injection_decide
