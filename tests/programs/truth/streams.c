/* A subject that calls every function of streams that a tracer may take the place of, each by its own symbol, and
 * prints what it did as JSON under these names. Built without builtins: a compiler turns some into others. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>

#include "truth.h"

/* Headers give these names to newer variants, or hide them. */
int plain_fscanf(FILE *, const char *, ...) __asm__("fscanf");
int plain_vfscanf(FILE *, const char *, va_list) __asm__("vfscanf");
int __isoc99_fscanf(FILE *, const char *, ...);
int __isoc99_vfscanf(FILE *, const char *, va_list);
ssize_t __getdelim(char **, size_t *, int, FILE *);
int __fprintf_chk(FILE *, int, const char *, ...);
int __vfprintf_chk(FILE *, int, const char *, va_list);
int __dprintf_chk(int, int, const char *, ...);
int __vdprintf_chk(int, int, const char *, va_list);
char *__fgets_chk(char *, size_t, int, FILE *);
char *__fgets_unlocked_chk(char *, size_t, int, FILE *);
size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
size_t __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *);

#define WORDS "line\n"
#define DIGITS "1234\n"

static char buffer[4096];
static char *line;
static size_t room;

static FILE *open_stream(const char *name, FILE *stream) {
    truth_count(name);
    if (stream == NULL) truth_sure(name, -1);
    return stream;
}
#define OPENED(name, call) open_stream(#name, call)
/* What a function moved, where it does not return it. */
#define READS(name, bytes, call) READ(name, (call) ? (bytes) : -1)
#define WRITES(name, bytes, call) WRITE(name, (call) ? (bytes) : -1)
/* A function that takes a list of arguments, by one that has them. */
#define LISTED(name, first, call)                  \
    static int name##_of(first, const char *format, ...) { \
        va_list list;                              \
        va_start(list, format);                    \
        int result = call;                         \
        va_end(list);                              \
        return result;                             \
    }
LISTED(vfprintf, FILE *to, vfprintf(to, format, list))
LISTED(__vfprintf_chk, FILE *to, __vfprintf_chk(to, 1, format, list))
LISTED(vdprintf, int to, vdprintf(to, format, list))
LISTED(__vdprintf_chk, int to, __vdprintf_chk(to, 1, format, list))
LISTED(vfscanf, FILE *from, plain_vfscanf(from, format, list))
LISTED(__isoc99_vfscanf, FILE *from, __isoc99_vfscanf(from, format, list))

static void written(void) {
    FILE *to = OPENED(fopen, fopen("text", "w"));
    WRITE(fwrite, fwrite(buffer, 1, 100, to));
    WRITE(fwrite_unlocked, fwrite_unlocked(buffer, 1, 50, to));
    WRITES(fputs, 5, fputs(WORDS, to) >= 0);
    WRITES(fputs_unlocked, 5, fputs_unlocked(WORDS, to) >= 0);
    WRITES(fputc, 1, fputc('y', to) == 'y');
    WRITES(putc, 1, putc('z', to) == 'z');
    WRITES(putw, 4, putw(7, to) == 0);
    WRITE(fprintf, fprintf(to, "%d\n", 1234));
    WRITE(vfprintf, vfprintf_of(to, "%d\n", 1234));
    WRITE(__fprintf_chk, __fprintf_chk(to, 1, "%d\n", 1234));
    WRITE(__vfprintf_chk, __vfprintf_chk_of(to, "%d\n", 1234));
    DO(fflush, fflush(to));
    int file = DO(fileno, fileno(to));
    DO(fileno_unlocked, fileno_unlocked(to));
    WRITE(dprintf, dprintf(file, DIGITS));
    WRITE(vdprintf, vdprintf_of(file, DIGITS));
    WRITE(__dprintf_chk, __dprintf_chk(file, 1, DIGITS));
    WRITE(__vdprintf_chk, __vdprintf_chk_of(file, DIGITS));
    DO(fclose, fclose(to));
}

static void read_again(void) {
    FILE *from = OPENED(fopen64, fopen64("text", "r"));
    fpos_t here;
    fpos64_t there;
    READ(fread, fread(buffer, 1, 60, from));
    READ(fread_unlocked, fread_unlocked(buffer, 1, 40, from));
    READ(__fread_chk, __fread_chk(buffer, sizeof buffer, 1, 30, from));
    READ(__fread_unlocked_chk, __fread_unlocked_chk(buffer, sizeof buffer, 1, 20, from));
    if (fgetpos(from, &here) != 0 || fgetpos64(from, &there) != 0) exit(2);
    READS(fgets, 5, fgets(buffer, sizeof buffer, from));
    READS(fgets_unlocked, 5, fgets_unlocked(buffer, sizeof buffer, from));
    DO(fsetpos, fsetpos(from, &here));
    READS(__fgets_chk, 5, __fgets_chk(buffer, sizeof buffer, 100, from));
    DO(fsetpos64, fsetpos64(from, &there));
    READS(__fgets_unlocked_chk, 5, __fgets_unlocked_chk(buffer, sizeof buffer, 100, from));
    DO(fseeko, fseeko(from, 160, SEEK_SET));
    READS(fgetc, 1, fgetc(from) == 'y');
    READS(getc, 1, getc(from) == 'z');
    READS(getw, 4, getw(from) == 7);
    READ(getline, getline(&line, &room, from));
    READ(getdelim, getdelim(&line, &room, '\n', from));
    READ(__getdelim, __getdelim(&line, &room, '\n', from));
    DO(fseeko64, fseeko64(from, 166, SEEK_SET));
    int number, all = 0;
    READS(fscanf, 4, plain_fscanf(from, "%d", &number) == 1), all += number;
    READS(vfscanf, 5, vfscanf_of(from, "%d", &number) == 1), all += number;
    READS(__isoc99_fscanf, 5, __isoc99_fscanf(from, "%d", &number) == 1), all += number;
    READS(__isoc99_vfscanf, 5, __isoc99_vfscanf_of(from, "%d", &number) == 1), all += number;
    if (all != 4 * 1234) exit(2);
    DO(fseek, fseek(from, 0, SEEK_END));
    READ(fread, fread(buffer, 1, 60, from)); /* at the end: nothing */
    truth_count("rewind"), rewind(from);
    READ(fread, fread(buffer, 1, 10, from));
    DO(fclose, fclose(from));
}

static void begun_otherwise(void) {
    FILE *stream = OPENED(fdopen, fdopen(DO(open, open("over", O_RDWR | O_CREAT, 0644)), "w"));
    WRITES(fputs, 5, fputs(WORDS, stream) >= 0);
    stream = OPENED(freopen, freopen("again", "w", stream));
    WRITES(fputs, 5, fputs(WORDS, stream) >= 0);
    stream = OPENED(freopen64, freopen64("last", "w", stream));
    WRITES(fputs, 5, fputs(WORDS, stream) >= 0);
    DO(fclose, fclose(stream));
    stream = OPENED(fopen, fopen("last", "a"));
    WRITES(fputs, 5, fputs(WORDS, stream) >= 0);
    DO(fclose, fclose(stream));
    stream = OPENED(fopen, fopen("last", "a+"));
    WRITES(fputs, 5, fputs(WORDS, stream) >= 0);
    DO(fclose, fclose(stream));
    DO(fclose, fclose(OPENED(tmpfile, tmpfile()))); /* elsewhere, so that nothing is written to it */
    DO(fclose, fclose(OPENED(tmpfile64, tmpfile64())));
}

int main(void) {
    truth_begin();
    memset(buffer, 'x', sizeof buffer);
    written();
    read_again();
    begun_otherwise();
    truth_print();
    return 0;
}
