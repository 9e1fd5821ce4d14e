//! Memory for the length of one call: too much for the small stack of a signal handler or a coroutine.

use crate::sys;

unsafe extern "C" {
    fn leadline_slot_scratch() -> *mut Kept;
}

/// What the child of a vfork has: it becomes another program and leaves this in the memory of its parent.
#[repr(C)]
struct Kept {
    memory: *mut u8,
    bytes: usize,
}

/// Zeroed memory, given back when dropped. None of it where there is no more: `room` is empty then.
pub struct Scratch {
    memory: *mut u8,
    bytes: usize,
}

impl Scratch {
    pub fn new(bytes: usize) -> Self {
        let memory = sys::map_memory(bytes);
        let bytes = if memory.is_null() { 0 } else { bytes };
        if crate::thread::is_vfork_child() {
            // SAFETY: the address is the calling thread's own.
            unsafe { leadline_slot_scratch().write(Kept { memory, bytes }) };
        }
        Self { memory, bytes }
    }

    pub fn room(&mut self) -> &mut [u8] {
        if self.bytes == 0 {
            return &mut [];
        }
        // SAFETY: fresh memory of this size, that nobody else knows.
        unsafe { core::slice::from_raw_parts_mut(self.memory, self.bytes) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.bytes > 0 {
            sys::unmap(self.memory, self.bytes);
        }
        if crate::thread::is_vfork_child() {
            forget();
        }
    }
}

fn forget() {
    let none = Kept {
        memory: core::ptr::null_mut(),
        bytes: 0,
    };
    // SAFETY: the address is the calling thread's own.
    unsafe { leadline_slot_scratch().write(none) };
}

/// Gives back what a child of this thread left behind.
pub fn release_after_vfork() {
    // SAFETY: the address is the calling thread's own; its child, which wrote it, has ended or become another program.
    let kept = unsafe { &*leadline_slot_scratch() };
    if kept.bytes > 0 {
        sys::unmap(kept.memory, kept.bytes);
        forget();
    }
}
