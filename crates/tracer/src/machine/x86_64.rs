//! What is said in the instructions of x86-64. aarch64.rs says the same for that processor.

use core::arch::asm;
use core::arch::x86_64::{
    __m128i, _MM_HINT_T0, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_prefetch,
    _mm_set1_epi8, _mm_storeu_si128, _rdtsc,
};
use core::ffi::c_int;

use crate::hooks::life;
use crate::symbols::SYSCALL;
use crate::thread::{self, Thread};

/// Bytes that are compared at once.
pub const STEP: usize = size_of::<__m128i>();

/// The version of the symbols of the first C library for this processor.
pub const FIRST_SYMBOLS: &core::ffi::CStr = c"GLIBC_2.2.5";

/// Of linux/unistd.h.
pub const SYS_IO_PGETEVENTS: i64 = 333;

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
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
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
            "mov {0}, qword ptr [rip + leadline_thread@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) thread,
            options(nostack, readonly, preserves_flags),
        );
    }
    thread
}

/// The processor's counter.
#[inline(always)]
pub fn counter() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction, and it touches no memory.
    unsafe { _rdtsc() }
}

/// Asks for memory that is needed next, whatever is there.
#[inline(always)]
pub fn prefetch(address: *const u8) {
    // SAFETY: a hint, of any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

/// Which bytes of a step are equal, as bits.
///
/// # Safety
/// A step can be read at both.
#[inline(always)]
pub unsafe fn equal_bytes(one: *const u8, other: *const u8) -> u32 {
    // SAFETY: promised by the caller. All x86-64 CPUs have the instructions.
    unsafe {
        let (one, other) = (_mm_loadu_si128(one.cast()), _mm_loadu_si128(other.cast()));
        _mm_movemask_epi8(_mm_cmpeq_epi8(one, other)) as u32
    }
}

/// Copies a step; where each of two bytes is in it, as bits.
///
/// # Safety
/// A step can be read, and written.
#[inline(always)]
pub unsafe fn copy_and_find(from: *const u8, to: *mut u8, [first, second]: [u8; 2]) -> (u32, u32) {
    // SAFETY: promised by the caller. All x86-64 CPUs have the instructions.
    unsafe {
        let step = _mm_loadu_si128(from.cast());
        _mm_storeu_si128(to.cast(), step);
        let are = |byte: u8| _mm_movemask_epi8(_mm_cmpeq_epi8(step, _mm_set1_epi8(byte as i8)));
        (are(first) as u32, are(second) as u32)
    }
}

/// The whole of a function that goes on as another one, with the arguments that it was given.
macro_rules! go_on_as {
    ($function:ident) => {
        core::arch::naked_asm!("jmp {}", sym $function)
    };
}
pub(crate) use go_on_as;

/// Makes a system call. After some of them the stack is another's, or the one of two: no frame of ours may be on it.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall() {
    core::arch::naked_asm!(
        "cmp rdi, {vfork}",
        "je {as_vfork}",
        "cmp rdi, {clone}",
        "je 2f",
        "cmp rdi, {clone3}",
        "je 2f",
        "cmp rdi, {sigreturn}",
        "jne {others}",
        "2:",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "jz {others}",
        "jmp rax",
        vfork = const libc::SYS_vfork,
        clone = const libc::SYS_clone,
        clone3 = const libc::SYS_clone3,
        sigreturn = const libc::SYS_rt_sigreturn,
        as_vfork = sym vfork,
        real = sym SYSCALL,
        others = sym leadline_c_syscall,
    )
}

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
        number = const libc::SYS_vfork,
        child = sym thread::VFORK_CHILD,
        after = sym life::after_vfork,
    )
}
