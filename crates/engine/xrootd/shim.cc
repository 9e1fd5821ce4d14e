// XRootD's client with the calling conventions of C: its own interface is C++, whose names and layouts no other
// language can rely on, and its POSIX layer (libXrdPosix) blocks for each request. Built where the client's headers
// are (`make setup`), opened by crates/engine/src/sys/xrootd.rs, which declares the same functions.
//
// Results are bytes or 0, or minus errno. A callback is called once for each request that returned 0, by a thread of
// the client; memory given with a request must stay until then.
#include <cerrno>
#include <cstdint>
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

typedef void (*Ended)(void *argument, int64_t result);

enum class Answer { nothing, chunk, chunks };

class Caller : public XrdCl::ResponseHandler {
 public:
  Caller(Ended ended, void *argument, Answer answer)
      : ended_(ended), argument_(argument), answer_(answer) {}

  void HandleResponse(XRootDStatus *status, XrdCl::AnyObject *response) override {
    int64_t result = outcome(*status);
    if (result == 0 && response != nullptr && answer_ != Answer::nothing) result = bytes_in(response);
    delete status;
    delete response;
    ended_(argument_, result);
    delete this;
  }

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

// A request that could not even be sent calls nobody.
int64_t begun(const XRootDStatus &status, Caller *caller) {
  if (status.IsOK()) return 0;
  delete caller;
  return failure_of(status);
}

XrdCl::File *file_of(void *file) { return static_cast<XrdCl::File *>(file); }
XrdCl::FileSystem *system_of(void *system) { return static_cast<XrdCl::FileSystem *>(system); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

const char *leadline_xrd_version() { return XrdVERSION; }

// A setting of the client (XRD_NAME in the environment wins over it).
void leadline_xrd_set(const char *name, int value) { XrdCl::DefaultEnv::GetEnv()->PutInt(name, value); }

// `how`: 0 to read, 1 to read and write, 2 makes the file anew, 3 makes one that must not be there.
int64_t leadline_xrd_open(const char *url, int how, uint16_t timeout, void **opened) {
  using XrdCl::OpenFlags;
  static const OpenFlags::Flags flags[] = {OpenFlags::Read, OpenFlags::Update, OpenFlags::Delete | OpenFlags::Update,
                                           OpenFlags::New | OpenFlags::Update};
  const auto mode = XrdCl::Access::UR | XrdCl::Access::UW | XrdCl::Access::GR | XrdCl::Access::OR;
  auto *file = new XrdCl::File();
  const int64_t result = outcome(file->Open(url, flags[how & 3], how >= 2 ? mode : XrdCl::Access::None, timeout));
  if (result == 0) {
    *opened = file;
  } else {
    delete file;
  }
  return result;
}

int64_t leadline_xrd_close(void *file, uint16_t timeout) {
  const int64_t result = outcome(file_of(file)->Close(timeout));
  delete file_of(file);
  return result;
}

int64_t leadline_xrd_size(void *file, uint16_t timeout) {
  XrdCl::StatInfo *found = nullptr;
  const int64_t result = outcome(file_of(file)->Stat(true, found, timeout));
  const int64_t bytes = result == 0 && found != nullptr ? static_cast<int64_t>(found->GetSize()) : result;
  delete found;
  return bytes;
}

int64_t leadline_xrd_read(void *file, uint64_t offset, uint32_t length, void *memory, Ended ended, void *argument,
                          uint16_t timeout) {
  auto *caller = new Caller(ended, argument, Answer::chunk);
  return begun(file_of(file)->Read(offset, length, memory, caller, timeout), caller);
}

int64_t leadline_xrd_read_vector(void *file, uint32_t count, const uint64_t *offsets, const uint32_t *lengths,
                                 void *const *memories, Ended ended, void *argument, uint16_t timeout) {
  XrdCl::ChunkList chunks;
  chunks.reserve(count);
  for (uint32_t number = 0; number < count; ++number) {
    chunks.emplace_back(offsets[number], lengths[number], memories[number]);
  }
  auto *caller = new Caller(ended, argument, Answer::chunks);
  return begun(file_of(file)->VectorRead(chunks, nullptr, caller, timeout), caller);
}

int64_t leadline_xrd_write(void *file, uint64_t offset, uint32_t length, const void *memory, Ended ended,
                           void *argument, uint16_t timeout) {
  auto *caller = new Caller(ended, argument, Answer::nothing);
  return begun(file_of(file)->Write(offset, length, memory, caller, timeout), caller);
}

int64_t leadline_xrd_sync(void *file, Ended ended, void *argument, uint16_t timeout) {
  auto *caller = new Caller(ended, argument, Answer::nothing);
  return begun(file_of(file)->Sync(caller, timeout), caller);
}

// The same three, waiting for their answers.
int64_t leadline_xrd_read_now(void *file, uint64_t offset, uint32_t length, void *memory, uint16_t timeout) {
  uint32_t moved = 0;
  const int64_t result = outcome(file_of(file)->Read(offset, length, memory, moved, timeout));
  return result < 0 ? result : static_cast<int64_t>(moved);
}

int64_t leadline_xrd_write_now(void *file, uint64_t offset, uint32_t length, const void *memory, uint16_t timeout) {
  const int64_t result = outcome(file_of(file)->Write(offset, length, memory, timeout));
  return result < 0 ? result : static_cast<int64_t>(length);
}

int64_t leadline_xrd_sync_now(void *file, uint16_t timeout) { return outcome(file_of(file)->Sync(timeout)); }

void *leadline_xrd_system(const char *url) { return new XrdCl::FileSystem(XrdCl::URL(url)); }

void leadline_xrd_system_free(void *system) { delete system_of(system); }

int64_t leadline_xrd_make_directory(void *system, const char *path, uint16_t timeout) {
  const auto mode = XrdCl::Access::UR | XrdCl::Access::UW | XrdCl::Access::UX | XrdCl::Access::GR | XrdCl::Access::GX |
                    XrdCl::Access::OR | XrdCl::Access::OX;
  return outcome(system_of(system)->MkDir(path, XrdCl::MkDirFlags::None, mode, timeout));
}

int64_t leadline_xrd_remove_directory(void *system, const char *path, uint16_t timeout) {
  return outcome(system_of(system)->RmDir(path, timeout));
}

int64_t leadline_xrd_remove(void *system, const char *path, uint16_t timeout) {
  return outcome(system_of(system)->Rm(path, timeout));
}

int64_t leadline_xrd_rename(void *system, const char *from, const char *to, uint16_t timeout) {
  return outcome(system_of(system)->Mv(from, to, timeout));
}

// Bytes of what `path` names; `is_directory` becomes 0 or 1.
int64_t leadline_xrd_stat(void *system, const char *path, int *is_directory, uint16_t timeout) {
  XrdCl::StatInfo *found = nullptr;
  int64_t result = outcome(system_of(system)->Stat(path, found, timeout));
  if (result == 0 && found != nullptr) {
    *is_directory = found->TestFlags(XrdCl::StatInfo::IsDir) ? 1 : 0;
    result = static_cast<int64_t>(found->GetSize());
  }
  delete found;
  return result;
}

// Calls `each` with every name of a directory.
int64_t leadline_xrd_list(void *system, const char *path, void (*each)(void *argument, const char *name),
                          void *argument, uint16_t timeout) {
  XrdCl::DirectoryList *found = nullptr;
  const int64_t result = outcome(system_of(system)->DirList(path, XrdCl::DirListFlags::None, found, timeout));
  if (result == 0 && found != nullptr) {
    for (auto entry = found->Begin(); entry != found->End(); ++entry) each(argument, (*entry)->GetName().c_str());
  }
  delete found;
  return result;
}

int64_t leadline_xrd_space(void *system, const char *path, uint64_t *total, uint64_t *free) {
  XrdCl::FileSystemUtils::SpaceInfo *found = nullptr;
  const int64_t result = outcome(XrdCl::FileSystemUtils::GetSpaceInfo(found, system_of(system), path));
  if (result == 0 && found != nullptr) {
    *total = found->GetTotal();
    *free = found->GetFree();
  }
  delete found;
  return result;
}
}
#pragma GCC visibility pop
