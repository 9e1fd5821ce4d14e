/* What a library's own threads do: work that ends some time after it was asked for, in any order. */
#ifndef LATER_H
#define LATER_H
#ifdef __cplusplus
extern "C" {
#endif
/* Calls `work` from another thread soon. What `may_fail` says so is done far too late at each FAKE_LATE-th time, after
   FAKE_LATE_MS, or never at each FAKE_NEVER-th. */
void later(void (*work)(void *), void *argument, int may_fail);
/* FAKE_STORE/NAME, with its slashes as they are not in a file's name. */
void stored(char path[512], const char *name);
#ifdef __cplusplus
}
#endif
#endif
