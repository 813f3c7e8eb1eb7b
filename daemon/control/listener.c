/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.c: listening sockets, and the locks of this daemon and of earlier ones.
 *
 * A socket's path is replaced only if no living process serves it.  Two locks beside the socket
 * outlive processes: one decides who may listen, and one is inherited by every process that can
 * write to clients' memory.
 */
#include "daemon/control/listener.h"

#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/fair_queue.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/control/connection.h"
#include "daemon/control/connection_accept.h"
#include "daemon/control/owner.h"
#include "daemon/control/pass_rights.h"
#include "daemon/control/served_path.h"
#include "daemon/disposable/closer_process.h"

/* Connections that are accepted in one turn. */
#define MOST_ACCEPTED 16

/* The listen backlog.  Beyond it, connect() blocks.  A client waits for all connections before it,
 * whoever made them, so the backlog is short.  Measured beside three processes that connect in a
 * loop, with a server that only accepts and closes: a client waits 0.1 ms with a backlog of 64, and
 * 44 ms with 4096. */
#define BACKLOG 64

/* How often, and at which interval, to check whether another daemon on the path has ended: it may
 * have been killed a moment ago. */
#define END_LOOKS 50
#define END_PAUSE_US 10000

/* How long to pause accepting when there are no descriptors for it. */
#define PAUSE_NS (100 * (uint64_t)WHARF_NS_PER_MS)

struct wharf_listener {
    struct wharf_source source;
    struct wharf_timer timer;
    struct wharf_list link;
    struct wharf_server *server;
    const struct wharf_config_listen *config;
    struct wharf_fair_party *party; /* accepting takes turns like a tenant */
    int fd;
    bool is_own; /* its path is removed at the end */
};

/* ---- making -------------------------------------------------------------------------------- */

static int listener_new(struct wharf_server *server, const struct wharf_config_listen *config,
                        int fd, bool is_own)
{
    struct wharf_listener *listener = calloc(1, sizeof(*listener));

    if (!listener)
        return -ENOMEM;
    listener->party = wharf_fair_party_new();
    if (!listener->party) {
        free(listener);
        return -ENOMEM;
    }
    listener->server = server;
    listener->config = config;
    listener->fd = fd;
    listener->is_own = is_own;
    wharf_pass_rights(fd, false);
    wharf_list_append(&server->listeners, &listener->link);
    return 0;
}

static bool stays_served(const struct sockaddr_un *address)
{
    for (unsigned i = 0; i < END_LOOKS; i++) {
        if (!wharf_path_is_served(address, SOCK_SEQPACKET))
            return false;
        usleep(END_PAUSE_US);
    }
    return true;
}

/* The group's members may connect.  A daemon that cannot give the socket to the group, because it
 * is a user's own, keeps it to that user. */
static int set_access(const struct wharf_config_listen *config)
{
    const struct group *group = config->group[0] ? getgrnam(config->group) : NULL;
    mode_t mode = (mode_t)config->mode;

    if (config->group[0] && (!group || lchown(config->path, (uid_t)-1, group->gr_gid) < 0)) {
        mode &= ~(mode_t)S_IRWXG;
        wharf_log(WHARF_LOG_INFO, NULL, "%s is for %s: %s group %s", config->path,
                  mode & S_IRWXO ? "its own user, and all others by its mode"
                                 : "its own user alone",
                  group ? "it cannot be given to" : "there is no", config->group);
    }
    return chmod(config->path, mode) < 0 ? -errno : 0;
}

static int open_path(struct wharf_server *server, const struct wharf_config_listen *config)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;

    if (wharf_path_other_kind(config->path, SOCK_SEQPACKET))
        return -EEXIST;
    strcpy(address.sun_path, config->path);
    if (stays_served(&address))
        return -EADDRINUSE;
    if (lstat(config->path, &st) == 0 && S_ISSOCK(st.st_mode))
        unlink(config->path);
    WHARF_CLEANUP_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* No access for anybody until the socket has its group and mode. */
    mode_t before = umask(0777);
    int r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
    umask(before);
    if (r < 0)
        return r;
    r = set_access(config);
    if (r == 0 && listen(fd, BACKLOG) < 0)
        r = -errno;
    if (r == 0)
        r = listener_new(server, config, fd, true);
    if (r < 0) {
        unlink(config->path);
        return r;
    }
    wharf_steal_fd(&fd);
    return 0;
}

static void log_open_error(const char *path, int r)
{
    struct wharf_log_fields fields = {.error = -r};
    const char *kind = wharf_path_other_kind(path, SOCK_SEQPACKET);

    if (kind)
        wharf_log(WHARF_LOG_ERROR, NULL,
                  "%s is %s, which is left as it is: choose another path for the socket", path,
                  kind);
    else if (r == -EADDRINUSE)
        wharf_log(WHARF_LOG_ERROR, NULL,
                  "%s is served by another daemon: stop that, or choose another path with "
                  "--socket",
                  path);
    else
        wharf_log(WHARF_LOG_ERROR, &fields, "cannot listen on %s", path);
}

static int open_lock(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static int open_promise(struct wharf_server *server, const char *path)
{
    int fd = open_lock(path);

    if (fd < 0) {
        int saved = errno;
        wharf_log(WHARF_LOG_ERROR, &(struct wharf_log_fields){.error = saved},
                  "cannot make %s, by which daemons on this socket follow each other; --socket "
                  "chooses another path for both",
                  path);
        return -saved;
    }
    server->promise_fd = fd;
    server->promise_path = strdup(path);
    if (!server->promise_path)
        return -ENOMEM;
    server->is_promised = wharf_promise_try(server) == 0;
    return 0;
}

/*
 * Two daemons that start on one path at the same time would remove each other's socket, because a
 * socket that does not listen yet looks abandoned.  A second lock prevents that.  Only the main
 * process holds it, so unlike the first lock it does not live on in a worker.  It is on a file of
 * its own, because some file systems cannot hold two locks on one file.
 */
static int lock_path(struct wharf_server *server, const char *path)
{
    server->path_fd = open_lock(path);
    if (server->path_fd < 0)
        return -errno;
    for (unsigned i = 0; i < END_LOOKS; i++) {
        if (flock(server->path_fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK)
            return -errno;
        usleep(END_PAUSE_US);
    }
    return -EADDRINUSE;
}

/* Whether two paths are in one folder; false if a folder cannot be examined. */
static bool are_together(const char *path, const char *other)
{
    char folder[WHARF_CONFIG_PATH_NBYTES], other_folder[WHARF_CONFIG_PATH_NBYTES];
    struct stat st, other_st;

    snprintf(folder, sizeof(folder), "%s", path);
    snprintf(other_folder, sizeof(other_folder), "%s", other);
    return stat(dirname(folder), &st) == 0 && stat(dirname(other_folder), &other_st) == 0 &&
           st.st_dev == other_st.st_dev && st.st_ino == other_st.st_ino;
}

/* Warns if containers may mount the folder that has the locks.  Even through a read-only mount,
 * root in a container can hold such a lock, and then the next daemon cannot start. */
static void warn_of_folder(const struct wharf_config *config,
                           const struct wharf_config_listen *listen)
{
    if (listen->tenant == WHARF_TENANT_BY_SOCKET && are_together(listen->path, config->listen.path))
        wharf_log(WHARF_LOG_WARNING, NULL,
                  "[listen %s] has the folder of the main socket and of the locks: containers need "
                  "a socket in a folder of its own",
                  listen->name);
}

static int open_logged(struct wharf_server *server, const struct wharf_config_listen *config)
{
    int r = open_path(server, config);

    if (r < 0)
        log_open_error(config->path, r);
    return r;
}

/* Opens the main socket last, so that a client that can connect to it can connect to all. */
static int open_own(struct wharf_server *server)
{
    char lock[WHARF_CONFIG_PATH_NBYTES + sizeof(".listen")];

    /* Before there are locks beside what is not the daemon's. */
    if (wharf_path_other_kind(server->config.listen.path, SOCK_SEQPACKET)) {
        log_open_error(server->config.listen.path, -EEXIST);
        return -EEXIST;
    }
    snprintf(lock, sizeof(lock), "%s.lock", server->config.listen.path);
    int r = open_promise(server, lock);
    if (r == 0) {
        snprintf(lock, sizeof(lock), "%s.listen", server->config.listen.path);
        r = lock_path(server, lock);
        if (r < 0)
            log_open_error(server->config.listen.path, r);
    }
    for (size_t i = 0; r == 0 && i < server->config.n_listens; i++) {
        const struct wharf_config_listen *config = &server->config.listens[i];
        if (config->path[0]) {
            r = open_logged(server, config);
            warn_of_folder(&server->config, config);
        } else {
            wharf_log(WHARF_LOG_WARNING, NULL,
                      "[listen %s] has no path, and systemd hands over no socket of that name",
                      config->name);
        }
    }
    return r < 0 ? r : open_logged(server, &server->config.listen);
}

/* The settings of the socket with that name; those of the main one if there are none. */
static const struct wharf_config_listen *find_config(const struct wharf_config *config,
                                                     const char *name)
{
    for (size_t i = 0; i < config->n_listens; i++)
        if (strcmp(config->listens[i].name, name) == 0)
            return &config->listens[i];
    return &config->listen;
}

/* In the folder that systemd made for the daemon, or beside the first socket. */
static int open_inherited_promise(struct wharf_server *server)
{
    const char *folder = getenv("RUNTIME_DIRECTORY");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t nbytes = sizeof(address);
    char path[PATH_MAX];

    if (folder && folder[0]) {
        snprintf(path, sizeof(path), "%.*s/wharfd.lock", (int)strcspn(folder, ":"), folder);
    } else {
        getsockname(SD_LISTEN_FDS_START, (struct sockaddr *)&address, &nbytes);
        snprintf(path, sizeof(path), "%.*s.lock", (int)sizeof(address.sun_path), address.sun_path);
    }
    return open_promise(server, path);
}

static int take_inherited(struct wharf_server *server, char **names, int n_fds)
{
    for (int i = 0; i < n_fds; i++) {
        int fd = SD_LISTEN_FDS_START + i;
        if (sd_is_socket_unix(fd, SOCK_SEQPACKET, 1, NULL, 0) <= 0) {
            wharf_log(WHARF_LOG_ERROR, NULL,
                      "what systemd hands over as %s is no listening SOCK_SEQPACKET socket",
                      names ? names[i] : "a socket");
            return -EINVAL;
        }
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        int r =
            listener_new(server, find_config(&server->config, names ? names[i] : ""), fd, false);
        if (r < 0)
            return r;
    }
    return open_inherited_promise(server);
}

int wharf_listeners_open(struct wharf_server *server)
{
    char **names = NULL;
    int n_fds = sd_listen_fds_with_names(1, &names);
    int r;

    if (n_fds > 0)
        r = take_inherited(server, names, n_fds);
    else
        r = n_fds < 0 ? n_fds : open_own(server);
    for (char **name = names; name && *name; name++)
        free(*name);
    free(names);
    return r;
}

/* ---- accepting ----------------------------------------------------------------------------- */

static void accept_peer(struct wharf_listener *listener, int fd)
{
    struct wharf_server *server = listener->server;
    char tenant[WHARF_CONFIG_NAME_NBYTES];
    struct ucred peer;
    socklen_t nbytes = sizeof(peer);

    /* Credentials are those at connect(); later changes of the peer do not matter. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &nbytes) < 0) {
        wharf_close_fd(fd);
        return;
    }
    if (listener->config->tenant == WHARF_TENANT_BY_PEER) {
        wharf_owners_admit(server->owners, fd, peer.uid, peer.pid);
        return;
    }
    snprintf(tenant, sizeof(tenant), "socket:%.50s", listener->config->name);
    wharf_connection_new(server, fd, peer.uid, peer.pid, tenant, NULL);
}

static void end_pause(struct wharf_timer *timer)
{
    struct wharf_listener *listener = WHARF_LIST_ENTRY(timer, struct wharf_listener, timer);

    wharf_loop_want(listener->server->loop, &listener->source, POLLIN);
}

static void pause_accepting(struct wharf_listener *listener)
{
    struct wharf_loop *loop = listener->server->loop;

    wharf_loop_want(loop, &listener->source, 0);
    wharf_timer_set(loop, &listener->timer, wharf_now_ns() + PAUSE_NS, end_pause);
}

static bool is_of_the_peer(int error)
{
    return error == ECONNABORTED || error == EINTR || error == EPERM || error == EPROTO;
}

static void on_ready(struct wharf_source *source, uint32_t ready)
{
    struct wharf_listener *listener = WHARF_LIST_ENTRY(source, struct wharf_listener, source);
    struct wharf_server *server = listener->server;

    (void)ready;
    if (wharf_closer_process_is_full(server->closer_process)) {
        pause_accepting(listener);
        return;
    }
    for (unsigned n = 0; n < MOST_ACCEPTED; n++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            accept_peer(listener, fd);
            continue;
        }
        if (errno == EAGAIN)
            return;
        if (is_of_the_peer(errno))
            continue;
        wharf_log_client(WHARF_LOG_WARNING, &(struct wharf_log_fields){.error = errno},
                         "cannot accept a connection");
        pause_accepting(listener);
        return;
    }
}

/* Refuses the connections in the backlog with a reason.  Their sockets are not closed here. */
static void turn_all_away(struct wharf_listener *listener)
{
    int fd;

    while ((fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
        accept_peer(listener, fd);
}

int wharf_listeners_start(struct wharf_server *server)
{
    WHARF_LIST_FOR(link, &server->listeners)
    {
        struct wharf_listener *listener = WHARF_LIST_ENTRY(link, struct wharf_listener, link);
        int r = wharf_loop_add_of(server->loop, &listener->source, listener->fd, POLLIN, on_ready,
                                  listener->party);
        if (r < 0)
            return r;
    }
    return 0;
}

void wharf_listeners_close(struct wharf_server *server)
{
    WHARF_LIST_FOR(link, &server->listeners)
    {
        struct wharf_listener *listener = WHARF_LIST_ENTRY(link, struct wharf_listener, link);
        if (server->loop) {
            wharf_loop_remove(server->loop, &listener->source);
            wharf_timer_clear(server->loop, &listener->timer);
        }
        if (listener->is_own)
            unlink(listener->config->path);
        if (listener->is_own && server->is_draining)
            turn_all_away(listener);
        wharf_close_fd(listener->fd);
        wharf_list_remove(link);
        wharf_fair_party_unref(listener->party);
        free(listener);
    }
    /* The next daemon may listen while this one finishes its jobs. */
    server->path_fd = wharf_close_fd(server->path_fd);
}

/* ---- the promise --------------------------------------------------------------------------- */

int wharf_promise_try(struct wharf_server *server)
{
    return flock(server->promise_fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static bool is_same_file(int fd, const char *path)
{
    struct stat own, there;

    return fstat(fd, &own) == 0 && lstat(path, &there) == 0 && own.st_dev == there.st_dev &&
           own.st_ino == there.st_ino;
}

void wharf_promise_renew(struct wharf_server *server)
{
    if (!server->is_promised || is_same_file(server->promise_fd, server->promise_path))
        return;
    WHARF_CLEANUP_FD int fd = open_lock(server->promise_path);
    /* Keeps the old descriptor's number, so that its users now have the new lock. */
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        dup3(fd, server->promise_fd, O_CLOEXEC);
}
