//! A server that falls silent in the middle of a call and then goes on, as after a failover: its late answer must find
//! nobody, and calls after it an error. Through the real libnfs, where it is installed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use leadline_engine::schemes::{self, Location};
use leadline_engine::sys::file::OpenHow;

const MOUNT: u32 = 100_005;
/// The client wants exactly the rights that it asked about.
const ACCESS_READ: u32 = 1;
const FILE_BYTES: u32 = 4096;
const HANDLE: [u32; 3] = [8, 0x6c65_6164, 0x6c69_6e65];

/// Answers what a client of NFS version 3 asks that mounts, opens one file and reads it (RFC 1813).
#[derive(Default)]
struct Server {
    /// Answers wait meanwhile.
    silent: AtomicBool,
    held_back: Mutex<Vec<(TcpStream, Vec<u32>)>>,
}

fn attributes(file_type: u32) -> Vec<u32> {
    let mut words = vec![file_type, 0o777, 1, 0, 0, 0, FILE_BYTES, 0, FILE_BYTES];
    words.resize(21, 0);
    words
}

/// The attributes of an object where they are optional.
fn known(file_type: u32) -> Vec<u32> {
    [vec![1], attributes(file_type)].concat()
}

/// What a procedure gives; of a read, whose arguments end with the bytes that are wanted, these.
fn results(program: u32, procedure: u32, last: u32) -> Vec<u32> {
    let ok = |words: &[&[u32]]| [&[0_u32][..], &words.concat()].concat();
    match (program, procedure) {
        (_, 0) => vec![],
        (MOUNT, 1) => ok(&[&HANDLE, &[1, 1]]),
        (MOUNT, _) => vec![0],
        (_, 1) => ok(&[&attributes(2)]),
        (_, 3) => ok(&[&HANDLE, &known(1), &known(2)]),
        (_, 4) => ok(&[&known(1), &[ACCESS_READ]]),
        (_, 6) => {
            let data = vec![0x0707_0707; last as usize / 4];
            ok(&[&known(1), &[last, 0, last], &data])
        }
        (_, 19) => ok(&[&[0], &[1 << 20; 7], &[0, u32::MAX, 0, 1, 0x1b]]),
        (_, 21) => ok(&[&[0, 0], &[0, 0]]),
        _ => vec![10_004],
    }
}

fn send(stream: &mut TcpStream, words: &[u32]) {
    let mark = 0x8000_0000 | (words.len() * 4) as u32;
    let bytes: Vec<u8> = [&[mark], words]
        .concat()
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect();
    // A client that is gone hears nothing.
    let _ = stream.write_all(&bytes);
}

impl Server {
    /// Serves one connection until its end.
    fn carry(&self, mut stream: TcpStream) -> std::io::Result<()> {
        loop {
            let mut mark = [0; 4];
            stream.read_exact(&mut mark)?;
            let mut call = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
            stream.read_exact(&mut call)?;
            let word = |index: usize| {
                let bytes = call[index * 4..].first_chunk().unwrap();
                u32::from_be_bytes(*bytes)
            };
            let head = vec![word(0), 1, 0, 0, 0, 0];
            let answer = [head, results(word(3), word(5), word(call.len() / 4 - 1))].concat();
            let mut held_back = self.held_back.lock().unwrap();
            if self.silent.load(Ordering::SeqCst) {
                held_back.push((stream.try_clone()?, answer));
            } else {
                drop(held_back);
                send(&mut stream, &answer);
            }
        }
    }

    fn fall_silent(&self) {
        self.silent.store(true, Ordering::SeqCst);
    }

    fn go_on(&self) {
        let mut held_back = self.held_back.lock().unwrap();
        self.silent.store(false, Ordering::SeqCst);
        for (mut stream, answer) in held_back.drain(..) {
            send(&mut stream, &answer);
        }
    }
}

fn serve() -> (Arc<Server>, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Arc::new(Server::default());
    let own = Arc::clone(&server);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let own = Arc::clone(&own);
            std::thread::spawn(move || own.carry(stream));
        }
    });
    (server, port)
}

#[test]
fn after_a_call_that_was_not_answered_in_time_the_next_ones_are_refused() {
    // SAFETY: the library's initialisers may run in any program; it is asked for only.
    if unsafe { libloading::Library::new("libnfs.so.13") }.is_err() {
        return;
    }
    let (server, port) = serve();
    let url = format!("nfs://127.0.0.1:{port}/export?version=3&mountport={port}&timeout=1");
    let volume = schemes::connect(&Location::parse(&url).unwrap()).unwrap();
    let how = OpenHow::default();
    let file = volume.open("/file", how, u64::from(FILE_BYTES)).unwrap();
    let mut bytes = [0; 64];
    assert_eq!(file.read_at(&mut bytes, 0), 64);
    assert_eq!(bytes, [7; 64]);

    server.fall_silent();
    assert_eq!(file.read_at(&mut bytes, 0), -i64::from(libc::ETIMEDOUT));
    server.go_on();
    for _ in 0..2 {
        assert_eq!(file.read_at(&mut bytes, 0), -i64::from(libc::ENOTCONN));
        assert_eq!(file.write_at(&bytes, 0), -i64::from(libc::ENOTCONN));
        assert_eq!(file.sync(false), -i64::from(libc::ENOTCONN));
    }
    drop(file);
    let again = volume.open("/file", how, u64::from(FILE_BYTES)).unwrap();
    assert_eq!(again.read_at(&mut bytes, 0), 64);
}
