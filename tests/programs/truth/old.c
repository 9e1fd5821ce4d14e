/* A subject that asks for attributes as programs did that were linked before glibc 2.33: `old` works in the
 * current directory and prints what it did as JSON. Today's linker gives these symbols only by their version. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "truth.h"

#if defined(__x86_64__)
#define BY_VERSION(name) ".symver old" #name "," #name "@GLIBC_2.2.5\n"
#define SECOND_VERSION(name) ".symver old" #name "," #name "@GLIBC_2.4\n"
#define LAYOUT 1 /* _STAT_VER */
#else
#define BY_VERSION(name) ".symver old" #name "," #name "@GLIBC_2.17\n"
#define SECOND_VERSION(name) BY_VERSION(name)
#define LAYOUT 0
#endif

int old__xstat(int, const char *, struct stat *);
int old__xstat64(int, const char *, struct stat64 *);
int old__lxstat(int, const char *, struct stat *);
int old__lxstat64(int, const char *, struct stat64 *);
int old__fxstat(int, int, struct stat *);
int old__fxstat64(int, int, struct stat64 *);
int old__fxstatat(int, int, const char *, struct stat *, int);
int old__fxstatat64(int, int, const char *, struct stat64 *, int);
__asm__(BY_VERSION(__xstat) BY_VERSION(__xstat64) BY_VERSION(__lxstat) BY_VERSION(__lxstat64)
        BY_VERSION(__fxstat) BY_VERSION(__fxstat64) SECOND_VERSION(__fxstatat) SECOND_VERSION(__fxstatat64));

int main(void) {
    truth_begin();
    struct stat found;
    struct stat64 large;
    int file = DO(open, open("file", O_RDWR | O_CREAT | O_TRUNC, 0644));
    WRITE(write, write(file, "x", 1));
    DO(__xstat, old__xstat(LAYOUT, "file", &found));
    DO(__xstat64, old__xstat64(LAYOUT, "file", &large));
    DO(__lxstat, old__lxstat(LAYOUT, "file", &found));
    DO(__lxstat64, old__lxstat64(LAYOUT, "file", &large));
    DO(__fxstat, old__fxstat(LAYOUT, file, &found));
    DO(__fxstat64, old__fxstat64(LAYOUT, file, &large));
    DO(__fxstatat, old__fxstatat(LAYOUT, AT_FDCWD, "file", &found, 0));
    DO(__fxstatat64, old__fxstatat64(LAYOUT, AT_FDCWD, "file", &large, 0));
    FAILS(__xstat, old__xstat(LAYOUT, "absent", &found));
    DO(close, close(file));
    if (found.st_size != 1 || large.st_size != 1) return 2;
    truth_print();
    return 0;
}
