// The tree of processes: who forked whom, what was executed, how it ended.
#pragma once
#include "files.h"

#define GROUP_EXIT 4  // SIGNAL_GROUP_EXIT: every thread ends because of one status

INLINE void tell(u32 event, u32 image, u32 before, u32 pid, s32 status, u32 foreign) {
    struct process_event *told = ring_reserve(&events, sizeof(*told), 0);
    if (!told) {
        lose(LOST_EVENTS);
        return;
    }
    told->event = event;
    told->image = image;
    told->before = before;
    told->pid = pid;
    told->time_ns = now_ns();
    told->status = status;
    told->foreign = foreign;
    ring_submit(told, RING_NO_WAKEUP);
}

// What the kernel has counted since it was looked at before; at first, all of it.
INLINE void hold(struct thread *thread, struct task_struct *task) {
    if (!HAS_FIELD(task->ioac))
        return;
    thread->kernel_bytes[0] = task->ioac.rchar - thread->kernel_bytes[0];
    thread->kernel_bytes[1] = task->ioac.wchar - thread->kernel_bytes[1];
}

// The thread's own counts leave with it; where the ring is full, by way of a map.
INLINE void send_thread(struct thread *thread, struct task_struct *task) {
    thread->event = EVENT_THREAD;
    thread->runtime_ns = task->se.sum_exec_runtime - thread->runtime_ns;
    thread->user_ns = task->utime - thread->user_ns;
    thread->system_ns = task->stime - thread->system_ns;
    thread->faults = task->maj_flt - thread->faults;
    hold(thread, task);
    if (!ring_output(&events, thread, sizeof(*thread), RING_NO_WAKEUP))
        return;
    u64 grave = next_number(TOTAL_GRAVES);
    if (map_update(&graves, &grave, thread, UPDATE_ANY))
        lose(LOST_THREADS);
}

INLINE void begin_image(struct thread *thread, struct task_struct *task, u32 image) {
    thread->image = image;
    thread->tgid = task->tgid;
    thread->tid = task->pid;
    thread->runtime_ns = task->se.sum_exec_runtime;
    thread->user_ns = task->utime;
    thread->system_ns = task->stime;
    thread->faults = task->maj_flt;
    thread->is_held = HAS_FIELD(task->ioac);
    hold(thread, task);
    thread->foreign = (task->thread_info.flags & FOREIGN_FLAG) != 0;
}

SEC("tp_btf/sched_process_fork")
int forked(u64 *context) {
    struct task_struct *parent = (struct task_struct *)context[0];
    struct task_struct *child = (struct task_struct *)context[1];
    struct thread *forking = thread_of(parent->pid);
    if (!forking)
        return 0;
    u32 tid = child->pid, is_thread = child->tgid == parent->tgid;
    struct thread *thread = 0;
    if (!map_update(&threads, &tid, &new_thread, UPDATE_ANY))
        thread = map_lookup(&threads, &tid);
    if (!thread) {
        lose(LOST_TASKS);
        return 0;
    }
    u32 image = is_thread ? forking->image : next_number(TOTAL_IMAGES);
    begin_image(thread, child, image);
    thread->concurrent = is_thread;
    if (is_thread)
        forking->concurrent = 1;
    int shares_descriptors = !is_thread && child->files == parent->files;
    thread->uncached = forking->uncached || shares_descriptors;
    if (shares_descriptors)
        forking->uncached = 1;
    if (!is_thread)
        tell(EVENT_FORK, image, forking->image, child->tgid, 0, thread->foreign);
    return 0;
}

INLINE void send_arguments(struct task_struct *task, u32 image) {
    struct arguments_event *event = ring_reserve(&events, sizeof(*event), 0);
    if (!event)
        return;
    struct mm_struct *memory = task->mm;
    u64 start = memory->arg_start, all = memory->arg_end - start;
    u32 bytes = all < ARGUMENTS_BYTES ? all : ARGUMENTS_BYTES - 1;
    asm volatile("" : "+r"(bytes));  // or the compiler takes the next line away, which the verifier wants
    bytes &= ARGUMENTS_BYTES - 1;
    event->event = EVENT_ARGUMENTS;
    event->image = image;
    event->cut = all >= ARGUMENTS_BYTES;
    event->bytes = read_user(event->text, bytes, (void *)start) ? 0 : bytes;
    ring_submit(event, RING_NO_WAKEUP);
}

// An exec ends one image and begins the next. Another thread than the first takes over the first one's number.
SEC("tp_btf/sched_process_exec")
int executed(u64 *context) {
    struct task_struct *task = (struct task_struct *)context[0];
    struct linux_binprm *program = (struct linux_binprm *)context[2];
    u32 tid = task->pid, tid_before = context[1];
    struct thread *thread = thread_of(tid_before);
    if (!thread)
        return 0;
    u32 before = thread->image, image = next_number(TOTAL_IMAGES);
    send_thread(thread, task);
    if (tid_before != tid)
        map_delete(&threads, &tid_before);
    thread = 0;
    if (!map_update(&threads, &tid, &new_thread, UPDATE_ANY))
        thread = map_lookup(&threads, &tid);
    if (!thread) {
        lose(LOST_TASKS);
        return 0;
    }
    begin_image(thread, task, image);
    descriptors_changed(thread);
    tell(EVENT_EXEC, image, before, task->tgid, 0, thread->foreign);
    send_arguments(task, image);
    struct file *file = program->file;
    struct path path = FIELD(file, file, f_path);
    name(image, 1, (u64)path.dentry, (u64)path.mnt);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int exited(u64 *context) {
    struct task_struct *task = (struct task_struct *)context[0];
    u32 tid = task->pid;
    struct thread *thread = thread_of(tid);
    if (!thread)
        return 0;
    u32 image = thread->image;
    send_thread(thread, task);
    map_delete(&threads, &tid);
    struct signal_struct *signal = task->signal;
    if (signal->live.counter == 0) {
        s32 status = signal->flags & GROUP_EXIT ? signal->group_exit_code : task->exit_code;
        tell(EVENT_EXIT, image, 0, task->tgid, status, 0);
    }
    return 0;
}
