/*
 * real.c - a redis-server on a unix socket, with one connection.
 */
#include "real.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MAX_S 60 /* Chosen: a server usually answers after 20 ms. */

static redisContext *redis;
static char dir[] = "/tmp/redlock-store-XXXXXX";
static char home[sizeof dir + 16]; /* The server's folder. */
static pid_t pid;

void real_die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n0 passed, 1 failed\n");
    exit(1);
}

static void stop(void)
{
    char path[sizeof dir + 16];

    if (redis != NULL)
        redisFree(redis);
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    (void)snprintf(path, sizeof path, "%s/socket", dir);
    (void)unlink(path);
    (void)rmdir(home);
    (void)rmdir(dir);
}

const char *real_home(void)
{
    return home;
}

redisContext *real_start(void)
{
    char path[sizeof dir + 16];

    if (mkdtemp(dir) == NULL)
        real_die("no temporary folder");
    (void)snprintf(home, sizeof home, "%s/home", dir);
    if (mkdir(home, 0700) != 0)
        real_die("no folder for the server");
    (void)snprintf(path, sizeof path, "%s/socket", dir);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)freopen("/dev/null", "w", stdout);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--dir", home,
               "--save", "", "--appendonly", "no", (char *)NULL);
        _exit(127);
    }
    (void)atexit(stop);
    for (unsigned i = 0; i < START_MAX_S * 100; i++) {
        redis = redisConnectUnix(path);
        if (redis != NULL && redis->err == 0)
            return redis;
        if (redis != NULL)
            redisFree(redis);
        redis = NULL;
        (void)usleep(10000);
    }
    real_die("redis-server does not start");
}

redisReply *real_reply_of(redisContext *context)
{
    void *got;

    if (redisGetReply(context, &got) != REDIS_OK)
        real_die("the server: %s", context->errstr);
    return got;
}

redisReply *real_reply(void)
{
    return real_reply_of(redis);
}

void real_run(const char *format, ...)
{
    va_list args;
    redisReply *got;

    va_start(args, format);
    (void)redisvAppendCommand(redis, format, args);
    va_end(args);
    got = real_reply();
    if (got->type == REDIS_REPLY_ERROR)
        real_die("%s: %s", format, got->str);
    freeReplyObject(got);
}

uint64_t real_time_us(void)
{
    redisReply *got = real_reply();
    uint64_t us;

    if (got->type != REDIS_REPLY_ARRAY || got->elements != 2)
        real_die("TIME is no time");
    us = strtoull(got->element[0]->str, NULL, 10) * 1000000 +
         strtoull(got->element[1]->str, NULL, 10);
    freeReplyObject(got);
    return us;
}
