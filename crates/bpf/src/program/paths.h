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
struct path_text {
    union {
        char text[PATH_BYTES];
        u64 words[PATH_BYTES / 8];
    };
};

struct {
    MAP_UINT(type, MAP_PER_CPU_ARRAY);
    MAP_UINT(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct path_text);
} scratch SEC(".maps");

HASH_MAP(path_numbers, 1024, struct path_key, struct path_row);

INLINE u64 argument(struct pt_regs *registers, u32 index) {
    return index == 0   ? ARGUMENT_0(registers)
           : index == 1 ? ARGUMENT_1(registers)
           : index == 2 ? ARGUMENT_2(registers)
                        : ARGUMENT_3(registers);
}

// Where a path starts from: a directory's entry and mount.
struct start {
    u64 entry;
    u64 vfs_mount;
};

// Two hashes of a text of `bytes`, its zero included, by words: multiplication spreads what it takes upwards, the
// shift what came up downwards. What an earlier and longer text left behind this one is not part of it.
INLINE void hash_text(const struct path_text *path, u32 bytes, u64 *hash, u64 *check) {
    u64 one = bytes, other = ~(u64)bytes;
    for (u32 index = 0; index < PATH_BYTES / 8; index++) {
        if (index * 8 >= bytes)
            break;
        u64 word = path->words[index];
        u32 left = bytes - index * 8;
        if (left < 8)
            word &= (1ull << (left * 8)) - 1;
        one = (one ^ word) * 0x9e3779b97f4a7c15ull;
        one ^= one >> 32;
        other = (other + word) * 0xc2b2ae3d27d4eb4full;
        other ^= other >> 29;
    }
    *hash = one;
    *check = other;
}

static __attribute__((noinline)) int send_path(u32 number, const struct path_text *path, u64 entry, u64 vfs_mount) {
    struct path_event *event = ring_reserve(&events, sizeof(*event), 0);
    if (!event)
        return 0;
    event->event = EVENT_PATH;
    event->row = number;
    event->zero = 0;
    __builtin_memcpy(event->path, path->text, sizeof(event->path));
    walk_up(event->text, &event->bytes, NAME_BYTES, entry, vfs_mount);
    ring_submit(event, RING_NO_WAKEUP);
    return 1;
}

INLINE u32 new_path(struct path_row *found, const struct path_key *key, const struct path_text *path, struct start from) {
    found->row = next_number(TOTAL_ROWS) + 1;
    struct row *row = found->row < rows_max ? row_at(found->row) : 0;
    if (!row || map_update(&path_numbers, key, found, UPDATE_NEW)) {
        lose(LOST_FILES);
        return 0;
    }
    row->image = key->image;
    row->named = send_path(found->row, path, from.entry, from.vfs_mount);
    if (!row->named)
        lose(LOST_NAMES);
    return found->row;
}

// Reads the directory's place and number. What hangs on the task itself is loaded without a call.
INLINE struct start begin_at(struct path_key *key, u32 is_absolute, s32 directory) {
    struct start from;
    if (!is_absolute && directory != CURRENT_DIRECTORY) {
        u64 file = open_file(directory);
        struct path path = FIELD(file, file, f_path);
        u64 inode = (u64)FIELD(dentry, path.dentry, d_inode);
        u64 super = (u64)FIELD(dentry, path.dentry, d_sb);
        key->device = FIELD(super_block, super, s_dev);
        key->inode = FIELD(inode, inode, i_ino);
        from.entry = (u64)path.dentry;
        from.vfs_mount = (u64)path.mnt;
        return from;
    }
    struct fs_struct *places = current_task()->fs;
    struct dentry *entry = is_absolute ? places->root.dentry : places->pwd.dentry;
    from.entry = (u64)entry;
    from.vfs_mount = (u64)(is_absolute ? places->root.mnt : places->pwd.mnt);
    key->device = entry->d_sb->s_dev;
    key->inode = entry->d_inode->i_ino;
    return from;
}

// Programs ask about one path several times in a row: stat, then open, then stat again.
INLINE u32 same_path(const struct path_key *last, const struct path_key *key, const struct path_row *of_last,
                     const struct path_row *row) {
    return last->hash == key->hash && last->inode == key->inode && last->device == key->device &&
           last->image == key->image && of_last->check == row->check && of_last->bytes == row->bytes;
}

// The row of a path, made at its first success. 0: none, or `descriptor` is meant, for the path is empty.
static __attribute__((noinline)) u32 row_of_path(struct thread *thread, u64 text, s32 directory, u32 makes) {
    u32 zero = 0;
    struct path_text *path = map_lookup(&scratch, &zero);
    if (!path)
        return 0;
    long bytes = read_user_text(path->text, sizeof(path->text), (void *)text);
    if (bytes <= 1)
        return 0;
    if (bytes >= PATH_BYTES) {
        lose(LOST_NAMES);
        return 0;
    }
    struct path_key key = {.image = thread->image};
    struct path_row made = {.bytes = bytes};
    hash_text(path, bytes, &key.hash, &made.check);
    struct start from = begin_at(&key, path->text[0] == '/', directory);
    if (same_path(&thread->last_path, &key, &thread->last_row, &made))
        return thread->last_row.row;
    struct path_row *known = map_lookup(&path_numbers, &key);
    if (!known)
        return makes ? new_path(&made, &key, path, from) : 0;
    if (known->check == made.check && known->bytes == made.bytes) {
        thread->last_path = key;
        thread->last_row = *known;
        return known->row;
    }
    lose(LOST_FILES);  // two texts of one hash: better not counted than counted for the other
    return 0;
}

INLINE u32 path_row(struct thread *thread, struct pt_regs *registers, u32 index, u32 has_directory, s64 result) {
    s32 directory = has_directory ? (s32)argument(registers, index - 1) : CURRENT_DIRECTORY;
    return row_of_path(thread, argument(registers, index), directory, !ERROR_OF(result));
}
