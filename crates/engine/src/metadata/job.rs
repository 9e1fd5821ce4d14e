//! A metadata job, every default explicit, and the refusal of contradictions.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::job::{self, located, present, require, require_common};
use crate::schemes::Location;
use crate::volume::names::Operation;

/// The format of the JSON that `MetadataJob::parse` reads.
pub const FORMAT: &str = "leadline.metadata/1";
const THREADS_MAX: u32 = 1024;
/// What ten digits of a name tell apart.
const FILES_MAX: u64 = 10_000_000_000;
/// Deeper, paths are longer than the kernel takes.
const DEPTH_MAX: u32 = 100;
const DIRECTORIES_MAX: u64 = 1 << 20;
const FILE_BYTES_MAX: u64 = 1 << 30;

/// One trial's metadata job. `files` is per numjob, and is the number of directories for mkdir and rmdir.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetadataJob {
    pub format: String,
    pub trial: String,
    pub directory: PathBuf,
    pub prefix: String,
    /// Phases, in order.
    pub operations: Vec<Operation>,
    pub files: u64,
    /// The tree below each owner's directory: `branch` directories in each, `depth` levels deep.
    pub branch: u32,
    pub depth: u32,
    /// A tree for each thread; else one for all.
    pub private: bool,
    /// Bytes that `create` writes, or that `first_byte` finds.
    pub file_size: u64,
    /// Bytes that `first_byte` reads.
    pub bs: u64,
    /// Whether `first_byte` reads past the page cache.
    #[serde(default)]
    pub direct: bool,
    pub numjobs: u32,
    /// Whole passes over all phases until the runtime is over; else one.
    pub time_based: bool,
    pub runtime_ns: u64,
    pub seed: u64,
    pub generation: u32,
    pub interval_ns: u64,
    pub deadline_ns: u64,
    #[serde(deserialize_with = "present")]
    pub parent_pid: Option<i32>,
    /// Where `directory` is, when no mount holds it: a URL.
    #[serde(default, deserialize_with = "located")]
    pub location: Option<Location>,
}

impl MetadataJob {
    /// Reads and validates. Every error names the key and what would be right.
    pub fn parse(json: &str) -> Result<Self, EngineError> {
        let job: Self = job::read(json)?;
        job.validate()?;
        Ok(job)
    }

    /// Directories of one tree, its top included.
    pub fn directories(&self) -> u64 {
        let mut level = 1_u64;
        let mut sum = 1_u64;
        for _ in 0..self.depth {
            level = level.saturating_mul(u64::from(self.branch));
            sum = sum.saturating_add(level);
            if sum > DIRECTORIES_MAX {
                break;
            }
        }
        sum
    }

    /// Operations of one pass over all phases, all threads.
    pub fn pass_operations(&self) -> u64 {
        let items = self.files * u64::from(self.numjobs);
        let trees = if self.private {
            u64::from(self.numjobs)
        } else {
            1
        };
        let count = |operation: &Operation| match operation {
            Operation::Readdir => self.directories() * trees,
            _ => items,
        };
        self.operations.iter().map(count).sum()
    }

    /// True where the files were laid out beforehand, and there is no tree.
    pub fn reads_laid_out_files(&self) -> bool {
        self.operations == [Operation::FirstByte]
    }

    fn validate(&self) -> Result<(), EngineError> {
        require_common(
            (&self.format, FORMAT),
            &self.prefix,
            &self.directory,
            self.interval_ns,
        )?;
        require((1..=FILES_MAX).contains(&self.files), || {
            format!("files: {} must be from 1 to {FILES_MAX}", self.files)
        })?;
        require((1..=THREADS_MAX).contains(&self.numjobs), || {
            format!("numjobs: {} must be from 1 to {THREADS_MAX}", self.numjobs)
        })?;
        require(self.depth <= DEPTH_MAX, || {
            format!("depth: {} must be at most {DEPTH_MAX}", self.depth)
        })?;
        require(self.branch > 0, || "branch: must be at least 1".to_owned())?;
        require(self.directories() <= DIRECTORIES_MAX, || {
            format!(
                "depth: branch {} and depth {} make more than {DIRECTORIES_MAX} directories",
                self.branch, self.depth
            )
        })?;
        require(self.file_size <= FILE_BYTES_MAX, || {
            format!(
                "file_size: {} must be at most {FILE_BYTES_MAX}",
                self.file_size
            )
        })?;
        require(!self.time_based || self.runtime_ns > 0, || {
            "runtime_ns: time_based needs a runtime above 0".to_owned()
        })?;
        require(self.deadline_ns > self.runtime_ns, || {
            "deadline_ns: must be beyond runtime_ns".to_owned()
        })?;
        self.validate_operations()
    }

    fn validate_operations(&self) -> Result<(), EngineError> {
        require(!self.operations.is_empty(), || {
            "operations: name at least one".to_owned()
        })?;
        let alone = self.reads_laid_out_files();
        require(
            alone || !self.operations.contains(&Operation::FirstByte),
            || {
                "operations: first_byte reads files that were laid out beforehand, so it stands alone".to_owned()
            },
        )?;
        require(!alone || (1..=self.file_size).contains(&self.bs), || {
            format!(
                "bs: first_byte reads from 1 byte to file_size ({}), not {}",
                self.file_size, self.bs
            )
        })?;
        let laid_out = self.files * u64::from(self.numjobs);
        require(!alone || laid_out <= job::FILES_MAX, || {
            let most = job::FILES_MAX;
            format!(
                "files: files x numjobs is {laid_out}, and at most {most} are laid out for first_byte"
            )
        })?;
        let steps = super::steps::of(self).map_err(EngineError::Job)?;
        let needed = steps.iter().map(|step| step.operation);
        self.validate_location(needed)
    }

    /// What is made beforehand and removed afterwards counts too.
    fn validate_location(
        &self,
        mut needed: impl Iterator<Item = Operation>,
    ) -> Result<(), EngineError> {
        let Some(location) = &self.location else {
            return Ok(());
        };
        let scheme = location.described();
        let lacking = needed.find(|operation| !scheme.operations.contains(operation));
        require(lacking.is_none(), || {
            let lacking = lacking.map_or("", Operation::name);
            format!(
                "operations: {}:// has no {lacking}; leave it out, or leave this target out",
                scheme.name
            )
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A small valid job that tests change.
    pub fn example() -> Value {
        json!({
            "format": FORMAT, "trial": "t0001", "directory": "/nowhere", "prefix": "tree",
            "operations": ["create", "stat", "unlink"], "files": 100, "branch": 1, "depth": 0, "private": true,
            "file_size": 0, "bs": 4096, "numjobs": 1, "time_based": false, "runtime_ns": 0, "seed": 1,
            "generation": 1, "interval_ns": 100_000_000, "deadline_ns": 60_000_000_000_u64, "parent_pid": null
        })
    }

    fn refusal(changes: Value) -> String {
        let mut job = example();
        for (key, value) in changes.as_object().unwrap() {
            job[key] = value.clone();
        }
        MetadataJob::parse(&job.to_string())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn every_missing_key_is_named() {
        for key in example().as_object().unwrap().keys() {
            let mut job = example();
            job.as_object_mut().unwrap().remove(key);
            let text = MetadataJob::parse(&job.to_string())
                .unwrap_err()
                .to_string();
            assert!(text.contains(key.as_str()), "{key}: {text}");
        }
    }

    #[test]
    fn contradictions_name_the_key() {
        for (changes, key) in [
            (json!({"files": 0}), "files"),
            (json!({"branch": 10, "depth": 9}), "depth"),
            (json!({"operations": []}), "operations"),
            (json!({"operations": ["create", "create"]}), "operations"),
            (json!({"operations": ["unlink", "stat"]}), "operations"),
            (
                json!({"operations": ["create", "first_byte"]}),
                "operations",
            ),
            (json!({"operations": ["first_byte"]}), "bs"),
            (
                json!({"operations": ["first_byte"], "file_size": 4096, "files": 1 << 20, "numjobs": 2}),
                "files x numjobs is 2097152",
            ),
            (json!({"operations": ["erase"]}), "erase"),
            (json!({"time_based": true}), "runtime_ns"),
            (json!({"prefix": "a/b"}), "prefix"),
            (
                json!({"location": "rados://p", "operations": ["mkdir"]}),
                "rados:// has no mkdir",
            ),
            (json!({"location": "ftp://p"}), "no scheme"),
        ] {
            let text = refusal(changes.clone());
            assert!(text.contains(key), "{changes}: {text}");
        }
    }

    #[test]
    fn a_tree_has_the_directories_of_its_branches() {
        let mut job = example();
        (job["branch"], job["depth"]) = (json!(4), json!(2));
        let job = MetadataJob::parse(&job.to_string()).unwrap();
        assert_eq!(job.directories(), 1 + 4 + 16);
    }
}
