/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_list.c: parses the list of GPUs of the configuration. */
#include "daemon/base/gpu_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/config.h"

/* Far above the driver's numbers. */
#define MOST_NUMBER 9999

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *add(struct wharf_gpu_list *list, const char *name)
{
    if (list->n == WHARF_MAX_GPUS)
        return "more than 16 GPUs";
    for (uint32_t i = 0; i < list->n; i++)
        if (strcmp(list->names[i], name) == 0)
            return "one GPU is named twice";
    snprintf(list->names[list->n++], WHARF_GPU_NAME_NBYTES, "%s", name);
    return NULL;
}

/* Adds a number, or a range of numbers. */
static const char *add_numbers(struct wharf_gpu_list *list, const char *text)
{
    const char *wrong = NULL;
    char name[WHARF_GPU_NAME_NBYTES], *end;
    unsigned long first = strtoul(text, &end, 10), last = first;

    if (*end == '-' && is_digit(end[1]))
        last = strtoul(end + 1, &end, 10);
    if (*end || last < first || last > MOST_NUMBER)
        return "a GPU is a number, as in 0, or a range, as in 0-3, or a UUID";
    for (unsigned long number = first; number <= last && !wrong; number++) {
        snprintf(name, sizeof(name), "%lu", number);
        wrong = add(list, name);
    }
    return wrong;
}

static const char *add_element(struct wharf_gpu_list *list, const char *text)
{
    if (is_digit(*text))
        return add_numbers(list, text);
    if (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0)
        return add(list, text);
    return "a GPU is a number or a UUID, as nvidia-smi -L prints them; or all of them are: all";
}

const char *wharf_gpu_list_parse(const char *text, struct wharf_gpu_list *ret_list)
{
    char element[WHARF_GPU_NAME_NBYTES];
    const char *wrong = NULL;

    *ret_list = (struct wharf_gpu_list){.is_all = strcmp(text, "all") == 0};
    if (ret_list->is_all)
        return add(ret_list, "0");
    do {
        text += strspn(text, " \t");
        size_t n = strcspn(text, ","), n_text = n;
        while (n_text > 0 && (text[n_text - 1] == ' ' || text[n_text - 1] == '\t'))
            n_text--;
        if (n_text >= sizeof(element))
            return "the name of a GPU is too long";
        memcpy(element, text, n_text);
        element[n_text] = 0;
        wrong = add_element(ret_list, element);
        text += n;
    } while (!wrong && *text++ == ',');
    return wrong;
}
