/* Below the library: one call of those that change a file under a folder fails with ENOSPC; calls are counted.

   write, pwrite, writev, rename, fsync, fdatasync, ftruncate and opens that may create count. faults_begin says where
   and which, counted from 1, or 0 for none; faults_counted gives the calls since. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static long calls = 0, failing = 0;
static char folder[4096] = "";

void faults_begin(const char *where, long which) {
    snprintf(folder, sizeof folder, "%s", where);
    calls = 0;
    failing = which;
}

long faults_counted(void) { return calls; }

static int under(const char *path) {
    return folder[0] && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int fd_under(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return under(path);
}

static int fails(void) {
    if (++calls != failing) return 0;
    errno = ENOSPC;
    return 1;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name);

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t)
    return fd_under(fd) && fails() ? -1 : real(fd, data, size);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t)
    return fd_under(fd) && fails() ? -1 : real(fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec *data, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int)
    return fd_under(fd) && fails() ? -1 : real(fd, data, count);
}
int fsync(int fd) {
    REAL(int, "fsync", int)
    return fd_under(fd) && fails() ? -1 : real(fd);
}
int fdatasync(int fd) {
    REAL(int, "fdatasync", int)
    return fd_under(fd) && fails() ? -1 : real(fd);
}
int ftruncate64(int fd, off64_t size) {
    REAL(int, "ftruncate64", int, off64_t)
    return fd_under(fd) && fails() ? -1 : real(fd, size);
}
int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *)
    return (under(from) || under(to)) && fails() ? -1 : real(from, to);
}
int renameat(int a, const char *from, int b, const char *to) {
    REAL(int, "renameat", int, const char *, int, const char *)
    return (under(from) || under(to)) && fails() ? -1 : real(a, from, b, to);
}
int open64(const char *path, int flags, ...) {
    REAL(int, "open64", const char *, int, ...)
    mode_t mode = 0;
    if (flags & O_CREAT) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
    return (flags & O_CREAT) && under(path) && fails() ? -1 : real(path, flags, mode);
}
