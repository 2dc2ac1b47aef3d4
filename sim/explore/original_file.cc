// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// original_file.cc -- the files of --pmem, which the programs of each schedule change

#include "explore.hh"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

// The original of FILE is FILE with this suffix while an exploration runs.
constexpr char ORIGINAL[] = ".rdma-sim-original";

[[noreturn]] void refuse_file(const std::string &path, int error) {
    refuse("--pmem %s: %s", path.c_str(), strerror(error));
}

std::string read_all(int fd, const std::string &path) {
    std::string content;
    char part[65536];
    ssize_t length;
    while ((length = read(fd, part, sizeof(part))) > 0)
        content.append(part, static_cast<size_t>(length));
    if (length < 0)
        refuse_file(path, errno);
    return content;
}

// Returns 0 or an error number.
int write_all(int fd, std::string_view content) {
    while (!content.empty()) {
        const ssize_t length = write(fd, content.data(), content.size());
        if (length < 0)
            return errno;
        content.remove_prefix(static_cast<size_t>(length));
    }
    return 0;
}

constexpr size_t BLOCK = 4096;

// Returns the ranges of blocks that are not zero: offset and length.
std::vector<std::pair<size_t, size_t>> ranges_of(const std::string &content) {
    static const char ZERO[BLOCK] = {};
    std::vector<std::pair<size_t, size_t>> ranges;
    for (size_t at = 0; at < content.size(); at += BLOCK) {
        const size_t length = std::min(BLOCK, content.size() - at);
        if (memcmp(&content[at], ZERO, length) == 0)
            continue;
        if (ranges.empty() || ranges.back().first + ranges.back().second != at)
            ranges.emplace_back(at, 0);
        ranges.back().second += length;
    }
    return ranges;
}

} // namespace

// Leaves holes where the content is zero. Returns 0 or an error number.
int OriginalFile::write_content(int fd) const {
    if (ftruncate(fd, static_cast<off_t>(content_.size())) != 0)
        return errno;
    for (const auto &[offset, length] : ranges_) {
        if (lseek(fd, static_cast<off_t>(offset), SEEK_SET) < 0)
            return errno;
        if (const int error = write_all(fd, std::string_view(content_).substr(offset, length)))
            return error;
    }
    return 0;
}

OriginalFile::OriginalFile(const std::string &path, const std::string *content) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat status;
    char real[PATH_MAX];
    if (fd < 0 || fstat(fd, &status) != 0 || realpath(path.c_str(), real) == nullptr)
        refuse_file(path, errno);
    if (!S_ISREG(status.st_mode))
        refuse("--pmem %s: not a regular file", path.c_str());
    content_ = read_all(fd, path);
    digest_ = digest_of(content_);
    if (content != nullptr)
        content_ = *content;
    ranges_ = ranges_of(content_);
    close(fd);
    path_ = real;
    original_ = path_ + ORIGINAL;
    if (access(original_.c_str(), F_OK) == 0)
        refuse(
            "--pmem %s: an exploration that was killed, or still runs, has left the original "
            "as %s: move it back",
            path.c_str(), original_.c_str());
    std::string copy = path_ + ".rdma-sim-XXXXXX";
    const int to = copy_ = mkostemp(copy.data(), O_CLOEXEC);
    if (to < 0)
        refuse("--pmem %s: no copy of it in its directory: %s", path.c_str(), strerror(errno));
    (void)!fchown(to, status.st_uid, status.st_gid);
    int error = write_content(to);
    if (error == 0 && fchmod(to, status.st_mode & 07777) != 0)
        error = errno;
    if (error == 0 && rename(path_.c_str(), original_.c_str()) != 0)
        error = errno;
    if (error == 0 && rename(copy.c_str(), path_.c_str()) == 0)
        return;
    if (error == 0) {
        error = errno;
        (void)rename(original_.c_str(), path_.c_str());
    }
    unlink(copy.c_str());
    refuse_file(path, error);
}

namespace {

// Gives this process a view of the folder whose changes other processes do not see, so that a
// program can remove the file, or rename another one over it. Returns false if the system
// refuses such a view.
bool mount_own_folder(const std::string &folder, const std::string &changes) {
    std::ifstream mounts("/proc/self/mountinfo");
    for (std::string line, id, parent, device, root, point; std::getline(mounts, line);) {
        std::istringstream words(line);
        words >> id >> parent >> device >> root >> point;
        if (point == folder && line.find(" - overlay rdma-sim ") != line.npos)
            return true; // of another file in this folder
        if (point.starts_with(folder + "/") || folder == "/")
            return false; // it would be hidden
    }
    const std::string upper = changes + "/upper", work = changes + "/work",
                      options =
                          "lowerdir=" + folder + ",upperdir=" + upper + ",workdir=" + work;
    char current[PATH_MAX];
    if (folder.find_first_of(",:\\") != folder.npos ||
        getcwd(current, sizeof(current)) == nullptr || mkdir(changes.c_str(), 0700) != 0 ||
        mount("rdma-sim", changes.c_str(), "tmpfs", 0, nullptr) != 0)
        return false;
    // Without root, the attributes of an overlay are those of users.
    const bool is_mounted =
        mkdir(upper.c_str(), 0755) == 0 && mkdir(work.c_str(), 0755) == 0 &&
        (mount("rdma-sim", folder.c_str(), "overlay", 0, options.c_str()) == 0 ||
         mount("rdma-sim", folder.c_str(), "overlay", 0, (options + ",userxattr").c_str()) ==
             0);
    return is_mounted && chdir(current) == 0;
}

} // namespace

OriginalFile::OriginalFile(const OriginalFile &other, const std::string &copy)
    : path_(other.path_), original_(), content_(other.content_), digest_(other.digest_),
      ranges_(other.ranges_) {
    const std::string folder = path_.substr(0, std::max<size_t>(path_.rfind('/'), 1));
    if (other.is_replaced() && mount_own_folder(folder, copy + ".folder")) {
        mounted_ = {folder, copy + ".folder"};
        return;
    }
    const int fd = open(copy.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct stat status;
    if (fd < 0 || stat(path_.c_str(), &status) != 0 ||
        fchmod(fd, status.st_mode & 07777) != 0 ||
        mount(copy.c_str(), path_.c_str(), nullptr, MS_BIND, nullptr) != 0)
        refuse_file(path_, errno);
    close(fd);
}

bool OriginalFile::is_replaced() const {
    struct stat first, now;
    return copy_ >= 0 && fstat(copy_, &first) == 0 &&
           (stat(path_.c_str(), &now) != 0 || now.st_dev != first.st_dev ||
            now.st_ino != first.st_ino);
}

OriginalFile::~OriginalFile() {
    if (copy_ >= 0)
        close(copy_);
    for (const std::string &each : mounted_)
        (void)umount2(each.c_str(), MNT_DETACH);
    if (!mounted_.empty())
        (void)rmdir(mounted_.back().c_str());
    if (original_.empty())
        return;
    if (rename(original_.c_str(), path_.c_str()) != 0)
        fprintf(stderr, "rdma-sim: --pmem %s: %s: the original is %s\n", path_.c_str(),
                strerror(errno), original_.c_str());
}

void OriginalFile::restore_copy() const {
    const int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const int error = fd < 0 ? errno : write_content(fd);
    if (fd >= 0)
        close(fd);
    if (error != 0)
        refuse_file(path_, error);
}

namespace {

bool write_file(const char *path, const std::string &text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool is_written = fd >= 0 && write_all(fd, text) == 0;
    if (fd >= 0)
        close(fd);
    return is_written;
}

// Without root, only a new namespace of users may have its own mounts. The IDs stay the same.
bool leave_users() {
    const std::string user = std::to_string(geteuid()), group = std::to_string(getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", user + " " + user + " 1") &&
           write_file("/proc/self/gid_map", group + " " + group + " 1");
}

} // namespace

void leave_mounts() {
    if ((unshare(CLONE_NEWNS) != 0 && !leave_users()) ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
        refuse("--jobs with --pmem needs mounts of its own, which the system refuses (%s): "
               "explore without --jobs",
               strerror(errno));
}
