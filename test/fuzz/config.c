/*
 * config.c - fuzz target: any bytes as the text of a configuration, and as an answer to prepare.
 *
 * A text that is accepted is the text of what was read.  Nothing of it is a control character.
 */
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "redlock/core/config.h"
#include "redlock/wire/ballot.h"

static void check_next(const struct config *config)
{
    struct config next;
    char text[CONFIG_TEXT_MAX + 1];

    if (!config_is_joint(config))
        return;
    config_finish(config, &next);
    MUST(config_parse(text, config_print(&next, text), &next) && !config_is_joint(&next));
    config_give_up(config, &next);
    MUST(config_parse(text, config_print(&next, text), &next) && !config_is_joint(&next));
}

static void check_config(const struct config *config, const char *bytes, size_t len)
{
    char text[CONFIG_TEXT_MAX + 1];

    MUST(config_print(config, text) == len && memcmp(text, bytes, len) == 0);
    MUST(config->members_len <= QUORUM_MASTERS_MAX);
    MUST(mask_count(config->from | config->to) == config->members_len);
    for (size_t i = 0; i < len; i++)
        MUST(text[i] >= ' ' && text[i] < 0x7f);
    check_next(config);
}

static void check_reply(char *text, size_t len)
{
    struct reply reply = {.type = REPLY_TEXT, .text = text, .text_len = len};
    struct config config;
    struct change_reply answer;

    for (enum change_request i = CHANGE_ASK_PREPARE; i <= CHANGE_ASK_COUNT; i++)
        if (ballot_read(i, 1, &reply, &config, &answer)) {
            MUST(answer.answer != CHANGE_FAILED && answer.answer <= CHANGE_FAILED);
            MUST(answer.config == NULL || answer.config->version == 2);
        }
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t len);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t len)
{
    struct config config = {.version = 1};
    char *text = malloc(len + 1); /* A reply ends in a NUL. */

    MUST(text != NULL);
    memcpy(text, bytes, len);
    text[len] = '\0';
    if (config_parse(text, len, &config))
        check_config(&config, text, len);
    check_reply(text, len);
    free(text);
    return 0;
}
