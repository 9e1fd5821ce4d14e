//! Names of S3: keys below a prefix. A file is the first of its objects; there are no directories, and no renames.

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

use super::connection::Connection;
use super::objects;
use super::store::{Problem, Store};
use super::volume::Caller;
use crate::volume::names::Names;

/// One thread's connection, prefix, and open file.
pub struct KeyNames {
    store: Arc<Store>,
    caller: Caller,
    directory: String,
    key: String,
    /// What a new file is given, until it is closed.
    fresh: Option<Vec<u8>>,
}

impl KeyNames {
    pub fn new(store: Arc<Store>, caller: Caller) -> Self {
        Self {
            store,
            caller,
            directory: String::new(),
            key: String::new(),
            fresh: None,
        }
    }

    fn point(&mut self, name: &CStr) {
        let path = format!("{}/{}", self.directory, name.to_string_lossy());
        self.key = self.store.object_key(&path, 0);
    }

    fn call(
        &mut self,
        work: impl AsyncFnOnce(&Store, &mut Connection, &str) -> Result<usize, Problem>,
    ) -> i32 {
        let Caller {
            runtime,
            connection,
        } = &mut self.caller;
        match runtime.block_on(work(&self.store, connection, &self.key)) {
            Ok(count) => count as i32,
            Err(problem) => -problem.errno,
        }
    }
}

impl Names for KeyNames {
    fn enter(&mut self, directory: &Path) -> i32 {
        self.directory = directory.to_string_lossy().into_owned();
        0
    }

    fn make_tree_directory(&mut self, _path: &Path) -> i32 {
        0
    }

    fn create(&mut self, name: &CStr) -> i32 {
        self.point(name);
        self.fresh = Some(Vec::new());
        0
    }

    fn open(&mut self, name: &CStr, _direct: bool) -> i32 {
        self.point(name);
        self.fresh = None;
        0
    }

    fn write(&mut self, data: &[u8], _offset: u64) -> i32 {
        match &mut self.fresh {
            Some(bytes) => {
                bytes.extend_from_slice(data);
                0
            }
            None => -libc::EBADF,
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> i32 {
        self.call(async |store, connection, key| {
            objects::get(store, connection, key, (0, buffer)).await
        })
    }

    /// A new object is put whole, when it is closed.
    fn close(&mut self) -> i32 {
        let Some(bytes) = self.fresh.take() else {
            return 0;
        };
        self.call(async |store, connection, key| {
            objects::put(store, connection, key, bytes.into())
                .await
                .map(|()| 0)
        })
    }

    fn stat(&mut self, name: &CStr) -> i32 {
        self.point(name);
        self.call(async |store, connection, key| {
            objects::size(store, connection, key).await.map(|_| 0)
        })
    }

    fn unlink(&mut self, name: &CStr) -> i32 {
        self.point(name);
        self.call(async |store, connection, key| {
            objects::delete(store, connection, key).await.map(|()| 0)
        })
    }

    fn list(&mut self, directory: &Path, _buffer: &mut [u8]) -> i32 {
        let prefix = format!("{}/", self.store.key(&directory.to_string_lossy()));
        self.call(async |store, connection, _| {
            let (mut after, mut more) = (String::new(), true);
            while more {
                let (keys, left) =
                    objects::list(store, connection, &prefix, (&after, 1000)).await?;
                more = left && !keys.is_empty();
                after = keys.into_iter().next_back().unwrap_or_default();
            }
            Ok(0)
        })
    }
}
