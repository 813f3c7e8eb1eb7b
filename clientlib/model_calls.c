/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls about models. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "clientlib/handshake.h"
#include "clientlib/request.h"
#include "clientlib/sized_struct.h"
#include "encoders/codec.h"
#include "encoders/rans/rans_image.h"
#include "encoders/rans/rans_model.h"

_Static_assert((int)WHARF_CLIENT_MAX_MODELS == WHARF_MAX_MODELS, "as wharf.h says");

enum {
    MODEL_NBYTES_0_1 = offsetof(struct wharf_model, nbytes) + sizeof(size_t),
    RANS_MODEL_NBYTES_0_1 = offsetof(struct wharf_rans_frequencies, frequencies) + sizeof(void *),
};

static int copy_model(struct wharf_model *own, const struct wharf_model *model)
{
    if (!model)
        return wharf_client_fail(-EINVAL, "the model is NULL");
    int r = wharf_client_copy_struct(own, sizeof(*own), MODEL_NBYTES_0_1, model, "the model");
    if (r < 0)
        return r;
    if (!own->data || own->nbytes == 0 || own->nbytes > PTRDIFF_MAX)
        return wharf_client_fail(-EINVAL, "the model has no data or no size");
    return 0;
}

/* ---- what is kept of it -------------------------------------------------------------------- */

/* Whether writing it would raise SIGXFSZ, which is the program's: memfds are files too. */
static bool is_beyond_limit(size_t nbytes)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && nbytes > limit.rlim_cur;
}

/* A memfd with the model in it that nobody can change any more. */
static int seal_copy(const struct wharf_model *own)
{
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    int fd = memfd_create("wharf-model", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const char *at = own->data;
    size_t left = own->nbytes;

    if (fd < 0)
        return -errno;
    if (is_beyond_limit(own->nbytes)) {
        close(fd);
        return -EFBIG;
    }
    while (left > 0) {
        ssize_t n = write(fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || (size_t)n > left) {
            int error = n < 0 ? -errno : -ENOMEM;
            close(fd);
            return error;
        }
        at += n;
        left -= (size_t)n;
    }
    if (fcntl(fd, F_ADD_SEALS, seals) == 0)
        return fd;
    int error = -errno;
    close(fd);
    return error;
}

static int refuse(enum wharf_reason reason)
{
    return wharf_client_fail(-EBADMSG, "the model is none: %s", wharf_reason_string(reason));
}

static int make_image(const struct wharf_model *own, void **ret_image)
{
    const struct wharf_codec_row *codec = wharf_codec_find(own->codec);
    size_t nbytes;

    if (!codec || !codec->ops->models)
        return wharf_client_fail(-EINVAL, "codec %u has no models that could be registered",
                                 own->codec);
    enum wharf_reason reason = codec->ops->models->image_nbytes(own->data, own->nbytes, &nbytes);
    if (reason != WHARF_REASON_NONE)
        return refuse(reason);
    void *image = calloc(1, nbytes);
    if (!image)
        return wharf_client_fail(-ENOMEM, "out of memory");
    reason = codec->ops->models->make_image(own->data, own->nbytes, image);
    if (reason != WHARF_REASON_NONE) {
        free(image);
        return refuse(reason);
    }
    *ret_image = image;
    return 0;
}

/* Without locks: it can take long. */
static int prepare(const struct wharf *wharf, const struct wharf_model *own,
                   struct wharf_client_model *ret_model)
{
    *ret_model = (struct wharf_client_model){.codec = own->codec, .fd = -1, .nbytes = own->nbytes};
    if (!wharf->is_daemon)
        return make_image(own, &ret_model->image);
    ret_model->fd = seal_copy(own);
    if (ret_model->fd < 0)
        return wharf_client_fail(ret_model->fd, "cannot keep a copy of the model: %s",
                                 strerror(-ret_model->fd));
    return 0;
}

static void drop(struct wharf_client_model *model)
{
    if (model->fd >= 0)
        close(model->fd);
    free(model->image);
}

/* ---- registering --------------------------------------------------------------------------- */

static int send_register(struct wharf *wharf, void *data)
{
    return wharf_client_send_model(wharf, data);
}

/* With the lock; takes over what was prepared if there is a place for it. */
static int add_model(struct wharf *wharf, struct wharf_client_model *prepared,
                     struct wharf_client_model **ret_model)
{
    uint64_t models = (uint64_t)1 << WHARF__FEATURE__FEATURE_MODELS;

    if (wharf->is_daemon && !(wharf->link.facts.features & models))
        return wharf_client_fail(-EOPNOTSUPP, "the daemon is too old for models");
    *ret_model = wharf_client_models_add(&wharf->models, prepared);
    if (!*ret_model)
        return wharf_client_fail(-ENOSPC, "%d models are registered already",
                                 WHARF_CLIENT_MAX_MODELS);
    prepared->fd = -1;
    prepared->image = NULL;
    return 0;
}

struct registration {
    struct wharf_client_model prepared;
    uint32_t parameter; /* what it comes to */
};

static int register_model(struct wharf *wharf, void *data, struct wharf_client_answer *answer)
{
    struct registration *registration = data;
    struct wharf_client_model *model;
    int r = add_model(wharf, &registration->prepared, &model);

    if (r < 0)
        return r;
    r = wharf_client_request_done(wharf, send_register, model, answer);
    if (r == 0)
        wharf_client_model_set_state(model, WHARF_CLIENT_MODEL_READY);
    else if (r == -ETIMEDOUT)
        wharf_client_model_set_state(model, WHARF_CLIENT_MODEL_UNKNOWN);
    else
        wharf_client_model_remove(model);
    registration->parameter = wharf_client_model_parameter(&wharf->models, model);
    return r;
}

int wharf_register_model(struct wharf *wharf, const struct wharf_model *model,
                         uint32_t *ret_parameter)
{
    struct registration registration;
    struct wharf_model own;
    int r = wharf_client_check(wharf);

    if (r == 0 && !ret_parameter)
        r = wharf_client_fail(-EINVAL, "the place for the model's parameter is NULL");
    if (r == 0)
        r = copy_model(&own, model);
    if (r == 0)
        r = prepare(wharf, &own, &registration.prepared);
    if (r < 0)
        return r;
    r = wharf_client_with_answer(wharf, register_model, &registration);
    drop(&registration.prepared);
    if (r == 0)
        *ret_parameter = registration.parameter;
    return r;
}

/* ---- and its end --------------------------------------------------------------------------- */

static int remove_model(struct wharf *wharf, struct wharf_client_model *model, uint32_t parameter,
                        struct wharf_client_answer *answer)
{
    Wharf__UnregisterModelRequest number = WHARF__UNREGISTER_MODEL_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    int r;

    number.model = parameter;
    request.body_case = WHARF__REQUEST__BODY_UNREGISTER_MODEL;
    request.unregister_model = &number;
    r = wharf_client_request_removal(wharf, &request, answer);
    if (r == -EBUSY)
        wharf_client_model_set_state(model, WHARF_CLIENT_MODEL_READY);
    else if (r == -ETIMEDOUT)
        wharf_client_model_set_state(model, WHARF_CLIENT_MODEL_UNKNOWN);
    else
        wharf_client_model_remove(model);
    return r;
}

static int unregister(struct wharf *wharf, void *data, struct wharf_client_answer *answer)
{
    uint32_t parameter = *(const uint32_t *)data;
    struct wharf_client_model *model = wharf_client_models_find(&wharf->models, parameter);
    int r = model ? wharf_client_model_close(model) : -ENOENT;

    if (r == -EBUSY)
        return wharf_client_fail(r, "jobs in flight use model %u", parameter);
    if (r < 0)
        return wharf_client_fail(r, "there is no model %u", parameter);
    return remove_model(wharf, model, parameter, answer);
}

int wharf_unregister_model(struct wharf *wharf, uint32_t parameter)
{
    int r = wharf_client_check(wharf);

    return r < 0 ? r : wharf_client_with_answer(wharf, unregister, &parameter);
}

/* ---- making what is registered ------------------------------------------------------------- */

int wharf_make_rans_model(const struct wharf_rans_frequencies *frequencies, void *model,
                          size_t model_avail, size_t *ret_nbytes)
{
    struct wharf_rans_frequencies own;

    if (!frequencies || !ret_nbytes)
        return wharf_client_fail(-EINVAL, "the frequencies or the place for the size are NULL");
    int r = wharf_client_copy_struct(&own, sizeof(own), RANS_MODEL_NBYTES_0_1, frequencies,
                                     "the frequencies");
    if (r < 0)
        return r;
    const struct wharf_rans_shape shape = {own.n_bits, own.symbol_nbytes, own.alphabet,
                                           own.n_distributions};
    if (!own.frequencies || own.reserved ||
        !wharf_rans_shape_is_good(&shape, WHARF_RANS_REGISTERED_NSLOTS))
        return wharf_client_fail(-EINVAL, "the frequencies are NULL, a number of the model is "
                                          "out of range, or the reserved member is not 0");
    if (!wharf_rans_frequencies_are_good(&shape, own.frequencies))
        return wharf_client_fail(
            -EINVAL, "a distribution's frequencies sum up to 0, or to more than 2^%u", own.n_bits);
    size_t nbytes = wharf_rans_model_write(&shape, own.frequencies, model, model ? model_avail : 0);
    if (nbytes > model_avail && model)
        return wharf_client_fail(-ENOSPC, "the model takes %zu bytes", nbytes);
    *ret_nbytes = nbytes;
    return 0;
}
