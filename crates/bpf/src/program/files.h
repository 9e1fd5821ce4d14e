// Which file a call is about: from descriptor or directory entry to a row, made and named at its first use.
#pragma once
#include "maps.h"

#define MODE_TYPE 0170000
#define MODE_REGULAR 0100000
#define MODE_DIRECTORY 0040000
#define MODE_BLOCK 0060000
#define ANONYMOUS_INODES 0x09041934  // eventfd and the like: no files, whatever their mode says

// Names from the entry up to the root, each ended by a zero; 0 in *used when they do not fit. The length is kept
// in memory on purpose: of memory the verifier remembers no bounds, so it looks at every turn of the loop once.
INLINE void walk_up(char *text, u32 *used, u32 capacity, u64 entry, u64 vfs_mount) {
    u64 offset = (u64)(&((struct mount *)0)->mnt);
    *used = 0;
    for (u32 part = 0; part < PARTS_MAX; part++) {
        u64 parent = (u64)FIELD(dentry, entry, d_parent);
        if (entry == (u64)FIELD(vfsmount, vfs_mount, mnt_root)) {
            u64 mount = vfs_mount - offset;
            u64 above = (u64)FIELD(mount, mount, mnt_parent);
            if (above == mount || !above)
                return;
            entry = (u64)FIELD(mount, mount, mnt_mountpoint);
            vfs_mount = above + offset;
            continue;
        }
        u32 at = *(volatile u32 *)used, is_last = parent == entry || !parent;
        if (is_last && at)
            return;
        if (at >= capacity)
            break;
        long copied = read_kernel_text(text + (at & (capacity - 1)), PART_BYTES, FIELD(dentry, entry, d_name).name);
        if (copied <= 0)
            break;
        *(volatile u32 *)used = at + (u32)copied;
        if (is_last)
            return;
        entry = parent;
    }
    *used = 0;
}

// Sends the path of a row's file, or of an image's executable. No static function, so that the verifier looks at
// it once and not wherever it is called: that takes two seconds off the start.
__attribute__((noinline)) int send_name(u32 number, u32 executable, u64 entry, u64 vfs_mount) {
    struct short_name_event *event = ring_reserve(&events, sizeof(*event), 0);
    if (!event)
        return 0;
    event->event = EVENT_NAME;
    event->row = number;
    event->executable = executable;
    walk_up(event->text, &event->bytes, NAME_BYTES, entry, vfs_mount);
    int done = event->bytes > 0;
    if (done)
        ring_submit(event, RING_NO_WAKEUP);
    else
        ring_discard(event, RING_NO_WAKEUP);
    return done;
}

__attribute__((noinline)) int send_long_name(u32 number, u32 executable, u64 entry, u64 vfs_mount) {
    struct name_event *event = ring_reserve(&events, sizeof(*event), 0);
    if (!event)
        return 0;
    event->event = EVENT_NAME;
    event->row = number;
    event->executable = executable;
    walk_up(event->text, &event->bytes, LONG_NAME_BYTES, entry, vfs_mount);
    ring_submit(event, RING_NO_WAKEUP);
    return 1;
}

INLINE int name(u32 number, u32 executable, u64 entry, u64 vfs_mount) {
    if (send_name(number, executable, entry, vfs_mount) || send_long_name(number, executable, entry, vfs_mount))
        return 1;
    lose(LOST_NAMES);
    return 0;
}

// The number of the file's row in this image, 0 when there is no room. A new name of a file is a new row.
static __attribute__((noinline)) u32 row_of(u32 image, u64 inode, u64 entry, u64 vfs_mount) {
    struct row_key key = {.image = image};
    u64 super = (u64)FIELD(dentry, entry, d_sb);
    key.device = FIELD(super_block, super, s_dev);
    key.name_hash = FIELD(dentry, entry, d_name).hash_len;
    u32 alignment = 0;
    if (inode) {
        key.inode = FIELD(inode, inode, i_ino);
        key.generation = FIELD(inode, inode, i_generation);
        alignment = 1u << (FIELD(inode, inode, i_blkbits) & 31);
    }
    u32 *known = map_lookup(&row_numbers, &key);
    if (known)
        return *known;
    u32 number = next_number(TOTAL_ROWS) + 1;
    struct row *row = number < rows_max ? row_at(number) : 0;
    if (!row || map_update(&row_numbers, &key, &number, UPDATE_NEW)) {
        known = map_lookup(&row_numbers, &key);  // another thread may have been quicker
        if (!known)
            lose(LOST_FILES);
        return known ? *known : 0;
    }
    row->device = key.device;
    row->inode = key.inode;
    row->generation = key.generation;
    row->name_hash = key.name_hash;
    row->counters[COUNTER_FILE_ALIGNMENT] = alignment;
    row->image = image;
    row->named = name(number, 0, entry, vfs_mount);
    return number;
}

INLINE int is_file_inode(u64 inode) {
    u32 mode = FIELD(inode, inode, i_mode) & MODE_TYPE;
    if (mode != MODE_REGULAR && mode != MODE_DIRECTORY && mode != MODE_BLOCK)
        return 0;
    u64 super = (u64)FIELD(inode, inode, i_sb);
    return FIELD(super_block, super, s_magic) != ANONYMOUS_INODES;
}

// Fills what is known of an open file: whether it is a file (and no pipe, socket or terminal), and its row.
static __attribute__((noinline)) int look_at(struct cached *found, u32 image, u64 file) {
    found->file = file;
    found->row = 0;
    found->is_file = 0;
    u64 inode = (u64)FIELD(file, file, f_inode);
    if (!inode || !is_file_inode(inode))
        return 0;
    found->is_file = 1;
    struct path path = FIELD(file, file, f_path);
    found->row = row_of(image, inode, (u64)path.dentry, (u64)path.mnt);
    return 0;
}

INLINE u64 open_file(u32 descriptor) {
    struct task_struct *task = current_task();
    struct files_struct *files = task->files;
    if (!files)
        return 0;
    struct fdtable *table = files->fdt;
    u64 file = 0;
    if (descriptor < table->max_fds)
        read_kernel(&file, sizeof(file), (void *)((u64)table->fd + 8ull * descriptor));
    return file;
}

static __attribute__((noinline)) int refresh(struct thread *thread, struct cached *cached, u32 descriptor) {
    cached->descriptor = descriptor;
    cached->epoch = epochs[thread->tgid % EPOCHS] - (thread->uncached ? 1 : 0);
    u64 file = open_file(descriptor);
    cached->file = 0;
    cached->row = 0;
    cached->is_file = 0;
    if (file)
        look_at(cached, thread->image, file);
    return 0;
}

// The file behind a descriptor of the current thread, out of the thread's memory where nothing changed since.
INLINE struct cached *file_of(struct thread *thread, u32 descriptor) {
    struct cached *cached = &thread->cache[descriptor % CACHED];
    if (cached->descriptor != descriptor || cached->epoch != epochs[thread->tgid % EPOCHS] || !cached->file)
        refresh(thread, cached, descriptor);
    return cached;
}

// Descriptors changed: whatever a thread of this process cached is not valid any more.
INLINE void descriptors_changed(struct thread *thread) {
    __sync_fetch_and_add(&epochs[thread->tgid % EPOCHS], 1);
}
