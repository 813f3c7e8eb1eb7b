/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_model.h: models of libwharf-cuda, for the library itself and its tests. */
#ifndef WHARF_CLIENT_CUDA_MODEL_H
#define WHARF_CLIENT_CUDA_MODEL_H

#include <stddef.h>
#include <stdint.h>

struct wharf_cuda;
struct wharf_cuda_model;

/* wharf_cuda_model_new for an image that is made already, aligned to 16. */
int wharf_cuda_model_of_image(struct wharf_cuda *cuda, uint32_t codec, const void *image,
                              size_t image_nbytes, struct wharf_cuda_model **ret_model);

#endif
