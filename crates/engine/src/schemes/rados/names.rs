//! Names of objects: a file's first block, out of its first object. RADOS has neither directories nor attributes of
//! files, so that it lists no other operation.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;

use super::volume::object_name;
use crate::sys::ceph::librados::Context;
use crate::volume::names::{Names, WholePath};

/// One thread's place in a pool.
pub struct ObjectNames {
    context: Arc<Context>,
    path: WholePath,
    object: CString,
}

impl ObjectNames {
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            path: WholePath::default(),
            object: CString::default(),
        }
    }
}

impl Names for ObjectNames {
    fn enter(&mut self, directory: &Path) -> i32 {
        let directory = CString::new(directory.to_string_lossy().as_bytes());
        self.path.enter(&directory.unwrap_or_default());
        0
    }

    fn leave(&mut self) {}

    /// Nothing is asked of the cluster: objects are not opened.
    fn open(&mut self, name: &CStr, _direct: bool) -> i32 {
        let file = self.path.of(name).to_string_lossy();
        self.object = object_name(&file, 0, 1);
        0
    }

    fn read(&mut self, buffer: &mut [u8]) -> i32 {
        self.context.read(&self.object, buffer, 0) as i32
    }

    fn close(&mut self) -> i32 {
        0
    }
}
