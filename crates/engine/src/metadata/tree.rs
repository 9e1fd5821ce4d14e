//! The directories that items lie in: a tree of given branch and depth, and which items each directory has.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::job::MetadataJob;

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
