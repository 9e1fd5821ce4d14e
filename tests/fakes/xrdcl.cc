// XRootD's client as far as the shim uses it, by the client's own headers, on files of FAKE_STORE. Requests end in
// threads of its own; reads may end far too late or never (later.h). It throws whatever `fake_throws` is told.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <stdexcept>

#include <XrdCl/XrdClDefaultEnv.hh>
#include <XrdCl/XrdClFile.hh>
#include <XrdCl/XrdClFileSystem.hh>
#include <XrdCl/XrdClFileSystemUtils.hh>

#include "later.h"

namespace {
std::atomic<int> throws{0};

void trouble() {
  if (throws == 1) throw std::bad_alloc();
  if (throws == 2) throw std::runtime_error("the client is in trouble");
}

using XrdCl::XRootDStatus;

XRootDStatus answer(bool good) {
  return good ? XRootDStatus() : XRootDStatus(XrdCl::stError, XrdCl::errErrorResponse, kXR_NotFound);
}

// A URL's path, or a path, as a file of the store.
std::string place(const std::string &url) {
  const auto begin = url.find("://");
  const auto path = begin == std::string::npos ? url : url.substr(url.find('/', begin + 3));
  char name[512];
  stored(name, path.substr(std::min(path.find_first_not_of('/'), path.size())).c_str());
  return name;
}

// Bytes moved from or to a file of the store, or -1.
ssize_t moved_at(const std::string &path, bool write, void *memory, uint32_t length, uint64_t offset) {
  const int file = open(path.c_str(), write ? O_WRONLY : O_RDONLY);
  const auto at = static_cast<off_t>(offset);
  const ssize_t moved = write ? pwrite(file, memory, length, at) : pread(file, memory, length, at);
  close(file);
  return moved;
}

uint32_t read_at(const std::string &path, void *memory, uint32_t length, uint64_t offset) {
  return static_cast<uint32_t>(std::max<ssize_t>(0, moved_at(path, false, memory, length, offset)));
}

using Answered = std::function<XrdCl::AnyObject *()>;
struct Request {
  XrdCl::ResponseHandler *handler;
  Answered answered;
};

XRootDStatus ask(XrdCl::ResponseHandler *handler, bool may_fail, Answered answered) {
  trouble();
  later(
      [](void *argument) {
        std::unique_ptr<Request> request(static_cast<Request *>(argument));
        auto *response = request->answered();
        request->handler->HandleResponse(new XRootDStatus(), response);
      },
      new Request{handler, std::move(answered)}, may_fail);
  return XRootDStatus();
}

template <typename T>
XrdCl::AnyObject *object(T *value) {
  auto *made = new XrdCl::AnyObject();
  made->Set(value);
  return made;
}
}  // namespace

extern "C" void fake_throws(int what) { throws = what; }

// The header has every program make one.
EnvInitializer::EnvInitializer() = default;
EnvInitializer::~EnvInitializer() = default;

namespace XrdCl {
// A name only: load threads have tables of descriptors of their own.
class FileImpl {
 public:
  std::string path;
};

struct StatInfoImpl {
  uint64_t bytes = 0;
  bool directory = false;
};

URL::URL(const char *url) : pPort(0), pURL(url) { trouble(); }

class FakeEnv : public Env {};
Env *DefaultEnv::GetEnv() {
  static FakeEnv env;
  return &env;
}
bool Env::PutInt(const std::string &, int) {
  trouble();
  return true;
}

StatInfo::~StatInfo() = default;
uint64_t StatInfo::GetSize() const { return pImpl->bytes; }
bool StatInfo::TestFlags(uint32_t) const { return pImpl->directory; }
StatInfo::StatInfo() : pImpl(new StatInfoImpl()) {}

static XRootDStatus look(const std::string &path, StatInfo *&found) {
  trouble();
  struct stat facts;
  if (stat(path.c_str(), &facts)) return answer(false);
  found = new StatInfo();
  auto *known = reinterpret_cast<std::unique_ptr<StatInfoImpl> *>(found);
  (*known)->bytes = static_cast<uint64_t>(facts.st_size);
  (*known)->directory = S_ISDIR(facts.st_mode);
  return answer(true);
}

File::File(bool) : pImpl(new FileImpl()), pPlugIn(nullptr), pEnablePlugIns(false) {}
File::~File() { delete pImpl; }
XRootDStatus File::Open(const std::string &url, OpenFlags::Flags flags, Access::Mode, uint16_t) {
  trouble();
  const bool fresh = flags & (OpenFlags::Delete | OpenFlags::New);
  pImpl->path = place(url);
  const int file = open(pImpl->path.c_str(), fresh ? O_RDWR | O_CREAT | O_TRUNC : O_RDWR, 0600);
  close(file);
  return answer(file >= 0);
}
XRootDStatus File::Close(uint16_t) {
  trouble();
  return answer(true);
}
XRootDStatus File::Stat(bool, StatInfo *&found, uint16_t) {
  return look(pImpl->path, found);
}
XRootDStatus File::Read(uint64_t offset, uint32_t length, void *memory, uint32_t &moved, uint16_t) {
  trouble();
  moved = read_at(pImpl->path, memory, length, offset);
  return answer(true);
}
XRootDStatus File::Write(uint64_t offset, uint32_t length, const void *memory, uint16_t) {
  trouble();
  return answer(moved_at(pImpl->path, true, const_cast<void *>(memory), length, offset) == static_cast<ssize_t>(length));
}
XRootDStatus File::Sync(uint16_t) {
  trouble();
  return answer(true);
}
XRootDStatus File::Read(uint64_t offset, uint32_t length, void *memory, ResponseHandler *handler, uint16_t) {
  return ask(handler, true, [path = pImpl->path, offset, length, memory] {
    return object(new ChunkInfo(offset, read_at(path, memory, length, offset), memory));
  });
}
XRootDStatus File::VectorRead(const ChunkList &chunks, void *, ResponseHandler *handler, uint16_t) {
  return ask(handler, true, [path = pImpl->path, chunks] {
    auto *info = new VectorReadInfo();
    for (const auto &chunk : chunks) {
      info->SetSize(info->GetSize() + read_at(path, chunk.buffer, chunk.length, chunk.offset));
    }
    return object(info);
  });
}
XRootDStatus File::Write(uint64_t offset, uint32_t length, const void *memory, ResponseHandler *handler, uint16_t) {
  return ask(handler, false, [path = pImpl->path, offset, length, memory]() -> AnyObject * {
    if (moved_at(path, true, const_cast<void *>(memory), length, offset) < 0) abort();
    return nullptr;
  });
}
XRootDStatus File::Sync(ResponseHandler *handler, uint16_t) {
  return ask(handler, false, []() -> AnyObject * { return nullptr; });
}

FileSystem::FileSystem(const URL &, bool) : pImpl(nullptr), pPlugIn(nullptr) { trouble(); }
FileSystem::~FileSystem() = default;
XRootDStatus FileSystem::MkDir(const std::string &path, MkDirFlags::Flags, Access::Mode, uint16_t) {
  trouble();
  return answer(mkdir(place(path).c_str(), 0700) == 0);
}
XRootDStatus FileSystem::RmDir(const std::string &path, uint16_t) {
  trouble();
  return answer(rmdir(place(path).c_str()) == 0);
}
XRootDStatus FileSystem::Rm(const std::string &path, uint16_t) {
  trouble();
  return answer(unlink(place(path).c_str()) == 0);
}
XRootDStatus FileSystem::Mv(const std::string &from, const std::string &to, uint16_t) {
  trouble();
  return answer(rename(place(from).c_str(), place(to).c_str()) == 0);
}
XRootDStatus FileSystem::Stat(const std::string &path, StatInfo *&found, uint16_t) { return look(place(path), found); }
XRootDStatus FileSystem::DirList(const std::string &, DirListFlags::Flags, DirectoryList *&found, uint16_t) {
  trouble();
  found = new DirectoryList();
  return answer(true);
}
DirectoryList::DirectoryList() = default;
DirectoryList::~DirectoryList() = default;

struct FileSystemUtils::SpaceInfoImpl {};
FileSystemUtils::SpaceInfo::~SpaceInfo() = default;
uint64_t FileSystemUtils::SpaceInfo::GetTotal() const { return 1 << 30; }
uint64_t FileSystemUtils::SpaceInfo::GetFree() const { return 1 << 30; }
XRootDStatus FileSystemUtils::GetSpaceInfo(SpaceInfo *&, FileSystem *, const std::string &) {
  trouble();
  return answer(false);
}
}  // namespace XrdCl
