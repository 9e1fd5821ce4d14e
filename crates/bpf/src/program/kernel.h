// What the program uses of the kernel: helper functions by their fixed numbers, and the fields it reads.
// The loader finds each field's place in the running kernel (CO-RE), so only names and types count here.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#define COPIED __attribute__((preserve_access_index))

// A map, as the loader reads it from the type information.
#define MAP_UINT(name, value) int(*name)[value]
#define MAP_TYPE(name, value) typeof(value) *name
#define HASH_MAP(name, entries, key_type, value_type) \
    struct {                                          \
        MAP_UINT(type, MAP_HASH);                     \
        MAP_UINT(max_entries, entries);               \
        MAP_UINT(map_flags, ALLOCATE_ON_USE);         \
        MAP_TYPE(key, key_type);                      \
        MAP_TYPE(value, value_type);                  \
    } name SEC(".maps")

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PER_CPU_ARRAY = 6, MAP_RINGBUF = 27 };
enum { ALLOCATE_ON_USE = 1 };
enum { UPDATE_ANY = 0, UPDATE_NEW = 1 };
enum { RING_NO_WAKEUP = 1 };

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const now_ns)(void) = (void *)5;
static u64 (*const current_ids)(void) = (void *)14;
static long (*const read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const read_user_text)(void *to, u32 size, const void *from) = (void *)114;
static long (*const read_kernel_text)(void *to, u32 size, const void *from) = (void *)115;
static long (*const ring_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*const ring_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const ring_submit)(void *data, u64 flags) = (void *)132;
static void (*const ring_discard)(void *data, u64 flags) = (void *)133;
static struct task_struct *(*const current_task)(void) = (void *)158;

struct qstr {
    union {
        struct {
            u32 hash;
            u32 len;
        };
        u64 hash_len;
    };
    const unsigned char *name;
} COPIED;

struct super_block {
    u32 s_dev;
    unsigned long s_magic;
} COPIED;

struct inode {
    u16 i_mode;
    struct super_block *i_sb;
    unsigned long i_ino;
    u32 i_generation;
    u8 i_blkbits;
} COPIED;

struct dentry {
    struct dentry *d_parent;
    struct qstr d_name;
    struct inode *d_inode;
    struct super_block *d_sb;
} COPIED;

struct vfsmount {
    struct dentry *mnt_root;
} COPIED;

struct mount {
    struct mount *mnt_parent;
    struct dentry *mnt_mountpoint;
    struct vfsmount mnt;
} COPIED;

struct path {
    struct vfsmount *mnt;
    struct dentry *dentry;
} COPIED;

struct file {
    struct inode *f_inode;
    struct path f_path;
    s64 f_pos;
} COPIED;

struct fdtable {
    u32 max_fds;
    struct file **fd;
} COPIED;

struct files_struct {
    struct fdtable *fdt;
} COPIED;

typedef struct {
    int counter;
} atomic_t;

struct signal_struct {
    atomic_t live;
    int group_exit_code;
    u32 flags;
} COPIED;

struct mm_struct {
    unsigned long arg_start;
    unsigned long arg_end;
} COPIED;

struct sched_entity {
    u64 sum_exec_runtime;
} COPIED;

struct thread_info {
    unsigned long flags;
} COPIED;

// What calls read and wrote, whatever the descriptor; absent where the kernel does not count it.
struct task_io_accounting {
    u64 rchar, wchar;
} COPIED;

struct task_struct {
    struct thread_info thread_info;
    struct sched_entity se;
    struct mm_struct *mm;
    int exit_code;
    s32 pid;
    s32 tgid;
    u64 utime;
    u64 stime;
    unsigned long maj_flt;
    struct fs_struct *fs;
    struct files_struct *files;
    struct signal_struct *signal;
    struct task_io_accounting ioac;
} COPIED;
#define HAS_FIELD(field) __builtin_preserve_field_info(field, 2)

struct linux_binprm {
    struct file *file;
} COPIED;

#if defined(__TARGET_ARCH_x86_64)
struct pt_regs {
    unsigned long di, si, dx, r10, r8, r9, orig_ax;
} COPIED;
#define CALL_NUMBER(at) ((at)->orig_ax)
#define ARGUMENT_0(at) ((at)->di)
#define ARGUMENT_1(at) ((at)->si)
#define ARGUMENT_2(at) ((at)->dx)
#define ARGUMENT_3(at) ((at)->r10)
#define ARGUMENT_4(at) ((at)->r8)
// TIF_ADDR32: a 32-bit or x32 program, whose calls have other numbers.
#define FOREIGN_FLAG (1ul << 29)
#define SPLICE 275
#elif defined(__TARGET_ARCH_aarch64)
struct pt_regs {
    u64 regs[31];
    u64 orig_x0;
    s32 syscallno;
} COPIED;
#define CALL_NUMBER(at) ((u32)(at)->syscallno)
#define ARGUMENT_0(at) ((at)->orig_x0)
#define ARGUMENT_1(at) ((at)->regs[1])
#define ARGUMENT_2(at) ((at)->regs[2])
#define ARGUMENT_3(at) ((at)->regs[3])
#define ARGUMENT_4(at) ((at)->regs[4])
// TIF_32BIT
#define FOREIGN_FLAG (1ul << 22)
#define SPLICE 76
#else
#error "the registers of system calls are not known for this processor"
#endif

// A field of a kernel structure that is reached by a plain address. 0 when it cannot be read.
#define FIELD(type, address, field)                                                          \
    ({                                                                                       \
        typeof(((struct type *)0)->field) value_;                                            \
        read_kernel(&value_, sizeof(value_), &((const struct type *)(address))->field);      \
        value_;                                                                              \
    })

#define ERROR_OF(result) ((u64)(result) >= (u64)-4095ll)
