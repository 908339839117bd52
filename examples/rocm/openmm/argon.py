"""Simulates argon with OpenMM, and prints the energy during the simulation.

    flipwave exec --gpu gfx90a -- python argon.py HIP [STEPS]

27 atoms in a periodic box, with a Lennard-Jones potential and a Verlet integrator, which conserves the total energy. The
platform is HIP, or Reference on the host: the energies agree to five digits.
"""

import sys

import openmm
from openmm import unit

EDGE = 3
SPACING = 0.4  # nm


def argon() -> tuple[openmm.System, list[openmm.Vec3]]:
    """The system and the positions of its atoms."""
    system = openmm.System()
    length = EDGE * SPACING
    box = [openmm.Vec3(length, 0, 0), openmm.Vec3(0, length, 0), openmm.Vec3(0, 0, length)]
    system.setDefaultPeriodicBoxVectors(*box)
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(0.5)
    positions = []
    for index in range(EDGE**3):
        system.addParticle(39.948)
        force.addParticle(0, 0.34, 0.997)
        x, y, z = index % EDGE, index // EDGE % EDGE, index // EDGE**2
        shift = 0.02 * (index * 7 % 5 - 2)
        positions.append(openmm.Vec3(x, y, z) * SPACING + openmm.Vec3(shift, -shift, shift / 2))
    system.addForce(force)
    return system, positions


def main(platform: str, steps: int) -> None:
    system, positions = argon()
    integrator = openmm.VerletIntegrator(0.004)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName(platform))
    context.setPositions(positions)
    context.setVelocities([openmm.Vec3(0.1, 0, -0.1) * (index % 3 - 1) for index in range(len(positions))])
    joule = unit.kilojoule_per_mole
    for step in range(0, steps + 1, 5):
        state = context.getState(getEnergy=True)
        potential = state.getPotentialEnergy().value_in_unit(joule)
        kinetic = state.getKineticEnergy().value_in_unit(joule)
        print(f"step {step} potential {potential:.6f} kinetic {kinetic:.6f} total {potential + kinetic:.6f}")
        integrator.step(5)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PLATFORM [STEPS]")
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20)
