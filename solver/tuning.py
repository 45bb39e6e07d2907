"""All numbers by which a solve was tuned: they change how soon it is how good, never whether what it says is right.

Chosen on problems of `benchmarks.random` whose seeds no table reports (51 to 59; 101), in CPU-seconds of one worker.
"""

from __future__ import annotations

# The engine.
# Of so many passes each schedule takes a part of a second, so that schedules of fewer micro-batches are extended where
# they will do, and no schedule is tried any more once the optimum is proved.
MANY_PASSES = 20_000
# Seconds that the first schedule of all may take although the time limit is shorter.
GRACE = 1.0
# About the seconds that timing and judging a schedule takes for each pass.
SECONDS_A_PASS = 2e-5
# About the seconds that stating the exact model takes for each pass.
STATING_SECONDS_A_PASS = 0.001
# About the seconds that local search takes for each pass before its first move counts, and searched rules.
LOCAL_SEARCH_SECONDS_A_PASS = 1e-4
# Of so few passes thousands of schedules are tried in a second: shorter problems of as many stand for long ones.
FEW_PASSES = 5_000
# Of the time, or of what is left, for an opening, for code to be compiled, for one try of several.
SHARE = 0.3
# How many schedules a search keeps to go on from; far enough for a pass to move.
KEPT = 6
# The first slice of a part, of the time limit; where work is counted, of that of a part, which has all of it in turn.
FIRST_SLICE, COUNTED_SLICE = 1 / 64, 1 / 8
# What a slice closed counts so much with the next one.
DISCOUNT = 0.5
# The share of the gap that a part is hoped to close in as much time as it had so far.
HOPE = 0.1
# A slice of a part that begins anew is longer by so much than all of its slices before.
LONGER = 3.0
# The check of a bound takes so much longer than the bound at most, beside a local search; by itself 1.3 to 1.7 times.
CHECKED = 3.0
# Labels of a diagram that a second, or a unit of counted work, is enough for.
LABELS_A_SECOND = 500_000

# List scheduling. Percent of a task, or of what a block saves, by which passes wait: fewer were .7 % longer.
WAITS = (0, 25, 50, 100, 200)
FIRST_WAIT = WAITS[2]
# Micro-batches in flight, in percent of what Little's law gives, None without limit; a few more or changes at once.
IN_FLIGHT = (*range(100, 301, 25), None)
FEW = 3
# Random rules by ranks; changes without a gain, a stage; moves of annealing, a unit; counted work of a slice.
RUNS = 200
# Runs that take as long as one with its exact times and judgement, amply.
RUNS_TO_OFFER = 8
# Serial generation of tasks: periods between micro-batches, and how much later weight tasks come up.
APART, LATER = (1 / 2, 3 / 4, 1), (0, 1 / 2, 1)

# Annealing: the temperature of the first move, in mean lengths of a pass, run after run; the last one's is so much
# lower. The gentlest first is .3 % worse.
HEATS = (1 / 4, 1 / 32, 1, 1 / 16)
COLDER = 8
# The weight of the mean over devices in the energy; moves into idle time; moves of modes where these are open.
EVENNESS, FILLING, CHANGING = 0.3, 0.1, 0.2

# Places that a unit is moved by at most.
REACH = 8
# A round that finds nothing better is followed by one so much longer; a window that is solved to its end by one so
# much larger, one that is not by one so much smaller.
GROWTH = 1.1
# The first temperature of tasks, as a share of the end; walks among schedules of one value: moves, and samples of the
# noise that stands for slack.
TEMPERATURE, WALK_MOVES, WALK_SAMPLES = 0.005, 20_000, 64
# Moves of annealing that a unit of counted work stands for.
COUNTED_MOVES = 5_000
# Tasks of a window for CP-SAT at first.
WINDOW = 60.0

# Tabu search: steps for which a move is not undone, to twice as many; places that a job moves by.
TENURE, TABU_FAR = 8, 40

# CP-SAT. Order literals beyond which nothing is refuted in a minute; the least share of the gap that is asked for.
FEW_LITERALS, LEAST_ASKED = 12_000, 1 / 32
# Copies of a period that are looked for.
COPIES = 8

# Restricted diagrams. Orders of a state are doubled up to this.
MOST_ORDERS = 128
# Nodes of a layer at first.
BEAM_WIDTH = 100
# Mean forwards that something is passed over for what follows a forward; weights of the longest device, of the mean
# over devices, of that over micro-batches; how many times as long as without a wait activations are held; and how many
# nodes of those that ran the same passes stay. Of nine tried with 150 nodes on 120 problems the three that together are
# within .4 % of the best of all; without the memory 3.6 to 6.4 %.
BEAM_PREFERENCES = ((0.0, 0.0, 10.0, 0.5, 1.5, 2), (0.0, 3.0, 10.0, 1.0, 0.0, 4), (1.0, 0.0, 10.0, 0.5, 2.0, 1))
# Numbers at most that a search keeps at once, of four or eight bytes.
MOST_NUMBERS = 50_000_000

# Relaxed diagrams. Labels of a state, few to many; labels looked at in all, and for a first or one of many tries.
WIDTHS, MOST_LABELS, FEW_LABELS = (8, 64, 512), 200_000_000, 10_000_000
# Devices beside the first, or chains, that a diagram keeps together at most: with blocks half as many.
TOGETHER = 4
# Values are tried in steps of first so much of the gap; the shortest are so much shorter. With a guide the other way.
VALUE_STEP, VALUE_SHORTEST = 16, 4

# States counted before they are looked at, of which memory leaves out many, up to so many times those that there are.
OVERSTATED = 8

# Policies: numbers move by their size over up to two to this.
POLICY_LEAST = 8

# Plans, on drawn plan files (`benchmarks.freedom`) and examples. Of the time limit, the part for first plans, bounds,
# and half of that for partitions and orders together; and a step; seconds or units that a step takes at least.
PLAN_SHARE, PLAN_STEP, PLAN_LEAST = 0.2, 0.05, 0.2
# Quick tries, or steps of a search, of a unit of counted work; tries of what mostly brings nothing.
PLAN_STEPS, PLAN_TRIES = 200, 4
# Seconds, or units, for why there is no plan.
REASON = 5.0
# Stages up to which pairs of cuts move together; passes simulated for the most even plan of a value.
PLAN_PAIRS, EVENED_PASSES = 24, 200_000
# First temperatures of partitions and orders together, as shares of the value; moves of a short annealing of an order
# at most, and moves times passes; the weight of uneven loads.
JOINT_HEATS, JOINT_MOVES, JOINT_WORK, JOINT_EVENNESS = (0.003, 0.0003, 0.01, 0.001), 4_000, 1_500_000, 0.1
# States of a bound by device with their ways to recompute, beyond which nothing is refuted; how near it comes; ways of
# a stage that are told apart.
PARTITION_STATES, PARTITION_NEAR, PARTITION_WAYS = 400_000, 2_000, 32
