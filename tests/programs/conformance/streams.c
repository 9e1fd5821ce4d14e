// The C library's streams: modes, ends, errors, positions, formats.

#include "conformance.h"

#include <stdarg.h>
#include <wchar.h>

#define ONE(name, expression) CASE(name) { SAY(expression); }

ONE(fopen_absent, fopen("absent", "r") ? 1 : -1)
ONE(fopen_mode, fopen("data", "z") ? 1 : -1)
ONE(fopen_directory, fopen("dir", "w") ? 1 : -1)
ONE(fopen_exclusive, fopen("data", "wx") ? 1 : -1)
ONE(fopen_number, fileno(fopen("data", "r")))
ONE(fdopen_closed, fdopen(77, "r") ? 1 : -1)
ONE(fdopen_mode, fdopen(open("data", O_RDONLY), "w") ? 1 : -1)
ONE(freopen_absent, freopen("absent", "r", fopen("data", "r")) ? 1 : -1)
ONE(fflush_all, fflush(NULL))

CASE(stream_reading) {
  char buffer[200], *line = NULL;
  size_t room = 0;
  FILE *stream = fopen("lines", "w+");
  SAY(fputs("one\ntwo 2\nthree\n\nlast", stream));
  rewind(stream);
  SAY(fgetc(stream));
  SAY(ungetc('O', stream));
  SAY(fgets(buffer, sizeof buffer, stream) ? 1 : 0);
  printf("%s", buffer);
  int number = 0;
  SAY(fscanf(stream, "%9s %d", buffer, &number));
  SAY(number);
  SAY(ftell(stream));
  SAY(getc(stream));
  SAY(getline(&line, &room, stream));
  SAY(getdelim(&line, &room, 'a', stream));
  SAY(fread(buffer, 2, 50, stream));
  SAY(feof(stream));
  SAY(fgetc(stream));
  SAY(fgets(buffer, sizeof buffer, stream) ? 1 : 0);
  SAY(getline(&line, &room, stream));
  SAY(fseek(stream, -1, SEEK_SET));
  SAY(fseek(stream, 3, SEEK_SET));
  SAY(fgetc(stream));
  fpos_t place;
  SAY(fgetpos(stream, &place));
  SAY(fgetc(stream));
  SAY(fsetpos(stream, &place));
  SAY(ftello(stream));
  SAY(fclose(stream));
}

static int listed(FILE *stream, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int result = vfprintf(stream, format, arguments);
  va_end(arguments);
  return result;
}

CASE(stream_writing) {
  FILE *stream = fopen("text", "w");
  SAY(fprintf(stream, "%d %s %5.2f\n", 5, "five", 5.0));
  SAY(listed(stream, "%d %d %d %d %d %d %d %g %g\n", 1, 2, 3, 4, 5, 6, 7, 8.5, 9.5));
  SAY(fputc('c', stream));
  SAY(putc('d', stream));
  SAY(putw(7, stream));
  SAY(fwrite("abcdef", 3, 2, stream));
  SAY(fwrite("", 0, 5, stream));
  SAY(fgetc(stream));
  SAY(ferror(stream) != 0);
  SAY(ftell(stream));
  SAY(fclose(stream));
  int fd = open("text", O_RDONLY);
  SAY(lseek(fd, 0, SEEK_END));
  SAY(dprintf(fd, "refused"));
  SAY(dprintf(data, "%s %d", "written", 5));
  SAY(fprintf(stdout, "%s\n", "plain"));
}

CASE(stream_modes) {
  for (const char *mode = "r\0\0r+\0w\0\0w+\0a\0\0a+\0"; *mode; mode += 3) {
    FILE *stream = fopen("empty", mode);
    puts(mode);
    SAY(fwrite("12345", 1, 5, stream));
    SAY(fflush(stream));
    SAY(fseek(stream, 1, SEEK_SET));
    SAY(fgetc(stream));
    SAY(fclose(stream));
  }
}

CASE(stream_reopened) {
  FILE *stream = fopen("data", "r");
  SAY(fgetc(stream));
  stream = freopen("dir/inner", "w", stream);
  SAY(fputs("inner", stream));
  SAY(fileno(stream));
  stream = freopen(NULL, "r", stream);
  SAY(stream != NULL);
  SAY(stream ? fgetc(stream) : 0);
}

CASE(stream_buffers) {
  static char buffer[16];
  FILE *stream = fopen("text", "w");
  SAY(setvbuf(stream, buffer, _IOFBF, sizeof buffer));
  for (int i = 0; i < 100; i++) fputc('a' + i % 26, stream);
  struct stat status;
  SAY(stat("text", &status));
  SAY(status.st_size);
  setbuf(stream, NULL);
  SAY(fclose(stream));
  SAY(stat("text", &status));
  SAY(status.st_size);
}

CASE(stream_in_memory) {
  char buffer[100] = "memory 12";
  int number;
  char word[20];
  FILE *stream = fmemopen(buffer, sizeof buffer, "r+");
  SAY(fileno(stream));
  SAY(fscanf(stream, "%19s %d", word, &number));
  SAY(fseek(stream, 0, SEEK_SET));
  SAY(fprintf(stream, "other"));
  SAY(fflush(stream));
  puts(buffer);
  SAY(fclose(stream));
  char *grown = NULL;
  size_t size = 0;
  stream = open_memstream(&grown, &size);
  SAY(fputs("grown", stream));
  SAY(fclose(stream));
  printf("%s %zu\n", grown, size);
}

static ssize_t cookie_read(void *cookie, char *into, size_t size) {
  (void)cookie;
  memset(into, 'k', size);
  return (ssize_t)size;
}

CASE(stream_of_functions) {
  char buffer[10];
  FILE *stream = fopencookie(NULL, "r", (cookie_io_functions_t){.read = cookie_read});
  SAY(fread(buffer, 1, sizeof buffer, stream));
  SAY(fileno(stream));
  SAY(fgetc(stream));
  SAY(fclose(stream));
}

CASE(stream_of_pipe) {
  char line[100];
  FILE *stream = popen("echo from a shell; exit 3", "r");
  SAY(fgets(line, sizeof line, stream) ? 1 : 0);
  printf("%s", line);
  SAY(WEXITSTATUS(pclose(stream)));
  SAY(WEXITSTATUS(system("exit 4")));
  SAY(system(NULL) != 0);
}

CASE(stream_wide) {
  FILE *stream = fopen("wide", "w+");
  SAY(fwide(stream, 1));
  SAY(fputwc(L'w', stream) == L'w');
  rewind(stream);
  SAY(fgetwc(stream) == L'w');
  SAY(fclose(stream));
}

CASE(stream_closed_below) {
  FILE *stream = fopen("data", "r+");
  SAY(close(fileno(stream)));
  SAY(fgetc(stream));
  SAY(fileno(stream));
  SAY(fclose(stream));
}

CASE(stream_standard) {
  SAY(fileno(stdin));
  SAY(fileno(stdout));
  fflush(stdout);
  int kept = dup(1);
  freopen("text", "w", stdout);
  printf("to a file\n");
  fflush(stdout);
  dup2(kept, 1);
  printf("to the output\n");
  struct stat status;
  SAY(stat("text", &status));
  SAY(status.st_size);
}
