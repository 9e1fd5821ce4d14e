//! The cutter of operations into pieces, for engines that hand a library each piece by itself: how an operation is
//! cut, what has become of its pieces, and the engine that is the same for all of them.

use std::time::Duration;

use crate::error::Failure;
use crate::io::{Completion, Direction, Engine, Operation, Queueing, Setup};

/// How far a piece goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// To the next multiple of so many bytes of the file, where another object begins.
    At(u64),
    /// So many bytes, from wherever it begins.
    Every(u64),
    /// Nowhere; also of an operation without bytes, which is one piece.
    Whole,
}

/// A part of an operation: `length` bytes at `offset` of the file, to or from `start` of the slot's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub offset: u64,
    pub start: usize,
    pub length: usize,
}

/// The piece of an operation that is left, from `offset` on.
fn next_piece(cut: Cut, (offset, start, left): (u64, usize, usize)) -> Piece {
    let room = match cut {
        Cut::At(unit) => unit - offset % unit,
        Cut::Every(bytes) => bytes,
        Cut::Whole => u64::MAX,
    };
    let length = usize::try_from(room).unwrap_or(usize::MAX).min(left);
    Piece {
        offset,
        start,
        length,
    }
}

/// The pieces of an operation, in order; at least one.
pub fn cut(operation: Operation, cut: Cut) -> impl Iterator<Item = Piece> {
    let bytes = match operation.direction {
        Direction::Sync => 0,
        Direction::Read | Direction::Write => operation.length as usize,
    };
    let mut next = Some((operation.offset, operation.start as usize, bytes));
    std::iter::from_fn(move || {
        let (offset, start, left) = next?;
        let piece = next_piece(cut, (offset, start, left));
        let left = left - piece.length;
        next = (left > 0).then_some((offset + piece.length as u64, start + piece.length, left));
        Some(piece)
    })
}

/// How many pieces an operation of `bytes` has at most.
pub fn pieces_max(bytes: usize, cut: Cut) -> u32 {
    match cut {
        Cut::At(unit) => (bytes as u64).div_ceil(unit) as u32 + 1,
        Cut::Every(most) => (bytes as u64).div_ceil(most) as u32,
        Cut::Whole => 1,
    }
}

/// What has become of an operation's pieces.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Pieces that have not ended.
    left: u32,
    pieces: u32,
    /// The worst error.
    error: i64,
}

/// The operations of all slots, each in pieces.
struct Board {
    pieces_max: u32,
    slots: Vec<Progress>,
    /// Of each piece of each slot: bytes asked for, and moved.
    moved: Vec<(u32, u32)>,
}

impl Board {
    fn new(slots: u32, pieces_max: u32) -> Self {
        Self {
            pieces_max,
            slots: vec![Progress::default(); slots as usize],
            moved: vec![(0, 0); (slots * pieces_max) as usize],
        }
    }

    /// Starts all pieces of an operation by `start`, which gives 0 or minus errno; the operation's result, where none
    /// was started.
    fn begin(
        &mut self,
        slot: u32,
        pieces: impl Iterator<Item = Piece>,
        mut start: impl FnMut(u32, Piece) -> i64,
    ) -> Option<i64> {
        let mut state = Progress::default();
        for piece in pieces {
            let result = start(state.left, piece);
            if result < 0 {
                state.error = result;
                break;
            }
            let number = (slot * self.pieces_max + state.left) as usize;
            self.moved[number] = (piece.length as u32, 0);
            state.left += 1;
        }
        state.pieces = state.left;
        self.slots[slot as usize] = state;
        (state.left == 0).then_some(state.error)
    }

    /// Takes a piece's result; the operation's, when this was its last piece: bytes from the beginning without a gap,
    /// or an error.
    fn settle(&mut self, slot: u32, piece: u32, result: i64) -> Option<i64> {
        let (state, first) = (&mut self.slots[slot as usize], slot * self.pieces_max);
        state.left -= 1;
        if result < 0 {
            state.error = state.error.min(result);
        } else {
            self.moved[(first + piece) as usize].1 = result as u32;
        }
        if state.left > 0 {
            return None;
        }
        if state.error < 0 {
            return Some(state.error);
        }
        let mut whole = 0;
        for (asked, found) in &self.moved[first as usize..(first + state.pieces) as usize] {
            whole += i64::from(*found);
            if found < asked {
                break;
            }
        }
        Some(whole)
    }
}

/// A library whose calls take one piece each, and return before it has ended.
pub trait Pieced: Sized {
    /// Opens the files; how many pieces an operation has at most.
    fn start(setup: &Setup) -> Result<(Self, u32), Failure>;

    /// What a reader of the result should know.
    fn notes(&self) -> Vec<String>;

    /// The buffer of a slot without a piece in flight.
    fn buffer(&mut self, slot: u32) -> &mut [u8];

    /// How an operation is cut; `None`: it has ended as it began.
    fn cut(&self, operation: &Operation) -> Option<Cut>;

    /// Starts a piece of the slot's operation: 0, or minus errno, and then nothing was started.
    fn begin(&mut self, place: (u32, u32), operation: &Operation, piece: Piece) -> i64;

    /// Sends what was started, where that is not done yet.
    fn push(&mut self) {}

    /// Calls `settle` with (slot, piece, bytes or minus errno) of every piece that has ended, after waiting for one
    /// at most `timeout`.
    fn reap(&mut self, timeout: Duration, settle: impl FnMut(u32, u32, i64));
}

/// The engine of such a library: one thread's files.
pub struct InPieces<L> {
    library: L,
    board: Board,
    waiting: Vec<(u32, Operation)>,
    /// Ended without the library: syncs that it needs not, and operations that were refused at once.
    ended: Vec<Completion>,
}

impl<L: Pieced> Engine for InPieces<L> {
    fn start(setup: &Setup) -> Result<Self, Failure> {
        let (library, pieces_max) = L::start(setup)?;
        let depth = setup.depth as usize;
        Ok(Self {
            library,
            board: Board::new(setup.depth, pieces_max),
            waiting: Vec::with_capacity(depth),
            ended: Vec::with_capacity(depth),
        })
    }

    fn notes(&self) -> Vec<String> {
        self.library.notes()
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.library.buffer(slot)
    }
}

impl<L: Pieced> Queueing for InPieces<L> {
    #[inline]
    fn queue(&mut self, slot: u32, operation: Operation) {
        self.waiting.push((slot, operation));
    }

    fn submit(&mut self) -> Result<(), i32> {
        let library = &mut self.library;
        for (slot, operation) in self.waiting.drain(..) {
            let result = match library.cut(&operation) {
                None => Some(0),
                Some(how) => self.board.begin(slot, cut(operation, how), |piece, part| {
                    library.begin((slot, piece), &operation, part)
                }),
            };
            if let Some(result) = result {
                self.ended.push(Completion { slot, result });
            }
        }
        library.push();
        Ok(())
    }

    fn reap(
        &mut self,
        minimum: u32,
        timeout_ns: u64,
        completions: &mut Vec<Completion>,
    ) -> Result<(), i32> {
        completions.append(&mut self.ended);
        let waits = completions.len() < minimum as usize;
        let span = Duration::from_nanos(if waits { timeout_ns } else { 0 });
        let board = &mut self.board;
        self.library.reap(span, |slot, piece, result| {
            if let Some(result) = board.settle(slot, piece, result) {
                completions.push(Completion { slot, result });
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn operation(direction: Direction, offset: u64, length: u32) -> Operation {
        Operation {
            direction,
            file: 0,
            offset,
            start: 3,
            length,
            data_only: false,
        }
    }

    #[test]
    fn pieces_end_where_objects_do() {
        let found: Vec<_> = cut(operation(Direction::Read, 90, 120), Cut::At(100))
            .map(|piece| (piece.offset, piece.start, piece.length))
            .collect();
        assert_eq!(found, [(90, 3, 10), (100, 13, 100), (200, 113, 10)]);
    }

    #[test]
    fn a_sync_is_one_piece_without_bytes() {
        let found: Vec<_> = cut(operation(Direction::Sync, 0, 64), Cut::Whole).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].length, 0);
    }

    #[test]
    fn what_was_moved_ends_at_the_first_gap_and_an_error_beats_it() {
        let pieces = || cut(operation(Direction::Read, 0, 300), Cut::Every(100));
        for (results, whole) in [
            ([100, 100, 100], 300),
            ([100, 60, 100], 160),
            ([100, -5, -7], -7),
        ] {
            let mut board = Board::new(1, 3);
            assert_eq!(board.begin(0, pieces(), |_, _| 0), None);
            assert_eq!(board.settle(0, 2, results[2]), None);
            assert_eq!(board.settle(0, 0, results[0]), None);
            assert_eq!(board.settle(0, 1, results[1]), Some(whole));
        }
        let mut board = Board::new(1, 3);
        assert_eq!(board.begin(0, pieces(), |_, _| -9), Some(-9));
        let from_second = |piece, _| if piece == 1 { -9 } else { 0 };
        assert_eq!(board.begin(0, pieces(), from_second), None);
        assert_eq!(board.settle(0, 0, 100), Some(-9));
    }

    proptest! {
        #[test]
        fn pieces_are_the_operation_and_no_more_than_was_said(
            offset in 0_u64..1_000_000, length in 1_u32..100_000, unit in 1_u64..70_000, at in any::<bool>(),
        ) {
            let how = if at { Cut::At(unit) } else { Cut::Every(unit) };
            let (mut next, mut start, mut count) = (offset, 3, 0);
            for piece in cut(operation(Direction::Write, offset, length), how) {
                prop_assert_eq!((piece.offset, piece.start), (next, start));
                prop_assert!(piece.length > 0);
                next += piece.length as u64;
                start += piece.length;
                count += 1;
            }
            prop_assert_eq!(next, offset + u64::from(length));
            prop_assert!(count <= pieces_max(length as usize, how));
        }
    }
}
