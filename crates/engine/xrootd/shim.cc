// XRootD's client with the calling conventions of C: its own interface is C++, whose names and layouts no other
// language can rely on, and its POSIX layer (libXrdPosix) blocks for each request. Built where the client's headers
// are (`make setup`), opened by crates/engine/src/sys/xrootd.rs, which declares the same functions.
//
// Results are bytes or 0, or minus errno: what the client throws is one, too, as no exception may leave for C. A callback is called once for each request that returned 0, by a thread of
// the client; memory given with a request must stay until then.
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include <XProtocol/XProtocol.hh>
#include <XrdCl/XrdClDefaultEnv.hh>
#include <XrdCl/XrdClFile.hh>
#include <XrdCl/XrdClFileSystem.hh>
#include <XrdCl/XrdClFileSystemUtils.hh>
#include <XrdVersion.hh>

namespace {

using XrdCl::XRootDStatus;

bool ends_with(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Servers have one number for what their file systems refuse, and say the reason at the end of their words.
int64_t answer_of(const XRootDStatus &status) {
  if (status.errNo == kXR_FSError) {
    const std::string words = status.GetErrorMessage().c_str();  // to its first NUL
    if (ends_with(words, "irectory not empty")) return -ENOTEMPTY;
    if (ends_with(words, "ot a directory")) return -ENOTDIR;
  }
  return -XProtocol::toErrno(static_cast<int>(status.errNo));
}

int64_t failure_of(const XRootDStatus &status) {
  switch (status.code) {
    case XrdCl::errErrorResponse:
      return answer_of(status);
    case XrdCl::errSocketTimeout:
    case XrdCl::errOperationExpired:
      return -ETIMEDOUT;
    case XrdCl::errInvalidAddr:
      return -EHOSTUNREACH;
    case XrdCl::errConnectionError:
      return status.errNo ? -static_cast<int64_t>(status.errNo) : -ECONNREFUSED;
    case XrdCl::errSocketError:
    case XrdCl::errSocketDisconnected:
    case XrdCl::errStreamDisconnect:
      return status.errNo ? -static_cast<int64_t>(status.errNo) : -ECONNRESET;
    case XrdCl::errLoginFailed:
    case XrdCl::errAuthFailed:
      return -EACCES;
    case XrdCl::errNotFound:
      return -ENOENT;
    case XrdCl::errNotSupported:
    case XrdCl::errNotImplemented:
    case XrdCl::errQueryNotSupported:
      return -ENOTSUP;
    case XrdCl::errInvalidArgs:
      return -EINVAL;
    default:
      return -EIO;
  }
}

int64_t outcome(const XRootDStatus &status) { return status.IsOK() ? 0 : failure_of(status); }

// The result of `call`, whatever it throws.
template <typename Call>
int64_t caught(Call call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc &) {
    return -ENOMEM;
  } catch (...) {
    return -EIO;
  }
}

typedef void (*Ended)(void *argument, int64_t result);

enum class Answer { nothing, chunk, chunks };

class Caller : public XrdCl::ResponseHandler {
 public:
  Caller(Ended ended, void *argument, Answer answer)
      : ended_(ended), argument_(argument), answer_(answer) {}

  void HandleResponse(XRootDStatus *status, XrdCl::AnyObject *response) noexcept override {
    const int64_t result = caught([&] {
      const int64_t found = outcome(*status);
      return found == 0 && response != nullptr && answer_ != Answer::nothing ? bytes_in(response) : found;
    });
    delete status;
    delete response;
    ended_(argument_, result);
    delete this;
  }

  // Whoever asked was told already: an answer finds nobody.
  void hush() { ended_ = [](void *, int64_t) {}; }

 private:
  int64_t bytes_in(XrdCl::AnyObject *response) const {
    if (answer_ == Answer::chunk) {
      XrdCl::ChunkInfo *found = nullptr;
      response->Get(found);
      return found != nullptr ? static_cast<int64_t>(found->length) : -EIO;
    }
    XrdCl::VectorReadInfo *found = nullptr;
    response->Get(found);
    return found != nullptr ? static_cast<int64_t>(found->GetSize()) : -EIO;
  }

  Ended ended_;
  void *argument_;
  Answer answer_;
};

// Sends a request; one that could not even be sent calls nobody. Where the client throws, nothing tells whether it
// kept the caller, so that stays for ever.
template <typename Send>
int64_t begun(Ended ended, void *argument, Answer answer, Send send) noexcept {
  return caught([&] {
    auto *caller = new Caller(ended, argument, answer);
    try {
      const XRootDStatus status = send(caller);
      if (status.IsOK()) return int64_t{0};
      delete caller;
      return failure_of(status);
    } catch (...) {
      caller->hush();
      throw;
    }
  });
}

XrdCl::File *file_of(void *file) { return static_cast<XrdCl::File *>(file); }
XrdCl::FileSystem *system_of(void *system) { return static_cast<XrdCl::FileSystem *>(system); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

const char *leadline_xrd_version() noexcept { return XrdVERSION; }

// A setting of the client (XRD_NAME in the environment wins over it).
int64_t leadline_xrd_set(const char *name, int value) noexcept {
  return caught([&] { return XrdCl::DefaultEnv::GetEnv()->PutInt(name, value) ? 0 : -EEXIST; });
}

// `how`: 0 to read, 1 to read and write, 2 makes the file anew, 3 makes one that must not be there.
int64_t leadline_xrd_open(const char *url, int how, uint16_t timeout, void **opened) noexcept {
  using XrdCl::OpenFlags;
  static const OpenFlags::Flags flags[] = {OpenFlags::Read, OpenFlags::Update, OpenFlags::Delete | OpenFlags::Update,
                                           OpenFlags::New | OpenFlags::Update};
  const auto mode = XrdCl::Access::UR | XrdCl::Access::UW | XrdCl::Access::GR | XrdCl::Access::OR;
  return caught([&] {
    auto file = std::make_unique<XrdCl::File>();
    const int64_t result = outcome(file->Open(url, flags[how & 3], how >= 2 ? mode : XrdCl::Access::None, timeout));
    if (result == 0) *opened = file.release();
    return result;
  });
}

int64_t leadline_xrd_close(void *file, uint16_t timeout) noexcept {
  return caught([&] {
    const std::unique_ptr<XrdCl::File> closed(file_of(file));
    return outcome(closed->Close(timeout));
  });
}

int64_t leadline_xrd_size(void *file, uint16_t timeout) noexcept {
  return caught([&] {
    XrdCl::StatInfo *answer = nullptr;
    const int64_t result = outcome(file_of(file)->Stat(true, answer, timeout));
    const std::unique_ptr<XrdCl::StatInfo> found(answer);
    return result == 0 && found ? static_cast<int64_t>(found->GetSize()) : result;
  });
}

int64_t leadline_xrd_read(void *file, uint64_t offset, uint32_t length, void *memory, Ended ended, void *argument,
                          uint16_t timeout) noexcept {
  return begun(ended, argument, Answer::chunk,
               [&](Caller *caller) { return file_of(file)->Read(offset, length, memory, caller, timeout); });
}

int64_t leadline_xrd_read_vector(void *file, uint32_t count, const uint64_t *offsets, const uint32_t *lengths,
                                 void *const *memories, Ended ended, void *argument, uint16_t timeout) noexcept {
  return begun(ended, argument, Answer::chunks, [&](Caller *caller) {
    XrdCl::ChunkList chunks;
    chunks.reserve(count);
    for (uint32_t number = 0; number < count; ++number) {
      chunks.emplace_back(offsets[number], lengths[number], memories[number]);
    }
    return file_of(file)->VectorRead(chunks, nullptr, caller, timeout);
  });
}

int64_t leadline_xrd_write(void *file, uint64_t offset, uint32_t length, const void *memory, Ended ended,
                           void *argument, uint16_t timeout) noexcept {
  return begun(ended, argument, Answer::nothing,
               [&](Caller *caller) { return file_of(file)->Write(offset, length, memory, caller, timeout); });
}

int64_t leadline_xrd_sync(void *file, Ended ended, void *argument, uint16_t timeout) noexcept {
  return begun(ended, argument, Answer::nothing,
               [&](Caller *caller) { return file_of(file)->Sync(caller, timeout); });
}

// The same three, waiting for their answers.
int64_t leadline_xrd_read_now(void *file, uint64_t offset, uint32_t length, void *memory, uint16_t timeout) noexcept {
  return caught([&] {
    uint32_t moved = 0;
    const int64_t result = outcome(file_of(file)->Read(offset, length, memory, moved, timeout));
    return result < 0 ? result : static_cast<int64_t>(moved);
  });
}

int64_t leadline_xrd_write_now(void *file, uint64_t offset, uint32_t length, const void *memory,
                               uint16_t timeout) noexcept {
  return caught([&] {
    const int64_t result = outcome(file_of(file)->Write(offset, length, memory, timeout));
    return result < 0 ? result : static_cast<int64_t>(length);
  });
}

int64_t leadline_xrd_sync_now(void *file, uint16_t timeout) noexcept {
  return caught([&] { return outcome(file_of(file)->Sync(timeout)); });
}

int64_t leadline_xrd_system(const char *url, void **made) noexcept {
  return caught([&] {
    *made = new XrdCl::FileSystem(XrdCl::URL(url));
    return 0;
  });
}

void leadline_xrd_system_free(void *system) noexcept { delete system_of(system); }

int64_t leadline_xrd_make_directory(void *system, const char *path, uint16_t timeout) noexcept {
  const auto mode = XrdCl::Access::UR | XrdCl::Access::UW | XrdCl::Access::UX | XrdCl::Access::GR | XrdCl::Access::GX |
                    XrdCl::Access::OR | XrdCl::Access::OX;
  return caught([&] { return outcome(system_of(system)->MkDir(path, XrdCl::MkDirFlags::None, mode, timeout)); });
}

int64_t leadline_xrd_remove_directory(void *system, const char *path, uint16_t timeout) noexcept {
  return caught([&] { return outcome(system_of(system)->RmDir(path, timeout)); });
}

int64_t leadline_xrd_remove(void *system, const char *path, uint16_t timeout) noexcept {
  return caught([&] { return outcome(system_of(system)->Rm(path, timeout)); });
}

int64_t leadline_xrd_rename(void *system, const char *from, const char *to, uint16_t timeout) noexcept {
  return caught([&] { return outcome(system_of(system)->Mv(from, to, timeout)); });
}

// Bytes of what `path` names; `is_directory` becomes 0 or 1.
int64_t leadline_xrd_stat(void *system, const char *path, int *is_directory, uint16_t timeout) noexcept {
  return caught([&] {
    XrdCl::StatInfo *answer = nullptr;
    const int64_t result = outcome(system_of(system)->Stat(path, answer, timeout));
    const std::unique_ptr<XrdCl::StatInfo> found(answer);
    if (result != 0 || !found) return result;
    *is_directory = found->TestFlags(XrdCl::StatInfo::IsDir) ? 1 : 0;
    return static_cast<int64_t>(found->GetSize());
  });
}

// Calls `each` with every name of a directory.
int64_t leadline_xrd_list(void *system, const char *path, void (*each)(void *argument, const char *name),
                          void *argument, uint16_t timeout) noexcept {
  return caught([&] {
    XrdCl::DirectoryList *answer = nullptr;
    const int64_t result = outcome(system_of(system)->DirList(path, XrdCl::DirListFlags::None, answer, timeout));
    const std::unique_ptr<XrdCl::DirectoryList> found(answer);
    if (result == 0 && found) {
      for (auto entry = found->Begin(); entry != found->End(); ++entry) each(argument, (*entry)->GetName().c_str());
    }
    return result;
  });
}

int64_t leadline_xrd_space(void *system, const char *path, uint64_t *total, uint64_t *free) noexcept {
  return caught([&] {
    XrdCl::FileSystemUtils::SpaceInfo *answer = nullptr;
    const int64_t result = outcome(XrdCl::FileSystemUtils::GetSpaceInfo(answer, system_of(system), path));
    const std::unique_ptr<XrdCl::FileSystemUtils::SpaceInfo> found(answer);
    if (result == 0 && found) {
      *total = found->GetTotal();
      *free = found->GetFree();
    }
    return result;
  });
}
}
#pragma GCC visibility pop
