// Calls that name files by path: the text as the program gave it, beside the directory that it starts from.
// Read when the call has ended, as the kernel has just read it too: the page is there.
#pragma once
#include "account.h"

#define CURRENT_DIRECTORY (-100)
#define REMOVE_DIRECTORY 0x200

struct fs_struct {
    struct path root;
    struct path pwd;
} COPIED;

// One a processor: tracepoints are not preempted, so nobody else writes it meanwhile.
struct {
    MAP_UINT(type, MAP_PER_CPU_ARRAY);
    MAP_UINT(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct path_key);
} scratch SEC(".maps");

struct {
    MAP_UINT(type, MAP_HASH);
    MAP_UINT(max_entries, 1024);
    MAP_UINT(map_flags, ALLOCATE_ON_USE);
    MAP_TYPE(key, struct path_key);
    MAP_TYPE(value, u32);
} path_numbers SEC(".maps");

INLINE u64 argument(struct pt_regs *registers, u32 index) {
    return index == 0   ? ARGUMENT_0(registers)
           : index == 1 ? ARGUMENT_1(registers)
           : index == 2 ? ARGUMENT_2(registers)
                        : ARGUMENT_3(registers);
}

static __attribute__((noinline)) int send_path(u32 number, const struct path_key *key, u64 entry, u64 vfs_mount) {
    struct path_event *event = ring_reserve(&events, sizeof(*event), 0);
    if (!event)
        return 0;
    event->event = EVENT_PATH;
    event->row = number;
    event->zero = 0;
    __builtin_memcpy(event->path, key->text, sizeof(event->path));
    walk_up(event->text, &event->bytes, NAME_BYTES, entry, vfs_mount);
    ring_submit(event, RING_NO_WAKEUP);
    return 1;
}

INLINE u32 new_path(u32 image, const struct path_key *key, const struct path *from) {
    u32 number = next_number(TOTAL_ROWS) + 1;
    struct row *row = number < rows_max ? row_at(number) : 0;
    if (!row || map_update(&path_numbers, key, &number, UPDATE_NEW)) {
        lose(LOST_FILES);
        return 0;
    }
    row->image = image;
    row->named = send_path(number, key, (u64)from->dentry, (u64)from->mnt);
    if (!row->named)
        lose(LOST_NAMES);
    return number;
}

// The row of a path, made at its first success. 0: none, or `descriptor` is meant, for the path is empty.
static __attribute__((noinline)) u32 row_of_path(u32 image, u64 text, s32 directory, u32 makes) {
    u32 zero = 0;
    struct path_key *key = map_lookup(&scratch, &zero);
    if (!key)
        return 0;
    __builtin_memset(key, 0, sizeof(*key));
    long bytes = read_user_text(key->text, sizeof(key->text), (void *)text);
    if (bytes <= 1)
        return 0;
    if (bytes >= PATH_BYTES) {
        lose(LOST_NAMES);
        return 0;
    }
    struct path from;
    struct fs_struct *places = current_task()->fs;
    if (key->text[0] == '/') {
        from = FIELD(fs_struct, places, root);
    } else if (directory == CURRENT_DIRECTORY) {
        from = FIELD(fs_struct, places, pwd);
    } else {
        u64 file = open_file(directory);
        from = FIELD(file, file, f_path);
    }
    u64 inode = (u64)FIELD(dentry, from.dentry, d_inode);
    u64 super = (u64)FIELD(dentry, from.dentry, d_sb);
    key->image = image;
    key->device = FIELD(super_block, super, s_dev);
    key->inode = FIELD(inode, inode, i_ino);
    u32 *known = map_lookup(&path_numbers, key);
    if (known)
        return *known;
    return makes ? new_path(image, key, &from) : 0;
}

INLINE u32 path_row(struct thread *thread, struct pt_regs *registers, u32 index, u32 has_directory, s64 result) {
    s32 directory = has_directory ? (s32)argument(registers, index - 1) : CURRENT_DIRECTORY;
    return row_of_path(thread->image, argument(registers, index), directory, !ERROR_OF(result));
}
