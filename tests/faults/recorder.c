/* Records what a process does to the files below one folder, in order, for a replay that cuts the power anywhere.
 *
 * Comes in: FAULTS_ROOT (the folder), FAULTS_TRACE (a file outside of it), LD_PRELOAD. Goes out: one record for each
 * call that changed something: kind, inode, offset, two lengths, two byte strings. Writes are caught as library calls;
 * names, truncations and syncs by a seccomp filter, because some libraries make those calls themselves. A process calls
 * under one lock, so the order of its records is the order of its calls. Linux, x86-64 and arm64. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "no registers known for this processor"
#endif

#define OURS 0x6d656d64u /* the sixth argument of a call that the filter lets pass */
#define CALL(n, a, b, c, d, e) syscall(n, a, b, c, d, e, (long)OURS)

static char root[PATH_MAX];
static int trace = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int below(const char *path) {
    size_t n = strlen(root);
    return n && !strncmp(path, root, n) && (path[n] == '/' || !path[n]);
}

static int path_of(int fd, char *out) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, out, PATH_MAX - 1);
    if (n < 0) return 0;
    out[n] = 0;
    return below(out);
}

static int absolute(int dir, const char *path, char *out) {
    char base[PATH_MAX];
    if (path[0] == '/') snprintf(out, PATH_MAX, "%s", path);
    else {
        if (dir == AT_FDCWD) { if (!getcwd(base, sizeof base)) return 0; }
        else path_of(dir, base);
        if (snprintf(out, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
    }
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/') out[--n] = 0;
    return below(out);
}

static void put(char kind, uint64_t inode, uint64_t offset, const void *a, uint32_t na, const void *b, uint32_t nb) {
    char head[1 + 8 + 8 + 4 + 4];
    head[0] = kind;
    memcpy(head + 1, &inode, 8);
    memcpy(head + 9, &offset, 8);
    memcpy(head + 17, &na, 4);
    memcpy(head + 21, &nb, 4);
    struct iovec parts[3] = {{head, sizeof head}, {(void *)a, na}, {(void *)b, nb}};
    if (syscall(SYS_writev, trace, parts, 3) != (long)(sizeof head + na + nb)) abort();
}

/* ---- writes, as library calls ---- */
static int watched(int fd, struct stat *st) {
    char path[PATH_MAX];
    return trace >= 0 && fd != trace && !fstat(fd, st) && S_ISREG(st->st_mode) && path_of(fd, path);
}

static char kind_of_write(int fd) { return fcntl(fd, F_GETFL) & O_DSYNC ? 'W' : 'w'; }

static uint64_t before(int fd, ssize_t n) { return (uint64_t)(lseek(fd, 0, SEEK_CUR) - n); }

static void wrote(int fd, const struct stat *st, uint64_t at, const struct iovec *parts, int count, ssize_t n) {
    char kind = kind_of_write(fd);
    for (int i = 0; i < count && n > 0; i++) {
        size_t size = parts[i].iov_len < (size_t)n ? parts[i].iov_len : (size_t)n;
        put(kind, st->st_ino, at, parts[i].iov_base, (uint32_t)size, "", 0);
        at += size;
        n -= (ssize_t)size;
    }
}

#define RECORDED(expression, at, parts, count)                                \
    struct stat st;                                                           \
    if (!watched(fd, &st)) return expression;                                 \
    pthread_mutex_lock(&lock);                                                \
    ssize_t n = expression;                                                   \
    int error = errno;                                                        \
    if (n > 0) wrote(fd, &st, at, parts, count, n);                           \
    pthread_mutex_unlock(&lock);                                              \
    errno = error;                                                            \
    return n

ssize_t write(int fd, const void *data, size_t size) {
    struct iovec part = {(void *)data, size};
    RECORDED(syscall(SYS_write, fd, data, size), before(fd, n), &part, 1);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    RECORDED(syscall(SYS_writev, fd, parts, count), before(fd, n), parts, count);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    struct iovec part = {(void *)data, size};
    RECORDED(syscall(SYS_pwrite64, fd, data, size, at), (uint64_t)at, &part, 1);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return pwrite(fd, data, size, at); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    RECORDED(syscall(SYS_pwritev, fd, parts, count, at, 0), (uint64_t)at, parts, count);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) { return pwritev(fd, parts, count, at); }

/* Copies inside of the kernel are done by hand, so that the bytes are seen. */
static ssize_t copy(int out, int in, off_t *from, size_t size) {
    static __thread char chunk[1 << 16];
    size = size < sizeof chunk ? size : sizeof chunk;
    ssize_t n = from ? pread(in, chunk, size, *from) : read(in, chunk, size);
    if (n <= 0) return n;
    n = write(out, chunk, (size_t)n);
    if (n > 0 && from) *from += n;
    return n;
}
ssize_t sendfile(int out, int in, off_t *from, size_t size) {
    struct stat st;
    return watched(out, &st) ? copy(out, in, from, size) : syscall(SYS_sendfile, out, in, from, size);
}
ssize_t sendfile64(int out, int in, off_t *from, size_t size) { return sendfile(out, in, from, size); }
ssize_t copy_file_range(int in, off_t *from, int out, off_t *to, size_t size, unsigned flags) {
    struct stat st;
    if (!to && watched(out, &st)) return copy(out, in, from, size);
    return syscall(SYS_copy_file_range, in, from, out, to, size, flags);
}

/* ---- names, truncations, syncs, as system calls ---- */
static long opened(int dir, const char *name, int flags, long mode) {
    char path[PATH_MAX];
    struct stat st;
    if (!absolute(dir, name, path)) return CALL(SYS_openat, dir, name, flags, mode, 0);
    int existed = !lstat(path, &st);
    long fd = CALL(SYS_openat, dir, name, flags, mode, 0);
    if (fd < 0 || fstat((int)fd, &st) || !S_ISREG(st.st_mode)) return fd;
    if (!existed) put('c', st.st_ino, 0, path, (uint32_t)strlen(path), "", 0);
    else if (flags & O_TRUNC) put('t', st.st_ino, 0, "", 0, "", 0);
    return fd;
}

static long named(char kind, long result, int dir1, const char *name1, int dir2, const char *name2) {
    char one[PATH_MAX], two[PATH_MAX] = "";
    struct stat st = {0};
    int seen = absolute(dir1, name1, one);
    if (name2) seen = absolute(dir2, name2, two) && seen;
    if (result || !seen) return result;
    if (kind == 'm' && lstat(one, &st)) abort();
    put(kind, st.st_ino, 0, one, (uint32_t)strlen(one), two, (uint32_t)strlen(two));
    return result;
}

static long changed(char kind, long result, int fd, uint64_t size) {
    char path[PATH_MAX];
    struct stat st;
    if (result || !path_of(fd, path) || fstat(fd, &st)) return result;
    put(kind, st.st_ino, size, path, (uint32_t)strlen(path), "", 0);
    return result;
}

static long dispatch(int number, const long *a) {
    const char *p0 = (const char *)a[0], *p1 = (const char *)a[1], *p3 = (const char *)a[3];
    long r = number == SYS_openat ? 0
#ifdef SYS_open
             : number == SYS_open ? 0
#endif
                                  : CALL(number, a[0], a[1], a[2], a[3], a[4]);
    switch (number) {
    case SYS_openat: return opened((int)a[0], p1, (int)a[2], a[3]);
    case SYS_renameat:
    case SYS_renameat2: return named('r', r, (int)a[0], p1, (int)a[2], p3);
    case SYS_linkat: return named('l', r, (int)a[0], p1, (int)a[2], p3);
    case SYS_unlinkat: return named(a[2] & AT_REMOVEDIR ? 'd' : 'u', r, (int)a[0], p1, 0, NULL);
    case SYS_mkdirat: return named('m', r, (int)a[0], p1, 0, NULL);
#ifdef SYS_open
    case SYS_open: return opened(AT_FDCWD, p0, (int)a[1], a[2]);
    case SYS_rename: return named('r', r, AT_FDCWD, p0, AT_FDCWD, p1);
    case SYS_link: return named('l', r, AT_FDCWD, p0, AT_FDCWD, p1);
    case SYS_unlink: return named('u', r, AT_FDCWD, p0, 0, NULL);
    case SYS_rmdir: return named('d', r, AT_FDCWD, p0, 0, NULL);
    case SYS_mkdir: return named('m', r, AT_FDCWD, p0, 0, NULL);
#endif
    case SYS_ftruncate: return changed('t', r, (int)a[0], (uint64_t)a[1]);
    case SYS_fsync:
    case SYS_fdatasync: return changed('s', r, (int)a[0], 0);
    }
    return r;
}

static void trapped(int signal, siginfo_t *info, void *context) {
    (void)signal;
    ucontext_t *uc = context;
    int error = errno;
#if defined(__x86_64__)
    greg_t *g = uc->uc_mcontext.gregs;
    long a[5] = {g[REG_RDI], g[REG_RSI], g[REG_RDX], g[REG_R10], g[REG_R8]};
#else
    unsigned long long *g = uc->uc_mcontext.regs;
    long a[5] = {(long)g[0], (long)g[1], (long)g[2], (long)g[3], (long)g[4]};
#endif
    errno = 0;
    pthread_mutex_lock(&lock);
    long result = dispatch(info->si_syscall, a);
    if (result == -1) result = -errno;
    pthread_mutex_unlock(&lock);
    errno = error;
#if defined(__x86_64__)
    g[REG_RAX] = result;
#else
    g[0] = (unsigned long long)result;
#endif
}

/* A thread that blocks every signal would be killed by the filter. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
    static int (*next)(int, const sigset_t *, sigset_t *);
    if (!next) next = dlsym(RTLD_NEXT, "pthread_sigmask");
    sigset_t open;
    if (set && how != SIG_UNBLOCK) {
        open = *set;
        sigdelset(&open, SIGSYS);
        set = &open;
    }
    return next(how, set, old);
}

static void filter(void) {
    static const int calls[] = {SYS_renameat, SYS_renameat2, SYS_linkat, SYS_unlinkat, SYS_mkdirat,
#ifdef SYS_open
                                SYS_rename, SYS_link, SYS_unlink, SYS_rmdir, SYS_mkdir,
#endif
                                SYS_ftruncate, SYS_fsync, SYS_fdatasync};
    enum { COUNT = sizeof calls / sizeof *calls };
    struct sock_filter code[COUNT * 2 + 24];
    unsigned n = 0;
#define DO(...) code[n++] = (struct sock_filter)__VA_ARGS__
#define LOAD(field) DO(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field)))
#define RETURN(what) DO(BPF_STMT(BPF_RET | BPF_K, what))
    LOAD(arch);
    DO(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    RETURN(SECCOMP_RET_ALLOW);
    LOAD(args[5]);
    DO(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OURS, 0, 1));
    RETURN(SECCOMP_RET_ALLOW);
    LOAD(nr);
    for (unsigned i = 0; i < COUNT; i++) {
        DO(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1));
        RETURN(SECCOMP_RET_TRAP);
    }
#define OPENING(call, flags)                                                          \
    DO(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));                              \
    LOAD(flags);                                                                      \
    DO(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT | O_TRUNC, 0, 1));                \
    RETURN(SECCOMP_RET_TRAP);                                                         \
    RETURN(SECCOMP_RET_ALLOW)
    OPENING(SYS_openat, args[2]);
#ifdef SYS_open
    OPENING(SYS_open, args[1]);
#endif
    RETURN(SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) abort();
}

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("FAULTS_ROOT"), *file = getenv("FAULTS_TRACE");
    if (!folder || !file || !realpath(folder, root)) return;
    /* marked as ours: in a child of a recorded process the filter is there before the handler */
    trace = (int)CALL(SYS_openat, AT_FDCWD, file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600, 0);
    struct sigaction action = {0};
    action.sa_sigaction = trapped;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (trace < 0 || sigaction(SIGSYS, &action, NULL)) abort();
    filter();
}
