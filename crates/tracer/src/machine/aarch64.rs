//! What is said in the instructions of aarch64. x86_64.rs says the same for that processor.

use core::arch::aarch64::{
    uint8x16_t, vaddv_u8, vandq_u8, vceqq_u8, vdupq_n_u8, vget_high_u8, vget_low_u8, vld1q_u8,
    vst1q_u8,
};
use core::arch::asm;
use core::ffi::c_int;

use crate::hooks::life;
use crate::symbols::SYSCALL;
use crate::thread::{self, Thread};

/// Bytes that are compared at once.
pub const STEP: usize = size_of::<uint8x16_t>();

/// The version of the symbols of the first C library for this processor.
pub const FIRST_SYMBOLS: &core::ffi::CStr = c"GLIBC_2.17";

/// Of linux/unistd.h.
pub const SYS_IO_PGETEVENTS: i64 = 292;

unsafe extern "C" {
    fn leadline_c_syscall();
}

/// The kernel's answer: a value, or a negative errno.
///
/// # Safety
/// The arguments must be what the call of this number expects.
#[inline(always)]
pub unsafe fn system_call(number: i64, arguments: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention; the caller vouches for the arguments.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") arguments[0] => result,
            in("x1") arguments[1],
            in("x2") arguments[2],
            in("x3") arguments[3],
            in("x4") arguments[4],
            in("x5") arguments[5],
            options(nostack),
        );
    }
    result
}

/// What the calling thread has in `leadline_thread` of variadic.c.
#[inline(always)]
pub fn current_thread() -> *mut Thread {
    let thread: *mut Thread;
    // SAFETY: reads the calling thread's own variable, defined in the static TLS block.
    unsafe {
        asm!(
            "mrs {0}, tpidr_el0",
            "adrp {1}, :gottprel:leadline_thread",
            "ldr {1}, [{1}, #:gottprel_lo12:leadline_thread]",
            "ldr {0}, [{0}, {1}]",
            out(reg) thread,
            out(reg) _,
            options(nostack, readonly, preserves_flags),
        );
    }
    thread
}

/// The processor's counter.
#[inline(always)]
pub fn counter() -> u64 {
    let count: u64;
    // SAFETY: Linux lets every program read this register, which touches no memory.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) count, options(nostack, nomem, preserves_flags)) };
    count
}

/// Asks for memory that is needed next, whatever is there.
#[inline(always)]
pub fn prefetch(address: *const u8) {
    // SAFETY: a hint, of any address.
    unsafe {
        asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, readonly, preserves_flags));
    }
}

/// Bytes that are all ones or all zeros, as bits.
#[inline(always)]
fn bits(bytes: uint8x16_t) -> u32 {
    const PLACES: [u8; STEP] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: a step is read of what has as many. All aarch64 CPUs that Linux runs on have the instructions.
    unsafe {
        let places = vandq_u8(bytes, vld1q_u8(PLACES.as_ptr()));
        let (low, high) = (
            vaddv_u8(vget_low_u8(places)),
            vaddv_u8(vget_high_u8(places)),
        );
        u32::from(low) | u32::from(high) << 8
    }
}

/// Which bytes of a step are equal, as bits.
///
/// # Safety
/// A step can be read at both.
#[inline(always)]
pub unsafe fn equal_bytes(one: *const u8, other: *const u8) -> u32 {
    // SAFETY: promised by the caller.
    unsafe { bits(vceqq_u8(vld1q_u8(one), vld1q_u8(other))) }
}

/// Copies a step; where each of two bytes is in it, as bits.
///
/// # Safety
/// A step can be read, and written.
#[inline(always)]
pub unsafe fn copy_and_find(from: *const u8, to: *mut u8, [first, second]: [u8; 2]) -> (u32, u32) {
    // SAFETY: promised by the caller.
    unsafe {
        let step = vld1q_u8(from);
        vst1q_u8(to, step);
        let are = |byte: u8| bits(vceqq_u8(step, vdupq_n_u8(byte)));
        (are(first), are(second))
    }
}

/// The whole of a function that goes on as another one, with the arguments that it was given.
macro_rules! go_on_as {
    ($function:ident) => {
        core::arch::naked_asm!("b {}", sym $function)
    };
}
pub(crate) use go_on_as;

/// Makes a system call. After some of them the stack is another's, or the one of two: no frame of ours may be on it.
/// This processor's kernel has no vfork by number.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall() {
    core::arch::naked_asm!(
        "cmp x0, #{clone}",
        "b.eq 2f",
        "cmp x0, #{clone3}",
        "b.eq 2f",
        "cmp x0, #{sigreturn}",
        "b.ne 3f",
        "2:",
        "adrp x9, {real}",
        "ldr x9, [x9, :lo12:{real}]",
        "cbz x9, 3f",
        "br x9",
        "3:",
        "b {others}",
        clone = const libc::SYS_clone,
        clone3 = const libc::SYS_clone3,
        sigreturn = const libc::SYS_rt_sigreturn,
        real = sym SYSCALL,
        others = sym leadline_c_syscall,
    )
}

/// The child gets a state that records nothing: what it did would be written down as its parent's. The kernel keeps all
/// registers but that of the result, the address to return to among them.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> c_int {
    core::arch::naked_asm!(
        "mrs x9, tpidr_el0",
        "adrp x10, :gottprel:leadline_thread",
        "ldr x10, [x10, #:gottprel_lo12:leadline_thread]",
        "add x9, x9, x10",
        "ldr x11, [x9]",
        "mov x0, #{flags}",
        "mov x1, #0", // the parent's stack
        "mov x8, #{number}",
        "svc #0",
        "cbnz x0, 2f",
        "adrp x12, {child}",
        "add x12, x12, :lo12:{child}",
        "str x12, [x9]",
        "ret",
        "2:",
        "str x11, [x9]",
        "b {after}",
        number = const libc::SYS_clone,
        flags = const libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
        child = sym thread::VFORK_CHILD,
        after = sym life::after_vfork,
    )
}
