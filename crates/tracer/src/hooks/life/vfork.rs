//! vfork: the child runs in its parent's memory and on its stack until it ends or becomes another program.
//!
//! Nothing of it may be left in memory that both share: a child of the child would overwrite it. What the parent
//! needs when it goes on waits in registers, which the kernel gives back to each process as it had them.

use core::ffi::c_int;

use libc::SYS_vfork;

use crate::thread;

/// The child gets a state that records nothing: what it did would be written down as its parent's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> c_int {
    core::arch::naked_asm!(
        "pop rdi",
        "mov rsi, qword ptr [rip + leadline_thread@GOTTPOFF]",
        "mov rdx, qword ptr fs:[rsi]",
        "mov eax, {number}",
        "syscall",
        "push rdi",
        "test eax, eax",
        "jnz 2f",
        "lea rdx, [rip + {child}]",
        "mov qword ptr fs:[rsi], rdx",
        "ret",
        "2:",
        "mov qword ptr fs:[rsi], rdx",
        "mov rdi, rax",
        "jmp {after}",
        number = const SYS_vfork,
        child = sym thread::VFORK_CHILD,
        after = sym after,
    )
}

/// The parent goes on.
extern "C" fn after(result: isize) -> c_int {
    crate::scratch::release_after_vfork();
    if result < 0 {
        // SAFETY: the address is the calling thread's own.
        unsafe { *libc::__errno_location() = -result as i32 };
        return -1;
    }
    result as c_int
}
