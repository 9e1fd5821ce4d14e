//! Files cut into the objects of an S3 bucket. All that is made lies below `PREFIX/leadline-<id>/`, so that removing
//! lists that prefix and meets no object of anybody else.

use std::collections::HashMap;
use std::ffi::CStr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::connection;
use super::connection::Connection;
use super::store::{Problem, Store};
use crate::schemes::Location;
use crate::sync::lock;
use crate::sys::file::OpenHow;
use crate::volume::names::Names;
use crate::volume::{Handle, KEPT, Outcome, Space, Volume, VolumeError, is_absent, system};

/// Removals in flight.
const REMOVALS: usize = 16;
const LISTED_MAX: u32 = 1000;

/// A runtime of one thread and a connection, for calls that wait.
pub struct Caller {
    pub runtime: Runtime,
    pub connection: Connection,
}

impl Caller {
    pub fn new() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self {
            runtime,
            connection: Connection::default(),
        })
    }
}

/// A bucket, and a prefix in it as its root.
pub struct Bucket {
    store: Arc<Store>,
    url: String,
    caller: Mutex<Caller>,
}

/// What a refusal means to whoever wrote the URL.
fn refused(problem: &Problem, operation: &'static str, subject: &str) -> VolumeError {
    let remedy = match problem.errno {
        libc::EACCES if problem.words.starts_with("no credentials") => {
            "set them, or name a profile= of the file"
        }
        libc::EACCES => "check the credentials, and that they may use this bucket",
        libc::ENOENT if problem.words == "NoSuchBucket" => {
            "check the bucket's name: leadline makes none"
        }
        libc::EPROTO => "check that endpoint= is that of an S3 service, and the bucket's name",
        libc::ECONNREFUSED | libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH => {
            "see whether the service runs, and whether endpoint= has its host and port"
        }
        libc::EBUSY => "the service is overloaded: try again later",
        _ => "",
    };
    let errno = problem.errno;
    VolumeError::new(errno, operation, &format!("{subject} ({})", problem.words))
        .with_remedy(remedy)
}

/// The bucket of a location.
pub fn store(location: &Location) -> Outcome<Store> {
    Store::new(location).map_err(|problem| refused(&problem, "use", &location.url))
}

impl Bucket {
    /// Finds the credentials, and asks for a list of what is there.
    pub fn connect(location: &Location) -> Outcome<Self> {
        let caller = Caller::new().map_err(|error| system(&error, "connect", &location.url))?;
        let mut store = store(location)?;
        let timeout = store.timeout;
        store.timeout = timeout.min(CONNECT);
        let this = Self {
            store: Arc::new(store),
            url: location.url.clone(),
            caller: Mutex::new(caller),
        };
        let prefix = this.store.prefix.clone();
        this.call(
            "open the bucket of",
            &this.url,
            async |store, connection| connection::list(store, connection, &prefix, ("", 1)).await,
        )?;
        Ok(Self {
            store: Arc::new(self::store(location)?),
            ..this
        })
    }

    fn call<T>(
        &self,
        operation: &'static str,
        subject: &str,
        work: impl AsyncFnOnce(&Store, &mut Connection) -> Result<T, Problem>,
    ) -> Outcome<T> {
        let mut caller = lock(&self.caller);
        let Caller {
            runtime,
            connection,
        } = &mut *caller;
        runtime
            .block_on(work(&self.store, connection))
            .map_err(|problem| refused(&problem, operation, subject))
    }

    /// Removes what `prefix` begins, but no mark; true when time was over before.
    fn remove_keys(&self, prefix: &str, until: Instant) -> Outcome<bool> {
        let mut after = String::new();
        loop {
            let (keys, more) = self.call("list", prefix, async |store, connection| {
                connection::list(store, connection, prefix, (&after, LISTED_MAX)).await
            })?;
            let Some(last) = keys.last().cloned() else {
                break;
            };
            if self.remove_all(keys, until)? || Instant::now() > until {
                return Ok(true);
            }
            after = last;
            if !more {
                break;
            }
        }
        let uploads = self.call("list uploads of", prefix, async |store, connection| {
            connection::uploads(store, connection, prefix).await
        })?;
        for (key, upload) in uploads {
            self.call("abort the upload of", &key, async |store, connection| {
                connection::abort(store, connection, &key, &upload).await
            })?;
        }
        Ok(false)
    }

    fn remove_all(&self, mut keys: Vec<String>, until: Instant) -> Outcome<bool> {
        keys.retain(|key| !key.rsplit('/').next().unwrap_or_default().starts_with(KEPT));
        let keys = Arc::new(Mutex::new(keys));
        let caller = lock(&self.caller);
        let removed = caller.runtime.block_on(async {
            let mut removals = JoinSet::new();
            for _ in 0..REMOVALS {
                removals.spawn(remove_some(
                    Arc::clone(&self.store),
                    Arc::clone(&keys),
                    until,
                ));
            }
            let mut removed = Ok(());
            while let Some(ended) = removals.join_next().await {
                removed = removed.and(ended.unwrap_or(Ok(())));
            }
            removed
        });
        removed.map_err(|problem| refused(&problem, "remove objects of", &self.url))?;
        Ok(!lock(&keys).is_empty())
    }
}

async fn remove_some(
    store: Arc<Store>,
    keys: Arc<Mutex<Vec<String>>>,
    until: Instant,
) -> Result<(), Problem> {
    let mut connection = Connection::default();
    while Instant::now() < until {
        let next = lock(&keys).pop();
        let Some(key) = next else { break };
        match connection::delete(&store, &mut connection, &key).await {
            Err(problem) if problem.errno != libc::ENOENT => return Err(problem),
            _ => {}
        }
    }
    Ok(())
}

/// Looking whether the service is there takes no longer.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(10);

impl Volume for Bucket {
    /// Keys have no directories; the first object below stands for one.
    fn make_directory(&self, path: &str) -> Outcome<()> {
        match self.names_in(path, 1) {
            Ok(_) => Err(VolumeError::new(libc::EEXIST, "make the directory", path)),
            Err(error) if error.errno == libc::ENOENT => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Outcome<()> {
        let (key, body) = (self.store.key(path), Bytes::copy_from_slice(bytes));
        self.call("write", path, async |store, connection| {
            connection::put(store, connection, &key, body).await
        })
    }

    fn get(&self, path: &str, limit: usize) -> Outcome<Option<Vec<u8>>> {
        let key = self.store.key(path);
        let mut bytes = vec![0; limit];
        let found = self.call(
            "read",
            path,
            async |store, connection| match connection::get(
                store,
                connection,
                &key,
                (0, &mut bytes),
            )
            .await
            {
                Err(problem) if problem.words == "NoSuchKey" => Ok(None),
                other => other.map(Some),
            },
        )?;
        Ok(found.map(|count| {
            bytes.truncate(count);
            bytes
        }))
    }

    fn names_in(&self, directory: &str, limit: usize) -> Outcome<Vec<String>> {
        let prefix = format!("{}/", self.store.key(directory));
        let count = u32::try_from(limit).unwrap_or(u32::MAX).min(LISTED_MAX);
        let (keys, _) = self.call("list", directory, async |store, connection| {
            connection::list(store, connection, &prefix, ("", count)).await
        })?;
        if keys.is_empty() {
            return Err(is_absent(directory));
        }
        Ok(keys
            .iter()
            .map(|key| key[prefix.len()..].to_owned())
            .collect())
    }

    fn open(&self, path: &str, how: OpenHow, file_bytes: u64) -> Outcome<Arc<dyn Handle>> {
        if how.fresh {
            let until = Instant::now() + std::time::Duration::from_secs(600);
            self.remove_keys(&format!("{}.", self.store.key(path)), until)?;
        }
        let caller = Caller::new().map_err(|error| system(&error, "open", path))?;
        Ok(Arc::new(Pieces {
            store: Arc::clone(&self.store),
            caller: Mutex::new(caller),
            begun: Mutex::new(HashMap::new()),
            name: path.to_owned(),
            file_bytes,
        }))
    }

    fn names(&self) -> Outcome<Box<dyn Names>> {
        let caller = Caller::new().map_err(|error| system(&error, "connect", &self.url))?;
        Ok(Box::new(KeyNames::new(Arc::clone(&self.store), caller)))
    }

    fn space(&self) -> Outcome<Space> {
        Err(VolumeError::new(
            libc::ENOTSUP,
            "ask for the space of",
            &self.url,
        ))
    }

    fn remove_files(&self, directory: &str, prefix: &str, until: Instant) -> Outcome<bool> {
        self.remove_keys(&format!("{}/{prefix}", self.store.key(directory)), until)
    }

    fn remove_directory(&self, directory: &str, mark: &str) -> Outcome<()> {
        let key = self.store.key(&format!("{directory}/{mark}"));
        self.call(
            "remove",
            directory,
            async |store, connection| match connection::delete(store, connection, &key).await {
                Err(problem) if problem.errno == libc::ENOENT => Ok(()),
                other => other,
            },
        )
    }
}

/// A file in objects. An object is put when all its bytes are there.
struct Pieces {
    store: Arc<Store>,
    caller: Mutex<Caller>,
    begun: Mutex<HashMap<u64, (Vec<u8>, usize)>>,
    name: String,
    file_bytes: u64,
}

impl Pieces {
    fn call<T>(
        &self,
        work: impl AsyncFnOnce(&Store, &mut Connection) -> Result<T, Problem>,
    ) -> Result<T, i64> {
        let mut caller = lock(&self.caller);
        let Caller {
            runtime,
            connection,
        } = &mut *caller;
        let done = runtime.block_on(work(&self.store, connection));
        done.map_err(|problem| -i64::from(problem.errno))
    }

    /// Puts bytes where they belong in their object; the object, when it is whole.
    fn gather(&self, data: &[u8], offset: u64) -> Option<Vec<u8>> {
        let (number, within) = (
            offset / self.store.object_bytes,
            offset % self.store.object_bytes,
        );
        let begin = number * self.store.object_bytes;
        let whole = self
            .store
            .object_bytes
            .min(self.file_bytes.saturating_sub(begin)) as usize;
        if within == 0 && data.len() == whole {
            return Some(data.to_vec());
        }
        let mut begun = lock(&self.begun);
        let (bytes, filled) = begun.entry(number).or_insert_with(|| (vec![0; whole], 0));
        let place = bytes.get_mut(within as usize..within as usize + data.len())?;
        place.copy_from_slice(data);
        *filled += data.len();
        if *filled < whole {
            return None;
        }
        begun.remove(&number).map(|(bytes, _)| bytes)
    }
}

impl Handle for Pieces {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> i64 {
        let within = offset % self.store.object_bytes;
        let room = usize::try_from(self.store.object_bytes - within).unwrap_or(usize::MAX);
        let length = buffer.len().min(room);
        let key = self.store.object_key(&self.name, offset);
        let found = self.call(async |store, connection| {
            connection::get(store, connection, &key, (within, &mut buffer[..length])).await
        });
        found.map_or_else(|errno| errno, |count| count as i64)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> i64 {
        let within = offset % self.store.object_bytes;
        let room = usize::try_from(self.store.object_bytes - within).unwrap_or(usize::MAX);
        let length = buffer.len().min(room);
        if let Some(whole) = self.gather(&buffer[..length], offset) {
            let key = self.store.object_key(&self.name, offset);
            let put = self.call(async |store, connection| {
                connection::put_whole(store, connection, &key, whole.into()).await
            });
            if let Err(errno) = put {
                return errno;
            }
        }
        length as i64
    }

    /// An object is on the service's store when its PUT was answered.
    fn sync(&self, _data_only: bool) -> i64 {
        0
    }

    fn size(&self) -> i64 {
        let last = self.file_bytes.saturating_sub(1);
        let key = self.store.object_key(&self.name, last);
        let begin = last / self.store.object_bytes * self.store.object_bytes;
        match self.call(async |store, connection| connection::size(store, connection, &key).await) {
            Ok(bytes) => (begin + bytes) as i64,
            Err(missing) if missing == -i64::from(libc::ENOENT) => 0,
            Err(errno) => errno,
        }
    }
}

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
            connection::get(store, connection, key, (0, buffer)).await
        })
    }

    /// A new object is put whole, when it is closed.
    fn close(&mut self) -> i32 {
        let Some(bytes) = self.fresh.take() else {
            return 0;
        };
        self.call(async |store, connection, key| {
            connection::put(store, connection, key, bytes.into())
                .await
                .map(|()| 0)
        })
    }

    fn stat(&mut self, name: &CStr) -> i32 {
        self.point(name);
        self.call(async |store, connection, key| {
            connection::size(store, connection, key).await.map(|_| 0)
        })
    }

    fn unlink(&mut self, name: &CStr) -> i32 {
        self.point(name);
        self.call(async |store, connection, key| {
            connection::delete(store, connection, key).await.map(|()| 0)
        })
    }

    fn list(&mut self, directory: &Path, _buffer: &mut [u8]) -> i32 {
        let prefix = format!("{}/", self.store.key(&directory.to_string_lossy()));
        self.call(async |store, connection, _| {
            let (mut after, mut more) = (String::new(), true);
            while more {
                let (keys, left) =
                    connection::list(store, connection, &prefix, (&after, 1000)).await?;
                more = left && !keys.is_empty();
                after = keys.into_iter().next_back().unwrap_or_default();
            }
            Ok(0)
        })
    }
}
