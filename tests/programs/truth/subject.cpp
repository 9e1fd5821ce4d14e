// A subject in C++: streams without a buffer and the file system library, counted as the functions of the C library
// that they stand for in libstdc++: a stream opens and closes a FILE and moves bytes at its descriptor, for which it
// asks before each time.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace fs = std::filesystem;

static void sure(bool good) {
    if (!good) std::exit(2);
}

static void work(const std::string &name, int turns) {
    std::fstream file;
    file.rdbuf()->pubsetbuf(nullptr, 0);
    file.open(name, std::ios::in | std::ios::out | std::ios::trunc | std::ios::binary);
    std::vector<char> own(1000, 'x');
    for (int turn = 0; turn < turns; turn++) sure(bool(file.write(own.data(), own.size())));
    sure(bool(file.seekg(0)));
    for (int turn = 0; turn < turns; turn++) sure(bool(file.read(own.data(), own.size())));
}

int main() {
    std::vector<std::thread> all;
    for (int number = 0; number < 3; number++) all.emplace_back(work, "c" + std::to_string(number), 20);
    for (auto &thread : all) thread.join();
    fs::rename("c0", "d0");
    sure(fs::create_directory("sub"));
    fs::create_symlink("d0", "link");
    fs::create_hard_link("d0", "hard");
    fs::resize_file("d0", 500);
    sure(fs::remove("link") && fs::remove("hard") && rmdir("sub") == 0);
    std::cout << "{\"bytes_read\": 60000, \"bytes_written\": 60000, \"calls\": {\"fopen\": 3, \"fclose\": 3, "
                 "\"fileno\": 123, \"read\": 60, \"writev\": 60, \"lseek\": 3, \"rename\": 1, \"mkdir\": 1, \"symlink\": 1, "
                 "\"link\": 1, \"truncate\": 1, \"remove\": 2, \"rmdir\": 1}}\n";
}
