"""The programs of `bench/drishti.py`: what is wrong with each, and which words of which tool say so.

`right` names what is wrong. `also` is true of the program, too, as it was made, and is no wrong accusation.
All else of a tool's findings is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

# Drishti says it of every program without MPI-IO, and none here has any: counted apart.
NO_MPI_IO = "M01"
# A verdict on the program, and no accusation of its I/O.
NO_ACCUSATION = frozenset(
    {"bound_by_compute", "waiting_asleep", "waiting_for_locks", "waiting_for_others", "waiting_for_cpus"}
)


@dataclass(frozen=True)
class HabitCase:
    """A habit of `floors/io_habits.c`; `words` say to people what it does."""

    name: str
    words: str
    leadline: frozenset[str] = frozenset()
    drishti: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()
    ranks: int = 1

    @property
    def clean(self) -> bool:
        """Nothing is wrong with it."""
        return not self.leadline | self.drishti

    def right(self, tool: str) -> frozenset[str]:
        """What names its problem in the words of a tool."""
        return self.drishti if tool == "drishti" else self.leadline


def case(name: str, words: str, leadline: str = "", drishti: str = "", also: str = "") -> HabitCase:
    """Codes as words of a line."""
    codes = (frozenset(text.split()) for text in (leadline, drishti, also))
    return HabitCase(name, words, *codes)


_UNALIGNED = "whole pieces of 256 KiB that begin 512 B into a block"
CASES = (
    # Seven of eight begin inside a block.
    case("small_reads", "reads of 512 B in a row", "small_reads", "P05", "P08"),
    case("small_writes", "writes of 512 B in a row", "small_writes", "P06", "P08"),
    # Requests of 4 KiB are small, and there are more than a thousand of them.
    case("random_reads", "reads of 4 KiB anywhere", "random_reads", "P11", "P05"),
    case("random_writes", "writes of 4 KiB anywhere", "random_writes", "P13", "P06"),
    case(
        "backward_reads",
        "a file from its end to its beginning in 64 KiB",
        "read_ahead_defeated random_reads",
        "P11",
        "P05",
    ),
    case("misaligned_reads", f"reads of {_UNALIGNED}", "misaligned", "P08"),
    case("misaligned_writes", f"writes of {_UNALIGNED}", "misaligned", "P08"),
    case("read_again", "the same 16 MiB read 8 to 12 times", "reread", "P09"),
    case("written_again", "the same 16 MiB written 8 to 12 times", "rewritten", "P10"),
    case("many_opens", "one file opened 6,000 to 9,000 times", "repeated_opens", "P17", "mostly_metadata"),
    case("polling", "one file looked at 20,000 to 30,000 times", "repeated_stats", "P17", "mostly_metadata"),
    # Each of them is a write of 64 B.
    case("small_files", "2,700 to 4,000 new files of 64 B", "mostly_metadata", "P17", "P06"),
    case("sync_each", "fdatasync after each write of 64 KiB", "sync_bound"),
    case("stdio_unbuffered", "fprintf of lines without a buffer", "small_writes", "S01", "P06 P08"),
    case("stdio_default", "fprintf of lines with the default buffer", "small_writes", "S01", "P06"),
    case("large_reads", "a file in 4 MiB"),
    case("large_writes", "a new file in 4 MiB"),
    case("copy", "a file to another in 4 MiB"),
    case("configured", "four looks at settings, then a new file in 4 MiB"),
    case("compute", "8 MiB read, half a second of sums, 4 MiB written"),
)
RANKED = (
    HabitCase(
        "imbalance",
        "rank 0 of 4 writes 128 MiB of a shared file, the others 1 MiB each",
        frozenset({"imbalance_processes"}),
        frozenset({"P18", "P19", "P21"}),
        frozenset({"sync_bound"}),  # each rank ends with an fsync, and it may take most of the time
        4,
    ),
    HabitCase(
        "balance", "4 ranks write 32 MiB of a shared file each", also=frozenset({"sync_bound"}), ranks=4
    ),
)
