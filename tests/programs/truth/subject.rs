//! A subject in Rust: the standard library's I/O, counted as the functions of the C library that it calls.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

fn main() -> std::io::Result<()> {
    let data = vec![1_u8; 10_000];
    let mut back = vec![0_u8; 4_000];
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open("data")?;
    file.write_all(&data)?;
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut back)?;
    file.read_exact(&mut back)?;
    file.write_all_at(&data[..500], 20_000)?;
    file.read_exact_at(&mut back[..500], 20_000)?;
    file.set_len(30_000)?;
    file.sync_all()?;
    file.sync_data()?;
    drop(file);
    fs::metadata("data")?;
    fs::rename("data", "other")?;
    fs::create_dir("sub")?;
    fs::remove_dir("sub")?;
    let threads: Vec<_> = (0..3)
        .map(|number| {
            std::thread::spawn(move || {
                let mut own = File::create(format!("t{number}")).unwrap();
                own.write_all(&[0; 100]).unwrap();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    fs::remove_file("other")?;
    println!(
        "{{\"bytes_read\": 8500, \"bytes_written\": 10800, \"calls\": {{\"open\": 4, \"write\": 4, \"lseek\": 1, \
         \"read\": 2, \"pwrite\": 1, \"pread\": 1, \"ftruncate\": 1, \"fsync\": 1, \"fdatasync\": 1, \"close\": 4, \
         \"statx\": 1, \"rename\": 1, \"mkdir\": 1, \"rmdir\": 1, \"unlink\": 1}}}}"
    );
    Ok(())
}
