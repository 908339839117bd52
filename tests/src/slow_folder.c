// Preloaded library: the folder in FLIPWAVE_SLOW behaves as on a slow file server. Renames are slow, and
// new names are neither listed nor found for some time.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Milliseconds until a new name becomes visible.
#define STALE 150
// Maximum duration of a rename in milliseconds.
#define SLOW 20

static int is_slow(const char *path) {
  const char *folder = getenv("FLIPWAVE_SLOW");
  return folder && path && strstr(path, folder);
}

static int is_new(const char *path) {
  struct stat status;
  struct timespec now;
  if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  clock_gettime(CLOCK_REALTIME, &now);
  long long age = (now.tv_sec - status.st_ctim.tv_sec) * 1000LL +
                  (now.tv_nsec - status.st_ctim.tv_nsec) / 1000000;
  return age < STALE;
}

static void pause_a_moment(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  usleep((now.tv_nsec / 1000 + getpid() * 7919) % (SLOW * 1000));
}

int rename(const char *from, const char *to) {
  static int (*next)(const char *, const char *);
  if (!next) next = dlsym(RTLD_NEXT, "rename");
  if (!is_slow(to)) return next(from, to);
  pause_a_moment();
  int result = next(from, to);
  int error = errno;
  pause_a_moment();
  errno = error;
  return result;
}

struct dirent64 *readdir64(DIR *folder) {
  static struct dirent64 *(*next)(DIR *);
  if (!next) next = dlsym(RTLD_NEXT, "readdir64");
  char link[64], path[PATH_MAX], entry[PATH_MAX + 300];
  snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd(folder));
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = 0;
  for (;;) {
    struct dirent64 *found = next(folder);
    if (!found || !is_slow(path)) return found;
    snprintf(entry, sizeof entry, "%s/%s", path, found->d_name);
    if (!is_new(entry)) return found;
  }
}

int open64(const char *path, int flags, ...) {
  static int (*next)(const char *, int, ...);
  if (!next) next = dlsym(RTLD_NEXT, "open64");
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  int only_read = (flags & (O_ACCMODE | O_CREAT)) == O_RDONLY && !(flags & O_DIRECTORY);
  if (only_read && is_slow(path) && is_new(path)) {
    errno = ENOENT;
    return -1;
  }
  return next(path, flags, mode);
}
