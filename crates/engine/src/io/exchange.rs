//! What goes between a thread and those that do its calls: tasks out, ends back. Knows nothing of either.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct Board<T, E> {
    waiting: VecDeque<T>,
    ended: Vec<E>,
    closed: bool,
    left: usize,
}

/// One thread posts and collects; any number take tasks and give their ends.
pub struct Exchange<T, E> {
    board: Mutex<Board<T, E>>,
    posted: Condvar,
    finished: Condvar,
}

impl<T, E> Default for Exchange<T, E> {
    fn default() -> Self {
        Self {
            board: Mutex::new(Board {
                waiting: VecDeque::new(),
                ended: Vec::new(),
                closed: false,
                left: 0,
            }),
            posted: Condvar::new(),
            finished: Condvar::new(),
        }
    }
}

impl<T, E> Exchange<T, E> {
    fn lock(&self) -> MutexGuard<'_, Board<T, E>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands tasks over.
    pub fn post(&self, tasks: impl ExactSizeIterator<Item = T>) {
        let several = tasks.len() > 1;
        self.lock().waiting.extend(tasks);
        if several {
            self.posted.notify_all();
        } else {
            self.posted.notify_one();
        }
    }

    /// Waits for a task; `None` once nothing more will come.
    pub fn take(&self) -> Option<T> {
        let mut board = self.lock();
        loop {
            if let Some(task) = board.waiting.pop_front() {
                return Some(task);
            }
            if board.closed {
                return None;
            }
            board = self
                .posted
                .wait(board)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells the end of a task.
    pub fn give(&self, end: E) {
        self.lock().ended.push(end);
        self.finished.notify_one();
    }

    /// The board once it is as asked for, or as it is after `timeout`.
    fn board_when(
        &self,
        timeout: Duration,
        is_so: impl Fn(&Board<T, E>) -> bool,
    ) -> MutexGuard<'_, Board<T, E>> {
        let end = Instant::now() + timeout;
        let mut board = self.lock();
        while !is_so(&board) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            (board, _) = self
                .finished
                .wait_timeout(board, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
        board
    }

    /// Calls `each` with all ends, after waiting for `minimum` of them at most `timeout`.
    pub fn collect(&self, minimum: usize, timeout: Duration, each: impl FnMut(E)) {
        let mut board = self.board_when(timeout, |board| board.ended.len() >= minimum);
        board.ended.drain(..).for_each(each);
    }

    /// Nothing more comes: tasks that nobody took are dropped, and whoever waits for one goes.
    pub fn close(&self) {
        let mut board = self.lock();
        board.closed = true;
        let left = std::mem::take(&mut board.waiting);
        drop(board);
        drop(left);
        self.posted.notify_all();
    }

    /// Said last by one that took tasks, once it has let go of all that it held.
    pub fn leave(&self) {
        self.lock().left += 1;
        self.finished.notify_one();
    }

    /// Whether `number` have left, after waiting for them at most `timeout`.
    pub fn wait_left(&self, number: usize, timeout: Duration) -> bool {
        self.board_when(timeout, |board| board.left >= number).left >= number
    }
}
