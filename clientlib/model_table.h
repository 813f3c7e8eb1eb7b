/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_table.h: models that a program has registered, by the numbers that its jobs have as their
 * parameter.
 *
 * A handle that works through a daemon keeps what was registered, for the next daemon; an embedded
 * one the image that decoders read.  The table never moves, and a model's state and uses are
 * atomic: an embedded wharf_decompress takes no lock.  All else is guarded by the handle's.
 */
#ifndef WHARF_CLIENT_MODEL_TABLE_H
#define WHARF_CLIENT_MODEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum wharf_client_model_state {
    WHARF_CLIENT_MODEL_FREE,
    WHARF_CLIENT_MODEL_ADDING,   /* the daemon has not answered yet: no jobs */
    WHARF_CLIENT_MODEL_READY,    /* jobs may name it */
    WHARF_CLIENT_MODEL_REMOVING, /* no new jobs */
    WHARF_CLIENT_MODEL_UNKNOWN,  /* no answer: its number is not used again with this daemon */
};

struct wharf_client_model {
    uint32_t state;  /* enum wharf_client_model_state */
    uint32_t n_uses; /* by jobs in flight, and calls */
    uint32_t codec;
    int fd; /* sealed, of nbytes: owned; -1 for none */
    uint64_t nbytes;
    void *image; /* owned; NULL through a daemon */
};

enum { WHARF_CLIENT_MAX_MODELS = 1024 };

struct wharf_client_models {
    struct wharf_client_model table[WHARF_CLIENT_MAX_MODELS]; /* WHARF_FIRST_MODEL first */
};

/* All models.  Takes a zeroed struct too. */
void wharf_client_models_deinit(struct wharf_client_models *models);

/* The parameter that names a model of this table. */
uint32_t wharf_client_model_parameter(const struct wharf_client_models *models,
                                      const struct wharf_client_model *model);

/* A model in state ADDING with the lowest free number, which owns fd and image; NULL: no number is
 * free. */
struct wharf_client_model *wharf_client_models_add(struct wharf_client_models *models,
                                                   const struct wharf_client_model *model);

void wharf_client_model_set_state(struct wharf_client_model *model,
                                  enum wharf_client_model_state state);

/* Frees an unused model and its number. */
void wharf_client_model_remove(struct wharf_client_model *model);

/* For a new daemon: removes UNKNOWN models, which ended with the last one. */
void wharf_client_models_drop_unknown(struct wharf_client_models *models);

/* The model of that number that is not FREE, or NULL. */
struct wharf_client_model *wharf_client_models_find(struct wharf_client_models *models,
                                                    uint32_t parameter);

/* From READY to REMOVING, unless it is used.  Returns 0, -ENOENT or -EBUSY. */
int wharf_client_model_close(struct wharf_client_model *model);

/* Whether this parameter is a model's number; codecs without models can have large parameters with
 * another meaning. */
bool wharf_client_names_model(uint32_t codec, uint32_t parameter);

/*
 * wharf_client_model_use: finds the READY model of a codec that a job's parameter names, and keeps
 * it until wharf_client_model_release; NULL: none.  Without the lock.
 */
struct wharf_client_model *wharf_client_model_use(struct wharf_client_models *models,
                                                  uint32_t codec, uint32_t parameter);
/* NULL is allowed. */
void wharf_client_model_release(struct wharf_client_model *model);

#endif
