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
    WHARF_CLIENT_NOT_SOCKET,    /* another kind of file is there: `thing` */
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
    bool has_service;                     /* the machine runs systemd, with a unit wharfd.socket */
    const char *thing;                    /* "a folder"; static */
    char user[WHARF_CLIENT_NAME_NBYTES];  /* this user, by name if possible */
    char owner[WHARF_CLIENT_NAME_NBYTES]; /* of the socket */
    char group[WHARF_CLIENT_NAME_NBYTES];
};

/* Finds the cause of connect's `err` (positive) for the socket at `path`, from the socket and, if
 * necessary, users and groups. */
void wharf_client_find_obstacle(const char *path, int err,
                                struct wharf_client_obstacle *ret_obstacle);

/* Writes one line with the cause and the remedy. */
void wharf_client_explain_connect(const char *path, int err, char *text, size_t text_nbytes);

/* Finds this process's user, and whether it is a member of group `name` in the database and in this
 * process.  Returns whether the group exists. */
bool wharf_client_look_up_member(const char *name, char user[WHARF_CLIENT_NAME_NBYTES],
                                 bool *ret_is_listed, bool *ret_is_in_process);

#endif
