/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c: a line on the terminal while long work runs. */
#include "clientlib/cli/progress.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/number.h"
#include "clientlib/now.h"

enum {
    FIRST_NS = 1000000000,  /* shorter work shows nothing */
    BETWEEN_NS = 200000000, /* five times a second is enough to see movement */
    MAX_NAME_NBYTES = 40,   /* leaves room for the figures on a line of 80 */
    MAX_LINE_NBYTES = 160,
    MAX_LEFT_S = 100 * 3600, /* what takes longer is not guessed at */
};

static struct {
    const char *name;
    uint64_t total_nbytes;
    uint64_t start_ns;
    uint64_t next_ns;
    bool enabled;
    atomic_bool drawn; /* messages of other threads wipe the line */
} line;

static void write_terminal(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));

    (void)n;
}

void wharf_cli_progress_start(const char *name, uint64_t total_nbytes, bool is_shown)
{
    line.enabled = is_shown;
    line.name = name;
    line.total_nbytes = total_nbytes;
    line.start_ns = wharf_client_now_ns();
    line.next_ns = line.start_ns + FIRST_NS;
}

/* The name without control characters, its tail if it is long. */
static void short_name(char *name)
{
    size_t nbytes = strlen(line.name);
    size_t skip = nbytes > MAX_NAME_NBYTES ? nbytes - MAX_NAME_NBYTES : 0;

    for (size_t i = 0; i <= nbytes - skip; i++) {
        unsigned char c = (unsigned char)line.name[skip + i];

        name[i] = (char)(c && (c < ' ' || c == 0x7f) ? '?' : c);
    }
}

/* How long the rest takes if it goes on like this; nothing where that cannot be said. */
static void left_text(uint64_t done_nbytes, double seconds, char *text, size_t text_nbytes)
{
    double left;

    text[0] = 0;
    if (!line.total_nbytes || !done_nbytes || done_nbytes > line.total_nbytes)
        return;
    left = seconds * (double)(line.total_nbytes - done_nbytes) / (double)done_nbytes;
    if (left < MAX_LEFT_S)
        snprintf(text, text_nbytes, "  %d:%02d left", (int)left / 60, (int)left % 60);
}

static void draw(uint64_t done_nbytes, uint64_t unpacked_nbytes, uint64_t now_ns)
{
    char text[MAX_LINE_NBYTES];
    char name[MAX_NAME_NBYTES + 1];
    char size[WHARF_CLI_SIZE_TEXT];
    char percent[16] = "";
    char left[24];
    double seconds = (double)(now_ns - line.start_ns) / 1e9;

    short_name(name);
    wharf_cli_size_text(unpacked_nbytes, size);
    if (line.total_nbytes)
        snprintf(percent, sizeof(percent), " %3.0f %%",
                 100.0 * (double)done_nbytes / (double)line.total_nbytes);
    left_text(done_nbytes, seconds, left, sizeof(left));
    snprintf(text, sizeof(text), "\r\033[K%s:%s  %s  %.0f MB/s%s", name, percent, size,
             (double)unpacked_nbytes / seconds / 1e6, left);
    write_terminal(text);
    atomic_store(&line.drawn, true);
}

void wharf_cli_progress_move(uint64_t done_nbytes, uint64_t unpacked_nbytes)
{
    uint64_t now_ns;

    if (!line.enabled)
        return;
    now_ns = wharf_client_now_ns();
    if (now_ns < line.next_ns)
        return;
    line.next_ns = now_ns + BETWEEN_NS;
    draw(done_nbytes, unpacked_nbytes, now_ns);
}

void wharf_cli_progress_hide(void)
{
    if (atomic_exchange(&line.drawn, false))
        write_terminal("\r\033[K");
}

void wharf_cli_progress_end(void)
{
    line.enabled = false;
    wharf_cli_progress_hide();
}
