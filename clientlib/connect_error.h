/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_error.h: why there is no connection, for the person who has to do something about it.
 */
#ifndef WHARF_CLIENT_CONNECT_ERROR_H
#define WHARF_CLIENT_CONNECT_ERROR_H

#include <stdbool.h>
#include <stddef.h>

enum { WHARF_CLIENT_NAME_NBYTES = 64 };

enum wharf_client_obstacle_kind {
    WHARF_CLIENT_NO_SOCKET,     /* nothing is at the path */
    WHARF_CLIENT_NOBODY,        /* a socket, at which nobody listens */
    WHARF_CLIENT_NOT_SOCKET,    /* something else is there: `thing` */
    WHARF_CLIENT_WRONG_TYPE,    /* a socket of another type than the daemon's */
    WHARF_CLIENT_CLOSED_FOLDER, /* a folder on the way is closed to this user */
    WHARF_CLIENT_OWNER_ALONE,   /* the daemon serves its owner alone */
    WHARF_CLIENT_NOT_MEMBER,    /* the user is not in the group of the socket */
    WHARF_CLIENT_NEW_MEMBER,    /* is, but this process began before that */
    WHARF_CLIENT_OTHER_ERROR,
};

struct wharf_client_obstacle {
    enum wharf_client_obstacle_kind kind;
    int error;                            /* of connect, positive */
    bool is_default;                      /* the path is WHARF_DEFAULT_SOCKET */
    bool has_service;                     /* systemd runs this machine, and has wharfd.socket */
    const char *thing;                    /* "a folder"; static */
    char user[WHARF_CLIENT_NAME_NBYTES];  /* this one, as a name if it has one */
    char owner[WHARF_CLIENT_NAME_NBYTES]; /* of the socket */
    char group[WHARF_CLIENT_NAME_NBYTES];
};

/* What connect's `err` (positive) means for the socket at `path`.  Looks at the socket, and at
 * users and groups where that helps. */
void wharf_client_find_obstacle(const char *path, int err,
                                struct wharf_client_obstacle *ret_obstacle);

/* Writes one line about it: what is there, and what to do. */
void wharf_client_explain_connect(const char *path, int err, char *text, size_t text_nbytes);

/* Writes this process's user and whether that is a member of group `name`, in the data base and in
 * this process.  Returns whether there is such a group. */
bool wharf_client_look_up_member(const char *name, char user[WHARF_CLIENT_NAME_NBYTES],
                                 bool *ret_is_listed, bool *ret_is_in_process);

#endif
