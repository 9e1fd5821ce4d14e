//! What one pass of a metadata job consists of: the phases that were asked for, and around them the unmeasured
//! steps that make what they need and remove what they leave.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::job::MetadataJob;
use crate::volume::names::Operation;

/// The first letter of what a step works on.
pub const FILE: u8 = b'f';
pub const RENAMED: u8 = b'r';
pub const DIRECTORY: u8 = b'd';
pub const TREE: u8 = b't';
pub const NOTHING: u8 = b'-';
/// What comes first where the storage is connected to: nothing but that, so that no phase waits for it.
pub const CONNECT: Step = Step {
    operation: Operation::Open,
    letter: NOTHING,
    measured: false,
};
/// What comes before the first pass.
pub const MAKE_TREE: Step = Step {
    operation: Operation::Mkdir,
    letter: TREE,
    measured: false,
};

/// One step; all threads do it together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub operation: Operation,
    /// The first letter of the names that it works on.
    pub letter: u8,
    pub measured: bool,
}

/// The steps of one pass, or why the operations cannot follow each other.
pub fn of(job: &MetadataJob) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut state = State::default();
    for (index, operation) in job.operations.iter().copied().enumerate() {
        if job.operations[..index].contains(&operation) {
            return Err(format!("operations: {} is given twice", operation.name()));
        }
        state.before(operation, &mut steps)?;
        steps.push(Step {
            operation,
            letter: state.letter_of(operation),
            measured: true,
        });
        state.after(operation);
    }
    state.clear(&mut steps);
    Ok(steps)
}

/// What exists between two steps. `None`: not said yet, so it can still be made beforehand.
#[derive(Debug, Default)]
struct State {
    files: Option<bool>,
    directories: Option<bool>,
    renamed: bool,
}

impl State {
    fn letter_of(&self, operation: Operation) -> u8 {
        match operation {
            Operation::Mkdir | Operation::Rmdir => DIRECTORY,
            _ if self.renamed => RENAMED,
            _ => FILE,
        }
    }

    fn before(&mut self, operation: Operation, steps: &mut Vec<Step>) -> Result<(), String> {
        let (state, making) = match operation {
            Operation::FirstByte => return Ok(()),
            Operation::Mkdir | Operation::Rmdir => (&mut self.directories, Operation::Mkdir),
            _ => (&mut self.files, Operation::Create),
        };
        let makes = operation == making;
        match (*state, makes) {
            (Some(true), true) => Err(format!(
                "operations: {} comes when what it makes is there already",
                operation.name()
            )),
            (Some(false), false) => Err(format!(
                "operations: {} comes when what it needs was removed",
                operation.name()
            )),
            (None, false) => {
                *state = Some(true);
                steps.push(Step {
                    operation: making,
                    letter: if making == Operation::Mkdir {
                        DIRECTORY
                    } else {
                        FILE
                    },
                    measured: false,
                });
                Ok(())
            }
            (None | Some(false), true) | (Some(true), false) => Ok(()),
        }
    }

    fn after(&mut self, operation: Operation) {
        match operation {
            Operation::Create => (self.files, self.renamed) = (Some(true), false),
            Operation::Unlink => self.files = Some(false),
            Operation::Mkdir => self.directories = Some(true),
            Operation::Rmdir => self.directories = Some(false),
            Operation::Rename => self.renamed = true,
            _ => {}
        }
    }

    fn clear(&self, steps: &mut Vec<Step>) {
        for (state, operation) in [
            (self.files, Operation::Unlink),
            (self.directories, Operation::Rmdir),
        ] {
            if state == Some(true) {
                steps.push(Step {
                    operation,
                    letter: self.letter_of(operation),
                    measured: false,
                });
            }
        }
    }
}

/// One tree. Directories are numbered level by level from its top, 0.
#[derive(Debug, Clone)]
pub struct Tree {
    top: PathBuf,
    branch: u64,
    directories: u64,
    items: u64,
}

impl Tree {
    /// The tree in which `thread` works.
    pub fn of(job: &MetadataJob, thread: u32) -> Self {
        let owner = if job.private { thread } else { 0 };
        Self {
            top: job.directory.join(format!("{}.{owner}", job.prefix)),
            branch: u64::from(job.branch),
            directories: job.directories(),
            items: job.files,
        }
    }

    /// How many directories there are.
    pub fn directories(&self) -> u64 {
        self.directories
    }

    /// The path of a directory.
    pub fn path(&self, directory: u64) -> PathBuf {
        let mut parts = Vec::new();
        let mut place = directory;
        while place > 0 {
            parts.push(format!("t{}", (place - 1) % self.branch));
            place = (place - 1) / self.branch;
        }
        let mut path = self.top.clone();
        path.extend(parts.iter().rev().map(Path::new));
        path
    }

    /// The items of a thread in a directory: all its items, spread evenly.
    pub fn items(&self, directory: u64) -> Range<u64> {
        let share = |upto: u64| {
            let product = u128::from(upto) * u128::from(self.items);
            (product / u128::from(self.directories)) as u64
        };
        share(directory)..share(directory + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::job::tests::example;
    use proptest::prelude::*;
    use serde_json::json;

    fn steps(operations: &[&str]) -> Vec<(&'static str, char, bool)> {
        let mut job = example();
        job["operations"] = serde_json::json!(operations);
        let job: MetadataJob = serde_json::from_value(job).unwrap();
        of(&job)
            .unwrap()
            .iter()
            .map(|step| {
                (
                    step.operation.name(),
                    char::from(step.letter),
                    step.measured,
                )
            })
            .collect()
    }

    #[test]
    fn what_a_phase_needs_is_made_before_it_and_what_is_left_is_removed() {
        assert_eq!(
            steps(&["stat"]),
            [
                ("create", 'f', false),
                ("stat", 'f', true),
                ("unlink", 'f', false)
            ]
        );
        assert_eq!(
            steps(&["mkdir", "create", "rename", "stat", "unlink"]),
            [
                ("mkdir", 'd', true),
                ("create", 'f', true),
                ("rename", 'f', true),
                ("stat", 'r', true),
                ("unlink", 'r', true),
                ("rmdir", 'd', false)
            ]
        );
    }

    #[test]
    fn a_whole_sequence_needs_nothing_around_it() {
        assert!(
            steps(&["create", "open", "unlink"])
                .iter()
                .all(|step| step.2)
        );
    }

    fn tree(branch: u32, depth: u32, files: u64) -> Tree {
        let mut job = example();
        (job["branch"], job["depth"], job["files"]) = (json!(branch), json!(depth), json!(files));
        Tree::of(&serde_json::from_value(job).unwrap(), 3)
    }

    proptest! {
        #[test]
        fn every_item_lies_in_one_directory(branch in 1_u32..5, depth in 0_u32..4, files in 1_u64..500) {
            let tree = tree(branch, depth, files);
            let mut next = 0;
            for directory in 0..tree.directories() {
                let items = tree.items(directory);
                prop_assert_eq!(items.start, next);
                next = items.end;
            }
            prop_assert_eq!(next, files);
        }
    }

    #[test]
    fn paths_go_down_the_tree() {
        let tree = tree(2, 2, 10);
        let paths: Vec<String> = (0..tree.directories())
            .map(|place| tree.path(place).display().to_string())
            .collect();
        assert_eq!(paths[0], "/nowhere/tree.3");
        assert_eq!(paths[2], "/nowhere/tree.3/t1");
        assert_eq!(paths[5], "/nowhere/tree.3/t1/t0");
        assert_eq!(paths.len(), 7);
    }
}
