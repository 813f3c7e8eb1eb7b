/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/config_table.h"
#include "daemon/base/ini.h"
#include "daemon/base/uid_ranges.h"
#include "daemon/gpu/gpu_list.h"

/* ---- values -------------------------------------------------------------------------------- */

static const struct wharf_config_suffix no_suffixes[] = {{"", 1}, {NULL, 0}};

static const char *unit_error(const struct wharf_config_suffix *suffixes)
{
    if (suffixes == wharf_config_duration_suffixes)
        return "a time needs a number and a unit: us, ms, s or min";
    if (suffixes == wharf_config_byte_suffixes)
        return "not a number of bytes, or of units K, M, G or T";
    return "not a number";
}

static const char *parse_number(const char *text, int base,
                                const struct wharf_config_suffix *suffixes, uint64_t *ret_value)
{
    uint64_t value;
    char *end;

    errno = 0;
    value = strtoull(text, &end, base);
    if (end == text || *text == '-' || *text == '+')
        return unit_error(suffixes);
    if (errno)
        return "too large";
    while (*end == ' ')
        end++;
    const struct wharf_config_suffix *unit = suffixes;
    while (unit->text && strcmp(end, unit->text) != 0)
        unit++;
    if (!unit->text)
        return unit_error(suffixes);
    if (__builtin_mul_overflow(value, unit->factor, ret_value))
        return "too large";
    return NULL;
}

static const char *parse_choice(const struct wharf_setting_choice *choices, const char *text,
                                uint64_t *ret_value)
{
    for (; choices->word; choices++) {
        if (strcmp(choices->word, text) == 0) {
            *ret_value = choices->value;
            return NULL;
        }
    }
    return "not one of the words that are known here; wharfd --print-config lists them";
}

static const char *parse_value(const struct wharf_setting *setting, const char *text,
                               uint64_t *ret_value)
{
    const struct wharf_config_suffix *suffixes = no_suffixes;

    if (setting->type == WHARF_SETTING_CHOICE)
        return parse_choice(setting->choices, text, ret_value);
    if (setting->type == WHARF_SETTING_BYTES)
        suffixes = wharf_config_byte_suffixes;
    if (setting->type == WHARF_SETTING_DURATION)
        /* 0 needs no unit. */
        suffixes = strcmp(text, "0") == 0 ? no_suffixes : wharf_config_duration_suffixes;
    const char *wrong =
        parse_number(text, setting->type == WHARF_SETTING_MODE ? 8 : 10, suffixes, ret_value);
    if (!wrong && (*ret_value < setting->min || *ret_value > setting->max))
        wrong = "out of its limits; wharfd --print-config lists them";
    return wrong;
}

/* What is wrong with a text that has a form; NULL: nothing. */
static const char *check_text(const struct wharf_setting *setting, const char *text)
{
    struct wharf_gpu_list gpus;
    struct wharf_uid_ranges uids;

    if (setting->type == WHARF_SETTING_GPUS)
        return wharf_gpu_list_parse(text, &gpus);
    if (setting->type == WHARF_SETTING_UIDS)
        return wharf_uid_ranges_parse(text, &uids);
    return NULL;
}

/* Puts a value into its member of the section's struct. */
static const char *set(const struct wharf_setting *setting, void *base, const char *text)
{
    char *member = (char *)base + setting->offset;

    if (!wharf_setting_is_text(setting))
        return parse_value(setting, text, (uint64_t *)(void *)member);
    size_t n = strlen(text);
    if (n < setting->min)
        return "must not be empty";
    if (n >= setting->max)
        return "too long";
    const char *wrong = check_text(setting, text);
    if (wrong)
        return wrong;
    memcpy(member, text, n);
    /* All of the room, so that equal settings are equal bytes. */
    memset(member + n, 0, setting->max - n);
    return NULL;
}

/* ---- sections ------------------------------------------------------------------------------ */

/* A section's rows are in the table under this name. */
static const char *table_section(const char *section)
{
    return strcmp(section, "tenant") == 0 ? "quota" : section;
}

static const struct wharf_setting *find_setting(const char *section, const char *key)
{
    section = table_section(section);
    for (const struct wharf_setting *s = wharf_settings; s->section; s++)
        if (strcmp(s->section, section) == 0 && (!key || strcmp(s->key, key) == 0))
            return s;
    return NULL;
}

static void set_defaults(const char *section, void *base)
{
    for (const struct wharf_setting *s = wharf_settings; s->section; s++)
        if (strcmp(s->section, section) == 0)
            set(s, base, s->otherwise);
}

/* The struct that a section's rows are members of; of a section with an argument, the last one. */
static void *section_base(struct wharf_config *config, const char *section)
{
    if (strcmp(section, "quota") == 0)
        return &config->quota;
    if (strcmp(section, "tenant") == 0)
        return &config->tenants[config->n_tenants - 1].quota;
    if (strcmp(section, "listen") == 0)
        return &config->listens[config->n_listens - 1];
    return config;
}

static bool is_uid(const char *text)
{
    uint64_t uid;

    return !parse_number(text, 10, no_suffixes, &uid) && uid < UINT32_MAX;
}

/* "uid:1000", "block:100000", "socket:pods" and "unknown" are what tenants are called; "user:alice"
 * is looked up. */
static const char *resolve_tenant(const char *argument, char *ret_name)
{
    if (strncmp(argument, "user:", 5) == 0) {
        const struct passwd *user = getpwnam(argument + 5);
        if (!user)
            return "there is no such user";
        snprintf(ret_name, WHARF_CONFIG_NAME_NBYTES, "uid:%u", (unsigned)user->pw_uid);
        return NULL;
    }
    if (strncmp(argument, "socket:", 7) == 0 && argument[7]) {
        strcpy(ret_name, argument);
        return NULL;
    }
    if (strcmp(argument, "unknown") == 0) {
        strcpy(ret_name, argument);
        return NULL;
    }
    const char *number = strchr(argument, ':');
    size_t n_kind = number ? (size_t)(number - argument) : 0;
    if (number && is_uid(number + 1) &&
        (strncmp(argument, "uid:", 4) == 0 || strncmp(argument, "block:", 6) == 0)) {
        snprintf(ret_name, WHARF_CONFIG_NAME_NBYTES, "%.*s:%lu", (int)n_kind, argument,
                 strtoul(number + 1, NULL, 10));
        return NULL;
    }
    return "a tenant is user:NAME, uid:NUMBER, block:NUMBER, socket:NAME or unknown";
}

static const char *begin_tenant(struct wharf_config *config, const char *argument)
{
    struct wharf_config_quota *grown =
        reallocarray(config->tenants, config->n_tenants + 1, sizeof(*grown));

    if (!grown)
        return "out of memory";
    config->tenants = grown;
    struct wharf_config_quota *tenant = &grown[config->n_tenants];
    memset(tenant, 0, sizeof(*tenant));
    const char *wrong = resolve_tenant(argument, tenant->name);
    for (size_t i = 0; !wrong && i < config->n_tenants; i++)
        if (strcmp(grown[i].name, tenant->name) == 0)
            wrong = "this tenant has a section already";
    if (!wrong)
        config->n_tenants++;
    return wrong;
}

static const char *begin_listen(struct wharf_config *config, const char *argument)
{
    struct wharf_config_listen *grown =
        reallocarray(config->listens, config->n_listens + 1, sizeof(*grown));

    if (!grown)
        return "out of memory";
    config->listens = grown;
    for (size_t i = 0; i < config->n_listens; i++)
        if (strcmp(grown[i].name, argument) == 0)
            return "this socket has a section already";
    struct wharf_config_listen *listen = &grown[config->n_listens++];
    memset(listen, 0, sizeof(*listen));
    strcpy(listen->name, argument);
    set_defaults("listen", listen);
    return NULL;
}

static const char *begin_section(struct wharf_config *config, const struct wharf_ini_line *line)
{
    bool has_argument =
        strcmp(line->section, "tenant") == 0 || strcmp(line->section, "listen") == 0;

    if (!find_setting(line->section, NULL))
        return "there is no such section";
    if (has_argument != (*line->argument != 0))
        return has_argument ? "this section needs a name, as in [tenant uid:1000]"
                            : "this section has no name";
    /* What getpwnam, socket names and the quotas' names have to fit into. */
    if (strlen(line->argument) >= WHARF_CONFIG_NAME_NBYTES - sizeof("socket:"))
        return "the name is too long";
    if (strcmp(line->section, "tenant") == 0)
        return begin_tenant(config, line->argument);
    if (strcmp(line->section, "listen") == 0)
        return begin_listen(config, line->argument);
    return NULL;
}

struct take_context {
    struct wharf_config *config;
    char message[512];
};

static const char *take_setting(struct take_context *context, const struct wharf_ini_line *line)
{
    struct wharf_config *config = context->config;
    const struct wharf_setting *setting = find_setting(line->section, line->key);

    if (!*line->section)
        return "a setting before the first [section]";
    if (!setting) {
        snprintf(context->message, sizeof(context->message), "[%.40s] has no setting `%.100s`",
                 line->section, line->key);
        return context->message;
    }
    const char *wrong = set(setting, section_base(config, line->section), line->value);
    if (wrong) {
        snprintf(context->message, sizeof(context->message), "%s = %.200s: %s", setting->key,
                 line->value, wrong);
        return context->message;
    }
    if (strcmp(line->section, "tenant") == 0)
        config->tenants[config->n_tenants - 1].set |= (uint64_t)1
                                                      << (setting->offset / sizeof(uint64_t));
    return NULL;
}

static const char *take_line(void *data, const struct wharf_ini_line *line)
{
    struct take_context *context = data;

    return line->key ? take_setting(context, line) : begin_section(context->config, line);
}

/* ---- whole configurations ------------------------------------------------------------------ */

void wharf_config_init(struct wharf_config *config)
{
    memset(config, 0, sizeof(*config));
    set_defaults("daemon", config);
    set_defaults("cpu", config);
    set_defaults("gpu", config);
    set_defaults("schedule", config);
    set_defaults("total", config);
    set_defaults("owners", config);
    set_defaults("quota", &config->quota);
    strcpy(config->listen.name, "wharfd");
}

void wharf_config_deinit(struct wharf_config *config)
{
    if (!config)
        return;
    free(config->tenants);
    free(config->listens);
    config->tenants = NULL;
    config->listens = NULL;
}

int wharf_config_parse(struct wharf_config *config, const char *text, size_t text_nbytes,
                       char *message, size_t message_nbytes)
{
    struct take_context context = {.config = config};

    return wharf_ini_parse(text, text_nbytes, take_line, &context, message, message_nbytes);
}

#define MAX_FILE_NBYTES ((off_t)1 << 20)

static int read_whole(const char *path, char **ret_text, size_t *ret_nbytes)
{
    WHARF_CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    if (st.st_size > MAX_FILE_NBYTES)
        return -EFBIG;
    WHARF_CLEANUP_FREE char *text = malloc((size_t)st.st_size + 1);
    if (!text)
        return -ENOMEM;
    ssize_t n = read(fd, text, (size_t)st.st_size);
    if (n < 0)
        return -errno;
    *ret_text = WHARF_STEAL(text);
    *ret_nbytes = (size_t)n;
    return 0;
}

int wharf_config_load(struct wharf_config *config, const char *path, char *message,
                      size_t message_nbytes)
{
    WHARF_CLEANUP_FREE char *text = NULL;
    size_t nbytes = 0;
    char where[512];
    int r = read_whole(path, &text, &nbytes);

    if (r < 0) {
        snprintf(message, message_nbytes, "%s: %s", path, strerrordesc_np(-r));
        return r;
    }
    r = wharf_config_parse(config, text, nbytes, where, sizeof(where));
    if (r < 0)
        snprintf(message, message_nbytes, "%s: %s", path, where);
    return r;
}

bool wharf_config_has_tenant(const struct wharf_config *config, const char *tenant)
{
    for (size_t i = 0; i < config->n_tenants; i++)
        if (strcmp(config->tenants[i].name, tenant) == 0)
            return true;
    return false;
}

struct wharf_quota wharf_config_quota_of(const struct wharf_config *config, const char *tenant)
{
    struct wharf_quota quota = config->quota;

    for (size_t i = 0; i < config->n_tenants; i++) {
        const struct wharf_config_quota *own = &config->tenants[i];
        if (strcmp(own->name, tenant) != 0)
            continue;
        for (size_t at = 0; at < WHARF_QUOTA_N_MEMBERS; at++)
            if (own->set >> at & 1)
                ((uint64_t *)&quota)[at] = ((const uint64_t *)&own->quota)[at];
    }
    return quota;
}

/* ---- reload -------------------------------------------------------------------------------- */

static bool differs(const struct wharf_setting *s, const void *a, const void *b)
{
    const char *in_a = (const char *)a + s->offset;
    const char *in_b = (const char *)b + s->offset;

    if (wharf_setting_is_text(s))
        return strcmp(in_a, in_b) != 0;
    return memcmp(in_a, in_b, sizeof(uint64_t)) != 0;
}

static bool listens_differ(const struct wharf_config *a, const struct wharf_config *b)
{
    return a->n_listens != b->n_listens ||
           (a->n_listens && memcmp(a->listens, b->listens, a->n_listens * sizeof(*a->listens)));
}

void wharf_config_reload(struct wharf_config *config, struct wharf_config *next,
                         void (*kept)(const char *section, const char *key))
{
    for (const struct wharf_setting *s = wharf_settings; s->section; s++) {
        if (strcmp(s->section, "quota") == 0 || strcmp(s->section, "listen") == 0)
            continue;
        if (!differs(s, config, next))
            continue;
        if (s->reloads)
            memcpy((char *)config + s->offset, (char *)next + s->offset,
                   wharf_setting_is_text(s) ? s->max : sizeof(uint64_t));
        else
            kept(s->section, s->key);
    }
    if (listens_differ(config, next))
        kept("listen", "path, group, mode or tenant");
    config->quota = next->quota;
    free(config->tenants);
    config->tenants = WHARF_STEAL(next->tenants);
    config->n_tenants = next->n_tenants;
    next->n_tenants = 0;
}
