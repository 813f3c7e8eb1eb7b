/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_table.c: the registered models of a handle.
 */
#include "clientlib/model_table.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "encoders/codec.h"
#include "proto/wharf_job.h"

static uint32_t state_of(const struct wharf_client_model *model)
{
    return __atomic_load_n(&model->state, __ATOMIC_SEQ_CST);
}

void wharf_client_model_set_state(struct wharf_client_model *model,
                                  enum wharf_client_model_state state)
{
    __atomic_store_n(&model->state, (uint32_t)state, __ATOMIC_SEQ_CST);
}

static void free_contents(struct wharf_client_model *model)
{
    if (model->fd >= 0)
        close(model->fd);
    free(model->image);
    model->fd = -1;
    model->image = NULL;
}

void wharf_client_model_remove(struct wharf_client_model *model)
{
    free_contents(model);
    wharf_client_model_set_state(model, WHARF_CLIENT_MODEL_FREE);
}

void wharf_client_models_deinit(struct wharf_client_models *models)
{
    for (uint32_t i = 0; i < WHARF_CLIENT_MAX_MODELS; i++)
        if (state_of(&models->table[i]) != WHARF_CLIENT_MODEL_FREE)
            wharf_client_model_remove(&models->table[i]);
}

uint32_t wharf_client_model_parameter(const struct wharf_client_models *models,
                                      const struct wharf_client_model *model)
{
    return WHARF_FIRST_MODEL + (uint32_t)(model - models->table);
}

struct wharf_client_model *wharf_client_models_add(struct wharf_client_models *models,
                                                   const struct wharf_client_model *model)
{
    for (uint32_t i = 0; i < WHARF_CLIENT_MAX_MODELS; i++) {
        struct wharf_client_model *place = &models->table[i];
        if (state_of(place) != WHARF_CLIENT_MODEL_FREE)
            continue;
        /* Not n_uses: somebody may be looking at it in vain. */
        place->codec = model->codec;
        place->fd = model->fd;
        place->nbytes = model->nbytes;
        place->image = model->image;
        wharf_client_model_set_state(place, WHARF_CLIENT_MODEL_ADDING);
        return place;
    }
    return NULL;
}

void wharf_client_models_drop_unknown(struct wharf_client_models *models)
{
    for (uint32_t i = 0; i < WHARF_CLIENT_MAX_MODELS; i++)
        if (state_of(&models->table[i]) == WHARF_CLIENT_MODEL_UNKNOWN)
            wharf_client_model_remove(&models->table[i]);
}

struct wharf_client_model *wharf_client_models_find(struct wharf_client_models *models,
                                                    uint32_t parameter)
{
    uint32_t place = parameter - WHARF_FIRST_MODEL;

    return place < WHARF_CLIENT_MAX_MODELS &&
                   state_of(&models->table[place]) != WHARF_CLIENT_MODEL_FREE
               ? &models->table[place]
               : NULL;
}

/*
 * Whoever uses a model counts itself, then looks at the state; whoever closes it changes the state,
 * then looks at the count.  All four are in one order, so one of the two sees the other.
 */
int wharf_client_model_close(struct wharf_client_model *model)
{
    if (state_of(model) != WHARF_CLIENT_MODEL_READY)
        return -ENOENT;
    wharf_client_model_set_state(model, WHARF_CLIENT_MODEL_REMOVING);
    if (__atomic_load_n(&model->n_uses, __ATOMIC_SEQ_CST) == 0)
        return 0;
    wharf_client_model_set_state(model, WHARF_CLIENT_MODEL_READY);
    return -EBUSY;
}

bool wharf_client_names_model(uint32_t codec, uint32_t parameter)
{
    const struct wharf_codec_row *row = wharf_codec_find(codec);

    return parameter >= WHARF_FIRST_MODEL && (!row || row->ops->models);
}

struct wharf_client_model *wharf_client_model_use(struct wharf_client_models *models,
                                                  uint32_t codec, uint32_t parameter)
{
    uint32_t place = parameter - WHARF_FIRST_MODEL;
    struct wharf_client_model *model;

    if (place >= WHARF_CLIENT_MAX_MODELS)
        return NULL;
    model = &models->table[place];
    __atomic_fetch_add(&model->n_uses, 1, __ATOMIC_SEQ_CST);
    if (state_of(model) == WHARF_CLIENT_MODEL_READY && model->codec == codec)
        return model;
    wharf_client_model_release(model);
    return NULL;
}

void wharf_client_model_release(struct wharf_client_model *model)
{
    if (model)
        __atomic_fetch_sub(&model->n_uses, 1, __ATOMIC_SEQ_CST);
}
