/* A subject that writes to standard output, or reads standard input, by one of the ways in which programs do: those that
 * name no stream, those that a compiler makes others of, and those that are in no function at all. What is still in a
 * buffer at the end is left to exit. */
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#define LINES 4000

int __printf_chk(int, const char *, ...);
int __vprintf_chk(int, const char *, va_list);
int __isoc99_scanf(const char *, ...);

static int listed(int checked, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int result = checked ? __vprintf_chk(1, format, list) : vprintf(format, list);
    va_end(list);
    return result;
}

static void one_line(const char *way, int number) {
    static const char text[] = "a line of some words\n";
    if (!strcmp(way, "printf")) printf("%d of some words\n", number);
    else if (!strcmp(way, "__printf_chk")) __printf_chk(1, "%d of some words\n", number);
    else if (!strcmp(way, "vprintf")) listed(0, "%d of some words\n", number);
    else if (!strcmp(way, "__vprintf_chk")) listed(1, "%d of some words\n", number);
    else if (!strcmp(way, "puts")) puts("a line of some words");
    else if (!strcmp(way, "putchar")) for (const char *at = text; *at; at++) putchar(*at);
    else if (!strcmp(way, "putchar_unlocked")) for (const char *at = text; *at; at++) putchar_unlocked(*at);
    else if (!strcmp(way, "wprintf")) wprintf(L"%d of some words\n", number);
    else if (!strcmp(way, "fwrite")) fwrite(text, 1, sizeof text - 1, stdout);
    else if (!strcmp(way, "perror")) perror("a line of some words");
    else if (!strcmp(way, "warn")) warnx("%d of some words", number);
    else exit(3);
}

/* All of standard input; how many lines there were. */
static int read_all(const char *way) {
    int lines = 0, symbol, number;
    static char word[64];
    static wchar_t wide[64];
    char *line = NULL;
    size_t room = 0;
    if (!strcmp(way, "getchar")) while ((symbol = getchar()) != EOF) lines += symbol == '\n';
    else if (!strcmp(way, "getchar_unlocked")) while ((symbol = getchar_unlocked()) != EOF) lines += symbol == '\n';
    else if (!strcmp(way, "scanf")) while (scanf("%d of some words\n", &number) == 1) lines++;
    else if (!strcmp(way, "isoc99_scanf")) while (__isoc99_scanf("%d of some words\n", &number) == 1) lines++;
    else if (!strcmp(way, "fgets")) while (fgets(word, sizeof word, stdin)) lines++;
    else if (!strcmp(way, "fgetws")) while (fgetws(wide, 64, stdin)) lines++;
    else if (!strcmp(way, "getline")) while (getline(&line, &room, stdin) > 0) lines++;
    else exit(3);
    return lines;
}

int main(int count, char **words) {
    if (count == 3 && !strcmp(words[1], "read")) return read_all(words[2]) == LINES ? 0 : 4;
    if (count != 3 || strcmp(words[1], "write")) return 3;
    for (int number = 0; number < LINES; number++) one_line(words[2], number);
    return 0;
}
