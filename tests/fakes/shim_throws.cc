// A client that throws at every call: each function of the shim says so by its errno, and nobody is told an end of
// what never began. Linked with the shim and the fake client; ends with 0 or names what failed.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

typedef void (*Ended)(void *argument, int64_t result);
extern "C" {
void fake_throws(int what);
int64_t leadline_xrd_set(const char *, int) noexcept;
int64_t leadline_xrd_open(const char *, int, uint16_t, void **) noexcept;
int64_t leadline_xrd_close(void *, uint16_t) noexcept;
int64_t leadline_xrd_size(void *, uint16_t) noexcept;
int64_t leadline_xrd_read(void *, uint64_t, uint32_t, void *, Ended, void *, uint16_t) noexcept;
int64_t leadline_xrd_read_vector(void *, uint32_t, const uint64_t *, const uint32_t *, void *const *, Ended, void *,
                                 uint16_t) noexcept;
int64_t leadline_xrd_write(void *, uint64_t, uint32_t, const void *, Ended, void *, uint16_t) noexcept;
int64_t leadline_xrd_sync(void *, Ended, void *, uint16_t) noexcept;
int64_t leadline_xrd_read_now(void *, uint64_t, uint32_t, void *, uint16_t) noexcept;
int64_t leadline_xrd_write_now(void *, uint64_t, uint32_t, const void *, uint16_t) noexcept;
int64_t leadline_xrd_sync_now(void *, uint16_t) noexcept;
int64_t leadline_xrd_system(const char *, void **) noexcept;
void leadline_xrd_system_free(void *) noexcept;
int64_t leadline_xrd_make_directory(void *, const char *, uint16_t) noexcept;
int64_t leadline_xrd_remove_directory(void *, const char *, uint16_t) noexcept;
int64_t leadline_xrd_remove(void *, const char *, uint16_t) noexcept;
int64_t leadline_xrd_rename(void *, const char *, const char *, uint16_t) noexcept;
int64_t leadline_xrd_stat(void *, const char *, int *, uint16_t) noexcept;
int64_t leadline_xrd_list(void *, const char *, void (*)(void *, const char *), void *, uint16_t) noexcept;
int64_t leadline_xrd_space(void *, const char *, uint64_t *, uint64_t *) noexcept;
}

static void told(void *, int64_t) { abort(); }
static void named(void *, const char *) { abort(); }

static int wrong = 0;
static void expect(const char *what, int64_t result, int64_t expected) {
  if (result == expected) return;
  std::fprintf(stderr, "%s gave %lld, not %lld\n", what, static_cast<long long>(result), static_cast<long long>(expected));
  wrong = 1;
}
#define EXPECT(call) expect(#call, leadline_xrd_##call, errno_of[what])

int main() {
  const int64_t errno_of[] = {0, -ENOMEM, -EIO};
  const uint64_t offsets[2] = {0, 0};
  const uint32_t lengths[2] = {1, 1};
  char memory[4096];
  void *const memories[2] = {memory, memory + 1};
  for (int what = 1; what <= 2; ++what) {
    void *file = nullptr, *system = nullptr, *none = nullptr;
    fake_throws(0);
    expect("open", leadline_xrd_open("root://h//file", 2, 1, &file), 0);
    expect("system", leadline_xrd_system("root://h", &system), 0);
    fake_throws(what);
    int kind = 0;
    uint64_t space = 0;
    EXPECT(set("RequestTimeout", 1));
    EXPECT(open("root://h//other", 0, 1, &none));
    EXPECT(system("root://h", &none));
    EXPECT(size(file, 1));
    EXPECT(read(file, 0, 1, memory, told, nullptr, 1));
    EXPECT(read_vector(file, 2, offsets, lengths, memories, told, nullptr, 1));
    EXPECT(write(file, 0, 1, memory, told, nullptr, 1));
    EXPECT(sync(file, told, nullptr, 1));
    EXPECT(read_now(file, 0, 1, memory, 1));
    EXPECT(write_now(file, 0, 1, memory, 1));
    EXPECT(sync_now(file, 1));
    EXPECT(make_directory(system, "/d", 1));
    EXPECT(remove_directory(system, "/d", 1));
    EXPECT(remove(system, "/f", 1));
    EXPECT(rename(system, "/f", "/g", 1));
    EXPECT(stat(system, "/f", &kind, 1));
    EXPECT(list(system, "/", named, nullptr, 1));
    EXPECT(space(system, "/", &space, &space));
    EXPECT(close(file, 1));
    leadline_xrd_system_free(system);
  }
  return wrong;
}
