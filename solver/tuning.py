"""All numbers by which a solve was tuned: they change how soon it is how good, never whether what it says is right.

Counted is each number literal here, and each of the kind elsewhere; one from which a series follows, or that serves in
several places without a loss, counts once. Not counted, and beside the code that it serves, is what memory or one call
of compiled code can take, what a check has as well, the resolution of whole numbers, and what is shown. Chosen on
problems of `benchmarks.random` whose seeds no table reports (35, 36; 51 to 59; 101), in CPU-seconds of one worker.
"""

from __future__ import annotations

# Time and work.
# Of so many passes each schedule takes a part of a second, so that schedules of fewer micro-batches are extended where
# they will do, and no schedule is tried any more once the optimum is proved.
MANY_PASSES = 20_000
# Of so few passes thousands of schedules are tried in a second: shorter problems of as many stand for long ones.
FEW_PASSES = 5_000
# Seconds that the first schedule of all may take although the time limit is shorter; that a window is solved for.
GRACE = 1.0
# About the seconds for each pass that a schedule takes to be timed and judged, and local search before its first move
# counts; and that stating the exact model takes.
SECONDS_A_PASS, STATING_SECONDS_A_PASS = 1e-4, 0.001
# Labels or states that a second, or a unit of counted work, is enough for; more states are not tried.
LABELS_A_SECOND = 500_000
# Of the time, or of what is left, for an opening, for code to be compiled, for one try of several;
# of moves, those of modes where these are open.
SHARE = 0.2
# Of the time, a step of a plan search; and how much worse than the best a plan may be that is annealed.
PLAN_STEP = 0.05
# Values closer than this share are not told apart.
NEAR = 0.001
# How many schedules a search keeps to go on from; far enough for a pass to move; tries of what may bring nothing.
KEPT = 6
# A few more or changes at once; how many times as long the next try of something is that begins anew, and, until one
# was measured, the check of a bound; what the longest that is left counts for beside the sum of all;
# and up to how many times as many states are counted beforehand as there are, of which memory leaves out many.
FEW = 3
# Random rules by ranks; changes without a gain, a stage; moves of annealing, a unit; counted work of a slice.
RUNS = 200
# Of the time, up to which parts that had a slice wait for the code of others on a first run. Of a minute without any
# code three of the fixed problems end at 2.2, 16.1 and 7.1 % without waiting, at .4 to 1.7, 10.5 and 2.5 % with it,
# with a fifth of the time at 1.6, 21 and 8.5 %.
WAITING = 1 / 2
# What a slice closed counts so much with the next one.
DISCOUNT = 0.5
# A little: the share of the gap that a part is hoped to close in as much time as it had so far; what stating its model
# took of a slice of CP-SAT from the bound up; of the moves of annealing those into idle time; the weights of uneven
# loads in a plan, and of micro-batches under way in beam search.
LITTLE = 0.1

# List scheduling. Percent of a task, or of what a block saves, by which passes wait: up to twice as long, and halves;
# fewer were .7 % longer.
WAITS = (0, *(200 >> halvings for halvings in range(FEW, -1, -1)))
FIRST_WAIT = WAITS[len(WAITS) // 2]
# Micro-batches in flight, in percent of what Little's law gives, None without limit.
IN_FLIGHT = (*(100 + wait for wait in WAITS), None)

# Annealing: the temperature of the first move, in mean lengths of a pass, run after run; the last one's is so much
# lower. The gentlest first is .3 % worse.
HEATS = (1 / 4, 1 / 32, 1, 1 / 16)
COLDER = 8
# The weight of the mean over devices in the energy.
EVENNESS = 0.3
# Places that a unit or job is moved by at most; steps for which tabu search does not undo it, to twice as many;
# halvings of a number of a policy by which it moves at least.
REACH = 8
# A round that finds nothing better is followed by one so much longer; a window that is solved to its end by one so
# much larger, one that is not by one so much smaller.
GROWTH = 1.1
# The first temperature of tasks, as a share of the value; those of partitions and orders together, round after round,
# are half decades from twice that.
TEMPERATURE = 0.005
JOINT_HEATS = tuple(2 * TEMPERATURE * LITTLE ** (half / 2) for half in (1, 3, 0, 2))
# Moves of a walk among schedules of one value, and of a run of tabu search; those that a unit of counted work stands
# for, and at most those of a short annealing of a plan's order.
WALK_MOVES, COUNTED_MOVES = 20_000, 5_000
# How finely is looked: samples of the noise that stands for slack, tails tried as the least of a set of tasks, parts of
# the gap that CP-SAT is asked for, and of the time for a first slice; tasks of a first window.
LEVELS = 64

# CP-SAT. Order literals beyond which nothing is refuted in a minute.
FEW_LITERALS = 12_000
# Copies of a period that are looked for.
COPIES = 8

# Restricted diagrams. Nodes of a layer at first.
BEAM_WIDTH = 100
# How many times as long as without a wait activations are held; nodes that stay of those that ran the same passes. Of
# twelve preferences tried with 60 nodes on 17 problems of seeds 35 and 36 the three of `BeamSchedules` are together
# .2 % above the best of all, three of six numbers each were 2.2 %; without the memory single ones are 5 to 40 %.
BEAM_MEMORY, BEAM_ALIKE = 1.5, 2
# Numbers at most that a search keeps at once, of four or eight bytes.
MOST_NUMBERS = 50_000_000

# Diagrams. Labels of a state, up to which orders of a state are doubled; labels looked at in all. Few states ever have
# more, so that many labels cost about as much as few: 8 and 64 took up to 60 % more work to the same bound on 17
# problems of seeds 35 and 36 and of the Zero Bubble papers.
WIDTH = 512
MOST_LABELS = 200_000_000
# Devices beside the first, or chains, that a diagram keeps together at most: with blocks half as many.
TOGETHER = 4
# Values are tried in steps of first so much of the gap; the shortest are so much shorter. With a guide the other way.
VALUE_STEP, VALUE_SHORTEST = 16, 4
# States or labels that are soon looked at.
FEW_STATES = 10_000

# Plans, on drawn plan files (`benchmarks.freedom`) and examples. Stages up to which pairs of cuts move together; states
# of a bound by device, each with its ways to recompute, beyond which nothing is refuted.
PLAN_PAIRS, PARTITION_STATES = 24, 400_000
